"""Passes on the bytes of whole events only, so that a stream which breaks off never ends inside one."""

import re
from typing import Final

from penstock.chat.replies.sse import MAX_EVENT_BYTES, EventTooLarge

EVENT: Final = re.compile(rb".*?\n\r?\n", re.DOTALL)
"""An event with the blank line after it."""
_ENDS: Final = (b"\n\n", b"\n\r\n")
"""The ends of an event."""
_SEAM_BYTES: Final = 2
"""Bytes before a piece that may be the beginning of such an end."""


class WholeEvents:
    """Holds back the beginning of an unfinished event. Its pieces are joined once, at its end."""

    __slots__ = ("_held", "_seam", "_size")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self._seam = b""

    def __bool__(self) -> bool:
        """Return whether something is held back."""
        return bool(self._held)

    def release(self, data: bytes) -> bytes:
        """Return the bytes of events that are whole now, and hold back what follows them."""
        seam = self._seam + data
        if not any(end in seam for end in _ENDS):
            self._hold(data, seam)
            return b""
        data = self.take() + data
        end = max(found + len(mark) for mark in _ENDS if (found := data.rfind(mark)) >= 0)
        if end < len(data):
            self._hold(data[end:], data[end:])
        return data[:end]

    def take(self) -> bytes:
        """Return what is held back, and forget it."""
        held = b"".join(self._held)
        self._held.clear()
        self._size = 0
        self._seam = b""
        return held

    def _hold(self, data: bytes, seam: bytes) -> None:
        if not data:
            return
        self._held.append(data)
        self._size += len(data)
        self._seam = seam[-_SEAM_BYTES:]
        if self._size > MAX_EVENT_BYTES:
            raise EventTooLarge("it sent an event that is too large")
