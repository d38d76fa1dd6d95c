"""The door of OpenAI's embeddings, to vendors that run embedding models."""

from collections.abc import Mapping
from typing import NoReturn

from penstock.chat.doors.embedding_request import read_embedding_request
from penstock.chat.replies.chunks.writer import encode_error
from penstock.chat.replies.vectors import pass_vectors
from penstock.domain.chat import Ask, Dialect, Usage
from penstock.errors import InvalidRequest, PenstockError


class EmbeddingsDoor:
    """Implements `Door`. Its requests are not conversations, so they have no translation and no stream."""

    dialect = Dialect.EMBEDDINGS

    def read(self, body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
        """Return the request in this body."""
        del headers  # none of them matter
        return read_embedding_request(body)

    def to_chat(self, ask: Ask) -> Ask:
        """Refuse: texts to embed are not a conversation."""
        raise InvalidRequest(f"`{ask.model}` does not run embeddings here.", param="model", code="unsupported_value")

    def make_writer(self, ask: Ask, reply_id: str, created: int) -> NoReturn:
        """Refuse: a vendor's own dialect is read by its `read_embeddings`."""
        raise NotImplementedError

    def pass_stream(self, ask: Ask, reply_id: str, created: int) -> NoReturn:
        """Refuse: vectors are not streamed."""
        raise NotImplementedError

    def pass_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return the vectors, their usage, and 0 characters."""
        del reply_id, created  # such replies have neither
        return pass_vectors(body, ask)

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the status and the error in OpenAI's shape."""
        return error.status, encode_error(error, request_id)

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return none."""
        del request_id
        return []
