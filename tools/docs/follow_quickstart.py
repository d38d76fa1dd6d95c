"""Follows docs/quickstart.md to the letter on a clean checkout: every block, in order, and the time it took.

python tools/docs/follow_quickstart.py
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(?:`([\w.-]+\.\w+)`[^`\n]*:\n\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
KEY = re.compile(r"psk_\w+")
PATIENCE = 900


def check_out(folder: Path) -> None:
    """What is committed, and nothing else."""
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(folder)], check=True)  # noqa: S603, S607


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def await_key(log: Path, server: subprocess.Popen[bytes]) -> str:
    """Return the key that the first start shows on a terminal, and here puts into a file."""
    give_up_at, place = time.monotonic() + PATIENCE, log.parent / "data" / "first-key"
    while time.monotonic() < give_up_at and server.poll() is None:
        if "first API key is in" in log.read_text():
            return place.read_text().strip()
        time.sleep(0.2)
    sys.exit(f"No key was made:\n{log.read_text()}")


def follow(folder: Path, text: str, log: Path, port: str) -> None:
    """The first block starts the server; the others are one session in a second terminal."""
    own = {"PENSTOCK_DATA": str(log.parent / "data"), "PENSTOCK_SERVER_PORT": port, "no_proxy": "*"}
    environment = {**os.environ, **own, "PENSTOCK_BASE_URL": f"http://127.0.0.1:{port}"}
    (_, _, start), *rest = FENCE.findall(text)
    with log.open("wb") as out:
        server = subprocess.Popen(  # noqa: S602  the page is ours
            start, shell=True, cwd=folder, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        began = time.monotonic()
        key = await_key(log, server)
        print(f"{time.monotonic() - began:6.1f} s  make run, to the key")
        began = time.monotonic()
        lines = ["set -euo pipefail"]
        for name, language, block in rest:
            if language == "sh":
                lines.append(KEY.sub(key, block.replace("psk_…", key)))
            elif name:
                (folder / name).write_text(block)
        subprocess.run(["bash", "-c", "\n".join(lines)], cwd=folder, env=environment, check=True)  # noqa: S603, S607
        print(f"{time.monotonic() - began:6.1f} s  all other blocks")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder, port = Path(temporary) / "checkout", free_port()
        check_out(folder)
        text = (folder / "docs" / "quickstart.md").read_text().replace("8787", port)
        follow(folder, text, Path(temporary) / "server.log", port)
        for name in ("cat.glb", "boat.mp4", "small-cat.glb", "fox.mp4"):
            print(f"{(folder / name).stat().st_size:8} B  {name}")


if __name__ == "__main__":
    main()
