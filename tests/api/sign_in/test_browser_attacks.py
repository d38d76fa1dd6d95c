"""Attacks by way of a browser: on the sign-in itself, on the cookie, and from pages of other sites."""

import asyncio
import socket
from typing import Any

import httpx
import pytest
from aiohttp import web
from oidc_double import answer_slowly
from sign_in_steps import CSRF, SIGN_IN, Browser, Stage, read
from yarl import URL

pytestmark = pytest.mark.asyncio(loop_scope="module")

COOKIE, ATTEMPT = "penstock_session", "penstock_sign_in"
CHAT = {"model": "sim_chat", "messages": [{"role": "user", "content": "hi"}]}


async def sign_in(stage: Stage, *groups: str, **script: object) -> Browser:
    browser = stage.open_browser()
    back = await browser.sign_in(groups=list(groups or ("millers",)), **script)
    assert back.status_code == 303, back.text
    return browser


def cookie_of(browser: Browser) -> str:
    return browser.client.cookies[COOKIE]


# -- the sign-in


async def test_fixation_a_cookie_that_was_there_before_never_becomes_a_session(stage: Stage):
    known = cookie_of(await sign_in(stage))
    for planted in (known, "planted", f"{'a' * 43}.{'0' * 16}"):
        victim = stage.open_browser()
        victim.client.cookies.set(COOKIE, planted)
        back = await victim.sign_in(groups=["millers"])
        fresh = back.headers.get_list("set-cookie")[0].partition(";")[0].partition("=")[2]
        assert fresh not in (planted, known)
        attacker = stage.open_browser()
        attacker.client.cookies.set(COOKIE, planted)
        assert not await attacker.is_signed_in()


async def test_a_code_and_a_state_are_used_once(stage: Stage):
    browser = stage.open_browser()
    query = await browser.begin()
    attempt = browser.client.cookies[ATTEMPT]
    code = stage.acme.grant(query, groups=["millers"])
    assert (await browser.come_back(code=code, state=query["state"])).status_code == 303
    replay = stage.open_browser()
    replay.client.cookies.set(ATTEMPT, attempt)
    for again in (code, stage.acme.grant(query, groups=["operators"])):
        assert read(await replay.come_back(code=again, state=query["state"])) == (400, "sign_in_failed")
    fresh = await replay.begin()
    assert read(await replay.come_back(code=code, state=fresh["state"])) == (400, "sign_in_failed")
    assert not await replay.is_signed_in()


async def test_one_state_that_comes_back_twice_at_once_gives_one_session(stage: Stage):
    browser = stage.open_browser()
    query = await browser.begin()
    codes = [stage.acme.grant(query, groups=["millers"]) for _ in range(4)]
    backs = await asyncio.gather(*(browser.come_back(code=code, state=query["state"]) for code in codes))
    assert sorted(back.status_code for back in backs) == [303, 400, 400, 400]


async def test_a_state_counts_only_in_its_browser_with_its_provider_and_for_ten_minutes(stage: Stage):
    attacker, victim = stage.open_browser(), stage.open_browser()
    query = await attacker.begin()
    await victim.begin()  # it has a cookie of its own
    code = stage.acme.grant(query, groups=["millers"])
    assert read(await victim.come_back(code=code, state=query["state"])) == (400, "sign_in_failed")
    bare = stage.open_browser()
    query = await attacker.begin()
    code = stage.acme.grant(query, groups=["millers"])
    assert read(await bare.come_back(code=code, state=query["state"])) == (400, "sign_in_failed")
    query = await attacker.begin()
    code = stage.other.grant(query)
    assert read(await attacker.come_back("other", code=code, state=query["state"])) == (400, "sign_in_failed")
    query = await attacker.begin()
    stage.clock.moved += 601
    code = stage.acme.grant(query, groups=["millers"])
    assert read(await attacker.come_back(code=code, state=query["state"])) == (400, "sign_in_failed")
    for state in ("", "x", "é" * 10, "a" * 5_000):
        assert (await attacker.come_back(code="x", state=state)).status_code == 400


async def test_a_code_of_another_browser_is_worth_nothing(stage: Stage):
    attacker, victim = stage.open_browser(), stage.open_browser()
    stolen = stage.acme.grant(await victim.begin(), groups=["operators"])
    query = await attacker.begin()
    assert read(await attacker.come_back(code=stolen, state=query["state"])) == (400, "sign_in_failed")


async def test_a_response_of_another_issuer_is_refused(stage: Stage):
    browser = stage.open_browser()
    for issuer in (stage.other.issuer, f"{stage.acme.issuer}/", "x"):
        query = await browser.begin()
        code = stage.acme.grant(query, groups=["millers"])
        assert read(await browser.come_back(code=code, state=query["state"], iss=issuer)) == (400, "sign_in_failed")
    stage.acme.metadata["authorization_response_iss_parameter_supported"] = True
    stage.clock.moved += 3_601
    try:
        query = await browser.begin()
        code = stage.acme.grant(query, groups=["millers"])
        assert read(await browser.come_back(code=code, state=query["state"])) == (400, "sign_in_failed")
        query = await browser.begin()
        code = stage.acme.grant(query, groups=["millers"])
        back = await browser.come_back(code=code, state=query["state"], iss=stage.acme.issuer)
        assert back.status_code == 303
    finally:
        stage.acme.metadata.clear()
        stage.clock.moved += 3_601


RETURNS = (
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://evil.example/console",
    "javascript:alert(1)",
    "data:text/html,x",
    "/console//evil.example",
    "/console/../../evil",
    "/console/%2e%2e/%2e%2e/api",
    "/console%2f%2fevil.example",
    "/console/%5cevil.example",
    "/console@evil.example",
    "/console.evil.example",
    "/consolex",
    "/api/v1/session",
    " /console",
    "/console\r\nset-cookie: a=b",
    "/console/%0d%0aset-cookie:%20a=b",
    "/console?next=//evil.example",
    "/console#//evil.example",
    "/console/" + "a" * 5_000,
)


@pytest.mark.parametrize("path", RETURNS)
async def test_no_return_path_leads_away_from_the_console(stage: Stage, path: str):
    browser = stage.open_browser()
    back = await browser.sign_in(return_to=path, groups=["millers"])
    assert back.headers["location"] == "/console"
    assert "a=b" not in str(back.headers)


async def test_parameters_that_are_sent_twice_do_not_count(stage: Stage):
    browser = stage.open_browser()
    query = await browser.begin()
    code = stage.acme.grant(query, groups=["millers"])
    path = f"{SIGN_IN}/acme/callback?code={code}&state={query['state']}&state=x"
    assert read(await browser.client.get(path)) == (400, "sign_in_failed")


async def test_an_address_begins_a_bounded_number_of_sign_ins_in_a_minute(stage: Stage):
    async with httpx.AsyncClient(base_url=stage.server.url, headers={"x-forwarded-for": "192.0.2.7"}) as client:
        answers = [await client.get(f"{SIGN_IN}/acme") for _ in range(130)]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:120] == [303] * 120
    assert set(statuses[120:]) == {429}
    assert (await stage.open_browser().sign_in(groups=["millers"])).status_code == 303


async def test_what_has_begun_is_bounded_and_tidied_up(stage: Stage):
    from penstock.store.queries.accounts import identity_rows  # noqa: PLC0415

    def begin(connection: object) -> None:
        for number in range(20):
            attempt = identity_rows.SignInAttempt(
                state_hash=number.to_bytes(32),
                browser_hash=b"x",
                provider="acme",
                return_to="/console",
                redirect_uri="x",
                expires_at=stage.clock.now() + number,
            )
            identity_rows.begin(connection, attempt, stage.clock.now(), 5)  # type: ignore[arg-type]

    await stage.server.gateway.database.write(begin)
    assert await stage.server.gateway.database.write(identity_rows.take, (3).to_bytes(32)) is None
    assert await stage.server.gateway.database.write(identity_rows.take, (19).to_bytes(32)) is not None


# -- a provider that answers badly


async def redirect(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound(URL(str(request.url)))


async def answer_much(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b'{"issuer": "' + b"x" * 400_000 + b'"}', content_type="application/json")


async def answer_deep(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"[" * 100_000, content_type="application/json")


BROKEN_DISCOVERY: dict[str, Any] = {
    "another issuer": {"issuer": "http://127.0.0.1:1/acme"},
    "codes to be sent in the clear": {"token_endpoint": "http://evil.example/token"},
    "keys in a file": {"jwks_uri": "file:///etc/passwd"},
    "a script as address": {"authorization_endpoint": "javascript:alert(1)"},
    "no address": {"authorization_endpoint": None},
    "redirects in a circle": redirect,
    "too long": answer_much,
    "nested without end": answer_deep,
    "no answer": answer_slowly,
}


@pytest.mark.parametrize("attack", BROKEN_DISCOVERY)
async def test_a_hostile_or_broken_discovery_ends_the_sign_in_and_nothing_else(stage: Stage, attack: str):
    change = BROKEN_DISCOVERY[attack]
    stage.clock.moved += 3_610
    if isinstance(change, dict):
        stage.other.metadata.update(change)
    else:
        stage.other.discovery = change
    try:
        browser = stage.open_browser()
        asking = asyncio.create_task(browser.client.get(f"{SIGN_IN}/other", headers={"accept": "text/html"}))
        assert (await stage.open_browser().sign_in(groups=["millers"])).status_code == 303  # by the other provider
        answer = await asking
        assert answer.status_code == 503
        assert "does not answer as it should" in answer.text
        assert "127.0.0.1" not in answer.text
        again = await browser.client.get(f"{SIGN_IN}/other")
        assert again.status_code == 503
        assert stage.other.requests.count("discovery") <= 1  # a failure is remembered for a while
    finally:
        stage.other.metadata.clear()
        stage.other.discovery = None
        stage.other.requests.clear()
        stage.clock.moved += 3_610


# -- the cookie


async def test_the_cookie_is_out_of_reach_and_the_store_has_only_its_hash(stage: Stage):
    browser = stage.open_browser()
    back = await browser.sign_in(groups=["millers"])
    line = back.headers.get_list("set-cookie")[0]
    assert all(part in line for part in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=86400"))
    assert "Domain" not in line
    assert cookie_of(browser).encode() not in (stage.server.gateway.settings.data / "penstock.db").read_bytes()
    proxied = stage.open_browser()
    https = {"x-forwarded-proto": "https"}
    begun = await proxied.client.get(f"{SIGN_IN}/acme", headers=https)
    line = begun.headers["set-cookie"]
    assert line.startswith("__Host-penstock_sign_in=")
    assert "Secure" in line
    browser.client.cookies.set("__Host-penstock_session", "x")
    assert (await browser.client.get("/api/v1/session", headers=https)).status_code == 401


async def test_changed_invented_and_doubled_cookies_are_no_session(stage: Stage):
    browser = await sign_in(stage)
    token = cookie_of(browser)
    body, _, tag = token.partition(".")
    for value in (
        body,
        f"{body}.",
        f"{body[:-1]}{'B' if body[-1] == 'A' else 'A'}.{tag}",
        f"{token}x",
        token.upper(),
        f"{body}.{'0' * 16}",
        "x" * 10_000,
        "é",
        f'"{token}"',
    ):
        headers = {b"cookie": f"{COOKIE}={value}".encode()}
        async with httpx.AsyncClient(base_url=stage.server.url) as client:
            assert (await client.get("/api/v1/person", headers=headers)).status_code == 401, value
    for line in (
        f"{COOKIE}={token}; {COOKIE}={token}x",
        f"{COOKIE}=x; {COOKIE}={token}",
        f"{COOKIE}={token}; {COOKIE}=x",
    ):
        async with httpx.AsyncClient(base_url=stage.server.url) as client:
            assert (await client.get("/api/v1/person", headers={"cookie": line})).status_code == 401
    assert await browser.is_signed_in()


async def test_an_api_key_in_a_header_always_wins(stage: Stage):
    browser = await sign_in(stage)
    for headers in ({"authorization": "Bearer psk_wrong_key"}, {"x-api-key": "psk_wrong_key"}, {"authorization": ""}):
        assert (await browser.client.get("/api/v1/person", headers=headers)).status_code == 401
        assert (await browser.client.get("/api/v1/sessions", headers=headers)).status_code == 401
    key = await stage.server.new_key()
    answer = await browser.client.get("/api/v1/key", headers={"authorization": f"Bearer {key}"})
    assert answer.json()["role"] is None


# -- other sites

FOREIGN = {
    "a form": {"origin": "https://evil.example", "content-type": "application/x-www-form-urlencoded"},
    "a form without the header": {"content-type": "application/x-www-form-urlencoded"},
    "a form from a sandbox": {"origin": "null", **CSRF},
    "fetch of another site": {"origin": "https://evil.example", "sec-fetch-site": "cross-site", **CSRF},
    "fetch of another port": {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site", **CSRF},
    "fetch of a subdomain": {"sec-fetch-site": "same-site", **CSRF},
    "our own page without the header": {"sec-fetch-site": "same-origin"},
    "another value of the header": {"x-penstock-csrf": "0"},
    "an origin in capitals": {"origin": "HTTP://127.0.0.1", **CSRF},
    "two origins": {"origin": "https://evil.example, http://127.0.0.1", **CSRF},
}
UNSAFE = (
    ("POST", "/api/v1/keys"),
    ("DELETE", "/api/v1/session"),
    ("DELETE", "/api/v1/sessions"),
    ("POST", "/model/v1/generation"),
    ("POST", "/llm/chat/completions"),
    ("POST", "/admin/v1/people"),
    ("POST", "/mcp"),
)


@pytest.mark.parametrize("attack", FOREIGN)
async def test_no_other_site_changes_anything_with_the_cookie(stage: Stage, attack: str):
    browser = await sign_in(stage, "mill-owners", "operators")
    for method, path in UNSAFE:
        body = {} if method == "DELETE" else {"content": b"{}"}
        answer = await browser.client.request(
            method, path, headers={"content-type": "application/json", **FOREIGN[attack]}, **body
        )
        assert answer.status_code == 403, (path, answer.text)
        assert answer.headers.get("access-control-allow-credentials") is None
    assert await browser.is_signed_in()
    assert (await browser.client.get("/api/v1/keys")).json()["data"] == []


async def test_no_other_site_reads_anything_with_the_cookie(stage: Stage):
    browser = await sign_in(stage, "operators", "mill-owners")
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        for path in ("/api/v1/session", "/api/v1/person", "/api/v1/jobs", "/admin/v1/people", "/llm/models"):
            answer = await browser.client.get(path, headers=headers)
            assert answer.status_code == 403, path
            assert answer.headers.get("access-control-allow-credentials") is None
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    asked = await browser.client.options("/api/v1/keys", headers=preflight)
    assert asked.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in asked.headers


async def test_a_get_changes_nothing(stage: Stage):
    browser = await sign_in(stage)
    for path in (
        "/api/v1/sign-in/acme/backchannel-logout",
        "/api/v1/session?_method=DELETE",
        "/api/v1/sessions?_method=DELETE",
    ):
        await browser.client.get(path, headers={**CSRF, "x-http-method-override": "DELETE"})
    override = {"x-http-method-override": "DELETE", **CSRF}
    await browser.client.post("/api/v1/session", headers=override)
    assert await browser.is_signed_in()


async def test_a_session_is_not_looked_for_when_a_chat_request_has_a_key(stage: Stage):
    browser = await sign_in(stage)
    key = await stage.server.new_key()
    wrong = {"origin": "https://evil.example", "authorization": f"Bearer {key}"}
    answer = await browser.client.post("/llm/chat/completions", json=CHAT, headers=wrong)
    assert answer.status_code not in (401, 403)
    own = await browser.client.post("/llm/chat/completions", json=CHAT, headers=CSRF)
    assert own.status_code == answer.status_code


async def test_raw_requests_with_odd_cookies_do_no_harm(stage: Stage):
    address = URL(stage.server.url)
    for line in (
        b"cookie: penstock_session",
        b"cookie: ;;;===;",
        b"cookie: \xff\xfe=\xfd",
        b"cookie: " + b"a=b;" * 8_000,
    ):
        reader, writer = await asyncio.open_connection(address.host, address.port, family=socket.AF_INET)
        writer.write(b"GET /api/v1/session HTTP/1.1\r\nhost: x\r\n" + line + b"\r\nconnection: close\r\n\r\n")
        status = (await reader.readline()).split()[1]
        assert status in (b"401", b"431", b"400"), line[:40]
        writer.close()
        await writer.wait_closed()
