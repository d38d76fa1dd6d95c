"""`GET /console`: the built console, or a page that explains how to build it."""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

import penstock
from penstock.errors import NotFound

router = APIRouter(include_in_schema=False)

Names: TypeAlias = Mapping[str, Path]
FOLDER = Path(penstock.__file__).with_name("console")
PAGE = "index.html"
HASHED = "assets/"
"""Folder of files with a digest in their names. They never change."""
NONCE = "{{nonce}}"
"""Placeholder in the built page for the nonce of each request."""
ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
IMMUTABLE, REVALIDATE = "public, max-age=31536000, immutable", "no-cache"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webp": "image/webp",
}
# Styles need a nonce because the components write variables into a style element. The 3D viewer reads the images
# inside a model from blob: URLs, hence connect-src.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# For scripts that run as workers. Those of the 3D viewer compile WebAssembly decoders and make no connections. The
# texture decoder also builds functions from strings.
WORKER_POLICY = "default-src 'none'; script-src 'wasm-unsafe-eval'"
TEXTURES = f"{HASHED}viewer_basis"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
UNBUILT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The console is not built - Penstock</title>
<style nonce="{{nonce}}">
body { font: 16px/1.6 system-ui, sans-serif; max-width: 38rem; margin: 15vh auto; padding: 0 1.5rem }
</style>
</head>
<body>
<h1>The console is not built</h1>
<p>This server runs from a checkout that has no built console. Install Node 20.19 or newer with npm, then run this
in the checkout:</p>
<pre>make console</pre>
<p>Then reload this page. You do not have to restart the server. Everything else works without the console, see
<a href="/docs">the reference</a>.</p>
</body>
</html>
"""


@dataclass(slots=True)
class ConsoleFiles:
    """The files of one build by name. Paths are only looked up here, so none can leave the folder."""

    folder: Path = FOLDER
    built_at: int | None = None
    names: Names = field(default_factory=dict[str, Path])
    page: str = UNBUILT

    def refresh(self) -> None:
        """List the files again if the console was built since the last call."""
        try:
            built_at = (self.folder / PAGE).stat().st_mtime_ns
            if built_at != self.built_at:
                files = [path for path in self.folder.rglob("*") if path.is_file()]
                self.names = {path.relative_to(self.folder).as_posix(): path for path in files}
                self.page = (self.folder / PAGE).read_text("utf-8")
                self.built_at = built_at
        except FileNotFoundError:
            self.built_at, self.names, self.page = None, {}, UNBUILT


@router.get("/")
async def redirect_to_console() -> Response:
    """Redirect a browser that opens the bare address to the console."""
    return RedirectResponse("/console", 307)


@router.get("/console")
@router.head("/console")
@router.get("/console/{path:path}")
@router.head("/console/{path:path}")
async def read_console(request: Request, path: str = "") -> Response:
    """Answer with a file of the build, or with the page, which shows what its path names."""
    files = files_of(request)
    await asyncio.to_thread(files.refresh)
    if path in files.names and path != PAGE:
        return await _answer_file(request, files.names, path)
    if path.startswith(HASHED):
        raise NotFound("The console has no such file.", suggestion="Reload the page: the console was rebuilt.")
    nonce = secrets.token_urlsafe(18)
    headers = {**HEADERS, "content-security-policy": POLICY.format(nonce=nonce), "cache-control": REVALIDATE}
    return HTMLResponse(files.page.replace(NONCE, nonce), headers=headers)


async def _answer_file(request: Request, names: Names, path: str) -> Response:
    accepted = {each.partition(";")[0].strip() for each in request.headers.get("accept-encoding", "").split(",")}
    headers = {
        **HEADERS,
        "cache-control": IMMUTABLE if path.startswith(HASHED) else REVALIDATE,
        "vary": "accept-encoding",
    }
    if path.endswith(".js"):
        headers["content-security-policy"] = WORKER_POLICY + (" 'unsafe-eval'" if path.startswith(TEXTURES) else "")
    stored = names[path]
    for encoding, suffix in ENCODINGS:
        if encoding in accepted and path + suffix in names:
            headers["content-encoding"] = encoding
            stored = names[path + suffix]
            break
    try:
        body = await asyncio.to_thread(stored.read_bytes)
    except FileNotFoundError:
        raise NotFound("The console has no such file.", suggestion="Reload the page.") from None
    kind = KINDS.get(Path(path).suffix, "application/octet-stream")
    return Response(body, headers={**headers, "content-type": kind})


def files_of(request: Request) -> ConsoleFiles:
    """Return the files of the built console. Call `refresh` before using them."""
    state: Any = request.app.state
    if not hasattr(state, "console"):
        state.console = ConsoleFiles()
    return state.console
