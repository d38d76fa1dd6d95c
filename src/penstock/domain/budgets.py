"""Budgets of accounts and keys for a period, the payer of a request, and the balance of a budget."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from penstock.domain.ids import timestamp
from penstock.domain.money import format_usd
from penstock.errors import InsufficientBudget

ENDLESS: Final = 1e12
"""Seconds since the epoch that no period reaches."""
ACCOUNT_PREFIX: Final = "acct_"


class Period(StrEnum):
    """The period of a budget; `total` never resets."""

    TOTAL = "total"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A hard cap: held + spent never exceed it within a period. `owner` is an account or a lineage of keys."""

    owner: str
    period: Period
    cap: int
    time_zone: str = "UTC"

    def window(self, at: float) -> tuple[float, float]:
        """Return start and end of the period at this moment, in the budget's own time zone."""
        if self.period is Period.TOTAL:
            return 0.0, ENDLESS
        day = datetime.fromtimestamp(at, ZoneInfo(self.time_zone)).date()
        return _days(self.period, self.time_zone, day.toordinal())

    @property
    def of(self) -> str:
        """Return the kind of owner, for messages."""
        return "account" if self.owner.startswith(ACCOUNT_PREFIX) else "key"


@lru_cache(maxsize=1024)
def _days(period: Period, time_zone: str, ordinal: int) -> tuple[float, float]:
    zone, day = ZoneInfo(time_zone), datetime.fromordinal(ordinal)
    first = day if period is Period.DAY else day.replace(day=1)
    after = day + timedelta(days=1) if period is Period.DAY else (first + timedelta(days=31)).replace(day=1)
    return first.replace(tzinfo=zone).timestamp(), after.replace(tzinfo=zone).timestamp()


class Payer(NamedTuple):  # one per request: faster than a dataclass
    """The account that pays for a request, and the key of a lineage that made it."""

    account_id: str
    key_id: str
    lineage: str

    @property
    def owners(self) -> tuple[str, str]:
        """Return the owners of budgets that apply."""
        return self.lineage, self.account_id


@dataclass(frozen=True, slots=True)
class Standing:
    """The balance of a budget in one of its periods."""

    budget: Budget
    spent: int
    held: int
    start: float
    ends: float

    @property
    def left(self) -> int:
        """Return the amount that may still be held."""
        return max(0, self.budget.cap - self.spent - self.held)

    @property
    def resets_at(self) -> str | None:
        """Return the start of the next period; None for a total."""
        return None if self.ends == ENDLESS else timestamp(self.ends)

    def describe(self) -> dict[str, Any]:
        """Return the balance as callers and administrators see it."""
        return {
            "of": self.budget.of,
            "period": self.budget.period.value,
            "time_zone": self.budget.time_zone,
            "cap": format_usd(self.budget.cap),
            "spent": format_usd(self.spent),
            "held": format_usd(self.held),
            "left": format_usd(self.left),
            "resets_at": self.resets_at,
        }

    def refuse(self, needed: int) -> InsufficientBudget:
        """Return the error for a request that needs this amount."""
        budget, facts = self.budget, self.describe()
        each = "" if budget.period is Period.TOTAL else f" per {budget.period}"
        return InsufficientBudget(
            f"This would need up to {format_usd(needed)} USD. Of the {budget.of}'s budget of {facts['cap']} USD{each}, "
            f"{facts['spent']} are spent and {facts['held']} held.",
            facts={name: facts[name] for name in ("spent", "held", "cap", "resets_at", "of", "period")}
            | {"needed": format_usd(needed)},
            suggestion="Ask for a higher budget, or request less"
            + ("." if facts["resets_at"] is None else f"; it resets at {facts['resets_at']}."),
        )


class BalanceKey(NamedTuple):
    """The key of a balance: the budget's owner and period, and when that period began."""

    owner: str
    period: str
    start: float


@dataclass(slots=True)
class BudgetBalance:
    """The spent and held amounts of a budget in one of its periods.

    It is changed in memory and written back within one transaction.
    """

    budget: Budget
    start: float
    ends: float
    spent: int
    held: int
    announced: int
    """The highest percentage that was announced to the account."""
    most: int
    """The highest cap that the period ever had."""

    @property
    def key(self) -> BalanceKey:
        """The key of its row."""
        return BalanceKey(self.budget.owner, self.budget.period.value, self.start)

    @property
    def room(self) -> int:
        """The amount that may still be held; below 0 where the cap was lowered."""
        return self.budget.cap - self.spent - self.held

    @property
    def standing(self) -> Standing:
        """The balance as callers and administrators see it."""
        return Standing(self.budget, self.spent, self.held, self.start, self.ends)
