"""A gateway in a thread of its own, so that a client that waits can be tried beside it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calm_loop import CalmLoop
from conftest import SIMULATOR, Server, running

from penstock.settings.tables import load

SETTINGS = (
    SIMULATOR
    + '[fetch]\nallow_networks = ["127.0.0.0/8"]\n'
    + '[[models]]\nid = "vendorb_video_31"\nvendor = "sim"\nprice = {per_job = "0.30"}\n'
    + "".join(
        f'[[models]]\nid = "sim_{name}"\nvendor = "sim"\n'
        for name in ("text_to_video", "image_to_model", "text_to_image", "model_to_video")
    )
)


@dataclass
class Stage:
    """A running gateway, and keys for it."""

    server: Server
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return self.server.url

    def key(self, **options: Any) -> str:
        return asyncio.run_coroutine_threadsafe(self.server.new_key(**options), self.loop).result(300)


@contextmanager
def staged(folder: Path, weights: Path, toml: str = SETTINGS, port: int = 0) -> Iterator[Stage]:
    """A gateway on this folder until the block ends."""
    folder.mkdir(exist_ok=True)
    config = folder / "penstock.toml"
    config.write_text(toml)
    settings = load(config, {}, {"data": folder, "weights": weights})
    ready, stop, stages = threading.Event(), asyncio.Event(), []

    async def serve() -> None:
        try:
            async with running(settings, port) as server:
                stages.append(Stage(server, asyncio.get_running_loop()))
                ready.set()
                await stop.wait()
        finally:
            ready.set()

    def run() -> None:
        with asyncio.Runner(loop_factory=CalmLoop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(300)
        yield stages[0]
    finally:
        if stages:
            stages[0].loop.call_soon_threadsafe(stop.set)
        thread.join()
