"""Settings of the built-in models that each run in a server process of their own."""

from pathlib import Path

from pydantic import Field

from penstock.vendor_api.chat import ChatOptions
from penstock_engines.serving.weights_plan import ModelServerOptions


class ModelOptions(ChatOptions):
    """The settings that all of them take."""

    threads: int | None = Field(default=None, ge=1, description="default: one for each core")
    memory_mb: int | None = Field(default=None, ge=256, description="the most memory it may take, in MiB")
    unload_seconds: float = Field(default=600.0, gt=0, description="how long an unused model stays in memory")
    start_seconds: float = Field(default=60.0, gt=0, description="how long loading the model may take")
    max_concurrent: int = Field(
        default=20, ge=1, description="how many requests it answers or lets wait; beyond that callers get a 429"
    )

    def for_server(self, weights: Path) -> ModelServerOptions:
        """Return the options of the server."""
        return ModelServerOptions(
            weights=weights,
            threads=self.threads,
            memory_mb=self.memory_mb,
            unload_seconds=self.unload_seconds,
            start_seconds=self.start_seconds,
        )
