"""The content log in the console: a conversation as plain text with marks, which its owner can delete."""

import asyncio
import re
import time

import pytest
from chromium import OpenTab
from console_stage import CHAT, Theatre
from people_steps import enroll
from playwright.sync_api import expect

from penstock.domain.people.roles import PersonRole
from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")
PROMPT = "Write to jane.doe@example.org <b>now</b> <img src=x onerror=alert(1)>"


def log_one(theatre: Theatre) -> str:
    """Log a chat request; returns the key of an owner of its account."""
    stage = theatre.stage
    _, owner = asyncio.run_coroutine_threadsafe(
        enroll(stage.server, "olga@example.org", PersonRole.OWNER, "library"), stage.loop
    ).result(300)
    key = theatre.call("POST", "/admin/v1/keys", {"account": "library", "content_log": True})["key"]
    body = {"model": CHAT, "messages": [{"role": "user", "content": PROMPT}]}
    theatre.call("POST", "/llm/chat/completions", body, key)
    deadline = time.monotonic() + 60
    while not theatre.call("GET", "/api/v1/content", key=owner)["data"]:
        assert time.monotonic() < deadline, "the request was not logged"
        time.sleep(0.05)
    return owner


def test_an_owner_reads_and_deletes_a_conversation(open_tab: OpenTab, theatre: Theatre):
    with open_tab(account=log_one(theatre)) as tab:
        tab.open("/content")
        tab.page.get_by_role("table", name="Content log").get_by_role("link").first.click()
        message = tab.page.get_by_role("region", name="user", exact=True)
        expect(message.locator("mark")).to_have_text("redacted: email")
        expect(message).to_contain_text("<b>now</b> <img src=x onerror=alert(1)>")
        expect(message.locator("b, img")).to_have_count(0)
        assert tab.look() == []
        tab.button("Delete").click()
        tab.dialog().get_by_role("button", name="Delete it").click()
        expect(tab.page.get_by_text(re.compile("No logged requests"))).to_be_visible()
