"""Uploads in several requests: bytes are appended as they arrive, and a whole file is opened and stored like any."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

from penstock.domain.files import MAX_BYTES, FileKind, clean_name, sniff_kind
from penstock.domain.job_errors import FileUnreadable
from penstock.errors import BodyTooLarge, InvalidRequest, UploadNotFound, UploadOffsetConflict
from penstock.jobs.files.inputs import Inputs
from penstock.storage.open_uploads import OpenUpload, UploadFolder, append
from penstock.store.queries.files.file_rows import AlreadyStored

BATCH_BYTES: Final = 1 << 20
HEAD_BYTES: Final = 32
"""Bytes by which the kind of a file is known."""
KINDS: Final[dict[str, FileKind]] = {"image": "image", "video": "video", "audio": "audio", "model": "3d"}
"""Kinds by the first part of a declared content type."""


class ResumableUploads:
    """The uploads in progress at this gateway, and at all that share its folder."""

    def __init__(
        self, folder: UploadFolder, inputs: Inputs, retention: Callable[[], float | None], clock: Callable[[], float]
    ) -> None:
        self._folder = folder
        self._inputs = inputs
        self._retention = retention
        self._clock = clock

    async def create(
        self, account_id: str, length: int, metadata: str, given_name: str, content_type: str, room: int | None
    ) -> OpenUpload:
        """Begin an upload. Raise if it is too large for its declared kind or for the account, or one of too many.

        `room` is what is left of the account's storage quota, if it has one.
        """
        kind = KINDS.get(content_type.partition("/")[0].lower())
        _check_length(length, kind)
        name = clean_name(given_name)
        create = self._folder.create
        return await asyncio.to_thread(create, account_id, length, metadata, name, self._clock(), room)

    async def create_parts(self, account_id: str, given_name: str) -> OpenUpload:
        """Begin an upload in parts, whose size is known at the end. Raise if the account has too many uploads."""
        create, name = self._folder.create, clean_name(given_name)
        most = max(MAX_BYTES.values())
        return await asyncio.to_thread(create, account_id, most, "", name, self._clock(), is_open_ended=True)

    async def find(self, account_id: str, upload_id: str) -> OpenUpload:
        """Return an upload. One that a crash left whole but not stored is stored first."""
        upload = await self._find(account_id, upload_id)
        if upload.is_whole and upload.file_token is None:
            return await self.append(account_id, upload_id, upload.length, _nothing())
        return upload

    async def append(self, account_id: str, upload_id: str, offset: int, chunks: AsyncIterator[bytes]) -> OpenUpload:
        """Append bytes at this offset. With the last one, open the file and store it."""
        with self._inputs.under_way(account_id):
            upload = await self._find(account_id, upload_id)
            if upload.file_token is not None:
                if offset == upload.length:
                    return upload
                raise _conflict(upload.length, offset)
            with self._folder.open_part(upload) as part:
                size = os.fstat(part).st_size
                if size != offset:
                    raise _conflict(size, offset)
                size = await self._receive(upload, part, size, chunks)
                upload = replace(upload, offset=size)
                if not os.fstat(part).st_nlink:  # it was deleted meanwhile
                    raise UploadNotFound
                return await self._store(upload) if upload.is_whole else upload

    async def find_parts(self, account_id: str, upload_id: str) -> OpenUpload:
        """Return an upload in parts."""
        return await self._find(account_id, upload_id)

    async def put_part(self, account_id: str, upload_id: str, offset: int, chunks: AsyncIterator[bytes]) -> None:
        """Write bytes from this offset, in the place of those that a cut request has left behind it."""
        with self._inputs.under_way(account_id):
            upload = await self._find(account_id, upload_id)
            if upload.file_token is not None:
                return
            with self._folder.open_part(upload) as part:
                size = os.fstat(part).st_size
                if size < offset:
                    raise _conflict(size, offset)
                os.ftruncate(part, offset)
                await self._receive(upload, part, offset, chunks)
                if not os.fstat(part).st_nlink:  # it was deleted meanwhile
                    raise UploadNotFound

    async def finish(self, account_id: str, upload_id: str, token: str) -> None:
        """End an upload with the bytes that it has, and store the file under the token that it was promised."""
        with self._inputs.under_way(account_id):
            upload = await self._find(account_id, upload_id)
            if upload.file_token is not None:
                return
            with self._folder.open_part(upload) as part:
                size = os.fstat(part).st_size
                await self._store(replace(upload, length=size, offset=size), token)

    async def remove(self, account_id: str, upload_id: str) -> None:
        """End an upload and remove its bytes. The file of one that was finished stays."""
        upload = await self._find(account_id, upload_id)
        await asyncio.to_thread(self._folder.remove, upload)

    async def sweep(self) -> int:
        """Remove expired uploads."""
        return await asyncio.to_thread(self._folder.sweep, self._clock())

    async def _find(self, account_id: str, upload_id: str) -> OpenUpload:
        return await asyncio.to_thread(self._folder.find, account_id, upload_id, self._clock())

    async def _receive(self, upload: OpenUpload, part: int, size: int, chunks: AsyncIterator[bytes]) -> int:
        """Write the bytes as they arrive, also those before a cut. Return the new offset."""
        batch = bytearray()
        try:
            async for chunk in chunks:
                batch += chunk
                if size + len(batch) > upload.length:
                    batch.clear()
                    _refuse_excess(upload)
                if len(batch) >= BATCH_BYTES:
                    written, batch = batch, bytearray()
                    await _to_the_end(append, part, bytes(written))
                    size = await self._check_kind(upload, part, size, len(written))
        except BaseException:  # also of a caller that left: a thread could not be waited for
            append(part, bytes(batch))
            raise
        await _to_the_end(append, part, bytes(batch))
        return await self._check_kind(upload, part, size, len(batch))

    async def _check_kind(self, upload: OpenUpload, part: int, size: int, added: int) -> int:
        """Return the new offset. Refuse a file that is too large for its kind as soon as its first bytes say so."""
        if size < HEAD_BYTES <= size + added and not upload.is_open_ended:
            try:
                _check_length(upload.length, sniff_kind(os.pread(part, HEAD_BYTES, 0)))
            except BodyTooLarge:
                await asyncio.to_thread(self._folder.remove, upload)
                raise
        return size + added

    async def _store(self, upload: OpenUpload, promised: str | None = None) -> OpenUpload:
        """Open a whole file and store it. Remove the upload if it cannot be opened."""
        path = self._folder.part(upload)
        token = ""

        async def announce(found: str) -> None:
            nonlocal token
            token = found
            await asyncio.to_thread(self._folder.describe, replace(upload, file_token=found))

        try:
            with suppress(AlreadyStored):
                await self._inputs.take(path, upload.account_id, self._retention(), upload.name, announce, promised)
        except FileUnreadable as error:
            await asyncio.to_thread(self._folder.remove, upload)
            raise InvalidRequest(error.message, code=error.code, param="file") from None
        await asyncio.to_thread(Path.unlink, path, missing_ok=True)
        return replace(upload, file_token=token)


def _check_length(length: int, kind: FileKind | None) -> None:
    most = max(MAX_BYTES.values()) if kind is None else MAX_BYTES[kind]
    if length > most:
        message = f"The file is too large: at most {most >> 20} MB are allowed for its kind."
        raise BodyTooLarge(message, param="Upload-Length")


def _refuse_excess(upload: OpenUpload) -> NoReturn:
    message = f"The upload has more bytes than its length of {upload.length}."
    raise BodyTooLarge(message, suggestion="Send no more than `Upload-Length` bytes.")


def _conflict(size: int, offset: int) -> UploadOffsetConflict:
    message = f"The upload has {size} bytes, so that `Upload-Offset` must be {size}, not {offset}."
    return UploadOffsetConflict(message, param="Upload-Offset")


async def _to_the_end(work: Callable[[int, bytes], None], part: int, data: bytes) -> None:
    """Run work in a thread. A cancel waits for it, as the part is closed after it."""
    task = asyncio.ensure_future(asyncio.to_thread(work, part, data))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""
