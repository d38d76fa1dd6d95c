"""Outputs of jobs as resources: small ones with their bytes, larger ones as a link."""

import asyncio
import base64
from typing import Any, Final

import mcp_types
from mcp.server.lowlevel import Server

from penstock.domain.api_keys import Scope
from penstock.domain.files import StoredAsset
from penstock.domain.ids import timestamp
from penstock.domain.jobs import Asset, Job, State
from penstock.errors import AssetNotFound, ConcurrencyLimited, InvalidRequest, Overloaded, PenstockError
from penstock.store.queries.files import asset_rows
from penstock.store.queries.jobs import job_rows
from penstock.web.api.jobs import read_cursor, write_cursor
from penstock.web.auth import Caller, base_url
from penstock.web.facades import orders
from penstock.web.facades.mcp.calls import TEXTS
from penstock.web.facades.mcp.context import PAGE, Context, admitted, is_modern, refusal
from penstock.web.server.asgi import CYCLE

SCHEME: Final = "penstock"
TEMPLATE: Final = f"{SCHEME}://jobs/{{job_id}}/outputs/{{output}}"
MAX_READ_BYTES: Final = 4 << 20
"""Size up to which an output is read. Larger ones would fill an agent's memory, and come as a link."""
COPIES: Final = 4
"""Times that an output is in memory while it is answered, at most."""
MAX_TITLE: Final = 80
NOT_FOUND: Final = -32002
"""The code of the versions with a handshake. 2026-07-28 has the one for params."""
_PRIVATE: Final = {"cacheScope": "private", "resultType": "complete"}


def add_handlers(server: Server[Any]) -> None:
    """Let the server answer the methods about resources."""
    server.add_request_handler("resources/list", mcp_types.PaginatedRequestParams, _list)
    server.add_request_handler("resources/templates/list", mcp_types.PaginatedRequestParams, _list_templates)
    server.add_request_handler("resources/read", mcp_types.ReadResourceRequestParams, _read)


async def _list(context: Context, params: mcp_types.PaginatedRequestParams) -> dict[str, Any]:
    """List the outputs of the account's jobs, newest first."""
    caller = admitted(context, Scope.READ)
    filters = {"state": State.SUCCEEDED, "kept_at": caller.gateway.clock()}
    try:
        before = None if params.cursor is None else read_cursor(params.cursor)
        found = await caller.gateway.database.look(job_rows.page, caller.account_id, filters, before, PAGE + 1)
    except PenstockError as error:
        raise refusal(error) from None
    page = found[:PAGE]
    resources = [_describe(job, number, asset) for job in page for number, asset in enumerate(job.outputs)]
    more = {"nextCursor": write_cursor(page[-1].id)} if len(found) > PAGE else {}
    return {**_PRIVATE, "ttlMs": 0, "resources": resources, **more}


def _describe(job: Job, number: int, asset: Asset) -> dict[str, Any]:
    prompt = job.params.get("prompt")
    about = {"title": prompt[:MAX_TITLE]} if isinstance(prompt, str) and prompt else {}
    return about | {
        "uri": f"{SCHEME}://jobs/{job.id}/outputs/{number}",
        "name": asset.filename,
        "description": f"{asset.kind} ({asset.role}) of {job.id}, by {job.model}",
        "mimeType": asset.content_type,
        "size": asset.bytes,
        "annotations": {"lastModified": timestamp(job.finished_at or job.created_at)},
    }


async def _list_templates(context: Context, params: mcp_types.PaginatedRequestParams) -> dict[str, Any]:
    del params
    admitted(context, Scope.READ)
    template = {
        "uriTemplate": TEMPLATE,
        "name": "output",
        "title": "Output of a job",
        "description": f"An output, counted from 0. Of more than {MAX_READ_BYTES >> 20} MiB it has the link.",
    }
    return {**_PRIVATE, "ttlMs": 3_600_000, "resourceTemplates": [template]}


async def _read(context: Context, params: mcp_types.ReadResourceRequestParams) -> dict[str, Any]:
    """Return an output, by our URI or by its link."""
    caller = admitted(context, Scope.READ)
    uri = str(params.uri)
    try:
        job, number = await _find(caller, uri)
        asset = await caller.gateway.database.look(
            asset_rows.get, job.outputs[number].id, caller.account_id, caller.gateway.clock()
        )
        shown = await _show(caller, asset) or _link(caller, job, number)
    except PenstockError as error:
        is_unknown = error.status in (404, 410) and not is_modern(context)
        raise refusal(error, NOT_FOUND if is_unknown else mcp_types.INVALID_PARAMS) from None
    return {**_PRIVATE, "ttlMs": 60_000, "contents": [{"uri": uri, **shown}]}


async def _find(caller: Caller, uri: str) -> tuple[Job, int]:
    own = base_url(caller.request)
    found = orders.OUTPUT_URI.fullmatch(uri)
    if found is None and uri.startswith(f"{own}/"):
        named = await orders.find_output(caller, uri[len(own) :])
        if named is not None:
            return named
        raise AssetNotFound
    if found is None:
        raise InvalidRequest(f"uri: should be {TEMPLATE}, or the link to an output.", param="uri")
    job, number = await orders.find(caller, found[1]), int(found[2])
    if number >= len(job.outputs):
        raise AssetNotFound(f"{job.id} has {len(job.outputs)} outputs: there is no output {number}.")
    return job, number


async def _show(caller: Caller, asset: StoredAsset) -> dict[str, Any] | None:
    """Return an output that is small. Its memory counts for the caller until the answer is sent."""
    if asset.bytes > MAX_READ_BYTES:
        return None
    gateway, cycle = caller.gateway, caller.request.scope["extensions"][CYCLE]
    try:
        if cycle.hold is None:
            cycle.hold = await gateway.body_memory.take(caller.account_id, asset.bytes * COPIES)
    except (ConcurrencyLimited, Overloaded):
        return None  # the link serves
    data = await gateway.assets.read(asset)
    if asset.content_type.startswith(TEXTS):
        return {"mimeType": asset.content_type, "text": data.decode(errors="replace")}
    return {"mimeType": asset.content_type, "blob": (await asyncio.to_thread(base64.b64encode, data)).decode()}


def _link(caller: Caller, job: Job, number: int) -> dict[str, Any]:
    return {"mimeType": "text/uri-list", "text": caller.scribe.job(job)["outputs"][number]["url"]}
