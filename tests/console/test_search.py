"""The built console in a real Chromium: search jobs, and open a job in the playground to edit and run it."""

import os
import re

import pytest
from chromium import OpenTab, Tab
from console_stage import FILM, GEM, Theatre, make_gem, picture
from playwright.sync_api import Route, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")


def test_the_slash_goes_to_the_search_which_finds_a_prompt(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    boat = theatre.order("A paper boat drifts down a rainy street")
    theatre.order("A night train")
    signed_in.open("/jobs")
    expect(page.locator(".job-name").first).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("textbox", name="Search")).to_be_focused()
    page.keyboard.type("rainy pap")
    expect(page.locator(".job-name")).to_have_text(["A paper boat drifts down a rainy street"])
    page.get_by_role("textbox", name="Search").fill(boat[:20])
    expect(page).to_have_url(re.compile(r"\?q=job_"))
    expect(page.locator(".job-name").filter(has_text="paper boat")).to_be_visible()
    page.reload()
    expect(page.get_by_role("textbox", name="Search")).to_have_value(boat[:20])


def test_a_search_without_a_match_says_so_and_speaks_of_no_deletion(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    theatre.order("A paper boat")
    signed_in.open("/jobs")
    page.get_by_role("textbox", name="Search").fill("zeppelin")
    expect(page.get_by_role("heading", name="No job matches “zeppelin”")).to_be_visible()
    expect(page.get_by_text("deleted")).to_have_count(0)
    signed_in.button("Clear the search").click()
    expect(page.locator(".job-name").first).to_be_visible()


def test_another_account_finds_nothing(open_tab: OpenTab, theatre: Theatre):
    theatre.order("A secret boat")
    with open_tab(account=theatre.stage.key(account="other")) as found:
        found.open("/jobs?q=secret")
        expect(found.page.get_by_role("heading", name="No job matches “secret”")).to_be_visible()


def test_the_picture_and_its_name_are_in_the_list_and_on_the_page(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    job = make_gem(theatre, "blue vase.png")
    signed_in.open("/jobs?q=vase")
    expect(page.locator(".job-name")).to_have_text(["blue vase.png"])
    thumb = page.get_by_role("img", name="Input blue vase.png")
    expect(thumb).to_be_visible()
    page.wait_for_function("() => document.querySelector('.input-thumb').naturalWidth > 0")
    signed_in.open(f"/jobs/{job}")
    expect(page.get_by_role("heading", name="blue vase.png")).to_be_visible()
    page.wait_for_function("() => document.querySelector('.input-picture img').naturalWidth > 0")
    expect(page.locator(".input-picture")).to_contain_text(re.compile("blue vase.png · 256 . 256"))


def test_a_job_opens_in_the_playground_with_its_params_and_runs_changed(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    job = theatre.finish(theatre.order("A paper boat"))["id"]
    signed_in.open(f"/jobs/{job}")
    signed_in.button("Edit and run").click()
    expect(page).to_have_url(re.compile(f"/playground/{FILM}$"))
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    expect(prompt).to_have_value("A paper boat")
    prompt.fill("A paper boat at night")
    signed_in.button("Generate").click()
    card = page.get_by_label("Results").locator("[aria-label^='Job ']").first
    expect(card).to_contain_text("A paper boat at night")
    expect(card).to_have_attribute("data-status", "succeeded")


def test_a_picture_comes_along_from_a_job_and_from_a_card(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    job = make_gem(theatre, "red cup.png")
    signed_in.open(f"/jobs/{job}")
    signed_in.button("Edit and run").click()
    expect(page.get_by_text(re.compile("red cup.png · 256 . 256"))).to_be_visible()
    signed_in.button("Generate").click()
    card = page.get_by_label("Results").locator("[aria-label^='Job '][data-status='succeeded']")
    expect(card).to_contain_text("red cup.png")
    signed_in.button("Clear").click()
    expect(page.get_by_text("Choose a picture", exact=True)).to_be_visible()
    card.get_by_role("button", name="Edit and run").click()
    expect(page.get_by_text(re.compile("red cup.png · 256 . 256"))).to_be_visible()
    again = theatre.call("GET", "/api/v1/jobs?q=red+cup")["data"]
    assert [each["input"]["file"]["name"] for each in again] == ["red cup.png"] * 2


def test_a_picture_that_is_gone_is_named_and_the_rest_is_kept(open_tab: OpenTab, theatre: Theatre):
    def lose(route: Route) -> None:
        route.fulfill(status=404, json={"error": {"code": "file_not_found", "message": "There is no such file."}})

    with open_tab(404, account=theatre.account) as found:
        page = found.page
        job = make_gem(theatre, "old tower.png")
        page.route("**/api/v1/files/*/content*", lose)
        found.open(f"/jobs/{job}")
        expect(page.get_by_text("The picture is no longer kept.")).to_be_visible()
        found.button("Edit and run").click()
        expect(page.get_by_role("alert")).to_contain_text("old tower.png is no longer kept")
        expect(page.get_by_text("Choose a picture", exact=True)).to_be_visible()
        page.unroute("**/api/v1/files/*/content*")
        page.get_by_label("Picture file").set_input_files(picture("new tower.png"))
        expect(page.get_by_text("new tower.png")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_new_fits_and_is_accessible(signed_in: Tab, theatre: Theatre, width: int):
    page = signed_in.page
    page.set_viewport_size({"width": width, "height": 800})
    theatre.finish(theatre.order("A paper boat drifts down a rainy street"))
    job = make_gem(theatre, "a picture with quite a long name of its own.png")
    for path in ("/jobs", "/jobs?q=boat", "/jobs?q=zeppelin", f"/jobs/{job}", f"/playground/{GEM}"):
        signed_in.open(path)
        signed_in.settled()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert signed_in.look() == [], path
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{folder}/{width}-{re.sub('[^a-z]', '-', path)[:24]}.png", full_page=True)
