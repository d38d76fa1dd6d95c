"""The door of Anthropic's Messages."""

from collections.abc import Mapping

from penstock.chat.doors.messages import passthrough, reader
from penstock.chat.doors.messages.errors import encode_error
from penstock.chat.doors.messages.passthrough import MessageStream
from penstock.chat.doors.messages.to_chat import translate
from penstock.chat.doors.messages.writer import MessageWriter
from penstock.domain.chat import Ask, Dialect, Usage
from penstock.errors import PenstockError


class MessagesDoor:
    """Implements `Door`."""

    dialect = Dialect.MESSAGES

    def read(self, body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
        """Return the request in this body."""
        return reader.read(body, headers)

    def to_chat(self, ask: Ask) -> Ask:
        """Return the request in the chat dialect."""
        return translate(ask)

    def make_writer(self, ask: Ask, reply_id: str, created: int) -> MessageWriter:
        """Return a writer of events, or of one message."""
        del created  # messages have no date
        return MessageWriter(ask, reply_id)

    def pass_stream(self, ask: Ask, reply_id: str, created: int) -> MessageStream:
        """Return a stream that passes events on."""
        del ask, reply_id, created  # nothing is changed
        return MessageStream()

    def pass_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return the message, its usage and its number of characters."""
        del ask, reply_id, created
        return passthrough.pass_whole(body)

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the status and the error in Anthropic's shape."""
        return encode_error(error, request_id)

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return the request's id under the name that the SDKs read."""
        return [(b"request-id", request_id.encode())]
