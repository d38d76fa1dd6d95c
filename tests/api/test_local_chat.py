"""The built-in chat model through a gateway: a real llama.cpp with real weights, and what becomes of it in trouble."""

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import pytest_asyncio
from chat_wire import events_of
from conftest import Server, Start, running
from pydantic import BaseModel

from penstock.settings import load
from penstock.store import completion_rows, key_rows
from penstock.usage_records import Outcome

MODEL = "smollm2-135m"
HELLO: list[Any] = [{"role": "user", "content": "Say hello."}]
LONG = {"max_tokens": 4000, "ignore_eos": True, "stream": True}
"""More than anyone waits for."""
CITY = {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": CITY}}
]
SMALL = "[vendors.local]\ncontext = 1024\n"
CHAT = "/llm/chat/completions"
shared = pytest.mark.asyncio(loop_scope="module")
"""These tests share one gateway, and so one load of the weights."""


# -- steps


def children() -> set[int]:
    """The chat servers which this process has started and which are not gone."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            parent_id = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent_id == os.getpid() and b"penstock.engines.llama" in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
    return found


def ticks(child: int) -> int:
    """How long it has been working."""
    return sum(map(int, Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))


async def until(happened: Callable[[], object], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not happened():  # noqa: ASYNC110  a process tells nobody
            await asyncio.sleep(0.01)


def asking(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": HELLO, "max_tokens": 4, **fields}


async def ask(server: Server, **fields: Any) -> httpx.Response:
    return await server.client.post(CHAT, json=asking(**fields))


async def answer(server: Server, **fields: Any) -> Any:
    response = await ask(server, **fields)
    assert response.status_code == 200, response.text
    return response.json()


async def refuse(server: Server, **fields: Any) -> Any:
    response = await ask(server, **fields)
    assert response.status_code == 400, response.text
    return response.json()["error"]


def saying(text: str) -> dict[str, Any]:
    """What has it say exactly this, whatever it would say itself."""
    schema = {"type": "json_schema", "json_schema": {"name": "said", "schema": {"const": text}}}
    return {"response_format": schema, "max_tokens": 60}


class Streaming:
    """A stream of raw events, begun."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> str:
        """The next line that tells something; empty at the end."""
        async for line in self._lines:
            if line.startswith("data: "):
                return line.removeprefix("data: ")
        return ""

    async def rest(self) -> list[str]:
        found: list[str] = []
        with suppress(httpx.RemoteProtocolError):  # cut off on purpose: nobody may take it for whole
            while line := await self.next():
                found.append(line)
        return found


async def begin(server: Server, **fields: Any) -> Streaming:
    """A stream that has said its first word; `response.aclose` leaves it."""
    request = server.client.build_request("POST", CHAT, json=asking(**{**LONG, **fields}))
    streaming = Streaming(await server.client.send(request, stream=True))
    assert streaming.response.status_code == 200, await streaming.response.aread()
    await streaming.next()
    return streaming


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_behind() -> Iterator[None]:
    yield
    assert not children()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> AsyncGenerator[Server]:
    folder = tmp_path_factory.mktemp("local")
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
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    ) as client:
        yield client


# -- answers


@shared
async def test_a_whole_answer_by_the_sdk(sdk):
    raw = await sdk.chat.completions.with_raw_response.create(**asking())
    reply = raw.parse()
    assert reply.choices[0].message.content
    assert reply.choices[0].finish_reason in {"stop", "length"}
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert 0 < reply.usage.completion_tokens <= 4
    assert (raw.headers["x-penstock-vendor"], raw.headers["x-penstock-cost"]) == ("local", "0.00")
    assert MODEL in {model.id async for model in sdk.models.list()}


@shared
async def test_a_streamed_answer_by_the_sdk(sdk):
    stream = await sdk.chat.completions.create(**asking(stream=True, stream_options={"include_usage": True}))
    *chunks, last = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert [chunk.choices[0].delta.role for chunk in chunks].count("assistant") == 1
    assert [chunk.choices[0].finish_reason is None for chunk in chunks].count(False) == 1
    assert chunks[-1].choices[0].finish_reason in {"stop", "length"}
    assert len({chunk.id for chunk in (*chunks, last)}) == 1
    assert (last.choices, last.usage.completion_tokens <= 4) == ([], True)
    plain = await sdk.chat.completions.create(**asking(stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in [chunk async for chunk in plain])


@shared
async def test_an_answer_is_recorded_and_free(server):
    other = await server.sign_in("somebody")
    told = [(await other.post(CHAT, json=asking(stream=stream))).headers["x-request-id"] for stream in (False, True)]
    database = server.gateway.database
    account_id = await database.write(key_rows.account_id, "somebody", time.time())
    async with asyncio.timeout(10):
        while len(found := await database.read(completion_rows.of_account, account_id, 9)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert sorted(record.request_id for record in found) == sorted(told)
    for record in found:
        assert (record.vendor, record.outcome, record.cost) == ("local", Outcome.OK, 0)
        assert (record.usage.estimated, record.usage.prompt > 0, record.usage.completion > 0) == (False, True, True)


@shared
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
    name: str
    age: int


@shared
async def test_an_answer_fits_its_schema(sdk):
    reply = await sdk.chat.completions.parse(
        model=MODEL, messages=HELLO, response_format=Person, max_tokens=60, temperature=0
    )
    assert isinstance(reply.choices[0].message.parsed, Person)


@shared
async def test_stop_ends_an_answer(server):
    for stop in ("d", ["d", "x"], ["", "d"]):
        choice = (await answer(server, **saying("abcdef"), stop=stop))["choices"][0]
        assert (choice["message"]["content"], choice["finish_reason"]) == ('"abc', "stop")


@shared
async def test_the_same_seed_says_the_same(server):
    fields = {"seed": 7, "temperature": 1.5, "max_tokens": 8}
    await answer(server, **fields)
    first, second = [(await answer(server, **fields))["choices"][0]["message"]["content"] for _ in range(2)]
    assert first == second


@shared
async def test_several_answers_and_their_likelihoods(sdk):
    reply = await sdk.chat.completions.create(**asking(n=2, logprobs=True, top_logprobs=2, max_tokens=2))
    assert sorted(choice.index for choice in reply.choices) == [0, 1]
    for choice in reply.choices:
        assert 0 < len(choice.logprobs.content) <= 2
        assert len(choice.logprobs.content[0].top_logprobs) == 2
    stream = await sdk.chat.completions.create(**asking(n=2, stream=True, max_tokens=2))
    reasons = [choice for chunk in [c async for c in stream] for choice in chunk.choices if choice.finish_reason]
    assert sorted(choice.index for choice in reasons) == [0, 1]


# -- tools


@shared
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}], ids=str)
async def test_a_tool_that_must_be_called_is_called(sdk, choice):
    fields = asking(tools=TOOLS, tool_choice=choice, max_tokens=60, temperature=0)
    whole = (await sdk.chat.completions.create(**fields)).choices[0]
    async with sdk.chat.completions.stream(**fields) as stream:
        streamed = (await stream.get_final_completion()).choices[0]
    for found in (whole, streamed):
        (call,) = found.message.tool_calls
        assert (found.finish_reason, found.message.content, call.function.name) == ("tool_calls", None, "weather")
        assert json.loads(call.function.arguments)["city"] in {"Rome", "Oslo"}


@shared
async def test_a_loop_with_a_tool(sdk):
    fields = asking(tools=TOOLS, max_tokens=60, temperature=0)
    free = (await sdk.chat.completions.create(**fields, tool_choice="auto")).choices[0]
    assert bool(free.message.tool_calls) is (free.finish_reason == "tool_calls")
    assert bool(free.message.tool_calls) is not bool(free.message.content)
    asked = (await sdk.chat.completions.create(**fields, tool_choice="required")).choices[0].message
    result = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "sunny"}
    fields["messages"] = [*HELLO, asked.model_dump(), result]
    for choice in ("none", "auto"):
        reply = await sdk.chat.completions.create(**fields, tool_choice=choice)
        assert reply.choices[0].message.content or choice == "auto"
        assert reply.usage.prompt_tokens > 20
    without = await sdk.chat.completions.create(**asking(messages=fields["messages"]))
    assert without.choices[0].message.content


@shared
async def test_schemas_with_definitions_of_one_name_are_told_apart(server):
    def named(value: str) -> Any:
        schema = {"$ref": "#/$defs/Item", "$defs": {"Item": {"const": value}}}
        parameters = {"type": "object", "properties": {"item": {"$ref": "#/$defs/Item"}}, "required": ["item"]}
        return parameters | {"$defs": schema["$defs"]}

    tools = [{"type": "function", "function": {"name": name, "parameters": named(name)}} for name in ("one", "two")]
    for name in ("one", "two"):
        choice = {"type": "function", "function": {"name": name}}
        reply = await answer(server, tools=tools, tool_choice=choice, max_tokens=60)
        (call,) = reply["choices"][0]["message"]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"item": name}


# -- refusals


@shared
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("messages", [[{"role": "user", "content": "word " * 1200}], HELLO * 300], ids=["long", "many"])
async def test_a_conversation_that_is_too_long(sdk, messages, stream):
    with pytest.raises(openai.BadRequestError) as refusal:
        await sdk.chat.completions.create(**asking(messages=messages, stream=stream))
    assert (refusal.value.code, refusal.value.param) == ("context_length_exceeded", "messages")
    assert "This model's maximum context length is" in refusal.value.message


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@shared
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
    ],
    ids=str,
)
async def test_what_it_cannot_do_is_the_callers_mistake(server, fields, param):
    for stream in (False, True):
        error = await refuse(server, **fields, stream=stream)
        assert (error["type"], error["param"]) == ("invalid_request_error", param)
        assert error["message"]


@shared
@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": []}]},
        {"messages": [{"role": "developer", "content": "Be short."}, {"role": "tool", "content": None}]},
        {"max_tokens": 2**63 - 1, **saying("a")},
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


# -- trouble


async def test_beyond_what_may_wait_callers_are_told_when_to_come_back(start: Start):
    server = await start(SMALL + "max_concurrent = 2\n")
    begun = [await begin(server, max_tokens=60) for _ in range(2)]
    for refused in [await ask(server), await ask(server, stream=True)]:
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert int(refused.headers["retry-after"]) >= 1
    rests = await asyncio.gather(*(streaming.rest() for streaming in begun))
    assert [rest[-1] for rest in rests] == ["[DONE]", "[DONE]"]
    assert (await ask(server)).status_code == 200


async def test_one_that_dies_takes_no_answer_for_whole_and_comes_back(start: Start):
    server = await start(SMALL)
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
    await until(partial(_has_worked, child, ticks(child) + 10))
    os.kill(child, signal.SIGKILL)
    lost = await whole
    assert (lost.status_code, lost.json()["error"]["type"]) == (502, "server_error")
    assert (await ask(server, tools=TOOLS, tool_choice="required", max_tokens=60)).status_code == 200


def _has_worked(child: int, enough: int) -> bool:
    return ticks(child) >= enough


@pytest.mark.parametrize("stream", [False, True])
async def test_nobody_works_for_a_caller_who_left(start: Start, stream: bool):
    server = await start("[vendors.local]\nslots = 1\nmax_concurrent = 1\n")
    await answer(server)
    (child,) = children()
    if stream:
        await (await begin(server)).response.aclose()
    else:
        waiting = asyncio.create_task(ask(server, **{**LONG, "stream": False}))
        await until(partial(_has_worked, child, ticks(child) + 10))
        waiting.cancel()
    async with asyncio.timeout(20):  # its only slot would be taken for minutes
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


async def test_what_is_no_model_hurts_nobody(start: Start, tmp_path: Path):
    (tmp_path / "garbage.gguf").write_bytes(b"GGUF" + b"\x07" * 5000)
    models = "".join(f'[[models]]\nid = "{name}"\nvendor = "{name}"\n' for name in ("broken", "local"))
    server = await start(f'[vendors.broken]\ntype = "local"\ngguf = "{tmp_path}/garbage.gguf"\n{SMALL}{models}')
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


async def test_a_change_of_settings_lets_streams_finish(start: Start):
    server = await start(SMALL)
    streaming = await begin(server, max_tokens=40)
    (old,) = children()
    await reload(server, "[vendors.local]\ncontext = 512\n")
    assert (await ask(server)).status_code == 200
    assert len(children()) == 2
    assert (await streaming.rest())[-1] == "[DONE]"
    await until(lambda: old not in children())
    assert len(children()) == 1
    too_long = [{"role": "user", "content": "word " * 600}]
    assert (await refuse(server, messages=too_long))["code"] == "context_length_exceeded"


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
    await reload(server, SMALL + "max_concurrent = 1\n")
    assert (await ask(server)).status_code == 200  # as long as one were counted, there would be no place


async def test_all_who_wait_for_the_start_leave_everyone_else_alone(start: Start):
    server = await start(SMALL)
    waiting = [asyncio.create_task(ask(server, max_tokens=1)) for _ in range(20)]
    await until(children)
    waiting[0].cancel()  # who began it may leave
    async with asyncio.timeout(5):
        await asyncio.gather(*(asyncio.to_thread(int) for _ in range(3)))
    assert server.gateway.offers.chat_vendors["local"].server.address() is None, "it was quicker than this test"
    assert {response.status_code for response in await asyncio.gather(*waiting[1:])} == {200}
    assert len(children()) == 1
