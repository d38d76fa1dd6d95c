"""The built console in a real Chromium: share an output, open it without a key, revoke it; and look at the gallery."""

import os
import re
from pathlib import Path

import pytest
from chromium import OpenTab, Tab
from console_stage import FILM, GEM, Theatre, make_gem
from playwright.sync_api import Locator, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

PLAYS = "film => film.readyState >= 2 && film.videoWidth > 0"


def keep_screenshot(tab: Tab, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        tab.page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def make_film(theatre: Theatre, prompt: str, **script: object) -> str:
    return theatre.finish(theatre.order(prompt, **script))["id"]


def share(theatre: Theatre, job: str, **body: object) -> str:
    """A link to a job's outputs."""
    return theatre.call("POST", f"/api/v1/jobs/{job}/shares", body)["url"]


def share_here(tab: Tab, life: str = "7 days") -> str:
    """Create a link in the dialog that is open; returns its address."""
    dialog = tab.dialog()
    dialog.get_by_text(life, exact=True).click()
    dialog.get_by_role("button", name=re.compile("^Create")).click()
    expect(dialog.get_by_role("textbox", name="Link")).to_be_visible()
    return dialog.get_by_role("textbox", name="Link").input_value()


def watch(tab: Tab, url: str) -> Locator:
    """The film of a share page once it can play."""
    tab.page.goto(url)
    film = tab.page.locator("video")
    expect(film).to_be_visible()
    tab.page.wait_for_function(f"() => ({PLAYS})(document.querySelector('video'))")
    return film


# -- sharing


def test_a_film_is_shared_seen_without_a_key_and_revoked(signed_in: Tab, open_tab: OpenTab, theatre: Theatre):
    page = signed_in.page
    job = make_film(theatre, "A paper boat in the rain")
    signed_in.open(f"/jobs/{job}")
    signed_in.button("Share").click()
    url = share_here(signed_in, "1 day")
    assert re.fullmatch(rf"{theatre.url}/share/[0-9a-z]{{33}}", url)
    expect(signed_in.dialog()).to_contain_text("shown only once")
    expect(signed_in.dialog().get_by_role("list")).to_contain_text(re.compile("Expires (in 24 hr|tomorrow)"))
    with open_tab() as fresh:
        watch(fresh, url)
        expect(fresh.page.locator("main")).not_to_contain_text("paper boat")
        expect(fresh.page.get_by_text("This link works until")).to_be_visible()
        with fresh.page.expect_download() as download:
            fresh.page.get_by_role("link", name="Download").click()
        assert download.value.suggested_filename == "video.mp4"
        assert Path(download.value.path()).read_bytes()[4:8] == b"ftyp"
        assert fresh.page.evaluate("sessionStorage.length + localStorage.length") == 0
    signed_in.dialog().get_by_role("button", name="Revoke", exact=True).click()
    signed_in.button("Revoke the link").click()
    expect(page.get_by_text("The link was revoked.")).to_be_visible()
    expect(signed_in.dialog().get_by_role("heading", name="Links to this job")).to_have_count(0)
    with open_tab(404) as fresh:
        answer = fresh.page.goto(url)
        assert answer is not None
        assert answer.status == 404
        expect(fresh.page.get_by_role("heading", name="This link does not work")).to_be_visible()
        assert fresh.look() == []
        keep_screenshot(fresh, "share-ended")


def test_the_prompt_is_shown_if_it_is_ticked(signed_in: Tab, open_tab: OpenTab, theatre: Theatre):
    job = make_film(theatre, "A night train to the sea")
    signed_in.open(f"/jobs/{job}")
    signed_in.button("Share").click()
    box = signed_in.page.get_by_role("checkbox", name="Also show the prompt")
    expect(box).not_to_be_checked()
    box.check()
    url = share_here(signed_in)
    with open_tab() as fresh:
        watch(fresh, url)
        expect(fresh.page.get_by_text("A night train to the sea")).to_be_visible()


def test_a_result_is_shared_from_its_card_in_the_playground(signed_in: Tab, open_tab: OpenTab):
    page = signed_in.page
    signed_in.open(f"/playground/{FILM}")
    page.get_by_role("textbox", name="Prompt", exact=True).fill("A heron")
    signed_in.button("Generate").click()
    card = page.get_by_label("Results").locator("[aria-label^='Job '][data-status='succeeded']").first
    card.get_by_role("button", name="Share").click()
    url = share_here(signed_in, "1 hour")
    with open_tab() as fresh:
        watch(fresh, url)


def test_a_job_that_failed_cannot_be_shared(signed_in: Tab, theatre: Theatre):
    job = make_film(theatre, "A boat that sinks", ending="filtered")
    signed_in.open(f"/jobs/{job}")
    signed_in.settled()
    expect(signed_in.button("Delete")).to_be_visible()
    expect(signed_in.button("Share")).to_have_count(0)


def test_a_model_can_be_turned_on_its_share_page(open_tab: OpenTab, theatre: Theatre):
    url = share(theatre, make_gem(theatre, "blue vase.png"), include_input=True)
    with open_tab() as fresh:
        fresh.draw_in_3d()
        page = fresh.page
        page.goto(url)
        expect(page.locator(".model[data-shown] model-viewer")).to_be_visible()
        page.wait_for_function("() => document.querySelector('.input').naturalWidth > 0")
        expect(page.get_by_text("blue vase")).to_have_count(0)
        assert fresh.look() == []
        keep_screenshot(fresh, "share-model")


def test_all_links_are_listed_and_one_is_revoked(open_tab: OpenTab, theatre: Theatre):
    key = theatre.stage.key(account="sharer")
    with open_tab(account=key) as found:
        page = found.page
        found.open("/shares")
        expect(page.get_by_role("heading", name="No shared links")).to_be_visible()
        for prompt in ("A first boat", "A second boat"):
            params = {"prompt": prompt, "script": {"latency": 0}}
            body = {"model": FILM, "input": [{"params": params}]}
            job = theatre.call("POST", "/model/v1/generation", body, key)["id"]
            while not theatre.call("GET", f"/api/v1/jobs/{job}?wait=30", key=key)["done"]:
                pass
            theatre.call("POST", f"/api/v1/jobs/{job}/shares", {}, key)
        page.reload()
        expect(page.locator(".job-name")).to_have_text(["A second boat", "A first boat"])
        keep_screenshot(found, "shares")
        assert found.look() == []
        page.get_by_role("row").filter(has_text="A first boat").get_by_role("button", name="Revoke").click()
        found.button("Revoke the link").click()
        expect(page.locator(".job-name")).to_have_text(["A second boat"])
    assert len(theatre.call("GET", "/api/v1/shares", key=key)["data"]) == 1


# -- the gallery


def test_an_empty_gallery_leads_to_the_playground(open_tab: OpenTab, theatre: Theatre):
    with open_tab(account=theatre.stage.key(account="beginner")) as found:
        found.open("/gallery")
        expect(found.page.get_by_role("heading", name="No outputs yet")).to_be_visible()
        assert found.look() == []
        found.page.get_by_role("link", name="Open the playground").click()
        expect(found.page).to_have_url(re.compile("/playground"))


def test_the_gallery_is_filtered_searched_and_opens_a_job(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    film = make_film(theatre, "A lighthouse in a storm")
    make_gem(theatre, "green pear.png")
    signed_in.open("/gallery")
    names = page.locator(".gallery-name")
    expect(names.filter(has_text="A lighthouse in a storm")).to_be_visible()
    expect(names.filter(has_text="green pear.png")).to_be_visible()
    page.get_by_text("3D", exact=True).first.click()
    expect(page).to_have_url(re.compile("kind=model"))
    expect(names.filter(has_text="A lighthouse in a storm")).to_have_count(0)
    expect(names.filter(has_text="green pear.png")).to_be_visible()
    page.get_by_text("All", exact=True).click()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name=GEM).click()
    expect(page).to_have_url(re.compile(f"model={GEM}"))
    expect(names.filter(has_text="A lighthouse in a storm")).to_have_count(0)
    signed_in.open("/gallery")
    expect(names.filter(has_text="A lighthouse in a storm")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("lighthouse")
    expect(names).to_have_text(["A lighthouse in a storm"])
    page.get_by_role("textbox", name="Search").fill("zeppelin")
    expect(page.get_by_role("heading", name="No matching outputs")).to_be_visible()
    signed_in.button("Clear filters").click()
    link = page.get_by_role("link", name=re.compile("A lighthouse in a storm"))
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/jobs/{film}$"))


def test_a_film_of_the_gallery_plays_while_it_is_pointed_at_or_focused(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    page.emulate_media(reduced_motion="no-preference")
    make_film(theatre, "A windmill")
    signed_in.open("/gallery?q=windmill")
    item = page.get_by_role("link", name=re.compile("A windmill"))
    film = "document.querySelector('.gallery-media video')"
    expect(item).to_be_visible()
    page.wait_for_function(f"() => ({PLAYS})({film})")
    assert page.evaluate(f"{film}.paused")
    item.hover()
    page.wait_for_function(f"() => !{film}.paused && {film}.currentTime > 0")
    page.mouse.move(0, 0)
    page.wait_for_function(f"() => {film}.paused && {film}.currentTime === 0")
    item.focus()
    page.wait_for_function(f"() => !{film}.paused")
    page.get_by_role("textbox", name="Search").focus()
    page.wait_for_function(f"() => {film}.paused")


def test_the_gallery_loads_older_outputs_as_one_scrolls(open_tab: OpenTab, theatre: Theatre):
    key = theatre.stage.key(account="prolific")
    inputs = [{"params": {"prompt": f"Boat {number}", "script": {"latency": 0}}} for number in range(15)]
    for _ in range(2):
        jobs = theatre.call("POST", "/model/v1/generation", {"model": FILM, "input": inputs}, key)["jobs"]
        for job in jobs:
            while not theatre.call("GET", f"/api/v1/jobs/{job['id']}?wait=30", key=key)["done"]:
                pass
    with open_tab(account=key) as found:
        page = found.page
        page.set_viewport_size({"width": 390, "height": 500})
        found.open("/gallery")
        items = page.locator(".gallery-item")
        expect(items).to_have_count(24)
        items.last.scroll_into_view_if_needed()
        expect(items).to_have_count(30)
        expect(page.get_by_role("button", name="Load more")).to_have_count(0)


# -- every size and colour


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_new_fits_and_is_accessible(open_tab: OpenTab, theatre: Theatre, width: int, scheme: str):
    film = make_film(theatre, "A paper boat drifts down a rainy street")
    make_gem(theatre, "a picture with quite a long name of its own.png")
    share(theatre, film)
    url = share(theatre, film, include_input=True)
    with open_tab(account=theatre.account) as found:
        page = found.page
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        for name, path in {"gallery": "/gallery", "shares": "/shares", "share": f"/jobs/{film}"}.items():
            found.open(path)
            found.settled()
            if name == "share":
                found.button("Share").click()
                share_here(found)
            check(found, f"{name}-{width}-{scheme}")
        watch(found, url)
        check(found, f"page-{width}-{scheme}")


def check(found: Tab, name: str) -> None:
    assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert found.look() == [], name
    keep_screenshot(found, name)
