"""What befalls the machines meanwhile, and how long the jobs of a dead or frozen worker wait for the next."""

import asyncio
import logging
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from fleet_machines import Machine, Machines

LEASE_SECONDS: Final = 4.0
LOOK_SECONDS: Final = 0.05
TAKEOVER_SECONDS: Final = 60.0
HELD: Final = (
    "SELECT jobs.id, jobs.epoch FROM jobs JOIN workers ON workers.id = jobs.owner "
    "WHERE jobs.done = 0 AND workers.name = %s"
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Takeovers:
    """Seconds from a worker's end to the claim of each of its jobs by another; apart those through an outage."""

    killed: list[float] = field(default_factory=list[float])
    frozen: list[float] = field(default_factory=list[float])
    disturbed: list[float] = field(default_factory=list[float])
    """The store was away, or there was nobody to take over for a while."""
    left: list[str] = field(default_factory=list[str])


class Troubles:
    """Strikes at random, but each kind as often as its share says."""

    def __init__(self, machines: Machines, chance: random.Random) -> None:
        self._machines = machines
        self._chance = chance
        self._errands: set[asyncio.Task[None]] = set()
        self._struck_at = 0.0
        """When the store was last away, or all workers were at once."""
        self.counts: Counter[str] = Counter()
        self.takeovers = Takeovers()
        self.drains: list[float] = []
        self.outages: list[float] = []

    # -- the course of it

    async def run(self, strikes: int, bounces: int, seconds: float) -> None:
        """Spread them over the time; returns when everything runs again."""
        kinds = [self._kinds()[number % len(self._kinds())] for number in range(strikes)]
        blows: list[Callable[[], Awaitable[None]]] = [*kinds]
        outages = [self._restart, self._short_outage, self._crash, self._long_outage]
        self._chance.shuffle(blows)
        for number in range(bounces):
            blows.insert(self._chance.randrange(len(blows) + 1), outages[number % len(outages)])
        gap = seconds / max(1, len(blows))
        for blow in blows:
            begun = time.monotonic()
            log.info("%s", blow.__name__.strip("_"))
            await blow()
            await asyncio.sleep(max(0.0, gap * self._chance.uniform(0.6, 1.4) - (time.monotonic() - begun)))
        await self.settle()

    def _kinds(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self.kill_worker,
            self.freeze_worker,
            self._kill_gateway,
            self.kill_worker,
            self._freeze_worker_short,
            self._freeze_gateway,
            self._drain_worker,
            self._drain_gateway,
        )

    async def settle(self) -> None:
        """Wait until everything that was struck is up again."""
        while self._errands:
            await asyncio.gather(*self._errands)

    def _later(self, errand: Any) -> None:
        task = asyncio.create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def _choose(self, machines: Sequence[Machine]) -> Machine | None:
        """One that runs; the last worker that does is spared, else there would be nobody to take over."""
        running = [each for each in machines if each.process is not None and not each.frozen]
        if not running or (running[0].is_worker and len(running) == 1):
            return None
        return self._chance.choice(running)

    # -- processes

    async def kill_worker(self) -> None:
        """End one by kill -9, and start it again after a while."""
        machine = self._choose(self._machines.workers)
        if machine is None:
            return
        self.counts["worker killed"] += 1
        held, at = await self._held(machine), time.monotonic()
        await machine.kill()
        self._later(self._await_takeover(held, at, self.takeovers.killed))
        self._later(self._revive(machine, self._chance.uniform(0.2, 3.0)))

    async def _kill_gateway(self) -> None:
        machine = self._choose(self._machines.gateways)
        if machine is not None:
            self.counts["gateway killed"] += 1
            await machine.kill()
            self._later(self._revive(machine, self._chance.uniform(0.2, 3.0)))

    async def freeze_worker(self) -> None:
        """Longer than the lease: its jobs are others' when it wakes up."""
        machine = self._choose(self._machines.workers)
        if machine is None:
            return
        self.counts["worker frozen beyond its lease"] += 1
        held, at = await self._held(machine), time.monotonic()
        machine.send(signal.SIGSTOP)
        self._later(self._await_takeover(held, at, self.takeovers.frozen))
        self._later(self._wake(machine, self._chance.uniform(LEASE_SECONDS + 2, LEASE_SECONDS * 4)))

    async def _freeze_worker_short(self) -> None:
        machine = self._choose(self._machines.workers)
        if machine is not None:
            self.counts["worker frozen for a moment"] += 1
            machine.send(signal.SIGSTOP)
            self._later(self._wake(machine, self._chance.uniform(0.3, LEASE_SECONDS * 0.6)))

    async def _freeze_gateway(self) -> None:
        machine = self._choose(self._machines.gateways)
        if machine is not None:
            self.counts["gateway frozen"] += 1
            machine.send(signal.SIGSTOP)
            self._later(self._wake(machine, self._chance.uniform(0.5, 12.0)))

    async def _drain_worker(self) -> None:
        await self._drain(self._choose(self._machines.workers))

    async def _drain_gateway(self) -> None:
        await self._drain(self._choose(self._machines.gateways))

    async def _drain(self, machine: Machine | None) -> None:
        if machine is not None and machine.steady_since is not None:  # one that just starts is not yet listening
            self.counts[f"{'worker' if machine.is_worker else 'gateway'} restarted"] += 1
            self._later(self._restart_one(machine))

    async def _restart_one(self, machine: Machine) -> None:
        code, seconds = await machine.stop()
        self.drains.append(seconds)
        if code:
            self._machines.wrong.append(f"{machine.name} ended with {code} on SIGTERM")
        await machine.start()

    async def _revive(self, machine: Machine, pause: float) -> None:
        await asyncio.sleep(pause)
        await machine.start()

    async def _wake(self, machine: Machine, seconds: float) -> None:
        await asyncio.sleep(seconds)
        machine.send(signal.SIGCONT)

    # -- the store

    async def _restart(self) -> None:
        await self._bounce("store restarted", signal.SIGINT, 0.0)

    async def _short_outage(self) -> None:
        await self._bounce("store away for 1 s", signal.SIGINT, 1.0)

    async def _long_outage(self) -> None:
        await self._bounce("store away for 8 s", signal.SIGINT, 8.0)

    async def _crash(self) -> None:
        await self._bounce("store killed", signal.SIGQUIT, 0.0)

    async def _bounce(self, name: str, how: signal.Signals, seconds: float) -> None:
        self.counts[name] += 1
        begun = self._struck_at = time.monotonic()
        await asyncio.to_thread(self._machines.postgres.stop, how)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._machines.postgres.start)
        self._struck_at = time.monotonic()
        self.outages.append(self._struck_at - begun)

    # -- how long it takes

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(
            self._machines.postgres.url(), autocommit=True, connect_timeout=3, application_name="ordeal"
        )

    async def _held(self, machine: Machine) -> dict[str, int]:
        """What a worker has at this moment, and in which epoch."""
        try:
            async with await self._connect() as connection:
                return dict(await (await connection.execute(HELD, (machine.worker_name,))).fetchall())
        except psycopg.Error:
            return {}

    async def _await_takeover(self, held: dict[str, int], at: float, found: list[float]) -> None:
        """Until each has another owner, or was ended by one."""
        waiting, disturbed = dict(held), False
        while waiting and time.monotonic() - at < TAKEOVER_SECONDS:
            disturbed = disturbed or self._struck_at > at - LEASE_SECONDS * 2 or not self._has_steady_worker()
            for job_id in await self._taken(waiting):
                seconds = time.monotonic() - at
                (self.takeovers.disturbed if disturbed else found).append(seconds)
                del waiting[job_id]
            await asyncio.sleep(LOOK_SECONDS)
        self.takeovers.left += () if disturbed else waiting

    def _has_steady_worker(self) -> bool:
        """One that may sweep: it has renewed its lease for as long as a lease is."""
        since = (worker.steady_since for worker in self._machines.workers)
        return any(each is not None and time.monotonic() - each > LEASE_SECONDS + 1 for each in since)

    async def _taken(self, waiting: dict[str, int]) -> list[str]:
        try:
            async with await self._connect() as connection:
                rows = await (
                    await connection.execute("SELECT id, epoch, done FROM jobs WHERE id = ANY(%s)", (list(waiting),))
                ).fetchall()
        except psycopg.Error:
            return []
        return [job_id for job_id, epoch, done in rows if done or epoch > waiting[job_id]]
