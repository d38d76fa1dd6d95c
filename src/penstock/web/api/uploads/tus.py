"""`/api/v1/files/tus`: uploads that continue after a cut, by the protocol tus 1.0 (https://tus.io)."""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.domain.files import MAX_BYTES
from penstock.domain.ids import timestamp
from penstock.errors import (
    BodyTooLarge,
    InvalidRequest,
    RateLimited,
    RequestTimeout,
    StorageQuotaExceeded,
    TooManyUploads,
    TusVersionNotSupported,
    UnsupportedMediaType,
    UploadExpired,
    UploadLocked,
    UploadNotFound,
    UploadOffsetConflict,
)
from penstock.storage.open_uploads import OpenUpload
from penstock.store.queries.files import storage_rows
from penstock.web.auth import Caller, admit, base_url, count_request, signed_in
from penstock.web.responses import Json, success

router = APIRouter(tags=["Files"])

PATH: Final = "/api/v1/files/tus"
VERSION: Final = "1.0.0"
BODY_TYPE: Final = "application/offset+octet-stream"
SUPPORTED: Final = {
    "tus-resumable": VERSION,
    "tus-version": VERSION,
    "tus-extension": "creation,termination,expiration",
    "tus-max-size": str(max(MAX_BYTES.values())),
}
MAX_METADATA_LENGTH: Final = 4096

UploadId = Annotated[str, Path(description="`upload_…`")]
MISSING = (InvalidRequest, UploadNotFound, UploadExpired, TusVersionNotSupported)


def _header(name: str, description: str, kind: str = "string") -> dict[str, Any]:
    return {name: {"description": description, "schema": {"type": kind}}}


TUS = _header("Tus-Resumable", f"`{VERSION}`")
STATE = {
    **TUS,
    **_header("Upload-Offset", "bytes received", "integer"),
    **_header("Upload-Expires", "when the upload ends if it is not finished"),
    **_header("X-Penstock-File-Token", "the file's token, once it is whole and stored"),
}


def _takes(*names: str, body: bool = False) -> dict[str, Any]:
    """Return the OpenAPI description of request headers, and of a body of bytes."""
    given = [
        {"in": "header", "name": name, "required": name != "Upload-Metadata", "schema": {"type": "string"}}
        for name in ("Tus-Resumable", *names)
    ]
    content = {BODY_TYPE: {"schema": {"type": "string", "format": "binary"}}}
    return {"parameters": given} | ({"requestBody": {"required": True, "content": content}} if body else {})


@router.options(PATH, status_code=204, response_class=Response, responses={204: {"description": "Supported."}})
async def describe_uploads() -> Response:
    """Get the version, extensions and largest size that are supported."""
    return Response(status_code=204, headers=SUPPORTED)


@router.post(
    PATH,
    status_code=201,
    response_class=Response,
    responses={
        201: {"description": "Begun. `Location` is its URL.", "headers": STATE | _header("Location", "its URL")},
        **signed_in(
            InvalidRequest, TusVersionNotSupported, BodyTooLarge, RateLimited, StorageQuotaExceeded, TooManyUploads
        ),
    },
    openapi_extra=_takes("Upload-Length", "Upload-Metadata"),
)
async def create_upload(request: Request) -> Response:
    """Begin an upload in several requests."""
    caller = await _admit(request, Scope.GENERATE)
    length = _read_number(request, "upload-length")
    if not length:
        raise InvalidRequest("`Upload-Length` is the size of the file in bytes, at least 1.", param="Upload-Length")
    text = request.headers.get("upload-metadata", "")
    metadata = _read_metadata(text)
    limits = await count_request(caller)
    room = None
    if caller.storage_quota is not None:
        room = await caller.gateway.database.read(storage_rows.find_room, caller.account_id, caller.storage_quota)
    name = metadata.get("filename") or metadata.get("name", "")
    content_type = metadata.get("content_type") or metadata.get("filetype", "")
    upload = await caller.gateway.uploads.create(caller.account_id, length, text, name, content_type, room)
    location = f"{base_url(request)}{PATH}/{upload.id}"
    return Response(status_code=201, headers={**limits, **_state(upload), "location": location})


@router.head(
    f"{PATH}/{{upload_id}}",
    response_class=Response,
    responses={200: {"description": "Its offset.", "headers": STATE}, **signed_in(*MISSING, UploadLocked)},
    openapi_extra=_takes(),
)
async def get_offset(upload_id: UploadId, request: Request) -> Response:
    """Get the number of bytes received, from which to continue."""
    caller = await _admit(request, Scope.GENERATE)
    upload = await caller.gateway.uploads.find(caller.account_id, upload_id)
    headers = {**_state(upload), "upload-length": str(upload.length), "cache-control": "no-store"}
    if upload.metadata:
        headers["upload-metadata"] = upload.metadata
    return Response(headers=headers)


@router.get(
    f"{PATH}/{{upload_id}}",
    responses={
        200: success("The upload.", "UploadRecord"),
        **signed_in(InvalidRequest, UploadNotFound, UploadExpired, UploadLocked),
    },
)
async def get_upload(upload_id: UploadId, request: Request) -> Response:
    """Get the record of an upload, with the token of its file once it is whole."""
    caller = await admit(request, Scope.READ)
    upload = await caller.gateway.uploads.find(caller.account_id, upload_id)
    return Json(_record(upload), headers={"cache-control": "no-store"})


@router.patch(
    f"{PATH}/{{upload_id}}",
    status_code=204,
    response_class=Response,
    responses={
        204: {"description": "Received. With the last byte, the file is checked and stored.", "headers": STATE},
        **signed_in(
            *MISSING,
            RequestTimeout,
            UploadOffsetConflict,
            UploadLocked,
            BodyTooLarge,
            UnsupportedMediaType,
            StorageQuotaExceeded,
            TooManyUploads,
        ),
    },
    openapi_extra=_takes("Upload-Offset", body=True),
)
async def append_bytes(upload_id: UploadId, request: Request) -> Response:
    """Send the next bytes of an upload."""
    caller = await _admit(request, Scope.GENERATE)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != BODY_TYPE:
        raise UnsupportedMediaType(f"Send `content-type: {BODY_TYPE}`.")
    offset = _read_number(request, "upload-offset")
    upload = await caller.gateway.uploads.append(caller.account_id, upload_id, offset, request.stream())
    return Response(status_code=204, headers=_state(upload))


@router.delete(
    f"{PATH}/{{upload_id}}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Ended.", "headers": TUS}, **signed_in(*MISSING)},
    openapi_extra=_takes(),
)
async def end_upload(upload_id: UploadId, request: Request) -> Response:
    """End an upload and remove its bytes. A file that it has become stays."""
    caller = await _admit(request, Scope.GENERATE)
    await caller.gateway.uploads.remove(caller.account_id, upload_id)
    return Response(status_code=204, headers={"tus-resumable": VERSION})


async def _admit(request: Request, scope: Scope) -> Caller:
    """Return the caller of a request that speaks our version of tus."""
    caller = await admit(request, scope)
    if request.headers.get("tus-resumable") != VERSION:
        raise TusVersionNotSupported(headers={"tus-version": VERSION})
    return caller


def _read_number(request: Request, name: str) -> int:
    """Return a header that is a number of bytes."""
    title = name.title()
    given = request.headers.get(name)
    if given is None:
        code = "missing_required_parameter"
        raise InvalidRequest(f"The header `{title}` is required.", code=code, param=title)
    if not (given.isascii() and given.isdecimal() and len(given) < 16):
        raise InvalidRequest(f"`{title}` is a number of bytes.", param=title)
    return int(given)


def _read_metadata(text: str) -> Mapping[str, str]:
    """Return the pairs of `Upload-Metadata`: names, each with a value in Base64."""
    if len(text) > MAX_METADATA_LENGTH:
        message = f"`Upload-Metadata` is too long: at most {MAX_METADATA_LENGTH} characters are allowed."
        raise InvalidRequest(message, param="Upload-Metadata")
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = pair.partition(" ")
        try:
            found[name] = base64.b64decode(value, validate=True).decode("utf-8", "replace")
        except binascii.Error:
            message = f"`Upload-Metadata`: the value of `{name}` is not Base64."
            raise InvalidRequest(message, param="Upload-Metadata") from None
    return found


def _state(upload: OpenUpload) -> dict[str, str]:
    expires = format_datetime(datetime.fromtimestamp(upload.expires_at, UTC), usegmt=True)
    headers = {"tus-resumable": VERSION, "upload-offset": str(upload.offset), "upload-expires": expires}
    return headers | ({"x-penstock-file-token": upload.file_token} if upload.file_token else {})


def _record(upload: OpenUpload) -> dict[str, Any]:
    return {
        "object": "upload",
        "id": upload.id,
        "bytes": upload.length,
        "offset": upload.offset,
        "done": upload.file_token is not None,
        "file_token": upload.file_token,
        "name": upload.name,
        "created_at": timestamp(upload.created_at),
        "expires_at": timestamp(upload.expires_at),
    }
