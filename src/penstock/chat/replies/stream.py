"""The interfaces between a vendor's stream, the answer and the caller."""

from collections.abc import Callable, Mapping
from typing import Protocol

from penstock.chat.replies.broken import Broken, Malformed
from penstock.domain.chat import Usage
from penstock.errors import PenstockError


class Stream(Protocol):
    """A vendor's stream in any dialect, on its way to the caller."""

    malformed: int
    broken: Broken | Malformed | None

    @property
    def quick(self) -> Callable[[bytes], bytes | None] | None:
        """A fast `feed` for whole events of plain text; it returns None for anything else."""
        ...

    @property
    def usage(self) -> Usage | None:
        """The vendor's own count of tokens so far."""
        ...

    @property
    def finished(self) -> Mapping[int, str]:
        """The finish reason of each choice that has ended."""
        ...

    @property
    def characters(self) -> int:
        """Number of characters of the answer so far."""
        ...

    @property
    def comments(self) -> int:
        """Number of comments received instead of events."""
        ...

    @property
    def ended(self) -> bool:
        """Return whether the vendor has marked the end of its stream."""
        ...

    @property
    def complete(self) -> bool:
        """Return whether every choice that began is complete."""
        ...

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the vendor and return bytes for the caller."""
        ...

    def end(self) -> bytes:
        """End the vendor's stream and return the bytes that close ours."""
        ...

    def fail(self, error: PenstockError, request_id: str) -> bytes:
        """Return the event that ends a stream which broke off, so that no client takes it for complete."""
        ...


class ResponseWriter(Protocol):
    """The caller's side of a stream."""

    @property
    def is_full(self) -> bool:
        """Return whether the caller is slower than the vendor."""
        ...

    def write(self, piece: bytes) -> bool:
        """Send a piece at once; return False if the caller does not keep up."""
        ...

    async def drain(self) -> None:
        """Wait until the caller has read some of it."""
        ...
