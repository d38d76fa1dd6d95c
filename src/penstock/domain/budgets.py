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
TAG_PREFIX: Final = "tag:"


class Period(StrEnum):
    """The period of a budget; `total` never resets."""

    TOTAL = "total"
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A hard cap: held + spent never exceed it within a period.

    `owner` is an account, a lineage of keys, or a tag of an account: see `own_tag`.
    """

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
        if self.owner.startswith(ACCOUNT_PREFIX):
            return "account"
        return "tag" if self.owner.startswith(TAG_PREFIX) else "key"

    @property
    def tag(self) -> str | None:
        """Return the tag that it limits, if it limits one."""
        return read_tag_owner(self.owner)[1] if self.owner.startswith(TAG_PREFIX) else None


def own_tag(account_id: str, tag: str) -> str:
    """Return the owner of the budgets of an account's tag."""
    return f"{TAG_PREFIX}{account_id}:{tag}"


def read_tag_owner(owner: str) -> tuple[str, str]:
    """Return the account and the tag of such an owner."""
    _, account_id, tag = owner.split(":", 2)
    return account_id, tag


def bound_tag_owners(account_id: str) -> tuple[str, str]:
    """Return two texts between which the owners of an account's tag budgets sort."""
    return f"{TAG_PREFIX}{account_id}:", f"{TAG_PREFIX}{account_id};"


@lru_cache(maxsize=1024)
def _days(period: Period, time_zone: str, ordinal: int) -> tuple[float, float]:
    zone, day = ZoneInfo(time_zone), datetime.fromordinal(ordinal)
    first = day if period is Period.DAY else day.replace(day=1)
    after = day + timedelta(days=1) if period is Period.DAY else (first + timedelta(days=31)).replace(day=1)
    return first.replace(tzinfo=zone).timestamp(), after.replace(tzinfo=zone).timestamp()


class Payer(NamedTuple):  # one per request: faster than a dataclass
    """The account that pays for a request, the key of a lineage that made it, and the request's tags."""

    account_id: str
    key_id: str
    lineage: str
    tags: tuple[str, ...] = ()

    @property
    def owners(self) -> tuple[str, ...]:
        """Return the owners of budgets that apply."""
        if not self.tags:
            return self.lineage, self.account_id
        return self.lineage, self.account_id, *(own_tag(self.account_id, tag) for tag in self.tags)


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
        tag = self.budget.tag
        return {
            "of": self.budget.of,
            **({} if tag is None else {"tag": tag}),
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
        whose = f"{budget.of}'s" if budget.tag is None else f"tag `{budget.tag}`'s"
        names = ("spent", "held", "cap", "resets_at", "of", "tag", "period")
        return InsufficientBudget(
            f"This would need up to {format_usd(needed)} USD. Of the {whose} budget of {facts['cap']} USD{each}, "
            f"{facts['spent']} are spent and {facts['held']} held.",
            facts={name: facts[name] for name in names if name in facts} | {"needed": format_usd(needed)},
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
