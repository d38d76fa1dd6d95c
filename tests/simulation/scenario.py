"""One world from its seed to its end: processes, callers, faults, and what must be true all along."""

import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from simulation.callers import Caller
from simulation.chat import side
from simulation.chat.side import ChatSide
from simulation.disk import Disk
from simulation.invariants import Invariants
from simulation.machine import ObjectStore
from simulation.network import Network
from simulation.process import Process, Surroundings
from simulation.receivers import Receiver
from simulation.store import PostgresStore, SharedStore, SqliteStore
from simulation.vendors import VendorDouble
from simulation.world import EPOCH, World
from sqlalchemy import Connection

from penstock.accounts.administration import ensure_account, issue_key
from penstock.domain import ids
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.budgets import Period
from penstock.domain.money import parse_usd
from penstock.gateway import Gateway
from penstock.settings.tables import Settings, load
from penstock.store import connect

CONFIG: Final = """
database_url = "{database_url}"
[vendors.north]
type = "sim"
base_url = "http://north.example.com"
max_concurrent = 20
[vendors.south]
type = "sim"
base_url = "http://south.example.com"
max_concurrent = 8
[[models]]
id = "sim_text_to_video"
routes = [{{vendor = "north"}}, {{vendor = "south", order = 2}}]
[[models]]
id = "sim_image_to_model"
routes = [{{vendor = "south"}}, {{vendor = "north", order = 2}}]
[[prices]]
model = "sim_text_to_video"
price = {{per_job = "0.01"}}
[[prices]]
model = "sim_image_to_model"
price = {{per_job = "0.03"}}
[jobs]
run_timeout = "30m"
start_timeout = "30m"
retention = "10m"
"""
ACCOUNTS: Final = ("ash", "birch", "cedar")
HOOK: Final = "https://hooks.example.com/{}"
HEAL_SECONDS: Final = 300.0
"""The longest time after the last fault in which every job must end."""


@cache
def _load(database_url: str) -> Settings:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "penstock.toml"
        config.write_text(CONFIG.format(database_url=database_url) + side.CONFIG)
        return load(config, {}, {})


def _found(connection: Connection, seed: int) -> dict[str, str]:
    """Make the accounts with their keys. Return the keys."""
    dice = random.Random(f"{seed}/accounts")
    made: dict[str, str] = {}
    for name in ACCOUNTS:
        account = ensure_account(connection, Actor.CLI, name, EPOCH)
        caps = {"ash": (), "birch": ("2.00",), "cedar": (f"{dice.uniform(0.05, 1.0):.2f}",)}[name]
        allowances = tuple(Allowance(period=Period.TOTAL, cap=parse_usd(cap)) for cap in caps)
        made[name], _ = issue_key(connection, Actor.CLI, account.id, KeyWish(name="key", allowances=allowances), EPOCH)
    return made


@cache
def _sqlite_template() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/template.db"
        engine = connect.make_engine(url)
        connect.prepare(engine)
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = DELETE")
            data: bytes = connection.connection.driver_connection.serialize()  # type: ignore[union-attr]
        engine.dispose()
        return data


class Scenario:
    """A seeded run: a fault phase, then a phase without faults in which everything must end well."""

    def __init__(
        self,
        seed: int,
        *,
        database_url: str = "sqlite:////simulated/penstock.db",
        jobs: int = 60,
        chat: int = 32,
        seconds: float = 40.0,
        only: frozenset[str] | None = None,
    ) -> None:
        self.world = world = World(seed, only=only)
        self._jobs, self._chat_requests = _divide(seed, jobs, chat)
        self._seconds = seconds
        random.seed(seed)
        self._former_ids = ids.use(ids.IdSource(self._nanoseconds, random.Random(f"{seed}/ids").randbytes))
        is_file = connect.is_file(database_url)
        self.settings = _load(database_url).model_copy(update={"data": Path("/simulated")})
        self.store: SharedStore = (
            SqliteStore(world, _sqlite_template()) if is_file else PostgresStore(world, database_url)
        )
        keys, _ = self.store.transact(lambda connection: _found(connection, seed), commit=True)
        chat_keys, _ = self.store.transact(lambda connection: side.found(connection, seed), commit=True)
        self.objects = ObjectStore(world)
        self.invariants = Invariants(world, self.store, self.objects)
        doubles = {name: VendorDouble(world, name, self.invariants.check_order) for name in ("north", "south")}
        receivers = {HOOK.format(name): Receiver(HOOK.format(name), world) for name in ACCOUNTS}
        self.network = world.network = Network(world)
        self._around = Surroundings(
            world, self.network, self.store, self.objects, Disk(world), doubles, receivers, is_file
        )
        self._dice = world.chance("plan")
        self.processes: list[Process] = []
        self._names = iter(range(1_000_000))
        for port in range(1 + self._dice.randrange(3)):
            self._start(port)
        self.callers = [Caller(world, name, key, self._ports, webhook=HOOK.format(name)) for name, key in keys.items()]
        for caller in self.callers:
            caller.others = self.callers
        self.chat = ChatSide(world, self.network, self.store, chat_keys, self._ports, self._gateways)
        self.invariants.more_audits.append(self.chat.audit)
        self._living: list[Any] = []

    def _nanoseconds(self) -> int:
        return int(self.world.wall() * 1e9)

    # -- processes

    def _ports(self) -> list[int]:
        return [process.port for process in self.processes if process.is_ready]

    def _gateways(self) -> list[Gateway]:
        return [process.gateway for process in self.processes if process.is_ready and process.gateway is not None]

    def _start(self, port: int) -> None:
        process = Process(self._around, self.settings, f"gateway {port}.{next(self._names)}", port, self._bury)
        self.processes.append(process)

    def _bury(self, process: Process, reason: str) -> None:
        self.world.counts["deaths"] += 1
        self.world.note(f"{process.loop.name}: {reason}")
        self.processes.remove(process)
        if not process.has_stopped:
            self.world.later(0.2 + 3.0 * self._dice.random(), self._start, process.port)

    # -- the run

    def run(self) -> None:
        """Run the whole scenario; raise Violation with the first broken rule."""
        try:
            self._plan_kills()
            share = self._jobs // len(self.callers)
            self._living = [self.world.spawn(caller.live(share, self._seconds)) for caller in self.callers if share]
            self._living += self.chat.begin(self._chat_requests, self._seconds)
            self.world.run(self._seconds * 1.5)
            self._heal()
            self._end()
        finally:
            self.close()

    def _plan_kills(self) -> None:
        for number in range(self._dice.randrange(1 + int(self._seconds / 3))):
            self.world.later(self._dice.random() * self._seconds, self._kill, number, self._dice.random())

    def _kill(self, number: int, thrown: float) -> None:
        living = [process for process in self.processes if not process.loop.is_dead]
        if living and self.world.allows(f"kill#{number}", "kill -9"):
            victim = living[int(thrown * len(living))]
            victim.loop.steps_left = int(thrown * 1000) % 50

    def _heal(self) -> None:
        self.world.has_faults = False
        bound = self.world.now + HEAL_SECONDS
        self.world.run(bound, lambda: all(task.done() for task in self._living) and not self.invariants.open_jobs())

    def _end(self) -> None:
        left = [task for task in self._living if not task.done()]
        if left:
            self.world.violate("every call is answered", repr(left))
        for task in self._living:
            if task.done() and task.exception() is not None:
                raise task.exception()
        if self._chat_requests:
            self.chat.settle()
            self.chat.check_end()
        self.invariants.check_end(self.callers)
        self.world.run(self.world.now + 0.001)

    def close(self) -> None:
        """Leave nothing behind."""
        self.world.is_over = True
        for process in list(self.processes):
            process.loop.is_dead = True
        ids.use(self._former_ids)
        self.store.close()


def _divide(seed: int, jobs: int, chat: int) -> tuple[int, int]:
    """Return the jobs and chat requests of a world: most have both, some have only one of them."""
    kind = random.Random(f"{seed}/kind").random()
    if kind < 0.15 and chat:
        return 0, 2 * chat
    return jobs, chat if kind < 0.7 else 0
