"""The door of OpenAI's embeddings, to vendors that run embedding models."""

from collections.abc import Mapping

from penstock.chat.doors.embedding_request import read_embedding_request
from penstock.chat.doors.one_shot import OneShotDoor
from penstock.chat.replies.vectors import pass_vectors
from penstock.domain.chat import Ask, Dialect, Usage


class EmbeddingsDoor(OneShotDoor):
    """Implements `Door`."""

    dialect = Dialect.EMBEDDINGS
    task = "embeddings"

    def read(self, body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
        """Return the request in this body."""
        del headers  # none of them matter
        return read_embedding_request(body)

    def pass_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return the vectors, their usage, and 0 characters."""
        del reply_id, created  # such replies have neither
        return pass_vectors(body, ask)
