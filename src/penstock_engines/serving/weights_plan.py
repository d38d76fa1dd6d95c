"""The plan of a server that needs Python libraries and files of weights, as the smaller built-in models do."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock_engines.processors import count_processors
from penstock_engines.serving.child_process import ChildProcess
from penstock_engines.serving.on_demand_server import ServerFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServerOptions:
    """The folder of the weights, and the limits of threads, memory and time."""

    weights: Path
    threads: int | None = None
    """None means one per processor."""
    memory_mb: int | None = None
    unload_seconds: float = 600
    start_seconds: float = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPlan:
    """Starts one module with these options."""

    name: str
    """Its name in messages, such as "embedding server"."""
    module: str
    libraries: Sequence[str]
    files: Sequence[str]
    pull: str
    """The command that brings the files."""
    options: ModelServerOptions

    @property
    def unload_seconds(self) -> float:
        """The idle timeout."""
        return self.options.unload_seconds

    @property
    def start_seconds(self) -> float:
        """The timeout of a start."""
        return self.options.start_seconds

    def check(self) -> None:
        """Raise `ServerFailed` if a library or a file is missing."""
        if any(importlib.util.find_spec(name) is None for name in self.libraries):
            raise ServerFailed(f"the built-in {self.name} is not installed; run `pip install 'penstock[local]'`")
        for name in self.files:
            if not (self.options.weights / name).is_file():
                raise ServerFailed(f"the weights `{name}` are missing; run `{self.pull}`")

    def order(self, key: str) -> dict[str, Any]:
        """Return the settings of the server."""
        return {
            "weights": str(self.options.weights.absolute()),
            "key": key,
            "threads": self.options.threads or count_processors(),
            "memory_mb": self.options.memory_mb,
        }

    def explain(self, child: ChildProcess, took: float) -> str:
        """Return the cause of a failed start, and what to do."""
        what = f"`{self.files[0]}`" if self.files else "its model"
        if took >= self.start_seconds:
            return f"{what} was not loaded within {self.start_seconds:g} seconds; allow more"
        if child.status is not None and child.status < 0:
            return f"the {self.name} crashed (signal {-child.status}) while it loaded {what}"
        return f"{what} cannot be loaded; it may be damaged (`{self.pull}`) or need more memory"
