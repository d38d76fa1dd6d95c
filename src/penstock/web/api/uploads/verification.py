"""`/api/v1/verify`: report who signed a file, and whether it was changed since."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from penstock.catalog.file_input import OutputName
from penstock.catalog.params import Params, Text
from penstock.domain.api_keys import Scope
from penstock.domain.job_errors import FileUnreadable
from penstock.errors import (
    AssetNotFound,
    BodyTooLarge,
    Detail,
    InvalidRequest,
    RateLimited,
    RequestTimeout,
    TooManyUploads,
    UnsupportedMediaType,
)
from penstock.jobs.files.given_files import FileOpener, FileProblem, WantedFile
from penstock.jobs.files.inputs import FILE_KINDS
from penstock.jobs.files.verification import report
from penstock.storage.assets import Landed
from penstock.store.queries.files import asset_rows
from penstock.web.auth import Caller, admit, count_request, signed_in
from penstock.web.json_bodies import read_params
from penstock.web.multipart import FileUpload, read_bytes
from penstock.web.responses import Json, success

router = APIRouter(tags=["Provenance"])

SIDECAR: Final = "the signed sidecar of a 3D model, the text at its `sidecar_url`"


class VerifyRequest(Params):
    """A file that this server has: exactly one of `file_token` and `job`."""

    model_config = ConfigDict(
        json_schema_extra={"additionalProperties": False, "example": {"job": "job_…", "output": "primary"}}
    )

    file_token: Text | None = Field(default=None, description="token of an upload", min_length=1)
    job: Text | None = Field(default=None, description="id of a succeeded job of yours", min_length=1, max_length=64)
    output: OutputName | None = Field(
        default=None, description="which output of `job`: its number, `primary` or `preview`; default `primary`"
    )
    sidecar: Text | None = Field(default=None, description=f"{SIDECAR}; that of an output is found", max_length=65536)


_FILE = {"type": "string", "format": "binary"}
_FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": _FILE, "sidecar": {"type": "string", "description": SIDECAR}},
}
BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": _FORM},
            "application/json": {"schema": {"$ref": "#/components/schemas/VerifyRequest"}},
            "application/octet-stream": {"schema": _FILE},
        },
    }
}


@router.post(
    "/api/v1/verify",
    responses={
        200: success("The report.", "VerificationRecord"),
        **signed_in(InvalidRequest, RequestTimeout, BodyTooLarge, UnsupportedMediaType, RateLimited, TooManyUploads),
    },
    openapi_extra=BODY,
)
async def verify_file(request: Request) -> Response:
    """Verify a file: the multipart field `file`, a body of bytes, or a file that the server has, in JSON."""
    caller = await admit(request, Scope.READ)
    limits = await count_request(caller)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        async with AsyncExitStack() as stack:
            if kind == "application/json":
                landed, sidecar = await _find(request, caller, stack)
            else:
                landed, sidecar = await _receive(request, caller, stack, is_form=kind == "multipart/form-data")
            found = await caller.gateway.verifier.verify(caller.account_id, landed, sidecar)
    except FileUnreadable as error:
        raise InvalidRequest(error.message, code=error.code, param="file") from None
    return Json(report(found, landed), 200, limits)


@router.get(
    "/api/v1/verify/certificate",
    response_class=Response,
    responses={
        200: {"description": "PEM.", "content": {"application/x-pem-file": {"schema": {"type": "string"}}}},
        **signed_in(),
    },
)
async def get_certificate(request: Request) -> Response:
    """Get the certificates above the one that signs results: other readers have to trust them."""
    caller = await admit(request, Scope.READ)
    return Response(caller.gateway.credential.anchors, media_type="application/x-pem-file")


async def _receive(
    request: Request, caller: Caller, stack: AsyncExitStack, *, is_form: bool
) -> tuple[Landed, bytes | None]:
    """Return the file in the body, in a temporary file that the stack deletes, and its sidecar."""
    upload = FileUpload(request, texts=("sidecar",)) if is_form else None
    chunks = read_bytes(request) if upload is None else upload.chunks()
    stack.enter_context(caller.gateway.inputs.under_way(caller.account_id))
    landed = await stack.enter_async_context(caller.gateway.assets.land(chunks))
    if landed.bytes == 0:
        raise InvalidRequest(
            "The file is empty: send its bytes as the body, or as the multipart field `file`.", param="file"
        )
    return landed, None if upload is None else upload.texts.get("sidecar")


async def _find(request: Request, caller: Caller, stack: AsyncExitStack) -> tuple[Landed, bytes | None]:
    """Return the upload or the output that the body names, and its sidecar."""
    given, _ = await read_params(request, VerifyRequest, _find_problems)
    gateway = caller.gateway
    opener = FileOpener(gateway.database, gateway.inputs, str, gateway.clock)
    wanted = WantedFile("file", FILE_KINDS, caller.account_id, store=False)
    try:
        opened = await opener.open(given.model_dump(exclude_none=True, exclude={"sidecar"}), wanted)
    except FileProblem as problem:
        raise InvalidRequest(problem.message, code=problem.code, param=problem.field) from None
    assert opened.file is not None  # noqa: S101  neither form leads elsewhere
    landed = await stack.enter_async_context(gateway.assets.land_file(opened.file))
    sidecar = None if given.sidecar is None else given.sidecar.encode()
    if sidecar is None and opened.parent is not None:
        try:
            asset = await gateway.database.look(
                asset_rows.get, opened.parent.asset_id, caller.account_id, gateway.clock()
            )
            sidecar = await gateway.assets.get_sidecar(asset)
        except AssetNotFound:
            return landed, None
    return landed, sidecar


def _find_problems(body: Mapping[str, Any]) -> list[Detail]:
    if (body.get("file_token") is None) is (body.get("job") is None):
        return [Detail("file_token", "Give exactly one of `file_token` and `job`.")]
    if body.get("output") is not None and body.get("job") is None:
        return [Detail("output", "Only goes together with `job`.")]
    return []
