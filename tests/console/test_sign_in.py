"""The built console in a real Chromium, in front of a real provider: sign in, work, lose groups, sign out."""

import asyncio
import re
import shutil
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import oidc_server
import pytest
from chromium import SECONDS, Tab, draw_nothing_in_3d
from console_stage import Theatre, playing
from oidc_server import FOLDER as JAVASCRIPT
from oidc_server import OidcServer
from playwright.sync_api import Browser, expect
from sqlalchemy import select

from penstock.store.people_tables import sessions
from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = [
    pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console"),
    pytest.mark.skipif(
        not (JAVASCRIPT / "node_modules" / "oidc-provider").is_dir(), reason="run `make setup-dev`: oidc-provider"
    ),
]
RULES = "".join(
    f"[[sign_in.local-id.rules]]\n{when}\n{then}\n"
    for when, then in (
        ('group = "millers"', 'account = "mill"\nrole = "member"'),
        ('group = "watchers"', 'account = "mill"\nrole = "viewer"'),
        ('group = "weavers"', 'account = "weaver"\nrole = "admin"'),
        ('group = "operators"', 'role = "operator"'),
    )
)


@dataclass
class House:
    """A gateway and its provider."""

    theatre: Theatre
    provider: OidcServer

    def log_out(self, name: str) -> None:
        """End the newest session of a person, from the provider's side."""
        database = self.theatre.stage.server.gateway.database
        newest = select(sessions.c.provider_session).order_by(sessions.c.created_at.desc()).limit(1)
        reading = database.read(lambda connection: connection.execute(newest).scalar())
        self.provider.log_out(name, asyncio.run_coroutine_threadsafe(reading, self.theatre.stage.loop).result(300))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> Generator[House]:
    folder = tmp_path_factory.mktemp("sign_in")
    shutil.copy(empty_store, folder)
    port = oidc_server.find_port()
    settings = oidc_server.write_settings(port) + RULES
    with playing(folder, weights, settings) as theatre, oidc_server.serving(port, theatre.url) as provider:
        for name in ("mill", "weaver"):
            theatre.call("POST", "/admin/v1/accounts", {"name": name})
        yield House(theatre, provider)


@pytest.fixture
def tab(browser: Browser, house: House) -> Iterator[Tab]:
    """A tab of a browser that nobody has used."""
    context = browser.new_context(service_workers="block", reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    yield Tab(page, house.theatre.url, draw_nothing_in_3d(page))
    context.close()


def sign_in(tab: Tab, name: str) -> None:
    """Press the button, and fill in the provider's forms."""
    tab.page.get_by_role("link", name="Sign in with Example ID").click()
    tab.page.locator("input[name=login]").fill(name)
    tab.page.locator("input[name=password]").fill("any")
    tab.page.locator("button[type=submit]").click()
    tab.page.locator("button[type=submit]").click()  # the consent


def test_a_person_signs_in_works_loses_a_group_and_is_signed_out(tab: Tab, house: House):
    house.provider.put_person("ada", groups=["millers", "weavers"])
    tab.open("/jobs")
    expect(tab.page.get_by_label("Key", exact=True)).to_be_visible()
    assert tab.look() == []
    sign_in(tab, "ada")
    tab.page.wait_for_url("**/console/jobs")
    menu = tab.page.get_by_role("navigation", name="Pages")
    expect(menu.get_by_role("link", name="Playground")).to_be_visible()
    rail = tab.page.get_by_label("Console", exact=True)
    expect(rail.get_by_text("member", exact=True)).to_be_visible()
    expect(rail.get_by_text("ada", exact=True)).to_be_visible()
    assert tab.look() == []
    rail.get_by_label("Account in use").select_option(label="weaver")
    expect(rail.get_by_text("admin", exact=True)).to_be_visible()
    menu.get_by_role("link", name="My keys").click()
    tab.button("New key").click()
    tab.dialog().get_by_label("Name").fill("notebook")
    tab.dialog().get_by_role("button", name="Create").click()
    tab.dialog().get_by_role("button", name="I have saved it").click()
    expect(tab.page.get_by_role("row", name=re.compile("notebook"))).to_be_visible()

    house.provider.put_person("ada", groups=["watchers"])
    rail.get_by_role("button", name="Sign out").click()
    tab.page.locator("button[type=submit]").first.click()  # the provider asks whether to end its own session
    tab.page.wait_for_url("**/console**")
    sign_in(tab, "ada")
    expect(rail.get_by_text("viewer", exact=True)).to_be_visible()
    expect(rail.get_by_label("Account in use")).to_have_count(0)
    expect(menu.get_by_role("link", name="Playground")).to_have_count(0)

    house.log_out("ada")
    tab.page.reload()
    expect(tab.page.get_by_role("link", name="Sign in with Example ID")).to_be_visible()


def test_an_operator_sees_the_administration_and_ends_sessions(tab: Tab, house: House):
    house.provider.put_person("otto", groups=["operators", "millers"])
    tab.open()
    sign_in(tab, "otto")
    menu = tab.page.get_by_role("navigation", name="Pages")
    menu.get_by_role("link", name="Accounts").click()
    expect(tab.page.get_by_role("table").get_by_text("weaver")).to_be_visible()
    menu.get_by_role("link", name="My sessions").click()
    row = tab.page.get_by_role("row", name=re.compile("this one"))
    expect(row).to_be_visible()
    assert tab.look() == []
    row.get_by_role("button", name="End").click()
    tab.dialog().get_by_role("button", name="End the session").click()
    tab.page.wait_for_url(re.compile("session/end"))


def test_a_person_without_a_role_sees_who_they_are_and_whom_to_ask(tab: Tab, house: House):
    house.provider.put_person("nora", groups=[])
    tab.open()
    sign_in(tab, "nora")
    expect(tab.page.get_by_role("heading", name="You have no role here yet")).to_be_visible()
    expect(tab.page.get_by_text("Example ID signed you in as nora@example.org.")).to_be_visible()
    assert tab.look() == []
    tab.page.get_by_role("link", name="Back to the sign-in").click()
    expect(tab.page.get_by_role("link", name="Sign in with Example ID")).to_be_visible()
