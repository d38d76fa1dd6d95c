"""Files: upload a picture once, then name it by its token."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.datastructures import UploadFile
from starlette.responses import Response

from penstock.errors import (
    BodyTooLarge,
    FileNotFound,
    FileUnreadable,
    InvalidRequest,
    RequestTimeout,
    UnsupportedMediaType,
)
from penstock.files import MAX_FILE_BYTES, StoredFile
from penstock.identifiers import timestamp
from penstock.store import file_rows
from penstock.web.access import Behind, Generator, Reader, signed_in
from penstock.web.answers import REQUEST_ID, Json
from penstock.web.shapes import FileRecord

router = APIRouter(tags=["Files"])

Token = Annotated[str, Path(description="`file_…`", max_length=64)]
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
        201: {"model": FileRecord, "description": "Stored.", "headers": REQUEST_ID},
        **signed_in(InvalidRequest, RequestTimeout, BodyTooLarge, UnsupportedMediaType),
    },
    openapi_extra=FORM,
)
async def upload_file(request: Request, key: Generator, gateway: Behind) -> Response:
    """Upload a JPEG, PNG or WebP as the multipart field `file`."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise UnsupportedMediaType("Send `multipart/form-data` with a field `file`.")
    async with request.form(max_files=1, max_fields=8) as form:
        part = form.get("file")
        if not isinstance(part, UploadFile):
            message = "The multipart field `file` is required, with a file name."
            raise InvalidRequest(message, code="missing_required_parameter", param="file")
        if part.size is not None and part.size > MAX_FILE_BYTES:
            raise BodyTooLarge(f"A file has at most {MAX_FILE_BYTES >> 20} MB.", param="file")
        data = await part.read()
    try:
        file = await gateway.inputs.upload(data, key.account_id, gateway.settings.jobs.file_retention)
    except FileUnreadable as error:
        raise InvalidRequest(error.message, code=error.code, param="file") from None
    return Json(_record(file), 201)


@router.get("/api/v1/files/{token}", responses={200: {"model": FileRecord}, **signed_in(FileNotFound)})
async def get_file(token: Token, key: Reader, gateway: Behind) -> Response:
    """What is known of an upload."""
    file = await gateway.database.read(file_rows.get, key.account_id, token, gateway.clock())
    return Json(_record(file))


@router.delete(
    "/api/v1/files/{token}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Removed."}, **signed_in(FileNotFound)},
)
async def delete_file(token: Token, key: Generator, gateway: Behind) -> Response:
    """Remove an upload; jobs that were made with it keep their own copy."""
    file = await gateway.database.read(file_rows.get, key.account_id, token, gateway.clock())
    await gateway.inputs.remove(file)
    return Response(status_code=204)


def _record(file: StoredFile) -> dict[str, Any]:
    return {
        "object": "file",
        "file_token": file.token,
        "sha256": file.sha256,
        "bytes": file.bytes,
        "content_type": file.content_type,
        "width": file.width,
        "height": file.height,
        "created_at": timestamp(file.created_at),
        "expires_at": timestamp(file.expires_at),
    }
