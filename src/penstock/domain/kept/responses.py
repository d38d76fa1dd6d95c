"""Kept responses: their record, their states and their bounds."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import msgspec

MAX_RESPONSES: Final = 10_000
"""Responses that one account keeps at a time. The oldest make room for new ones."""
MAX_RUNNING: Final = 16
"""Background responses of one account that run at a time."""
MAX_CHAIN_RESPONSES: Final = 1_000
"""Responses of one conversation that a request can continue."""
MAX_CHAIN_BYTES: Final = 32 << 20
"""Bytes of their items together."""
LEASE_SECONDS: Final = 60.0
"""Time without a heartbeat after which the process that runs a background response counts as dead."""
ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
"""Ids that a response or an item can have, also those of vendors that speak Responses."""


_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class ResponseStatus(StrEnum):
    """The states of a response, in OpenAI's words."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_running(self) -> bool:
        """Return whether the response is unfinished."""
        return self in (ResponseStatus.QUEUED, ResponseStatus.IN_PROGRESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResponse:
    """A response that is kept for its account."""

    account_id: str
    id: str
    created_at: float
    expires_at: float
    status: ResponseStatus
    model: str
    previous_id: str | None
    """The response that it continues."""
    is_background: bool
    input: bytes
    """The input items of its own request, as a JSON array. Those of earlier responses are kept with them."""
    body: bytes
    """The response object as JSON."""

    @property
    def size(self) -> int:
        """Return the number of bytes that count against the account's quota."""
        return len(self.input) + len(self.body)

    def end(self, status: ResponseStatus, error: dict[str, Any] | None = None) -> "KeptResponse":
        """Return the response as it is once its run has ended without an answer."""
        found: dict[str, Any] = _read_fields(self.body)
        body = msgspec.json.encode({**found, "status": status.value, "error": error})
        return replace(self, status=status, body=body)


@dataclass(frozen=True, slots=True)
class KeepPolicy:
    """The operator's settings of kept conversations."""

    retention_seconds: float
    """0: nothing is kept."""
    quota_bytes: int
    """Bytes that one account keeps. The oldest responses make room for new ones."""
