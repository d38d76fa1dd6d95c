"""The built console in a real Chromium: models that its viewer draws, all in one tab.

Without a graphics card, the first model that a page shows costs more than ten seconds of work, the next less than one.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import OpenTab, Tab
from console_stage import MODEL, Theatre, make_gem, picture
from playwright.sync_api import Page, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

SMALL_WINDOW = {"width": 720, "height": 480}
"""For 3D, of which a machine without a graphics card works out every pixel."""
TWO_MODELS_WINDOW = {"width": 900, "height": 700}
SHOWN = '[data-standing="shown"]'


@pytest.fixture(scope="module")
def first_model(theatre: Theatre) -> str:
    return make_gem(theatre, "first.png")


@pytest.fixture(scope="module")
def kept_tab(open_tab: OpenTab, theatre: Theatre, first_model: str) -> Iterator[Tab]:
    with open_tab(account=theatre.account) as found:
        found.draw_in_3d()
        found.page.set_viewport_size(SMALL_WINDOW)
        found.open(f"/jobs/{first_model}")
        expect(found.page.locator(SHOWN)).to_be_visible()
        yield found


@pytest.fixture
def viewing(kept_tab: Tab) -> Iterator[Tab]:
    """A tab that goes from model to model without loading the console again."""
    kept_tab.turn_to("/jobs")
    kept_tab.settled()
    expect(kept_tab.page.locator("model-viewer")).to_have_count(0)
    kept_tab.page.set_viewport_size(SMALL_WINDOW)
    kept_tab.trouble.clear()
    yield kept_tab
    kept_tab.page.unroute_all()
    assert kept_tab.trouble == []


def test_the_page_of_a_3d_job_opens_its_viewer_at_once(viewing: Tab, first_model: str):
    viewing.turn_to(f"/jobs/{first_model}")
    expect(viewing.page.locator("model-viewer")).to_have_js_property("loaded", value=True)


def test_a_picture_becomes_a_model_that_can_be_turned(viewing: Tab):
    page = viewing.page
    viewing.turn_to(f"/playground/{MODEL}")
    page.get_by_label("Picture file").set_input_files(picture())
    expect(page.get_by_label("Price")).to_be_visible()
    viewing.button("Generate").click()
    viewer = page.get_by_label("Results").locator("model-viewer")
    expect(viewer).to_have_js_property("loaded", value=True)
    expect(page.locator(SHOWN)).to_be_visible()
    page.get_by_role("switch", name="Wireframe").check()
    before = viewer.evaluate("viewer => viewer.getCameraOrbit().theta")
    viewer.locator(".userInput").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('model-viewer').getCameraOrbit().theta !== before", arg=before
    )
    assert viewing.look() == []


@pytest.mark.parametrize("packing", ["draco", "meshopt", "ktx2"])
def test_a_compressed_model_is_unpacked_by_decoders_of_this_server(viewing: Tab, theatre: Theatre, packing: str):
    model = (Path(__file__).parent / f"packed_{packing}.glb").read_bytes()
    job = make_gem(theatre, f"{packing}.png")
    page = viewing.page
    page.route("**/api/v1/assets/**.glb**", lambda route: route.fulfill(body=model, content_type="model/gltf-binary"))
    with page.expect_worker(lambda worker: packing.replace("ktx2", "basis") in worker.url):
        viewing.turn_to(f"/jobs/{job}")
    expect(page.locator(SHOWN)).to_be_visible()


CAMERAS = """() => [...document.querySelectorAll('model-viewer')].map(viewer => {
    const {theta, phi, radius} = viewer.getCameraOrbit();
    return [theta, phi, radius, viewer.getFieldOfView()]; })"""


def until_cameras(page: Page, began: list[list[float]], *, moved: bool) -> list[float]:
    """Wait until both cameras stand alike, elsewhere than at the beginning or there again; returns angles and zooms.

    The models differ in size: their cameras are alike if they came equally closer.
    """
    while True:
        first, second = (
            [theta, phi, radius / start[2], field / start[3]]
            for (theta, phi, radius, field), start in zip(page.evaluate(CAMERAS), began, strict=True)
        )
        is_at_start = first == pytest.approx([*began[0][:2], 1, 1], abs=0.001)
        if first == pytest.approx(second, abs=0.001) and is_at_start is not moved:
            return first
        page.wait_for_timeout(50)


def test_models_turn_and_zoom_together(viewing: Tab, theatre: Theatre):
    page = viewing.page
    page.set_viewport_size(TWO_MODELS_WINDOW)
    viewing.turn_to(f"/compare?jobs={make_gem(theatre, 'red.png')},{make_gem(theatre, 'blue.png')}")
    expect(page.locator(SHOWN)).to_have_count(2)
    viewers = page.locator("article.compare-card model-viewer")
    began = page.evaluate(CAMERAS)
    viewers.nth(0).locator(".userInput").focus()
    page.keyboard.press("ArrowRight")
    turned = until_cameras(page, began, moved=True)
    assert turned[0] != pytest.approx(began[0][0], abs=0.001)
    viewing.button("Reset view").click()
    until_cameras(page, began, moved=False)
    viewers.nth(1).evaluate("viewer => viewer.zoom(3)")
    zoomed = until_cameras(page, began, moved=True)
    assert zoomed[3] < 1
