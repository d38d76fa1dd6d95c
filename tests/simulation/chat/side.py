"""The chat side of a world: its accounts, vendors, callers and checks."""

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from simulation.chat.callers import RUSH_NUMBER, ChatCaller
from simulation.chat.invariants import PRICES, ChatInvariants, cost_of
from simulation.chat.keepers import RETENTION, Keeper
from simulation.chat.kept_rules import KeptRules
from simulation.chat.vendors import ChatBook, ChatDouble
from simulation.network import Network
from simulation.rules.money import TAG
from simulation.store import SharedStore
from simulation.world import EPOCH, World
from sqlalchemy import Connection

from penstock.accounts.administration import AccountTag, ensure_account, issue_key, set_budget
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.api_keys import NO_LIMITS, ApiKey, Limits
from penstock.domain.budgets import Period, own_tag
from penstock.domain.money import parse_usd
from penstock.gateway import Gateway

CONFIG: Final = f"""
[chat]
heartbeat_seconds = 3
response_retention = "{RETENTION}"
[vendors.east]
type = "openai_compatible"
base_url = "http://east.example.com/v1"
first_byte_seconds = 12
idle_seconds = 10
total_seconds = 60
[vendors.west]
type = "openai_compatible"
base_url = "http://west.example.com/v1"
first_byte_seconds = 12
idle_seconds = 10
total_seconds = 60
max_concurrent = 4
[[models]]
id = "sim-chat"
kind = "chat"
routes = [{{vendor = "east", model = "m"}}, {{vendor = "west", model = "m"}}]
""" + "".join(
    f'[[prices]]\nmodel = "sim-chat"\nvendor = "{name}"\n'
    f'price = {{input_per_million = "{asked}", output_per_million = "{answered}"}}\n'
    for name, (asked, answered) in PRICES.items()
)
ROOM: Final = """
SELECT b.cap - p.spent - COALESCE((
    SELECT SUM(h.amount) FROM holds h WHERE h.owner = b.owner AND h.period = b.period AND h.is_lease = 0), 0)
FROM budgets b JOIN purses p ON p.owner = b.owner AND p.period = b.period WHERE b.owner IN (%s, %s)
"""
"""The money of each budget that is neither spent nor held for jobs. What chat has leased comes back."""
RUSHING: Final = "fir"
"""The account whose rate and streams are limited."""
RUSHES: Final = 3
"""Rushes in the time of faults."""
RUSH_SECONDS: Final = 60.0
KEEPING: Final = frozenset({"dogwood", "gorse"})
"""The accounts that have responses kept."""
KEPT_SHARE: Final = 4
"""Chat requests of an account for each response that it has kept."""
SETTLE_SECONDS: Final = 300.0
"""The longest time in which everything is charged and every lease has come back."""


def found(connection: Connection, seed: int) -> dict[str, tuple[str, ApiKey]]:
    """Make the accounts of chat. Return their keys."""
    dice = random.Random(f"{seed}/chat accounts")
    wishes = {
        "dogwood": ((), NO_LIMITS),
        "elm": (((Period.TOTAL, dice.uniform(0.02, 1.0)), (Period.MONTH, dice.uniform(0.02, 1.0))), NO_LIMITS),
        "fir": ((), Limits(requests_per_minute=dice.randrange(6, 24), concurrent_streams=dice.randrange(1, 4))),
        "gorse": (((Period.DAY, dice.uniform(0.3, 2.0)),), Limits(tokens_per_minute=dice.randrange(300, 5000))),
    }
    made: dict[str, tuple[str, ApiKey]] = {}
    for name, (caps, limits) in wishes.items():
        account = ensure_account(connection, Actor.CLI, name, EPOCH)
        allowances = tuple(Allowance(period=period, cap=parse_usd(f"{cap:.4f}")) for period, cap in caps)
        wish = KeyWish(name="key", allowances=allowances, limits=limits, tags=(TAG,) if name == "elm" else ())
        made[name] = issue_key(connection, Actor.CLI, account.id, wish, EPOCH)
    limit_tag(connection, made["elm"][1], Period.MONTH, random.Random(f"{seed}/tags of chat").uniform(0.02, 1.0))
    return made


def limit_tag(connection: Connection, key: ApiKey, period: Period, amount: float) -> None:
    """Give the fixed tag of a key a budget."""
    tag = AccountTag(key.account_id, key.account, TAG)
    cap = parse_usd(f"{amount:.4f}")
    set_budget(connection, Actor.CLI, tag, Allowance(period=period, cap=cap), EPOCH)


class ChatSide:
    """Everything about chat in one world."""

    def __init__(
        self,
        world: World,
        network: Network,
        store: SharedStore,
        keys: dict[str, tuple[str, ApiKey]],
        ports: Callable[[], Sequence[int]],
        gateways: Callable[[], Iterable[Gateway]],
    ) -> None:
        self._world = world
        self._store = store
        self._book = ChatBook()
        for name in PRICES:
            double = ChatDouble(world, name, self._book)
            network.listen(f"{name}.example.com", 80, world.outside, double.accept)
        self._keys = {name: key for name, (_, key) in keys.items()}
        self.callers = [ChatCaller(world, name, text, ports, self._book) for name, (text, _) in keys.items()]
        self.keepers = [Keeper(world, caller) for caller in self.callers if caller.account in KEEPING]
        for keeper in self.keepers:
            keeper.strangers = [each for each in self.keepers if each is not keeper]
        self._kept_rules = KeptRules(world, store)
        self._invariants = ChatInvariants(world, store, self._book, self._keys, gateways)
        self.audit = self._invariants.audit
        self.check_commit = self._invariants.check_commit

    def begin(self, requests: int, seconds: float) -> "list[asyncio.Task[Any]]":
        """Start the callers."""
        share = requests // len(self.callers)
        begun = [self._world.spawn(caller.live(share, seconds)) for caller in self.callers if share]
        begun += [self._world.spawn(self._rush_in_time(caller, seconds)) for caller in self._rushing() if share]
        kept = -(-share // KEPT_SHARE)
        return begun + [self._world.spawn(keeper.live(kept, seconds)) for keeper in self.keepers if kept]

    def _rushing(self) -> list[ChatCaller]:
        return [caller for caller in self.callers if caller.account == RUSHING]

    async def _rush_in_time(self, caller: ChatCaller, seconds: float) -> None:
        """Let a caller rush while there are faults, unless this replay leaves it out."""
        dice = self._world.chance(f"rush of {caller.account}")
        for number in range(RUSHES):
            await asyncio.sleep(seconds / RUSHES * dice.random())
            if self._world.allows(f"chat caller {caller.account} rushes#{number}", f"{caller.account} rushes"):
                await caller.rush(RUSH_NUMBER + 1 + number)

    def settle(self) -> None:
        """Let one caller rush, and every caller ask once more. Then wait until all is charged and no lease is left."""
        rushes = [self._world.spawn(caller.rush(RUSH_NUMBER)) for caller in self._rushing()]
        self._world.run(self._world.now + RUSH_SECONDS, lambda: all(task.done() for task in rushes))
        rushes += [self._world.spawn(keeper.linger()) for keeper in self.keepers]
        probes = rushes + [self._world.spawn(caller.probe(self._payer(caller.account))) for caller in self.callers]
        bound = self._world.now + SETTLE_SECONDS
        self._world.run(bound, lambda: all(task.done() for task in probes))
        while self._world.now < bound and not (self._invariants.is_settled() and self._kept_rules.is_settled()):
            self._world.run(self._world.now + 2.0)
        for task in probes:
            if not task.done():
                self._world.violate("every call is answered", repr(task))
            elif (error := task.exception()) is not None:
                raise error

    def _payer(self, account: str) -> Callable[[int], bool]:
        owner, tag = self._keys[account].lineage, own_tag(self._keys[account].account_id, TAG)
        need = 2 * max(cost_of(vendor, 100, 10) for vendor in PRICES)

        def can_pay(_tokens: int) -> bool:
            rooms = self._store.ask(ROOM, owner, tag)
            return all(room > need for (room,) in rooms)

        return can_pay

    def check_end(self, kinds: Collection[str]) -> None:
        """Check every request. `kinds` are the planned faults of the world."""
        self._invariants.check_end(self.callers, kinds)
        self._kept_rules.check_end(self.keepers, kinds)
