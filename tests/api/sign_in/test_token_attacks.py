"""Attacks on sign-in with forged, foreign and stale tokens: none gives a session."""

import base64
import json
from typing import Any

import pytest
from oidc_double import CLIENT, encode, make_key, sign_not_at_all, sign_with_public_key
from sign_in_steps import Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECOND, HOUR = 1, 3_600
CHANGED_CLAIMS: dict[str, dict[str, Any]] = {
    "nonce missing": {"nonce": None},
    "nonce of another sign-in": {"nonce": "another"},
    "nonce that is a list": {"nonce": ["x"]},
    "issuer of another provider": {"iss": "OTHER"},
    "issuer with a slash more": {"iss": "SLASH"},
    "issuer missing": {"iss": None},
    "audience of another client": {"aud": "another-client"},
    "audience missing": {"aud": None},
    "audience that contains our name": {"aud": f"{CLIENT}-2"},
    "several audiences without azp": {"aud": [CLIENT, "another-client"]},
    "several audiences with another azp": {"aud": [CLIENT, "another-client"], "azp": "another-client"},
    "azp of another client": {"azp": "another-client"},
    "expired": {"exp": -31 * SECOND},
    "exp missing": {"exp": None},
    "exp that is a text": {"exp": "9999999999"},
    "exp that is true": {"exp": True},
    "issued long ago": {"iat": -HOUR, "exp": HOUR},
    "issued in the future": {"iat": HOUR, "exp": 2 * HOUR},
    "iat missing": {"iat": None},
    "not valid yet": {"nbf": HOUR},
    "subject missing": {"sub": None},
    "subject empty": {"sub": ""},
    "subject that is a number": {"sub": 7},
    "subject of 300 characters": {"sub": "a" * 300},
    "subject with NUL": {"sub": "ada\0-1"},
    "subject with half a character": {"sub": "ada\ud800"},
    "subject with a line break": {"sub": "ada\r\n"},
}


def place(stage: Stage, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes with this test's issuers, and with times that count from now."""
    issuers = {"OTHER": stage.other.issuer, "SLASH": f"{stage.acme.issuer}/"}
    times = {
        name: int(stage.clock.now()) + value
        for name, value in changes.items()
        if name in ("exp", "iat", "nbf") and type(value) is int
    }
    texts = {name: issuers.get(value, value) for name, value in changes.items() if isinstance(value, str)}
    return {**changes, **texts, **times}


@pytest.mark.parametrize("attack", CHANGED_CLAIMS)
async def test_an_id_token_with_wrong_claims_gives_no_session(stage: Stage, attack: str):
    browser = stage.open_browser()
    back = await browser.sign_in(groups=["millers"], **place(stage, CHANGED_CLAIMS[attack]))
    assert (back.status_code, back.json()["error"]["code"]) == (400, "sign_in_failed")
    assert not await browser.is_signed_in()


def change_text(token: str) -> str:
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed = encode(json.dumps({**claims, "sub": "eve-1"}).encode())
    return f"{head}.{changed}.{signature}"


FORGED: dict[str, Any] = {
    "no algorithm": lambda _double, claims: sign_not_at_all(claims),
    "no algorithm in capitals": lambda _double, claims: sign_not_at_all(claims, "nOnE"),
    "HS256 with the public key": lambda double, claims: sign_with_public_key(claims, double.keys[0]),
    "another key of the same name": lambda double, claims: make_key(double.keys[0].kid).sign(claims),
    "a key of an unknown name": lambda _double, claims: make_key("unknown").sign(claims),
    "a key of another kind": lambda double, claims: make_key(double.keys[0].kid, "ES256").sign(claims),
    "claims changed after signing": lambda double, claims: change_text(double.keys[0].sign(claims)),
    "signature cut off": lambda double, claims: double.keys[0].sign(claims).rpartition(".")[0] + ".",
    "its own key in the header": lambda _double, claims: make_key("x").sign(claims, jwk=make_key("x").jwk()),
    "keys at an address in the header": lambda _double, claims: make_key("x").sign(claims, jku="http://127.0.0.1:1/"),
    "a critical header": lambda double, claims: double.keys[0].sign(claims, crit=["b64"], b64=False),
    "a name of a file as kid": lambda _double, claims: make_key("../../../../dev/null").sign(claims),
    "a kid that is a number": lambda double, claims: double.keys[0].sign(claims, kid="1").replace("a", "b", 1),
    "five parts": lambda double, claims: double.keys[0].sign(claims) + ".a.b",
    "giant token": lambda double, claims: double.keys[0].sign({**claims, "more": "x" * 200_000}),
    "giant token in one claim": lambda double, claims: double.keys[0].sign({**claims, "groups": ["g" * 40] * 1_000}),
    "claims that are a list": lambda double, claims: double.keys[0].sign([claims]),
    "nested claims without end": lambda _double, _claims: "e30." + encode(b"[" * 20_000) + ".e30",
    "empty": lambda _double, _claims: "",
}


@pytest.mark.parametrize("attack", FORGED)
async def test_a_forged_id_token_gives_no_session(stage: Stage, attack: str):
    browser = stage.open_browser()
    query = await browser.begin()
    token = FORGED[attack](stage.acme, stage.acme.claims_for(query, groups=["operators"]))
    code = stage.acme.grant(query, token=token)
    back = await browser.come_back(code=code, state=query["state"])
    assert back.status_code in (400, 503), back.text
    assert not await browser.is_signed_in()


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "RS512", "ES256", "EdDSA"])
async def test_a_new_key_counts_after_keys_are_fetched_again_and_a_removed_one_no_longer(stage: Stage, algorithm: str):
    double, browser = stage.acme, stage.open_browser()
    former = double.keys
    assert (await browser.sign_in(groups=["millers"])).status_code == 303
    new = make_key(f"new-{algorithm}", algorithm)
    double.keys = [new]
    stage.clock.moved += 11  # keys may be fetched again
    assert (await browser.sign_in(groups=["millers"])).status_code == 303
    query = await browser.begin()
    old = former[0].sign(double.claims_for(query, groups=["operators"]))
    back = await browser.come_back(code=double.grant(query, token=old), state=query["state"])
    assert back.status_code == 400
    double.keys = former
    stage.clock.moved += 601  # what was fetched is too old
    query = await browser.begin()
    removed = new.sign(double.claims_for(query, groups=["operators"]))
    back = await browser.come_back(code=double.grant(query, token=removed), state=query["state"])
    assert back.status_code == 400


async def test_tokens_with_unknown_keys_do_not_make_the_gateway_fetch_keys_again_and_again(stage: Stage):
    stage.clock.moved += 11
    await stage.open_browser().sign_in(groups=["millers"])
    stage.acme.requests.clear()
    for _ in range(5):
        browser = stage.open_browser()
        query = await browser.begin()
        token = make_key("unknown").sign(stage.acme.claims_for(query))
        back = await browser.come_back(code=stage.acme.grant(query, token=token), state=query["state"])
        assert back.status_code == 400
    assert stage.acme.requests.count("jwks") <= 1


async def test_userinfo_adds_claims_but_only_about_the_same_person(stage: Stage):
    stage.acme.metadata["userinfo_endpoint"] = f"{stage.acme.issuer}/me"
    stage.clock.moved += 3_601  # the metadata is fetched again
    try:
        browser = stage.open_browser()
        info = {"sub": "ada-1", "groups": ["millers"]}
        assert (await browser.sign_in(userinfo=info)).status_code == 303
        assert (await browser.client.get("/api/v1/person")).json()["role"] == "member"
        for attack in (
            {"sub": "eve-1", "groups": ["operators"]},
            {"groups": ["operators"]},
            {"sub": "ada-1", "iss": "x", "aud": "x", "nonce": "x"},
        ):
            other = stage.open_browser()
            back = await other.sign_in(userinfo=attack, email=None, sub="mallory")
            assert back.status_code in (400, 403), back.text
            assert not await other.is_signed_in()
        back = await stage.open_browser().sign_in(
            userinfo={"sub": "mia-1", "email": "other@example.org", "email_verified": True, "groups": ["millers"]},
            sub="mia-1",
            email="owner@example.org",
            email_verified=None,
        )
        assert back.status_code == 403  # verified is another address than that of the ID token
    finally:
        del stage.acme.metadata["userinfo_endpoint"]
        stage.clock.moved += 3_601
