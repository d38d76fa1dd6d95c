"""Chat as the official Python SDK sees it, with every reply validated strictly."""

import asyncio
import base64
import json
from typing import Any

import openai
import pytest
from chat_steps import HELLO, chatting
from openai_double import KEY
from openai_replies import GREETING, PROMPT_TOKENS, REFUSAL, pieces_of
from pydantic import BaseModel, Field

WORDS = len(pieces_of(GREETING))


@pytest.fixture
async def chat(start):
    async with chatting(start) as chat:
        yield chat


def text_of(chunks: list[Any], index: int = 0) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices if choice.index == index)


def ends_of(chunks: list[Any]) -> list[str]:
    return [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]


# -- answers


async def test_a_completion(chat):
    completion = await chat.create()
    choice = completion.choices[0]
    assert (choice.message.role, choice.message.content, choice.message.refusal) == ("assistant", GREETING, None)
    assert (choice.index, choice.finish_reason, choice.logprobs) == (0, "stop", None)
    assert completion.object == "chat.completion"
    assert completion.id.startswith("chatcmpl-")
    assert "tool_calls" not in choice.message.to_dict()
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (PROMPT_TOKENS, WORDS)
    assert usage.total_tokens == PROMPT_TOKENS + WORDS
    assert usage.prompt_tokens_details.cached_tokens == 3


async def test_the_blocking_client(chat):
    def talk() -> tuple[Any, list[Any], str]:
        with chat.sync_client() as client:
            whole = client.chat.completions.create(model="plain", messages=HELLO)
            chunks = list(client.chat.completions.create(model="plain", messages=HELLO, stream=True))
            with pytest.raises(openai.NotFoundError) as caught:
                client.chat.completions.create(model="nobody", messages=HELLO)
            with client.chat.completions.stream(model="plain", messages=HELLO) as stream:
                final = stream.get_final_completion()
            return whole, [*chunks], f"{caught.value.code} {final.choices[0].message.content}"

    whole, chunks, rest = await asyncio.to_thread(talk)
    assert whole.choices[0].message.content == text_of(chunks) == GREETING
    assert rest == f"model_not_found {GREETING}"


async def test_a_stream_without_usage(chat):
    chunks = await chat.collect()
    assert text_of(chunks) == GREETING
    assert ends_of(chunks) == ["stop"]
    assert chunks[0].choices[0].delta.to_dict() == {"role": "assistant", "content": "", "refusal": None}
    assert chunks[-1].choices[0].delta.to_dict() == {}
    assert len({(chunk.id, chunk.created, chunk.object) for chunk in chunks}) == 1
    assert all(chunk.choices for chunk in chunks)
    assert not any("usage" in chunk.to_dict() for chunk in chunks)
    assert chat.double.requests[-1].body["stream_options"] == {"include_usage": True}  # for our own books


@pytest.mark.parametrize("model", ["plain", "no-usage", "vllm", "ollama", "llamacpp"])
async def test_a_stream_with_usage(chat, model):
    chunks = await chat.collect(model, stream_options={"include_usage": True})
    *rest, last = chunks
    assert last.choices == []
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens > 0
    assert all(chunk.choices and chunk.to_dict()["usage"] is None for chunk in rest)
    assert text_of(chunks) == GREETING
    assert ends_of(chunks) == ["stop"]


@pytest.mark.parametrize("model", ["no-usage", "vllm", "ollama", "llamacpp"])
async def test_other_dialects_without_usage(chat, model):
    chunks = await chat.collect(model)
    assert all(chunk.choices and "usage" not in chunk.to_dict() for chunk in chunks)
    assert all("finish_reason" in chunk.choices[0].to_dict() for chunk in chunks)
    assert (text_of(chunks), ends_of(chunks)) == (GREETING, ["stop"])
    whole = (await chat.create(model)).choices[0]
    assert (whole.message.content, whole.finish_reason) == (GREETING, "stop")
    assert "tool_calls" not in whole.message.to_dict()


@pytest.mark.parametrize("model", ["reasoning", "vllm", "ollama", "llamacpp"])
async def test_reasoning_has_one_name(chat, model):
    thought = "The user greets me. I greet back."
    assert (await chat.create(model)).choices[0].message.reasoning_content == thought
    deltas = [chunk.choices[0].delta.to_dict() for chunk in await chat.collect(model)]
    assert "".join(str(delta.get("reasoning_content", "")) for delta in deltas) == thought


async def test_several_choices(chat):
    completion = await chat.create(n=2)
    assert [(choice.index, choice.message.content) for choice in completion.choices] == [(0, GREETING), (1, GREETING)]
    assert completion.usage.completion_tokens == 2 * WORDS
    chunks = await chat.collect(n=3)
    assert [text_of(chunks, index) for index in range(3)] == [GREETING] * 3
    assert ends_of(chunks) == ["stop"] * 3


async def test_logprobs(chat):
    spoken = (await chat.create(logprobs=True, top_logprobs=2)).choices[0].logprobs.content
    assert "".join(token.token for token in spoken) == GREETING
    assert bytes(spoken[-1].bytes).decode() == " 🙂"
    assert spoken[0].top_logprobs[1].bytes is None
    first, *rest = await chat.collect(logprobs=True)
    assert first.choices[0].logprobs.content == []
    assert "".join(t.token for c in rest if c.choices[0].logprobs for t in c.choices[0].logprobs.content) == GREETING
    assert all(chunk.choices[0].to_dict()["logprobs"] is None for chunk in await chat.collect())


# -- tools and structured output


class GetWeather(BaseModel):
    """Tell the weather of a city."""

    city: str
    days: int


class Step(BaseModel):
    explanation: str
    sure: bool


class Solution(BaseModel):
    steps: list[Step] = Field(description="in order")
    best: Step
    answer: int


TOOLS = [openai.pydantic_function_tool(GetWeather)]
ARGUMENTS = {"city": "Paris", "days": 7}


@pytest.mark.parametrize(("model", "count"), [("tools", 1), ("parallel-tools", 2)])
async def test_tools(chat, model, count):
    choice = (await chat.create(model, tools=TOOLS)).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    calls = choice.message.tool_calls
    assert [(call.type, call.function.name) for call in calls] == [("function", "GetWeather")] * count
    assert all(json.loads(call.function.arguments) == ARGUMENTS for call in calls)
    # The turn goes back exactly as the SDK holds it, with all its nulls.
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sun"} for call in calls]
    turns = [*HELLO, choice.message.model_dump(), *results]
    final = (await chat.create(model, tools=TOOLS, messages=turns)).choices[0]
    assert final.message.content == "The tools said: " + "; ".join(["sun"] * count)
    assert final.finish_reason == "stop"


@pytest.mark.parametrize(("model", "count"), [("tools", 1), ("parallel-tools", 2)])
async def test_tools_in_a_stream(chat, model, count):
    chunks = await chat.collect(model, tools=TOOLS)
    assert ends_of(chunks) == ["tool_calls"]
    pieces = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert [piece.index for piece in pieces if piece.id] == list(range(count))
    for index in range(count):
        arguments = "".join(piece.function.arguments for piece in pieces if piece.index == index)
        assert json.loads(arguments) == ARGUMENTS


@pytest.mark.parametrize(("model", "count"), [("tools", 1), ("parallel-tools", 2)])
async def test_the_stream_helper_with_tools(chat, model, count):
    async with chat.client.chat.completions.stream(model=model, messages=HELLO, tools=TOOLS) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_completion()
    done = [event.parsed_arguments for event in events if event.type == "tool_calls.function.arguments.done"]
    assert done == [GetWeather(**ARGUMENTS)] * count
    assert [call.function.parsed_arguments for call in final.choices[0].message.tool_calls] == done
    assert final.choices[0].finish_reason == "tool_calls"


async def test_structured_output(chat):
    answers = chat.client.chat.completions
    parsed = (await answers.parse(model="json", messages=HELLO, response_format=Solution)).choices[0].message.parsed
    step = Step(explanation="Paris", sure=True)
    assert parsed == Solution(steps=[step], best=step, answer=7)
    async with answers.stream(model="json", messages=HELLO, response_format=Solution) as stream:
        assert (await stream.get_final_completion()).choices[0].message.parsed == parsed
    schema = chat.double.requests[-1].body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert "$defs" in schema["schema"]


async def test_a_refusal(chat):
    answers = chat.client.chat.completions
    message = (await answers.parse(model="refusal", messages=HELLO, response_format=Solution)).choices[0].message
    assert (message.content, message.refusal, message.parsed) == (None, REFUSAL, None)
    chunks = await chat.collect("refusal")
    assert chunks[0].choices[0].delta.to_dict() == {"role": "assistant", "content": None, "refusal": ""}
    assert "".join(chunk.choices[0].delta.refusal or "" for chunk in chunks) == REFUSAL
    assert ends_of(chunks) == ["stop"]


async def test_an_answer_that_was_cut_short_is_told(chat):
    answers = chat.client.chat.completions
    for model, error in [
        ("length", openai.LengthFinishReasonError),
        ("filter", openai.ContentFilterFinishReasonError),
    ]:
        with pytest.raises(error):
            await answers.parse(model=model, messages=HELLO, response_format=Solution)
    assert ends_of(await chat.collect("length")) == ["length"]


# -- what goes in


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


async def test_images(chat):
    url = "https://images.example.com/cat.png"
    data = "data:image/png;base64," + base64.b64encode(bytes(1_600_000)).decode()
    content = [{"type": "text", "text": "What is this?"}, image(url), image(data)]
    completion = await chat.create("image", messages=[{"role": "user", "content": content}])
    assert completion.choices[0].message.content == f"I see 2 images of {len(url) + len(data)} characters."
    assert len(data) > 2 << 20
    chunks = await chat.collect("image", messages=[{"role": "user", "content": content}])
    assert f" {len(url) + len(data)} " in text_of(chunks)


async def test_parts_for_every_role(chat):
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        *({"role": role, "content": parts} for role in ("developer", "system", "user", "assistant")),
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "audio": None, "annotations": []},
        {"role": "tool", "tool_call_id": "call_1", "content": parts},
        {"role": "user", "name": "Ada", "content": parts},
    ]
    assert (await chat.create("echo", messages=messages)).choices[0].message.content == "one two"
    assert chat.double.requests[-1].body["messages"] == messages


NULLABLE = (
    *("audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens"),
    *("max_tokens", "metadata", "modalities", "moderation", "n", "parallel_tool_calls", "prediction"),
    *("presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort"),
    *("response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options"),
    *("temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options"),
)


async def test_null_is_as_good_as_absent(chat):
    completion = await chat.create(extra_body=dict.fromkeys(NULLABLE))
    assert completion.choices[0].message.content == GREETING
    assert chat.double.requests[-1].body.keys() == {"model", "messages"}


async def test_whole_numbers_may_be_written_as_decimals(chat):
    given = {"n": 1.0, "max_tokens": 5.0, "seed": 7.0, "top_logprobs": 0.0, "temperature": 1}
    assert (await chat.create(extra_body=given)).choices[0].message.content == GREETING
    raw = chat.double.requests[-1].raw
    assert all(text in raw for text in (b'"n":1,', b'"max_tokens":5,', b'"seed":7,'))


async def test_what_the_gateway_does_not_know_reaches_the_upstream_untouched(chat):
    extra = {
        "top_k": 40,
        "min_p": 0.1,
        "chat_template_kwargs": {"enable_thinking": False, "deep": [1, {"empty": None}]},
        "enormous": 123456789012345678901234567890,
        "stop": ["a", "b"],
        "logit_bias": {"50256": -100},
        "emoji 🙂": "\u2028",
    }
    await chat.create(extra_body=extra)
    body = chat.double.requests[-1].body
    assert {name: body.get(name) for name in extra} == extra
    assert b"123456789012345678901234567890" in chat.double.requests[-1].raw
    await chat.collect(stream_options={"include_usage": False, "include_obfuscation": False, "new": 1})
    asked = {"include_usage": True, "include_obfuscation": False, "new": 1}
    assert chat.double.requests[-1].body["stream_options"] == asked


@pytest.mark.parametrize("base", ["/llm", "/llm/", "/llm/v1", "/llm/v1/", "/v1", "/v1/", "//llm", "/llm//", "//v1//"])
async def test_other_ways_of_writing_the_address(chat, base):
    client = await chat.sign_in(base_url=chat.server.url + base)
    completion = await client.chat.completions.create(model="org/model-x", messages=HELLO)
    assert completion.choices[0].message.content == GREETING
    assert (await client.models.retrieve("org/model-x")).id == "org/model-x"
    assert "plain" in [model.id async for model in client.models.list()]


async def test_models(chat):
    page = await chat.client.models.list()
    listed = {model.id: model for model in page.data}
    assert page.object == "list"
    assert {"plain", "org/model-x", "slow:0.05"} <= listed.keys()
    assert all(model.object == "model" and model.created > 0 and model.owned_by for model in listed.values())
    assert await chat.client.models.retrieve("plain") == listed["plain"]
    with pytest.raises(openai.NotFoundError) as caught:
        await chat.client.models.retrieve("org/nobody")
    assert caught.value.code == "model_not_found"


async def test_models_that_a_key_may_not_use_are_not_listed(chat):
    client = await chat.sign_in(api_key=await chat.server.new_key(models=frozenset({"plain"})))
    assert [model.id for model in (await client.models.list()).data] == ["plain"]


# -- keys, and many at once


async def test_the_word_bearer_in_small_letters(chat):
    client = await chat.sign_in(default_headers={"Authorization": f"bearer {chat.key}"})
    assert (await client.chat.completions.create(model="plain", messages=HELLO)).choices


async def test_each_side_keeps_its_key(chat):
    raw = await chat.client.chat.completions.with_raw_response.create(
        model="plain", messages=HELLO, extra_headers={"OpenAI-Organization": "org-caller", "x-secret": "s3cret"}
    )
    seen = chat.double.requests[-1]
    sent = f"{dict(seen.headers)} {seen.raw.decode()}"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert all(text not in sent for text in (chat.key, chat.key.rsplit("_", 1)[1], "s3cret", "org-caller", "stainless"))
    received = f"{raw.headers} {raw.text}"
    assert all(text not in received for text in (KEY, "org-upstream", "req_upstream", "x-ratelimit-limit-requests"))


@pytest.mark.parametrize("stream", [False, True])
async def test_the_upstreams_key_is_not_told_even_if_the_upstream_tells_it(chat, stream):
    with pytest.raises(openai.InternalServerError) as caught:
        await chat.create("401", stream=stream)
    assert (caught.value.status_code, caught.value.code) == (502, "upstream_auth")
    told = f"{caught.value.response.text} {caught.value.response.headers}"
    assert KEY not in told
    assert KEY[:11] not in told


async def test_fifty_streams_at_once(chat):
    async def talk(number: int) -> None:
        said = f"{number} " * 50 + "🙂"
        chunks = await chat.collect("echo", messages=[{"role": "user", "content": said}])
        assert text_of(chunks) == said
        assert ends_of(chunks) == ["stop"]

    await asyncio.gather(*(talk(number) for number in range(50)))
    await chat.double.until(lambda double: not double.open)
    assert not chat.double.gone
