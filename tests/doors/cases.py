"""The cases that every door passes with every vendor: each checks what the vendor got, and what the client heard."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import openai
import pytest
from doors.clients import ERRORS, DoorClient, Unfinished
from doors.neutral import Conversation, Heard, Message, Picture, Result, Text, Thought, Tool, said
from doors.upstream import Upstream, break_off
from doors.vendor_requests import READERS
from doubles.scripted.turns import INPUT_TOKENS, OUTPUT_TOKENS, Call, Refused, Request, Turn

GREETING = "Grüße, 世界! 👋 How can I help you today?"
CITY: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool("get_weather", "Tell the weather of a city.", CITY)
CLOCK = Tool("get_time", "Tell the time in a city.", CITY)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
ANSWER = {"city": "Zürich", "degrees": 21}
SCHEMA: Any = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
REASONING = "They ask for the weather … 🤔 so I look it up."


@dataclass(frozen=True, slots=True)
class Cell:
    """One door with one vendor."""

    door: str
    vendor: str
    client: DoorClient
    upstream: Upstream

    async def ask(self, conversation: Conversation, *, stream: bool) -> Heard:
        """Return the answer, after a check that the vendor got the whole conversation."""
        heard = await self.client.ask(self.vendor, conversation, stream=stream)
        self.check_received(conversation)
        return heard

    def check_received(self, conversation: Conversation) -> None:
        """Check the latest request by the rules of the vendor's dialect."""
        seen = self.upstream.last
        assert seen.dialect == self.vendor
        got = READERS[self.vendor](seen.body)
        if all(message.raw is None for message in conversation.messages):
            assert said(got) == said(conversation)
        assert got.system == conversation.system
        assert got.tools == conversation.tools
        assert got.max_tokens == conversation.max_tokens
        assert got.temperature == conversation.temperature
        assert got.schema == conversation.schema
        assert got.effort == conversation.effort


def user(*parts: Any) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def check_answer(heard: Heard, text: str, finish: str = "stop") -> None:
    assert (heard.text, heard.finish) == (text, finish)
    assert (heard.input_tokens, heard.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)


HELLO = Conversation((user("Hello, 世界 👋"),), system="Be brief.", temperature=0.5)


def say(text: str, **more: Any) -> Callable[[Request], Turn]:
    return lambda _request: Turn(text, **more)


async def plain(cell: Cell) -> None:
    cell.upstream.begin(say(GREETING))
    check_answer(await cell.ask(HELLO, stream=False), GREETING)
    assert cell.client.headers.get("x-penstock-left-out") is None


async def stream(cell: Cell) -> None:
    cell.upstream.begin(say(GREETING))
    heard = await cell.ask(HELLO, stream=True)
    check_answer(heard, GREETING)
    assert heard.pieces > 1
    assert cell.client.headers.get("x-penstock-left-out") is None


def call_then_tell(*calls: Call, **more: Any) -> Callable[[Request], Turn]:
    """Call tools, then repeat their results."""

    def play(request: Request) -> Turn:
        if not request.results:
            return Turn("Let me look.", calls, **more)
        return Turn(" ".join(result.text for result in request.results))

    return play


async def _loop(cell: Cell, *calls: Call, stream: bool, **more: Any) -> tuple[Heard, Heard]:
    """Let the vendor call tools, and return the answers before and after."""
    conversation = Conversation((user("What is the weather?"),), tools=(WEATHER, CLOCK), **more)
    first = await cell.ask(conversation, stream=stream)
    assert (first.text, first.finish) == ("Let me look.", "tool_calls")
    assert first.called == [(call.name, call.arguments) for call in calls]
    assert len({call.id for call in first.calls}) == len(calls)
    results = [Result(call.id, (Text(f"Result {index}"),)) for index, call in enumerate(first.calls)]
    results.reverse()  # no client is bound to an order
    asked = (*conversation.messages, Message("assistant", raw=first.raw), user(*results))
    last = await cell.ask(replace(conversation, messages=asked), stream=stream)
    got = READERS[cell.vendor](cell.upstream.last.body)
    told = [one for one in said(got) if one[1] != "thought"]
    assert told == [
        ("user", "text", "What is the weather?"),
        ("assistant", "text", "Let me look."),
        *(("assistant", "call", call.name, call.arguments) for call in calls),
        *(("result", index, False, ("tool", "text", f"Result {index}")) for index in range(len(calls))),
    ]
    assert all(f"Result {index}" in last.text for index in range(len(calls)))
    assert last.finish == "stop"
    return first, last


async def tools(cell: Cell) -> None:
    call = Call("get_weather", {"city": 'Zü"rich\n'})
    for streamed in (False, True):
        cell.upstream.begin(call_then_tell(call))
        await _loop(cell, call, stream=streamed)


async def parallel_tools(cell: Cell) -> None:
    calls = (
        Call("get_weather", {"city": "Zürich"}),
        Call("get_time", {"city": "東京 🗼"}),
        Call("get_weather", {"city": "Bern"}),
    )
    for streamed in (False, True):
        cell.upstream.begin(call_then_tell(*calls))
        await _loop(cell, *calls, stream=streamed)


async def image(cell: Cell) -> None:
    pictures = Picture(PIXEL), Picture(url="https://example.com/cat.png")
    conversation = Conversation((user("What is in these?", *pictures, "In a word."),))
    for streamed in (False, True):
        cell.upstream.begin(say("A cat."))
        check_answer(await cell.ask(conversation, stream=streamed), "A cat.")


async def structured_output(cell: Cell) -> None:
    text = json.dumps(ANSWER, ensure_ascii=False)
    for streamed in (False, True):
        cell.upstream.begin(say(text))
        heard = await cell.ask(Conversation((user("The weather?"),), schema=SCHEMA), stream=streamed)
        assert json.loads(heard.text) == ANSWER


async def reasoning(cell: Cell) -> None:
    """Reasoning is heard, and its seal comes back to the vendor in a loop of tools."""
    call = Call("get_weather", {"city": "Zürich"})
    for streamed in (False, True):
        cell.upstream.begin(call_then_tell(call, reasoning=REASONING))
        first, _ = await _loop(cell, call, stream=streamed, effort="high")
        assert first.reasoning == REASONING
        got = READERS[cell.vendor](cell.upstream.last.body)
        parts = [part for message in got.messages for part in message.parts]
        seals = [part.seal for part in parts if isinstance(part, Thought) and part.seal]
        expected = [] if cell.vendor == "chat" else [f"SEAL+1/{'x' * 64}=="]
        assert seals == expected, "the vendor's own reasoning did not come back to it"


async def error_before(cell: Cell) -> None:
    """A status of the vendor's is a status of ours, in the shape of the door."""

    def refuse(status: int) -> Callable[[Request], Turn]:
        def play(_request: Request) -> Turn:
            raise Refused("Not so.", status)

        return play

    for streamed in (False, True):
        cell.upstream.begin(refuse(400))
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as refused:
            await cell.client.ask(cell.vendor, HELLO, stream=streamed)
        check_shape(cell, refused.value, "invalid_request_error")
        assert "Not so." in str(refused.value)
        cell.upstream.begin(refuse(503))
        with pytest.raises((openai.InternalServerError, anthropic.InternalServerError)) as busy:
            await cell.client.ask(cell.vendor, HELLO, stream=streamed)
        check_shape(cell, busy.value, None)


def check_shape(cell: Cell, error: Any, kind: str | None) -> None:
    """Check the body of an error. OpenAI's SDK keeps only the inner object."""
    body = error.body
    assert error.request_id
    if cell.door == "messages":
        assert body["type"] == "error"
        assert body["request_id"]
        body = body["error"]
        assert body.keys() >= {"type", "message"}
    else:
        assert body.keys() >= {"type", "message", "param", "code"}
    assert body["message"]
    assert kind is None or body["type"] == kind


async def error_in_stream(cell: Cell) -> None:
    cell.upstream.begin(say(GREETING * 9), break_off(cell.vendor))
    await check_broken(cell)


async def cut_stream(cell: Cell) -> None:
    cell.upstream.begin(say(GREETING * 9, is_cut=True))
    await check_broken(cell)
    cell.upstream.begin(say(GREETING * 9), lambda events: events[: len(events) // 2])  # the connection ends properly
    await check_broken(cell)


async def check_broken(cell: Cell) -> None:
    """Check that the client does not take the answer for whole. It has begun, so there is no status any more."""
    with pytest.raises((*ERRORS, Unfinished)) as broken:
        await cell.client.ask(cell.vendor, HELLO, stream=True)
    assert getattr(broken.value, "status_code", 200) == 200
    assert len(cell.upstream.seen) == 1, "a stream that has begun is not tried again"


Case = Callable[[Cell], Awaitable[None]]
CASES: dict[str, Case] = {
    "plain": plain,
    "stream": stream,
    "tools": tools,
    "parallel tools": parallel_tools,
    "image": image,
    "structured output": structured_output,
    "reasoning": reasoning,
    "error before the stream": error_before,
    "error in the stream": error_in_stream,
    "cut stream": cut_stream,
}
