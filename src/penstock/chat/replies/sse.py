"""A parser of server-sent events, for any line ends and any pieces."""

from typing import Final

MAX_EVENT_BYTES: Final = 16 << 20
MAX_EVENT_LINES: Final = 10_000
"""Lines of one event, including comments."""
MAX_IDLE_BYTES: Final = 4 << 20
"""Bytes of comments and blank lines without an event between them."""
COMMENT: Final = b": keep-alive\n\n"
MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark that some servers send first."""
_JSON: Final = (b" ", b"\t", b'"', b"{", b"}", b"[", b"]")
"""First bytes of a line that is not a field of an event."""


class EventTooLarge(Exception):
    """An endless event, or endless comments instead of events."""


class Splitter:
    """Splits a stream of bytes into whole events: (name, data) pairs."""

    __slots__ = ("_carriage", "_held", "_idle", "_lines", "_size", "_started", "comments", "is_between_events")

    def __init__(self) -> None:
        self._held: list[bytes] = []  # of an unfinished event; joined once, at its end
        self._size = 0
        self._lines = 0
        self._idle = 0
        self._started = False
        self._carriage = False
        self.comments = 0
        self.is_between_events = False
        """True if all bytes fed so far belong to finished events."""

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the events that end in these bytes."""
        if not self._started or self._carriage or b"\r" in data:
            data = self._clean(data)
        if self._held:
            if not self._ends_event(data):
                self._hold(data)
                return []
            data = self._take_held() + data
        return self._split(data)

    def _split(self, data: bytes) -> list[tuple[bytes, bytes]]:
        events = data.split(b"\n\n")
        rest = events.pop()
        self.is_between_events = not rest and not self._carriage and self._started
        found: list[tuple[bytes, bytes]] = []
        for event in events:
            # Nearly every event is of this form; any other is read line by line.
            if event.startswith(b"data: ") and b"\n" not in event:
                found.append((b"", event[6:]))
            elif event and (read := self._read(event)) is not None:
                found.append(read)
        self._idle = 0 if found else self._idle + len(data) - len(rest)
        if rest:
            self._hold(rest)
        if self._idle > MAX_IDLE_BYTES:
            raise EventTooLarge("it sent comments only, without end")
        return found

    def end(self) -> list[tuple[bytes, bytes]]:
        """Return the last event if its blank line is missing; a truncated one will not parse."""
        read = self._read(self._take_held().strip(b"\n"))
        return [] if read is None else [read]

    def _ends_event(self, data: bytes) -> bool:
        return b"\n\n" in data or (data.startswith(b"\n") and self._held[-1].endswith(b"\n"))

    def _hold(self, data: bytes) -> None:
        """Buffer a part of an unfinished event."""
        if data:
            self._held.append(data)
            self._size += len(data)
            self._lines += data.count(b"\n")
        self.is_between_events = False
        if self._size > MAX_EVENT_BYTES or self._lines > MAX_EVENT_LINES:
            raise EventTooLarge("it sent an event that is too large")

    def _take_held(self) -> bytes:
        held = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held.clear()
        self._size = self._lines = 0
        return held

    def _clean(self, data: bytes) -> bytes:
        """Normalise line ends and remove the byte order mark."""
        if not self._started:
            data = self._take_held() + data
            if len(data) < len(MARK) and MARK.startswith(data):
                self._held = [data] if data else []  # the rest of the mark may follow
                return b""
            data = data.removeprefix(MARK)
            self._started = True
        if self._carriage:
            data = b"\r" + data
        self._carriage = data.endswith(b"\r")  # its newline may follow
        if self._carriage:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read(self, event: bytes) -> tuple[bytes, bytes] | None:
        if event.count(b"\n") > MAX_EVENT_LINES:
            raise EventTooLarge("it sent an event of too many lines")
        name, data = b"", list[bytes]()
        for line in event.split(b"\n"):
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ")
            elif not field and line:
                self.comments += 1
            elif data and field[:1] in _JSON:
                data.append(line)  # JSON of several lines with `data:` before the first only
        return (name, b"\n".join(data)) if data else None
