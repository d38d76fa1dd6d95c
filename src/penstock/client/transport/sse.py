"""Parser of server-sent events, with the ids that resume a stream."""

from dataclasses import dataclass
from typing import Final

from penstock.client.errors import UnexpectedAnswer

LONGEST: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Message:
    """One event of a stream."""

    data: str
    id: str | None = None


class EventLines:
    """Incremental parser. An incomplete event is never returned."""

    retry = 0.0
    """Seconds that the server asks to wait before reconnecting."""

    def __init__(self) -> None:
        self._rest = b""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Message]:
        """Return the events completed by these bytes."""
        lines = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST:
            raise UnexpectedAnswer("An event of the stream is too long: at most 64 MiB are accepted.")
        found = [self._take(line) for line in lines]
        return [message for message in found if message is not None]

    def _take(self, line: bytes) -> Message | None:
        if not line:
            return self._dispatch()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        elif name == "retry" and value.isdecimal():
            self.retry = int(value) / 1000
        return None

    def _dispatch(self) -> Message | None:
        if not self._data:
            return None
        message = Message("\n".join(self._data), self._id)
        self._data, self._id = [], None
        return message
