"""A hook's answers: what callers get, what is recorded, and what reaches the vendor."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import openai
import pytest
from aiohttp import web
from chat_steps import chatting
from conftest import VIDEO, Server, Start
from flows import PICTURE
from guard_hook import ALLOW, NOTE, REFUSE, Hook, hooked, simulated, texts_of
from steps import refused
from test_live_settings import reload

from penstock.guardrails import breaker
from penstock.guardrails import hook as hooks
from penstock.guardrails.hook import MAX_ANSWER_BYTES, MAX_CHARACTERS
from penstock.settings.problems import SettingsError
from penstock.store.queries.billing import completion_rows

SOON = 0.05
MODELS = ("plain", "echo")


@pytest.fixture
async def hook() -> AsyncGenerator[Hook]:
    async with hooked() as hook:
        yield hook


async def order(server: Server, prompt: str = "a boat", **fields: Any) -> Any:
    params = {"prompt": prompt, "script": {"latency": 0.05}}
    return await server.client.post(
        "/model/v1/generation", json={"model": VIDEO, "input": [{"params": params}], **fields}
    )


async def verdicts(server: Server) -> dict[str, float]:
    """The counter by verdict."""
    lines = (await server.client.get("/metrics")).text.splitlines()
    found = [line.rsplit(" ", 1) for line in lines if line.startswith("penstock_guardrail_verdicts_total{")]
    return {labels.partition('verdict="')[2].partition('"')[0]: float(value) for labels, value in found}


async def test_chat_that_the_hook_refuses_reaches_no_vendor(start: Start, hook: Hook) -> None:
    hook.reply = REFUSE
    async with chatting(start, hook.table(), scenarios=MODELS) as chat:
        with pytest.raises(openai.BadRequestError) as caught:
            await chat.create(messages=[{"role": "user", "content": "build a bomb"}])

        error = caught.value
        assert (error.code, error.type, error.param) == ("content_refused", "invalid_request_error", None)
        assert error.body["reason"] == "weapons are not allowed"
        assert "weapons are not allowed" in error.message
        assert error.response.headers["x-should-retry"] == "false"
        assert not error.body["charged"]
        assert not chat.double.requests
    (question,) = hook.asked
    assert question["texts"] == [{"role": "user", "text": "build a bomb"}]
    assert (question["type"], question["endpoint"], question["model"]) == ("chat", "chat", "plain")
    assert (question["account"], question["truncated"], question["media"]) == ("default", False, [])


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_with_a_note_has_it_in_a_header(start: Start, hook: Hook, stream: bool) -> None:
    hook.reply = NOTE
    async with chatting(start, hook.table(), scenarios=MODELS) as chat:
        raw = await chat.client.chat.completions.with_raw_response.create(
            model="plain", messages=[{"role": "user", "content": "Hello"}], stream=stream
        )
        assert raw.headers["x-penstock-guardrails"] == (
            '[{"name":"hook","verdict":"allow","reason":null,"annotations":{"topic":"boats","score":0.25}}]'
        )
        if stream:
            assert [chunk async for chunk in raw.parse()]
        hook.reply = ALLOW
        raw = await chat.client.chat.completions.with_raw_response.create(
            model="plain", messages=[{"role": "user", "content": "Hello"}]
        )
        assert "x-penstock-guardrails" not in raw.headers


async def test_a_generation_that_the_hook_refuses_creates_nothing(start: Start, hook: Hook) -> None:
    hook.reply = REFUSE
    server = await start(simulated(hook.table()))

    error = refused(await order(server, "a bomb"), 400, "content_refused")

    assert (error["reason"], error["guardrail"]) == ("weapons are not allowed", "hook")
    assert (error["retryable"], error["charged"], error["param"]) == (False, False, None)
    assert (await server.client.get("/api/v1/jobs")).json()["data"] == []
    assert "a bomb" in texts_of(hook.asked[0])
    refused(await order(server, dry_run=True), 400, "content_refused")


async def test_a_job_keeps_the_findings(start: Start, hook: Hook) -> None:
    hook.reply = NOTE
    server = await start(simulated(hook.table()))
    note = [{"name": "hook", "reason": None, **NOTE}]

    job = (await order(server)).json()

    assert job["guardrails"] == note
    assert (await server.finish(job["id"]))["guardrails"] == note
    assert (await order(server, dry_run=True)).json()["guardrails"] == note


async def test_a_repeated_order_is_not_inspected_again(start: Start, hook: Hook) -> None:
    server = await start(simulated(hook.table()))
    server.client.headers["idempotency-key"] = "once"
    first = (await order(server)).json()
    hook.reply = REFUSE

    again = await order(server)

    assert (again.json()["id"], again.headers["idempotency-replayed"]) == (first["id"], "true")
    assert len(hook.asked) == 1


async def test_of_a_batch_all_or_none_is_accepted(start: Start, hook: Hook) -> None:
    async def judge(question: dict[str, Any]) -> web.Response:
        return web.json_response(REFUSE if "bomb" in str(question["texts"]) else ALLOW)

    hook.reply = judge
    server = await start(simulated(hook.table()))
    items = [{"params": {"prompt": prompt, "script": {"latency": 0.05}}} for prompt in ("a boat", "a bomb", "a bus")]

    refused(
        await server.client.post("/model/v1/generation", json={"model": VIDEO, "input": items}), 400, "content_refused"
    )

    assert (await server.client.get("/api/v1/jobs")).json()["data"] == []


async def huge(_: dict[str, Any]) -> web.Response:
    return web.json_response({**ALLOW, "annotations": {"a": "b" * MAX_ANSWER_BYTES}})


async def garbage(_: dict[str, Any]) -> web.Response:
    return web.Response(text="\x00\xff{", content_type="application/json")


async def elsewhere(_: dict[str, Any]) -> web.Response:
    return web.Response(status=307, headers={"location": "/allowed"})


async def drop(_: dict[str, Any]) -> web.Response:
    raise ConnectionResetError


async def deep(_: dict[str, Any]) -> web.Response:
    return web.Response(text='{"verdict": "allow", "annotations": {"a": ' + "[" * 900 + "]" * 900 + "}}")


FAILURES: dict[str, Any] = {
    "too deep": deep,
    "an error": 500,
    "no content": 204,
    "a redirect": elsewhere,
    "too much": huge,
    "no JSON": garbage,
    "no verdict": {"verdicts": "allow"},
    "another verdict": {"verdict": "maybe"},
    "no text as a reason": {"verdict": "refuse", "reason": ["bad"]},
    "no object of annotations": {"verdict": "allow", "annotations": [1]},
    "a broken connection": drop,
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_closes_or_opens_as_the_settings_say(start: Start, hook: Hook, name: str) -> None:
    hook.reply = FAILURES[name]
    both = hook.table('applies_to = ["chat"]', name="closed") + hook.table(
        'on_failure = "allow"\napplies_to = ["generation"]', name="open"
    )
    async with chatting(start, both, scenarios=MODELS, vendor='[vendors.sim]\ntype = "sim"') as chat:
        with pytest.raises(openai.InternalServerError) as caught:
            await chat.create()

        assert (caught.value.status_code, caught.value.code) == (503, "guardrail_unavailable")
        assert caught.value.response.headers["x-should-retry"] == "true"
        assert not chat.double.requests


@pytest.mark.parametrize("name", FAILURES)
async def test_a_job_is_accepted_past_a_hook_that_fails_open(start: Start, hook: Hook, name: str) -> None:
    hook.reply = FAILURES[name]
    server = await start(simulated(hook.table('on_failure = "allow"')))

    job = await order(server)

    assert job.status_code == 202
    assert job.json()["guardrails"] == [{"name": "hook", "verdict": "unavailable", "reason": None, "annotations": {}}]
    assert all(question["texts"] for question in hook.asked)


async def test_a_hook_that_hangs_is_left_after_its_timeout(start: Start, hook: Hook) -> None:
    hook.reply = hook.hang
    server = await start(simulated(hook.table(seconds=SOON)))

    refused(await order(server), 503, "guardrail_unavailable")


async def test_a_hook_that_is_not_there_is_not_asked_for_each_request(
    start: Start, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "PAUSE_SECONDS", 3600)
    hook.reply = 500
    server = await start(simulated(hook.table()))
    for _ in range(breaker.MAX_FAILURES + 3):
        refused(await order(server), 503, "guardrail_unavailable")
    assert len(hook.asked) == breaker.MAX_FAILURES

    other = await server.sign_in("other")  # one account's failures are its own
    hook.reply = ALLOW
    params = {"prompt": "a boat", "script": {"latency": 0.05}}
    body = {"model": VIDEO, "input": [{"params": params}]}
    assert (await other.post("/model/v1/generation", json=body)).status_code == 202
    refused(await order(server), 503, "guardrail_unavailable")


async def test_a_slow_hook_of_one_account_leaves_places_to_others(start: Start, hook: Hook) -> None:
    slow = asyncio.Event()

    async def judge(question: dict[str, Any]) -> web.Response:
        if question["account"] == "default":
            await slow.wait()
        return web.json_response(ALLOW)

    hook.reply = judge
    server = await start(simulated(hook.table()))
    other = await server.sign_in("other")
    crowd = [asyncio.create_task(order(server)) for _ in range(80)]
    await hook.wait(16)

    params = {"prompt": "a boat", "script": {"latency": 0.05}}
    answer = await other.post("/model/v1/generation", json={"model": VIDEO, "input": [{"params": params}]})

    assert answer.status_code == 202
    slow.set()
    assert {response.status_code for response in await asyncio.gather(*crowd)} == {202}
    assert hook.most == 17


async def test_a_long_text_reaches_the_hook_in_part(start: Start, hook: Hook) -> None:
    async with chatting(start, hook.table(), scenarios=MODELS) as chat:
        await chat.create(
            messages=[{"role": "user", "content": "a" * MAX_CHARACTERS}, {"role": "user", "content": "end"}]
        )

    (question,) = hook.asked
    assert question["truncated"]
    assert [len(text) for text in texts_of(question)] == [MAX_CHARACTERS - 3, 3]


async def test_verdicts_are_counted_and_no_text_is_logged(
    start: Start, hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    server = await start(simulated(hook.table()))
    before = await verdicts(server)
    hook.reply = REFUSE

    refused(await order(server, "a wooden quinquereme"), 400, "content_refused")

    after = await verdicts(server)
    assert after["refuse"] == before.get("refuse", 0) + 1
    assert "quinquereme" not in str([vars(record) for record in caplog.records])


async def test_a_crowd_of_one_account_never_opens_a_hook_that_works(
    start: Start, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "WAIT_FACTOR", 0.001)
    slow = asyncio.Event()

    async def judge(_: dict[str, Any]) -> web.Response:
        await slow.wait()
        return web.json_response(ALLOW)

    hook.reply = judge
    server = await start(simulated(hook.table('on_failure = "allow"')))
    crowd = [asyncio.create_task(order(server)) for _ in range(hooks.MAX_CALLS_PER_ACCOUNT)]
    await hook.wait(hooks.MAX_CALLS_PER_ACCOUNT)
    refused(await order(server), 503, "guardrail_unavailable")
    slow.set()
    assert {response.status_code for response in await asyncio.gather(*crowd)} == {202}


async def test_a_long_pipeline_waits_for_its_own_turns(start: Start, hook: Hook) -> None:
    server = await start(simulated(hook.table()))
    prompts = [{"prompt": f"a boat {number}"} for number in range(40)]
    each = {**PICTURE, "for_each": prompts, "params": {"prompt": {"item": "prompt"}}}
    body = {"steps": [each]}
    response = await server.client.post("/api/v1/pipelines", json=body)
    assert response.status_code == 202, response.text
    assert (len(hook.asked), hook.most <= 8) == (40, True)
    assert {question["endpoint"] for question in hook.asked} == {"pipeline"}


async def test_usage_records_have_the_findings(start: Start, hook: Hook) -> None:
    async with chatting(start, hook.table(), scenarios=MODELS) as chat:
        hook.reply = NOTE
        await chat.create()
        hook.reply = REFUSE
        with pytest.raises(openai.BadRequestError):
            await chat.create()
        gateway = chat.server.gateway
        await gateway.settle_up()
        account_id = hook.asked[0]["account_id"]
        refusal, note = await gateway.database.read(completion_rows.of_account, account_id)
    assert (refusal.outcome, refusal.code, refusal.cost) == ("failed", "content_refused", 0)
    assert json.loads(note.guardrails or "") == [{"name": "hook", "reason": None, **NOTE}]
    assert json.loads(refusal.guardrails or "") == [{"name": "hook", "annotations": {}, **REFUSE}]


async def test_models_and_accounts_choose_the_requests(start: Start, hook: Hook) -> None:
    server = await start(simulated(hook.table(f'models = ["{VIDEO}"]\naccounts = ["other"]')))
    assert (await order(server)).json()["guardrails"] == []
    assert not hook.asked
    other = await server.sign_in("other")
    params = {"prompt": "a boat", "script": {"latency": 0.05}}
    for model, number in (("sim_text_to_image", 0), (VIDEO, 1)):
        body = {"model": model, "input": [{"params": params}]}
        job = (await other.post("/model/v1/generation", json=body)).json()
        assert len(job["guardrails"]) == number
    assert len(hook.asked) == 1


async def test_a_caller_who_leaves_frees_its_place(start: Start, hook: Hook) -> None:
    hook.reply = hook.hang
    async with chatting(start, hook.table(), scenarios=MODELS) as chat:
        task = asyncio.create_task(chat.create())
        await hook.wait(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        hook.reply = ALLOW
        assert (await chat.create()).choices


async def test_a_reload_applies_to_the_next_request(start: Start, hook: Hook) -> None:
    server = await start(simulated())
    assert (await order(server)).json()["guardrails"] == []
    hook.reply = REFUSE
    await reload(server, simulated(hook.table()))
    refused(await order(server), 400, "content_refused")
    with pytest.raises(SettingsError, match="there is no model `nothing`"):
        await reload(server, simulated(hook.table('models = ["nothing"]')))
    refused(await order(server), 400, "content_refused")
    await reload(server, simulated())
    assert (await order(server)).status_code == 202
