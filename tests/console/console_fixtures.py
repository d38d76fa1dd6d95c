"""A server and a Chromium for a file of tests, and tabs in it."""

import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import browser as browsers
import pytest
from chromium import AXE, OpenTab, Tab, Tabs
from console_stage import Theatre, playing
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> Generator[Theatre]:
    folder = tmp_path_factory.mktemp("console")
    shutil.copy(empty_store, folder)
    with playing(folder, weights) as theatre:
        yield theatre


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    found = browsers.find()
    if found is None:
        pytest.skip("No Chromium is here: `python tools/console/browser.py` fetches one, or CHROMIUM names it.")
    if not AXE.is_file():
        pytest.skip("axe-core is not here: run `make setup-dev`; it is installed in tests/javascript")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*browsers.FLAGS, "--process-per-site"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_tab(browser: Browser, theatre: Theatre) -> OpenTab:
    return Tabs(browser, theatre.url).open


@pytest.fixture
def signed_in(open_tab: OpenTab, theatre: Theatre) -> Iterator[Tab]:
    with open_tab(account=theatre.account) as found:
        yield found
