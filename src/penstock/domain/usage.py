"""The usage record, kept for every chat request, also for those that fail."""

from enum import StrEnum

import msgspec

from penstock.domain.attribution.labels import Attribution
from penstock.domain.chat import CHARACTERS_PER_TOKEN, Usage


class ChatOutcome(StrEnum):
    """The outcome of a chat request."""

    OK = "ok"
    CACHED = "cached"  # answered from the response cache, without a vendor
    FAILED = "failed"  # failed before the first byte
    CUT = "cut"  # broken off by the vendor after the first byte
    CANCELED = "canceled"  # the caller left, or the gateway was stopped


class Completion(msgspec.Struct, frozen=True, kw_only=True):  # one per request: faster than a dataclass
    """One chat request of an account."""

    id: str
    request_id: str
    account_id: str
    key_id: str
    lineage: str = ""
    """The key's lineage; not stored with the record."""
    model: str
    vendor: str
    upstream_model: str
    streamed: bool
    outcome: ChatOutcome
    code: str
    """The error's code, empty without one."""
    usage: Usage
    cost: int | None
    """In 10⁻⁹ USD; None if the price is unknown."""
    created_at: float
    seconds: float
    first_byte_seconds: float | None
    guardrails: str | None = None
    """The findings of guardrails in JSON; None if none inspected it."""
    attribution: Attribution | None = None
    """Its tags, end user and session; None if it named none."""


class Begun(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A chat request in progress, with all that is needed to charge it if the process dies."""

    id: str
    request_id: str
    account_id: str
    key_id: str
    lineage: str
    model: str
    vendor: str
    upstream_model: str
    streamed: bool
    created_at: float
    prompt: int
    """Estimated number of prompt tokens."""
    input_per_million: int | None
    """None if the price is unknown."""
    output_per_million: int
    per_request: int
    attribution: Attribution | None = None


CRASHED = "process_died"
"""The code of a request whose process died."""


def end_begun(begun: Begun, characters: int, now: float) -> Completion:
    """Return the record of a request whose process died, with an estimate of the answer's tokens."""
    completion = -(-characters // CHARACTERS_PER_TOKEN)
    cost = None
    if begun.input_per_million is not None:
        tokens = begun.prompt * begun.input_per_million + completion * begun.output_per_million
        cost = begun.per_request - (-tokens // 1_000_000)
    return Completion(
        id=begun.id,
        request_id=begun.request_id,
        account_id=begun.account_id,
        key_id=begun.key_id,
        lineage=begun.lineage,
        model=begun.model,
        vendor=begun.vendor,
        upstream_model=begun.upstream_model,
        streamed=begun.streamed,
        outcome=ChatOutcome.CANCELED,
        code=CRASHED,
        usage=Usage(begun.prompt, completion, estimated=True),
        cost=cost,
        created_at=begun.created_at,
        seconds=max(0.0, now - begun.created_at),
        first_byte_seconds=None,
        attribution=begun.attribution,
    )
