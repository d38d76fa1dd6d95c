"""Files, objects and child processes of the simulation: in memory, and unreliable."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from simulation.virtual_loop import VirtualLoop
from simulation.world import World

from penstock.domain.files import ImageFacts, StoredAsset, StoredFile
from penstock.domain.ids import new_id
from penstock.domain.job_errors import BadOutput, FileUnreadable
from penstock.domain.jobs import Asset
from penstock.errors import AssetNotFound, FileNotFound
from penstock.inspection.images_and_video import VideoFacts
from penstock.inspection.models import ModelFacts
from penstock.inspection.worker_pool import LimitReached, WorkFailed, WorkInterrupted
from penstock.storage.assets import Landed, asset_key, asset_keys, file_key
from penstock.storage.backend import StorageUnavailable

OBJECT_SECONDS: Final = 0.003
PUT_FAULTS: Final = (
    ("storage: refused", 0.01),
    ("storage: stored, then refused", 0.005),
    ("storage: full", 0.003),
    ("death while storing", 0.002),
    ("death after storing", 0.002),
    ("storage: slow", 0.01),
)
GET_FAULTS: Final = (("storage: refused", 0.005),)
CHILD_FAULTS: Final = (
    ("child: crash", 0.02),
    ("child: out of memory", 0.002),
    ("child: hang", 0.003),
    ("child: slow", 0.02),
)

PNG: Final = b"\x89PNG\r\n\x1a\n"
"""The beginning of a picture; the rest is JSON here."""


class Crashed(WorkFailed):
    """A child crashed, as if by its file."""


class ObjectStore:
    """All stored bytes of a world, by key."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.objects: dict[str, bytes] = {}
        self.away_until = 0.0
        self.full_until = 0.0
        self.wronged = 0
        """Good files that a child's crash or hang made look bad."""


class VirtualAssets:
    """The asset storage as one process sees it. Its methods are those of `Assets`."""

    def __init__(self, store: ObjectStore, loop: VirtualLoop, die: Callable[[str], None]) -> None:
        self._store = store
        self._loop = loop
        self._die = die
        self._chance = store.world.chance(f"storage of {loop.name}")
        self._landed: dict[Path, bytes] = {}

    @property
    def downloads_under_way(self) -> int:
        """The number of temporary files, which must be 0 at rest."""
        return len(self._landed)

    @property
    def folder(self) -> None:
        """None, as of a bucket."""

    def clear_scratch(self) -> None:
        """Do nothing: the temporary files of a dead process are gone with it."""

    def close(self) -> None:
        """Do nothing: there is no folder."""

    async def check(self) -> None:
        """Wait for the storage's answer."""
        await self._reach()

    async def put_file(self, file: StoredFile, source: bytes | Path) -> None:
        """Store a caller's file."""
        await self._put(file_key(file.account_id, file.sha256), self._bytes_of(source))

    async def get_file(self, file: StoredFile) -> bytes:
        """Return a caller's file."""
        await self._reach()
        try:
            return self._store.objects[file_key(file.account_id, file.sha256)]
        except KeyError:
            raise FileNotFound from None

    def remove_file(self, file: StoredFile) -> None:
        """Delete a caller's file."""
        if self._loop.is_dead:
            return
        self._store.objects.pop(file_key(file.account_id, file.sha256), None)

    @asynccontextmanager
    async def land(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Landed]:
        """Collect a download."""
        path, data = Path(new_id("landed")), b""
        self._landed[path] = data
        try:
            async for chunk in chunks:
                data += chunk
                if self._chance.strikes(0.002, "disk full while landing"):
                    raise StorageUnavailable(retry_after=5)
            self._landed[path] = data
            yield Landed(path, len(data), hashlib.sha256(data).hexdigest(), data[:32])
        finally:
            del self._landed[path]

    async def keep(self, job_id: str, asset: Asset, landed: Landed) -> None:
        """Store a checked output."""
        await self._put(asset_key(job_id, asset.filename, landed.sha256), self._landed[landed.path])

    async def open(self, asset: StoredAsset, start: int, end: int) -> AsyncIterator[bytes]:
        """Return the bytes of an output."""
        await self._reach()
        for key in asset_keys(asset):
            if key in self._store.objects:
                return _once(self._store.objects[key][start:end])
        raise AssetNotFound

    async def presign(self, asset: StoredAsset, seconds: float) -> None:
        """Return None: links are the gateway's own."""

    async def remove_outputs(self, job_id: str) -> None:
        """Delete the outputs of a job."""
        await self._reach()
        for key in [key for key in self._store.objects if key.startswith(f"assets/{job_id}/")]:
            del self._store.objects[key]

    async def end_stale_uploads(self, before: float) -> int:
        """Return 0: uploads happen at once here."""
        del before
        return 0

    def count_wronged(self) -> None:
        """Count a file that a child's fault makes look bad."""
        self._store.wronged += 1

    def read_landed(self, path: Path) -> bytes:
        """Return the bytes of a download under way, for a child that opens them."""
        return self._landed[path]

    def _bytes_of(self, source: bytes | Path) -> bytes:
        return source if isinstance(source, bytes) else self._landed[source]

    async def _reach(self) -> None:
        fault = self._chance.draw(GET_FAULTS)
        await asyncio.sleep(OBJECT_SECONDS * (0.5 + self._chance.random()))
        if fault is not None or self._store.away_until > self._store.world.now:
            raise StorageUnavailable(retry_after=5)

    async def _put(self, key: str, data: bytes) -> None:
        fault = self._chance.draw(PUT_FAULTS)
        seconds = self._chance.uniform(1, 20) if fault == "storage: slow" else OBJECT_SECONDS
        await asyncio.sleep(seconds)
        if fault == "death while storing":
            await self._end_here(fault)
        if fault in ("storage: refused", "storage: full") or self._is_unusable():
            raise StorageUnavailable(retry_after=5)
        self._store.objects[key] = data
        if fault == "death after storing":
            await self._end_here(fault)
        if fault == "storage: stored, then refused":
            raise StorageUnavailable(retry_after=5)

    def _is_unusable(self) -> bool:
        return max(self._store.away_until, self._store.full_until) > self._store.world.now

    async def _end_here(self, fault: str) -> None:
        """Kill the process. An exception would run its `finally` blocks, so it waits forever instead."""
        self._die(fault)
        await self._loop.create_future()


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


class VirtualPool:
    """Children that open files. Each call may crash, hang or be late. Its methods are those of `ProcessPool`."""

    def __init__(self, assets: VirtualAssets, loop: VirtualLoop, seconds: float) -> None:
        self._assets = assets
        self._seconds = seconds
        self._chance = loop.world.chance(f"children of {loop.name}")
        self._world = loop.world
        self.under_way = 0
        self.pressed_until = 0.0
        """Until then the kernel ends every child for lack of memory."""

    async def do(
        self, account_id: str, function: Callable[..., Any], source: Any = None, *args: Any, size: int | None = None
    ) -> Any:
        """Return the facts of a file, as its bytes state them."""
        del account_id, size
        self.under_way += 1
        try:
            return await self._open(function.__name__, source, args)
        finally:
            self.under_way -= 1

    async def _open(self, name: str, source: Any, args: tuple[Any, ...]) -> Any:
        fault = self._chance.draw(CHILD_FAULTS)
        await asyncio.sleep(self._seconds if fault == "child: hang" else 0.02 * (1 + self._chance.random()))
        if fault == "child: slow":
            await asyncio.sleep(self._chance.uniform(0.5, self._seconds / 2))
        if fault == "child: out of memory" or self.pressed_until > self._world.now:
            raise WorkInterrupted
        if fault == "child: crash":
            raise Crashed
        if fault == "child: hang":
            raise LimitReached
        data = source if isinstance(source, bytes) else self._assets.read_landed(source)
        try:
            facts = json.loads(data.removeprefix(PNG))
        except ValueError as error:
            raise (FileUnreadable if name == "inspect_image" else BadOutput)("It cannot be opened.") from error
        return _describe(name, facts, args)

    async def insist(
        self, account_id: str, function: Callable[..., Any], source: Any = None, *args: Any, size: int | None = None
    ) -> Any:
        """Try again once after a crash."""
        del size
        try:
            with suppress(Crashed, WorkInterrupted):
                return await self.do(account_id, function, source, *args)
            return await self.do(account_id, function, source, *args)
        except (Crashed, LimitReached):
            self._assets.count_wronged()
            raise

    async def close(self) -> None:
        """End all children."""


def _describe(name: str, facts: Any, args: tuple[Any, ...]) -> Any:
    if name == "inspect_model":
        return ModelFacts(faces=100, vertices=60)
    if name == "inspect_video":
        width, height, seconds = args
        return VideoFacts(width or 1280, height or 720, float(seconds or facts["seconds"]), 24.0, 24)
    return ImageFacts("image/png", 64, 64)
