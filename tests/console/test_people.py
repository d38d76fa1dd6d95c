"""The built console in a real Chromium: a person's own keys, the people of the account, and menus by role."""

import asyncio
import re

import pytest
from chromium import OpenTab
from console_stage import ADMIN_KEY, Theatre
from people_steps import enroll
from playwright.sync_api import expect

from penstock.domain.people.roles import PersonRole
from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")


def enroll_in(theatre: Theatre, email: str, role: PersonRole) -> str:
    """A key of a person with this role."""
    stage = theatre.stage
    _, key = asyncio.run_coroutine_threadsafe(enroll(stage.server, email, role), stage.loop).result(300)
    return key


@pytest.fixture
def ada(theatre: Theatre) -> str:
    """A key of an owner."""
    return enroll_in(theatre, "ada@example.org", PersonRole.OWNER)


def test_an_owner_adds_a_person_who_sees_less(open_tab: OpenTab, theatre: Theatre, ada: str):
    with open_tab(account=ada) as tab:
        tab.open("/people")
        tab.button("Add or change a person").click()
        dialog = tab.dialog()
        dialog.get_by_label("E-mail").fill("bob@example.org")
        dialog.get_by_role("button", name="Save").click()
        table = tab.page.get_by_role("table", name="People")
        expect(table.get_by_text("bob@example.org")).to_be_visible()
        assert tab.look() == []
        table.get_by_role("row", name=re.compile("bob@")).get_by_role("button", name="Remove").click()
        tab.dialog().get_by_role("button", name="Remove the person").click()
        expect(table.get_by_text("bob@example.org")).to_have_count(0)
    viewer = enroll_in(theatre, "eve@example.org", PersonRole.VIEWER)
    with open_tab(account=viewer) as tab:
        tab.open("/jobs")
        menu = tab.page.get_by_role("navigation", name="Pages")
        expect(menu.get_by_role("link", name="Playground")).to_have_count(0)
        expect(menu.get_by_role("link", name="Jobs")).to_be_visible()
        for hidden in ("People", "My keys", "Content log"):
            expect(menu.get_by_role("link", name=hidden)).to_have_count(0)


def test_an_operator_adds_a_person_gives_a_role_and_ends_it_all(open_tab: OpenTab):
    with open_tab(admin=ADMIN_KEY) as tab:
        tab.open("/admin/people")
        tab.button("Add a person").first.click()
        dialog = tab.dialog()
        dialog.get_by_label("E-mail").fill("zoe@example.org")
        dialog.get_by_label("Name").fill("Zoe")
        dialog.get_by_role("button", name="Add", exact=True).click()
        expect(tab.page.get_by_role("heading", name="Zoe")).to_be_visible()
        tab.button("Give a role").click()
        tab.dialog().get_by_label("Account").click()
        tab.page.get_by_role("option").first.click()
        tab.dialog().get_by_role("button", name="Save").click()
        roles = tab.page.get_by_role("table", name="Roles")
        expect(roles.get_by_text("member")).to_be_visible()
        assert tab.look() == []
        tab.button("Make operator").click()
        tab.dialog().get_by_role("button", name="Make operator").click()
        expect(tab.button("Take away operator")).to_be_visible()
        tab.button("Deactivate").click()
        tab.dialog().get_by_role("button", name="Deactivate the person").click()
        expect(tab.button("Activate")).to_be_visible()
        expect(roles).to_have_count(0)
        tab.open("/admin/people")
        row = tab.page.get_by_role("row", name=re.compile("zoe@"))
        expect(row).to_be_visible()
        expect(row.get_by_text("operator")).to_have_count(0)
        assert tab.look() == []


def test_a_person_makes_a_key_and_revokes_it(open_tab: OpenTab, ada: str):
    with open_tab(account=ada) as tab:
        tab.open("/my-keys")
        tab.button("New key").click()
        tab.dialog().get_by_label("Name").fill("notebook")
        tab.dialog().get_by_role("button", name="Create").click()
        expect(tab.dialog().get_by_text(re.compile("psk_"))).to_be_visible()
        tab.dialog().get_by_role("button", name="I have saved it").click()
        row = tab.page.get_by_role("row", name=re.compile("notebook"))
        expect(row.get_by_text("active")).to_be_visible()
        assert tab.look() == []
        row.get_by_role("button", name="Revoke").click()
        tab.dialog().get_by_role("button", name="Revoke the key").click()
        expect(row.get_by_text("revoked")).to_be_visible()


def test_a_service_key_has_no_pages_of_people(open_tab: OpenTab, theatre: Theatre):
    with open_tab(account=theatre.account) as tab:
        tab.open("/jobs")
        menu = tab.page.get_by_role("navigation", name="Pages")
        expect(menu.get_by_role("link", name="Playground")).to_be_visible()
        expect(menu.get_by_role("link", name="My keys")).to_have_count(0)
