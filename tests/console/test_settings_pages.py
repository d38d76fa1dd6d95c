"""The pages of run-time settings in a real Chromium: edited, refused, in conflict, restored, exported, priced."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from chromium import OpenTab, Tab
from console_stage import ADMIN_KEY, Theatre
from playwright.sync_api import Locator, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

NUMBERS = itertools.count(1)


def change(theatre: Theatre, **parts: Any) -> int:
    """Change the settings as another administrator would; return the new version."""
    base = theatre.call("GET", "/admin/v1/settings")["version"]
    return theatre.call("PATCH", "/admin/v1/settings", {"base_version": base, **parts})["version"]


@pytest.fixture
def vendor(theatre: Theatre) -> str:
    """A vendor that was added at run time, with a model."""
    name = f"near-{next(NUMBERS)}"
    table = {"type": "openai_compatible", "base_url": theatre.double.url, "api_key": theatre.double.key}
    change(theatre, vendors={name: table}, models={f"{name}-echo": {"kind": "chat", "vendor": name, "model": "echo"}})
    return name


@pytest.fixture
def admin(open_tab: OpenTab) -> Iterator[Tab]:
    with open_tab(400, 409, admin=ADMIN_KEY) as found:
        yield found


def differences(tab: Tab) -> Locator:
    return tab.dialog().get_by_role("list", name="Differences")


def test_an_edit_is_looked_at_first_and_keeps_the_secret(admin: Tab, theatre: Theatre, vendor: str):
    admin.open(f"/admin/vendors/{vendor}")
    admin.button("Edit").click()
    dialog = admin.dialog()
    expect(dialog.get_by_label("API key", exact=True)).to_have_attribute("placeholder", "kept")
    dialog.get_by_text("More options").click()
    dialog.get_by_label("Max concurrent").fill("7")
    assert admin.look() == []
    dialog.get_by_role("button", name="Test connection").click()
    expect(dialog.get_by_role("status")).to_contain_text("accepts the key")
    dialog.get_by_role("button", name="Show differences").click()
    expect(differences(admin)).to_contain_text(f"vendors.{vendor}.max_concurrent")
    expect(differences(admin).get_by_role("listitem")).to_have_count(1)
    assert admin.look() == []
    admin.dialog().get_by_label("Note").fill("Fewer at once")
    admin.button("Apply").click()
    expect(admin.dialog()).to_have_count(0)
    expect(admin.page.get_by_text("up to 7 requests")).to_be_visible()
    assert theatre.double.key not in admin.page.content()


def test_what_the_server_refuses_is_said_at_its_field_and_nothing_is_stored(admin: Tab, theatre: Theatre, vendor: str):
    version = theatre.call("GET", "/admin/v1/settings")["version"]
    admin.open("/admin/vendors/new/openai_compatible")
    page = admin.page
    page.get_by_label("Base URL").fill("http://169.254.169.254/v1")
    admin.button("Test connection").click()
    expect(page.get_by_role("alert")).to_contain_text("metadata services never are")
    admin.button("Add vendor").click()
    expect(page.get_by_role("alert").last).to_contain_text("base_url")
    page.get_by_label("Name", exact=True).fill(vendor)
    expect(page.get_by_text("A vendor of this name is there already.")).to_be_visible()
    assert admin.look() == []
    admin.open(f"/admin/vendors/{vendor}")
    admin.button("Edit").click()
    admin.dialog().get_by_label("Base URL").fill("https://elsewhere.example.com/v1")
    admin.dialog().get_by_role("button", name="Show differences").click()
    expect(admin.dialog().get_by_role("alert")).to_contain_text("enter the secret again")
    expect(admin.button("Apply")).to_be_disabled()
    assert theatre.call("GET", "/admin/v1/settings")["version"] == version


def test_a_conflict_is_compared_again_and_nothing_typed_is_lost(admin: Tab, theatre: Theatre, vendor: str):
    admin.open(f"/admin/vendors/{vendor}")
    admin.button("Disable").click()
    expect(differences(admin)).to_contain_text("enabled")
    admin.dialog().get_by_label("Note").fill("Maintenance")
    other = change(theatre, vendors={f"{vendor}-b": {"type": "sim"}}, note="Another was faster")
    admin.button("Disable").last.click()
    expect(admin.dialog().get_by_role("status")).to_contain_text(f"Version {other} by admin came first")
    expect(admin.dialog().get_by_label("Note")).to_have_value("Maintenance")
    expect(differences(admin).get_by_role("listitem")).to_have_count(1)
    assert admin.look() == []
    admin.button("Disable").last.click()
    expect(admin.page.get_by_text("disabled", exact=True)).to_be_visible()
    found = theatre.call("GET", "/admin/v1/settings")
    states = {each["name"]: each["enabled"] for each in found["vendors"]}
    assert (states[vendor], states[f"{vendor}-b"]) == (False, True)


def test_a_version_is_restored_after_a_look_at_the_difference(admin: Tab, theatre: Theatre, vendor: str):
    first = theatre.call("GET", "/admin/v1/settings")["version"]
    change(theatre, models={f"{vendor}-echo": None}, note="Gone for a moment")
    admin.open("/admin/settings")
    expect(admin.page.get_by_role("table", name="Versions")).to_contain_text("Gone for a moment")
    expect(admin.page.get_by_role("table", name="Servers and workers")).to_be_visible()
    admin.page.get_by_role("link", name=f"Version {first}", exact=True).click()
    admin.button("Restore this version").click()
    expect(differences(admin)).to_contain_text(f"models.{vendor}-echo.vendor")
    assert admin.look() == []
    admin.button("Restore").click()
    expect(admin.page.get_by_role("table", name="Versions")).to_contain_text(f"version {first} again")
    found = {each["name"] for each in theatre.call("GET", "/admin/v1/settings")["models"]}
    assert f"{vendor}-echo" in found


def test_a_vendor_is_removed_with_its_models_and_those_of_the_file_stay(admin: Tab, theatre: Theatre, vendor: str):
    admin.open("/admin/vendors/double")
    expect(admin.page.get_by_text("Set in the settings file")).to_be_visible()
    expect(admin.button("Remove")).to_have_count(0)
    admin.turn_to(f"/admin/vendors/{vendor}")
    admin.button("Remove").click()
    expect(differences(admin)).to_contain_text(f"models.{vendor}-echo.kind")
    admin.button("Remove").last.click()
    expect(admin.page.get_by_role("heading", name="Vendors", level=1)).to_be_visible()
    found = theatre.call("GET", "/admin/v1/settings")
    assert vendor not in {each["name"] for each in found["vendors"]}


def test_a_model_gets_a_second_route_and_a_price(admin: Tab, theatre: Theatre, vendor: str):
    admin.open("/admin/routes")
    admin.button(f"Edit {vendor}-echo").click()
    dialog = admin.dialog()
    dialog.get_by_role("button", name="Add a route").click()
    dialog.get_by_role("combobox", name="Vendor").last.click()
    admin.page.get_by_role("option", name="double", exact=True).click()
    dialog.get_by_label("In per million tokens").fill("1.50")
    dialog.get_by_label("Out per million tokens").fill("3")
    assert admin.look() == []
    dialog.get_by_role("button", name="Show differences").click()
    expect(differences(admin)).to_contain_text("price")
    admin.button("Apply").click()
    expect(admin.page.get_by_role("row", name=f"{vendor}-echo")).to_contain_text("order 2, weight 1")
    admin.turn_to("/admin/prices")
    expect(admin.page.get_by_role("row", name=f"{vendor}-echo").first).to_contain_text("$1.50 in per million tokens")


def test_a_limit_is_changed_and_brought_back(admin: Tab, theatre: Theatre):
    admin.open("/admin/settings")
    row = admin.page.get_by_role("row", name=re.compile(r"^jobs\.max_waiting\b"))
    admin.button("Edit jobs.max_waiting").click()
    admin.dialog().get_by_label("Value").fill("77")
    assert admin.look() == []
    admin.dialog().get_by_role("button", name="Show differences").click()
    expect(differences(admin)).to_contain_text("limits.jobs.max_waiting")
    admin.button("Apply").click()
    expect(row).to_contain_text("77")
    admin.button("Edit jobs.max_waiting").click()
    admin.button("Back to the default").click()
    admin.button("Apply").click()
    expect(row).to_contain_text("10,000")


def test_an_export_comes_back_as_an_import(admin: Tab, theatre: Theatre, vendor: str):
    admin.open("/admin/settings")
    with admin.page.expect_download() as downloading:
        admin.button("Export").click()
    exported = json.loads(downloading.value.path().read_text())
    assert exported["vendors"][vendor]["api_key"] == {"$secret": "kept"}
    change(theatre, vendors={vendor: None}, models={f"{vendor}-echo": None})
    admin.page.reload()
    exported["vendors"][vendor]["api_key"] = theatre.double.key
    file = {"name": "settings.json", "mimeType": "application/json", "buffer": json.dumps(exported).encode()}
    with admin.page.expect_file_chooser() as choosing:
        admin.button("Import a file").click()
    choosing.value.set_files(file)  # type: ignore[arg-type]  # a payload in memory
    expect(differences(admin)).to_contain_text(f"vendors.{vendor}.base_url")
    expect(differences(admin)).not_to_contain_text(theatre.double.key)
    admin.button("Import").click()
    expect(admin.dialog()).to_have_count(0)
    assert vendor in {each["name"] for each in theatre.call("GET", "/admin/v1/settings")["vendors"]}


def test_prices_come_from_a_pasted_list_after_a_look(admin: Tab, theatre: Theatre, vendor: str):
    price = {"provider": "acme", "model": "echo", "price": {"input_per_million": "2", "output_per_million": "4"}}
    admin.open("/admin/prices")
    expect(admin.page.get_by_role("alert").filter(has_text="no price")).to_contain_text(f"{vendor}-echo")
    admin.button("Update prices").click()
    dialog = admin.dialog()
    dialog.get_by_text("File or text").click()
    dialog.get_by_label("Text of a list").fill(json.dumps({"prices": [price]}))
    dialog.get_by_role("button", name="Compare").click()
    dialog.get_by_text("vendors are not known to lists").click()
    dialog.get_by_label(vendor, exact=True).fill("acme")
    dialog.get_by_role("button", name="Compare").click()
    expect(dialog.get_by_role("region", name="Differences of prices")).to_contain_text("$4.00 out per million tokens")
    assert admin.look() == []
    dialog.get_by_role("button", name="Write 1 price").click()
    stored = admin.page.get_by_role("table", name="Prices of the store")
    expect(stored).to_contain_text(f"{vendor}-echo")
    stored.get_by_role("row", name=f"{vendor}-echo").get_by_role("button", name="Remove").click()
    admin.dialog().get_by_role("button", name="Remove").click()
    expect(admin.page.get_by_role("alert").filter(has_text="no price")).to_contain_text(f"{vendor}-echo")
