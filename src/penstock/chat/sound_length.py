"""The length of a caller's sound, found by opening it, so that minutes can be priced before a vendor is called."""

import math
from typing import Final

from msgspec import structs

from penstock.domain.chat import Ask
from penstock.domain.job_errors import FileUnreadable
from penstock.errors import InvalidRequest, Overloaded
from penstock.inspection.input_media import inspect_sound
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed, WorkInterrupted

TOKENS_PER_SECOND: Final = 10
"""Tokens that a second of sound is estimated as, where a vendor counts none."""


class SoundMeter:
    """Opens sounds in the confined processes that open uploads."""

    def __init__(self, pool: ProcessPool) -> None:
        self._pool = pool

    async def measure(self, ask: Ask, account_id: str) -> Ask:
        """Return a request with the length of its sound. Raise `InvalidRequest` if that cannot be opened."""
        if ask.upload is None:
            return ask
        try:
            facts = await self._pool.insist(account_id, inspect_sound, ask.upload.data)
        except FileUnreadable as error:
            raise InvalidRequest(f"Invalid 'file': {error.message}", param="file", code="invalid_value") from None
        except WorkInterrupted as error:
            raise Overloaded("The gateway could not open the file just now.", retry_after=1) from error
        except WorkFailed as error:
            reason = "takes too long" if isinstance(error, LimitReached) else "cannot be opened"
            raise InvalidRequest(f"Invalid 'file': it {reason}.", param="file", code="invalid_value") from None
        seconds = facts.duration_seconds or 0.0
        return structs.replace(ask, seconds=seconds, prompt=math.ceil(seconds * TOKENS_PER_SECOND) + 1)
