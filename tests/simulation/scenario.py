"""One world from its seed to its end: processes, callers, faults, and what must be true all along."""

import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from simulation.acts.chains import check_chains, send_chains
from simulation.callers import Caller
from simulation.chat import side
from simulation.chat.side import ChatSide
from simulation.disk import Disk
from simulation.faults import Faults, Stage, draw_character
from simulation.invariants import Invariants
from simulation.machine import ObjectStore
from simulation.network import Network
from simulation.process import Process, Surroundings
from simulation.receivers import Receiver
from simulation.rules.calm import Calm
from simulation.rules.endings import EndRules
from simulation.rules.money import TAG
from simulation.running.sources import SeededSources
from simulation.store import PostgresStore, SharedStore, SqliteStore
from simulation.vendors import VendorDouble
from simulation.world import EPOCH, World
from sqlalchemy import Connection

from penstock.accounts.administration import ensure_account, issue_key
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.api_keys import ApiKey
from penstock.domain.budgets import Period
from penstock.domain.money import parse_usd
from penstock.gateway import Gateway
from penstock.settings.tables import Settings, load
from penstock.store import connect

CONFIG: Final = """
database_url = "{database_url}"
{vendors}
[[models]]
id = "sim_text_to_video"
routes = [{routes}]
[[models]]
id = "sim_image_to_model"
routes = [{routes_back}]
[[prices]]
model = "sim_text_to_video"
price = {{per_job = "{price}"}}
[[prices]]
model = "sim_image_to_model"
price = {{per_job = "0.03"}}
[jobs]
run_timeout = "30m"
start_timeout = "30m"
retention = "{retention:g}s"
file_retention = "20m"
[provenance]
results = "unsigned"
"""
VENDOR: Final = """
[vendors.{name}]
type = "sim"
base_url = "http://{name}.example.com"
max_concurrent = {seats}
poll_seconds = 1.0
api_key = "{key}"
"""
SEATS: Final = (("north", 20), ("south", 3))
"""Orders that each vendor may work on at once."""
RETENTION_SECONDS: Final = 600.0
ACCOUNTS: Final = ("ash", "birch", "cedar")
HOOK: Final = "https://hooks.example.com/{}"
STOP_SECONDS: Final = 120.0
PATIENCE_SECONDS: Final = 5000.0
"""Time in which all outputs pass their retention and are swept, and late webhooks are sent again."""
PATIENT_SEEDS: Final = 25
"""Every so many seeds wait that long, since that takes its time."""
HEAL_SECONDS: Final = 300.0
"""The longest time in which every job must end, after the last fault and the last job that got a vendor's seat."""


@cache
def _load(
    database_url: str, seats: tuple[tuple[str, int], ...] = SEATS, price: str = "0.01", key: str = "key-1"
) -> Settings:
    names = [name for name, _ in seats]
    text = CONFIG.format(
        database_url=database_url,
        vendors="".join(VENDOR.format(name=name, seats=most, key=key) for name, most in seats),
        routes=_routes(names),
        routes_back=_routes(names[::-1]),
        price=price,
        retention=RETENTION_SECONDS,
    )
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "penstock.toml"
        config.write_text(text + side.CONFIG)
        return load(config, {}, {}).model_copy(update={"data": Path("/simulated")})


def _routes(names: list[str]) -> str:
    return ", ".join(f'{{vendor = "{name}", order = {order}}}' for order, name in enumerate(names, 1))


def _vary(dice: random.Random, database_url: str) -> Settings:
    """Return changed settings: other seats, another price or credential, a vendor that is not configured."""
    without = dice.choice((None, None, "north", "south"))
    seats = tuple((name, dice.choice((1, most, most * 2))) for name, most in SEATS if name != without)
    return _load(database_url, seats, dice.choice(("0.01", "0.02", "0.005")), dice.choice(("key-1", "key-2")))


def _found(connection: Connection, seed: int) -> dict[str, tuple[str, ApiKey]]:
    """Make the accounts with their keys. Return the keys."""
    dice = random.Random(f"{seed}/accounts")
    made: dict[str, tuple[str, ApiKey]] = {}
    for name in ACCOUNTS:
        account = ensure_account(connection, Actor.CLI, name, EPOCH)
        caps = {"ash": (), "birch": ("2.00",), "cedar": (f"{dice.uniform(0.05, 1.0):.2f}",)}[name]
        allowances = tuple(Allowance(period=Period.TOTAL, cap=parse_usd(cap)) for cap in caps)
        wish = KeyWish(name="key", allowances=allowances, tags=(TAG,) if name == "cedar" else ())
        made[name] = issue_key(connection, Actor.CLI, account.id, wish, EPOCH)
    side.limit_tag(connection, made["cedar"][1], Period.TOTAL, random.Random(f"{seed}/tags").uniform(0.05, 1.0))
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
        chat: int = 32,
        chains: int = 0,
        seconds: float = 40.0,
        only: frozenset[str] | None = None,
    ) -> None:
        self.world = world = World(seed, only=only)
        self._jobs, self._chat_requests = _divide(seed, jobs, chat)
        self._seconds = seconds
        self._chains = chains
        self._sources = SeededSources(seed, lambda: world.now)
        is_file = connect.is_file(database_url)
        self.settings = _load(database_url)
        self.store: SharedStore = (
            SqliteStore(world, _sqlite_template()) if is_file else PostgresStore(world, database_url)
        )
        keys, _ = self.store.transact(lambda connection: _found(connection, seed), commit=True)
        chat_keys, _ = self.store.transact(lambda connection: side.found(connection, seed), commit=True)
        chat_keys["cedar"] = keys["cedar"]  # its jobs and its chat share one budget
        self.objects = ObjectStore(world)
        self.endings = EndRules(world, self.store, self.objects)
        receivers = {HOOK.format(name): Receiver(HOOK.format(name), world) for name in ACCOUNTS}
        character = draw_character(seed)
        world.has_skew = not {"skew", "clock jump"}.isdisjoint(character.kinds)
        limits = {name: most * (2 if "reload" in character.kinds else 1) for name, most in SEATS}
        self.invariants = Invariants(world, self.store, self.objects, receivers, limits, RETENTION_SECONDS)
        doubles = {name: VendorDouble(world, name, self.invariants.check_order) for name in ("north", "south")}
        self.network = world.network = Network(world)
        self._around = Surroundings(
            world, self.network, self.store, self.objects, Disk(world), doubles, receivers, is_file
        )
        self._dice = world.chance("plan")
        self.processes: list[Process] = []
        stage = Stage(
            world, self._around, self.processes, lambda dice: _vary(dice, database_url), self._use, self.settings
        )
        self.faults = Faults(stage, character)
        self._names = iter(range(1_000_000))
        for port in range(1 + self._dice.randrange(3)):
            self._start(port)
        self.callers = [
            Caller(world, name, text, self._ports, key.account_id, webhook=HOOK.format(name))
            for name, (text, key) in keys.items()
        ]
        for caller in self.callers:
            caller.others = self.callers
        self.chat = ChatSide(world, self.network, self.store, chat_keys, self._ports, self._gateways)
        self.invariants.more_audits.append(self.chat.audit)
        self.invariants.commit_checks += [self.chat.check_commit] if self._chat_requests else []
        self._living: list[Any] = []
        self.is_ending = False
        self.invariants.pace.is_calm = self.faults.character.is_calm
        self.invariants.pace.seats = dict(SEATS)
        self._patience = PATIENCE_SECONDS if seed % PATIENT_SEEDS == 0 else 0.0

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
        if process.has_stopped:
            self.endings.check_stopped(process)
        if not self.is_ending:
            self.world.later(0.2 + 3.0 * self._dice.random(), self._start, process.port)

    # -- the run

    def run(self) -> None:
        """Run the whole scenario; raise Violation with the first broken rule."""
        try:
            self.faults.plan(self._seconds)
            share = self._jobs // len(self.callers)
            self._living = [self.world.spawn(caller.live(share, self._seconds)) for caller in self.callers if share]
            if self._chains:
                chains = (send_chains(caller, self._chains, self._seconds) for caller in self.callers)
                self._living += [self.world.spawn(chain) for chain in chains]
            self._living += self.chat.begin(self._chat_requests, self._seconds)
            self.world.run(self._seconds * 1.5)
            self._heal()
            self._end()
        finally:
            self.close()

    def _use(self, settings: Settings) -> None:
        self.settings = settings

    def _heal(self) -> None:
        self.world.is_healed = True
        self.world.calm_since = self.world.wall()
        self.faults.heal()
        self.invariants.pace.watch()
        pace = self.invariants.pace
        while not self._is_quiet() and self.world.now < pace.seated_at + HEAL_SECONDS:
            self.world.run(pace.seated_at + HEAL_SECONDS, self._is_quiet)

    def _is_quiet(self) -> bool:
        return not self.invariants.has_open_jobs and all(task.done() for task in self._living)

    def _end(self) -> None:
        left = [task for task in self._living if not task.done()]
        if left:
            self.world.violate("every call is answered", repr(left))
        for task in self._living:
            if task.done() and task.exception() is not None:
                raise task.exception()
        if self._chat_requests:
            self.chat.settle()
            self.chat.check_end(self.faults.character.kinds)
        Calm(self.world, self.callers, self.objects, self._administer).run(self._retire_leader)
        self.world.run(self.world.now + self._patience)
        check_chains(self.world, self.store)
        self.invariants.check_end(self.callers, is_strict=self.faults.character.is_orderly)
        self.endings.check_webhooks(self._around.receivers, is_patient=self._patience > 0)
        self.endings.check_objects(token for caller in self.callers for token in caller.files)
        if self._patience:
            self.endings.check_collected()
        self._stop_all()

    def _stop_all(self) -> None:
        """Stop all processes as an operator does, and check that nothing is left."""
        self.is_ending = True
        for process in list(self.processes):
            process.stop()
        self.world.run(self.world.now + STOP_SECONDS, lambda: not self.processes)
        if self.processes:
            self.world.violate("every process stops", repr([process.loop.name for process in self.processes]))
        self.endings.check_all_stopped()
        self.world.run(self.world.now + 0.001)

    def _administer(self, change: Callable[[Connection], Any]) -> Any:
        """Let the operator change the store."""
        return self.store.transact(change, commit=True)[0]

    def _retire_leader(self) -> Process | None:
        """Stop the process that runs the jobs for good. Return it, or None if there is no other."""
        leader = next((process for process in self.processes if process.is_leading), None)
        if leader is None or len(self._ports()) < 2:
            return None
        self.is_ending = True
        leader.stop()
        return leader

    def close(self) -> None:
        """Leave nothing behind."""
        self.world.is_over = True
        for process in list(self.processes):
            process.loop.is_dead = True
        self._sources.close()
        self.store.close()


def _divide(seed: int, jobs: int, chat: int) -> tuple[int, int]:
    """Return the jobs and chat requests of a world: most have both, some have only one of them."""
    kind = random.Random(f"{seed}/kind").random()
    if kind < 0.15 and chat:
        return 0, 2 * chat
    return jobs, chat if kind < 0.7 else 0
