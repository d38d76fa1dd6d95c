"""The master key: that of the settings, or else one in a private file of the data folder."""

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.errors import SecretsUnavailable
from penstock.settings.values import MASTER_KEY_BYTES, parse_master_key

FILE, NEXT_FILE = "master-key", "master-key.next"
"""The generated key, and its successor while a rotation is under way."""
ID_BYTES: Final = 6


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A master key and its origin, for messages."""

    secret: bytes = field(repr=False)
    origin: str

    @property
    def id(self) -> str:
        """Return a name that reveals nothing of the key."""
        return hmac.digest(self.secret, b"penstock master key id", hashlib.sha256)[:ID_BYTES].hex()


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master keys that a process knows. `set_key` is that of the settings."""

    folder: Path
    set_key: MasterKey | None = None
    previous: MasterKey | None = None

    @classmethod
    def of(cls, folder: Path, set_key: str | None, previous: str | None) -> "MasterKeys":
        """Return the keys of these settings. Files are read when they are needed."""
        return cls(folder, _of_settings(set_key, "sealing.master_key"), _of_settings(previous, "sealing.previous_key"))

    def read_all(self) -> dict[str, MasterKey]:
        """Return every known key by its id. The file of the data folder counts beside the settings."""
        found = [self.set_key, self.previous, self.read_file(), self.read_file(NEXT_FILE)]
        return {key.id: key for key in found if key is not None}

    def read_file(self, name: str = FILE) -> MasterKey | None:
        """Return the key of the data folder, or None if it has none."""
        path = self.folder / name
        try:
            text = path.read_text("ascii").strip()
            return MasterKey(parse_master_key(text), str(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it does not hold a key"
            raise SecretsUnavailable(
                f"The master key in {path} cannot be used: {reason}.",
                suggestion="Restore that file from its backup. Without it, the stored secrets must be entered again.",
            ) from None

    def make_file(self, name: str = FILE) -> MasterKey:
        """Return the key of the data folder. Make it first if there is none: on disk before anything uses it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / name
        draft = self.folder / f".{name}.{secrets.token_hex(6)}"
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(MASTER_KEY_BYTES) + "\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was faster, and its key counts
                os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(self.folder)
        found = self.read_file(name)
        if found is None:  # pragma: no cover  removed between two lines
            raise SecretsUnavailable(f"The master key in {path} is gone.")
        return found

    def promote_next(self) -> None:
        """Put the successor in the place of the key."""
        (self.folder / NEXT_FILE).replace(self.folder / FILE)
        sync_folder(self.folder)


def _of_settings(text: str | None, origin: str) -> MasterKey | None:
    return None if text is None else MasterKey(parse_master_key(text), origin)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk."""
    held = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)
