"""File permissions: keep a server's data private from other users of its machine."""

import logging
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ALL_OTHERS: Final = 0o077
BEYOND_THE_GROUP: Final = 0o007
OWN_NAMES: Final = (
    *("penstock.db", "penstock.db-wal", "penstock.db-shm", "penstock.db-turn", "penstock.lock"),
    *("config.toml", "first-key", "master-key", "master-key.next"),
    *("assets", "files", "journal", "landing", "vendors"),
)
"""Names directly inside a data or assets folder; a private folder protects everything in it."""
STORE_ENDINGS: Final = ("", "-wal", "-shm", "-turn")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """A file or folder that other users may read or change, and why it cannot be made private."""

    path: Path
    mode: int
    obstacle: str

    @property
    def octal(self) -> str:
        """Return the permissions as `chmod` writes them."""
        return f"{self.mode:04o}"


def mask_of(folder: Path) -> int:
    """Return the bits that nothing in this folder may have.

    A folder with the set-group-ID bit was given to a group on purpose, as Kubernetes does for `fsGroup`: the group's
    bits are left alone there.
    """
    try:
        is_shared = bool(folder.stat().st_mode & stat.S_ISGID)
    except OSError:  # not created yet
        is_shared = False
    return BEYOND_THE_GROUP if is_shared else ALL_OTHERS


@contextmanager
def private_umask(folder: Path) -> Generator[None]:
    """Make new files and folders private. The mask applies to the whole process."""
    before = os.umask(mask_of(folder))
    try:
        yield
    finally:
        os.umask(before)


def tighten(data: Path, store: Path | None = None, assets: Path | None = None) -> list[OpenPlace]:
    """Make a server's folders and files private, and return those that stay open. Never raises, follows no links."""
    found: list[OpenPlace] = []
    for folder, names in _places(data, store, assets):
        mask = mask_of(folder)
        inside = [place for name in names if (place := _close(folder / name, mask)) is not None]
        around = None if _is_of_everyone(folder) else _close(folder, mask)
        found += _reachable(folder, around, inside, mask)
    return found


def find_open(data: Path, store: Path | None = None, assets: Path | None = None) -> list[OpenPlace]:
    """Return the files that other users may read or change, without changing anything."""
    found: list[OpenPlace] = []
    for folder, names in _places(data, store, assets):
        mask = mask_of(folder)
        inside = [place for name in names if (place := look(folder / name, mask)) is not None]
        found += _reachable(folder, look(folder, mask), inside, mask)
    return found


def warn_of(places: Iterable[OpenPlace]) -> None:
    """Log the files that other users may read or change."""
    for place in places:
        fields = {"path": str(place.path), "mode": place.octal, "reason": place.obstacle}
        log.warning("open to other users of this machine, and could not be closed", extra={"fields": fields})


def look(path: Path, mask: int = ALL_OTHERS) -> OpenPlace | None:
    """Return the file or folder if any of these bits are set. A symbolic link is not followed."""
    try:
        found = path.lstat()
    except OSError:  # absent, or not visible to us
        return None
    if stat.S_ISLNK(found.st_mode) or not stat.S_IMODE(found.st_mode) & mask:
        return None
    return OpenPlace(path, stat.S_IMODE(found.st_mode), _obstacle(found) or "")


def _places(data: Path, store: Path | None, assets: Path | None) -> Generator[tuple[Path, tuple[str, ...]]]:
    """Yield folders with the names in them that are ours; the operator's own links to the folders are followed."""
    data = data.resolve()
    yield data, OWN_NAMES
    if store is not None and store.resolve().parent != data:
        for ending in STORE_ENDINGS:
            yield Path(f"{store.resolve()}{ending}"), ()
    if assets is not None and data not in (assets.resolve(), *assets.resolve().parents):
        yield assets.resolve(), ("assets", "files")


def _reachable(folder: Path, around: OpenPlace | None, inside: list[OpenPlace], mask: int) -> list[OpenPlace]:
    """Return what counts: in a closed folder nothing, and a folder that only shows the names of what is closed neither.

    The root of a volume often belongs to root and is open to all, and nobody but the operator can change that.
    """
    if look(folder, mask) is None and folder.is_dir():
        return []
    is_telling = around is not None and (not around.obstacle or bool(around.mode & 0o022 & mask) or bool(inside))
    return [*([around] if around is not None and is_telling else []), *inside]


def _is_of_everyone(folder: Path) -> bool:
    """Return whether a folder is not the server's alone: it may hold a server's data, but is never closed."""
    try:
        is_sticky = bool(folder.stat().st_mode & stat.S_ISVTX)
    except OSError:
        return False
    home = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111  `Path.home` raises where there is none
    return is_sticky or folder in (home, *home.parents)


def _obstacle(found: os.stat_result) -> str | None:
    """Return why this process does not change a file's permissions."""
    if found.st_uid != os.geteuid():
        return f"it belongs to the user {found.st_uid}"
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return "it has other names (hard links)"
    return None


def _close(path: Path, mask: int) -> OpenPlace | None:
    """Take these bits away, and return the place if it stays open.

    The file is held by a descriptor that was made without following links, and is never opened: SQLite's locks would
    go with closing it.
    """
    place = look(path, mask)
    if place is None or not hasattr(os, "O_PATH"):
        return place
    try:
        held = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return OpenPlace(path, place.mode, error.strerror or str(error))
    try:
        found = os.fstat(held)
        obstacle = "it is a link" if stat.S_ISLNK(found.st_mode) else _obstacle(found)
        if obstacle is None:
            os.chmod(f"/proc/self/fd/{held}", stat.S_IMODE(found.st_mode) & ~mask)  # noqa: PTH101  of a descriptor
            return None
    except OSError as error:
        obstacle = error.strerror or str(error)
    finally:
        os.close(held)
    return OpenPlace(path, place.mode, obstacle)
