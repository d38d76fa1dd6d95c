"""Leases on limits: a minute's requests and tokens, and the streams that may be open at once."""

from typing import Final

from penstock.billing.leases import VALID_PART, LocalLease, Refusal, is_in_doubt
from penstock.billing.rate_headers import describe_bucket, write_duration
from penstock.clocks import Clocks
from penstock.errors import PenstockError, RateLimited, TooManyStreams
from penstock.store.contact import StoreContact
from penstock.store.database import Database
from penstock.store.queries.billing import limit_rows
from penstock.store.queries.billing.limit_rows import SLOT_SECONDS

RATE_PARTS: Final = 40
SLOT_PARTS: Final = 8
"""A lease is about this part of the whole limit."""


class RateLease(LocalLease):
    """A lease on a minute's requests or tokens. Overuse is owed to the store."""

    __slots__ = ("kind", "known_at", "left", "limit", "of", "owner")

    def __init__(
        self,
        database: Database,
        clocks: Clocks,
        owner: str,
        of: str,
        kind: str,
        limit: int,
        contact: StoreContact | None = None,
    ) -> None:
        super().__init__(database, clocks, contact)
        self.owner = owner
        self.of = of
        self.kind = kind
        self.limit = limit
        self.left = float(limit)
        self.known_at = clocks.now()

    def level(self, now: float) -> float:
        """Return what this process can still use: its lease, and what it knows to be left in the store."""
        limit, filled = self.limit, self.left
        if now > self.known_at:
            filled += (now - self.known_at) * limit / limit_rows.MINUTE
        level = self.free + (min(limit, filled))
        return level if level < limit else float(limit)

    async def _ask(self) -> Refusal | None:
        least, want = self._wanted()
        returned = 0.0 if self.is_cut_off else max(0.0, self.free)  # returned in the write that takes more
        owed = max(0.0, -self.free) - returned
        self.free += owed
        now = self.clocks.now()
        try:
            got = await self.database.write(
                limit_rows.take,
                self.owner,
                self.kind,
                self.limit,
                now,
                least=least,
                want=max(want, self.limit / RATE_PARTS),
                owed=owed,
            )
        except Exception as error:
            if owed > 0 or not is_in_doubt(error):
                self.free -= owed
            raise
        self.free += got.taken
        self.left, self.known_at = got.left, now
        return None if got.taken else self._refuse_all(least, self._refuse, self._wait(least))

    def _wait(self, amount: float) -> float:
        """Return the seconds until the amount can be taken."""
        missing = min(amount, self.limit) - self.level(self.clocks.now())
        return max(0.001, missing * limit_rows.MINUTE / self.limit)

    def _refuse(self, amount: float) -> PenstockError:
        wait = self._wait(amount)
        whose = "this API key" if self.of == "key" else "this account"
        return RateLimited(
            f"Rate limit reached for {whose}: {self.limit} {self.kind} per minute. "
            f"Please try again in {write_duration(wait)}.",
            retry_after=wait,
            headers=dict(self.describe(self.clocks.now())),
        )

    def count(self, least: int, likely: int) -> int:
        """Return the amount to take for a request of at least `least`. Raise if it can never fit."""
        if least > self.limit:
            error = RateLimited(
                f"Request too large: about {least} {self.kind}, and {self.limit} are allowed per minute.",
                suggestion="Send a shorter request, or have the limit raised.",
                headers=dict(self.describe(self.clocks.now())),
            )
            error.retryable = False
            raise error
        return min(least + likely, self.limit)

    def describe(self, now: float) -> list[tuple[str, str]]:
        """Return the rate limit headers."""
        return describe_bucket(self.kind, self.limit, self.level(now))


class StreamLease(LocalLease):
    """A lease on the streams that may be open at once."""

    __slots__ = ("limit", "of", "owner", "process", "valid_until")

    def __init__(
        self,
        database: Database,
        clocks: Clocks,
        owner: str,
        of: str,
        process: str,
        limit: int,
        contact: StoreContact | None = None,
    ) -> None:
        super().__init__(database, clocks, contact)
        self.valid_until = 0.0
        self.owner = owner
        self.of = of
        self.process = process
        self.limit = limit

    def try_take(self, amount: float) -> bool:
        """Take the amount if the lease has it and is still valid. An unrenewed lease may belong to another process."""
        return self.clocks.steady() <= self.valid_until and super().try_take(amount)

    def renew(self, asked: float) -> None:
        """Count the slots as valid from the moment at which the store was asked."""
        self.valid_until = asked + SLOT_SECONDS * VALID_PART

    def _usable(self) -> float:
        return self.free if self.clocks.steady() <= self.valid_until else 0

    async def _ask(self) -> Refusal | None:
        asked = self.clocks.steady()
        if asked > self.valid_until and (self.free or self.in_use):
            await self._revive(asked)
            self._hand_out()
            if not self._waiting:
                return None
        wanted = int(self._wanted()[1]) + self.limit // SLOT_PARTS
        got = await self.database.write(
            limit_rows.lease_slots,
            self.owner,
            self.process,
            self.limit,
            wanted,
            self.clocks.now(),
            may_expire=self.may_expire,
        )
        self.free += got
        if got:
            self.renew(asked)
        return None if got else self._refuse_all(1, self._refuse)

    async def _revive(self, asked: float) -> None:
        """Ask the store whether the slots are still leased, after they were not renewed in time."""
        owners = await self.database.write(limit_rows.renew_slots, self.process, self.clocks.now())
        if self.owner in owners:
            self.renew(asked)
        else:
            self.lose()

    def _refuse(self, amount: float) -> PenstockError:
        del amount
        whose = "This API key" if self.of == "key" else "This account"
        return TooManyStreams(f"{whose} may have {self.limit} streams open at once.", retry_after=1)
