"""`gemini` through a gateway, with the official SDK."""

import json
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from conftest import Server
from gemini_double import CALLS, KEY, GeminiDouble
from gemini_steps import HELLO, PIXEL, TIME, WEATHER, allowed, result, said
from plain import NO_TLS
from pydantic import BaseModel

# -- through a gateway, with the official SDK

MODELS = (
    *("text", "thoughts", "tool", "parallel", "steps", "ids", "json", "length", "safety", "blocked", "slow:0.05"),
    *("hang", "cut", "clean-cut", "error-mid", "malformed", "empty", "html", "array", "context", "retry:17"),
    *("bad-key", "country", "status:400", "status:402", "status:403", "status:404", "status:429", "status:500"),
    *("status:503", "status:504", "gemini-2.5-text", "a b"),
)


class Chat:
    """A gateway, the double behind it, and a strict SDK client that does not retry."""

    def __init__(self, server: Server, double: GeminiDouble, client: openai.AsyncOpenAI) -> None:
        self.server, self.double, self.client = server, double, client

    async def create(self, model: str = "text", **fields: Any) -> Any:
        return await self.client.chat.completions.create(**{"model": model, "messages": HELLO, **fields})

    async def collect(self, model: str = "text", **fields: Any) -> list[Any]:
        return [chunk async for chunk in await self.create(model, stream=True, **fields)]


@asynccontextmanager
async def chatting(start, key: str = KEY):
    async with GeminiDouble() as double:
        vendor = f'[vendors.google]\ntype = "gemini"\napi_key = "{key}"\nbase_url = "{double.url}"\n'
        models = [
            f'[[models]]\nid = "{name.replace(" ", "-")}"\nkind = "chat"\nvendor = "google"\nmodel = "{name}"\n'
            for name in MODELS
        ]
        server = await start("\n".join([vendor, *models]))
        async with openai.AsyncOpenAI(
            base_url=f"{server.url}/llm",
            api_key=await server.new_key(),
            max_retries=0,
            _strict_response_validation=True,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
        ) as client:
            yield Chat(server, double, client)


@pytest.fixture
async def chat(start):
    async with chatting(start) as chat:
        yield chat


def text_of(chunks: list[Any], index: int = 0) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices if choice.index == index)


def ends_of(chunks: list[Any]) -> list[tuple[int, str]]:
    return [(choice.index, choice.finish_reason) for c in chunks for choice in c.choices if choice.finish_reason]


async def test_a_completion(chat):
    completion = await chat.create(temperature=0.5, user="u", extra_body={"min_p": 0.5})
    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.message.refusal) == ("Hello, world 🌍", "stop", None)
    assert (completion.id, completion.model, completion.object) == ("resp-42", "text-001", "chat.completion")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (9, 5)
    seen = chat.double.requests[0]
    assert seen.path == "/v1beta/models/text:generateContent"
    assert seen.headers["x-goog-api-key"] == KEY
    assert seen.body == {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
        "generationConfig": {"temperature": 0.5},
    }


async def test_a_stream_with_usage(chat):
    *chunks, last = await chat.collect(stream_options={"include_usage": True})
    assert text_of(chunks) == "Hello, world 🌍"
    assert ends_of(chunks) == [(0, "stop")]
    assert (last.choices, last.usage.total_tokens) == ([], 14)
    assert all(chunk.usage is None for chunk in chunks)
    assert {chunk.id for chunk in chunks} == {"resp-42"}
    assert chat.double.requests[0].path == "/v1beta/models/text:streamGenerateContent?alt=sse"


async def test_a_stream_without_usage(chat):
    chunks = await chat.collect()
    assert text_of(chunks) == "Hello, world 🌍"
    assert all(chunk.choices and "usage" not in chunk.to_dict() for chunk in chunks)


async def test_two_candidates(chat):
    completion = await chat.create(n=2)
    assert [(c.index, c.message.content, c.finish_reason) for c in completion.choices] == [
        (0, "Hello, world 🌍", "stop"),
        (1, "Hello, world 🌍", "stop"),
    ]
    chunks = await chat.collect(n=2)
    assert text_of(chunks, 0) == text_of(chunks, 1) == "Hello, world 🌍"
    assert ends_of(chunks) == [(0, "stop"), (1, "stop")]


async def test_a_models_name_with_a_space(chat):
    assert (await chat.create("a-b")).choices[0].message.content == "Hello, world 🌍"
    assert chat.double.requests[0].path == "/v1beta/models/a%20b:generateContent"


async def test_thoughts(chat):
    completion = await chat.create("thoughts", reasoning_effort="low")
    message = completion.choices[0].message
    assert (message.reasoning_content, message.content) == ("Hm. So.", "Grüße 🌊")
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (12, 12)
    assert usage.prompt_tokens_details.cached_tokens == 4
    assert usage.completion_tokens_details.reasoning_tokens == 7
    chunks = await chat.collect("thoughts", reasoning_effort="none")
    deltas = [choice.delta.to_dict() for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Hm. So."
    assert text_of(chunks) == "Grüße 🌊"
    assert (await chat.create("gemini-2.5-text", reasoning_effort="high")).choices[0].finish_reason == "stop"


def answers(message: Any) -> list[dict[str, Any]]:
    """Results for all calls, in another order than theirs, and the turn that asked for them as a client keeps it."""
    kept = [said(call.id, call.function.name, call.function.arguments)["tool_calls"][0] for call in message.tool_calls]
    results = [result(call.id, json.dumps({"for": json.loads(call.function.arguments)})) for call in message.tool_calls]
    return [{"role": "assistant", "content": message.content, "tool_calls": kept}, *reversed(results)]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("model", "expected"), [("tool", 1), ("parallel", 2), ("ids", 2)])
async def test_a_tool_loop(chat, model, expected, streams):
    first: Any
    if streams:
        async with chat.client.chat.completions.stream(model=model, messages=HELLO, tools=[WEATHER]) as stream:
            first = (await stream.get_final_completion()).choices[0]
    else:
        first = (await chat.create(model, tools=[WEATHER])).choices[0]
    assert first.finish_reason == "tool_calls"
    assert first.message.content == ("I look." if model == "parallel" else None)
    assert [json.loads(call.function.arguments) for call in first.message.tool_calls] == [
        called["args"] for called in CALLS[:expected]
    ]
    second = await chat.create(model, messages=[*HELLO, *answers(first.message)], tools=[WEATHER])
    told = "; ".join(f"weather: {json.dumps({'for': called['args']})}" for called in CALLS[:expected])
    assert second.choices[0].message.content == f"They said {told}"
    returned = [part.get("thoughtSignature") for part in chat.double.asked["contents"][1]["parts"]]
    assert [signature for signature in returned if signature] == list(chat.double.issued)


async def test_every_step_brings_its_own_signature_back(chat):
    messages = [*HELLO]
    for _ in range(2):
        choice = (await chat.create("steps", messages=messages, tools=[WEATHER])).choices[0]
        assert choice.finish_reason == "tool_calls"
        messages += answers(choice.message)
    choice = (await chat.create("steps", messages=messages, tools=[WEATHER])).choices[0]
    assert choice.message.content.startswith("They said")
    returned = [part.get("thoughtSignature") for c in chat.double.asked["contents"] for part in c["parts"]]
    assert [signature for signature in returned if signature] == list(chat.double.issued)


async def test_a_lost_signature_is_noticed_by_the_double(chat):
    choice = (await chat.create("tool", tools=[WEATHER])).choices[0]
    turns = answers(choice.message)
    own = choice.message.tool_calls[0].id[:31]  # a call of ours, without what was packed into its id
    turns[0]["tool_calls"][0]["id"] = turns[1]["tool_call_id"] = own
    with pytest.raises(openai.BadRequestError, match="missing a thought_signature"):
        await chat.create("tool", messages=[*HELLO, *turns], tools=[WEATHER])


async def test_a_history_from_another_vendor(chat):
    messages = [*HELLO, said("call_abc"), result("call_abc")]
    completion = await chat.create("tool", messages=messages, tools=[WEATHER])
    assert completion.choices[0].message.content == 'They said weather: {"result": "sunny"}'


async def test_tool_choices_are_understood(chat):
    tools = [WEATHER, TIME]
    for choice in ("auto", "none", "required", {"type": "function", "function": {"name": "time"}}, allowed("auto")):
        assert (await chat.create(tools=tools, tool_choice=choice)).choices[0].finish_reason == "stop"


async def test_an_image(chat):
    content = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image_url", "image_url": {"url": "https://a.test/cat.webp"}},
    ]
    await chat.create(messages=[{"role": "user", "content": content}])
    assert chat.double.asked["contents"][0]["parts"][1:] == [
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"fileData": {"fileUri": "https://a.test/cat.webp", "mimeType": "image/webp"}},
    ]


class Place(BaseModel):
    """Where it is."""

    city: str


async def test_structured_output(chat):
    asked = chat.client.chat.completions
    completion = await asked.parse(model="json", messages=HELLO, response_format=Place)
    assert completion.choices[0].message.parsed == Place(city="Köln")
    made = chat.double.asked["generationConfig"]
    assert made["responseJsonSchema"]["required"] == ["city"]
    async with asked.stream(model="json", messages=HELLO, response_format=Place) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.parsed == Place(city="Köln")
    with pytest.raises(openai.ContentFilterFinishReasonError):
        await asked.parse(model="blocked", messages=HELLO, response_format=Place)


@pytest.mark.parametrize(
    ("model", "reason"), [("length", "length"), ("safety", "content_filter"), ("blocked", "content_filter")]
)
async def test_other_endings(chat, model, reason):
    completion = await chat.create(model)
    assert [choice.finish_reason for choice in completion.choices] == [reason]
    assert completion.usage.prompt_tokens == 9
    assert ends_of(await chat.collect(model)) == [(0, reason)]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("model", "kind", "status", "code"),
    [
        ("status:400", openai.BadRequestError, 400, "invalid_value"),
        ("array", openai.BadRequestError, 400, "invalid_value"),
        ("context", openai.BadRequestError, 400, "context_length_exceeded"),
        ("bad-key", openai.InternalServerError, 502, "upstream_auth"),
        ("country", openai.InternalServerError, 502, "upstream_auth"),
        ("status:402", openai.InternalServerError, 502, "upstream_auth"),
        ("status:403", openai.InternalServerError, 502, "upstream_auth"),
        ("status:404", openai.InternalServerError, 502, "upstream_error"),
        ("retry:17", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("status:429", openai.RateLimitError, 429, "rate_limit_exceeded"),
        ("status:500", openai.InternalServerError, 502, "upstream_error"),
        ("status:503", openai.InternalServerError, 503, "overloaded"),
        ("status:504", openai.InternalServerError, 502, "upstream_error"),
        ("html", openai.InternalServerError, 502, "upstream_error"),
    ],
)
async def test_refusals(chat, model, kind, status, code, streams):
    with pytest.raises(kind) as caught:
        await chat.create(model, stream=streams)
    error = caught.value
    assert (error.status_code, error.code) == (status, code)
    assert KEY not in str(error)
    if model == "context":
        assert (error.param, "This model's maximum context length is" in error.message) == ("messages", True)
    if model == "retry:17":
        assert error.response.headers["retry-after"] == "17"


async def test_our_key_is_wrong(start):
    async with chatting(start, key="wrong") as chat:
        with pytest.raises(openai.InternalServerError) as caught:
            await chat.create()
        assert caught.value.code == "upstream_auth"


@pytest.mark.parametrize("model", ["malformed", "empty"])
async def test_a_reply_that_makes_no_sense(chat, model):
    with pytest.raises(openai.InternalServerError) as caught:
        await chat.create(model)
    assert caught.value.code == "upstream_error"


@pytest.mark.parametrize("model", ["cut", "clean-cut", "error-mid", "malformed"])
async def test_a_stream_that_breaks(chat, model):
    stream, heard = await chat.create(model, stream=True), []

    async def listen() -> None:
        async for chunk in stream:
            heard.append(chunk)  # noqa: PERF401  what came before the error is looked at

    with pytest.raises(openai.APIError):
        await listen()
    assert text_of(heard) == "Hello, "
    assert ends_of(heard) == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"logprobs": True}, "logprobs"),
        ({"messages": [*HELLO, result("nobody")]}, "messages[1].tool_call_id"),
        ({"messages": [said("a", arguments="{")]}, "messages[0].tool_calls[0].function.arguments"),
    ],
)
async def test_what_cannot_be_translated_is_told_and_not_sent(chat, fields, param):
    with pytest.raises(openai.BadRequestError) as caught:
        await chat.create(**fields)
    assert caught.value.param == param
    assert chat.double.requests == []


async def test_a_caller_who_leaves_takes_the_vendor_along(chat):
    stream = await chat.create("slow:0.05", stream=True)
    async for _ in stream:
        break
    await stream.close()
    await chat.double.until_gone()
    assert chat.double.requests[-1].gone
