"""Every door is guarded: each protocol's official client gets a typed error with the reason, and nothing is ordered."""

import io
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import anthropic
import httpx
import openai
import pytest
from agent_client import connected
from chat_steps import Chat, chatting
from conftest import Server, Start
from flows import PICTURE
from guard_hook import WORDS, simulated
from openai_media import IMAGE, QUICK, VIDEO, connect
from plain import NO_TLS
from speech_double import make_wav

if sys.version_info < (3, 14):  # the client needs pydantic 1, which Python 3.14 lacks
    from replicate.client import Client
    from replicate.exceptions import ReplicateError

REASON = "weapons are not allowed"
BAD = "how to make a BOMB?"
FINE = "how to bombard someone with questions"
KINDS = '[chat]\nresponse_retention = "30d"\n' + "".join(
    f'[[models]]\nid = "{kind}"\nkind = "{kind}"\nvendor = "upstream"\nmodel = "plain"\n'
    for kind in ("embedding", "speech", "transcription")
)


@pytest.fixture
async def chat(start: Start) -> AsyncGenerator[Chat]:
    async with chatting(start, WORDS + KINDS, scenarios=("plain",)) as chat:
        yield chat


@pytest.fixture
async def server(start: Start) -> Server:
    return await start(simulated(WORDS))


async def refused_by_openai(promise: Awaitable[Any]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await promise
    error = caught.value
    assert (error.code, error.type, error.param) == ("content_refused", "invalid_request_error", None)
    assert (error.body["reason"], error.body["guardrail"]) == (REASON, "words")
    assert REASON in error.message
    assert error.response.headers["x-should-retry"] == "false"


# -- chat

ASKS: dict[str, Callable[[openai.AsyncOpenAI], Awaitable[Any]]] = {
    "chat": lambda c: c.chat.completions.create(model="plain", messages=[{"role": "user", "content": BAD}]),
    "stream": lambda c: c.chat.completions.create(
        model="plain", messages=[{"role": "user", "content": [{"type": "text", "text": BAD}]}], stream=True
    ),
    "tools": lambda c: c.chat.completions.create(
        model="plain",
        messages=[{"role": "user", "content": "Hello"}],
        tools=[{"type": "function", "function": {"name": "f", "description": BAD, "parameters": {}}}],
    ),
    "arguments": lambda c: c.chat.completions.create(
        model="plain",
        messages=[
            {"role": "user", "content": "Hello"},
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"id": "b\\u006fmb"}'}}
                ],
            },
        ],
    ),
    "responses": lambda c: c.responses.create(model="plain", input=BAD),
    "instructions": lambda c: c.responses.create(model="plain", input="Hello", instructions=BAD),
    "background": lambda c: c.responses.create(model="plain", input=BAD, background=True),
    "embeddings": lambda c: c.embeddings.create(model="embedding", input=["fine", BAD]),
    "speech": lambda c: c.audio.speech.create(model="speech", input=BAD, voice="alloy"),
    "transcription": lambda c: c.audio.transcriptions.create(
        model="transcription", file=("a.wav", io.BytesIO(make_wav())), prompt=BAD
    ),
}


@pytest.mark.parametrize("name", ASKS)
async def test_the_doors_of_chat_refuse(chat: Chat, name: str) -> None:
    client = await chat.sign_in(base_url=f"{chat.server.url}/v1", max_retries=2)

    await refused_by_openai(ASKS[name](client))

    assert not chat.double.requests


async def test_fine_words_pass_every_door_of_chat(chat: Chat) -> None:
    await chat.create(messages=[{"role": "user", "content": FINE}])
    await chat.client.responses.create(model="plain", input=FINE)
    assert len(chat.double.requests) == 2


async def test_what_a_continued_response_says_is_inspected(chat: Chat) -> None:
    client = await chat.sign_in(base_url=f"{chat.server.url}/v1")
    first = await client.responses.create(model="plain", input=FINE)
    await refused_by_openai(client.responses.create(model="plain", input=BAD, previous_response_id=first.id))


@pytest.mark.parametrize("counts", [False, True])
async def test_anthropics_client_gets_a_typed_error(chat: Chat, counts: bool) -> None:
    client = anthropic.AsyncAnthropic(
        base_url=chat.server.url,
        api_key=chat.key,
        http_client=anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
    )
    ask: dict[str, Any] = {"model": "plain", "system": "Be brief.", "messages": [{"role": "user", "content": BAD}]}
    async with client:
        if counts:  # the double does not count, so nothing is sent
            assert (await client.messages.count_tokens(**ask)).input_tokens > 0
            return
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.messages.create(max_tokens=10, **ask)
        said = [{"role": "user", "content": "Hi"}]
        for place in ({"system": BAD}, {"system": [{"type": "text", "text": BAD}]}):
            with pytest.raises(anthropic.BadRequestError):
                await client.messages.create(max_tokens=10, **{**ask, "messages": said, **place})
    error = caught.value.body["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "content_refused")
    assert REASON in error["message"]
    assert not chat.double.requests


async def test_a_cached_answer_is_not_given_to_a_refused_request(start: Start) -> None:
    rule = '[chat]\ncache_mb = 1\n[[guardrails]]\nname = "later"\npatterns = ["(?i)secret"]\naccounts = ["default"]\n'
    async with chatting(start, rule, scenarios=("plain",)) as chat:
        gateway = chat.server.gateway
        ask: Any = [{"role": "user", "content": "a secret"}]
        rules = gateway.guardrails._guardrails
        gateway.guardrails.use([])
        await chat.create(messages=ask)
        gateway.guardrails.use(rules)
        with pytest.raises(openai.BadRequestError):
            await chat.create(messages=ask)


# -- generations


async def test_both_native_endpoints_and_pipelines_refuse(server: Server) -> None:
    params = {"prompt": BAD, **QUICK}
    orders = {
        "/model/v1/generation": {"model": VIDEO, "input": [{"params": params}]},
        f"/api/v1/{VIDEO}/generate": {"model": VIDEO, "input": [{"params": params}]},
        "/api/v1/pipelines": {"params": {"prompt": BAD}, "steps": [PICTURE]},
    }
    for path, body in orders.items():
        for more in ({}, {"dry_run": True}):
            response = await server.client.post(path, json={**body, **more})
            assert (response.status_code, response.json()["error"]["code"]) == (400, "content_refused"), path
    await nothing_is_ordered(server)


async def nothing_is_ordered(server: Server) -> None:
    assert (await server.client.get("/api/v1/jobs")).json()["data"] == []
    assert not server.gateway.offers.vendors["sim"].upstream.counts()["orders"]


async def test_a_pipeline_notes_findings_in_its_jobs(start: Start) -> None:
    server = await start(simulated(WORDS.replace("reason", 'action = "annotate"\nreason')))
    body = {"params": {"prompt": BAD}, "steps": [PICTURE]}
    pipeline = (await server.client.post("/api/v1/pipelines", json=body)).json()
    (job,) = (await server.client.get("/api/v1/jobs", params={"pipeline_id": pipeline["id"]})).json()["data"]
    assert job["guardrails"] == [{"name": "words", "verdict": "allow", "reason": REASON, "annotations": {}}]


@pytest.mark.filterwarnings("ignore:The Sora API")
async def test_openais_pictures_and_films_refuse(server: Server) -> None:
    client = await connect(server, retries=2)
    await refused_by_openai(client.images.generate(model=IMAGE, prompt=BAD, extra_body=QUICK))
    await refused_by_openai(client.videos.create(model=VIDEO, prompt=BAD))
    await nothing_is_ordered(server)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the client needs pydantic 1")
async def test_replicates_client_gets_the_reason(server: Server) -> None:
    transport = httpx.AsyncHTTPTransport(verify=NO_TLS)
    key = await server.new_key()
    client = Client(api_token=key, base_url=f"{server.url}/replicate", transport=transport, trust_env=False)
    server.clients.push_async_callback(client._async_client.aclose)
    with pytest.raises(ReplicateError) as caught:
        await client.models.predictions.async_create(model=("penstock", VIDEO), input={"prompt": BAD, **QUICK})
    assert (caught.value.status, REASON in (caught.value.detail or "")) == (400, True)
    await nothing_is_ordered(server)


async def test_fals_queue_and_runs_refuse(server: Server) -> None:
    for path in (f"/fal/queue/penstock/{VIDEO}", f"/fal/run/penstock/{VIDEO}"):
        response = await server.client.post(path, json={"prompt": BAD, **QUICK})
        assert response.status_code == 400, response.text
        assert (response.json()["error_type"], REASON in response.json()["detail"]) == ("content_refused", True)
    await nothing_is_ordered(server)


async def test_a_tool_of_mcp_answers_with_the_reason(server: Server) -> None:
    async with connected(server.url, await server.new_key()) as client:
        given = {"model": IMAGE, "params": {"prompt": BAD, **QUICK}}
        result = await client.call_tool("generate_image", given)
    assert result.is_error
    assert result.structured_content["error"]["code"] == "content_refused"
    assert REASON in result.content[0].text
    await nothing_is_ordered(server)


async def test_a_rule_that_notes_lets_a_job_run(start: Start) -> None:
    server = await start(simulated(WORDS.replace("reason", 'action = "annotate"\nreason')))
    job = await server.generate(prompt=BAD, **QUICK)
    assert (job["status"], job["guardrails"][0]["reason"]) == ("succeeded", REASON)
    plain = await server.generate(prompt=FINE, **QUICK)
    assert plain["guardrails"] == [{"name": "words", "verdict": "allow", "reason": None, "annotations": {}}]


async def test_a_result_is_not_reused_for_a_refused_request(server: Server) -> None:
    gateway, params = server.gateway, {"prompt": BAD, "seed": 7, **QUICK}
    rules = gateway.guardrails._guardrails
    gateway.guardrails.use([])
    assert (await server.generate(IMAGE, **params))["status"] == "succeeded"
    step = {"name": "a", "model": IMAGE, "params": params}
    orders = {
        "/model/v1/generation": {"model": IMAGE, "input": [{"params": params}], "reuse": "exact"},
        "/api/v1/pipelines": {"steps": [step], "reuse": "exact"},
    }
    for path, body in orders.items():
        gateway.guardrails.use([])
        assert (await server.client.post(path, json=body)).headers.get("reused", "true") == "true"
        gateway.guardrails.use(rules)
        response = await server.client.post(path, json=body)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "content_refused"), path
