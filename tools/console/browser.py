"""Finds a Chromium for the console's tests and pictures, and fetches one where there is none: `make test` runs this.

CHROMIUM in the environment names one; else what is on the PATH is taken; else root installs the distribution's package;
else that package and what it needs are unpacked below .cache, for which nobody need be root.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FOLDER = Path(__file__).parents[2] / ".cache" / "browser"
UNPACKED = FOLDER / "chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
"""It asks nobody for anything by itself, and draws 3D without a graphics card."""
PACKAGES = ("chromium-headless-shell", "chromium")
"""The first is Chromium without its window, which takes three quarters of the CPU. Not every distribution has it."""
PATIENCE_SECONDS = 300


def find() -> str | None:
    """A Chromium that starts, if there is one already."""
    return next((path for path in _candidates() if _starts(path)), None)


def fetch() -> str | None:
    """A Chromium that starts, fetched if need be."""
    if found := find():
        return found
    if platform.system() != "Linux" or shutil.which("apt-get") is None:
        return None
    for package in PACKAGES:
        try:
            _install(package) if os.geteuid() == 0 else _unpack(package)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{package} could not be fetched: {error}", file=sys.stderr)
        if found := find():
            return found
    return None


def _candidates() -> Iterator[str]:
    if given := os.environ.get("CHROMIUM"):
        yield given
        return
    yield from filter(None, map(shutil.which, NAMES))
    if UNPACKED.is_file():
        yield str(UNPACKED)


def _starts(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False).returncode == 0  # noqa: S603  a browser that was named or found
    except (OSError, subprocess.TimeoutExpired):
        return False


def _install(package: str) -> None:
    _run("apt-get", "update", "-qq")
    _run("apt-get", "install", "-qq", "-y", "--no-install-recommends", package)


def _unpack(package: str) -> None:
    """Apt with folders of its own: it reads what is installed, and changes none of it."""
    lists, packages, root = (FOLDER / name for name in ("lists", "packages", "root"))
    for folder in (lists / "partial", packages / "partial", root):
        folder.mkdir(parents=True, exist_ok=True)
    options = ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={packages}", "-o", "Debug::NoLocking=1")
    _run("apt-get", *options, "update", "-qq")
    plan = _run("apt-get", *options, "--simulate", "install", "--no-install-recommends", package)
    wanted = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
    _run("apt-get", *options, "download", "-qq", *wanted, cwd=packages)
    for archive in sorted(packages.glob("*.deb")):
        _run("dpkg", "-x", str(archive), str(root))
    _write_starter(root, package)
    shutil.rmtree(packages)
    shutil.rmtree(lists)


def _write_starter(root: Path, package: str) -> None:
    """A command that shows the program where its libraries and fonts are."""
    program = root / "usr" / "lib" / "chromium" / package
    folders = sorted({str(path.parent) for path in root.rglob("*.so*") if program.parent not in path.parents})
    lines = ["#!/bin/sh", f'export LD_LIBRARY_PATH="{":".join(folders)}"']
    if not Path("/etc/fonts/fonts.conf").exists():
        lines.append(f'export FONTCONFIG_SYSROOT="{root}"')
    UNPACKED.write_text("\n".join([*lines, f'exec "{program}" "$@"', ""]))
    UNPACKED.chmod(0o755)


def _run(*command: str, cwd: Path | None = None) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(  # noqa: S603  apt and dpkg, with arguments of ours
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    if done.returncode:
        raise OSError(f"{' '.join(command[:1])} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


if __name__ == "__main__":
    browser = fetch()
    print(browser or "There is no Chromium, and none could be fetched: the console's tests are skipped.")
