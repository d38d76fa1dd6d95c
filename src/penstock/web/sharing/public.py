"""`/share/{token}`: the public page of a share link, its record, and the bytes of its outputs. No key is needed."""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from penstock.domain.files import StoredAsset
from penstock.domain.ids import timestamp
from penstock.domain.jobs import Asset, Job
from penstock.domain.sharing.links import ShareLink, hash_token
from penstock.errors import AssetNotFound, InvalidRequest, NotFound, RangeNotSatisfiable, ShareNotFound
from penstock.jobs.collection import CONTENT_TYPES
from penstock.provenance.sidecar import CONTENT_TYPE
from penstock.storage.assets import SIDECAR
from penstock.store.queries.files import share_rows
from penstock.web.api.assets import HEADERS as ASSET_HEADERS
from penstock.web.api.assets import answer_asset, answer_file
from penstock.web.auth import ALWAYS, base_url, gateway_of
from penstock.web.console import files_of
from penstock.web.responses import Json, problems, success
from penstock.web.sharing.page import Shown, draw_ended, draw_page

router = APIRouter(tags=["Shares"])

SCRIPT = "share.js"
"""The script of the built console that shows 3D models and local times on this page."""
INPUT = "input"
"""The name under which the input picture is downloaded; no output has it."""
REVALIDATED = "private, no-cache"
"""Browsers ask again at every use, so that a revoked link shows nothing."""
# As on the console's pages, styles need the nonce of the request; the 3D viewer reads textures from blob: URLs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'nonce-{nonce}'; img-src 'self' blob: data:; media-src 'self'; "
    "connect-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
    "vary": "accept",
}
NO_INDEX = {"x-robots-tag": "noindex, nofollow, noarchive"}
Token = Annotated[str, Path(description="the last part of a share link")]
HTML = {"text/html": {"schema": {"type": "string"}}}
BINARY = {"content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in CONTENT_TYPES.values()}}
SHARED = success("The outputs as JSON; to a browser, a page that shows them.", "SharedOutputs")
BYTES = {
    200: {**BINARY, "description": "The whole file.", "headers": ASSET_HEADERS},
    206: {**BINARY, "description": "The requested range.", "headers": ASSET_HEADERS},
    304: {"description": "Not modified."},
}


@router.get(
    "/share/{token}",
    responses={
        200: {**SHARED, "content": {**SHARED["content"], **HTML}},
        **problems(ShareNotFound, *ALWAYS),
    },
)
@router.head("/share/{token}", include_in_schema=False)
async def read_share(token: Token, request: Request) -> Response:
    """Open a share link. A browser gets a page, other clients get JSON. Links that have ended are not found."""
    is_browser = "text/html" in request.headers.get("accept", "")
    try:
        shared = await _open(request, token)
    except ShareNotFound as error:
        if not is_browser:
            raise
        return _answer_page(draw_ended, error.status)
    if not is_browser:
        record = _describe(f"{base_url(request)}/share/{token}", *shared)
        return Json(record, headers={**NO_INDEX, "cache-control": "no-store", "vary": "accept"})
    files = files_of(request)
    await asyncio.to_thread(files.refresh)
    offer = gateway_of(request).offers.by_model.get(shared.job.model)
    title = shared.job.model if offer is None else offer.model.title
    shown = Shown(_describe(f"/share/{token}", *shared), title, has_script=SCRIPT in files.names)
    return _answer_page(partial(draw_page, shown), 200)


@router.get(
    "/share/{token}/{filename}",
    response_class=StreamingResponse,
    responses={**BYTES, **problems(InvalidRequest, ShareNotFound, AssetNotFound, RangeNotSatisfiable, *ALWAYS)},
)
@router.head("/share/{token}/{filename}", include_in_schema=False)
async def download_shared(
    token: Token,
    filename: Annotated[str, Path(description="the last part of an output's `url`, or of the input picture's")],
    request: Request,
) -> Response:
    """Download an output of a shared job. The bytes always come through this server, so that revoking ends them."""
    link, job = await _open(request, token)
    if filename == INPUT and link.include_input and job.file is not None:
        return _without_index(await answer_file(request, job.file, REVALIDATED))
    found = next((asset for asset in job.outputs if asset.filename == filename.removesuffix(SIDECAR)), None)
    if found is None:
        raise AssetNotFound
    if filename.endswith(SIDECAR):
        sidecar = await gateway_of(request).assets.get_sidecar(_stored(job, found))
        return _without_index(Response(sidecar, headers={"cache-control": REVALIDATED}, media_type=CONTENT_TYPE))
    return _without_index(await answer_asset(request, _stored(job, found), REVALIDATED))


async def _open(request: Request, token: str) -> share_rows.SharedJob:
    """Return the link and its job. All links that do not work raise the same error."""
    gateway = gateway_of(request)
    if not gateway.share_tokens.is_ours(token):
        raise _not_found()
    try:
        return await gateway.database.look(share_rows.open_link, hash_token(token), gateway.clock())
    except ShareNotFound:
        raise _not_found() from None


def _not_found() -> NotFound:
    """Return the error of every link that does not work."""
    return ShareNotFound(suggestion="Ask the person who shared it for a new link.", headers=NO_INDEX)


def _describe(address: str, link: ShareLink, job: Job) -> dict[str, Any]:
    """Return what the holder of a link sees: nothing of the account, and the input only if it is included."""
    prompt = job.params.get("prompt") or job.params.get("text")
    return {
        "object": "share.outputs",
        "model": job.model,
        "created_at": timestamp(job.finished_at),
        "expires_at": timestamp(link.expires_at),
        "prompt": prompt if link.include_input and isinstance(prompt, str) else None,
        "input_url": f"{address}/{INPUT}" if link.include_input and job.file is not None else None,
        "outputs": [_output(address, asset) for asset in job.outputs],
    }


def _output(address: str, asset: Asset) -> dict[str, Any]:
    names = ("kind", "role", "content_type", "bytes", "width", "height", "duration_seconds", "fps", "faces", "vertices")
    url = f"{address}/{asset.filename}"
    sidecar = f"{url}{SIDECAR}" if asset.provenance == "sidecar" else None
    return {**{name: getattr(asset, name) for name in names}, "url": url, "sidecar_url": sidecar}


def _stored(job: Job, asset: Asset) -> StoredAsset:
    return StoredAsset(asset.id, job.account_id, job.id, asset.filename, asset.content_type, asset.bytes, asset.sha256)


def _without_index(response: Response) -> Response:
    response.headers.update({**NO_INDEX, "referrer-policy": "no-referrer"})
    return response


def _answer_page(draw: Callable[[str], str], status: int) -> Response:
    nonce = secrets.token_urlsafe(18)
    headers = {**PAGE_HEADERS, **NO_INDEX, "content-security-policy": POLICY.format(nonce=nonce)}
    return HTMLResponse(draw(nonce), status, headers)
