"""One simulated process: a whole gateway with its own loop, clocks and ports, which may die or freeze at any step."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from simulation.disk import Disk, VirtualJournals, VirtualLeadership
from simulation.machine import ObjectStore, VirtualAssets, VirtualPool
from simulation.network import Network
from simulation.receivers import Receiver, VirtualFetcher
from simulation.store import SharedStore, VirtualDatabase
from simulation.vendors import VendorClient, VendorDouble
from simulation.virtual_loop import DeadProcess, VirtualLoop
from simulation.world import World
from uvicorn.server import ServerState

import penstock.web.routes  # noqa: F401  loaded here, as no test waits for a thread to load it
from penstock.clocks import Clocks
from penstock.dispatch.leadership import Appointment
from penstock.errors import StoreUnavailable
from penstock.gateway import Gateway
from penstock.ports import Ports
from penstock.settings.tables import Settings
from penstock.web.app import create_app
from penstock.web.server.connection import GuardedConnection
from penstock.web.server.connection_limits import Doorman
from penstock.web.server.head_cache import Heads


@dataclass
class Surroundings:
    """What all processes of a world share."""

    world: World
    network: Network
    store: SharedStore
    objects: ObjectStore
    disk: Disk
    doubles: Mapping[str, VendorDouble]
    receivers: Mapping[str, Receiver]
    is_alone: bool
    """True on SQLite: one process at a time runs the jobs."""
    version: int = 0
    """The version of the code of processes that start now."""


class Process:
    """A gateway process, from its start to its death."""

    def __init__(
        self, around: Surroundings, settings: Settings, name: str, port: int, on_death: "Callable[[Process, str], None]"
    ) -> None:
        self.around = around
        self.world = around.world
        self.settings = settings
        self.port = port
        self.loop = VirtualLoop(around.world, name)
        self.loop.on_kill = partial(self.kill, "killed")
        self.skew = 0.0
        """Seconds by which the wall clock of this process differs from the true one."""
        self.gateway: Gateway | None = None
        self.is_ready = False
        self.is_stopping = False
        self.has_stopped = False
        self.assets = VirtualAssets(around.objects, self.loop, self.kill)
        self.pools: list[VirtualPool] = []
        self.client = VendorClient(around.world, self.loop, around.doubles)
        self.journals = VirtualJournals(around.disk, self.loop, self.kill)
        self._leadership: Any = (
            VirtualLeadership(around.disk, self.loop)
            if around.is_alone
            else Appointment(is_held=settings.jobs.run == "here")
        )
        self._on_death = on_death
        self._state = ServerState()
        self.main: Any = None
        self.stopping: Any = None
        self.database = VirtualDatabase(around.store, self.loop, self.kill)
        self.database.version = around.version
        self.loop.call_soon(self._begin)

    def _begin(self) -> None:
        self.main = self.loop.create_task(self._run(), name=f"main of {self.loop.name}")

    async def _run(self) -> None:
        ports = Ports(
            open_database=self._open_database,
            open_assets=self._open_assets,
            open_pool=self._open_pool,
            open_http_client=self._open_client,
            open_fetcher=self._open_fetcher,
            open_journals=self._open_journals,
            survey=_nothing,
        )
        clocks = Clocks(self.wall, self.loop.time)
        settings = self.settings
        try:
            self.gateway = await Gateway.open(settings, self._leadership, ports, clocks=clocks)
        except Exception as error:  # noqa: BLE001  as on a real machine: the process ends, and is started again
            self.kill(f"did not start: {error!r}")
            return
        self._listen(self.gateway)
        self.is_ready = True
        if self.settings is not settings:  # they changed meanwhile
            self.reload(self.settings)

    def _listen(self, gateway: Gateway) -> None:
        config = uvicorn.Config(create_app(gateway), log_config=None, access_log=False, timeout_keep_alive=75)
        config.load()
        served = type("Served", (GuardedConnection,), {"doorman": Doorman(), "heads": Heads()})
        factory = partial(served, config=config, server_state=self._state, app_state={}, _loop=self.loop)
        self.around.network.listen("gateway", self.port, self.loop, factory)

    @property
    def is_leading(self) -> bool:
        """Whether this process runs the jobs."""
        return self.is_ready and self._leadership.is_held

    def wall(self) -> float:
        """Return this machine's idea of the time."""
        return self.world.wall() + self.skew

    # -- ports

    async def _open_database(self, _url: str) -> Any:
        return self.database

    async def _open_assets(self, _url: str, _downloads: Path) -> Any:
        return self.assets

    def _open_pool(self, _places: int, *, seconds: float, cpu_seconds: int, threads: bool = False) -> Any:
        del cpu_seconds, threads
        self.pools.append(VirtualPool(self.assets, self.loop, seconds))
        return self.pools[-1]

    async def _open_client(self, _networks: Any) -> Any:
        return self.client

    async def _open_fetcher(self, _networks: Any, _seconds: float) -> Any:
        return VirtualFetcher(self.world, self.loop, self.around.receivers)

    def _open_journals(self, _folder: Path) -> VirtualJournals:
        return self.journals

    # -- endings

    def kill(self, reason: str, *, silently: bool = False) -> None:
        """End the process like kill -9: nothing of it runs any more, and its locks are free."""
        if self.loop.is_dead:
            raise DeadProcess
        self.loop.is_dead = True
        self.loop.ready.clear()
        self.is_ready = False
        self.world.graveyard.append(self)
        self.around.network.bury(self.loop, silently=silently)
        self._on_death(self, reason)

    def reload(self, settings: Settings) -> None:
        """Change the settings of the running process."""
        self.settings = settings
        if self.gateway is not None and not self.is_stopping:
            self.loop.call_soon(self._begin_reload, self.gateway, settings)

    def _begin_reload(self, gateway: Gateway, settings: Settings) -> None:
        self._reloading = self.loop.create_task(gateway.reload(settings), name=f"reload of {self.loop.name}")

    def stop(self) -> None:
        """Stop the process as an operator does: drain, then close. One that is still starting just ends."""
        if self.is_stopping or self.loop.is_dead:
            return
        if self.gateway is None:
            self.kill("stopped at its start")
            return
        self.is_stopping = True
        self.loop.call_soon(self._begin_stop)

    def _begin_stop(self) -> None:
        self.stopping = self.loop.create_task(self._stop(), name=f"stop of {self.loop.name}")

    async def _stop(self) -> None:
        if self.gateway is not None:
            await self._drain(self.gateway)
            try:
                await self.gateway.close()
            except StoreUnavailable as error:  # the process ends all the same, and others recover what it held
                self.kill(f"stopped without the store: {error!r}")
                return
        self.has_stopped = True
        self.kill("stopped")

    async def _drain(self, gateway: Gateway) -> None:
        """Serve the requests that are under way, as the web server does when it stops."""
        self.is_ready = False
        self.around.network.close(self.loop)
        gateway.drain()
        for connection in list(self._state.connections):
            connection.shutdown()
        cancel = self.loop.call_later(self.settings.server.drain_seconds, self._cancel_requests)
        if tasks := set(self._state.tasks):
            await asyncio.wait(tasks)
        cancel.cancel()

    def _cancel_requests(self) -> None:
        for task in self._state.tasks:
            task.cancel()


async def _nothing() -> None:
    """Survey nothing."""
