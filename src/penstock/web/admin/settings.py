"""`/admin/v1/settings`: vendors and models that change while servers run, with their history."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response

from penstock.configuration import versions
from penstock.configuration.document import PARTS, Document
from penstock.configuration.live import PRESENT_SECONDS
from penstock.configuration.records import (
    describe_change,
    describe_settings,
    describe_version,
    describe_whole_version,
)
from penstock.configuration.vendor_types import list_vendor_types
from penstock.errors import (
    InvalidRequest,
    RateLimited,
    SecretsUnavailable,
    SettingFromFile,
    SettingNotFound,
    SettingsConflict,
)
from penstock.store.database import Connection
from penstock.store.queries.settings import version_rows
from penstock.web.admin.accounts import BODY
from penstock.web.admin.auth import administered, admit_administrator
from penstock.web.admin.bodies import ConnectionTestBody, RestoreBody, SettingsBody, SettingsPatch
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.pages import NEXT_CURSOR, Limit, write_page
from penstock.web.responses import Json, success

router = APIRouter(tags=["Administration: settings"])

CHANGED = success("The change.", "SettingsChange")
REFUSED = (SettingsConflict, SettingFromFile, SecretsUnavailable)
IfMatch = Annotated[str | None, Header(description='the version that you have read, such as `"3"`', max_length=40)]
Version = Annotated[int, Path(ge=0, le=2**31 - 1)]
VendorName = Annotated[str, Path(max_length=200, description="the name of the vendor")]


@router.get("/admin/v1/settings", responses={200: success("The settings.", "RunTimeSettings"), **administered()})
async def get_settings(request: Request) -> Response:
    """Get all vendors and models with their origin, and the version that each process uses."""
    admin = await admit_administrator(request)

    def read(connection: Connection) -> dict[str, Any]:
        newest = versions.read(connection).version
        present = version_rows.processes(connection, admin.now - PRESENT_SECONDS)
        return describe_settings(admin.gateway.settings, newest, present)

    found = await admin.look(read)
    return Json(found, headers={"etag": f'"{found["version"]}"', "cache-control": "no-store"})


@router.get(
    "/admin/v1/settings/vendor-types",
    responses={200: success("The types.", "VendorTypeList"), **administered()},
)
async def get_vendor_types(request: Request) -> Response:
    """List the types of vendors, each with its options as JSON Schema and its models."""
    await admit_administrator(request)
    return Json({"object": "list", "data": await asyncio.to_thread(list_vendor_types)})


@router.patch(
    "/admin/v1/settings",
    responses={200: CHANGED, **administered(*BODY, *REFUSED)},
    openapi_extra=describe_body("SettingsPatch"),
)
async def change_settings(request: Request, if_match: IfMatch = None) -> Response:
    """Set or remove single vendors and models. All servers and workers follow within 2 s."""
    admin = await admit_administrator(request)
    wanted, given = await read_params(request, SettingsPatch)

    def amend(current: Document) -> dict[str, Any]:
        return {part: _merge(current.get(part, {}), given.get(part) or {}) for part in PARTS}

    base = _read_base(wanted.base_version, if_match)
    run_time = admin.gateway.run_time
    before, made = await run_time.change(admin.actor, base, amend, note=wanted.note, dry_run=wanted.dry_run)
    return Json(describe_change(before, made, dry_run=wanted.dry_run))


@router.put(
    "/admin/v1/settings",
    responses={200: CHANGED, **administered(*BODY, *REFUSED)},
    openapi_extra=describe_body("SettingsBody"),
)
async def replace_settings(request: Request, if_match: IfMatch = None) -> Response:
    """Replace all run-time settings, such as by those of an export. Placeholders keep the stored secrets."""
    admin = await admit_administrator(request)
    wanted, given = await read_params(request, SettingsBody)
    document: dict[str, Any] = {part: given.get(part) or {} for part in PARTS}
    base = _read_base(wanted.base_version, if_match)
    run_time = admin.gateway.run_time
    before, made = await run_time.change(
        admin.actor, base, lambda _: document, note=wanted.note, dry_run=wanted.dry_run
    )
    return Json(describe_change(before, made, dry_run=wanted.dry_run))


@router.post(
    "/admin/v1/settings/vendors/{name}/test",
    responses={
        200: success("The result.", "ConnectionTestResult"),
        **administered(*BODY, SettingNotFound, RateLimited, *REFUSED),
    },
    openapi_extra=describe_body("ConnectionTestBody", required=False),
)
async def test_connection(name: VendorName, request: Request) -> Response:
    """Test the connection to a vendor by a cheap call, for at most 10 s. Nothing is stored."""
    admin = await admit_administrator(request)
    _, given = await read_params(request, ConnectionTestBody)
    found = await admin.gateway.run_time.test_connection(name, given.get("options"))
    return Json(
        {
            "object": "connection_test",
            "ok": found.ok,
            "outcome": found.outcome,
            "message": found.message,
            "seconds": found.seconds,
            "models": found.models,
        }
    )


@router.get(
    "/admin/v1/settings/versions",
    responses={200: success("A page.", "SettingsVersionPage"), **administered(InvalidRequest)},
)
async def list_versions(
    request: Request,
    *,
    limit: Limit = 20,
    cursor: Annotated[str | None, Query(pattern="^[0-9]{1,9}$", description=NEXT_CURSOR)] = None,
) -> Response:
    """List the versions of the run-time settings, newest first."""
    admin = await admit_administrator(request)
    found = await admin.look(version_rows.page, None if cursor is None else int(cursor), limit + 1)
    page = [describe_version(each) for each in found[:limit]]
    return write_page(page, next_cursor=str(page[-1]["version"]) if len(found) > limit else None)


@router.get(
    "/admin/v1/settings/versions/{version}",
    responses={
        200: success("The version.", "SettingsVersionDetail"),
        **administered(InvalidRequest, SettingNotFound),
    },
)
async def get_version(version: Version, request: Request) -> Response:
    """Get one version, and what it changed. Secrets are hidden."""
    admin = await admit_administrator(request)

    def read(connection: Connection) -> dict[str, Any]:
        found = versions.read(connection, version).version
        return describe_whole_version(found, versions.differences_of(connection, version))

    return Json(await admin.look(read))


@router.post(
    "/admin/v1/settings/versions/{version}/restore",
    responses={200: CHANGED, **administered(*BODY, SettingNotFound, *REFUSED)},
    openapi_extra=describe_body("RestoreBody", required=False),
)
async def restore_version(version: Version, request: Request, if_match: IfMatch = None) -> Response:
    """Bring back a version, with its secrets, as a new one. Version 0 has nothing."""
    admin = await admit_administrator(request)
    wanted, _ = await read_params(request, RestoreBody)
    base = _read_base(wanted.base_version, if_match)
    before, made = await admin.gateway.run_time.restore(
        admin.actor, base, version, note=wanted.note, dry_run=wanted.dry_run
    )
    return Json(describe_change(before, made, dry_run=wanted.dry_run))


def _merge(current: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries with the changes. Null removes an entry."""
    return {name: entry for name, entry in {**current, **changes}.items() if entry is not None}


def _read_base(given: int | None, if_match: str | None) -> int:
    """Return the version that the caller has seen. Raise if there is none: a change would undo another unseen."""
    text = (if_match or "").strip().removeprefix("W/").strip('"')
    if given is None and text.isascii() and text.isdigit():
        return int(text)
    if given is None:
        message = "`base_version` is missing: send the `version` that you have read, in the body or as `If-Match`."
        raise InvalidRequest(message, param="base_version")
    return given
