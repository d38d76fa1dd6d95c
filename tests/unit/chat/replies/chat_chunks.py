"""Chunks of chat streams as good vendors write them, and how they are run through ours."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import strategies as some

from penstock.chat import request
from penstock.chat.replies.chunks.passthrough import PassthroughStream
from penstock.domain.chat import Ask, Blame, Fault

Json = dict[str, Any]
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_741_569_952, "model": "upstream"}
COUNTS = {
    "prompt_tokens": 19,
    "completion_tokens": 7,
    "total_tokens": 26,
    "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
DONE = b"data: [DONE]\n\n"


def make_ask(*, include_usage: bool = False) -> Ask:
    options = {"stream_options": {"include_usage": True}} if include_usage else {}
    body = {"model": "fast-chat", "messages": [{"role": "user", "content": "Hello"}], "stream": True, **options}
    return request.read(json.dumps(body).encode())


def make_stream(*, include_usage: bool = False) -> PassthroughStream:
    return PassthroughStream(make_ask(include_usage=include_usage), "chatcmpl-ours", 1234)


def choice_of(delta: Any, finish: str | None = None, index: int = 0) -> Json:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}


def chunk_of(*choices: Json, **fields: Any) -> Json:
    return {**HEAD, "choices": list(choices), **fields}


def text_of(content: str, index: int = 0) -> Json:
    return chunk_of(choice_of({"content": content}, index=index))


END = chunk_of(choice_of({}, "stop"))
USED = chunk_of(usage=COUNTS)


def write(*chunks: Any) -> bytes:
    return b"".join(
        b"data: %b\n\n" % (chunk if isinstance(chunk, bytes) else json.dumps(chunk, separators=(",", ":")).encode())
        for chunk in chunks
    )


def run(stream: PassthroughStream, text: bytes, places: list[int] | None = None) -> bytes:
    """All that comes out, the end included."""
    ends = sorted({place % (len(text) + 1) for place in places or []} | {0, len(text)})
    out = b"".join(stream.feed(text[start:end]) for start, end in pairwise(ends))
    return out if stream.broken else out + stream.end()


def read(out: bytes) -> list[Json]:
    """The chunks in the output, which must be framed exactly."""
    *events, rest = out.split(b"\n\n")
    assert rest == b""
    assert all(event.startswith(b"data: {") and b"\n" not in event and b"\r" not in event for event in events), out
    return [json.loads(event[6:]) for event in events]


def read_whole(out: bytes) -> list[Json]:
    assert out.endswith(DONE)
    assert out.count(DONE) == 1
    return read(out.removesuffix(DONE))


texts = some.text(some.characters(exclude_categories=["Cs"]), max_size=8)
extras = some.dictionaries(some.sampled_from(["service_tier", "obfuscation", "x", "usage_note"]), texts, max_size=2)
call = some.builds(lambda text: {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}, texts)
deltas = some.one_of(
    some.builds(lambda text: {"content": text}, texts),
    some.builds(lambda text: {"reasoning_content": text}, texts),
    some.builds(lambda text: {"content": None, "refusal": text}, texts),
    some.just({"role": "assistant", "content": "", "refusal": None}),
    call,
)


@some.composite
def good_chunks(draw: some.DrawFn) -> list[Json]:
    """A stream of one to three choices, every one of which has its end."""
    count = draw(some.integers(1, 3))
    said = draw(some.lists(some.tuples(some.integers(0, count - 1), deltas, extras), max_size=12))
    opened: set[int] = set()
    for index, delta, _ in said:
        for called in delta.get("tool_calls", ()):
            if index not in opened:  # as OpenAI begins a call
                opened.add(index)
                called |= {"id": f"call_{index}", "type": "function"}
                called["function"] |= {"name": "look"}
    chunks = [chunk_of(choice_of(delta, index=index), **more) for index, delta, more in said]
    ends = [chunk_of(choice_of({}, draw(some.sampled_from(["stop", "length"])), index)) for index in range(count)]
    return chunks + ends


def characters_in(chunks: list[Json]) -> int:
    said = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    plain = sum(len(delta.get(name) or "") for delta in said for name in ("content", "reasoning_content", "refusal"))
    called = [call["function"]["arguments"] for delta in said for call in delta.get("tool_calls", ())]
    return plain + sum(map(len, called))


def read_fault(reply: Any) -> Fault:
    return Fault(Blame.BUSY, json.loads(reply.body)["error"]["message"])
