"""Pipelines, and outputs as inputs, in a real Chromium: written, run, followed in the graph and retried."""

import json
import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from chromium import OpenTab, Tab
from console_stage import FILM, Theatre, picture, playing
from playwright.sync_api import Locator, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

PICTURE, STILL = "sim_text_to_image", "still_film"
MODELS = f"""
[vendors.embedded]
type = "embedded"
[[models]]
id = "{PICTURE}"
vendor = "sim"
[[models]]
id = "{STILL}"
vendor = "embedded"
"""
QUICK = {"latency": 0}


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path) -> Generator[Theatre]:
    folder = tmp_path_factory.mktemp("pipelines")
    shutil.copy(empty_store, folder)
    with playing(folder, weights, MODELS) as theatre:
        yield theatre


def steps_of(**film: Any) -> list[dict[str, Any]]:
    """A picture of the pipeline's prompt, and a film of the picture."""
    frame = {"step": "picture", "role": "first_frame"}
    params = {"prompt": "It moves", "frame_images": [frame], "script": {**QUICK, **film}}
    return [
        {"name": "picture", "model": PICTURE, "params": {"prompt": {"param": "prompt"}, "script": QUICK}},
        {"name": "film", "model": FILM, "params": params},
    ]


def node(tab: Tab, step: str) -> Locator:
    return tab.page.get_by_role("article", name=f"Step {step}", exact=True)


def write(tab: Tab, steps: list[dict[str, Any]]) -> None:
    tab.page.get_by_role("textbox", name="Steps", exact=True).fill(json.dumps({"steps": steps}))


def make_picture(theatre: Theatre, prompt: str) -> str:
    body = {"model": PICTURE, "input": [{"params": {"prompt": prompt, "script": QUICK}}]}
    return theatre.finish(theatre.call("POST", "/model/v1/generation", body)["id"])["id"]


def test_a_pipeline_is_written_and_its_graph_reaches_its_end(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    signed_in.open("/pipelines")
    page.get_by_role("link", name="New pipeline").first.click()
    write(signed_in, steps_of())
    page.get_by_role("textbox", name="Prompt").fill("A red fox in the snow")
    expect(page.get_by_label("Price")).to_contain_text("2 jobs · free")
    assert signed_in.look() == []
    signed_in.button("Run the pipeline").click()
    expect(page).to_have_url(re.compile(r"/pipelines/pipe_\w+$"))
    for step in ("picture", "film"):
        expect(node(signed_in, step)).to_have_attribute("data-status", "succeeded")
    expect(node(signed_in, "picture").locator("img")).to_have_js_property("complete", value=True)
    expect(node(signed_in, "film").locator("video")).to_be_visible()
    expect(page.locator(".graph-edge")).to_have_count(1)
    expect(page.get_by_role("heading", name="A red fox in the snow")).to_be_visible()
    assert signed_in.look() == []
    page.get_by_role("link", name="Pipelines").last.click()
    row = page.get_by_role("row", name=re.compile("A red fox in the snow"))
    expect(row).to_contain_text("picture → film")
    expect(row).to_contain_text("succeeded")
    made = [each["params"] for each in theatre.call("GET", "/api/v1/pipelines")["data"]]
    assert made.count({"prompt": "A red fox in the snow"}) == 1


JOIN = [{"step": "picture", "role": "first_frame"}, {"step": "second", "role": "last_frame"}]
BRANCHED = [
    *(
        {"name": name, "model": PICTURE, "params": {"prompt": name, "script": QUICK} | refs}
        for name, refs in {
            "picture": {},
            "second": {"references": [{"step": "picture"}]},
            "third": {"references": [{"step": "second"}]},
            "fourth": {"references": [{"step": "third"}, {"step": "picture"}]},
        }.items()
    ),
    {"name": "film", "model": FILM, "params": {"prompt": "x", "frame_images": JOIN, "script": QUICK}},
]
"""Edges that pass one column and two, and a node with two of them."""
HIDDEN = """() => {
    const boxes = [...document.querySelectorAll('.graph-steps > li')].map(each => each.getBoundingClientRect());
    return [...document.querySelectorAll('.graph-edge')].filter(edge => {
        const plane = edge.ownerSVGElement.getBoundingClientRect();
        return Array.from({length: 201}, (_, n) => edge.getPointAtLength(edge.getTotalLength() * n / 200)).some(point =>
            boxes.some(box => plane.x + point.x > box.left + 3 && plane.x + point.x < box.right - 3 &&
                plane.y + point.y > box.top + 3 && plane.y + point.y < box.bottom - 3));
    }).map(edge => edge.getAttribute('d'));
}"""
"""The edges of which a part is behind a node."""
OVERLAPS = """() => {
    const boxes = [...document.querySelectorAll('.graph-steps > li')].map(each => each.getBoundingClientRect());
    return boxes.some((a, i) => boxes.some((b, j) => i < j &&
        a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
}"""


@pytest.mark.parametrize("width", [1280, 1800, 390])
def test_no_edge_of_the_graph_is_behind_a_node(signed_in: Tab, theatre: Theatre, width: int):
    made = theatre.call("POST", "/api/v1/pipelines", {"steps": BRANCHED})
    signed_in.page.set_viewport_size({"width": width, "height": 800})
    signed_in.open(f"/pipelines/{made['id']}")
    expect(signed_in.page.locator(".graph-edge")).to_have_count(6)
    expect(signed_in.page.locator(".graph-steps > li")).to_have_count(5)
    assert signed_in.page.evaluate(HIDDEN) == []
    assert signed_in.page.evaluate(OVERLAPS) is False
    signed_in.page.evaluate("() => document.querySelector('.graph').scrollTo(9999, 0)")
    assert signed_in.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_jobs_of_a_pipeline_are_listed(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    body = {"params": {"prompt": "A listed fox"}, "steps": steps_of()}
    made = theatre.call("POST", "/api/v1/pipelines", body)["id"]
    make_picture(theatre, "Of no pipeline")
    signed_in.open(f"/pipelines/{made}")
    page.get_by_role("link", name="Open in the list of jobs").click()
    expect(page).to_have_url(re.compile(f"/jobs\\?pipeline={made}$"))
    rows = page.get_by_role("table", name="Jobs").get_by_role("row")
    expect(rows).to_have_count(3)
    chosen = page.get_by_role("combobox", name="Pipeline")
    expect(chosen).to_have_value(re.compile("^A listed fox"))
    assert signed_in.look() == []
    signed_in.button("Clear").click()
    expect(page.get_by_role("link", name="Of no pipeline")).to_be_visible()
    chosen.click()
    page.get_by_role("option", name=re.compile("A listed fox")).click()
    expect(rows).to_have_count(3)
    expect(page).to_have_url(re.compile(f"pipeline={made}"))


def test_a_wrong_step_is_marked_before_anything_is_sent(open_tab: OpenTab, theatre: Theatre):
    with open_tab(400, account=theatre.account) as found:
        mark_a_wrong_step(found)


def mark_a_wrong_step(signed_in: Tab) -> None:
    steps = steps_of()
    steps[1]["params"]["frame_images"] = [{"step": "pictur"}]
    signed_in.open("/pipelines/new")
    write(signed_in, steps)
    film = signed_in.page.get_by_role("list", name="Steps to run").get_by_role("listitem").nth(1)
    expect(film.get_by_role("alert")).to_contain_text("Did you mean picture?")
    expect(signed_in.button("Run the pipeline")).to_be_disabled()
    write(signed_in, steps_of())
    expect(film.get_by_role("alert")).to_have_count(0)
    signed_in.page.get_by_role("textbox", name="Steps", exact=True).fill('{"steps": [')
    expect(signed_in.page.get_by_text("This is not valid JSON.")).to_be_visible()


def test_a_failed_step_shows_its_error_and_is_run_again_with_changes(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    body = {"params": {"prompt": "A boat that sinks"}, "steps": steps_of(ending="filtered")}
    made = theatre.call("POST", "/api/v1/pipelines", body)
    signed_in.open(f"/pipelines/{made['id']}")
    expect(node(signed_in, "film")).to_have_attribute("data-status", "failed")
    expect(page.get_by_role("alert")).to_contain_text("Step film failed: content_filtered")
    expect(node(signed_in, "film")).to_contain_text("content filter")
    signed_in.button("Retry from here (film)").click()
    signed_in.dialog().get_by_role("button", name="Retry", exact=True).click()
    expect(page).not_to_have_url(re.compile(made["id"]))
    expect(node(signed_in, "film")).to_have_attribute("data-status", "failed")
    page.get_by_role("link", name="Run again with changes").click()
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value("A boat that sinks")
    write(signed_in, steps_of())
    expect(page.get_by_label("Price")).to_contain_text("2 jobs")
    signed_in.button("Run the pipeline").click()
    expect(node(signed_in, "film")).to_have_attribute("data-status", "succeeded")
    newest, retry = theatre.call("GET", "/api/v1/pipelines?limit=2")["data"]
    assert (newest["status"], retry["retry_of"]) == ("succeeded", made["id"])


def test_a_template_is_saved_opened_and_deleted(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    signed_in.open("/pipelines/new")
    write(signed_in, steps_of())
    page.get_by_role("textbox", name="Prompt").fill("A kept fox")
    signed_in.button("Save as template").click()
    signed_in.dialog().get_by_label("Name").fill("fox_film")
    signed_in.dialog().get_by_role("button", name="Save", exact=True).click()
    expect(signed_in.dialog()).to_have_count(0)
    assert theatre.call("GET", "/api/v1/pipelines/templates/fox_film")["params"] == {"prompt": "A kept fox"}
    signed_in.open("/pipelines")
    page.get_by_role("link", name="fox_film").click()
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value("A kept fox")
    signed_in.open("/pipelines")
    signed_in.button("Delete").click()
    signed_in.dialog().get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="fox_film")).to_have_count(0)


def test_a_picture_of_one_job_becomes_a_film_by_another(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    first = make_picture(theatre, "A lighthouse")
    signed_in.open(f"/jobs/{first}")
    signed_in.button("Use as input").click()
    signed_in.dialog().get_by_role("button", name=f"First frame of {STILL}").click()
    expect(page).to_have_url(re.compile(f"/playground/{STILL}$"))
    given = page.get_by_role("group", name="Frame images", exact=True)
    expect(given.get_by_role("link", name=PICTURE)).to_have_attribute("href", f"/console/jobs/{first}")
    expect(given.get_by_label("Role of the file")).to_have_value("First frame")
    page.get_by_role("textbox", name="Duration").fill("1")
    assert signed_in.look() == []
    signed_in.button("Generate").click()
    card = page.get_by_label("Results").locator("[aria-label^='Job '][data-status='succeeded']")
    expect(card.get_by_label("Film")).to_be_visible()
    made = theatre.call("GET", "/api/v1/jobs?limit=1")["data"][0]
    assert (made["model"], made["parents"]) == (STILL, [first])
    signed_in.open(f"/jobs/{made['id']}")
    lineage = page.get_by_role("region", name="Made from")
    expect(lineage.get_by_role("link", name=re.compile("A lighthouse"))).to_be_visible()
    signed_in.button("Edit and run").click()
    expect(given.get_by_role("link", name=PICTURE)).to_be_visible()


def test_files_are_uploaded_chosen_from_jobs_and_given_roles(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    make_picture(theatre, "A mill by the river")
    signed_in.open(f"/playground/{FILM}")
    frames = page.get_by_role("group", name="Frame images", exact=True)
    frames.get_by_label("Picture file").set_input_files(picture("start.png"))
    expect(frames.get_by_text("start.png")).to_be_visible()
    frames.get_by_role("button", name="Use an output").click()
    signed_in.dialog().get_by_role("button", name=re.compile("A mill by the river")).click()
    roles = frames.get_by_label("Role of the file")
    expect(roles).to_have_count(2)
    expect(roles.nth(1)).to_have_value("Last frame")
    expect(frames.get_by_role("button", name="Use an output")).to_have_count(0)
    sound = page.get_by_role("group", name="Audio", exact=True)
    sound.get_by_label("Sound file").set_input_files(picture("no-sound.png"))
    expect(sound.get_by_role("alert")).to_have_text("This is a picture. A sound is needed here.")
    page.get_by_role("textbox", name="Prompt", exact=True).fill("From here to there")
    signed_in.button("Generate").click()
    expect(page.get_by_label("Results").locator("[data-status='succeeded']")).to_be_visible()
    sent = theatre.call("GET", "/api/v1/jobs?limit=1")["data"][0]["input"]["frame_images"]
    assert [(each["role"], each["name"]) for each in sent] == [
        ("first_frame", "start.png"),
        ("last_frame", "image.png"),
    ]
