"""The usage record: what is kept of every chat request, whatever became of it."""

from enum import StrEnum

import msgspec

from penstock.domain.chat import CHARACTERS_PER_TOKEN, Usage


class ChatOutcome(StrEnum):
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
    lineage: str = ""
    """Of the key; not kept with the record."""
    model: str
    vendor: str
    upstream_model: str
    streamed: bool
    outcome: ChatOutcome
    code: str
    """The error's code, empty without one."""
    usage: Usage
    cost: int | None
    """In 10⁻⁹ USD; None where the price is not known."""
    created_at: float
    seconds: float
    first_byte_seconds: float | None


class Begun(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A chat request that a vendor works for: enough to charge it should the process die."""

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
    """About how many tokens were asked."""
    input_per_million: int | None
    """None where the price is not known."""
    output_per_million: int
    per_request: int


CRASHED = "process_died"
"""The code of a request that was under way when its process died."""


def end_begun(begun: Begun, characters: int, now: float) -> Completion:
    """The record of a request whose process died: what was asked, and about as much as was seen of the answer."""
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
    )
