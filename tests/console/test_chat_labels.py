"""The built console in a real Chromium: the chat page says what kind of model answers."""

import pytest
from chromium import Tab
from console_stage import CHAT, SLOW_CHAT
from playwright.sync_api import Route, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

TITLE = "Echo, small demonstration model"
DESCRIPTION = "Small demonstration model: run `penstock models pull` for more."


def describe_one(route: Route) -> None:
    """Let the server describe one of its chat models, as it does the built-in ones."""
    answer = route.fetch()
    listed = answer.json()
    for model in listed["data"]:
        if model["id"] == CHAT:
            model.update(title=TITLE, description=DESCRIPTION)
    route.fulfill(response=answer, json=listed)


def test_a_described_model_is_labelled_in_the_picker_and_above_its_answers(signed_in: Tab):
    page = signed_in.page
    page.route("**/api/v1/models", describe_one)
    signed_in.open(f"/playground/{CHAT}")
    conversation = page.get_by_role("region", name="Conversation")
    expect(conversation.get_by_text("Small demonstration model: run penstock models pull for more.")).to_be_visible()
    expect(conversation.locator("code")).to_have_text("penstock models pull")
    page.get_by_role("button", name="What is the capital of Japan?").click()
    expect(page.locator(".bubble[data-role=assistant]")).to_be_visible()
    expect(conversation.get_by_text("Small demonstration model")).to_be_visible()
    page.get_by_role("combobox", name="Model").click()
    expect(page.get_by_role("option", name=TITLE)).to_be_visible()


def test_a_model_without_a_description_has_no_label(signed_in: Tab):
    signed_in.open(f"/playground/{SLOW_CHAT}")
    expect(signed_in.page.get_by_role("textbox", name="Message")).to_be_visible()
    expect(signed_in.page.locator(".talk-about")).to_have_count(0)
