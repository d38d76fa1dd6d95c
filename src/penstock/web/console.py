"""`GET /console`: the built pages of the console; those not built are replaced by one that says how to build them."""

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
"""What is below has a digest of its bytes in its name, and never changes."""
NONCE = "{{nonce}}"
"""Stands in the built page for what differs between requests."""
ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
FOREVER, ANEW = "public, max-age=31536000, immutable", "no-cache"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webp": "image/webp",
}
# A nonce for styles: the components write their variables into a style element. blob: in connect-src: the 3D viewer
# reads the pictures inside a model that way.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Of a script that is run as a worker: those of the 3D viewer compile their decoders, and reach nobody. The one of
# textures makes functions out of texts of its own.
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
<p>This server runs from a checkout without it. With Node 20.19 or newer and npm, in the checkout:</p>
<pre>make console</pre>
<p>Then load this page again; the server need not be started anew. Everything else works without:
<a href="/docs">the reference</a>.</p>
</body>
</html>
"""


@dataclass(slots=True)
class Shelf:
    """The files of one build by their names. A path is only ever looked up here, so none leads out of the folder."""

    folder: Path = FOLDER
    built_at: int | None = None
    names: Names = field(default_factory=dict[str, Path])
    page: str = UNBUILT

    def look_again(self) -> None:
        """Find out what is there, if it was built since."""
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
async def lead_to_console() -> Response:
    """Whoever opens the bare address in a browser is looking for this."""
    return RedirectResponse("/console", 307)


@router.get("/console")
@router.head("/console")
@router.get("/console/{path:path}")
@router.head("/console/{path:path}")
async def read_console(request: Request, path: str = "") -> Response:
    """A file of the build; at every other path the page itself, which finds out from its address what to show."""
    shelf = _shelf_of(request)
    await asyncio.to_thread(shelf.look_again)
    if path in shelf.names and path != PAGE:
        return await _answer_file(request, shelf.names, path)
    if path.startswith(HASHED):
        raise NotFound("The console has no such file.", suggestion="Load the page again: it was built anew.")
    nonce = secrets.token_urlsafe(18)
    headers = {**HEADERS, "content-security-policy": POLICY.format(nonce=nonce), "cache-control": ANEW}
    return HTMLResponse(shelf.page.replace(NONCE, nonce), headers=headers)


async def _answer_file(request: Request, names: Names, path: str) -> Response:
    accepted = {each.partition(";")[0].strip() for each in request.headers.get("accept-encoding", "").split(",")}
    headers = {**HEADERS, "cache-control": FOREVER if path.startswith(HASHED) else ANEW, "vary": "accept-encoding"}
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
        raise NotFound("The console has no such file.", suggestion="Load the page again.") from None
    kind = KINDS.get(Path(path).suffix, "application/octet-stream")
    return Response(body, headers={**headers, "content-type": kind})


def _shelf_of(request: Request) -> Shelf:
    state: Any = request.app.state
    if not hasattr(state, "console"):
        state.console = Shelf()
    return state.console
