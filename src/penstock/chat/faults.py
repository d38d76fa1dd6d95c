"""The error shown for a chat vendor's failure: enough to act on, without credential, host or account."""

from typing import assert_never

from penstock.domain.chat import Blame, Fault
from penstock.errors import (
    ChatRateLimited,
    InvalidRequest,
    Overloaded,
    PenstockError,
    VendorFailed,
    VendorRefusedUs,
)
from penstock.upstream.redaction import Redactor
from penstock.vendor_api.generation import MAX_RETRY_AFTER_SECONDS


def explain_fault(fault: Fault, redactor: Redactor) -> PenstockError:
    """Map a chat vendor's failure to the error shown to the caller."""
    wait = None if fault.retry_after is None else min(fault.retry_after, MAX_RETRY_AFTER_SECONDS)
    match fault.blame:
        case Blame.CALLER:
            return InvalidRequest(
                redactor.text(fault.message) or "The vendor refused the request.",
                code=redactor.code(fault.code) or "invalid_value",
                param=redactor.param(fault.param),
            )
        case Blame.CREDENTIAL:
            return VendorRefusedUs()
        case Blame.LIMIT:
            return ChatRateLimited("The vendor's rate limit is reached.", retry_after=wait)
        case Blame.BUSY:
            return Overloaded("The vendor is overloaded.", retry_after=wait)
        case Blame.VENDOR:
            return VendorFailed(retry_after=wait)
        case _ as unreachable:
            assert_never(unreachable)
