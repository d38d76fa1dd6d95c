"""Sign-in by providers, roles by rules, sessions: what correct people and providers do."""

import pytest
from sign_in_steps import CSRF, Stage, write_settings

from penstock.settings.tables import load

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


async def test_settings_that_are_read_again_end_the_sessions_of_a_provider_that_is_gone(stage: Stage):
    gateway, folder = stage.server.gateway, stage.server.gateway.settings.data
    browser, other = stage.open_browser(), stage.open_browser()
    assert (await browser.sign_in(groups=["millers"])).status_code == 303
    assert (await other.sign_in("other", sub="zoe-1", email="zoe@example.org")).status_code == 303
    text = write_settings(stage.doubles, '[sessions]\nconsole_keys = "hidden"\nidle = "2m"\n')
    try:
        (folder / "config.toml").write_text(text.replace("sign_in.acme", "sign_in.former"))
        await gateway.reload(load(None, {}, {"data": folder}))
        ways = (await browser.client.get("/api/v1/sign-in")).json()
        assert (ways["keys"], ways["signed_in"]) == (False, False)
        assert [each["name"] for each in ways["providers"]] == ["former", "other"]
        assert (await browser.is_signed_in(), await other.is_signed_in()) == (False, True)
        assert (await browser.client.get("/api/v1/sign-in/acme")).status_code == 404
        stage.clock.moved += 121
        assert not await other.is_signed_in()
    finally:
        (folder / "config.toml").write_text(write_settings(stage.doubles))
        await gateway.reload(load(None, {}, {"data": folder}))
    assert (await browser.client.get("/api/v1/jobs", headers={"authorization": "Bearer x"})).status_code == 401


async def test_a_browser_gets_plain_pages_and_a_program_gets_errors(stage: Stage):
    browser = stage.open_browser()
    html = {"accept": "text/html,application/xhtml+xml"}
    for path, status, words in (
        ("/api/v1/sign-in/nobody", 404, "There is no sign-in provider"),
        ("/api/v1/sign-in/acme/callback?state=x&code=y", 400, "unknown in this browser, too old, or was used before"),
    ):
        page = await browser.client.get(path, headers=html)
        assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert words in page.text
        assert (await browser.client.get(path)).json()["error"]["code"].endswith(("found", "failed"))
    query = await browser.begin()
    page = await browser.client.get(
        "/api/v1/sign-in/acme/callback", params={"state": query["state"], "error": "access_denied"}, headers=html
    )
    assert page.status_code == 400
    assert "did not sign you in" in page.text
