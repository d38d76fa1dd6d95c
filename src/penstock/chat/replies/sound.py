"""Replies with speech: checked against the format asked for, and sent as bytes or as events."""

from base64 import b64encode
from typing import Final

import msgspec

from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.flat_errors import read_error
from penstock.domain.chat import Ask, Usage

CONTENT_TYPES: Final = {
    "mp3": b"audio/mpeg",
    "opus": b"audio/ogg",
    "aac": b"audio/aac",
    "flac": b"audio/flac",
    "wav": b"audio/wav",
    "pcm": b"audio/pcm",
}
FORMATS: Final = tuple(CONTENT_TYPES)
EVENT_BYTES: Final = 48 << 10
"""Bytes of sound in one event."""
EVENT_STREAM: Final = b"text/event-stream; charset=utf-8"
UNKNOWN_LENGTHS: Final = (b"\0\0\0\0", b"\xff\xff\xff\xff")
_encode = msgspec.json.Encoder().encode


def wants_events(ask: Ask) -> bool:
    """Return whether the caller wants events instead of bytes."""
    return ask.field("stream_format") == "sse"


def sniff_sound(body: bytes) -> str | None:
    """Return the format of a sound by its first bytes; None for raw samples and unknown ones."""
    if body.startswith(b"RIFF"):
        return "wav"
    if body.startswith(b"OggS"):
        return "opus"
    if body.startswith(b"fLaC"):
        return "flac"
    if body.startswith(b"ID3"):
        return "mp3"
    if len(body) > 1 and body[0] == 0xFF and body[1] & 0xE0 == 0xE0:
        return "aac" if body[1] & 0x06 == 0 else "mp3"
    return None


def sound_type(ask: Ask, body: bytes) -> bytes:
    """Return the content type of a reply: by its bytes, as some vendors ignore the format asked for."""
    if wants_events(ask):
        return EVENT_STREAM
    asked = ask.field("response_format") or "mp3"
    found = None if asked == "pcm" else sniff_sound(body)
    return CONTENT_TYPES[found or asked]


def pass_sound(body: bytes, ask: Ask) -> tuple[bytes, Usage | None, int]:
    """Return a vendor's sound for the caller, no usage, as such replies have none, and 0 characters."""
    if body[:1] in (b"{", b"[") and (error := read_error(body)):
        raise Broken(error)
    asked = ask.field("response_format") or "mp3"
    if not body or (asked != "pcm" and sniff_sound(body) is None):
        raise Malformed("the reply is not a sound of a known format")
    body = _mend_wav(body)
    return _write_events(body, ask) if wants_events(ask) else body, None, 0


def _mend_wav(body: bytes) -> bytes:
    """Write the lengths of a WAV file that was streamed, where they are unknown."""
    place = body.find(b"data", 12, 4096) if body.startswith(b"RIFF") else -1
    if place < 0 or body[place + 4 : place + 8] not in UNKNOWN_LENGTHS:
        return body
    whole = (len(body) - 8).to_bytes(4, "little")
    data = (len(body) - place - 8).to_bytes(4, "little")
    return b"".join([body[:4], whole, body[8 : place + 4], data, body[place + 8 :]])


def _write_events(body: bytes, ask: Ask) -> bytes:
    """Return the sound as events. Tokens are estimated by the length of the text: the vendor counts none."""
    pieces = (body[start : start + EVENT_BYTES] for start in range(0, len(body), EVENT_BYTES))
    events: list[dict[str, object]] = [
        {"type": "speech.audio.delta", "audio": b64encode(piece).decode()} for piece in pieces
    ]
    usage = {"input_tokens": ask.prompt, "output_tokens": 0, "total_tokens": ask.prompt}
    events.append({"type": "speech.audio.done", "usage": usage})
    return b"".join(write_event(event) for event in events)


def write_event(event: dict[str, object]) -> bytes:
    """Return one server-sent event."""
    return b"data: %b\n\n" % _encode(event)
