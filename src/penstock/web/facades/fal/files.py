"""Uploads of fal's client for JavaScript: it asks where to, and puts the bytes there without a key."""

import re
from contextlib import suppress
from dataclasses import dataclass
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
from penstock.store.queries.files.file_rows import AlreadyStored
from penstock.web.api.assets import download_file
from penstock.web.auth import Caller, count_request, gateway_of
from penstock.web.facades.describe import answer, body, errors
from penstock.web.facades.fal.shapes import PROBLEM, TAG, UPLOAD
from penstock.web.facades.orders import facade_url
from penstock.web.json_bodies import read_json
from penstock.web.multipart import read_bytes
from penstock.web.responses import Json

router = APIRouter(tags=[TAG])

UPLOAD_SECONDS: Final = 3600
"""How long the address of an upload works."""
TOKEN: Final = "file_…"  # noqa: S105  a description
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
Token = Annotated[str, Path(pattern=r"^file_[0-9a-z]{26}$", description=f"`{TOKEN}`")]
UploadId = Annotated[str, Path(description="`upload_…`")]
Signed = Annotated[str, Query(max_length=200, description="part of a signed link")]


@dataclass(frozen=True, slots=True)
class SignedQuery:
    """The query of the address of an upload."""

    account: str
    expires: str
    signature: str


BYTES = {
    200: {
        "description": "The bytes.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def begin_upload(caller: Caller) -> Response:
    """Answer where to put a file, and the URL that it will have."""
    promised = await _promise(caller)
    query = sign_upload(caller, promised.token)
    return Json({"upload_url": f"{promised.url}?{query}", "file_url": promised.file_url})


async def begin_parts(caller: Caller) -> Response:
    """Answer where to put the parts of a file, and the URL that it will have."""
    promised = await _promise(caller)
    upload = await caller.gateway.uploads.create_parts(caller.account_id, promised.name)
    query = sign_upload(caller, f"{promised.token}:{upload.id}")
    return Json({"upload_url": f"{promised.url}/parts/{upload.id}?{query}", "file_url": promised.file_url})


@dataclass(frozen=True, slots=True)
class _Promise:
    """A file that is to come."""

    token: str
    name: str
    url: str
    file_url: str


async def _promise(caller: Caller) -> _Promise:
    """Return a token and links for a file, of which its name is given."""
    given = (await read_json(caller.request)).body
    await count_request(caller)
    name = given.get("file_name") or "file"
    if not isinstance(name, str):
        raise InvalidRequest("file_name: Input should be a string.", param="file_name")
    if caller.storage_quota is not None:
        await caller.gateway.database.read(storage_rows.refuse_full, caller.account_id, caller.storage_quota)
    token, links = new_id("file"), caller.gateway.links
    url = facade_url(caller.request, f"/fal/files/{token}/{_UNSAFE.sub('-', name)[-80:] or 'file'}")
    shown = int(caller.gateway.clock()) + int(caller.gateway.settings.jobs.link_seconds)
    return _Promise(token, name, url, f"{url}?expires={shown}&signature={links.sign(token, shown)}")


def sign_upload(caller: Caller, what: str) -> str:
    """Return the query that allows an upload without a key."""
    until = int(caller.gateway.clock()) + UPLOAD_SECONDS
    signature = caller.gateway.links.sign(_mark(what, caller.account_id), until)
    return f"account={caller.account_id}&expires={until}&signature={signature}"


def check_upload(request: Request, what: str, signed: SignedQuery) -> None:
    """Raise unless the query allows this upload."""
    gateway = gateway_of(request)
    if not gateway.links.check(_mark(what, signed.account), signed.expires, signed.signature, gateway.clock()):
        raise InvalidApiKey("The signature of the link is not valid.")
    request.scope["state"]["account"] = signed.account


def _mark(what: str, account: str) -> str:
    return f"fal-upload:{what}:{account}"


async def is_stored(request: Request, token: str, account: str) -> bool:
    """Return whether the bytes of a file have come."""
    gateway = gateway_of(request)
    try:
        await gateway.database.read(file_rows.get, account, token, gateway.clock())
    except FileNotFound:
        return False
    return True


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
    check_upload(request, token, SignedQuery(account, expires, signature))
    url = {"file_url": str(request.url.path)}
    if await is_stored(request, token, account):
        return Json(url)  # the client repeats itself
    gateway = gateway_of(request)
    retention, name = gateway.settings.jobs.file_retention, clean_name(filename)
    try:
        with suppress(AlreadyStored):
            await gateway.inputs.upload(read_bytes(request), account, retention, lambda: name, token)
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
