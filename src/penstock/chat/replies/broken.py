"""The two ways in which a vendor's reply fails: it holds an error, or it cannot be read."""

from collections.abc import Callable
from typing import Final

from penstock.domain.chat import Fault
from penstock.vendor_api.generation import Reply

UNREPAIRABLE: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Raised by code that reads JSON of another shape than it expects."""
MAX_SKIPPED: Final = 10_000
"""Events in a row of which nothing is passed on."""


class Broken(Exception):
    """The vendor sent an error instead of the answer: a fault, or JSON that only the vendor can read."""

    def __init__(self, error: Fault | bytes, event: bytes | None = None) -> None:
        super().__init__("the reply holds an error")
        self._error = error
        self.event = event
        """The vendor's own event, for a caller that gets its bytes unchanged."""

    def fault(self, read: Callable[[Reply], Fault]) -> Fault:
        """Return the fault, read by the vendor's `read`."""
        return self._error if isinstance(self._error, Fault) else read(Reply(200, {}, self._error))


class Malformed(Exception):
    """The reply cannot be read or repaired."""
