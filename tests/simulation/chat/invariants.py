"""What must be true of chat: each served call is charged once and rightly, limits hold, and leases come back."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from simulation.chat.callers import ChatCaller, Heard
from simulation.chat.vendors import ChatBook, Served
from simulation.store import SharedStore
from simulation.world import World

from penstock.billing.leases import LocalLease
from penstock.domain.api_keys import ApiKey
from penstock.domain.usage import CRASHED
from penstock.gateway import Gateway

PRICES: Final = {"east": (100, 400), "west": (150, 300)}
"""USD for a million tokens of prompts and of answers, by vendor."""
CHARACTERS_PER_TOKEN: Final = 4
LATE_SECONDS: Final = 15.0
"""The longest time between a request's start and its admission by a slow store."""
PROGRESS_SECONDS: Final = 1.0
"""The age of a stream's progress in the journal, also if two writes of it fail."""
FROZEN: Final = "freeze before an order"
DISK_SECONDS: Final = 60.0
"""The longest time for which a disk is full."""
PROCESSES: Final = 3
UNTIMELY: Final = frozenset({"freeze", "cut off", "skew", "clock jump", "disk full", "machine death", "store slow"})
"""Planned faults after which times say little."""


class Row(NamedTuple):
    """A usage record as it is stored."""

    id: str
    request_id: str
    account_id: str
    key_id: str
    vendor: str
    outcome: str
    code: str
    prompt: int
    completion: int
    is_estimated: int
    cost: int | None
    created_at: float


ROWS: Final = (
    "SELECT id, request_id, account_id, key_id, vendor, outcome, code, prompt_tokens, completion_tokens, "
    "estimated, cost, created_at FROM completions"
)


def cost_of(vendor: str, prompt: int, completion: int) -> int:
    """Return the cost of an answer, in 10⁻⁹ USD."""
    asked, answered = PRICES[vendor]
    return (prompt * asked + completion * answered) * 1000


class ChatInvariants:
    """Checks the usage records, limits and leases of one world."""

    def __init__(
        self,
        world: World,
        store: SharedStore,
        book: ChatBook,
        keys: Mapping[str, ApiKey],
        gateways: Callable[[], Iterable[Gateway]],
    ) -> None:
        self._world = world
        self._store = store
        self._book = book
        self._keys = keys
        self._gateways = gateways
        limits = {key.lineage: key.limits.concurrent_streams for key in keys.values()}
        self._streams = {owner: most for owner, most in limits.items() if most is not None}

    # -- at each commit

    def check_commit(self) -> None:
        """Check that no more streams are leased to all processes than their owner may open."""
        for owner, amount in self._store.ask("SELECT owner, sum(amount) FROM slots GROUP BY owner"):
            if amount > self._streams.get(owner, 0):
                self._world.violate("no more streams are leased than allowed", f"{owner}: {amount}")
        for owner, most in self._streams.items():
            used = sum(_open_streams(gateway, owner) for gateway in self._gateways())
            if used > most:
                self._world.violate("no more streams are open than allowed", f"{owner}: {used} of {most}")

    # -- now and then

    def audit(self) -> None:
        """Check what must hold at any time."""
        twice = "SELECT request_id FROM completions GROUP BY request_id HAVING count(*) > 1"
        for (request_id,) in self._store.ask(twice):
            self._world.violate("no chat request is charged twice", request_id)

    # -- at the end

    def is_settled(self) -> bool:
        """Return whether every served call is recorded and no lease is left."""
        recorded = {request_id for (request_id,) in self._store.ask("SELECT request_id FROM completions")}
        served = {marker for marker, calls in self._book.calls.items() if any(call.has_worked for call in calls)}
        return served <= recorded and not self._leased() and not any(map(_pending, self._gateways()))

    def _leased(self) -> list[Any]:
        held = self._store.ask("SELECT subject, owner, period, amount FROM holds WHERE is_lease = 1 AND amount > 0")
        # An expired slot counts for nobody: its row goes when its owner leases the next.
        slots = "SELECT owner, process, amount FROM slots WHERE amount > 0 AND expires_at > %s"
        return held + self._store.ask(slots, self._world.wall())

    def check_end(self, callers: Sequence[ChatCaller], kinds: Collection[str]) -> None:
        """Check every request, and that nothing is left over. `kinds` are the planned faults of the world."""
        self.audit()
        if leased := self._leased():
            self._world.violate("every lease comes back", repr(leased))
        for gateway in self._gateways():
            if pending := _pending(gateway):
                self._world.violate("nothing of a finished request is kept", pending)
        rows = {row.request_id: row for row in map(Row._make, self._store.ask(ROWS))}
        for caller in callers:
            for heard in caller.heard:
                self._check_request(heard, rows.get(heard.marker))
                caller.check_text(heard)
                if not UNTIMELY.intersection(kinds):
                    self._check_progress(heard, rows.get(heard.marker))
        if not UNTIMELY.intersection(kinds):
            self._check_rates(rows.values())
        self._check_overrun()

    def _check_request(self, heard: Heard, row: Row | None) -> None:
        worked = [call for call in self._book.calls.get(heard.marker, ()) if call.has_worked]
        if row is None:
            if worked or heard.status == 200:
                self._world.violate("every served call is charged", f"{heard} {worked}")
            return
        problem = self._judge(heard, row, worked[0] if worked else None)
        if problem:
            self._world.violate("a call is charged for what was served", f"{problem}: {row} {heard} {worked}")

    def _judge(self, heard: Heard, row: Row, served: Served | None) -> str | None:
        if row.account_id != self._keys[heard.account].account_id:
            return "another account pays"
        if heard.is_whole and row.outcome != "ok" and not (row.code == CRASHED and self._had_bad_disk(heard)):
            return "a whole answer is recorded as another"
        if row.cost and row.cost != cost_of(row.vendor, row.prompt, row.completion):
            return "the cost is not that of the tokens"
        if heard.error is not None and heard.error["charged"] not in (None, bool(row.cost)):
            return "the error says otherwise"
        if row.outcome == "ok":
            return _judge_answer(heard, row, served)
        if served is None:
            return "an answer that nobody gave is charged" if row.completion else None
        return _judge_part(heard, row, served)

    def _had_bad_disk(self, heard: Heard) -> bool:
        """Return whether the journal may have refused the end of a request, whose process died a moment later."""
        steps = [step.at for step in self._world.trace if step.what.startswith("disk")]
        return any(heard.at - DISK_SECONDS < at <= (heard.ended_at or at) for at in steps)

    def _freezes(self, heard: Heard) -> list[float]:
        """Return the times at which a process froze before an order, perhaps for the rest of its life."""
        times = [step.at for step in self._world.trace if step.what == FROZEN]
        return [at for at in times if heard.at <= at <= (heard.ended_at or at)]

    def _check_progress(self, heard: Heard, row: Row | None) -> None:
        """Check that a stream whose process died is charged for all but the last moment of it."""
        if row is None or row.code != CRASHED or heard.ended_at is None:
            return
        until = min([heard.ended_at, *self._freezes(heard)]) - PROGRESS_SECONDS
        seen = max((characters for at, characters in heard.progress if at < until), default=0)
        if row.completion < -(-seen // CHARACTERS_PER_TOKEN):
            self._world.violate("a stream is charged by its progress", f"{seen} were heard: {row} {heard}")

    def _check_overrun(self) -> None:
        """Check that only keys with a budget have costs that no budget covers."""
        with_budget = [owner for (owner,) in self._store.ask("SELECT owner FROM budgets")]
        for subject, lineage, overrun in self._store.ask("SELECT subject, lineage, overrun FROM ledger"):
            if overrun and lineage not in with_budget:
                self._world.violate("what no budget limits is charged in full", f"{subject}: {overrun}")
            if overrun:
                self._world.counts["chat overruns"] += 1

    def _check_rates(self, rows: Iterable[Row]) -> None:
        """Check that no minute has more requests than its bucket and the leases of all processes allow."""
        admitted: dict[str, list[float]] = {}
        for row in rows:
            if row.vendor:
                admitted.setdefault(row.key_id, []).append(row.created_at)
        for key in self._keys.values():
            limit = key.limits.requests_per_minute
            if limit is not None:
                self._check_rate(sorted(admitted.get(key.public_id, [])), limit, key.public_id)

    def _check_rate(self, moments: Sequence[float], limit: int, key_id: str) -> None:
        leased = PROCESSES * (1 + limit / 40)
        for first, start in enumerate(moments):
            for last in range(first, len(moments)):
                seconds = moments[last] - start + LATE_SECONDS
                if last - first + 1 > limit * (1 + seconds / 60) + leased:
                    count = last - first + 1
                    self._world.violate("rate limits hold", f"{key_id}: {count} in {seconds:.1f} s of {limit}")
                    return


def _judge_answer(heard: Heard, row: Row, served: Served | None) -> str | None:
    if served is None or served.vendor != row.vendor:
        return "no such vendor has answered"
    if served.has_reported:
        is_right = (row.prompt, row.completion) == (served.prompt_tokens, served.completion_tokens)
        return None if is_right and not row.is_estimated else "the vendor's count does not count"
    guess = heard.guess if heard.has_known_prompt else row.prompt
    is_right = (row.prompt, row.completion) == (guess, _tokens(heard, len(served.text))) and row.is_estimated
    return None if is_right and served.is_whole else "the estimate is wrong"


def _tokens(heard: Heard, characters: int) -> int:
    """Return the estimate for so many characters, which never exceeds the request's own limit."""
    tokens = -(-characters // CHARACTERS_PER_TOKEN)
    return tokens if heard.most is None else min(tokens, heard.most)


def _judge_part(heard: Heard, row: Row, served: Served) -> str | None:
    """Judge an answer that its caller, its vendor or its process broke off."""
    if not row.cost:
        return "a served call is free"
    if row.vendor != served.vendor:
        return "the wrong vendor is charged"
    most = max(served.completion_tokens, -(-served.sent // CHARACTERS_PER_TOKEN))
    if row.completion > most:
        return "more is charged than was said"
    if row.code != CRASHED and row.completion < _tokens(heard, len(heard.text)):
        return "less is charged than was heard"
    return None if row.is_estimated else "an estimate is not marked"


def _open_streams(gateway: Any, owner: str) -> float:
    """Return the streams of an owner that a gateway has open under a lease that it still has."""
    lease = gateway.admission._slots.get(owner)
    return 0 if lease is None else lease.in_use - lease.lost


def _pending(gateway: Any) -> str:
    """Return what a gateway has not finished."""
    relay, writer, admission = gateway.relay, gateway.usage_writer, gateway.admission
    leases: Sequence[LocalLease] = (
        *admission._rates.values(),
        *admission._slots.values(),
        *admission._budgets.values(),
    )
    found = {
        "busy": {name: busy for name, busy in relay._busy.items() if busy},
        "under way": list(writer._under_way),
        "waiting": len(writer._waiting),
        "in use": [(type(lease).__name__, lease.in_use, lease.expected) for lease in leases if lease.in_use],
    }
    return ", ".join(f"{name}: {what}" for name, what in found.items() if what)
