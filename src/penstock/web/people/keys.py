"""`/api/v1/keys` and `/api/v1/account`: one's own keys, all keys of the account, and the limits for people's keys."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from penstock.accounts import administration, people
from penstock.accounts.records import describe_key
from penstock.domain.api_keys import ApiKey
from penstock.domain.people.roles import KeyPolicy
from penstock.errors import (
    AccountClosed,
    InvalidRequest,
    KeyNotFound,
    KeyNotRotatable,
    KeyPolicyExceeded,
    RoleNotAllowed,
)
from penstock.store.database import Connection
from penstock.store.queries.accounts import key_rows, people_rows
from penstock.store.queries.billing import budget_rows
from penstock.web.admin.accounts import BODY
from penstock.web.admin.bodies import RotateBody, unknown_models
from penstock.web.auth import Somebody, admit_person, signed_in
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.people.bodies import AccountKeyBody, KeyPolicyBody
from penstock.web.responses import Json, success

router = APIRouter(tags=["Keys"])

PublicId = Annotated[str, Path(max_length=100, description="the part of the key between its underscores")]
NO_STORE = {"cache-control": "no-store"}
MAX_LISTED_KEYS = 1_000
LIST = success("The keys, newest first.", "OwnKeyList")
ISSUED = success("The key with its text, which is shown only once.", "IssuedKey")
POLICY = success("The limits.", "KeyPolicyRecord")


@router.get("/api/v1/keys", responses={200: LIST, **signed_in(RoleNotAllowed)})
async def list_own_keys(request: Request) -> Response:
    """List your own keys of this account, newest first."""
    me = await admit_person(request)
    return await _list(me, me.person_id)


@router.get("/api/v1/account/keys", responses={200: LIST, **signed_in(RoleNotAllowed)})
async def list_account_keys(request: Request) -> Response:
    """List all keys of your account, newest first: service keys, and those of its people."""
    return await _list(await admit_person(request), None)


@router.post(
    "/api/v1/keys",
    status_code=201,
    responses={201: ISSUED, **signed_in(*BODY, RoleNotAllowed, AccountClosed, KeyPolicyExceeded)},
    openapi_extra=describe_body("AccountKeyBody", required=False),
)
async def issue_own_key(request: Request) -> Response:
    """Make a key of your own. It ends when you leave the account. Its text is only in this answer."""
    me = await admit_person(request)
    return await _issue(
        request,
        me,
        lambda connection, wish: people.issue_own_key(
            connection, me.person_id, me.person_id, me.account_id, wish, me.now
        ),
    )


@router.post(
    "/api/v1/account/keys",
    status_code=201,
    responses={201: ISSUED, **signed_in(*BODY, RoleNotAllowed, AccountClosed)},
    openapi_extra=describe_body("AccountKeyBody", required=False),
)
async def issue_service_key(request: Request) -> Response:
    """Make a service key, which belongs to the account and outlasts its people. Its text is only in this answer."""
    me = await admit_person(request)
    return await _issue(
        request,
        me,
        lambda connection, wish: administration.issue_key(connection, me.person_id, me.account_id, wish, me.now),
    )


@router.post(
    "/api/v1/keys/{public_id}/rotate",
    status_code=201,
    responses={201: ISSUED, **signed_in(*BODY, RoleNotAllowed, KeyNotFound, KeyNotRotatable, KeyPolicyExceeded)},
    openapi_extra=describe_body("RotateBody", required=False),
)
async def rotate_own_key(public_id: PublicId, request: Request) -> Response:
    """Replace a key of your own. The old key works for a while longer, at most 7 days."""
    me = await admit_person(request)
    return await _rotate(request, me, me.person_id, public_id)


@router.post(
    "/api/v1/account/keys/{public_id}/rotate",
    status_code=201,
    responses={201: ISSUED, **signed_in(*BODY, RoleNotAllowed, KeyNotFound, KeyNotRotatable)},
    openapi_extra=describe_body("RotateBody", required=False),
)
async def rotate_service_key(public_id: PublicId, request: Request) -> Response:
    """Replace a service key of your account. Keys of people are rotated by them alone."""
    return await _rotate(request, await admit_person(request), None, public_id)


@router.delete(
    "/api/v1/keys/{public_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Revoked."}, **signed_in(InvalidRequest, RoleNotAllowed, KeyNotFound)},
)
async def revoke_own_key(public_id: PublicId, request: Request) -> Response:
    """Revoke a key of your own. All servers refuse it within a second."""
    me = await admit_person(request)
    return await _revoke(me, me.person_id, public_id)


@router.delete(
    "/api/v1/account/keys/{public_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Revoked."}, **signed_in(InvalidRequest, RoleNotAllowed, KeyNotFound)},
)
async def revoke_account_key(public_id: PublicId, request: Request) -> Response:
    """Revoke any key of your account, also one of a person. All servers refuse it within a second."""
    return await _revoke(await admit_person(request), None, public_id)


@router.get("/api/v1/account/key-policy", responses={200: POLICY, **signed_in(RoleNotAllowed)})
async def get_key_policy(request: Request) -> Response:
    """Get the limits of your account for keys of its people."""
    me = await admit_person(request)
    return _answer_policy(await me.look(people_rows.policy, me.account_id))


@router.put(
    "/api/v1/account/key-policy",
    responses={200: POLICY, **signed_in(*BODY, RoleNotAllowed)},
    openapi_extra=describe_body("KeyPolicyBody"),
)
async def set_key_policy(request: Request) -> Response:
    """Set the limits of your account for new keys of its people."""
    me = await admit_person(request)
    body, _ = await read_params(request, KeyPolicyBody)
    wanted = KeyPolicy(max_keys=body.max_keys, max_budget=body.max_budget)

    def put(connection: Connection) -> KeyPolicy:
        return people.set_policy(connection, me.person_id, me.account_id, wanted, me.now)

    return _answer_policy(await me.do(put))


def _answer_policy(policy: KeyPolicy) -> Response:
    return Json({"object": "key_policy", **people.describe_policy(policy)})


async def _list(me: Somebody, person_id: str | None) -> Response:
    def read(connection: Connection) -> list[dict[str, Any]]:
        wanted = people_rows.own_keys(connection, me.account_id, person_id, MAX_LISTED_KEYS)
        found = sorted(key_rows.get_all(connection, wanted), key=lambda key: key.created_at, reverse=True)
        return _describe_keys(connection, found, me.now)

    return Json({"object": "list", "data": await me.look(read)})


async def _issue(request: Request, me: Somebody, make: Callable[[Connection, Any], tuple[str, ApiKey]]) -> Response:
    body, _ = await read_params(request, AccountKeyBody, partial(unknown_models, me.gateway.offers))
    wish = body.wish(me.now)

    def issue(connection: Connection) -> dict[str, Any]:
        text, key = make(connection, wish)
        return {**_describe_keys(connection, [key], me.now)[0], "key": text}

    return Json(await me.do(issue), 201, NO_STORE)


async def _rotate(request: Request, me: Somebody, person_id: str | None, public_id: str) -> Response:
    body, _ = await read_params(request, RotateBody)

    def rotate(connection: Connection) -> dict[str, Any]:
        key = people.get_own_key(connection, me.account_id, person_id, public_id)
        text, made = people.rotate_own_key(connection, me.person_id, key, person_id, body.overlap_seconds, me.now)
        return {**_describe_keys(connection, [made], me.now)[0], "key": text}

    return Json(await me.do(rotate), 201, NO_STORE)


async def _revoke(me: Somebody, person_id: str | None, public_id: str) -> Response:
    def revoke(connection: Connection) -> None:
        key = people.get_own_key(connection, me.account_id, person_id, public_id)
        administration.revoke_key(connection, me.person_id, key.public_id, me.now)

    await me.do(revoke)
    return Response(status_code=204)


def _describe_keys(connection: Connection, keys: Sequence[ApiKey], now: float) -> list[dict[str, Any]]:
    standings = budget_rows.standings(connection, [key.lineage for key in keys], now)
    return [describe_key(key, standings[key.lineage], now) for key in keys]
