"""Slots for webhook attempts, divided so that endpoints that hang do not delay others."""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

PLACES: Final = 256
"""The most attempts in progress in one process."""
DOUBTFUL_PLACES: Final = 192
"""Of these, the most for endpoints that have not answered quickly before."""
LAST_DOUBTFUL_PLACES: Final = 224
"""Up to here, an account without other attempts in progress gets one such attempt."""
ACCOUNT_PLACES: Final = 96
FAST_PLACES: Final = 64
"""The most attempts begun less than `LINGER_SECONDS` ago, without those of slow endpoints."""
ACCOUNT_FAST_PLACES: Final = 48
UNPROVEN_PLACES: Final = 40
"""Of the fast slots, the most for endpoints that have not answered yet."""
SLOW_PLACES: Final = 32
ACCOUNT_SLOW_PLACES: Final = 8
ENDPOINT_PLACES: Final = 8
"""The slots of an endpoint that answers. Any other has one."""
LINGER_SECONDS: Final = 0.5
"""An attempt that takes longer frees its fast slot and goes on."""
MAX_KNOWN: Final = 10_000
"""The most endpoints, and the most accounts, to remember."""


class Pace(Enum):
    """Behaviour of an endpoint at its last attempt."""

    PROVEN = auto()
    """It answered quickly, or it accepted the message."""
    UNPROVEN = auto()
    """It has not been tried by this process, or not lately."""
    SLOW = auto()
    """It failed slowly: it has few slots until it accepts a message."""


class SlotKind(Enum):
    """Kind of slot that an attempt holds."""

    PROVEN = auto()
    UNPROVEN = auto()
    SLOW = auto()
    LINGERING = auto()


FAST: Final = (SlotKind.PROVEN, SlotKind.UNPROVEN)
KINDS: Final = {Pace.PROVEN: SlotKind.PROVEN, Pace.UNPROVEN: SlotKind.UNPROVEN, Pace.SLOW: SlotKind.SLOW}


class Candidate(NamedTuple):
    """A delivery that is due. Its lane identifies its endpoint for the division of slots."""

    position: int
    account_id: str
    lane: str
    due_at: float


@dataclass(slots=True)
class WebhookSlot:
    """Slot of one attempt in progress."""

    account_id: str
    lane: str
    kind: SlotKind


class SlotUsage:
    """Counts of the slots in use: in total, by account and by lane."""

    def __init__(self) -> None:
        self.all: Counter[SlotKind] = Counter()
        self.accounts: defaultdict[str, Counter[SlotKind]] = defaultdict(Counter)
        self.lanes: Counter[str] = Counter()

    def copy(self) -> "SlotUsage":
        """Return a copy of the counts, for a plan that may be dropped."""
        copied = SlotUsage()
        copied.all = Counter(self.all)
        copied.accounts.update({name: Counter(counts) for name, counts in self.accounts.items()})
        copied.lanes = Counter(self.lanes)
        return copied

    def of(self, account_id: str) -> Counter[SlotKind]:
        """Return the counts of an account."""
        return self.accounts.get(account_id) or Counter()

    def add(self, slot: WebhookSlot, number: int = 1) -> None:
        """Count one slot more, or with -1 one less."""
        mine = self.accounts[slot.account_id]
        _count(self.all, slot.kind, number)
        _count(mine, slot.kind, number)
        _count(self.lanes, slot.lane, number)
        if not mine:
            del self.accounts[slot.account_id]


@dataclass(frozen=True, slots=True)
class Shares:
    """The most slots that one account may have. They shrink with the number of accounts that want some."""

    places: int
    fast: int
    slow: int

    @classmethod
    def among(cls, accounts: int, fast_accounts: int, slow_accounts: int) -> "Shares":
        """Divide the slots of each kind among this many accounts."""
        return cls(
            places=max(4, min(ACCOUNT_PLACES, PLACES // max(1, accounts))),
            fast=max(4, min(ACCOUNT_FAST_PLACES, FAST_PLACES // max(1, fast_accounts))),
            slow=max(1, min(ACCOUNT_SLOW_PLACES, SLOW_PLACES // max(1, slow_accounts))),
        )

    def has_room(self, usage: SlotUsage, account_id: str, pace: Pace) -> bool:
        """Return whether the account may begin another attempt to an endpoint of this pace."""
        every, mine = usage.all, usage.of(account_id)
        total, own = every.total(), mine.total()
        doubtful, most = total - every[SlotKind.PROVEN], DOUBTFUL_PLACES if own else LAST_DOUBTFUL_PLACES
        if pace is not Pace.PROVEN and (own >= self.places * 3 // 4 or doubtful >= most):
            return False
        if total >= PLACES or own >= self.places:
            return False
        if pace is Pace.SLOW:
            return every[SlotKind.SLOW] < SLOW_PLACES and mine[SlotKind.SLOW] < self.slow
        if pace is Pace.UNPROVEN and (
            every[SlotKind.UNPROVEN] >= UNPROVEN_PLACES or mine[SlotKind.UNPROVEN] >= max(1, self.fast * 2 // 3)
        ):
            return False
        return sum(every[kind] for kind in FAST) < FAST_PLACES and sum(mine[kind] for kind in FAST) < self.fast


@dataclass(frozen=True, slots=True)
class _Known:
    """Last known behaviour of an endpoint."""

    pace: Pace = Pace.UNPROVEN
    turn: int = 0
    """The number of the slot that it had last. Slots are numbered as they are given."""


_UNKNOWN: Final = _Known()


class WebhookSlots:
    """Slots of one process, with its own memory of endpoints. A new process learns each by one attempt."""

    def __init__(self) -> None:
        self._usage = SlotUsage()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._turns: OrderedDict[str, int] = OrderedDict()
        self._turn = 0

    @property
    def is_full(self) -> bool:
        """Return whether no attempt at all can begin."""
        return self._usage.all.total() >= PLACES

    @property
    def is_empty(self) -> bool:
        """Return whether no attempt is in progress."""
        return not self._usage.all

    def take(self, account_id: str, lane: str) -> WebhookSlot:
        """Give a slot to an attempt that a plan has chosen."""
        self._turn += 1
        known = _Known(self._known.get(lane, _UNKNOWN).pace, self._turn)
        _remember(self._known, lane, known)
        _remember(self._turns, account_id, self._turn)
        slot = WebhookSlot(account_id, lane, KINDS[known.pace])
        self._usage.add(slot)
        return slot

    def linger(self, slot: WebhookSlot) -> bool:
        """Free the fast slot of an attempt that takes long. Return whether it had one."""
        if slot.kind not in FAST:
            return False
        self._usage.add(slot, -1)
        slot.kind = SlotKind.LINGERING
        self._usage.add(slot)
        return True

    def give_back(self, slot: WebhookSlot) -> None:
        """Free the slot of an attempt that is over."""
        self._usage.add(slot, -1)

    def learn(self, lane: str, *, succeeded: bool, seconds: float) -> None:
        """Remember how an endpoint behaved. One that fails quickly is not slow, as it blocks no slot."""
        is_quick = succeeded or seconds < LINGER_SECONDS
        turn = self._known.get(lane, _UNKNOWN).turn
        _remember(self._known, lane, _Known(Pace.PROVEN if is_quick else Pace.SLOW, turn))

    def plan(self) -> "Plan":
        """Return a plan for the next deliveries. It has its own counts, for use in another thread."""
        return Plan(self._usage.copy(), self._known, self._turns)


@dataclass(frozen=True, slots=True)
class Plan:
    """Chooses the deliveries to begin. It changes nothing, so that it may be used again."""

    _usage: SlotUsage
    _known: Mapping[str, _Known]
    _turns: Mapping[str, int]

    def full_lanes(self) -> list[str]:
        """Return the endpoints that have all the slots that they may have."""
        return [lane for lane in self._usage.lanes if not self._room(lane, self._usage)]

    def room_of(self, lane: str) -> int:
        """Return the number of attempts that the endpoint may begin beside those in progress."""
        return self._room(lane, self._usage)

    def choose(self, due: Iterable[Candidate], held: Sequence[Candidate] = ()) -> list[Candidate]:
        """Choose the deliveries to begin beside those that are held already, while there is room.

        Accounts take turns, and so do the endpoints of an account. A delivery without room is skipped.
        """
        waiting, usage = self._line_up(due), self._usage.copy()
        for each in held:
            usage.add(self._make_slot(each))
        shares = self._share(usage, waiting)
        turns = deque(sorted(waiting, key=lambda name: (usage.of(name).total(), self._turns.get(name, 0))))
        chosen: list[Candidate] = []
        while turns:
            account_id = turns.popleft()
            found = self._next(waiting[account_id], usage, shares)
            if found is not None:
                usage.add(self._make_slot(found))
                chosen.append(found)
                turns.append(account_id)
        return chosen

    def _share(self, usage: SlotUsage, waiting: Mapping[str, Iterable[Candidate]]) -> Shares:
        """Divide the slots among the accounts that have some or could use some."""
        fast = {name for name, counts in usage.accounts.items() if any(counts[kind] for kind in FAST)}
        slow = {name for name, counts in usage.accounts.items() if counts[SlotKind.SLOW]}
        for name, line in waiting.items():
            paces = {self._pace(each.lane) for each in line if self._room(each.lane, usage)}
            if Pace.SLOW in paces:
                slow.add(name)
            if paces - {Pace.SLOW}:
                fast.add(name)
        return Shares.among(len(usage.accounts.keys() | waiting.keys()), len(fast), len(slow))

    def _line_up(self, due: Iterable[Candidate]) -> dict[str, deque[Candidate]]:
        """Order each account's candidates: the first of each endpoint, then the second of each, and so on."""
        lanes: defaultdict[str, list[Candidate]] = defaultdict(list)
        for candidate in due:
            lanes[candidate.lane].append(candidate)
        lines: defaultdict[str, list[tuple[tuple[float, ...], Candidate]]] = defaultdict(list)
        for lane, candidates in lanes.items():
            turn = self._known.get(lane, _UNKNOWN).turn
            for place, candidate in enumerate(sorted(candidates, key=lambda each: (each.due_at, each.position))):
                rank = (place, turn, candidate.due_at, candidate.position)
                lines[candidate.account_id].append((rank, candidate))
        return {name: deque(candidate for _, candidate in sorted(line)) for name, line in lines.items()}

    def _next(self, line: deque[Candidate], usage: SlotUsage, shares: Shares) -> Candidate | None:
        while line:
            candidate = line.popleft()
            pace = self._pace(candidate.lane)
            if self._room(candidate.lane, usage) and shares.has_room(usage, candidate.account_id, pace):
                return candidate
        return None

    def _room(self, lane: str, usage: SlotUsage) -> int:
        most = ENDPOINT_PLACES if self._pace(lane) is Pace.PROVEN else 1
        return max(0, most - usage.lanes[lane])

    def _pace(self, lane: str) -> Pace:
        return self._known.get(lane, _UNKNOWN).pace

    def _make_slot(self, candidate: Candidate) -> WebhookSlot:
        return WebhookSlot(candidate.account_id, candidate.lane, KINDS[self._pace(candidate.lane)])


def _count(counts: Counter[T], name: T, number: int) -> None:
    counts[name] += number
    if not counts[name]:
        del counts[name]


def _remember(memory: OrderedDict[str, T], name: str, value: T) -> None:
    """Store a value, and drop the oldest if the memory is full."""
    memory[name] = value
    memory.move_to_end(name)
    if len(memory) > MAX_KNOWN:
        memory.popitem(last=False)
