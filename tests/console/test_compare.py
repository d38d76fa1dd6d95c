"""The built console in a real Chromium: compare results side by side, and run one prompt over several models."""

import json
import os
import re
from typing import Any

import httpx
import pytest
from chromium import OpenTab, Tab
from console_stage import DEAR_FILM, FILM, GEM, MODEL, Theatre, picture
from plain import NO_TLS
from playwright.sync_api import Locator, Page, Route, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

SMALL_WINDOW = {"width": 900, "height": 700}
"""For 3D, of which a machine without a graphics card works out every pixel."""
CARDS = "article.compare-card"
NOTHING_LIKE_IT = "job_00000000000000000000000000"


def make_film(theatre: Theatre, prompt: str, seconds: int = 1) -> str:
    """Make a film; returns the job's id."""
    params = {"prompt": prompt, "durationSeconds": seconds, "script": {"latency": 0}}
    return theatre.finish(start(theatre, FILM, params))["id"]


def make_gem(theatre: Theatre) -> str:
    """Make a 3D model; returns the job's id."""
    return theatre.finish(start(theatre, GEM, {"script": {"latency": 0}}))["id"]


def start(theatre: Theatre, model: str, *params: dict[str, Any]) -> str:
    """Order one job for each of the params; returns the id of the job or of the batch."""
    body = {"model": model, "input": [{"params": each} for each in params]}
    return theatre.call("POST", "/model/v1/generation", body)["id"]


def compare(found: Tab, *jobs: str) -> Locator:
    """Open the comparison of these jobs; returns their cards."""
    found.open(f"/compare?jobs={','.join(jobs)}")
    cards = found.page.locator(CARDS)
    expect(cards).to_have_count(len(jobs))
    return cards


def delete(theatre: Theatre, job: str) -> None:
    headers = {"authorization": f"Bearer {theatre.account}"}
    with httpx.Client(base_url=theatre.url, headers=headers, timeout=300, trust_env=False, verify=NO_TLS) as client:
        assert client.delete(f"/api/v1/jobs/{job}").is_success


# -- choosing what to compare


def test_jobs_are_selected_in_the_list_and_compared(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    for number in range(5):
        make_film(theatre, f"Selected {number}")
    signed_in.open("/jobs?q=selected")
    boxes = page.get_by_role("checkbox")
    expect(boxes).to_have_count(5)
    boxes.nth(0).focus()
    page.keyboard.press("Space")
    bar = page.get_by_role("region", name="Selection")
    expect(bar).to_contain_text("1 of 4 selected, select one more to compare")
    expect(bar.get_by_role("button", name="Compare")).to_be_disabled()
    for number in (1, 2, 3):
        boxes.nth(number).check()
    expect(boxes.nth(4)).to_be_disabled()
    page.reload()
    expect(boxes.nth(3)).to_be_checked()
    boxes.nth(3).uncheck()
    bar.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", name="Compare", level=1)).to_be_visible()
    expect(page.locator(CARDS)).to_have_count(3)
    page.get_by_role("link", name="Change selection").click()
    expect(bar).to_contain_text("3 of 4 selected")


def test_a_job_is_compared_from_its_page(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    job, other = make_film(theatre, "Compared from its page"), make_film(theatre, "The other one")
    signed_in.open(f"/jobs/{job}")
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("checkbox", name="Select Compared from its page")).to_be_checked()
    page.get_by_role("checkbox", name="Select The other one").first.check()
    page.get_by_role("region", name="Selection").get_by_role("link", name="Compare").click()
    expect(page).to_have_url(re.compile(f"jobs={job},{other}$"))


def test_a_batch_is_compared_with_one_click(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    scripts = [{"prompt": f"Of a batch {number}", "script": {"latency": 0}} for number in range(2)]
    batch = start(theatre, FILM, *scripts)
    signed_in.open(f"/jobs?batch={batch}")
    page.get_by_role("link", name="Compare the 2 jobs of this batch").click()
    expect(page.locator(CARDS)).to_have_count(2)
    expect(page.locator(f"{CARDS} video")).to_have_count(2)


def test_too_few_and_too_many_are_said(open_tab: OpenTab, theatre: Theatre):
    job = make_film(theatre, "Alone")
    with open_tab(404, account=theatre.account) as found:
        page = found.page
        found.open("/compare")
        expect(page.get_by_role("heading", name="Nothing to compare")).to_be_visible()
        found.open(f"/compare?jobs={job},{job}")
        expect(page.get_by_text("There is one result only.")).to_be_visible()
        found.open("/compare?jobs=" + ",".join([job, *(f"job_none{number}" for number in range(5))]))
        expect(page.get_by_role("alert")).to_contain_text("At most 4 results are compared")
        expect(page.locator(CARDS)).to_have_count(4)


# -- what moves together


def time_of(film: Locator) -> float:
    return film.evaluate("film => film.currentTime")


def until_at(page: Page, *seconds: float) -> None:
    """Wait until the films stand at these positions."""
    page.wait_for_function(
        """aims => [...document.querySelectorAll('video')].every(
            (film, index) => !film.seeking && Math.abs(film.currentTime - aims[index]) < 0.1)""",
        arg=list(seconds),
    )


def test_films_play_stop_and_seek_together(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    cards = compare(signed_in, make_film(theatre, "A long film", 8), make_film(theatre, "A short film", 2))
    films = cards.locator("video")
    bar = page.get_by_role("region", name="All films")
    position = bar.get_by_role("slider", name="Position in all films")
    expect(bar).to_contain_text("of 8 s")
    films.nth(1).evaluate("film => { film.currentTime = 1; }")
    until_at(page, 1, 1)
    expect(bar).to_contain_text("1.0 s of 8 s")
    position.fill("5")
    until_at(page, 5, 2)
    position.focus()
    page.keyboard.press("Home")
    until_at(page, 0, 0)
    films.nth(1).evaluate("film => film.play()")
    page.wait_for_function("() => document.querySelectorAll('video')[0].currentTime > 0.1")
    expect(signed_in.button("Pause all")).to_be_visible()
    films.nth(0).evaluate("film => film.pause()")
    expect(signed_in.button("Play all")).to_be_visible()
    expect(films.nth(1)).to_have_js_property("paused", value=True)
    signed_in.button("Play all").press("Enter")
    for number in range(2):
        page.wait_for_function("n => !document.querySelectorAll('video')[n].paused", arg=number)
    page.wait_for_function("() => document.querySelectorAll('video')[0].currentTime > 2.3")
    expect(films.nth(0)).to_have_js_property("paused", value=False)
    assert time_of(films.nth(1)) == pytest.approx(2, abs=0.1)
    signed_in.button("Pause all").click()


@pytest.mark.long
def test_films_that_all_ended_begin_again_together(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    films = compare(signed_in, *(make_film(theatre, f"Over {number}", 2) for number in range(2))).locator("video")
    expect(page.get_by_role("region", name="All films")).to_contain_text("of 2 s")
    page.evaluate(
        """() => { window.starts = 0;
            for (const film of document.querySelectorAll('video'))
                film.addEventListener('seeking', () => { window.starts += film.currentTime === 0; }); }"""
    )
    page.get_by_role("slider", name="Position in all films").fill("1.5")
    until_at(page, 1.5, 1.5)
    signed_in.button("Play all").click()
    page.wait_for_function("() => window.starts >= 2")
    page.wait_for_function("() => [...document.querySelectorAll('video')].every(film => !film.paused)")
    signed_in.button("Pause all").click()
    until_at(page, time_of(films.nth(0)), time_of(films.nth(0)))


PICTURES = """() => [...document.querySelectorAll('.compare-picture img')].map(each => each.style.transform)"""


def test_pictures_are_zoomed_together(signed_in: Tab, theatre: Theatre):
    page = signed_in.page

    def only_pictures(route: Route) -> None:
        """Answer with a record whose one output is the preview."""
        answer = route.fetch()
        record = answer.json()
        record["outputs"] = [each | {"role": "primary"} for each in record["outputs"] if each["kind"] == "image"]
        route.fulfill(response=answer, json=record)

    page.route(re.compile(r"/api/v1/jobs/job_\w+$"), only_pictures)
    compare(signed_in, make_gem(theatre), make_gem(theatre))
    frames = page.locator(".compare-picture")
    expect(frames).to_have_count(2)
    frames.nth(0).focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    first, second = page.evaluate(PICTURES)
    assert first == second
    assert "scale(1.25)" in first
    assert not first.startswith("translate(0%")
    page.get_by_role("slider", name="Zoom").fill("4")
    assert all("scale(4)" in each for each in page.evaluate(PICTURES))
    signed_in.button("Whole picture").click()
    assert all(each.endswith("scale(1)") for each in page.evaluate(PICTURES))


def test_different_kinds_stand_side_by_side_without_moving_together(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    page.set_viewport_size(SMALL_WINDOW)
    cards = compare(signed_in, make_film(theatre, "A film beside a model"), make_gem(theatre))
    expect(cards.nth(0).locator("video")).to_be_visible()
    expect(cards.nth(1).locator("model-viewer")).to_be_visible()
    expect(page.get_by_text("These results are of different kinds.")).to_be_visible()
    expect(page.get_by_role("region", name="All films")).to_have_count(0)
    expect(page.get_by_role("region", name="All 3D models")).to_have_count(0)


# -- what stands below


def test_differences_are_marked_and_equal_params_are_not(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    cards = compare(signed_in, make_film(theatre, "A red boat", 1), make_film(theatre, "A blue boat", 2))
    first, second = cards.nth(0).get_by_label("Params"), cards.nth(1).get_by_label("Params")
    expect(first.locator("mark")).to_have_text(["red", "1"])
    expect(second.locator("mark")).to_have_text(["blue", "2"])
    expect(first).to_contain_text("Aspect ratio")
    page.get_by_role("switch", name="Only differences").check()
    expect(first).not_to_contain_text("Aspect ratio")
    expect(first).to_contain_text("A red boat")
    expect(cards.nth(0)).to_contain_text("Time taken")
    with page.expect_download() as download:
        cards.nth(0).get_by_role("link", name="Download").click()
    assert download.value.suggested_filename.endswith(".mp4")


# -- jobs that are not there, or not done


def test_jobs_that_cannot_be_shown_have_a_card_of_their_own(open_tab: OpenTab, theatre: Theatre):
    kept, deleted = make_film(theatre, "Still here"), make_film(theatre, "Deleted")
    delete(theatre, deleted)
    other = theatre.stage.key(account="other")
    body = {"model": FILM, "input": [{"params": {"prompt": "Foreign"}}]}
    foreign = theatre.call("POST", "/model/v1/generation", body, key=other)["id"]
    with open_tab(404, 410, account=theatre.account) as found:
        cards = compare(found, kept, deleted, foreign, "..%2F<b>no id")
        expect(cards.nth(0).locator("video")).to_be_visible()
        expect(cards.nth(1)).to_contain_text("Job deleted")
        expect(cards.nth(2)).to_contain_text("Job not found")
        expect(cards.nth(3)).to_contain_text("Job not found")
        expect(cards.nth(2)).not_to_contain_text("Foreign")
        assert found.look() == []
        cards.nth(3).get_by_role("button", name="Remove from the comparison").click()
        expect(cards).to_have_count(3)


def test_a_failed_and_a_canceled_job_say_why_there_is_no_result(signed_in: Tab, theatre: Theatre):
    failed = theatre.finish(theatre.order("It fails", ending="filtered"))["id"]
    endless = theatre.order("It is canceled", latency=3600)
    cards = compare(signed_in, failed, endless)
    expect(cards.nth(0).get_by_role("alert")).to_contain_text("It failed")
    expect(cards.nth(1).get_by_label("Progress")).to_be_visible()
    theatre.call("POST", f"/api/v1/jobs/{endless}/cancel")
    expect(cards.nth(1)).to_have_attribute("data-status", "canceled")
    expect(cards.nth(1).get_by_label("Progress")).to_have_count(0)


def test_a_running_job_becomes_its_result(signed_in: Tab, theatre: Theatre):
    page, is_done = signed_in.page, False
    done, late = make_film(theatre, "Done"), make_film(theatre, "Late")
    news = {"status": "running", "done": False, "progress": 0.4, "phase": "generating", "outputs": []}

    def not_yet(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | ({} if is_done else {**news, "finished_at": None}))

    page.route(f"**/api/v1/jobs/{late}", not_yet)
    cards = compare(signed_in, done, late)
    expect(cards.nth(1)).to_contain_text("40 %")
    expect(page.get_by_role("region", name="All films")).to_have_count(0)
    is_done = True
    expect(cards.nth(1).locator("video")).to_be_visible()
    expect(page.get_by_role("region", name="All films")).to_be_visible()


# -- one prompt over several models


def open_batch(found: Tab, first: str, *others: str) -> None:
    """Open the playground for several models, as a person would."""
    found.open(f"/playground/{first}")
    found.button("Compare models").click()
    for model in others:
        found.page.get_by_role("checkbox", name=model).check()


def test_price_and_time_of_each_and_of_all_are_shown_before_one_click_starts_all(signed_in: Tab, theatre: Theatre):
    page, orders = signed_in.page, signed_in.orders
    make_film(theatre, "So that its usual time is known")
    signed_in.open(f"/playground/{DEAR_FILM}")
    page.get_by_role("textbox", name="Prompt", exact=True).fill("A lighthouse over several models")
    signed_in.button("Compare models").click()
    prompt = page.get_by_role("textbox", name="Prompt", exact=True)
    expect(prompt).to_have_value("A lighthouse over several models")
    expect(signed_in.button("Choose another model")).to_be_disabled()
    page.get_by_role("checkbox", name=FILM).check()
    models = page.get_by_role("group", name="Models (2 to 4)")
    expect(models).to_contain_text("at most $0.30")
    expect(models).to_contain_text(re.compile(r"usually [\d.]+ s|time unknown"))
    together = page.get_by_label("Price of all")
    expect(together).to_contain_text(re.compile(r"Together at most \$0\.30.* · the slowest usually takes [\d.]+ s"))
    expect(page.get_by_label("Compression quality")).to_have_count(0)
    assert signed_in.look() == []
    signed_in.button("Generate with 2 models").evaluate("button => { button.click(); button.click(); }")
    expect(page).to_have_url(re.compile(r"/compare\?jobs=job_\w+,job_\w+$"))
    cards = page.locator(CARDS)
    expect(cards.locator("video")).to_have_count(2)
    expect(cards.nth(0)).to_contain_text(DEAR_FILM)
    expect(cards.nth(1)).to_contain_text(FILM)
    assert len(orders) == len(set(orders)) == 2
    found = theatre.call("GET", "/api/v1/jobs?q=lighthouse+over+several")["data"]
    assert {job["model"] for job in found} == {FILM, DEAR_FILM}
    assert len(found) == 2
    page.go_back()
    link = page.get_by_role("region", name="Earlier comparisons").get_by_role("link")
    expect(link).to_have_text("A lighthouse over several models")


def lend(page: Page, *names: str) -> None:
    """Let the server have more film models: each of these names is the simulated one's."""

    def list_more(route: Route) -> None:
        models = route.fetch().json()
        film = next(model for model in models["data"] if model["id"] == FILM)
        models["data"] += [film | {"id": name} for name in names]
        route.fulfill(json=models)

    def order(route: Route) -> None:
        body = route.request.post_data_json
        body["model"] = FILM if body["model"] in names else body["model"]
        route.continue_(post_data=json.dumps(body))

    page.route("**/api/v1/models", list_more)
    page.route("**/model/v1/generation", order)


@pytest.mark.parametrize("count", [3, 4])
def test_three_and_four_models_run_one_prompt(signed_in: Tab, theatre: Theatre, count: int):
    page, orders = signed_in.page, signed_in.orders
    lent = [f"film_{number}" for number in range(3)]
    lend(page, *lent)
    open_batch(signed_in, DEAR_FILM, FILM, *lent[: count - 2])
    boxes = page.get_by_role("group", name="Models (2 to 4)").get_by_role("checkbox")
    expect(boxes).to_have_count(5)
    expect(boxes.last).to_be_enabled() if count == 3 else expect(boxes.last).to_be_disabled()
    prompt = f"A boat with {count} sails"
    page.get_by_role("textbox", name="Prompt", exact=True).fill(prompt)
    expect(page.get_by_label("Price of all")).to_contain_text("Together at most $0.30")
    signed_in.button(f"Generate with {count} models").click()
    expect(page).to_have_url(re.compile(rf"/compare\?jobs=job_\w+(,job_\w+){{{count - 1}}}"))
    cards = page.locator(CARDS)
    expect(cards.locator("video")).to_have_count(count)
    expect(page.get_by_role("region", name="All films")).to_be_visible()
    assert signed_in.look() == []
    assert len(set(orders)) == len(orders) == count
    made = theatre.call("GET", f"/api/v1/jobs?q={prompt.replace(' ', '+')}")["data"]
    assert sorted(job["model"] for job in made) == sorted([DEAR_FILM, *[FILM] * (count - 1)])


def test_a_repetition_after_lost_answers_makes_no_second_set(signed_in: Tab, theatre: Theatre):
    page, orders = signed_in.page, signed_in.orders
    open_batch(signed_in, DEAR_FILM, FILM)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("Answers are lost")
    expect(page.get_by_label("Price of all")).to_contain_text("Together")

    def lose(route: Route) -> None:
        if "idempotency-key" not in route.request.headers:
            route.continue_()
            return
        route.fetch()
        route.abort()

    page.route("**/model/v1/generation", lose)
    signed_in.button("Generate with 2 models").click()
    expect(page.get_by_role("alert")).to_have_count(2)
    expect(page.get_by_role("alert").first).to_contain_text("The server does not answer.")
    page.unroute_all()
    page.reload()
    signed_in.button("Generate with 2 models").click()
    expect(page).to_have_url(re.compile(r"/compare\?jobs=job_\w+,job_\w+$"))
    assert len(orders) == 4
    assert len(set(orders)) == 2
    assert len(theatre.call("GET", "/api/v1/jobs?q=answers+are+lost")["data"]) == 2
    assert not [each for each in signed_in.trouble if "ERR_FAILED" not in each]
    signed_in.trouble.clear()


def test_a_refusal_is_on_its_card_and_the_others_run(open_tab: OpenTab, theatre: Theatre):
    with open_tab(402, account=theatre.account) as found:
        page, orders = found.page, found.orders

        def refuse(route: Route) -> None:
            is_order = "idempotency-key" in route.request.headers
            if is_order and route.request.post_data_json["model"] == DEAR_FILM:
                error = {"code": "insufficient_budget", "message": "The budget of this key is spent."}
                route.fulfill(status=402, json={"error": error})
            else:
                route.continue_()

        open_batch(found, DEAR_FILM, FILM)
        page.get_by_role("textbox", name="Prompt", exact=True).fill("One of them refuses")
        page.route("**/model/v1/generation", refuse)
        found.button("Generate with 2 models").click()
        refused = page.get_by_label(f"Refused by {DEAR_FILM}")
        expect(refused.get_by_role("alert")).to_contain_text("The budget of this key is spent.")
        expect(page.locator(f"{CARDS} video")).to_have_count(1)
        assert found.look() == []
        page.unroute_all()
        refused.get_by_role("button", name="Try again").click()
        expect(page.locator(f"{CARDS} video")).to_have_count(2)
        expect(refused).to_have_count(0)
        assert len(orders) == 3
        assert len(set(orders)) == 2


def test_a_budget_for_one_is_not_enough_for_all(open_tab: OpenTab, theatre: Theatre):
    poor = theatre.stage.key(budgets={"total": "0.10"})
    with open_tab(402, account=poor) as found:
        open_batch(found, DEAR_FILM, FILM)
        found.page.get_by_role("textbox", name="Prompt", exact=True).fill("Too dear")
        expect(found.page.get_by_label("Price of all")).to_contain_text("More than your budget allows")


def test_a_picture_goes_to_several_models(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    page.set_viewport_size(SMALL_WINDOW)
    open_batch(signed_in, MODEL, GEM)
    page.get_by_label("Picture file").set_input_files(picture("shared.png"))
    expect(page.get_by_label("Price of all")).to_contain_text("Together")
    signed_in.button("Generate with 2 models").click()
    expect(page.locator('[data-standing="shown"]')).to_have_count(2)
    expect(page.get_by_role("region", name="All 3D models")).to_be_visible()
    found = theatre.call("GET", "/api/v1/jobs?q=shared.png")["data"]
    assert sorted(job["model"] for job in found) == sorted([MODEL, GEM])


# -- every width and colour


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_new_fits_and_is_accessible(open_tab: OpenTab, theatre: Theatre, width: int):
    films = [
        make_film(theatre, f"A {colour} boat drifts down a rainy street", 2) for colour in ("red", "blue", "green")
    ]
    running = theatre.order("A boat that never lands", latency=3600)
    gems = [make_gem(theatre), make_gem(theatre)]
    pages = {
        "two": f"/compare?jobs={films[0]},{films[1]}",
        "three": f"/compare?jobs={','.join(films)}",
        "four": f"/compare?jobs={films[0]},{running},{NOTHING_LIKE_IT},{films[1]}",
        "models": f"/compare?jobs={','.join(gems)}",
        "mixed": f"/compare?jobs={films[0]},{gems[0]}",
        "empty": "/compare",
        "list": f"/jobs?compare={films[0]},{films[1]}",
        "batch": f"/playground/{DEAR_FILM}?with={FILM}",
    }
    with open_tab(404, account=theatre.account) as found:
        page = found.page
        page.set_viewport_size({"width": width, "height": 800})
        for name, path in pages.items():
            found.open(path)
            found.settled()
            if name == "batch":
                page.get_by_role("textbox", name="Prompt", exact=True).fill("A paper boat drifts down a rainy street")
                expect(page.get_by_label("Price of all")).to_contain_text("Together")
            expect(page.get_by_text("Loading the job…")).to_have_count(0)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            assert page.evaluate("[...document.querySelectorAll('.data')].every(e => e.scrollWidth <= e.clientWidth)")
            assert found.look() == [], name
            photograph(page, f"{width}-{name}-light")
            page.emulate_media(color_scheme="dark")
            expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
            assert found.look("color-contrast") == [], name
            photograph(page, f"{width}-{name}-dark")
            page.emulate_media(color_scheme="light")


def photograph(page: Page, name: str) -> None:
    """Keep a picture of the page, if a folder for pictures is named."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.wait_for_timeout(1500)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
