"""Asset storage: callers' files and jobs' outputs, in a folder or a bucket."""

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import obstore

from penstock.domain.files import StoredAsset, StoredFile, asset_key
from penstock.domain.ids import new_id
from penstock.domain.job_errors import BadOutput
from penstock.domain.jobs import Asset
from penstock.errors import AssetNotFound, FileNotFound
from penstock.observability import metrics
from penstock.storage.backend import Storage, reached
from penstock.storage.scratch import ScratchFolder

if TYPE_CHECKING:
    from obstore import BytesStream, GetResult

MAX_OUTPUT_BYTES = 2 * 1024**3
CHUNK = 1 << 20
PART = 5 << 20
"""Part size of uploads to a bucket; S3 takes no smaller parts."""
MAX_PARTS = 2
"""Concurrent parts of one output's upload; together with `PART` they bound its memory."""
MAX_UPLOADS = 8
BATCH = 1 << 18
"""Bytes of a download that are collected before a thread writes them; they bound its memory."""
OPEN_SECONDS = 5.0
"""Timeout of the first byte, as a caller waits for it."""
CACHED = "private, max-age=31536000, immutable"

T = TypeVar("T")
Head: TypeAlias = bytes
HEAD_BYTES: Final = 32
SIDECAR: Final = ".jws"
"""Ending of a signed sidecar's name, behind that of its file."""


@dataclass(frozen=True, slots=True)
class Landed:
    """A complete download in a temporary file, not yet checked."""

    path: Path
    bytes: int
    sha256: str
    head: Head
    """Its first bytes, which tell its kind."""


async def _open_file(path: Path) -> FileIO:
    """Return the open file. If the caller is canceled meanwhile, it is closed."""
    opening = asyncio.ensure_future(asyncio.to_thread(FileIO, path))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_file)
        raise


def _close_file(opening: asyncio.Future[FileIO]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def measure_file(path: Path) -> Landed:
    """Return a file on the disk with its size, its sha256 and its first bytes; blocking."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256")
        return Landed(path, file.tell(), digest.hexdigest(), head)


def file_key(account_id: str, sha256: str) -> str:
    """Return the key of a file: one per account and content."""
    return f"files/{account_id}/{sha256}"


def key_of(file: StoredFile) -> str:
    """Return the key of an input file's bytes: its own, or that of an earlier job's output."""
    return file.key or file_key(file.account_id, file.sha256)


def asset_keys(asset: StoredAsset) -> Sequence[str]:
    """Return the possible keys of an output; older ones have no content hash."""
    return asset_key(asset.job_id, asset.filename, asset.sha256), f"assets/{asset.job_id}/{asset.filename}"


def disposition(filename: str) -> str:
    """Return the `Content-Disposition` of an asset."""
    return f'inline; filename="{filename}"'


class Assets:
    """The byte store. Its keys never come from a caller."""

    def __init__(self, storage: Storage, scratch: ScratchFolder) -> None:
        self._storage = storage
        self._scratch = scratch
        self._temporary: set[Path] = set()
        """Files in the scratch folder that are still to be moved or deleted."""
        self._uploads = asyncio.Semaphore(MAX_UPLOADS)
        self._file_uploads = asyncio.Semaphore(
            MAX_UPLOADS
        )  # apart, as callers wait for these and not behind large outputs

    @property
    def folder(self) -> Path | None:
        """Return the folder that has the bytes, or None if a bucket has them."""
        return self._storage.folder

    def clear_scratch(self) -> None:
        """Remove the partial downloads of dead processes."""
        self._scratch.clear()

    def close(self) -> None:
        """Remove the folder of downloads; none may be in progress."""
        self._scratch.close()

    async def check(self) -> None:
        """Check that a bucket answers; a folder always does."""
        if self._storage.bucket is not None:
            with reached():
                await obstore.list_with_delimiter_async(self._storage.bucket, "probe")  # pyright: ignore[reportUnknownMemberType] its Arrow form

    # -- callers' files

    async def put_file(self, file: StoredFile, source: bytes | Path) -> None:
        """Store a file's bytes; a downloaded file is moved where possible."""
        async with self._file_uploads:
            await self._put(file_key(file.account_id, file.sha256), source, at_once=1)
        metrics.BYTES_STORED.labels("file").inc(file.bytes)

    async def get_file(self, file: StoredFile) -> bytes:
        """Return a file's bytes."""
        result = await self._get_file(file)
        with reached():
            return bytes(await result.bytes_async())

    async def open_file(self, file: StoredFile) -> FileIO | AsyncIterator[bytes]:
        """Return the open file from a folder, or its bytes from a bucket as they come."""
        folder = self._storage.folder
        if folder is None:
            return _stream((await self._get_file(file)).stream(min_chunk_size=CHUNK))
        try:
            with reached():
                return await _open_file(folder / key_of(file))
        except FileNotFoundError:
            raise FileNotFound from None

    async def _get_file(self, file: StoredFile) -> "GetResult":
        try:
            with reached():
                async with asyncio.timeout(OPEN_SECONDS):
                    return await obstore.get_async(self._storage.bulk, key_of(file))
        except FileNotFoundError:
            raise FileNotFound from None

    @asynccontextmanager
    async def land_file(self, file: StoredFile) -> AsyncGenerator[Landed]:
        """Yield a stored file on the disk: where it lies in a folder, or a copy that is deleted at the end."""
        try:
            if self._storage.folder is not None:
                with reached():
                    landed = await asyncio.to_thread(measure_file, self._storage.folder / key_of(file))
                yield landed
                return
            with reached():
                result = await obstore.get_async(self._storage.bulk, key_of(file))
        except FileNotFoundError:
            raise FileNotFound from None
        async with self.land(_stream(result.stream(min_chunk_size=CHUNK))) as landed:
            yield landed

    def remove_file(self, file: StoredFile) -> None:
        """Delete a file's bytes."""
        with suppress(FileNotFoundError), reached():
            obstore.delete(self._storage.quick, file_key(file.account_id, file.sha256))

    # -- jobs' outputs

    @asynccontextmanager
    async def land(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Landed]:
        """Write a download to a temporary file and hash it; the file is deleted at the end of the block."""
        path, digest, size = self._scratch.folder / new_id("landed"), hashlib.sha256(), 0
        head = b""
        self._temporary.add(path)
        try:
            with reached(makes=True):
                await asyncio.to_thread(path.touch, exist_ok=False)
            async for batch in _gather(chunks):
                size += sum(map(len, batch))
                head = head if len(head) == HEAD_BYTES else (head + b"".join(batch))[:HEAD_BYTES]
                if size > MAX_OUTPUT_BYTES:
                    raise BadOutput(f"The output is larger than {MAX_OUTPUT_BYTES >> 30} GB.")
                with reached(makes=True):
                    await asyncio.to_thread(_append, path, batch, digest.update)
            yield Landed(path, size, digest.hexdigest(), head)
        finally:
            await self._remove_temporary(path)

    @asynccontextmanager
    async def beside(self, landed: Landed) -> AsyncGenerator[Path]:
        """Make an empty temporary file for another version of a download; it is deleted at the end of the block."""
        path = landed.path.with_name(f"{landed.path.name}-signed")
        self._temporary.add(path)
        try:
            with reached(makes=True):
                await asyncio.to_thread(path.touch, exist_ok=True)
            yield path
        finally:
            await self._remove_temporary(path)

    async def _remove_temporary(self, path: Path) -> None:
        """Delete a temporary file, unless it was moved to the storage."""
        if path in self._temporary:
            self._temporary.discard(path)
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def keep(self, job_id: str, asset: Asset, landed: Landed) -> None:
        """Store a checked output."""
        attributes = {
            "Content-Type": asset.content_type,
            "Content-Disposition": disposition(asset.filename),
            "Cache-Control": CACHED,
        }
        async with self._uploads:
            key = asset_key(job_id, asset.filename, landed.sha256)
            await self._put(key, landed.path, attributes, at_once=MAX_PARTS)
        metrics.BYTES_STORED.labels("asset").inc(landed.bytes)

    async def keep_sidecar(self, job_id: str, asset: Asset, data: bytes) -> None:
        """Store the signed sidecar of an output. It is removed with the outputs."""
        await self._put(asset_key(job_id, asset.filename + SIDECAR, asset.sha256), data, at_once=1)

    async def get_sidecar(self, asset: StoredAsset) -> bytes:
        """Return the sidecar of an output. Raise `AssetNotFound` if it has none."""
        try:
            with reached():
                key = asset_key(asset.job_id, asset.filename + SIDECAR, asset.sha256)
                async with asyncio.timeout(OPEN_SECONDS):
                    result = await obstore.get_async(self._storage.bulk, key)
                return bytes(await result.bytes_async())
        except FileNotFoundError:
            raise AssetNotFound from None

    # -- results that came with a vendor's reply, until they are checked

    async def keep_reply(self, job_id: str, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Store a result as it came, and return its key; it is removed with the job's outputs at the latest."""
        async with self.land(chunks) as landed, self._uploads:
            key = f"assets/{job_id}/reply-{name}"
            await self._put(key, landed.path, at_once=MAX_PARTS)
        return key

    async def open_reply(self, key: str) -> AsyncIterator[bytes]:
        """Return the bytes of a stored result."""
        try:
            with reached():
                result = await obstore.get_async(self._storage.bulk, key)
        except FileNotFoundError:
            raise BadOutput("The vendor's reply is no longer in our storage.", retryable=False) from None
        return _stream(result.stream(min_chunk_size=CHUNK))

    async def remove_reply(self, key: str) -> None:
        """Delete a stored result."""
        with suppress(FileNotFoundError), reached():
            await obstore.delete_async(self._storage.quick, key)

    async def _put(
        self, key: str, source: bytes | Path, attributes: dict[str, str] | None = None, *, at_once: int
    ) -> None:
        """Move the source into a folder if possible, or upload it, a large one in concurrent parts."""
        folder = self._storage.folder
        with reached(makes=True):
            if folder is not None and isinstance(source, Path) and await asyncio.to_thread(_move, source, folder / key):
                self._temporary.discard(source)
                return
            await obstore.put_async(
                self._storage.bulk,
                key,
                source,
                attributes=attributes if folder is None else None,  # a folder keeps none
                chunk_size=PART,
                max_concurrency=at_once,
            )

    async def open(self, asset: StoredAsset, start: int, end: int) -> FileIO | AsyncIterator[bytes]:
        """Return the open file from a folder, or the bytes from `start` to `end` (exclusive) from a bucket."""
        folder = self._storage.folder
        if folder is not None:
            return await self._find(asset, lambda key: _open_file(folder / key))
        if start >= end:
            return _nothing()
        options = {"range": (start, end)}
        result = await self._find(
            asset,
            lambda key: obstore.get_async(self._storage.bulk, key, options=options),  # pyright: ignore[reportArgumentType] its own TypedDict
        )
        return _stream(result.stream(min_chunk_size=CHUNK))

    async def read(self, asset: StoredAsset) -> bytes:
        """Return all bytes of an asset that is known to be small."""
        body = await self.open(asset, 0, asset.bytes)
        if not isinstance(body, FileIO):
            return b"".join([chunk async for chunk in body])
        with body:
            return await asyncio.to_thread(body.readall)

    async def presign(self, asset: StoredAsset, seconds: float) -> str | None:
        """Return a presigned S3 URL that is valid for so long; None for a folder."""
        bucket = self._storage.bucket
        if bucket is None:
            return None
        try:
            found = await self._find(asset, lambda key: obstore.head_async(bucket, key))
        except AssetNotFound:
            await self.open(asset, 0, 1)  # unlike a HEAD, its reply shows whether the bucket is gone
            raise
        with reached():
            return await obstore.sign_async(bucket, "GET", found["path"], timedelta(seconds=max(1, int(seconds))))

    async def _find(self, asset: StoredAsset, ask: Callable[[str], Awaitable[T]]) -> T:
        for key in asset_keys(asset):
            with suppress(FileNotFoundError), reached():
                async with asyncio.timeout(OPEN_SECONDS):
                    return await ask(key)
        raise AssetNotFound

    async def remove_outputs(self, job_id: str) -> None:
        """Delete all outputs of a job, including those that it does not list."""
        with reached():
            async for batch in self._storage.quick.list(f"assets/{job_id}"):  # pyright: ignore[reportUnknownMemberType] its Arrow form
                for item in batch:
                    with suppress(FileNotFoundError):
                        await obstore.delete_async(self._storage.quick, item["path"])

    async def end_stale_uploads(self, before: float) -> int:
        """Delete the parts of unfinished uploads that began before that moment; return the number of uploads."""
        with reached():
            return await asyncio.to_thread(self._storage.end_stale_uploads, datetime.fromtimestamp(before, UTC))


async def _gather(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield batches of chunks, as each write costs a switch to a thread."""
    batch: list[bytes] = []
    size = 0
    async for chunk in chunks:
        batch.append(chunk)
        size += len(chunk)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _append(path: Path, batch: Sequence[bytes], note: Callable[[bytes], None]) -> None:
    """Append a batch; the file is opened each time, so that a cancelled download leaves no stale descriptor."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        for chunk in batch:
            note(chunk)
            left = memoryview(chunk)
            while left:  # the system may take less at once
                left = left[os.write(file, left) :]
    finally:
        os.close(file)


def _move(source: Path, target: Path) -> bool:
    """Move a file within one file system; return False if source and target are on different ones."""
    for _ in range(3):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.replace(target)
        except FileNotFoundError:
            continue  # the folder was empty, and has just been removed
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return False
        return True
    return False


async def _nothing() -> AsyncIterator[bytes]:
    for chunk in ():
        yield chunk


async def _stream(chunks: "BytesStream") -> AsyncIterator[bytes]:
    with reached():
        async for chunk in chunks:
            yield bytes(chunk)
