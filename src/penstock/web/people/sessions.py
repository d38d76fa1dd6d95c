"""`/api/v1/session` and `/api/v1/sessions`: one's own sessions in the console; and those of all, for operators."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from penstock.accounts import people
from penstock.accounts.records import describe_membership, describe_session
from penstock.domain.people.sign_in import Session, SignedIn
from penstock.domain.people.sign_in_errors import CsrfHeaderMissing, SessionEnded, SessionNotFound
from penstock.errors import InvalidRequest, OriginNotAllowed, PersonNotFound, RoleNotAllowed, ScopeNotAllowed
from penstock.gateway import Gateway
from penstock.store.database import Connection
from penstock.store.queries.accounts import session_rows
from penstock.web.admin.auth import administered, admit_administrator
from penstock.web.auth import ALWAYS, admit_person, base_url, find_session, gateway_of
from penstock.web.credentials import SESSION, find_credential, read_cookie, remove_cookie
from penstock.web.people.members import PersonId
from penstock.web.responses import Json, problems, success

router = APIRouter(tags=["Sign-in"])

SessionId = Annotated[str, Path(max_length=100, description="the session's id")]
LIST = success("The sessions, newest first.", "SessionList")
COOKIE = (SessionEnded, OriginNotAllowed, CsrfHeaderMissing, *ALWAYS)
PERSONAL = (RoleNotAllowed, ScopeNotAllowed, *COOKIE)
NO_STORE = {"cache-control": "no-store"}


@router.get("/api/v1/session", responses={200: success("The session.", "OwnSession"), **problems(*COOKIE)})
async def get_own_session(request: Request) -> Response:
    """Get who is signed in by this browser's cookie: the person, the roles, and the end of the session."""
    signed_in = await find_session(gateway_of(request), request.scope)
    if signed_in is None:
        raise SessionEnded
    return Json(_describe_own(gateway_of(request), signed_in), headers=NO_STORE)


@router.delete("/api/v1/session", responses={200: success("Signed out.", "SignOut"), **problems(*COOKIE)})
async def sign_out(request: Request) -> Response:
    """Sign out of the console. `redirect` is the address at which the provider ends its own session."""
    gateway, base = gateway_of(request), base_url(request)
    redirect = None
    if read_cookie(request.scope["headers"], SESSION, base) is not None:
        redirect = await _end(gateway, await _find_lasting(request), base)
    answer = Json({"object": "sign_out", "redirect": redirect}, headers=NO_STORE)
    answer.headers.append("set-cookie", remove_cookie(SESSION, base))
    return answer


async def _find_lasting(request: Request) -> SignedIn | None:
    try:
        return await find_session(gateway_of(request), request.scope)
    except SessionEnded:
        return None


async def _end(gateway: Gateway, signed_in: SignedIn | None, base: str) -> str | None:
    """End a session. Return the address at which its provider ends its own."""
    if signed_in is None:
        return None
    session, now = signed_in.session, gateway.clock()

    def end(connection: Connection) -> bytes | None:
        token = session_rows.id_token_of(connection, session.id)
        if session_rows.remove(connection, session.id):
            people.note_sign_out(connection, session.person_id, session.person_id, 1, now)
        return token

    token = await gateway.database.write(end)
    gateway.sessions.forget()
    return await gateway.sign_in.end_session_url(session, token, f"{base}/console")


@router.get("/api/v1/sessions", responses={200: LIST, **problems(*PERSONAL)})
async def list_own_sessions(request: Request) -> Response:
    """List your sessions in the console, newest first."""
    person_id, current = await _find_person(request)
    return await _list(gateway_of(request), person_id, current)


@router.delete("/api/v1/sessions", responses={200: success("Ended.", "SessionsEnded"), **problems(*PERSONAL)})
async def end_own_sessions(request: Request) -> Response:
    """End all your sessions in the console, this one too."""
    person_id, _ = await _find_person(request)
    return await _end_all(gateway_of(request), person_id, person_id)


@router.delete(
    "/api/v1/sessions/{session_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Ended."}, **problems(InvalidRequest, SessionNotFound, *PERSONAL)},
)
async def end_own_session(session_id: SessionId, request: Request) -> Response:
    """End one of your sessions in the console. All servers follow within a second."""
    person_id, _ = await _find_person(request)
    return await _end_one(gateway_of(request), person_id, person_id, session_id)


@router.get("/admin/v1/people/{person}/sessions", responses={200: LIST, **administered(InvalidRequest, PersonNotFound)})
async def list_sessions(person: PersonId, request: Request) -> Response:
    """List the sessions of a person, newest first."""
    admin = await admit_administrator(request)
    found = await admin.look(people.get_person, person)
    return await _list(admin.gateway, found.id, None)


@router.delete(
    "/admin/v1/people/{person}/sessions",
    responses={200: success("Ended.", "SessionsEnded"), **administered(InvalidRequest, PersonNotFound)},
)
async def end_sessions(person: PersonId, request: Request) -> Response:
    """End all sessions of a person. Roles and keys stay."""
    admin = await admit_administrator(request)
    found = await admin.look(people.get_person, person)
    return await _end_all(admin.gateway, admin.actor, found.id)


@router.delete(
    "/admin/v1/people/{person}/sessions/{session_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Ended."}, **administered(InvalidRequest, PersonNotFound, SessionNotFound)},
)
async def end_session(person: PersonId, session_id: SessionId, request: Request) -> Response:
    """End one session of a person."""
    admin = await admit_administrator(request)
    found = await admin.look(people.get_person, person)
    return await _end_one(admin.gateway, admin.actor, found.id, session_id)


# -- inside


async def _find_person(request: Request) -> tuple[str, str | None]:
    """Return the person's id and the session of the request. A person without any role has sessions too."""
    if find_credential(dict(request.scope["headers"])) is None:
        signed_in = await find_session(gateway_of(request), request.scope)
        if signed_in is not None:
            return signed_in.person.id, signed_in.session.id
    return (await admit_person(request)).person_id, None


async def _list(gateway: Gateway, person_id: str, current: str | None) -> Response:
    def read(connection: Connection) -> Sequence[Session]:
        return session_rows.of_person(connection, person_id, gateway.session_policy, gateway.clock())

    titles, found = gateway.sign_in.titles, await gateway.database.read(read)
    data = [describe_session(session, titles, current) for session in found]
    return Json({"object": "list", "data": data})


async def _end_all(gateway: Gateway, actor: str, person_id: str) -> Response:
    ended = await gateway.database.write(people.end_sessions, actor, person_id, gateway.clock())
    gateway.sessions.forget()
    return Json({"object": "sessions_ended", "ended": ended})


async def _end_one(gateway: Gateway, actor: str, person_id: str, session_id: str) -> Response:
    await gateway.database.write(people.end_session, actor, person_id, session_id, gateway.clock())
    gateway.sessions.forget()
    return Response(status_code=204)


def _describe_own(gateway: Gateway, signed_in: SignedIn) -> dict[str, Any]:
    session, person = signed_in.session, signed_in.person
    chosen = signed_in.choose(None)
    return {
        **describe_session(session, gateway.sign_in.titles, session.id),
        "person_id": person.id,
        "email": person.email,
        "name": person.name,
        "operator": person.is_operator,
        "account_id": None if chosen is None else chosen.account_id,
        "accounts": [describe_membership(each) for each in signed_in.memberships],
    }
