"""Files of Replicate's API. Clients upload inputs there, and send the URL of the record as the input."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.domain.files import StoredFile
from penstock.domain.ids import timestamp
from penstock.errors import (
    AssetExpired,
    BodyTooLarge,
    FileNotFound,
    InvalidRequest,
    RateLimited,
    RequestTimeout,
    StorageQuotaExceeded,
    TooManyUploads,
    UnsupportedMediaType,
)
from penstock.store.queries.files import file_rows
from penstock.web.api.assets import answer_file
from penstock.web.api.files import find_upload, store_upload
from penstock.web.auth import Caller, admit, count_request
from penstock.web.facades.describe import answer, body, errors
from penstock.web.facades.orders import facade_url
from penstock.web.facades.replicate.shapes import FILE, FORM, PREFIX, PROBLEM, TAG, page
from penstock.web.multipart import FileUpload
from penstock.web.responses import Json

router = APIRouter(tags=[TAG])

PAGE_SIZE = 100
METADATA = ("metadata",)
"""A field that one client sends with a file name."""
Token = Annotated[str, Path(description="`file_…`")]
BINARY = {
    "description": "The bytes.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


@router.post(
    f"{PREFIX}/files",
    status_code=201,
    responses={
        201: answer("Stored.", FILE),
        **errors(
            PROBLEM,
            InvalidRequest,
            RequestTimeout,
            BodyTooLarge,
            UnsupportedMediaType,
            RateLimited,
            StorageQuotaExceeded,
            TooManyUploads,
        ),
    },
    openapi_extra=body(FORM, "multipart/form-data"),
)
async def create_file(request: Request) -> Response:
    """Upload a picture, film, sound or 3D model as the multipart field `content`."""
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    upload = FileUpload(request, "content", texts=METADATA)
    file = await store_upload(caller, upload.chunks(), lambda: upload.name, "content")
    return Json(_record(caller, file), 201, limits)


@router.get(f"{PREFIX}/files", responses={200: answer("A page.", page(FILE)), **errors(PROBLEM, InvalidRequest)})
async def list_files(
    request: Request,
    cursor: Annotated[str | None, Query(pattern="^file_[0-9a-z]{1,40}$", description="of `next`")] = None,
) -> Response:
    """List your uploads, newest first."""
    caller = await admit(request, Scope.READ)
    now = caller.gateway.clock()
    found = await caller.gateway.database.read(file_rows.page, caller.account_id, cursor, PAGE_SIZE + 1, now)
    shown = found[:PAGE_SIZE]
    more = facade_url(request, f"{PREFIX}/files?cursor={shown[-1].token}") if len(found) > PAGE_SIZE else None
    return Json({"next": more, "previous": None, "results": [_record(caller, file) for file in shown]})


@router.get(f"{PREFIX}/files/{{file_id}}", responses={200: answer("The file.", FILE), **errors(PROBLEM, FileNotFound)})
async def get_file_record(file_id: Token, request: Request) -> Response:
    """Get the record of an upload."""
    caller = await admit(request, Scope.READ)
    return Json(_record(caller, await find_upload(caller, file_id)))


@router.get(
    f"{PREFIX}/files/{{file_id}}/download",
    response_class=Response,
    responses={200: BINARY, **errors(PROBLEM, FileNotFound, AssetExpired)},
)
async def download_upload(file_id: Token, request: Request) -> Response:
    """Download an upload."""
    caller = await admit(request, Scope.READ)
    return await answer_file(request, await find_upload(caller, file_id), "private, no-cache")


@router.delete(
    f"{PREFIX}/files/{{file_id}}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Deleted."}, **errors(PROBLEM, FileNotFound)},
)
async def remove_file(file_id: Token, request: Request) -> Response:
    """Delete an upload. Predictions that used it keep their own copy."""
    caller = await admit(request, Scope.GENERATE)
    await caller.gateway.inputs.remove(await find_upload(caller, file_id))
    return Response(status_code=204)


def _record(caller: Caller, file: StoredFile) -> dict[str, Any]:
    url = facade_url(caller.request, f"{PREFIX}/files/{file.token}")
    return {
        "id": file.token,
        "name": file.name or file.token,
        "content_type": file.content_type,
        "size": file.bytes,
        "etag": file.sha256,
        "checksums": {"sha256": file.sha256},
        "metadata": {},
        "created_at": timestamp(file.created_at),
        "expires_at": timestamp(file.expires_at),
        "urls": {"get": url, "download": f"{url}/download"},
    }
