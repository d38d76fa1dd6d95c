"""Event ids by which a client of 2025-11-25 takes up a broken stream again, at any server of a fleet.

The id has all that is needed to answer: the job, and the request that waits for it.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec

RETRY_MS: Final = 5_000
"""Milliseconds after which clients come back. They try twice, so a server has ten seconds to start again."""
MAX_ID: Final = 2_000
Name = str | int


@dataclass(frozen=True, slots=True)
class BrokenStream:
    """A request whose answer is still to be sent."""

    job_id: str
    request_id: Name
    method: str
    progress_token: Name | None = None


def write_event_id(stream: BrokenStream) -> str | None:
    """Return the id, or None if it would be too long for a header."""
    text = base64.urlsafe_b64encode(msgspec.json.encode(stream)).decode().rstrip("=")
    return text if len(text) <= MAX_ID else None


def read_event_id(text: str) -> BrokenStream | None:
    """Return what an id says, or None if it is none of ours."""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=BrokenStream)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None


def prime(stream: BrokenStream) -> bytes:
    """Return the first event of a stream, which has the id and no data."""
    name = write_event_id(stream)
    return b"" if name is None else f"retry: {RETRY_MS}\nid: {name}\ndata: \n\n".encode()
