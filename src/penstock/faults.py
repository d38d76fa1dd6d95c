"""What a caller is told of a chat vendor's failure: enough to act on, never a credential, a host or an account."""

from typing import assert_never

from penstock.chat import Blame, Fault
from penstock.errors import (
    InvalidRequest,
    Overloaded,
    PenstockError,
    RateLimited,
    VendorFailed,
    VendorRefusedUs,
)
from penstock.exchange import redact


def tell_fault(fault: Fault, secrets: frozenset[str]) -> PenstockError:
    """A vendor's failure as an error of ours."""
    match fault.blame:
        case Blame.CALLER:
            said = (redact({"message": fault.message}, secrets) or {})["message"]
            return InvalidRequest(
                said or "The vendor refused the request.", code=fault.code or "invalid_value", param=fault.param
            )
        case Blame.CREDENTIAL:
            return VendorRefusedUs()
        case Blame.LIMIT:
            return RateLimited("The vendor's rate limit is reached.", retry_after=fault.retry_after)
        case Blame.BUSY:
            return Overloaded("The vendor is overloaded.", retry_after=fault.retry_after)
        case Blame.VENDOR:
            return VendorFailed(retry_after=fault.retry_after)
        case _ as unreachable:
            assert_never(unreachable)
