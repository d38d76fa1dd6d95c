"""One world from its seed to its end: processes, callers, faults, and what must be true all along."""

import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from simulation.callers import Caller
from simulation.invariants import Invariants
from simulation.machine import ObjectStore
from simulation.network import Network
from simulation.process import Process, Surroundings
from simulation.receivers import Receiver
from simulation.running.sources import SeededSources
from simulation.store import PostgresStore, SharedStore, SqliteStore
from simulation.vendors import VendorDouble
from simulation.world import EPOCH, World
from sqlalchemy import Connection

from penstock.accounts.administration import ensure_account, issue_key
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.budgets import Period
from penstock.domain.money import parse_usd
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
        config.write_text(CONFIG.format(database_url=database_url))
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
    with tempfile.TemporaryDirectory() as folder, SeededSources("template", lambda: 0.0):
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
        seconds: float = 40.0,
        only: frozenset[str] | None = None,
    ) -> None:
        self.world = world = World(seed, only=only)
        self._jobs, self._seconds = jobs, seconds
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-simulation-", dir=_memory_folder()))
        self._sources = SeededSources(seed, lambda: world.now)
        is_file = connect.is_file(database_url)
        self.settings = _load(database_url).model_copy(update={"data": self._folder})
        self.store: SharedStore = (
            SqliteStore(world, _sqlite_template()) if is_file else PostgresStore(world, database_url)
        )
        keys, _ = self.store.transact(lambda connection: _found(connection, seed), commit=True)
        self.objects = ObjectStore(world)
        self.invariants = Invariants(world, self.store, self.objects)
        doubles = {name: VendorDouble(world, name, self.invariants.check_order) for name in ("north", "south")}
        receivers = {HOOK.format(name): Receiver(HOOK.format(name), world) for name in ACCOUNTS}
        self.network = world.network = Network(world)
        self._around = Surroundings(world, self.network, self.store, self.objects, doubles, receivers, is_file)
        self._dice = world.chance("plan")
        self.processes: list[Process] = []
        self._names = iter(range(1_000_000))
        for port in range(1 + self._dice.randrange(3)):
            self._start(port)
        self.callers = [Caller(world, name, key, self._ports, webhook=HOOK.format(name)) for name, key in keys.items()]
        for caller in self.callers:
            caller.others = self.callers
        self._living: list[Any] = []

    # -- processes

    def _ports(self) -> list[int]:
        return [process.port for process in self.processes if process.is_ready]

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
            share = max(1, self._jobs // len(self.callers))
            self._living = [self.world.spawn(caller.live(share, self._seconds)) for caller in self.callers]
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
        self.invariants.check_end(self.callers)
        self.world.run(self.world.now + 0.001)

    def close(self) -> None:
        """Leave nothing behind."""
        self.world.is_over = True
        for process in list(self.processes):
            process.loop.is_dead = True
            for journal in process._journals:
                journal.die()
            process._leadership.release()
        self._sources.close()
        self.store.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _memory_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108
