"""Input files from uploads, `data:` URIs and URLs. Each is opened and checked before it is stored."""

import asyncio
import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, unquote_to_bytes
from weakref import WeakValueDictionary

from penstock.domain.files import (
    MAX_BYTES,
    FileKind,
    ImageFacts,
    InputFacts,
    StoredFile,
    contradiction,
    sniff_kind,
)
from penstock.domain.ids import new_id
from penstock.domain.job_errors import FileUnreadable
from penstock.fairness.fair_queue import UnderWayLimit
from penstock.inspection.images_and_video import inspect_image
from penstock.inspection.input_media import inspect_film, inspect_mesh, inspect_sound
from penstock.inspection.worker_pool import LimitReached, ProcessPool, WorkFailed, WorkInterrupted
from penstock.storage.assets import HEAD_BYTES, Assets, Landed, measure_file
from penstock.storage.backend import StorageUnavailable
from penstock.store.database import Database
from penstock.store.queries.files import file_rows

if TYPE_CHECKING:
    from penstock.safe_fetch.fetcher import SafeFetcher

FILE_KINDS: Final[tuple[FileKind, ...]] = ("image", "video", "audio", "3d")
NAMES: Final[Mapping[FileKind, str]] = {"image": "picture", "video": "film", "audio": "sound", "3d": "3D model"}
INSPECTORS: Final[Mapping[FileKind, Callable[..., InputFacts | ImageFacts]]] = {
    "image": inspect_image,
    "video": inspect_film,
    "audio": inspect_sound,
    "3d": inspect_mesh,
}


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

    async def open(self, data: bytes, account_id: str, kinds: Sequence[FileKind] = ("image",)) -> StoredFile:
        """Open a caller's file of one of these kinds and return its description, without storing it."""
        with self._allowance.one(account_id, self._max_uploads()):
            sha256 = (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()
            return await self._open(data, data[:HEAD_BYTES], sha256, len(data), account_id, kinds)

    async def upload(
        self,
        chunks: AsyncIterator[bytes],
        account_id: str,
        retention: float | None,
        name: Callable[[], str | None] = lambda: None,
        token: str | None = None,
        kinds: Sequence[FileKind] = FILE_KINDS,
    ) -> StoredFile:
        """Receive a caller's upload of one of these kinds, then open and store it.

        Its name is known when all of it has arrived. `token` is the one that it was promised, if any. Raise
        `AlreadyStored` if another upload has it.
        """
        with self._allowance.one(account_id, self._max_uploads()):
            async with self._assets.land(chunks) as landed:
                file = await self._open_landed(landed, account_id, kinds)
                expires_at = None if retention is None else file.created_at + retention
                file = replace(file, expires_at=expires_at, name=name(), token=token or file.token)
                await self._keep(file, landed.path, is_promised=token is not None)
            return file

    def under_way(self, account_id: str) -> AbstractContextManager[None]:
        """Count one more file that this account sends while the block lasts. Raise if it sends too many."""
        return self._allowance.one(account_id, self._max_uploads())

    async def take(
        self,
        path: Path,
        account_id: str,
        retention: float | None,
        name: str | None,
        announce: Callable[[str], Awaitable[None]],
        token: str | None = None,
    ) -> StoredFile:
        """Open and store a file that is on the disk already. `announce` gets its token before it is stored.

        `token` is the one that it was promised, if any. Raise `AlreadyStored` if another upload has it.
        """
        landed = await asyncio.to_thread(measure_file, path)
        file = await self._open_landed(landed, account_id, FILE_KINDS)
        expires_at = None if retention is None else file.created_at + retention
        file = replace(file, expires_at=expires_at, name=name, token=token or file.token)
        await announce(file.token)
        await self._keep(file, path, is_promised=token is not None)
        return file

    async def fetch(
        self, url: str, declared: str | None, kinds: Sequence[FileKind], account_id: str, job_id: str
    ) -> StoredFile:
        """Download and store the file behind a URL for one job. Later reads see these bytes, not the URL."""
        fetcher = await self._fetcher()
        async with (
            aclosing(fetcher.fetch(url, max_bytes=max(MAX_BYTES[kind] for kind in kinds))) as chunks,
            self._assets.land(chunks) as landed,
        ):
            file = replace(await self._open_landed(landed, account_id, kinds), job_id=job_id)
            if problem := contradiction(file, declared):
                raise FileUnreadable(problem)
            await self._store(file, landed.path, file_rows.add_fetched, file)
        return file

    async def store(self, file: StoredFile, source: bytes | Path) -> None:
        """Write a file's row, then its bytes. Raise if they exceed the account's storage quota."""
        await self._keep(file, source, is_promised=False)

    async def _keep(self, file: StoredFile, source: bytes | Path, *, is_promised: bool) -> None:
        add = file_rows.add_promised if is_promised else file_rows.add
        await self._store(file, source, add, file, self._storage_quota())

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

    async def _open_landed(self, landed: Landed, account_id: str, kinds: Sequence[FileKind]) -> StoredFile:
        return await self._open(landed.path, landed.head, landed.sha256, landed.bytes, account_id, kinds)

    async def _open(
        self, source: bytes | Path, head: bytes, sha256: str, size: int, account_id: str, kinds: Sequence[FileKind]
    ) -> StoredFile:
        kind = _find_kind(head, kinds)
        if size > MAX_BYTES[kind]:
            raise FileUnreadable(f"The file has {size} bytes; at most {MAX_BYTES[kind]} are allowed.")
        facts = await self._inspect(account_id, kind, source)
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
            kind=kind,
            duration_seconds=facts.duration_seconds,
        )

    async def _inspect(self, account_id: str, kind: FileKind, source: bytes | Path) -> InputFacts:
        """Open a file in a confined child process and return what it is."""
        try:
            facts = await self._process_pool.insist(account_id, INSPECTORS[kind], source)
        except LimitReached as error:
            message = (
                f"Opening the {NAMES[kind]} takes more time or memory than allowed. Save it again, smaller or simpler."
            )
            raise FileUnreadable(message) from error
        except WorkInterrupted as error:
            raise StorageUnavailable("The gateway could not open the file just now.", retry_after=1) from error
        except WorkFailed as error:
            raise FileUnreadable(f"The file could not be opened as a {NAMES[kind]}.") from error
        return facts if isinstance(facts, InputFacts) else InputFacts(facts.content_type, facts.width, facts.height)

    def _lock(self, file: StoredFile) -> asyncio.Lock:
        """Return the lock that keeps content of an account from being stored while it is removed."""
        return self._locks.setdefault((file.account_id, file.sha256), asyncio.Lock())


def _find_kind(head: bytes, kinds: Sequence[FileKind]) -> FileKind:
    """Return the kind of a file by its first bytes. Raise if it is none of these kinds."""
    found = sniff_kind(head)
    if found is not None and found in kinds:
        return found
    if found is None and "3d" in kinds:
        return "3d"  # OBJ, STL and FBX may be plain text
    if found is None and len(kinds) == 1:
        return kinds[0]  # its inspection says what is allowed
    allowed = " or ".join(NAMES[kind] for kind in kinds)
    got = "of an unknown type" if found is None else f"a {NAMES[found]}"
    raise FileUnreadable(f"The file is {got}; allowed here: {allowed}.")


def is_data_uri(url: Any) -> bool:
    """Return whether the URL itself contains the bytes."""
    return isinstance(url, str) and url[:5].lower() == "data:"


def decode_inline(text: str, kinds: Sequence[FileKind] = ("image",)) -> bytes:
    """Return the bytes inside a `data:` URI or a Base64 text."""
    most = max(MAX_BYTES[kind] for kind in kinds)
    if len(text) > most * 3:
        raise FileUnreadable(f"The file is larger than {most >> 20} MB.")
    return decode_data_uri(text) if is_data_uri(text) else _decode_base64(text, "The text in `data`")


def decode_data_uri(uri: str) -> bytes:
    """Return the bytes inside a `data:` URI."""
    head, comma, body = uri[5:].partition(",")
    if not comma:
        raise FileUnreadable("The `data:` URI has no comma before its data.")
    if head.lower().endswith(";base64"):
        return _decode_base64(unquote(body), "The `data:` URI")
    return unquote_to_bytes(body)


def _decode_base64(text: str, what: str) -> bytes:
    """Decode base64 with or without padding. White space is removed only if decoding fails with it."""
    for clean in (False, True):
        body = ("".join(text.split()) if clean else text).rstrip("=")
        try:
            return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        except (binascii.Error, ValueError):
            continue
    raise FileUnreadable(f"{what} is not valid base64.")
