"""`/api/v1/sign-in`: sign-in by providers, from the button in the console to the session; and their logouts."""

from collections.abc import Awaitable
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Path, Request
from starlette.responses import RedirectResponse, Response

from penstock.domain.people.sign_in_errors import InvalidLogoutToken, ProviderNotFound, SignInFailed, SignInRefused
from penstock.errors import InvalidRequest, PenstockError, UnsupportedMediaType
from penstock.gateway import Gateway
from penstock.sign_in.enrolment import Visitor
from penstock.sign_in.sessions import hash_token
from penstock.sign_in.sign_in import ATTEMPT_SECONDS, SignInDone
from penstock.sign_in.sign_in import Response as ProviderResponse
from penstock.web.auth import ALWAYS, base_url, gateway_of
from penstock.web.credentials import ATTEMPT, SESSION, read_cookie, remove_cookie, write_cookie
from penstock.web.json_bodies import receive_body
from penstock.web.people.sign_in_page import HEADERS, answer_page
from penstock.web.responses import Json, problems, success
from penstock.web.server.connection_limits import is_among

router = APIRouter(tags=["Sign-in"])

PATH: Final = "/api/v1/sign-in"
ProviderName = Annotated[str, Path(max_length=100, description="the provider's name in the settings")]
MAX_QUERY: Final = 16 << 10
FORM: Final = "application/x-www-form-urlencoded"
MAX_FORM: Final = 64 << 10


@router.get(PATH, responses={200: success("The ways to sign in.", "SignInWays"), **problems(*ALWAYS)})
async def list_ways(request: Request) -> Response:
    """List the ways to sign in to the console, and whether this browser is signed in. It needs no key."""
    gateway = gateway_of(request)
    token = read_cookie(request.scope["headers"], SESSION, base_url(request))
    signed_in = token is not None and await gateway.sessions.find(token) is not None
    titles = gateway.sign_in.titles
    return Json(
        {
            "object": "sign_in",
            "keys": not titles or gateway.settings.sessions.console_keys == "accepted",
            "providers": [{"name": name, "title": title} for name, title in titles.items()],
            "signed_in": signed_in,
        }
    )


@router.get(f"{PATH}/{{provider}}", include_in_schema=False)
async def begin(provider: ProviderName, request: Request) -> Response:
    """Send a browser to a provider. The cookie binds the sign-in to this browser."""
    return await _shown(request, _begin(provider, request))


async def _begin(provider: str, request: Request) -> Response:
    gateway, base = gateway_of(request), base_url(request)
    return_to = dict(_read_query(request)).get("return_to")
    redirect_uri = f"{base}{PATH}/{provider}/callback"
    begun = await gateway.sign_in.begin(provider, return_to, redirect_uri, _address_of(request))
    response = RedirectResponse(begun.url, 303, HEADERS)
    response.headers.append("set-cookie", write_cookie(ATTEMPT, begun.browser_secret, base, ATTEMPT_SECONDS))
    return response


@router.get(f"{PATH}/{{provider}}/callback", include_in_schema=False)
async def finish(provider: ProviderName, request: Request) -> Response:
    """Receive a browser back from a provider, and begin its session."""
    return await _shown(request, _finish(provider, request))


async def _finish(provider: str, request: Request) -> Response:
    gateway, base, headers = gateway_of(request), base_url(request), request.scope["headers"]
    secret = read_cookie(headers, ATTEMPT, base) or ""
    former, token = read_cookie(headers, SESSION, base), gateway.sessions.make_token()
    visitor = Visitor(
        token_hash=hash_token(token),
        former_hash=None if former is None else hash_token(former),
        browser=_printable(request.headers.get("user-agent", "")),
        address=_address_of(request),
    )
    finished = await gateway.sign_in.finish(provider, _read_response(request), secret, visitor)
    gateway.forget_access()
    if not finished.has_session:
        return _without_role(finished, base)
    response = RedirectResponse(finished.return_to, 303, HEADERS)
    seconds = gateway.settings.sessions.max_age
    response.headers.append("set-cookie", write_cookie(SESSION, token, base, seconds))
    response.headers.append("set-cookie", remove_cookie(ATTEMPT, base))
    return response


def _without_role(finished: SignInDone, base: str) -> Response:
    response = answer_page(
        "You have no role here yet",
        f"{finished.title} signed you in as {finished.name or 'somebody without a name'}.",
        "This server gives you no role, so there is nothing that you may see.",
        "Ask an operator of this server, or whoever manages your groups, for a role. Then sign in again.",
        status=403,
    )
    response.headers.append("set-cookie", remove_cookie(ATTEMPT, base))
    response.headers.append("set-cookie", remove_cookie(SESSION, base))
    return response


@router.post(f"{PATH}/{{provider}}/backchannel-logout", include_in_schema=False)
async def log_out(provider: ProviderName, request: Request) -> Response:
    """End the sessions that a provider's logout token names. The token is the proof; no key is needed."""
    gateway = gateway_of(request)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != FORM:
        raise UnsupportedMediaType(f"Send `content-type: {FORM}`, not `{content_type[:80]}`.")
    too_long = InvalidLogoutToken(f"The form may have at most {MAX_FORM} bytes.")
    if int(request.headers.get("content-length", 0)) > MAX_FORM:
        raise too_long
    body = await receive_body(request, "sign_in")
    if len(body) > MAX_FORM:
        raise too_long
    try:
        form = parse_qsl(body.decode("ascii"), max_num_fields=10)
    except ValueError:
        raise InvalidLogoutToken("The body is not a form.") from None
    found = [value for name, value in form if name == "logout_token"]
    if len(found) != 1:
        raise InvalidLogoutToken("The form needs one `logout_token`.", param="logout_token")
    await gateway.sign_in.log_out(provider, found[0])
    gateway.forget_access()
    return Response(status_code=200, headers={"cache-control": "no-store"})


# -- reading requests


def _read_query(request: Request) -> list[tuple[str, str]]:
    """Return the query's parameters. Of two with one name, none counts."""
    raw: bytes = request.scope["query_string"]
    if len(raw) > MAX_QUERY:
        raise InvalidRequest(f"The query may have at most {MAX_QUERY} bytes.")
    try:
        pairs = parse_qsl(raw.decode("latin-1"), max_num_fields=50)
    except ValueError:
        raise InvalidRequest("The query has too many parameters.") from None
    names = [name for name, _ in pairs]
    return [(name, value) for name, value in pairs if names.count(name) == 1]


def _read_response(request: Request) -> ProviderResponse:
    given = dict(_read_query(request))
    return ProviderResponse(
        state=given.get("state", ""), code=given.get("code"), error=given.get("error"), issuer=given.get("iss")
    )


def _address_of(request: Request) -> str:
    """Return the caller's address: the last that a reverse proxy of the settings names, else that of the connection."""
    client = request.scope["client"]
    address: str = client[0] if client else ""
    gateway: Gateway = gateway_of(request)
    if not is_among(address, gateway.settings.server.proxies):
        return address
    named = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return _printable(named)[:64] or address


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isascii() and each.isprintable())


async def _shown(request: Request, answer: Awaitable[Response]) -> Response:
    """Return the answer. An error is a page of plain sentences for a browser, and no former cookie is left to retry."""
    try:
        return await answer
    except PenstockError as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        title = "You may not sign in here" if isinstance(error, SignInRefused) else "The sign-in failed"
        if isinstance(error, ProviderNotFound | SignInFailed | SignInRefused) or error.status in (429, 503):
            return answer_page(title, error.message, error.suggestion or "", status=error.status)
        raise
