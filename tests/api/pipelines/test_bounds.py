"""Bounds of pipelines and templates, and bodies that are meant to break them. Refusals leave nothing behind."""

from typing import Any

import pytest
from conftest import Server, Start
from flows import FAST, FOX, PICTURE, finish, run, step
from hook_receiver import LOOPBACK, create, is_signed, receiving, secret_of
from steps import post, refused

PATH = "/api/v1/pipelines"
ONE = [step("a", "sim_text_to_image", prompt="x", **FAST)]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def on_picture(**file: Any) -> dict[str, Any]:
    return {"steps": [PICTURE, step("b", "sim_image_to_model", file={"step": "picture", **file})]}


def with_script(**script: Any) -> dict[str, Any]:
    return {"steps": [step("a", "sim_text_to_image", prompt="x", script=script)]}


def listed(for_each: Any, prompt: Any = "x") -> dict[str, Any]:
    return {"steps": [{**step("a", "sim_text_to_image", prompt=prompt), "for_each": for_each}]}


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (with_script(x=nested(400)), "nested more than 32 deep"),
            ({"params": {"x": nested(400)}, "steps": ONE}, "params: Objects and lists are nested"),
            ({"params": {"x": "y" * (1 << 20)}, "steps": ONE}, "at most 1048576 are allowed"),
            ({"steps": [{**ONE[0], "name": f"s{number}"} for number in range(101)]}, "at most 100 items"),
            (listed([1] * 1000), "1000 jobs; at most 100"),
            (with_script(job=[]), "Unknown param"),
            (with_script(step={"a": 1}), "Unknown step"),
            (with_script(param={"a": 1}), "Unknown param"),
            (listed([{"x": 1}], {"item": ["x"]}), "has no field"),
            (listed([{"x": 1}], {"item": "y"}), "has no field 'y'"),
            (listed({"step": ["x"]}), "Unknown step"),
            (listed({"step": "a"}), "a → a"),
            (listed({}), "`for_each` is a list"),
            ({"steps": {"a": 3}}, "should be an object"),
            ({"steps": {"a": {**ONE[0], "name": "b"}}}, "should have this `name`"),
            (on_picture(output=-1), "a number from 0 to 99"),
            (on_picture(output=True), "a number from 0 to 99"),
            (on_picture(role="mask"), "steps.1.params.file.role"),
            (on_picture(type="mp4"), "'png'"),
            ({"steps": ONE, "template": "x"}, "exactly one"),
            ({"steps": ONE, "webhook": {"url": "nonsense"}}, "webhook.url"),
            ({"steps": ONE, "start_timeout": 1e12}, "start_timeout"),
            ({"steps": ONE, "version": 0}, "version"),
        ],
    )
    async def test_a_bad_body_names_the_field_and_the_limit(
        self, server: Server, body: dict[str, Any], words: str
    ) -> None:
        response = await post(server, {"params": {"prompt": "x"}, **body}, PATH)
        error = refused(response, 400, response.json()["error"]["code"])
        assert words in error["message"]
        assert (await server.client.get("/api/v1/jobs")).json()["data"] == []
        assert (await server.client.get(PATH)).json()["data"] == []

    async def test_one_key_is_of_one_request_whatever_it_asks_for(self, server: Server) -> None:
        generation = {"model": "sim_text_to_image", "input": [{"params": {"prompt": "x", **FAST}}]}
        assert (await post(server, generation, idempotency_key="g")).status_code == 202
        refused(await post(server, {"steps": ONE}, PATH, idempotency_key="g"), 422, "idempotency_key_mismatch")
        record = (await post(server, {"steps": ONE}, PATH, idempotency_key="p")).json()
        refused(await post(server, generation, idempotency_key="p"), 422, "idempotency_key_mismatch")
        await finish(server.client, record["id"])
        retry = f"{PATH}/{record['id']}/retry"
        first = await post(server, {"from": "a"}, retry, idempotency_key="r")
        again = await post(server, {"from": "a"}, retry, idempotency_key="r")
        assert again.json()["id"] == first.json()["id"]
        assert again.headers["idempotency-replayed"] == "true"
        other = {"from": "a", "params": {}}
        refused(await post(server, other, retry, idempotency_key="r"), 422, "idempotency_key_mismatch")

    async def test_open_jobs_of_an_account_are_bounded(self, start: Start) -> None:
        server = await start(overrides={"jobs.max_waiting": 3})
        slow = step("slow", "sim_text_to_image", prompt="x", script={"ending": "never"})
        waiting = step("late", "sim_text_to_image", prompt="x", references={"step": "slow"})
        record = await run(server.client, {"steps": [slow, waiting]})
        refused(await post(server, {"steps": [slow, waiting]}, PATH), 429, "queue_full")
        await server.client.post(f"{PATH}/{record['id']}/cancel")

    async def test_a_dry_run_creates_nothing(self, server: Server) -> None:
        answer = (await post(server, {**FOX, "dry_run": True}, PATH)).json()
        assert (answer["object"], answer["jobs"], answer["expected_seconds"]) == ("pipeline.dry_run", 3, None)
        assert (await server.client.get(PATH)).json()["data"] == []
        await finish(server.client, (await run(server.client, FOX))["id"])
        again = (await post(server, {**FOX, "dry_run": True}, PATH)).json()
        times = [each["expected_seconds"]["p50"] for each in again["steps"]]
        assert again["expected_seconds"] == pytest.approx(sum(times), abs=0.01)


class TestTemplates:
    async def test_a_template_has_the_bounds_of_a_pipeline(self, server: Server) -> None:
        path = f"{PATH}/templates/fox"
        for body, words in (
            ({"steps": with_script(x=nested(40))["steps"]}, "nested more than 32 deep"),
            ({"steps": ONE, "params": {"x": "y" * (1 << 20)}}, "at most 1048576"),
        ):
            assert words in refused(await server.client.put(path, json=body), 400, "invalid_params")["message"]

    async def test_the_oldest_of_many_versions_go(self, server: Server) -> None:
        path = f"{PATH}/templates/fox"
        for number in range(101):
            body = {"steps": ONE, "params": {"number": number}}
            assert (await server.client.put(path, json=body)).json()["version"] == number + 1
        refused(await server.client.get(path, params={"version": 1}), 404, "template_not_found")
        assert (await server.client.get(path, params={"version": 2})).json()["params"] == {"number": 1}
        found = (await server.client.get(f"{PATH}/templates")).json()["data"]
        assert [each["version"] for each in found] == [101]

    async def test_a_pipeline_keeps_its_steps_when_its_template_is_gone(self, server: Server) -> None:
        path = f"{PATH}/templates/fox"
        await server.client.put(path, json={"steps": ONE})
        record = await finish(server.client, (await run(server.client, {"template": "fox"}))["id"])
        await server.client.delete(path)
        again = await post(server, {"from": "a"}, f"{PATH}/{record['id']}/retry")
        assert (again.json()["template"], again.json()["version"]) == ("fox", 1)
        assert (await finish(server.client, again.json()["id"]))["status"] == "succeeded"


class TestWebhooks:
    async def test_ends_are_told_once_and_signed(self, start: Start) -> None:
        server = await start(LOOPBACK)
        async with receiving() as receiver:
            made = await create(
                server.client, receiver.url("/account"), events=["pipeline.queued", "pipeline.succeeded"]
            )
            own = {"url": receiver.url("/own"), "events": ["pipeline.succeeded", "job.succeeded"]}
            record = await run(server.client, {**FOX, "webhook": own})
            await finish(server.client, record["id"])
            messages = await receiver.wait(6)
        secrets = {"/account": made["secret"], "/own": await secret_of(server)}
        assert all(is_signed(message, secrets[message.path]) for message in messages)
        told = sorted((message.path, message.body["type"]) for message in messages)
        assert told == [
            ("/account", "pipeline.queued"),
            ("/account", "pipeline.succeeded"),
            *[("/own", "job.succeeded")] * 3,
            ("/own", "pipeline.succeeded"),
        ]
        ending = next(message.body for message in messages if message.body["type"] == "pipeline.succeeded")
        assert (ending["data"]["id"], ending["data"]["steps"][0]["jobs"]) == (record["id"], None)
