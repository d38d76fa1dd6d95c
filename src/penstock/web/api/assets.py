"""Downloads by API key or signed link: `/api/v1/assets` for outputs, `/api/v1/files/{token}/content` for inputs."""

import re
from io import FileIO
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from penstock.domain.api_keys import Scope
from penstock.domain.files import CONTENT_TYPES as PICTURE_TYPES
from penstock.domain.files import StoredAsset, StoredFile
from penstock.errors import (
    AssetExpired,
    AssetNotFound,
    FileNotFound,
    InvalidApiKey,
    InvalidRequest,
    RangeNotSatisfiable,
)
from penstock.jobs.collection import CONTENT_TYPES
from penstock.provenance.sidecar import CONTENT_TYPE
from penstock.storage.assets import CACHED, SIDECAR, disposition
from penstock.store.queries.files import asset_rows, file_rows
from penstock.web.auth import admit, gateway_of, signed_in
from penstock.web.responses import REQUEST_ID
from penstock.web.server.request_cycle import FILE

router = APIRouter(tags=["Assets"])

HEADERS = {
    "etag": {"description": "the sha256 of the bytes", "schema": {"type": "string"}},
    "accept-ranges": {"schema": {"type": "string"}},
    **REQUEST_ID,
}
BINARY = {"content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in CONTENT_TYPES.values()}}
PICTURE = {"content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in PICTURE_TYPES.values()}}
RESPONSES = {
    200: {**BINARY, "description": "The whole file.", "headers": HEADERS},
    206: {**BINARY, "description": "The requested range.", "headers": HEADERS},
    304: {"description": "Not modified."},
    307: {
        "description": "Download from this address within a few minutes (`assets.downloads`).",
        "headers": {"location": {"schema": {"type": "string"}}, **REQUEST_ID},
    },
    **signed_in(InvalidRequest, AssetNotFound, AssetExpired, RangeNotSatisfiable),
}
PRESIGNED_SECONDS = 300.0
"""Seconds for which the address of a redirected download works."""
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@router.get("/api/v1/assets/{asset_id}/{filename}", response_class=StreamingResponse, responses=RESPONSES)
@router.head("/api/v1/assets/{asset_id}/{filename}", include_in_schema=False)
async def download_asset(
    asset_id: str,
    filename: str,
    request: Request,
    expires: Annotated[str | None, Query(description="part of a signed link")] = None,
    signature: Annotated[str | None, Query(description="part of a signed link")] = None,
    *,
    proxied: Annotated[bool, Query(description="download through this server even if it redirects downloads")] = False,
) -> Response:
    """Download an output. Its `url` is a signed link, which needs no key until it expires, as is its `sidecar_url`."""
    gateway = gateway_of(request)
    account_id = await _account(request, asset_id, expires, signature)
    asset = await gateway.database.look(asset_rows.get, asset_id, account_id, gateway.clock())
    if filename == asset.filename + SIDECAR:
        sidecar = await gateway.assets.get_sidecar(asset)
        return Response(sidecar, headers={"cache-control": CACHED}, media_type=CONTENT_TYPE)
    if asset.filename != filename:
        raise AssetNotFound
    seconds = None
    if gateway.settings.assets.downloads == "presigned" and not proxied:
        seconds = PRESIGNED_SECONDS if signature is None else _presigned_seconds(expires, gateway.clock())
    return await answer_asset(request, asset, CACHED, seconds)


async def answer_asset(
    request: Request, asset: StoredAsset, cache_control: str, presigned_seconds: float | None = None
) -> Response:
    """Answer with the bytes of an asset, or the requested range of them.

    With `presigned_seconds`, the answer redirects to the bucket, where the address works for so long.
    """
    headers = {
        "etag": f'"{asset.sha256}"',
        "accept-ranges": "bytes",
        "cache-control": cache_control,
        "content-disposition": disposition(asset.filename),
        "x-content-type-options": "nosniff",
    }
    known = request.headers.get("if-none-match", "")
    if known == "*" or headers["etag"] in known:
        return Response(status_code=304, headers=headers)
    asked = _asked_range(request, asset, headers["etag"])
    start, end = asked or (0, asset.bytes)
    headers["content-length"] = str(end - start)
    if asked is not None:
        headers["content-range"] = f"bytes {start}-{end - 1}/{asset.bytes}"
    status = 200 if asked is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=asset.content_type)
    assets = gateway_of(request).assets
    if presigned_seconds is not None and (address := await assets.presign(asset, presigned_seconds)):
        return RedirectResponse(address, headers={"cache-control": "no-store"})
    body = await assets.open(asset, start, end)
    if isinstance(body, FileIO):
        return _FileResponse(body, start, end - start, status, headers, asset.content_type)
    return StreamingResponse(body, status, headers, asset.content_type)


@router.get(
    "/api/v1/files/{token}/content",
    tags=["Files"],
    response_class=StreamingResponse,
    responses={
        200: {**PICTURE, "description": "The whole picture.", "headers": REQUEST_ID},
        **signed_in(InvalidRequest, FileNotFound, AssetExpired),
    },
)
async def download_file(
    token: Annotated[str, Path(description="`file_…`: an upload, or the `copy_token` of a job's input")],
    request: Request,
    expires: Annotated[str | None, Query(description="part of a signed link")] = None,
    signature: Annotated[str | None, Query(description="part of a signed link")] = None,
) -> Response:
    """Download an upload, or the input of a job. `preview_url` in a job's input is a signed link to it."""
    gateway = gateway_of(request)
    account_id = await _account(request, token, expires, signature)
    file = await gateway.database.look(file_rows.get_shown, account_id, token, gateway.clock())
    return await answer_file(request, file, CACHED)


async def answer_file(request: Request, file: StoredFile, cache_control: str) -> Response:
    """Answer with the bytes of an input file."""
    headers = {
        "content-length": str(file.bytes),
        "cache-control": cache_control,
        "content-disposition": "inline",
        "x-content-type-options": "nosniff",
    }
    body = await gateway_of(request).assets.open_file(file)
    if isinstance(body, FileIO):
        return _FileResponse(body, 0, file.bytes, 200, headers, file.content_type)
    return StreamingResponse(body, 200, headers, file.content_type)


class _FileResponse(Response):
    """A response with a range of an open file. It closes the file."""

    def __init__(
        self, file: FileIO, start: int, count: int, status: int, headers: dict[str, str], content_type: str
    ) -> None:
        super().__init__(None, status, headers, content_type)
        self._file = file
        self._body = {"type": FILE, "file": file.fileno(), "offset": start, "count": count}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        with self._file:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send(self._body)


async def _account(request: Request, asset_id: str, expires: str | None, signature: str | None) -> str | None:
    """Return the account of the caller's key, or None for a valid signed link."""
    if signature is not None:
        gateway = gateway_of(request)
        if gateway.links.check(asset_id, expires or "", signature, gateway.clock()):
            return None
        raise InvalidApiKey(
            "The signature of the link is not valid, or the link has expired.", headers={"WWW-Authenticate": "Bearer"}
        )
    return (await admit(request, Scope.READ)).account_id


def _presigned_seconds(expires: str | None, now: float) -> float:
    """Return the seconds that a presigned address may work: no longer than the signed link."""
    return min(PRESIGNED_SECONDS, int(expires or 0) - now)


def _asked_range(request: Request, asset: StoredAsset, etag: str) -> tuple[int, int] | None:
    """Return start and end (exclusive) of the requested range, or None for the whole file."""
    if request.method == "HEAD":
        return None
    found = RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    if found is None or found[0] == "bytes=-" or request.headers.get("if-range", etag) != etag:
        return None
    first, last = found[1], found[2]
    if first == "":
        start, end = max(0, asset.bytes - int(last)), asset.bytes
    else:
        start, end = int(first), min(asset.bytes, int(last) + 1 if last else asset.bytes)
    if last and first and int(last) < int(first):
        return None
    if start >= asset.bytes or start >= end:
        raise RangeNotSatisfiable(headers={"content-range": f"bytes */{asset.bytes}"})
    return start, end
