"""`/api/v1/files`: upload a file once, then use it by its token."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.domain.files import StoredFile
from penstock.domain.ids import timestamp
from penstock.domain.job_errors import FileUnreadable
from penstock.errors import (
    BodyTooLarge,
    FileNotFound,
    InvalidRequest,
    RateLimited,
    RequestTimeout,
    StorageQuotaExceeded,
    TooManyUploads,
    UnsupportedMediaType,
)
from penstock.store.queries.files import file_rows, storage_rows
from penstock.web.auth import Caller, admit, count_request, signed_in
from penstock.web.multipart import FileUpload
from penstock.web.responses import Json, success

router = APIRouter(tags=["Files"])

Token = Annotated[str, Path(description="`file_…`")]
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}


@router.post(
    "/api/v1/files",
    status_code=201,
    responses={
        201: success("Stored.", "FileRecord"),
        **signed_in(
            InvalidRequest,
            RequestTimeout,
            BodyTooLarge,
            UnsupportedMediaType,
            RateLimited,
            StorageQuotaExceeded,
            TooManyUploads,
        ),
    },
    openapi_extra=FORM,
)
async def upload_file(request: Request) -> Response:
    """Upload a picture, film, sound or 3D model as the multipart field `file`."""
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    upload = FileUpload(request)
    return Json(_record(await store_upload(caller, upload.chunks(), lambda: upload.name)), 201, limits)


async def store_upload(
    caller: Caller, chunks: AsyncIterator[bytes], name: Callable[[], str | None], field: str = "file"
) -> StoredFile:
    """Store a file as it arrives. `field` is where it stands in the request."""
    if caller.storage_quota is not None:  # refuse a full account before the file is read
        await caller.gateway.database.read(storage_rows.refuse_full, caller.account_id, caller.storage_quota)
    inputs, retention = caller.gateway.inputs, caller.gateway.settings.jobs.file_retention
    try:
        return await inputs.upload(chunks, caller.account_id, retention, name)
    except FileUnreadable as error:
        raise InvalidRequest(error.message, code=error.code, param=field) from None


@router.get("/api/v1/files/{token}", responses={200: success("The file.", "FileRecord"), **signed_in(FileNotFound)})
async def get_file(token: Token, request: Request) -> Response:
    """Get the record of an upload."""
    file = await find_upload(await admit(request, Scope.READ), token)
    return Json(_record(file))


@router.delete(
    "/api/v1/files/{token}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Deleted."}, **signed_in(FileNotFound)},
)
async def delete_file(token: Token, request: Request) -> Response:
    """Delete an upload. Jobs that used it keep their own copy."""
    caller = await admit(request, Scope.GENERATE)
    await caller.gateway.inputs.remove(await find_upload(caller, token))
    return Response(status_code=204)


async def find_upload(caller: Caller, token: str) -> StoredFile:
    """Return one of the caller's uploads."""
    gateway = caller.gateway
    return await gateway.database.read(file_rows.get, caller.account_id, token, gateway.clock())


def _record(file: StoredFile) -> dict[str, Any]:
    return {
        "object": "file",
        "file_token": file.token,
        "kind": file.kind,
        "sha256": file.sha256,
        "bytes": file.bytes,
        "content_type": file.content_type,
        "width": file.width,
        "height": file.height,
        "duration_seconds": file.duration_seconds,
        "name": file.name,
        "created_at": timestamp(file.created_at),
        "expires_at": timestamp(file.expires_at),
    }
