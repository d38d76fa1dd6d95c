"""The door of OpenAI's chat completions, whose dialect all others are translated into."""

from collections.abc import Mapping

from penstock.chat import request
from penstock.chat.replies.chunks.completion import pass_whole
from penstock.chat.replies.chunks.passthrough import PassthroughStream
from penstock.chat.replies.chunks.writer import ChunkWriter, encode_error
from penstock.domain.chat import Ask, Dialect, Usage
from penstock.errors import PenstockError


class CompletionsDoor:
    """Implements `Door`."""

    dialect = Dialect.CHAT

    def read(self, body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
        """Return the request in this body."""
        del headers  # none of them matter
        return request.read(body)

    def to_chat(self, ask: Ask) -> Ask:
        """Return the request: it is in the chat dialect already."""
        return ask

    def make_writer(self, ask: Ask, reply_id: str, created: int) -> ChunkWriter:
        """Return a writer of chunks."""
        return ChunkWriter(ask, reply_id, created)

    def pass_stream(self, ask: Ask, reply_id: str, created: int) -> PassthroughStream:
        """Return a stream that passes chunks on."""
        return PassthroughStream(ask, reply_id, created)

    def pass_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return the completion, its usage and its number of characters."""
        return pass_whole(body, ask, reply_id, created)

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the status and the error in OpenAI's shape."""
        return error.status, encode_error(error, request_id)

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return none."""
        del request_id
        return []
