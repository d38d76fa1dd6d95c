"""The built-in chat model in trouble: killed, left alone, overrun, changed while it speaks, or not there at all."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from chat_wire import events_of
from conftest import Server, Start
from local_steps import (
    LONG,
    ROOMY,
    SMALL,
    TOOLS,
    answer,
    ask,
    begin,
    children,
    refuse,
    unread_at,
    until,
    until_it_works,
)
from small_gguf import link_small_weights

from penstock.settings.tables import load
from penstock_engines.llama.llama_server import LlamaServer


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Soon after the gateway has closed: one that was told to end may need a moment."""
    yield
    give_up_at = time.monotonic() + 60
    while children():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@pytest.fixture(scope="module")
def small_weights(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return link_small_weights(weights, tmp_path_factory.mktemp("small") / "weights")


@pytest.fixture
def start_small(start: Start, small_weights: Path) -> Start:
    """Start gateways whose chat model has few layers."""
    return partial(start, overrides={"weights": small_weights})


def llama_of(server: Server) -> LlamaServer:
    """Return the chat server that the gateway uses at present."""
    found = server.gateway.offers.chat_vendors["local"].server
    assert isinstance(found, LlamaServer)
    return found


async def test_beyond_what_may_wait_callers_are_told_when_to_come_back(start_small: Start):
    server = await start_small(SMALL + "max_concurrent = 2\n")
    await answer(server)
    (child,) = children()
    os.kill(child, signal.SIGSTOP)  # neither ends while we look
    begun = [asyncio.create_task(ask(server, stream=True)) for _ in range(2)]
    await until(lambda: llama_of(server)._busy == 2)
    for refused in [await ask(server), await ask(server, stream=True)]:
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert int(refused.headers["retry-after"]) >= 1
    os.kill(child, signal.SIGCONT)
    assert [events_of(response.content)[-1] for response in await asyncio.gather(*begun)] == [b"[DONE]", b"[DONE]"]
    assert (await ask(server)).status_code == 200


async def test_one_that_dies_takes_no_answer_for_whole_and_comes_back(start_small: Start):
    server = await start_small(ROOMY)
    streaming = await begin(server)
    (child,) = children()
    os.kill(child, signal.SIGKILL)
    rest = await streaming.rest()
    assert json.loads(rest[-1])["error"]["type"] == "server_error"
    assert "[DONE]" not in rest
    assert all("error" in line or '"finish_reason":null' in line for line in rest)
    assert (await ask(server)).status_code == 200
    (child,) = children()
    whole = asyncio.create_task(ask(server, **{**LONG, "stream": False}))
    await until_it_works(child)
    os.kill(child, signal.SIGKILL)
    lost = await whole
    assert (lost.status_code, lost.json()["error"]["type"]) == (502, "server_error")
    assert (await ask(server, tools=TOOLS, tool_choice="required", max_tokens=60)).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_question_that_comes_while_it_dies_is_asked_of_the_next(start_small: Start, stream: bool):
    server = await start_small(ROOMY)
    await answer(server)
    (child,) = children()
    os.kill(child, signal.SIGSTOP)  # what comes now waits in the system, and is never read
    asking = asyncio.create_task(ask(server, stream=stream))
    port = int((llama_of(server).address() or "").rpartition(":")[2].removesuffix("/v1"))
    await until(lambda: unread_at(port))
    os.kill(child, signal.SIGKILL)
    response = await asking
    assert response.status_code == 200, response.text
    assert children() - {child}


@pytest.mark.parametrize("stream", [False, True])
async def test_nobody_works_for_a_caller_who_left(start: Start, stream: bool):
    server = await start("[vendors.local]\nslots = 1\nmax_concurrent = 1\nthreads = 1\n")
    await answer(server)
    (child,) = children()
    if stream:
        await (await begin(server)).response.aclose()
    else:
        waiting = asyncio.create_task(ask(server, **{**LONG, "stream": False}))
        await until_it_works(child)
        waiting.cancel()
    async with asyncio.timeout(60):  # its only slot would be taken for minutes
        while (response := await ask(server)).status_code == 429:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert response.status_code == 200
    assert children() == {child}


async def test_without_weights_it_says_what_to_do(start: Start, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    server = await start("", {"weights": tmp_path / "empty"})
    for stream in (False, True):
        response = await ask(server, stream=stream)
        assert response.status_code == 502
        assert "penstock models pull" in response.json()["error"]["message"]
        assert str(tmp_path) not in response.text


async def test_what_is_no_model_hurts_nobody(start_small: Start, tmp_path: Path):
    (tmp_path / "garbage.gguf").write_bytes(b"GGUF" + b"\x07" * 5000)
    models = "".join(f'[[models]]\nid = "{name}"\nvendor = "{name}"\n' for name in ("broken", "local"))
    server = await start_small(f'[vendors.broken]\ntype = "local"\ngguf = "{tmp_path}/garbage.gguf"\n{SMALL}{models}')
    response = await ask(server, model="broken")
    assert response.status_code == 502
    assert "`garbage.gguf` cannot be loaded" in response.json()["error"]["message"]
    assert str(tmp_path) not in response.text
    assert (await ask(server, model="local")).status_code == 200
    assert (await server.client.get("/healthz")).status_code == 200


async def reload(server: Server, toml: str) -> None:
    settings = server.gateway.settings
    config = settings.data / "other.toml"
    await asyncio.to_thread(config.write_text, toml)
    await server.gateway.reload(load(config, {}, {"data": settings.data, "weights": settings.weights}))


async def test_a_change_of_settings_lets_streams_finish(start_small: Start):
    server = await start_small(ROOMY)
    streaming = await begin(server)
    (old,) = children()
    os.kill(old, signal.SIGSTOP)  # neither can end before the change, however fast it speaks
    short = asyncio.create_task(ask(server, stream=True))
    await until(lambda: llama_of(server)._busy == 2)
    await reload(server, "[vendors.local]\ncontext = 512\nthreads = 1\n")
    assert children() == {old}
    assert (await ask(server)).status_code == 200
    assert children() - {old}
    os.kill(old, signal.SIGCONT)
    assert events_of((await short).content)[-1] == b"[DONE]"
    assert '"finish_reason":null' in await streaming.next()
    assert old in children()
    await streaming.response.aclose()
    await until(lambda: old not in children())
    assert len(children()) == 1
    too_long = [{"role": "user", "content": "word " * 600}]
    assert (await refuse(server, messages=too_long))["code"] == "context_length_exceeded"


@pytest.mark.long
async def test_many_come_and_half_of_them_leave_without_a_trace(start: Start):
    server = await start(SMALL + "unload_seconds = 0.3\n")

    async def come(stays: bool) -> str:
        streaming = await begin(server, max_tokens=3 if stays else 4000)
        if stays:
            return (await streaming.rest())[-1]
        await streaming.response.aclose()
        return "left"

    ends = await asyncio.gather(*(come(bool(number % 2)) for number in range(20)))
    assert ends == ["left", "[DONE]"] * 10
    await until(lambda: not children())  # as long as one were counted as using it, it would stay
    assert (await ask(server)).status_code == 200
    await reload(server, SMALL + "max_concurrent = 1\n")
    assert (await ask(server)).status_code == 200  # as long as one were counted, there would be no place


async def test_all_who_wait_for_the_start_leave_threads_for_everyone_else(start: Start):
    server = await start(SMALL)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(4))
    waiting = [asyncio.create_task(ask(server, n=99)) for _ in range(8)]
    await until(children)
    (child,) = children()
    os.kill(child, signal.SIGSTOP)  # so that it starts for as long as we look
    waiting[0].cancel()  # who was the first may leave
    async with asyncio.timeout(60):
        await asyncio.to_thread(int)
    assert llama_of(server).address() is None  # all that while it was starting
    os.kill(child, signal.SIGCONT)
    assert {response.status_code for response in await asyncio.gather(*waiting[1:])} == {400}  # by the server itself
    assert len(children()) == 1
