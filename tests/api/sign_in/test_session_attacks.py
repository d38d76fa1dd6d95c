"""Attacks on sessions and on people: what has ended stays ended, and nobody becomes somebody else."""

import logging

import pytest
from oidc_double import EVENT, make_key, sign_not_at_all, sign_with_public_key
from sign_in_steps import CSRF, SIGN_IN, Browser, Stage, read

pytestmark = pytest.mark.asyncio(loop_scope="module")

COOKIE = "penstock_session"


class BrokenKey:
    """A key of the provider that is none."""

    def __init__(self, jwk: dict[str, object]) -> None:
        self._jwk = jwk

    def jwk(self) -> dict[str, object]:
        return self._jwk


PERSON, JOBS = "/api/v1/person", "/api/v1/jobs"


async def sign_in(stage: Stage, *groups: str, provider: str = "acme", **script: object) -> Browser:
    browser = stage.open_browser()
    back = await browser.sign_in(provider, groups=list(groups or ("millers",)), **script)
    assert back.status_code == 303, back.text
    return browser


def someone(name: str) -> dict[str, str]:
    """Claims of a person who is this test's alone."""
    return {"sub": f"{name}-1", "email": f"{name}@example.org", "name": name.title(), "sid": f"sid-{name}"}


# -- what ends a session


async def test_the_cookie_of_a_session_that_was_signed_out_is_worth_nothing(stage: Stage):
    browser = await sign_in(stage)
    stolen = browser.client.cookies[COOKIE]
    assert (await browser.ask("DELETE", "/api/v1/session"))[0] == 200
    browser.client.cookies.set(COOKIE, stolen)
    assert await browser.get(PERSON) == (401, "session_ended")
    assert await browser.ask("POST", "/llm/chat/completions", json={}) == (401, "session_ended")


async def test_a_session_ends_when_it_is_idle_and_when_it_is_old(stage: Stage):
    idle, busy = await sign_in(stage), await sign_in(stage)
    for _ in range(3):
        stage.clock.moved += 7 * 3_600
        assert await busy.is_signed_in()
        await stage.server.gateway.sessions.stop()  # the time of the request is stored
    assert not await idle.is_signed_in()
    stage.clock.moved += 3 * 3_600 - 60
    assert await busy.is_signed_in()
    stage.clock.moved += 61
    assert not await busy.is_signed_in()


async def test_a_deactivated_person_is_out_at_once_and_cannot_sign_in(stage: Stage):
    browser = await sign_in(stage, "millers", "operators", **someone("dora"))
    admin = await stage.administer()
    assert (await admin.patch("/admin/v1/people/dora@example.org", json={"active": False})).status_code == 200
    for path in (PERSON, "/api/v1/session", "/admin/v1/people"):
        assert await browser.get(path) == (401, "session_ended")
    back = await stage.open_browser().sign_in(groups=["operators"], **someone("dora"))
    assert read(back) == (403, "sign_in_refused")
    back = await stage.open_browser().sign_in("other", **someone("dora"))
    assert read(back) == (403, "sign_in_refused")


async def test_a_role_and_an_operators_right_end_at_once(stage: Stage):
    browser = await sign_in(stage, "millers", "operators", **someone("rosa"))
    admin = await stage.administer()
    assert (await browser.get(JOBS))[0] == (await browser.get("/admin/v1/people"))[0] == 200
    await admin.delete("/admin/v1/people/rosa@example.org/accounts/mill")
    assert await browser.get(JOBS) == (403, "role_not_allowed")
    assert (await browser.get("/admin/v1/people"))[0] == 200
    await admin.patch("/admin/v1/people/rosa@example.org", json={"operator": False})
    assert await browser.get("/admin/v1/people") == (403, "role_not_allowed")
    assert await browser.is_signed_in()  # to see that there is nothing to see, and to sign out


async def test_losing_a_group_ends_role_keys_and_sessions(stage: Stage):
    first = await sign_in(stage, "millers", "weavers", "operators", **someone("greta"))
    made = await first.client.post("/api/v1/keys", json={}, headers=CSRF)
    key = {"authorization": f"Bearer {made.json()['key']}"}
    assert (await stage.server.client.get(JOBS, headers=key)).status_code == 200
    second = await sign_in(stage, "weavers", **someone("greta"))
    assert (await stage.server.client.get(JOBS, headers=key)).status_code == 401
    assert await first.get(PERSON) == (401, "session_ended")
    session = (await second.client.get("/api/v1/session")).json()
    assert ([each["account"] for each in session["accounts"]], session["operator"]) == (["weaver"], False)
    back = await stage.open_browser().sign_in(groups=[], **someone("greta"))
    assert back.status_code == 403
    assert "You have no role here yet" in back.text
    assert "greta@example.org" in back.text
    assert await second.get(PERSON) == (401, "session_ended")


async def test_local_roles_are_left_alone_and_the_higher_role_counts(stage: Stage):
    admin = await stage.administer()
    await admin.post("/admin/v1/people", json={"email": "lina@example.org", "operator": True})
    await admin.put("/admin/v1/people/lina@example.org/accounts/mill", json={"role": "viewer"})
    browser = await sign_in(stage, "mill-owners", "weavers", **someone("lina"))
    session = (await browser.client.get("/api/v1/session")).json()
    assert [(each["account"], each["role"], each["source"]) for each in session["accounts"]] == [
        ("mill", "viewer", "local"),
        ("weaver", "viewer", "acme"),
    ]
    assert session["operator"]
    again = await sign_in(stage, "nothing", **someone("lina"))
    session = (await again.client.get("/api/v1/session")).json()
    assert [each["account"] for each in session["accounts"]] == ["mill"]
    assert session["operator"]
    both = await sign_in(stage, "millers", "mill-owners", realm={"roles": ["billing"]}, **someone("olga"))
    assert (await both.client.get(PERSON)).json()["role"] == "owner"
    paid = await sign_in(stage, "nothing", realm={"roles": ["billing"]}, **someone("paul"))
    assert (await paid.client.get(PERSON)).json()["role"] == "billing"


# -- accounts


async def test_a_header_chooses_only_among_ones_own_accounts(stage: Stage):
    browser = await sign_in(stage, "millers", **someone("hugo"))
    other = await sign_in(stage, "weavers", **someone("wim"))
    weaver = (await other.client.get(PERSON)).json()["account_id"]
    for account in (weaver, "weaver", "default", "no-such-account", "", "*", "mill, weaver", "a" * 300):
        answer = await browser.client.get(JOBS, headers={"x-penstock-account": account})
        assert answer.status_code == 403 or account == "", account
        assert "weaver" not in answer.text or account == ""
    assert (await browser.client.get(JOBS, headers={"x-penstock-account": "mill"})).status_code == 200


async def test_an_operator_without_a_role_sees_no_account_and_a_member_no_administration(stage: Stage):
    operator = await sign_in(stage, "operators", **someone("otto"))
    assert (await operator.get("/admin/v1/people"))[0] == 200
    assert await operator.get(JOBS) == (403, "role_not_allowed")
    assert (await operator.get("/api/v1/sessions"))[0] == 200
    member = await sign_in(stage, "mill-owners", **someone("mona"))
    for method, path in (("GET", "/admin/v1/people"), ("POST", "/admin/v1/people"), ("GET", "/admin/v1/audit")):
        assert await member.ask(method, path) == (403, "role_not_allowed")
    assert await member.ask("POST", "/admin/v1/accounts", headers={}) == (403, "csrf_header_missing")


async def test_what_is_done_in_the_console_names_the_person(stage: Stage):
    operator = await sign_in(stage, "operators", **someone("olaf"))
    person = (await operator.client.get("/api/v1/session")).json()["person_id"]
    assert (await operator.ask("POST", "/admin/v1/accounts", json={"name": "made-by-olaf"}))[0] == 201
    [entry] = [
        each
        for each in (await operator.client.get("/admin/v1/audit", params={"limit": 100})).json()["data"]
        if each["action"] == "account.created" and each["detail"]["name"] == "made-by-olaf"
    ]
    assert entry["actor"] == person
    member = await sign_in(stage, "millers", **someone("maja"))
    await member.ask("POST", "/model/v1/generation", json={"model": "sim_text_to_video", "input": [{"params": {}}]})
    me = (await member.client.get(PERSON)).json()["id"]
    keys = (await (await stage.administer()).get("/admin/v1/keys", params={"limit": 100})).json()["data"]
    [hidden] = [each for each in keys if each["person_id"] == me]
    assert hidden["name"] == "Console of maja@example.org"
    [job] = (await member.client.get(JOBS)).json()["data"]
    assert job["status"]


# -- identities


async def test_an_address_that_is_not_verified_links_and_adds_nobody(stage: Stage):
    admin = await stage.administer()
    await admin.post("/admin/v1/people", json={"email": "boss@example.org", "operator": True})
    for verified in (False, None, "false", 1, "yes"):
        claims = {"email": "boss@example.org", "email_verified": verified, "sub": "eve-2"}
        back = await stage.open_browser().sign_in(groups=["millers"], **claims)
        assert read(back) == (403, "sign_in_refused")
    for email in (None, "", "boss", "boss@example.org\0", ["boss@example.org"], "boss@example.org, x@example.org"):
        back = await stage.open_browser().sign_in(groups=["millers"], email=email, sub="eve-2")
        assert read(back) == (403, "sign_in_refused")
    browser = await sign_in(stage, "nothing", email=" Boss@Example.org", sub="boss-1")
    assert (await browser.client.get("/api/v1/session")).json()["operator"]


async def test_an_address_that_was_given_to_somebody_else_does_not_link(stage: Stage):
    await sign_in(stage, "mill-owners", **someone("ivan"))
    back = await stage.open_browser().sign_in(groups=["millers"], **(someone("ivan") | {"sub": "ivan-2"}))
    assert read(back) == (403, "sign_in_refused")
    renamed = await sign_in(stage, "millers", **(someone("ivan") | {"email": "eve@example.org"}))
    assert (await renamed.client.get(PERSON)).json()["email"] == "ivan@example.org"


async def test_one_subject_of_two_issuers_is_two_people(stage: Stage):
    owner = await sign_in(stage, "mill-owners", **someone("kira"))
    stranger = await sign_in(stage, provider="other", sub="kira-1", email="kurt@example.org")
    ours, theirs = [(await each.client.get(PERSON)).json() for each in (owner, stranger)]
    assert ours["id"] != theirs["id"]
    assert (ours["role"], theirs["role"]) == ("owner", "viewer")
    foreign = await stage.open_browser().sign_in("other", sub="kira-1", email="x@evil.example", groups=["mill-owners"])
    assert foreign.status_code == 403  # the same person as before, who now lost the role
    back = await stage.open_browser().sign_in("other", sub="new", email="x@example.org.evil", groups=["mill-owners"])
    assert back.status_code == 403


async def test_a_rule_for_an_account_that_does_not_exist_is_logged_and_gives_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.ERROR):
        back = await stage.open_browser().sign_in(groups=["lost"], **someone("lola"))
    assert back.status_code == 403
    assert "no-such-account" not in back.text
    assert any("no-such-account" in str(getattr(record, "fields", "")) for record in caplog.records)
    people = (await (await stage.administer()).get("/admin/v1/people", params={"limit": 100})).json()["data"]
    assert "lola@example.org" not in [each["email"] for each in people]


async def test_names_and_addresses_from_a_provider_are_text_and_nothing_else(stage: Stage):
    claims = {"sub": "x-1", "email": "<script>alert(1)</script>@example.org", "name": "<b>x</b>\r\nset-cookie: a=b"}
    back = await stage.open_browser().sign_in(groups=[], **claims)
    assert back.status_code == 403
    assert "<script" not in back.text.replace("<script>", "", 0) or "&lt;script&gt;" in back.text
    assert "<script>alert" not in back.text
    assert "script-src" not in back.headers["content-security-policy"]
    page = await stage.open_browser().client.get(
        f"{SIGN_IN}/%3Cscript%3E/callback?error=%3Cscript%3E", headers={"accept": "text/html"}
    )
    assert "<script" not in page.text


# -- one's sessions


async def test_sessions_are_listed_bounded_and_revoked_by_their_person_and_by_operators(stage: Stage):
    browsers = [await sign_in(stage, **someone("sara")) for _ in range(22)]
    stranger = await sign_in(stage, "mill-owners", **someone("nora"))
    assert await browsers[0].get(PERSON) == (401, "session_ended")
    last = browsers[-1]
    listed = (await last.client.get("/api/v1/sessions")).json()["data"]
    assert len(listed) == 20
    assert [each["current"] for each in listed] == [True] + [False] * 19
    assert "token" not in str(listed)
    victim = listed[1]["id"]
    assert await stranger.ask("DELETE", f"/api/v1/sessions/{victim}") == (404, "session_not_found")
    assert await browsers[-2].is_signed_in()
    assert (await last.ask("DELETE", f"/api/v1/sessions/{victim}"))[0] == 204
    assert not await browsers[-2].is_signed_in()
    admin, path = await stage.administer(), "/admin/v1/people/sara@example.org/sessions"
    assert len((await admin.get(path)).json()["data"]) == 19
    assert (await admin.delete(f"{path}/{listed[2]['id']}")).status_code == 204
    assert (await admin.delete(f"{path}/{listed[2]['id']}")).status_code == 404
    assert (await admin.delete(path)).json()["ended"] == 18
    assert not await last.is_signed_in()
    assert (await stranger.client.delete("/api/v1/sessions", headers=CSRF)).json()["ended"] == 1


# -- logout by the provider

FORGED_LOGOUTS = {
    "with a nonce": {"nonce": "x"},
    "without events": {"events": None},
    "with other events": {"events": {"http://schemas.openid.net/event/other": {}}},
    "with events that are a list": {"events": [EVENT]},
    "with an event that is no object": {"events": {EVENT: "x"}},
    "for another client": {"aud": "another-client"},
    "of another issuer": {"iss": "http://127.0.0.1:1/acme"},
    "without jti": {"jti": None},
    "without sub and sid": {"sub": None},
    "with a sid that is a list": {"sid": ["x"]},
    "expired": {"exp": 1},
    "without exp": {"exp": None},
    "without iat": {"iat": None},
    "issued long ago": {"iat": 1},
}


async def log_out(stage: Stage, token: str, provider: str = "acme") -> tuple[int, str | None]:
    path = f"{SIGN_IN}/{provider}/backchannel-logout"
    return read(await stage.server.client.post(path, data={"logout_token": token}, headers={"authorization": ""}))


@pytest.mark.parametrize("attack", FORGED_LOGOUTS)
async def test_a_forged_logout_token_ends_nothing(stage: Stage, attack: str):
    browser = await sign_in(stage)
    token = stage.acme.keys[0].sign(stage.acme.logout_token(**FORGED_LOGOUTS[attack]))
    assert await log_out(stage, token) == (400, "invalid_logout_token")
    assert await browser.is_signed_in()


async def test_a_logout_token_that_the_provider_did_not_sign_ends_nothing(stage: Stage):
    browser = await sign_in(stage)
    claims, key = stage.acme.logout_token(), stage.acme.keys[0]
    query = await stage.open_browser().begin()
    for token in (
        sign_not_at_all(claims),
        sign_with_public_key(claims, key),
        make_key(key.kid).sign(claims),
        key.sign(stage.acme.claims_for(query)),
        key.sign(claims, typ="at+jwt"),
        "x",
        "",
        "a.b.c",
        "x" * 60_000,
    ):
        assert (await log_out(stage, token))[0] == 400, token[:50]
    path = f"{SIGN_IN}/acme/backchannel-logout"
    assert (await stage.server.client.post(path, json={"logout_token": key.sign(claims)})).status_code == 415
    twice = {"logout_token": [key.sign(claims), key.sign(claims)]}
    assert (await stage.server.client.post(path, data=twice)).status_code == 400
    assert (await log_out(stage, key.sign(claims), "other"))[0] == 400
    assert (await log_out(stage, key.sign(claims), "nobody")) == (404, "provider_not_found")
    assert await browser.is_signed_in()


async def test_a_logout_token_ends_the_sessions_that_it_names_and_counts_once(stage: Stage):
    first = await sign_in(stage, **someone("tina"))
    second = await sign_in(stage, **(someone("tina") | {"sid": "sid-tina-2"}))
    key = stage.acme.keys[0]
    by_sid = key.sign(stage.acme.logout_token(sub=None, sid="sid-tina"), typ="logout+jwt")
    assert (await log_out(stage, by_sid))[0] == 200
    assert (await first.is_signed_in(), await second.is_signed_in()) == (False, True)
    third = await sign_in(stage, **someone("tina"))
    assert await log_out(stage, by_sid) == (400, "invalid_logout_token")
    assert await third.is_signed_in()
    assert (await log_out(stage, key.sign(stage.acme.logout_token(sub="tina-1", sid="another"))))[0] == 200
    assert await third.is_signed_in()
    assert (await log_out(stage, key.sign(stage.acme.logout_token(sub="tina-1"))))[0] == 200
    assert (await second.is_signed_in(), await third.is_signed_in()) == (False, False)


async def test_keys_that_are_no_keys_end_nothing_and_break_nothing(stage: Stage):
    double, browser = stage.acme, await sign_in(stage)
    former, token = double.keys, double.keys[0].sign(double.logout_token())
    broken = (
        {"kty": "RSA", "kid": "key-1", "n": 7, "e": "AQAB"},
        {"kty": "RSA", "kid": "key-1", "n": "AQAB"},
        {"kty": "RSA", "kid": "key-1", "n": "A" * 20_000, "e": "AQAB"},
        {"kty": "RSA", "kid": "key-1", "n": "AQAB", "e": "AQAB", "use": ["sig"]},
        {"kty": ["RSA"], "kid": "key-1"},
        {},
    )
    try:
        for jwk in broken:
            double.keys = [BrokenKey(jwk)]
            stage.clock.moved += 601
            assert (await log_out(stage, token))[0] == 400, jwk
    finally:
        double.keys = former
        stage.clock.moved += 601
    assert await browser.is_signed_in()


async def test_an_operators_right_that_was_taken_away_is_given_again_by_the_rule(stage: Stage):
    await sign_in(stage, "operators", **someone("oda"))
    admin = await stage.administer()
    await admin.patch("/admin/v1/people/oda@example.org", json={"operator": False})
    again = await sign_in(stage, "operators", **someone("oda"))
    assert (await again.get("/admin/v1/people"))[0] == 200
