"""Uploads in parts of fal's client for JavaScript, which sends files of more than 90 MB so."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from penstock.errors import (
    AssetExpired,
    BodyTooLarge,
    InvalidApiKey,
    InvalidRequest,
    RequestTimeout,
    StorageQuotaExceeded,
    TooManyUploads,
    UploadExpired,
    UploadLocked,
    UploadNotFound,
    UploadOffsetConflict,
)
from penstock.web.auth import gateway_of
from penstock.web.facades.describe import INTEGER, TEXT, answer, array, body, errors, fields
from penstock.web.facades.fal.files import Signed, SignedQuery, Token, UploadId, check_upload, is_stored
from penstock.web.facades.fal.shapes import PROBLEM, TAG, UPLOADED
from penstock.web.json_bodies import read_json
from penstock.web.responses import Json

router = APIRouter(tags=[TAG])

PART_BYTES: Final = 10 << 20
"""Bytes of every part but the last, as the client cuts them."""
MAX_PARTS: Final = 1000
PARTS: Final = "/fal/files/{token}/{filename}/parts/{upload_id}"
PART: Final = fields({"partNumber": INTEGER, "etag": TEXT})
KINDS: Final = (
    InvalidRequest, InvalidApiKey, AssetExpired, RequestTimeout, BodyTooLarge, StorageQuotaExceeded, TooManyUploads,
    UploadNotFound, UploadExpired, UploadLocked, UploadOffsetConflict,
)  # fmt: skip
ERRORS: dict[int | str, Any] = errors(PROBLEM, *KINDS, needs_key=False)


@router.put(
    f"{PARTS}/{{number:int}}",
    responses={200: answer("Received.", PART), **ERRORS},
    openapi_extra=body({"type": "string", "format": "binary"}, "application/octet-stream"),
)
async def put_part(
    token: Token,
    filename: str,
    upload_id: UploadId,
    number: Annotated[int, Path(ge=1, le=MAX_PARTS, description="from 1")],
    request: Request,
    account: Signed = "",
    expires: Signed = "",
    signature: Signed = "",
) -> Response:
    """Put a part of an upload: 10 MB, or less for the last. Putting the last one again replaces it."""
    del filename
    check_upload(request, f"{token}:{upload_id}", SignedQuery(account, expires, signature))
    uploads = gateway_of(request).uploads
    await uploads.put_part(account, upload_id, (number - 1) * PART_BYTES, _read_part(request))
    return Json({"partNumber": number, "etag": f"{upload_id}-{number}"})


async def _read_part(request: Request) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > PART_BYTES:
            raise BodyTooLarge(f"A part has at most {PART_BYTES} bytes.")
        yield chunk


@router.post(
    f"{PARTS}/complete",
    responses={200: answer("Stored.", UPLOADED), **ERRORS},
    openapi_extra=body(fields({"parts": array(PART)})),
)
async def complete_parts(
    token: Token,
    filename: str,
    upload_id: UploadId,
    request: Request,
    account: Signed = "",
    expires: Signed = "",
    signature: Signed = "",
) -> Response:
    """End an upload in parts: the file is checked and stored."""
    del filename
    check_upload(request, f"{token}:{upload_id}", SignedQuery(account, expires, signature))
    given: Any = (await read_json(request)).body.get("parts")
    url = {"file_url": request.url.path.partition("/parts/")[0]}
    if await is_stored(request, token, account):
        return Json(url)  # the client repeats itself
    uploads = gateway_of(request).uploads
    upload = await uploads.find_parts(account, upload_id)
    received = -(-upload.offset // PART_BYTES)
    count = len(cast("list[Any]", given)) if isinstance(given, list) else 0
    if count != received or not received:
        message = f"`parts` lists {count} parts, but {received} have been received."
        raise InvalidRequest(message, param="parts")
    await uploads.finish(account, upload_id, token)
    return Json(url)
