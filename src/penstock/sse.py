"""Server-sent events: cut out of a stream of bytes, whatever line ends and pieces it comes in."""

from typing import Final

MAX_EVENT: Final = 16 << 20
COMMENT: Final = b": keep-alive\n\n"
MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark that some servers begin with."""


class EventTooLarge(Exception):
    """An event that never ends."""


class Splitter:
    """Bytes in, whole events out: (name, data) pairs."""

    __slots__ = ("_carriage", "_rest", "_started", "comments", "is_between_events")

    def __init__(self) -> None:
        self._rest = b""
        self._started = False
        self._carriage = False
        self.comments = 0
        self.is_between_events = False
        """Whether everything fed so far has come out."""

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The events that end in these bytes."""
        if not self._started or self._carriage or b"\r" in data:
            data = self._clean(data)
        if self._rest:
            data = self._rest + data
        events = data.split(b"\n\n")
        self._rest = events.pop()
        self.is_between_events = not self._rest and not self._carriage and self._started
        if len(self._rest) > MAX_EVENT:
            raise EventTooLarge
        found: list[tuple[bytes, bytes]] = []
        for event in events:
            # What nearly every event is; anything else is read line by line.
            if event.startswith(b"data: ") and b"\n" not in event:
                found.append((b"", event[6:]))
            elif (read := self._read(event)) is not None:
                found.append(read)
        return found

    def end(self) -> list[tuple[bytes, bytes]]:
        """The last event, where its blank line is missing; one that was cut will not parse."""
        rest, self._rest = self._rest.strip(b"\n"), b""
        read = self._read(rest)
        return [] if read is None else [read]

    def _clean(self, data: bytes) -> bytes:
        """One kind of line end, and no byte order mark."""
        if not self._started:
            data = self._rest + data
            self._rest = b""
            if len(data) < len(MARK) and MARK.startswith(data):
                self._rest = data  # the rest of it may still come
                return b""
            data = data.removeprefix(MARK)
            self._started = True
        if self._carriage:
            data = b"\r" + data
        self._carriage = data.endswith(b"\r")  # its newline may still come
        if self._carriage:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read(self, event: bytes) -> tuple[bytes, bytes] | None:
        name, data = b"", list[bytes]()
        for line in event.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
            elif not field and line:
                self.comments += 1
        return (name, b"\n".join(data)) if data else None
