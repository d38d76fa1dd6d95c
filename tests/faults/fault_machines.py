"""Gateways and workers as real processes on one database, to be killed, frozen and started again."""

import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fault_steps import far_vendor
from fleet_machines import Machine
from ports import free_port
from vendors.double import Double, double_of


@dataclass
class Machines:
    """Processes that share a database, a folder of assets and settings."""

    folder: Path
    url: str
    double: Double
    started: AsyncExitStack
    machines: list[Machine] = field(default_factory=list[Machine])

    @property
    def environ(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        return own | {
            "PENSTOCK_DATABASE_URL": self.url,
            "PENSTOCK_ASSETS_URL": (self.folder / "assets").as_uri(),
            "PENSTOCK_JOBS_RUN": "workers",
        }

    async def start(self, verb: str, *, wait: bool = True) -> Machine:
        """Start a `serve` or a `worker`; it is ended with the test."""
        config = self.folder / "machines.toml"
        config.write_text(far_vendor(self.double))
        name = f"{verb}-{len(self.machines)}"
        words = (verb, "--config", str(config))
        machine = Machine(name, words, self.folder / name, free_port(), self.environ)
        self.machines.append(machine)
        self.started.push_async_callback(machine.kill)
        await machine.start(wait=wait)
        return machine


@asynccontextmanager
async def machines_on(folder: Path, url: str) -> AsyncGenerator[Machines]:
    """No machines as yet, and the vendor that they will ask."""
    async with double_of(folder / "double") as double, AsyncExitStack() as started:
        yield Machines(folder, url, double, started)
