"""Keeps bytes: callers' files and jobs' outputs, in a folder through obstore (S3 speaks the same)."""

import asyncio
import base64
import hashlib
import hmac
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.store import LocalStore

from penstock import metrics
from penstock.errors import AssetExpired, AssetNotFound, FileNotFound
from penstock.files import StoredFile
from penstock.job_errors import BadOutput

MAX_OUTPUT_BYTES = 2 * 1024**3
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Landed:
    """A download that lies whole in a temporary file, not yet checked."""

    path: Path
    bytes: int
    sha256: str


def file_key(account_id: str, sha256: str) -> str:
    """Where a file's bytes are: once per account and content."""
    return f"files/{account_id}/{sha256}"


def asset_key(job_id: str, filename: str) -> str:
    """Where an output's bytes are; collecting twice overwrites, so a crash leaves nothing behind."""
    return f"assets/{job_id}/{filename}"


class Assets:
    """The byte store. Names inside it never come from a caller."""

    def __init__(self, folder: Path, signing_secret: bytes) -> None:
        self._store = LocalStore(folder, mkdir=True, automatic_cleanup=True)  # no empty folders of removed jobs
        self._landing = folder / "landing"
        self._landing.mkdir(exist_ok=True)
        self._signing_secret = signing_secret

    def clear_landing(self) -> None:
        """Remove the half downloads of a former process; nobody may be downloading."""
        for left_over in self._landing.iterdir():
            left_over.unlink(missing_ok=True)

    # -- callers' files

    async def put_file(self, account_id: str, sha256: str, data: bytes) -> None:
        """Keep a file's bytes."""
        await obstore.put_async(self._store, file_key(account_id, sha256), data)
        metrics.BYTES_STORED.labels("file").inc(len(data))

    async def get_file(self, file: StoredFile) -> bytes:
        """A file's bytes."""
        try:
            result = await obstore.get_async(self._store, file_key(file.account_id, file.sha256))
        except FileNotFoundError:
            raise FileNotFound from None
        return bytes(await result.bytes_async())

    def remove_file(self, file: StoredFile) -> None:
        """Forget a file's bytes."""
        with suppress(FileNotFoundError):
            obstore.delete(self._store, file_key(file.account_id, file.sha256))

    # -- jobs' outputs

    @asynccontextmanager
    async def land(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Landed]:
        """Write a download to a temporary file, hashed on the way; it is gone when the block ends."""
        handle, name = tempfile.mkstemp(dir=self._landing)
        path, digest, size = Path(name), hashlib.sha256(), 0
        try:
            with open(handle, "wb") as file:  # noqa: ASYNC230, PTH123  only opened here, written in a thread
                async for chunk in chunks:
                    size += len(chunk)
                    if size > MAX_OUTPUT_BYTES:
                        raise BadOutput(f"The output is larger than {MAX_OUTPUT_BYTES >> 30} GB.")
                    await asyncio.to_thread(file.write, chunk)
                    await asyncio.to_thread(digest.update, chunk)
            yield Landed(path, size, digest.hexdigest())
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def keep(self, job_id: str, filename: str, landed: Landed) -> None:
        """Move a checked output into the store."""
        await obstore.put_async(self._store, asset_key(job_id, filename), landed.path)
        metrics.BYTES_STORED.labels("asset").inc(landed.bytes)

    async def stream(self, job_id: str, filename: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not with, `end`."""
        if start >= end:
            return
        try:
            options = {"range": (start, end)}
            result = await obstore.get_async(self._store, asset_key(job_id, filename), options=options)  # pyright: ignore[reportArgumentType] its own TypedDict
        except FileNotFoundError:
            raise AssetNotFound from None
        async for chunk in result.stream(min_chunk_size=CHUNK):
            yield bytes(chunk)

    async def remove_outputs(self, job_id: str) -> None:
        """Forget all outputs of a job."""
        async for batch in self._store.list(f"assets/{job_id}"):  # pyright: ignore[reportUnknownMemberType] its Arrow form
            for item in batch:
                with suppress(FileNotFoundError):
                    await obstore.delete_async(self._store, item["path"])

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
