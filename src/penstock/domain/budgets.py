"""Budgets: how much an account or a key may spend in a period, who pays for a request, and where a budget stands."""

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
    """How long a budget's amount is for; `total` never begins anew."""

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
        """When the period that holds this moment begins and ends, in the budget's own time zone."""
        if self.period is Period.TOTAL:
            return 0.0, ENDLESS
        day = datetime.fromtimestamp(at, ZoneInfo(self.time_zone)).date()
        return _days(self.period, self.time_zone, day.toordinal())

    @property
    def of(self) -> str:
        """Whose it is, for people."""
        return "account" if self.owner.startswith(ACCOUNT_PREFIX) else "key"


@lru_cache(maxsize=1024)
def _days(period: Period, time_zone: str, ordinal: int) -> tuple[float, float]:
    zone, day = ZoneInfo(time_zone), datetime.fromordinal(ordinal)
    first = day if period is Period.DAY else day.replace(day=1)
    after = day + timedelta(days=1) if period is Period.DAY else (first + timedelta(days=31)).replace(day=1)
    return first.replace(tzinfo=zone).timestamp(), after.replace(tzinfo=zone).timestamp()


class Payer(NamedTuple):  # made for every request: quicker than a dataclass
    """Whose money a request costs: its account's, through one of a lineage of keys."""

    account_id: str
    key_id: str
    lineage: str

    @property
    def owners(self) -> tuple[str, str]:
        """Who may have a budget for it."""
        return self.lineage, self.account_id


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a budget stands in one of its periods."""

    budget: Budget
    spent: int
    held: int
    start: float
    ends: float

    @property
    def left(self) -> int:
        """What may still be held."""
        return max(0, self.budget.cap - self.spent - self.held)

    @property
    def resets_at(self) -> str | None:
        """When the next period begins; None for a total."""
        return None if self.ends == ENDLESS else timestamp(self.ends)

    def describe(self) -> dict[str, Any]:
        """As callers and administrators see it."""
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
        """Why a request that needs so much is not taken."""
        budget, told = self.budget, self.describe()
        each = "" if budget.period is Period.TOTAL else f" per {budget.period}"
        return InsufficientBudget(
            f"This would need up to {format_usd(needed)} USD. Of the {budget.of}'s budget of {told['cap']} USD{each}, "
            f"{told['spent']} are spent and {told['held']} held.",
            facts={name: told[name] for name in ("spent", "held", "cap", "resets_at", "of", "period")}
            | {"needed": format_usd(needed)},
            suggestion="Have the budget raised, or ask for less"
            + ("." if told["resets_at"] is None else f"; it begins anew at {told['resets_at']}."),
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
