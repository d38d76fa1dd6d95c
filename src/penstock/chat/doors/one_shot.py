"""Defaults of the doors whose requests are no conversations: they have no translation and no stream."""

from typing import ClassVar, NoReturn

from penstock.chat.replies.chunks.writer import encode_error
from penstock.domain.chat import Ask
from penstock.errors import InvalidRequest, PenstockError


class OneShotDoor:
    """The part of `Door` that does not depend on the task."""

    task: ClassVar[str]
    """The task in messages, such as "embeddings"."""

    def to_chat(self, ask: Ask) -> Ask:
        """Refuse: the request is not a conversation."""
        message = f"`{ask.model}` does not run {self.task} here."
        raise InvalidRequest(message, param="model", code="unsupported_value")

    def make_writer(self, ask: Ask, reply_id: str, created: int) -> NoReturn:
        """Refuse: replies are read whole."""
        raise NotImplementedError

    def pass_stream(self, ask: Ask, reply_id: str, created: int) -> NoReturn:
        """Refuse: the vendor's reply is not streamed."""
        raise NotImplementedError

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the status and the error in OpenAI's shape."""
        return error.status, encode_error(error, request_id)

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return none."""
        del request_id
        return []
