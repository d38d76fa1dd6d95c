"""The usage record: what is kept of every chat request, whatever became of it."""

from enum import StrEnum

import msgspec

from penstock.chat import Usage


class Outcome(StrEnum):
    """How a chat request ended."""

    OK = "ok"
    CACHED = "cached"  # answered from the response cache: no vendor was asked
    FAILED = "failed"  # an error before the first byte
    CUT = "cut"  # the vendor's reply broke off after it had begun
    CANCELED = "canceled"  # the caller left, or the gateway was stopped


class Completion(msgspec.Struct, frozen=True, kw_only=True):  # made for every request: quicker than a dataclass
    """One chat request of an account."""

    id: str
    request_id: str
    account_id: str
    key_id: str
    model: str
    vendor: str
    upstream_model: str
    streamed: bool
    outcome: Outcome
    code: str
    """The error's code, empty without one."""
    usage: Usage
    cost: int | None
    """In 10⁻⁹ USD; None where the price is not known."""
    created_at: float
    seconds: float
    first_byte_seconds: float | None
