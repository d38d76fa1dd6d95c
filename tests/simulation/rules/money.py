"""Rules of money, checked after every commit by raw SQL: holds follow open work, and balances follow both."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from simulation.store import TABLES, SharedStore
from simulation.world import World

from penstock.domain.budgets import own_tag
from penstock.domain.jobs import Job

TAG: Final = "grove"
"""The fixed tag of the keys of `cedar` and `elm`, which has a budget of its own."""

BALANCES: Final = """
SELECT p.owner, p.period, p.spent, p.held, p.most, COALESCE(SUM(h.amount), 0)
FROM purses p LEFT JOIN holds h ON h.owner = p.owner AND h.period = p.period AND h.start = p.start
GROUP BY p.owner, p.period, p.start, p.spent, p.held, p.most
HAVING p.held <> COALESCE(SUM(h.amount), 0) OR p.spent + p.held > p.most OR p.held < 0 OR p.spent < 0
"""
HOLDS_OF_NOTHING: Final = """
SELECT h.subject FROM holds h LEFT JOIN jobs j ON j.id = h.subject
WHERE h.is_lease = 0 AND (j.id IS NULL OR j.done = 1)
"""
WORK_WITHOUT_HOLD: Final = """
SELECT j.id FROM jobs j WHERE j.done = 0
AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.subject = j.id AND l.kind = 'hold')
"""
ENTRIES: Final = """
SELECT COUNT(*), COALESCE(SUM(amount), 0), (SELECT COUNT(*) FROM purses), (SELECT COALESCE(SUM(spent), 0) FROM purses)
FROM ledger
"""
SPENT: Final = """
SELECT p.owner, p.spent,
    COALESCE(SUM(CASE l.kind WHEN 'settle' THEN l.amount WHEN 'refund' THEN -l.amount ELSE 0 END), 0)
FROM purses p LEFT JOIN ledger l ON (l.lineage = p.owner OR (p.owner = 'tag:' || l.account_id || ':grove'
    AND l.tags = '{lines}')) AND l.at >= p.start AND l.at < p.ends
WHERE p.owner NOT LIKE 'acct%%'
GROUP BY p.owner, p.period, p.start, p.spent
""".format(lines="\ngrove\n")
KINDS: Final = "SELECT kind, amount, overrun FROM ledger WHERE subject = %s"
HELD: Final = "SELECT COUNT(*) FROM holds WHERE subject = %s"
BUDGETS: Final = "SELECT COUNT(*) FROM budgets WHERE owner IN (%s, %s, %s)"


class MoneyRules:
    """Watches holds, balances and the ledger of one world."""

    def __init__(self, world: World, store: SharedStore) -> None:
        self._world = world
        self._store = store
        self._entries: tuple[int, ...] | None = None
        self._unknown: set[str] = set()
        """Jobs of which nobody knows whether the vendor charges them: their money stays held."""

    def check(self, written: AbstractSet[str] = TABLES, jobs: Sequence[Job] = ()) -> None:
        """Check what must hold after any commit. `written` are the tables it may have changed, `jobs` those of events.

        A change of a job in the midst of its life, checked by `check_job`, concerns no other row.
        """
        if written & {"purses", "holds"}:
            self._check_balances()
        is_begun_or_done = not jobs or any(job.sequence == 1 or job.done for job in jobs)
        if written & {"holds", "ledger"} or ("jobs" in written and is_begun_or_done):
            self._check_holds()
        if written & {"purses", "ledger"}:
            self._check_spent()

    def _check_balances(self) -> None:
        for owner, period, spent, held, most, sums in self._store.ask(BALANCES):
            what = f"{owner} {period}: spent {spent}, held {held} of {most}, holds {sums}"
            self._world.violate("held money is the sum of holds, and no cap is passed", what)

    def _check_holds(self) -> None:
        for (subject,) in self._store.ask(HOLDS_OF_NOTHING):
            if subject not in self._unknown:
                self._world.violate("money is held for open work only", subject)
        for (subject,) in self._store.ask(WORK_WITHOUT_HOLD):
            self._world.violate("open work holds its price", subject)

    def _check_spent(self) -> None:
        [entries] = self._store.ask(ENTRIES)
        if self._entries != entries:
            self._entries = entries
            for owner, spent, sums in self._store.ask(SPENT):
                if spent != sums:
                    self._world.violate("spent money is the sum of the ledger", f"{owner}: {spent} and {sums}")

    def check_job(self, job: Job) -> None:
        """Check the entries of a job that a commit has changed."""
        kinds = {kind: amount + overrun for kind, amount, overrun in self._store.ask(KINDS, job.id)}
        ends = kinds.keys() & {"settle", "release"}
        [(held,)] = self._store.ask(HELD, job.id)
        [(budgets,)] = self._store.ask(BUDGETS, job.account_id, job.lineage, own_tag(job.account_id, TAG))
        if job.done and job.charged is None:
            self._unknown.add(job.id)
        elif job.done:
            self._check_done(job, kinds, held)
        elif ends or held != budgets:
            what = f"{job.id} is {job.state}: {kinds}, {held} holds for {budgets} budgets"
            self._world.violate("an open job has one hold in each budget", what)

    def _check_done(self, job: Job, kinds: dict[str, int], held: int) -> None:
        ends = sorted(kinds.keys() & {"settle", "release"})
        wanted = "settle" if job.charged else "release"
        if held or ends != [wanted] or (job.charged and kinds["settle"] != job.final):
            what = f"{job.id} is {job.state}, charged {job.charged}, final {job.final}: {kinds}, {held} holds"
            self._world.violate("a finished job is settled or released once", what)
