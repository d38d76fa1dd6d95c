"""Sign-in with two gateways on one PostgreSQL: begun at one, ended at the other, and followed by both."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio
from conftest import Server, running
from oidc_double import DoubleServer
from sign_in_steps import CSRF, SIGN_IN, Browser, MovedClocks, Stage, write_settings

from penstock.settings.tables import Settings, load


def read(folder: Path, text: str, url: str) -> Settings:
    folder.mkdir()
    (folder / "config.toml").write_text(text)
    return load(None, {}, {"data": folder, "database_url": url})


@pytest_asyncio.fixture
async def stages(postgres_store_url: str, tmp_path: Path) -> AsyncGenerator[tuple[Stage, Stage]]:
    clock = MovedClocks()
    doubles = DoubleServer(clock.now)
    await doubles.start("acme", "other")
    text = write_settings(doubles)
    one, two = (read(tmp_path / name, text, postgres_store_url) for name in ("one", "two"))
    async with running(one, clocks=clock.clocks) as first, running(two, clocks=clock.clocks) as second:
        stage = Stage(first, doubles, clock)
        await stage.make_account("mill")
        yield stage, Stage(second, doubles, clock)
    await doubles.stop()


def elsewhere(browser: Browser, other: Server) -> Browser:
    """The browser, sent to the other gateway by a proxy in front of both."""
    browser.client.base_url = other.url
    return browser


async def until_out(browser: Browser) -> float:
    """The seconds until a gateway has followed."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with asyncio.timeout(60):
        while await browser.is_signed_in():  # noqa: ASYNC110  a server tells nobody that it has followed
            await asyncio.sleep(0.02)
    return loop.time() - begun


async def test_a_sign_in_begins_at_one_gateway_and_ends_at_another(stages: tuple[Stage, Stage]):
    one, two = stages
    browser = one.open_browser()
    query = await browser.begin()
    code = one.acme.grant(query, groups=["millers"])
    elsewhere(browser, two.server)
    back = await browser.come_back(code=code, state=query["state"])
    assert back.status_code == 303
    assert await browser.is_signed_in()
    again = await elsewhere(browser, one.server).come_back(code=code, state=query["state"])
    assert again.status_code == 400
    assert await browser.is_signed_in()
    cookie = browser.client.cookies["penstock_session"]

    async def copy(stage: Stage) -> Browser:
        found = stage.open_browser()
        found.client.cookies.set("penstock_session", cookie)
        assert await found.is_signed_in()
        return found

    both = [await copy(one), await copy(two)]
    token = one.acme.keys[0].sign(one.acme.logout_token())
    path = f"{SIGN_IN}/acme/backchannel-logout"
    answers = await asyncio.gather(
        *(stage.server.client.post(path, data={"logout_token": token}) for stage in (two, one))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 400]
    for each in both:
        await until_out(each)

    await browser.sign_in(groups=["millers", "operators"])
    cookie = browser.client.cookies["penstock_session"]
    other = await copy(two)
    admin = await two.administer()
    await admin.delete("/admin/v1/people/ada@example.org/accounts/mill")
    async with asyncio.timeout(60):
        while (await browser.get("/api/v1/jobs"))[0] != 403:  # noqa: ASYNC110  a server tells nobody that it has followed
            await asyncio.sleep(0.02)
    assert (await browser.client.delete("/api/v1/session", headers=CSRF)).status_code == 200
    await until_out(other)
