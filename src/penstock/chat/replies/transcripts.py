"""Replies with transcripts: checked, with times in seconds, and sent whole or as events."""

from typing import Any, Final, cast

import msgspec

from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.flat_errors import read_error
from penstock.chat.replies.sound import EVENT_STREAM, write_event
from penstock.domain.chat import Ask, Usage, read_count
from penstock.vendor_api.lenient_json import MARK, UNREADABLE

JSON_FORMATS: Final = frozenset({"json", "verbose_json", "diarized_json"})
FORMATS: Final = ("json", "text", "srt", "verbose_json", "vtt", "diarized_json")
NANOSECONDS: Final = 1e9
LONGEST_SECONDS: Final = 1e6
"""Times beyond this are in nanoseconds, as one kind of self-hosted server has them."""


class _Reply(msgspec.Struct):
    """The fields of a transcript that are read."""

    text: str
    usage: Any = None
    segments: Any = None


_reply = msgspec.json.Decoder(_Reply)


def wants_json(ask: Ask) -> bool:
    """Return whether the caller asked for one of the JSON formats."""
    return (ask.field("response_format") or "json") in JSON_FORMATS


def transcript_type(ask: Ask) -> bytes:
    """Return the content type of a reply."""
    if ask.field("stream"):
        return EVENT_STREAM
    return b"application/json" if wants_json(ask) else b"text/plain; charset=utf-8"


def pass_transcript(body: bytes, ask: Ask) -> tuple[bytes, Usage | None, int]:
    """Return a vendor's transcript for the caller, its usage and its number of characters."""
    body = body.removeprefix(MARK)
    if not wants_json(ask):
        text = _read_plain(body)
        return _write_events(text, None) if ask.field("stream") else body, None, len(text)
    try:
        reply = _reply.decode(body)
    except UNREADABLE as error:
        if failure := read_error(body):
            raise Broken(failure) from None
        raise Malformed(str(error)) from None
    if ask.field("stream"):
        body = _write_events(reply.text, reply.usage)
    elif _is_in_nanoseconds(reply.segments):
        body = _write_seconds(body)
    return body, _read_usage(reply.usage), len(reply.text)


def _read_plain(body: bytes) -> str:
    if failure := body[:1] == b"{" and read_error(body):
        raise Broken(failure)
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Malformed(str(error)) from None


def _read_usage(usage: Any) -> Usage | None:
    """Return the tokens that a vendor counted; None if it counts seconds, or nothing."""
    match usage:
        case {"type": "tokens", "input_tokens": int(sound), "output_tokens": int(text)}:
            return Usage(read_count(sound), read_count(text))
        case _:
            return None


def _is_in_nanoseconds(segments: Any) -> bool:
    match segments:
        case [*_, {"end": int(end) | float(end)}]:
            return end > LONGEST_SECONDS
        case _:
            return False


def _write_seconds(body: bytes) -> bytes:
    found: dict[str, Any] = msgspec.json.decode(body)
    for segment in cast("list[Any]", found["segments"]):
        if isinstance(segment, dict):
            times = cast("dict[str, Any]", segment)
            for name in ("start", "end"):
                if isinstance(times.get(name), int | float):
                    times[name] = times[name] / NANOSECONDS
    return msgspec.json.encode(found)


def _write_events(text: str, usage: Any) -> bytes:
    done: dict[str, object] = {"type": "transcript.text.done", "text": text}
    done |= {"usage": usage} if usage is not None else {}
    return write_event({"type": "transcript.text.delta", "delta": text}) + write_event(done)
