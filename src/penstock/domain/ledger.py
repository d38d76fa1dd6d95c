"""Ledger entries: every amount that is held, charged, released or given back. Amounts are 10⁻⁹ USD."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from penstock.domain.budgets import Payer


class EntryKind(StrEnum):
    """The step that an entry records.

    A job is held, then settled or released. A release may still be settled later, and a settlement refunded.
    """

    HOLD = "hold"
    SETTLE = "settle"
    RELEASE = "release"
    REFUND = "refund"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One line of the ledger."""

    subject: str
    kind: EntryKind
    payer: Payer
    amount: int
    at: float
    """Time of acceptance, which decides the budget period of the subject."""
    created_at: float
    overrun: int = 0
    note: str = ""


class Charge(NamedTuple):  # made for every request: quicker than a dataclass
    """The cost of one chat request, to be charged to its payer."""

    subject: str
    payer: Payer
    cost: int
    at: float
    note: str = ""
