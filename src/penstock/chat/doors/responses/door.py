"""The door of OpenAI's Responses."""

from collections.abc import Mapping

from penstock.chat.doors.responses import passthrough, reader, to_chat
from penstock.chat.doors.responses.errors import encode_refusal
from penstock.chat.doors.responses.passthrough import PassedResponse
from penstock.chat.doors.responses.writer import ResponsesWriter
from penstock.domain.chat import Ask, Dialect, Usage
from penstock.errors import PenstockError


class ResponsesDoor:
    """Implements `Door`."""

    dialect = Dialect.RESPONSES

    def read(self, body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
        """Return the request in this body."""
        del headers  # none of them matter
        return reader.read(body)

    def to_chat(self, ask: Ask) -> Ask:
        """Return the request in the chat dialect."""
        return to_chat.translate(ask)

    def make_writer(self, ask: Ask, reply_id: str, created: int) -> ResponsesWriter:
        """Return a writer of response events."""
        return ResponsesWriter(ask, reply_id, created)

    def pass_stream(self, ask: Ask, reply_id: str, created: int) -> PassedResponse:
        """Return a stream that passes events on."""
        return PassedResponse(ask, reply_id, created)

    def pass_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return the response, its usage and its number of characters."""
        del ask, reply_id, created  # it has its own
        return passthrough.pass_whole(body)

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the status and the error in OpenAI's shape."""
        return error.status, encode_refusal(error, request_id)

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return none."""
        del request_id
        return []
