"""The built-in chat model through a gateway: its first layers in a real llama.cpp, asked by the SDK and without."""

import asyncio
import json
import shutil
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from chat_wire import events_of
from conftest import Server, running
from local_steps import CHAT, HELLO, MODEL, SMALL, TOOLS, answer, ask, asking, refuse
from plain import NO_TLS
from pydantic import BaseModel, Field
from small_gguf import link_small_weights

from penstock.domain.usage import ChatOutcome
from penstock.settings.tables import load
from penstock.store.queries.accounts import key_rows
from penstock.store.queries.billing import completion_rows

pytestmark = pytest.mark.asyncio(loop_scope="module")  # all share one gateway, and so one load of the weights


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> AsyncGenerator[Server]:
    folder = tmp_path_factory.mktemp("local")
    weights = link_small_weights(weights, folder / "weights")
    shutil.copy(empty_store, folder)
    config = folder / "penstock.toml"
    config.write_text(SMALL)
    async with running(load(config, {}, {"data": folder, "weights": weights})) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sdk(server: Server) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/llm",
        api_key=await server.new_key(),
        max_retries=0,
        _strict_response_validation=True,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS),
    ) as client:
        yield client


AMPLE = 400
"""Tokens for an answer whose grammar is finite: more than its letters and all the white space that a grammar allows."""


def saying(text: str) -> dict[str, Any]:
    """Return fields that have the model say exactly this text, as JSON, on any machine."""
    schema = {"type": "json_schema", "json_schema": {"name": "said", "schema": {"const": text}}}
    return {"response_format": schema, "max_tokens": AMPLE}


# -- answers


async def test_a_whole_answer_by_the_sdk(sdk):
    raw = await sdk.chat.completions.with_raw_response.create(**asking(**saying("hello")))
    reply = raw.parse()
    assert json.loads(reply.choices[0].message.content) == "hello"
    assert reply.choices[0].finish_reason == "stop"
    free = await sdk.chat.completions.create(**asking(temperature=0))
    assert free.choices[0].finish_reason in {"stop", "length"}
    assert free.usage.total_tokens == free.usage.prompt_tokens + free.usage.completion_tokens
    assert 0 < free.usage.completion_tokens <= 4
    assert (raw.headers["x-penstock-vendor"], raw.headers["x-penstock-cost"]) == ("local", "0.00")
    assert MODEL in {model.id async for model in sdk.models.list()}


async def test_a_streamed_answer_by_the_sdk(sdk):
    wish = asking(**saying("hello"), stream=True, stream_options={"include_usage": True})
    stream = await sdk.chat.completions.create(**wish)
    *chunks, last = [chunk async for chunk in stream]
    assert json.loads("".join(chunk.choices[0].delta.content or "" for chunk in chunks)) == "hello"
    assert [chunk.choices[0].delta.role for chunk in chunks].count("assistant") == 1
    assert [chunk.choices[0].finish_reason is None for chunk in chunks].count(False) == 1
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in (*chunks, last)}) == 1
    assert (last.choices, 0 < last.usage.completion_tokens <= AMPLE) == ([], True)
    plain = await sdk.chat.completions.create(**asking(stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in [chunk async for chunk in plain])


async def test_an_answer_is_recorded_and_free(server):
    other = await server.sign_in("somebody")
    told = [(await other.post(CHAT, json=asking(stream=stream))).headers["x-request-id"] for stream in (False, True)]
    database = server.gateway.database
    account_id = await database.write(key_rows.account_id, "somebody", time.time())
    async with asyncio.timeout(60):
        while len(found := await database.read(completion_rows.of_account, account_id, 9)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert sorted(record.request_id for record in found) == sorted(told)
    for record in found:
        assert (record.vendor, record.outcome, record.cost) == ("local", ChatOutcome.OK, 0)
        assert (record.usage.estimated, record.usage.prompt > 0, record.usage.completion > 0) == (False, True, True)


@pytest.mark.parametrize("stream", [False, True])
async def test_every_letter_comes_through(server, stream):
    text = "é😀\u2028漢\n\x00'\"\\"
    response = await ask(server, **saying(text), stream=stream)
    if stream:
        *chunks, done = events_of(response.content)
        said = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
        assert done == b"[DONE]"
    else:
        said = response.json()["choices"][0]["message"]["content"]
    assert json.loads(said) == text


class Person(BaseModel):
    """A schema with a longest answer: a name of any length need not end before `max_tokens`."""

    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)


async def test_an_answer_fits_its_schema(sdk):
    reply = await sdk.chat.completions.parse(
        model=MODEL, messages=HELLO, response_format=Person, max_tokens=AMPLE, temperature=0
    )
    assert isinstance(reply.choices[0].message.parsed, Person)


async def test_an_answer_cut_short_says_so_instead_of_fitting_its_schema(sdk):
    with pytest.raises(openai.LengthFinishReasonError):
        await sdk.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Person, max_tokens=2)


async def test_stop_ends_an_answer(server):
    for stop in ("d", ["d", "x"], ["", "d"]):
        choice = (await answer(server, **saying("abcdef"), stop=stop))["choices"][0]
        assert (choice["message"]["content"], choice["finish_reason"]) == ('"abc', "stop")


async def test_the_same_seed_says_the_same(server):
    fields = {"seed": 7, "temperature": 1.5, "max_tokens": 8}
    await answer(server, **fields)
    first, second = [(await answer(server, **fields))["choices"][0]["message"]["content"] for _ in range(2)]
    assert first == second


async def test_several_answers_and_their_likelihoods(sdk):
    reply = await sdk.chat.completions.create(**asking(**saying("ab"), n=2, logprobs=True, top_logprobs=2))
    assert sorted(choice.index for choice in reply.choices) == [0, 1]
    for choice in reply.choices:
        assert len(choice.logprobs.content) > 0
        assert len(choice.logprobs.content[0].top_logprobs) == 2
    stream = await sdk.chat.completions.create(**asking(n=2, stream=True, max_tokens=2))
    reasons = [choice for chunk in [c async for c in stream] for choice in chunk.choices if choice.finish_reason]
    assert sorted(choice.index for choice in reasons) == [0, 1]


# -- tools


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}], ids=str)
async def test_a_tool_that_must_be_called_is_called(sdk, choice):
    fields = asking(tools=TOOLS, tool_choice=choice, max_tokens=AMPLE, temperature=0)
    whole = (await sdk.chat.completions.create(**fields)).choices[0]
    async with sdk.chat.completions.stream(**fields) as stream:
        streamed = (await stream.get_final_completion()).choices[0]
    for found in (whole, streamed):
        (call,) = found.message.tool_calls
        assert (found.finish_reason, found.message.content, call.function.name) == ("tool_calls", None, "weather")
        assert json.loads(call.function.arguments)["city"] in {"Rome", "Oslo"}


async def test_a_loop_with_a_tool(sdk):
    """What the model says of its own accord is not known here: only that the reply says what it is."""
    short, ample = (asking(tools=TOOLS, max_tokens=tokens, temperature=0) for tokens in (40, AMPLE))
    free = await sdk.chat.completions.create(**short, tool_choice="auto")
    required = await sdk.chat.completions.create(**ample, tool_choice="required")
    asked = required.choices[0].message
    result = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "sunny"}
    messages = [*HELLO, asked.model_dump(), result]
    again = await sdk.chat.completions.create(**short | {"messages": messages})
    without = await sdk.chat.completions.create(**asking(messages=messages))
    for reply in (free, again):
        choice = reply.choices[0]
        assert bool(choice.message.tool_calls) is (choice.finish_reason == "tool_calls")
        assert not (choice.message.tool_calls and choice.message.content)
    assert without.choices[0].message.tool_calls is None
    assert again.usage.prompt_tokens > free.usage.prompt_tokens  # it has read the call and its result
    bare = await sdk.chat.completions.create(**asking())
    assert without.usage.prompt_tokens > bare.usage.prompt_tokens


async def test_schemas_with_definitions_of_one_name_are_told_apart(server):
    tools = [
        {
            "type": "function",
            "function": {
                "name": name,
                "parameters": {
                    "type": "object",
                    "properties": {"item": {"$ref": "#/$defs/Item"}},
                    "required": ["item"],
                    "$defs": {"Item": {"const": f"of {name}"}},
                },
            },
        }
        for name in ("one", "two")
    ]
    reply = await answer(server, tools=tools, tool_choice="required", max_tokens=AMPLE)
    function = reply["choices"][0]["message"]["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"item": f"of {function['name']}"}


# -- refusals


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("messages", [[{"role": "user", "content": "word " * 1200}], HELLO * 300], ids=["long", "many"])
async def test_a_conversation_that_is_too_long(sdk, messages, stream):
    with pytest.raises(openai.BadRequestError) as refusal:
        await sdk.chat.completions.create(**asking(messages=messages, stream=stream))
    assert (refusal.value.code, refusal.value.param) == ("context_length_exceeded", "messages")
    assert "This model's maximum context length is" in refusal.value.message


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [{"role": "user", "content": [PICTURE]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}]}, "tools[0].function.parameters"),
        ({"tools": TOOLS, "n": 2}, "n"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"n": 3}, None),  # more than it has slots
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "#/$defs/X"}}}}, None),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}}}, None),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "nothing"}}}]}, None),
        ({"grammar": "root ::= root"}, None),
        ({"top_k": "many"}, None),
        ({"reasoning_format": "many"}, None),
    ],
    ids=str,
)
async def test_what_it_cannot_do_is_the_callers_mistake(server, fields, param):
    for stream in (False, True):
        error = await refuse(server, **fields, stream=stream)
        assert (error["type"], error["param"]) == ("invalid_request_error", param)
        assert error["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": []}]},
        {"messages": [{"role": "developer", "content": "Be short."}, {"role": "tool", "content": None}]},
        {**saying("a"), "max_tokens": 2**63 - 1},
        {"max_completion_tokens": 1, "max_tokens": 2**40},
        {"seed": -(2**63), "logit_bias": {"5": -100}, "user": "me", "metadata": {"a": "b"}, "store": True},
        {"temperature": 0, "top_p": 0, "frequency_penalty": 2, "presence_penalty": -2},
        {"unheard_of": {"a": [1]}, "id_slot": 77, "samplers": 5, "chat_template_kwargs": "x"},
    ],
    ids=str,
)
async def test_strange_requests_are_answered(server, fields):
    reply = await answer(server, **fields)
    assert reply["choices"][0]["finish_reason"] in {"stop", "length"}
    assert reply["usage"]["completion_tokens"] <= 60
