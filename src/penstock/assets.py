"""Keeps bytes: callers' files and jobs' outputs, in a folder or a bucket."""

import asyncio
import base64
import hashlib
import hmac
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import obstore

from penstock import metrics
from penstock.errors import AssetExpired, AssetNotFound, FileNotFound
from penstock.files import StoredFile
from penstock.job_errors import BadOutput
from penstock.jobs import Asset
from penstock.landing import Landing
from penstock.storage import Storage, reached
from penstock.store.asset_rows import StoredAsset

if TYPE_CHECKING:
    from obstore import BytesStream

MAX_OUTPUT_BYTES = 2 * 1024**3
CHUNK = 1 << 20
PART = 8 << 20
MAX_PARTS = 4
"""How many parts of one upload are under way at once: with `PART` the memory that it takes."""
MAX_UPLOADS = 8
OPEN_SECONDS = 5.0
"""How long the first byte may take: a caller waits for it."""
CACHED = "private, max-age=31536000, immutable"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Landed:
    """A download that lies whole in a temporary file, not yet checked."""

    path: Path
    bytes: int
    sha256: str


def file_key(account_id: str, sha256: str) -> str:
    """Where a file's bytes are: once per account and content."""
    return f"files/{account_id}/{sha256}"


def asset_key(job_id: str, filename: str, sha256: str) -> str:
    """Where an output's bytes are, by what they are: who stores late, after another has, changes nothing."""
    return f"assets/{job_id}/{sha256[:16]}-{filename}"


def asset_keys(asset: StoredAsset) -> Sequence[str]:
    """Where to look for an output: before keys went by content they went by name only."""
    return asset_key(asset.job_id, asset.filename, asset.sha256), f"assets/{asset.job_id}/{asset.filename}"


def disposition(filename: str) -> str:
    """How a browser takes an asset."""
    return f'inline; filename="{filename}"'


class Assets:
    """The byte store. Names inside it never come from a caller."""

    def __init__(self, storage: Storage, landing: Landing, signing_secret: bytes) -> None:
        self._storage = storage
        self._landing = landing
        self._signing_secret = signing_secret
        self._uploads = asyncio.Semaphore(MAX_UPLOADS)

    def clear_landing(self) -> None:
        """Remove the half downloads of processes that are no more."""
        self._landing.clear()

    def close(self) -> None:
        """Remove the folder of downloads; nobody may be downloading."""
        self._landing.close()

    async def check(self) -> None:
        """Ask a bucket for an answer; a folder is there."""
        if self._storage.bucket is not None:
            with reached():
                await obstore.list_with_delimiter_async(self._storage.bucket, "probe")  # pyright: ignore[reportUnknownMemberType] its Arrow form

    # -- callers' files

    async def put_file(self, account_id: str, sha256: str, data: bytes) -> None:
        """Keep a file's bytes."""
        with reached(makes=True):
            await obstore.put_async(self._storage.bulk, file_key(account_id, sha256), data, chunk_size=PART)
        metrics.BYTES_STORED.labels("file").inc(len(data))

    async def get_file(self, file: StoredFile) -> bytes:
        """A file's bytes."""
        try:
            with reached():
                async with asyncio.timeout(OPEN_SECONDS):
                    result = await obstore.get_async(self._storage.bulk, file_key(file.account_id, file.sha256))
                return bytes(await result.bytes_async())
        except FileNotFoundError:
            raise FileNotFound from None

    def remove_file(self, file: StoredFile) -> None:
        """Forget a file's bytes."""
        with suppress(FileNotFoundError), reached():
            obstore.delete(self._storage.quick, file_key(file.account_id, file.sha256))

    # -- jobs' outputs

    @asynccontextmanager
    async def land(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Landed]:
        """Write a download to a temporary file, hashed on the way; it is gone when the block ends."""
        with reached(makes=True):
            handle, name = tempfile.mkstemp(dir=self._landing.folder)
        path, digest, size = Path(name), hashlib.sha256(), 0
        try:
            with open(handle, "wb", buffering=0) as file:  # noqa: ASYNC230, PTH123  only opened here, written in a thread
                async for chunk in chunks:
                    size += len(chunk)
                    if size > MAX_OUTPUT_BYTES:
                        raise BadOutput(f"The output is larger than {MAX_OUTPUT_BYTES >> 30} GB.")
                    with reached(makes=True):
                        await asyncio.to_thread(_write, file.fileno(), chunk)
                    await asyncio.to_thread(digest.update, chunk)
            yield Landed(path, size, digest.hexdigest())
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def keep(self, job_id: str, asset: Asset, landed: Landed) -> None:
        """Copy a checked output into the store, a large one in parts."""
        attributes = {
            "Content-Type": asset.content_type,
            "Content-Disposition": disposition(asset.filename),
            "Cache-Control": CACHED,
        }
        async with self._uploads:
            with reached(makes=True):
                await obstore.put_async(
                    self._storage.bulk,
                    asset_key(job_id, asset.filename, landed.sha256),
                    landed.path,
                    attributes=attributes if self._storage.bucket else None,  # a folder keeps none
                    chunk_size=PART,
                    max_concurrency=MAX_PARTS,
                )
        metrics.BYTES_STORED.labels("asset").inc(landed.bytes)

    async def open(self, asset: StoredAsset, start: int, end: int) -> FileIO | AsyncIterator[bytes]:
        """The file, if it lies in a folder; of a bucket the bytes from `start` up to, not with, `end`."""
        folder = self._storage.folder
        if folder is not None:
            return await self._find(asset, lambda key: asyncio.to_thread(FileIO, folder / key))
        if start >= end:
            return _nothing()
        options = {"range": (start, end)}
        result = await self._find(
            asset,
            lambda key: obstore.get_async(self._storage.bulk, key, options=options),  # pyright: ignore[reportArgumentType] its own TypedDict
        )
        return _stream(result.stream(min_chunk_size=CHUNK))

    async def presign(self, asset: StoredAsset, seconds: float) -> str | None:
        """An address at which S3 itself gives the bytes to anyone for some time; None if it is a folder."""
        bucket = self._storage.bucket
        if bucket is None:
            return None
        found = await self._find(asset, lambda key: obstore.head_async(bucket, key))
        with reached():
            return await obstore.sign_async(bucket, "GET", found["path"], timedelta(seconds=max(1, int(seconds))))

    async def _find(self, asset: StoredAsset, ask: Callable[[str], Awaitable[T]]) -> T:
        for key in asset_keys(asset):
            with suppress(FileNotFoundError), reached():
                async with asyncio.timeout(OPEN_SECONDS):
                    return await ask(key)
        raise AssetNotFound

    async def remove_outputs(self, job_id: str) -> None:
        """Forget all outputs of a job, also those that it does not show."""
        with reached():
            async for batch in self._storage.quick.list(f"assets/{job_id}"):  # pyright: ignore[reportUnknownMemberType] its Arrow form
                for item in batch:
                    with suppress(FileNotFoundError):
                        await obstore.delete_async(self._storage.quick, item["path"])

    async def end_stale_uploads(self, before: float) -> int:
        """Remove the parts of uploads that were begun before that moment and never finished."""
        with reached():
            return await asyncio.to_thread(self._storage.end_stale_uploads, datetime.fromtimestamp(before, UTC))

    # -- signed links

    def sign(self, asset_id: str, expires_at: int) -> str:
        """The proof in a link that lets anyone fetch one asset until it expires."""
        message = f"asset:{asset_id}:{expires_at}".encode()
        digest = hmac.digest(self._signing_secret, message, "sha256")
        return base64.urlsafe_b64encode(digest[:24]).decode()

    def check_link(self, asset_id: str, expires: str, signature: str, now: float) -> bool:
        """Whether a link is ours; one that is ours but over is told so."""
        if not (expires.isascii() and expires.isdigit() and len(expires) < 14 and signature.isascii()):
            return False
        if not hmac.compare_digest(signature, self.sign(asset_id, int(expires))):
            return False
        if int(expires) <= now:
            raise AssetExpired("This link's time is over; get the job again for a new one.")
        return True


def _write(file: int, chunk: bytes) -> None:
    """All of it: the system may take less at once."""
    left = memoryview(chunk)
    while left:
        left = left[os.write(file, left) :]


async def _nothing() -> AsyncIterator[bytes]:
    for chunk in ():
        yield chunk


async def _stream(chunks: "BytesStream") -> AsyncIterator[bytes]:
    with reached():
        async for chunk in chunks:
            yield bytes(chunk)
