"""What a vendor's stream is to an answer, whichever dialect it is in, and where it goes."""

from collections.abc import Callable, Mapping
from typing import Protocol

from penstock.chat.replies.passthrough import Broken, Malformed
from penstock.domain.chat import Usage


class Stream(Protocol):
    """A vendor's reply becoming ours, whatever the dialect."""

    malformed: int
    broken: Broken | Malformed | None

    @property
    def quick(self) -> Callable[[bytes], bytes | None] | None:
        """`feed` for what nearly every read is, whole events with some text and nothing else; None if it is not."""
        ...

    @property
    def usage(self) -> Usage | None:
        """What the vendor has counted so far."""
        ...

    @property
    def finished(self) -> Mapping[int, str]:
        """Why each choice ended that has."""
        ...

    @property
    def characters(self) -> int:
        """How much of an answer there is."""
        ...

    @property
    def comments(self) -> int:
        """How many comments came instead of events."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the vendor said that nothing more comes."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the vendor said everything that it began."""
        ...

    def feed(self, data: bytes) -> bytes:
        """Vendor's bytes in, caller's bytes out."""
        ...

    def end(self) -> bytes:
        """The vendor's stream is over: what closes ours."""
        ...


class ResponseWriter(Protocol):
    """Where a stream goes: to a caller."""

    @property
    def is_full(self) -> bool:
        """Whether the caller is slower than the vendor."""
        ...

    def write(self, piece: bytes) -> bool:
        """Send some of it, at once; False if the caller does not keep up."""
        ...

    async def drain(self) -> None:
        """Wait until the caller has read some."""
        ...
