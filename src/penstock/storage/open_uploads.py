"""Uploads in progress on the disk: the bytes received so far, and a small file that describes each.

The size of the part is the offset, so that an upload continues after a crash of the gateway, and at any gateway that
shares the folder. A lock on the part keeps two requests from writing to it.
"""

import fcntl
import json
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from penstock.domain.ids import new_id
from penstock.errors import StorageQuotaExceeded, TooManyUploads, UploadExpired, UploadLocked, UploadNotFound

LIFE_SECONDS: Final = 86_400.0
MAX_OPEN: Final = 32
"""Open uploads of one account."""
MAX_OPEN_BYTES: Final = 4 << 30
"""Declared bytes of an account's open uploads together."""
UPLOAD_ID: Final = re.compile(r"upload_[0-9a-z]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenUpload:
    """An upload in progress, or one that has become a file."""

    id: str
    account_id: str
    length: int
    metadata: str
    """As the caller sent it."""
    name: str | None
    created_at: float
    expires_at: float
    file_token: str | None = None
    offset: int = 0
    """Bytes received."""
    is_open_ended: bool = False
    """Whether its sender says at the end how long it is. `length` is then the largest that it may have."""

    @property
    def is_whole(self) -> bool:
        """Return whether all bytes have been received."""
        return self.offset == self.length


class UploadFolder:
    """The open uploads of all accounts, in a folder for each."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def part(self, upload: OpenUpload) -> Path:
        """Return the path of the bytes received so far."""
        return self._folder(upload.account_id) / f"{upload.id}.part"

    def create(
        self,
        account_id: str,
        length: int,
        metadata: str,
        name: str | None,
        now: float,
        room: int | None = None,
        *,
        is_open_ended: bool = False,
    ) -> OpenUpload:
        """Begin an upload. Raise if the account has too many, or all of them together need more bytes than `room`."""
        folder = self._folder(account_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        upload = OpenUpload(
            id=new_id("upload"),
            account_id=account_id,
            length=length,
            metadata=metadata,
            name=name,
            created_at=now,
            expires_at=now + LIFE_SECONDS,
            is_open_ended=is_open_ended,
        )
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._check_room(folder, length, now, room)
            self.part(upload).touch(mode=0o600, exist_ok=False)
            self.describe(upload)
        return upload

    def _check_room(self, folder: Path, length: int, now: float, room: int | None) -> None:
        lengths = [each.length for each in self._all(folder) if each.file_token is None and each.expires_at > now]
        if len(lengths) >= MAX_OPEN:
            message = f"The account has {len(lengths)} open uploads, the most allowed. Finish or delete one."
            raise TooManyUploads(message, retry_after=1)
        if sum(lengths) + length > MAX_OPEN_BYTES:
            message = f"The account's open uploads may have {MAX_OPEN_BYTES >> 30} GB in all. Finish or delete one."
            raise TooManyUploads(message, retry_after=1)

        if room is not None and sum(lengths) + length > room:
            message = (
                f"This upload and the open ones have {sum(lengths) + length} bytes, but the quota has {room} left."
            )
            raise StorageQuotaExceeded(message, param="Upload-Length")

    def describe(self, upload: OpenUpload) -> None:
        """Write the description of an upload, at once or not at all."""
        path = self._description(upload.account_id, upload.id)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({**asdict(upload), "offset": 0}))
        draft.replace(path)

    def find(self, account_id: str, upload_id: str, now: float) -> OpenUpload:
        """Return an account's upload. Raise if there is none, or it has expired."""
        if UPLOAD_ID.fullmatch(upload_id) is None:
            raise UploadNotFound
        try:
            upload = _read(self._description(account_id, upload_id))
        except (OSError, ValueError, TypeError):
            raise UploadNotFound from None
        if upload.expires_at <= now:
            raise UploadExpired
        try:
            return replace(upload, offset=self.part(upload).stat().st_size, file_token=None)
        except FileNotFoundError:  # it has become a file
            if upload.file_token is None:
                raise UploadNotFound from None
            return replace(upload, offset=upload.length)

    @contextmanager
    def open_part(self, upload: OpenUpload) -> Generator[int]:
        """Open the part for appending. Raise if another request writes to it, or it is gone."""
        try:
            part = os.open(self.part(upload), os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            raise UploadNotFound from None
        try:
            try:
                fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UploadLocked(retry_after=1) from None
            yield part
        finally:
            os.close(part)

    def remove(self, upload: OpenUpload) -> None:
        """Remove an upload with its bytes."""
        self.part(upload).unlink(missing_ok=True)
        self._description(upload.account_id, upload.id).unlink(missing_ok=True)

    def sweep(self, now: float) -> int:
        """Remove the bytes of expired uploads, and later their descriptions. Return the number of uploads removed."""
        removed = 0
        for folder in self._root.glob("*/"):
            for upload in self._all(folder):
                if upload.expires_at <= now:
                    self.part(upload).unlink(missing_ok=True)
                if upload.expires_at + LIFE_SECONDS <= now:
                    self.remove(upload)
                    removed += 1
        return removed

    def _all(self, folder: Path) -> Iterator[OpenUpload]:
        for path in folder.glob("upload_*.json"):
            with suppress(OSError, ValueError, TypeError):
                yield _read(path)

    def _folder(self, account_id: str) -> Path:
        return self._root / account_id

    def _description(self, account_id: str, upload_id: str) -> Path:
        return self._folder(account_id) / f"{upload_id}.json"


def _read(path: Path) -> OpenUpload:
    return OpenUpload(**json.loads(path.read_text()))


def append(part: int, data: bytes) -> None:
    """Write all bytes at the end of an open part."""
    left = memoryview(data)
    while left:  # the system may take less at once
        left = left[os.write(part, left) :]
