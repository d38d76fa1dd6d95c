"""A weight in parts, and a server on loopback that is both its upstream and the index of its packages."""

import hashlib
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from weight_packages import make_weight, registry, send

from penstock_engines.weights import Part, Weight

PART_BYTES = 1_250_000  # more than one chunk of a download
WHOLE = hashlib.shake_256(b"parts").digest(2 * PART_BYTES + 500_000)  # the last part is smaller
PIECES = [WHOLE[start : start + PART_BYTES] for start in range(0, len(WHOLE), PART_BYTES)]
UPSTREAM = "/hub/upstream-name.gguf"


def make_parts(address: str = "") -> Weight:
    """A weight in three parts."""
    parts = tuple(Part(len(piece), hashlib.sha256(piece).hexdigest()) for piece in PIECES)
    return make_weight(
        WHOLE,
        name="large.gguf",
        package="penstock-test-part{number}",
        member="inside{number}/part{number:02}.bin",
        parts=parts,
        address=address,
        optional=True,
    )


def pack_parts(folder: Path, pieces: list[bytes] = PIECES) -> Path:
    """Write the wheel of each part into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, piece in enumerate(pieces, 1):
        about = f"penstock_test_part{number}-1.2.3.dist-info"
        with zipfile.ZipFile(folder / f"penstock_test_part{number}-1.2.3-py3-none-any.whl", "w") as archive:
            archive.writestr(f"inside{number}/part{number:02}.bin", piece)
            archive.writestr(
                f"{about}/METADATA", f"Metadata-Version: 2.1\nName: penstock-test-part{number}\nVersion: 1.2.3\n"
            )
            archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{about}/RECORD", "")
    return folder


@dataclass
class PartServer:
    """The state of the server: its files, its manners, and the requests for files so far."""

    wheels: Path
    upstream: bytes | None = None
    """None answers 404."""
    has_ranges: bool = True
    breaks_after: int | None = None
    """Number of bytes of the upstream file after which each connection breaks."""
    url: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])

    @property
    def weight(self) -> Weight:
        """The weight, with the address of this server's upstream file."""
        return make_parts(f"{self.url}{UPSTREAM}")

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Serve the index, a wheel or the upstream file."""
        if found := re.fullmatch(r"/simple/penstock-test-part(\d+)/", request.path):
            name = f"penstock_test_part{found[1]}-1.2.3-py3-none-any.whl"
            send(request, f'<a href="/files/{name}">{name}</a>'.encode(), "text/html")
            return
        wheel = self.wheels / Path(request.path).name
        if request.path == UPSTREAM and self.upstream is not None:
            self._send_file(request, self.upstream, self.breaks_after)
        elif request.path.startswith("/files/") and wheel.is_file():
            self._send_file(request, wheel.read_bytes(), None)
        else:
            self.asked.append((request.path, None))
            request.send_error(404)

    def _send_file(self, request: BaseHTTPRequestHandler, content: bytes, breaks_after: int | None) -> None:
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.has_ranges else 0
        if wanted and start >= len(content):
            request.send_error(416)
            return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("content-range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.send_header("content-length", str(len(content) - start))
        request.end_headers()
        rest = content[start:]
        request.wfile.write(rest if breaks_after is None else rest[:breaks_after])


@contextmanager
def part_server(server: PartServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[PartServer]:
    """Serve on loopback, as the only index that pip knows."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        server.answer(request)

    with registry(answer) as url:
        server.url = url
        for name in ("NO_INDEX", "FIND_LINKS", "EXTRA_INDEX_URL"):
            monkeypatch.delenv(f"PIP_{name}", raising=False)
        settings = {"CONFIG_FILE": "/dev/null", "INDEX_URL": f"{url}/simple", "RETRIES": "0"}
        for name, value in settings.items():
            monkeypatch.setenv(f"PIP_{name}", value)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server


def without_upstream(weight: Weight) -> Weight:
    """The weight with its packages as the only source."""
    return replace(weight, address="")
