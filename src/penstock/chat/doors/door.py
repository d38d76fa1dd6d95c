"""The contract of a door: it reads requests of one dialect, and writes replies and errors in it."""

from collections.abc import Mapping
from typing import Protocol

from penstock.chat.replies.stream import Stream
from penstock.chat.replies.writer import Writer
from penstock.domain.chat import Ask, Dialect, Usage
from penstock.errors import PenstockError


class Door(Protocol):
    """One dialect. It has no state: one instance serves all requests."""

    dialect: Dialect

    def read(self, body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
        """Return the request in this body, in its own dialect; header names are in lower case.

        Raise `InvalidRequest` that names the field, the problem and what is allowed.
        """
        ...

    def to_chat(self, ask: Ask) -> Ask:
        """Return a request of this dialect in the chat dialect. Raise `InvalidRequest` if it cannot be translated."""
        ...

    def make_writer(self, ask: Ask, reply_id: str, created: int) -> Writer:
        """Return a writer for a reply that a vendor of another dialect gives. `reply_id` ends with the request's id."""
        ...

    def pass_stream(self, ask: Ask, reply_id: str, created: int) -> Stream:
        """Return a stream for a reply that is in this dialect already."""
        ...

    def pass_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return a whole reply that is in this dialect already, its usage and its number of characters."""
        ...

    def write_error(self, error: PenstockError, request_id: str | None) -> tuple[int, bytes]:
        """Return the HTTP status and the body of an error."""
        ...

    def headers(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """Return the headers that every response of this dialect has besides `x-request-id`."""
        ...
