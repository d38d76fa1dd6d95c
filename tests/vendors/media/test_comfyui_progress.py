"""ComfyUI's WebSocket: a caller sees progress between polls, and no message or loss of it harms a job."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Server
from doubles.comfyui import PAINTING, ComfyUIDouble
from doubles.media import Placed, Plan, listening
from vendors.double import hang, reply

from penstock.jobs import progress
from penstock.vendor_api.generation import Running, VendorFolders
from penstock.vendors.comfyui import ComfyUI, ComfyUIOptions

ENDLESS = Plan(polls=10**6)
SELDOM = 3600
"""Seconds between two polls: what is seen earlier came from the WebSocket."""
NODES, STEPS = len(PAINTING), PAINTING["3"]["inputs"]["steps"]


@pytest.fixture
async def double() -> AsyncGenerator[ComfyUIDouble]:
    async with listening(ComfyUIDouble()) as double:
        assert isinstance(double, ComfyUIDouble)
        yield double


async def begin(server: Server, double: ComfyUIDouble) -> tuple[str, Placed]:
    """Submit a job that goes on until it is let go, and wait until its socket is open."""
    double.plans.append(ENDLESS)
    job = await server.submit("sketch", prompt="a mill")
    await double.wait_for_sockets(len(double.orders) or 1)
    return job["id"], list(double.orders.values())[-1]


async def await_progress(server: Server, job_id: str, least: float) -> list[float]:
    """Follow a job until its progress is at least so much. Return what its events showed."""
    shown: list[float] = []
    async with server.client.stream("GET", f"/api/v1/jobs/{job_id}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                shown.append(json.loads(line[5:])["data"]["progress"])
                if shown[-1] >= least:
                    return shown
    raise AssertionError(f"the progress was never {least}")


async def end(double: ComfyUIDouble, order: Placed) -> None:
    """Finish an order, and say so."""
    order.plan = Plan(polls=0)
    order.polls = 1
    await double.tell(order, "execution_success", timestamp=1)
    await double.tell(order, "executing", node=None)


async def test_progress_comes_between_polls_and_the_end_is_polled_at_once(start, double):
    server = await start(double.settings(poll_seconds=SELDOM))
    job_id, order = await begin(server, double)
    await double.tell_progress(order, **{"4": (1, 1), "6": (1, 1), "3": (0, 1)})
    assert (await await_progress(server, job_id, 0.01))[-1] == round(2 / (NODES - 1 + STEPS), 4)
    await double.tell_progress(order, **{"4": (1, 1), "6": (1, 1), "3": (STEPS / 2, STEPS)})
    assert (await await_progress(server, job_id, 0.4))[-1] == round((2 + STEPS / 2) / (NODES - 1 + STEPS), 4)
    await end(double, order)
    job = await server.finish(job_id, 60)
    assert job["status"] == "succeeded"
    assert double.count("GET", "/queue") == 2, "one poll once the socket was open, and one at the end"
    await double.wait_for_sockets(0)


async def test_the_last_of_many_messages_is_written_and_few_others(start, double):
    server = await start(double.settings(poll_seconds=SELDOM))
    job_id, order = await begin(server, double)
    for step in range(STEPS + 1):
        await double.tell_progress(order, **{"4": (1, 1), "6": (1, 1), "3": (step, STEPS), "8": (step / STEPS, 1)})
    shown = await await_progress(server, job_id, round((NODES - 2 + STEPS) / (NODES - 1 + STEPS), 4))
    assert len(shown) < STEPS


MESSAGES = {
    "nonsense": "nonsense",
    "a list": "[]",
    "no data": '{"type": "progress_state"}',
    "another's": '{"type": "executing", "data": {"prompt_id": "another", "node": null}}',
    "no node": '{"type": "progress_state", "data": {"prompt_id": "ID", "nodes": null}}',
    "an odd node": '{"type": "progress_state", "data": {"prompt_id": "ID", "nodes": {"3": {"value": "1", "max": 2}}}}',
    "no steps": '{"type": "progress_state", "data": {"prompt_id": "ID", "nodes": {"3": {"value": 5, "max": 0}}}}',
    "a picture": b"\0\0\0\1" + bytes(1000),
    "a message that is too large": json.dumps({"type": "executing", "data": {"text": "x" * 5 * 2**20}}),
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
async def test_no_message_harms_a_job(start, double, message):
    server = await start(double.settings(poll_seconds=0.05))
    job_id, order = await begin(server, double)
    (socket,) = double.sockets.values()
    with suppress(ConnectionError):  # the gateway closes the socket over one that is too large
        if isinstance(message, bytes):
            await socket.send_bytes(message)
        else:
            await socket.send_str(message.replace("ID", order.id))
    order.plan = Plan()
    job = await server.finish(job_id)
    assert (job["status"], len(job["attempts"])) == ("succeeded", 1)
    await double.wait_for_sockets(0)


@pytest.mark.parametrize("fault", [reply(404), reply(200, b"{}"), reply(302, location="/elsewhere"), hang])
async def test_a_server_without_a_socket_is_only_polled(start, double, fault):
    server = await start(double.settings())
    double.fault(fault, "GET", "/ws", times=9)
    job = await server.generate("sketch", prompt="a mill")
    assert job["status"] == "succeeded"
    assert double.count("GET", "/ws") == 1
    assert double.count("GET", "/elsewhere") == 0


async def test_a_canceled_job_closes_its_socket(start, double):
    server = await start(double.settings(poll_seconds=SELDOM))
    job_id, _ = await begin(server, double)
    await server.client.post(f"/api/v1/jobs/{job_id}/cancel")
    assert (await server.finish(job_id, 60))["status"] == "canceled"
    await double.wait_for_sockets(0)


async def test_a_gateway_that_stops_leaves_no_socket_and_one_that_starts_listens_again(start, double, tmp_path: Path):
    server = await start(double.settings(poll_seconds=SELDOM))
    job_id, order = await begin(server, double)
    await server.gateway.close()
    await double.wait_for_sockets(0)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "progress channel"]
    again = await start(double.settings(poll_seconds=SELDOM))
    await double.wait_for_sockets(1)
    await end(double, order)
    assert (await again.finish(job_id, 60))["status"] == "succeeded"


async def test_a_process_holds_a_bounded_number_of_sockets(start, double, monkeypatch):
    monkeypatch.setattr(progress, "MAX_CHANNELS", 1)
    server = await start(double.settings(max_concurrent=2))
    double.plans.append(ENDLESS)
    first = await server.submit("sketch", prompt="a mill")
    await double.wait_for_sockets(1)
    second = await server.submit("sketch", prompt="a mill")
    (order,) = double.orders.values()
    order.plan = Plan()
    jobs = [await server.finish(job["id"]) for job in (first, second)]
    assert [job["status"] for job in jobs] == ["succeeded"] * 2
    await double.wait_for_sockets(0)


# -- what a message says

OPERATION: dict[str, Any] = {"id": "p1", "kind": "image", "nodes": 4, "steps": {"3": 17}}


def say(kind: str, **data: Any) -> str:
    return json.dumps({"type": kind, "data": {"prompt_id": "p1", **data}})


def state(value: float, most: float, parent: str | None = None) -> dict[str, Any]:
    return {"value": value, "max": most, "state": "running", "parent_node_id": parent}


@pytest.mark.parametrize(
    ("message", "news"),
    [
        (say("progress_state", nodes={}), 0.0),
        (say("progress_state", nodes={"1": state(1, 1)}), 1 / 20),
        (say("progress_state", nodes={"1": state(1, 1), "3": state(0, 1)}), 1 / 20),
        (say("progress_state", nodes={"1": state(1, 1), "3": state(9, 17)}), 10 / 20),
        (say("progress_state", nodes={"1": state(5, 10)}), 5 / 29),
        (say("progress_state", nodes={"1": state(1, 1), "1.2": state(1, 1, "1")}), 1 / 20),
        (say("progress_state", nodes={name: state(1, 1) for name in "1234"}), 1.0),
        (say("progress_state", nodes={"1": state(10**9, 10**9)}), 1000 / 1019),
    ],
)
def test_the_share_of_steps_that_are_done(message, news):
    channel = ComfyUI(ComfyUIOptions(type="comfyui"), VendorFolders(Path(), Path())).progress_channel(OPERATION)
    assert channel.read(message) == Running(news)


def test_only_the_end_asks_for_a_poll():
    channel = ComfyUI(ComfyUIOptions(type="comfyui"), VendorFolders(Path(), Path())).progress_channel(OPERATION)
    assert channel.read(say("executing", node=None)) == Running(poll_after=0.0)
    for message in (say("executing", node="3"), say("executing"), say("execution_success"), say("progress", max=2)):
        assert channel.read(message) is None
