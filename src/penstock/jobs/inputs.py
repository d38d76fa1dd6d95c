"""Input pictures from uploads, `data:` URIs and URLs. Each is opened and checked before it is stored."""

import asyncio
import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_to_bytes
from weakref import WeakValueDictionary

from penstock.domain.files import CONTENT_TYPES, MAX_FILE_BYTES, StoredFile
from penstock.domain.ids import new_id
from penstock.domain.job_errors import FileUnreadable
from penstock.fairness.fair_queue import UnderWayLimit
from penstock.inspection.images_and_video import inspect_image
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed, WorkInterrupted
from penstock.storage.assets import Assets, Landed
from penstock.storage.backend import StorageUnavailable
from penstock.store.database import Database
from penstock.store.queries.files import file_rows

if TYPE_CHECKING:
    from penstock.safe_fetch.fetcher import SafeFetcher

TYPE_NAMES = {"jpg": "image/jpeg", **CONTENT_TYPES}


class Inputs:
    """Makes stored files of callers' inputs."""

    def __init__(
        self,
        database: Database,
        assets: Assets,
        process_pool: ProcessPool,
        fetcher: Callable[[], Awaitable["SafeFetcher"]],
        max_uploads: Callable[[], int],
        clock: Callable[[], float],
        storage_quota: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._storage_quota = storage_quota
        self._database = database
        self._assets = assets
        self._process_pool = process_pool
        self._fetcher = fetcher
        self._max_uploads = max_uploads
        self._clock = clock
        self._allowance = UnderWayLimit()
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def open(self, data: bytes, account_id: str) -> StoredFile:
        """Open a caller's picture and return its description, without storing it."""
        if len(data) > MAX_FILE_BYTES:
            raise FileUnreadable(f"The file has {len(data)} bytes; at most {MAX_FILE_BYTES} are allowed.")
        with self._allowance.one(account_id, self._max_uploads()):
            sha256 = (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()
            return await self._open(data, sha256, len(data), account_id)

    async def upload(
        self,
        chunks: AsyncIterator[bytes],
        account_id: str,
        retention: float | None,
        name: Callable[[], str | None] = lambda: None,
    ) -> StoredFile:
        """Receive a caller's upload, then open and store it. Its name is known when all of it has arrived."""
        with self._allowance.one(account_id, self._max_uploads()):
            async with self._assets.land(chunks) as landed:
                file = await self._open_landed(landed, account_id)
                expires_at = None if retention is None else file.created_at + retention
                file = replace(file, expires_at=expires_at, name=name())
                await self.store(file, landed.path)
            return file

    async def fetch(self, url: str, declared: str | None, account_id: str, job_id: str) -> StoredFile:
        """Download and store the picture behind a URL for one job. Later reads see these bytes, not the URL."""
        fetcher = await self._fetcher()
        async with (
            aclosing(fetcher.fetch(url, max_bytes=MAX_FILE_BYTES)) as chunks,
            self._assets.land(chunks) as landed,
        ):
            file = replace(await self._open_landed(landed, account_id), job_id=job_id)
            if problem := contradiction(file, declared):
                raise FileUnreadable(problem)
            await self._store(file, landed.path, file_rows.add_fetched, file)
        return file

    async def store(self, file: StoredFile, source: bytes | Path) -> None:
        """Write a file's row, then its bytes. Raise if they exceed the account's storage quota."""
        await self._store(file, source, file_rows.add, file, self._storage_quota())

    async def _store(self, file: StoredFile, source: bytes | Path, add: Callable[..., None], *given: Any) -> None:
        async with self._lock(file):
            await self._database.write(add, *given)
            try:
                await self._assets.put_file(file, source)
            except StorageUnavailable:  # the bytes may or may not be there, so that the sweep removes both
                await self._database.write(file_rows.expire, file, self._clock())
                raise

    async def remove(self, file: StoredFile) -> None:
        """Remove a file's row, and its bytes unless another row of the account refers to them."""
        await self._assets.check()  # before the transaction, which would make all others wait for the answer
        async with self._lock(file):
            await self._database.write(file_rows.remove, file, self._assets.remove_file)

    async def _open_landed(self, landed: Landed, account_id: str) -> StoredFile:
        return await self._open(landed.path, landed.sha256, landed.bytes, account_id)

    async def _open(self, source: bytes | Path, sha256: str, size: int, account_id: str) -> StoredFile:
        try:
            facts = await self._process_pool.insist(account_id, inspect_image, source)
        except LimitReached as error:
            message = "Opening the picture takes more time or memory than allowed. Save it again, smaller or simpler."
            raise FileUnreadable(message) from error
        except WorkInterrupted as error:
            raise StorageUnavailable("The gateway could not open the file just now.", retry_after=1) from error
        except WorkFailed as error:
            raise FileUnreadable("The file could not be opened as a picture.") from error
        return StoredFile(
            token=new_id("file"),
            account_id=account_id,
            sha256=sha256,
            bytes=size,
            content_type=facts.content_type,
            width=facts.width,
            height=facts.height,
            created_at=self._clock(),
            expires_at=None,
        )

    def _lock(self, file: StoredFile) -> asyncio.Lock:
        """Return the lock that keeps content of an account from being stored while it is removed."""
        return self._locks.setdefault((file.account_id, file.sha256), asyncio.Lock())


def contradiction(file: StoredFile, declared: str | None) -> str | None:
    """Return the problem if the declared `file.type` differs from the content, or None."""
    if declared in (None, "image") or TYPE_NAMES.get(declared) == file.content_type:
        return None
    return f'`type` says "{declared}", but the bytes are {file.content_type}.'


def is_data_uri(url: Any) -> bool:
    """Return whether the URL itself contains the bytes."""
    return isinstance(url, str) and url[:5].lower() == "data:"


def decode_data_uri(uri: str) -> bytes:
    """Return the bytes inside a `data:` URI."""
    head, comma, body = uri[5:].partition(",")
    if not comma:
        raise FileUnreadable("The `data:` URI has no comma before its data.")
    if len(body) > MAX_FILE_BYTES * 3:
        raise FileUnreadable(f"The file is larger than {MAX_FILE_BYTES >> 20} MB.")
    if head.lower().endswith(";base64"):
        return _decode_base64(unquote(body))
    return unquote_to_bytes(body)


def _decode_base64(text: str) -> bytes:
    """Decode base64 with or without padding. White space is removed only if decoding fails with it."""
    for clean in (False, True):
        body = ("".join(text.split()) if clean else text).rstrip("=")
        try:
            return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        except (binascii.Error, ValueError):
            continue
    raise FileUnreadable("The `data:` URI is not valid base64.")
