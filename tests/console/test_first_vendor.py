"""A newcomer in a real Chromium: from the first start to a film and an answer, with nothing but the console."""

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from calm_loop import CalmLoop
from chromium import Tab, Tabs
from doubles.luma import PREFIX, LumaDouble
from doubles.media import listening
from openai_double import OpenAIDouble
from plain import NO_TLS
from playwright.sync_api import Browser, Page, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

FILM = "vendorb_video_31"


@dataclass
class Vendors:
    """Two vendors on this machine."""

    luma: LumaDouble
    chat: OpenAIDouble


@pytest.fixture(scope="module")
def vendors() -> Generator[Vendors]:
    loop, stack = CalmLoop(), AsyncExitStack()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> Vendors:
        return Vendors(
            await stack.enter_async_context(listening(LumaDouble())),  # type: ignore[arg-type]  # the double that came
            await stack.enter_async_context(OpenAIDouble()),
        )

    yield asyncio.run_coroutine_threadsafe(begin(), loop).result(300)
    asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(300)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@dataclass
class FirstStart:
    """A server that was started for the first time, without a settings file."""

    url: str
    data: Path
    admin_key: str


@pytest.fixture(scope="module")
def first_start(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Generator[FirstStart]:
    folder = tmp_path_factory.mktemp("first")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    command = [sys.executable, "-m", "penstock", "serve", "--port", "0", "--data", str(folder)]
    output = folder / "output"
    with output.open("wb") as file:
        server = subprocess.Popen(  # noqa: S603  our own command
            command, stdout=file, stderr=file, env=environ | {"PENSTOCK_WEIGHTS": str(weights)}, cwd=folder
        )
    try:
        yield FirstStart(*_read_first_lines(folder, output, server))
    finally:
        server.terminate()
        server.wait(60)


def _read_first_lines(folder: Path, output: Path, server: "subprocess.Popen[bytes]") -> tuple[str, Path, str]:
    deadline = time.monotonic() + 120
    place = folder / "first-admin-key"
    while not (found := re.search(r"http://127\.0\.0\.1:[0-9]+", output.read_text())) or not place.is_file():
        assert server.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.05)
    while not (key := place.read_text().strip()):
        time.sleep(0.05)
    return found[0], folder, key


def add_vendor(tab: Tab, card: str, key: str, base_url: str, outcome: str) -> None:
    """Choose a type by its card, enter key and address, test them and add the vendor."""
    page = tab.page
    page.get_by_role("link", name=re.compile(f"^{card}")).click()
    page.get_by_label("API key", exact=True).fill(key)
    page.get_by_label("Base URL").fill(base_url)
    assert tab.look() == []
    tab.button("Test connection").click()
    expect(page.get_by_role("status").filter(has_text=outcome)).to_be_visible()
    tab.button("Add vendor").click()
    page.wait_for_url(re.compile(r"/admin/vendors/(?!new)[a-z_]+$"))
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def read_secret(page: Page) -> str:
    return page.get_by_role("region", name="The secret").inner_text().strip()


def test_from_the_first_start_to_a_film_and_an_answer(browser: Browser, first_start: FirstStart, vendors: Vendors):
    with Tabs(browser, first_start.url).open() as tab:
        page = tab.page
        tab.open()
        page.get_by_label("Key", exact=True).fill(first_start.admin_key)
        tab.button("Sign in").click()
        page.get_by_role("link", name="Choose a vendor").click()
        expect(page.get_by_role("heading", name="Add your first vendor")).to_be_visible()
        assert tab.look() == []
        add_vendor(tab, "Luma Videos", vendors.luma.credential, f"{vendors.luma.url}{PREFIX}", "The vendor answers")
        expect(page.get_by_role("checkbox", name=FILM)).to_be_checked()
        assert tab.look() == []
        page.get_by_role("combobox", name="Model").click()
        page.get_by_role("option", name=FILM, exact=True).click()
        tab.button("Make a key and try it").click()
        secret = read_secret(page)
        tab.button("I have saved it").click()
        page.wait_for_url(f"**/console/playground/{FILM}")
        page.get_by_role("textbox", name="Prompt", exact=True).fill("A lighthouse in a storm")
        tab.button("Generate").click()
        expect(page.get_by_label("Film")).to_be_visible()
        assert vendors.luma.host.seen, "the result came from the vendor"
        page.get_by_role("link", name="Vendors", exact=True).click()
        page.get_by_role("link", name="Add a vendor").click()
        add_vendor(tab, "OpenAI Compatible: others", vendors.chat.key, vendors.chat.url, "accepts the key")
        page.get_by_role("combobox", name="Models by the vendor's name").fill("echo")
        page.keyboard.press("Enter")
        tab.button("Offer these models").click()
        expect(page.get_by_role("table", name="Routes of openai_compatible")).to_contain_text("echo")
        tab.button("Open the playground").click()
        page.wait_for_url("**/console/playground/echo")
        answer = tab.say("Good **evening**").locator('[data-role="assistant"]')
        expect(answer.locator("strong")).to_have_text("evening")
        page.get_by_role("link", name="Settings history").click()
        expect(page.get_by_role("table", name="Versions").get_by_role("row")).to_have_count(4)
        assert tab.look() == []
    assert not list(first_start.data.glob("*.toml"))
    with httpx.Client(trust_env=False, verify=NO_TLS, headers={"authorization": f"Bearer {secret}"}) as client:
        assert client.get(f"{first_start.url}/api/v1/jobs").json()["data"][0]["status"] == "succeeded"
