"""The embedding server: MiniLM in its own process."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock_engines.minilm.model_facts import MODEL, VOCABULARY
from penstock_engines.processors import count_processors
from penstock_engines.serving.child_process import ChildProcess
from penstock_engines.serving.on_demand_server import OnDemandServer, ServerFailed

PULL = "penstock models pull"
LIBRARIES = ("numpy", "onnxruntime")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingServerOptions:
    """The folder of the weights, and the limits of threads, memory and time."""

    weights: Path
    threads: int | None = None
    """None means one per processor."""
    memory_mb: int | None = None
    unload_seconds: float = 600
    start_seconds: float = 60


class EmbeddingServer(OnDemandServer):
    """A server of embeddings."""

    def __init__(self, options: EmbeddingServerOptions) -> None:
        super().__init__(EmbeddingPlan(options))


class EmbeddingPlan:
    """Starts MiniLM with these options."""

    name = "embedding server"
    module = "penstock_engines.minilm.embedding_child"

    def __init__(self, options: EmbeddingServerOptions) -> None:
        self._options = options
        self.unload_seconds = options.unload_seconds
        self.start_seconds = options.start_seconds

    def check(self) -> None:
        """Raise `ServerFailed` if a library or a file is missing."""
        if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
            raise ServerFailed("the built-in embedding server is not installed; run `pip install 'penstock[local]'`")
        for name in (MODEL, VOCABULARY):
            if not (self._options.weights / name).is_file():
                raise ServerFailed(f"the weights `{name}` are missing; run `{PULL}`")

    def order(self, key: str) -> dict[str, Any]:
        """Return the settings of the server."""
        options = self._options
        return {
            "weights": str(options.weights.absolute()),
            "key": key,
            "threads": options.threads or count_processors(),
            "memory_mb": options.memory_mb,
        }

    def explain(self, child: ChildProcess, took: float) -> str:
        """Return the cause of a failed start, and what to do."""
        if took >= self.start_seconds:
            return f"`{MODEL}` was not loaded within {self.start_seconds:g} seconds; allow more"
        if child.status is not None and child.status < 0:
            return f"the embedding server crashed (signal {-child.status}) while it loaded `{MODEL}`"
        return f"`{MODEL}` cannot be loaded; it may be damaged (`{PULL}`) or need more memory"
