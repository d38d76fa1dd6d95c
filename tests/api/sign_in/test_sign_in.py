"""Sign-in by providers, roles by rules, sessions: what correct people and providers do."""

import pytest
from sign_in_steps import CSRF, Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_person_signs_in_sees_the_role_and_signs_out(stage: Stage):
    browser = stage.open_browser()
    ways = (await browser.client.get("/api/v1/sign-in")).json()
    assert ways["providers"] == [{"name": "acme", "title": "Acme Ltd"}, {"name": "other", "title": "other"}]
    assert (ways["keys"], ways["signed_in"]) == (True, False)
    back = await browser.sign_in(return_to="/console/jobs?state=done", groups=["millers", "weavers"])
    assert (back.status_code, back.headers["location"]) == (303, "/console/jobs?state=done")
    session = (await browser.client.get("/api/v1/session")).json()
    assert [(each["account"], each["role"], each["source"]) for each in session["accounts"]] == [
        ("mill", "member", "acme"),
        ("weaver", "viewer", "acme"),
    ]
    person = (await browser.client.get("/api/v1/person")).json()
    assert (person["email"], person["role"], person["name"]) == ("ada@example.org", "member", "Ada")
    weaver = {"x-penstock-account": "weaver"}
    assert (await browser.client.get("/api/v1/person", headers=weaver)).json()["role"] == "viewer"
    out = await browser.client.delete("/api/v1/session", headers=CSRF)
    assert out.json()["redirect"].startswith(f"{stage.acme.issuer}/end?client_id=penstock&post_logout_redirect_uri=")
    assert not await browser.is_signed_in()
