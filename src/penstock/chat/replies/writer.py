"""The contract of a writer: it writes the parts of a reply in the dialect of the caller's door."""

from typing import Protocol

from penstock.domain.chat import Part, Usage
from penstock.errors import PenstockError


class Writer(Protocol):
    """Writes one reply, as events or whole. Its parts have been checked by `Progress`."""

    def take(self, part: Part) -> bytes:
        """Return the events of a part; empty if it has none yet."""
        ...

    def finish(self, usage: Usage) -> bytes:
        """Return the events that end a complete reply."""
        ...

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the event that ends a reply which broke off, so that no client takes it for complete."""
        ...

    def whole(self, usage: Usage) -> bytes:
        """Return the body of a complete reply that is not streamed."""
        ...

    def frame(self, text: bytes) -> bytes:
        """Return the event of one more piece of plain ASCII text, after a `Text` of the first choice."""
        ...
