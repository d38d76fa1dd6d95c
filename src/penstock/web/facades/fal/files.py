"""Uploads of fal's client for JavaScript: it asks where to, and puts the bytes there without a key."""

import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response, StreamingResponse

from penstock.domain.files import clean_name
from penstock.domain.ids import new_id
from penstock.domain.job_errors import FileUnreadable
from penstock.errors import (
    AssetExpired,
    BodyTooLarge,
    FileNotFound,
    InvalidApiKey,
    InvalidRequest,
    RequestTimeout,
    StorageQuotaExceeded,
    TooManyUploads,
)
from penstock.store.queries.files import file_rows, storage_rows
from penstock.web.api.assets import download_file
from penstock.web.auth import Caller, count_request, gateway_of
from penstock.web.facades.describe import answer, body, errors
from penstock.web.facades.fal.shapes import PROBLEM, TAG, UPLOAD
from penstock.web.facades.orders import facade_url
from penstock.web.json_bodies import read_json
from penstock.web.responses import Json

router = APIRouter(tags=[TAG])

UPLOAD_SECONDS: Final = 3600
"""How long the address of an upload works."""
TOKEN: Final = "file_…"  # noqa: S105  a description
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
Token = Annotated[str, Path(pattern=r"^file_[0-9a-z]{26}$", description=f"`{TOKEN}`")]
Signed = Annotated[str, Query(max_length=200, description="part of a signed link")]
BYTES = {
    200: {
        "description": "The bytes.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def begin_upload(caller: Caller) -> Response:
    """Answer where to put a file, and the URL that it will have."""
    given = (await read_json(caller.request)).body
    await count_request(caller)
    name = given.get("file_name") or "file"
    if not isinstance(name, str):
        raise InvalidRequest("file_name: Input should be a string.", param="file_name")
    if caller.storage_quota is not None:
        await caller.gateway.database.read(storage_rows.refuse_full, caller.account_id, caller.storage_quota)
    token, links, now = new_id("file"), caller.gateway.links, int(caller.gateway.clock())
    until = now + UPLOAD_SECONDS
    url = facade_url(caller.request, f"/fal/files/{token}/{_UNSAFE.sub('-', name)[-80:] or 'file'}")
    signature = links.sign(_mark(token, caller.account_id), until)
    query = f"account={caller.account_id}&expires={until}&signature={signature}"
    shown = now + int(caller.gateway.settings.jobs.link_seconds)
    read = f"expires={shown}&signature={links.sign(token, shown)}"
    return Json({"upload_url": f"{url}?{query}", "file_url": f"{url}?{read}"})


def _mark(token: str, account: str) -> str:
    return f"fal-upload:{token}:{account}"


@router.put(
    "/fal/files/{token}/{filename}",
    responses={
        200: answer("Stored.", UPLOAD),
        **errors(
            PROBLEM,
            InvalidRequest,
            InvalidApiKey,
            AssetExpired,
            RequestTimeout,
            BodyTooLarge,
            StorageQuotaExceeded,
            TooManyUploads,
            needs_key=False,
        ),
    },
    openapi_extra=body({"type": "string", "format": "binary"}, "application/octet-stream"),
)
async def put_file(
    token: Token,
    filename: str,
    request: Request,
    account: Signed = "",
    expires: Signed = "",
    signature: Signed = "",
) -> Response:
    """Put the bytes of an upload to the address that was signed for it."""
    gateway = gateway_of(request)
    if not gateway.links.check(_mark(token, account), expires, signature, gateway.clock()):
        raise InvalidApiKey("The signature of the link is not valid.")
    request.scope["state"]["account"] = account
    url = {"file_url": str(request.url.path)}
    try:
        await gateway.database.read(file_rows.get, account, token, gateway.clock())
    except FileNotFound:
        pass
    else:
        return Json(url)  # the client repeats itself
    retention, name = gateway.settings.jobs.file_retention, clean_name(filename)
    try:
        await gateway.inputs.upload(request.stream(), account, retention, lambda: name, token)
    except FileUnreadable as error:
        raise InvalidRequest(error.message, code=error.code, param="file") from None
    return Json(url)


@router.get(
    "/fal/files/{token}/{filename}",
    response_class=StreamingResponse,
    responses={**BYTES, **errors(PROBLEM, InvalidRequest, FileNotFound, AssetExpired)},
)
async def get_file(token: Token, filename: str, request: Request, expires: Signed = "", signature: Signed = "") -> Any:
    """Download an upload, by the link that its client was given or by key."""
    del filename
    return await download_file(token, request, expires or None, signature or None)
