"""The built console in a real Chromium: what people do with it, and that every page is sound."""

import base64
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest
from chromium import OpenTab, Tab
from console_stage import ADMIN_KEY, CHAT, DEAR_FILM, FILM, GEM, MODEL, SLOW_CHAT, Theatre, picture
from playwright.sync_api import expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

PAGES = {
    "playground": "/playground",
    "chat": f"/playground/{CHAT}",
    "3d": f"/playground/{MODEL}",
    "video": f"/playground/{FILM}",
    "jobs": "/jobs",
    "film": "/jobs/{film}",
    "model": "/jobs/{model}",
    "failed": "/jobs/{failed}",
    "running": "/jobs/{running}",
    "compare": "/compare?jobs={film},{model}",
    "pipelines": "/pipelines",
    "new pipeline": "/pipelines/new",
    "one pipeline": "/pipelines/{pipeline}",
    "gallery": "/gallery",
    "shared links": "/shares",
    "connect": "/connect",
    "models": "/models",
    "one model": f"/models/{DEAR_FILM}",
    "usage": "/usage",
    "webhooks": "/webhooks",
    "one webhook": "/webhooks/{webhook}",
    "keys": "/admin/keys",
    "one key": "/admin/keys/{key}",
    "accounts": "/admin/accounts",
    "one account": "/admin/accounts/{account}",
    "all people": "/admin/people",
    "budgets": "/admin/budgets",
    "ledger": "/admin/ledger",
    "all usage": "/admin/usage",
    "vendors": "/admin/vendors",
    "new vendor": "/admin/vendors/new",
    "vendor form": "/admin/vendors/new/openai_compatible",
    "one vendor": "/admin/vendors/double",
    "added vendor": "/admin/vendors/{vendor}",
    "model routes": "/admin/routes",
    "prices": "/admin/prices",
    "settings history": "/admin/settings",
    "one version": "/admin/settings/{version}",
    "audit": "/admin/audit",
    "nowhere": "/nowhere",
}
STEPS = [
    {"name": "film", "model": FILM, "params": {"prompt": "A boat", "script": {"latency": 0}}},
    {"name": "longer", "model": FILM, "params": {"video": {"step": "film"}, "script": {"ending": "filtered"}}},
    {"name": "each", "model": FILM, "for_each": ["a", "b"], "params": {"prompt": {"item": True}}},
]


@pytest.fixture(scope="module")
def things(theatre: Theatre) -> dict[str, str]:
    """The names of one thing of each kind, as the pages' addresses hold them."""
    found = {
        "film": theatre.order("A paper boat in the rain"),
        "failed": theatre.order("A boat that sinks", ending="filtered"),
        "running": theatre.order("A boat that never lands", latency=3600),
        "model": theatre.call("POST", "/model/v1/generation", {"model": GEM, "input": [{"params": {}}]})["id"],
        "webhook": theatre.call("POST", "/api/v1/webhooks", {"url": "http://127.0.0.1:9/told"})["id"],
        "account": theatre.call("POST", "/admin/v1/accounts", {"name": "mill"})["id"],
        "pipeline": theatre.call("POST", "/api/v1/pipelines", {"steps": STEPS})["id"],
    }
    budgets = [{"period": "month", "cap": "5.00"}]
    wish = {"account": found["account"], "name": "website", "budgets": budgets}
    found["key"] = theatre.call("POST", "/admin/v1/keys", wish)["public_id"]
    question = {"model": CHAT, "messages": [{"role": "user", "content": "Hello"}]}
    theatre.call("POST", "/llm/chat/completions", question)
    for job in ("film", "failed", "model"):
        theatre.finish(found[job])
    table = {"type": "openai_compatible", "base_url": theatre.double.url, "api_key": theatre.double.key}
    models = {"near-echo": {"kind": "chat", "vendor": "near", "model": "echo"}}
    change = {"base_version": 0, "vendors": {"near": table}, "models": models, "note": "A server of our own"}
    made = theatre.call("PATCH", "/admin/v1/settings", change)
    found |= {"vendor": "near", "version": str(made["version"])}
    return found


@pytest.fixture(scope="module")
def looking(open_tab: OpenTab, theatre: Theatre, things: dict[str, str]) -> Iterator[Tab]:
    """A tab with both keys that goes from page to page."""
    with open_tab(account=theatre.account, admin=ADMIN_KEY) as found:
        found.open("/jobs")
        found.settled()
        yield found


# -- every page


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_fits_a_phone_and_complains_of_nothing(looking: Tab, things: dict[str, str], name: str):
    page = looking.page
    looking.trouble.clear()
    looking.turn_to(PAGES[name].format(**things))
    looking.settled()
    assert looking.look() == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    assert looking.look("color-contrast") == []
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 360, "height": 800})
    page.wait_for_function("() => document.documentElement.scrollWidth <= 360")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert looking.trouble == []


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_in_every_look(
    open_tab: OpenTab, theatre: Theatre, things: dict[str, str], scheme: Literal["light", "dark"], width: int
):
    found: dict[str, list[str]] = {}
    with open_tab(account=theatre.account, admin=ADMIN_KEY) as walk:
        walk.draw_in_3d()
        walk.page.emulate_media(color_scheme=scheme)
        walk.page.set_viewport_size({"width": width, "height": 844})
        for name, path in PAGES.items():
            walk.open(path.format(**things))
            walk.settled()
            too_wide = walk.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
            found[name] = walk.look() + [f"{too_wide} px too wide"] * (too_wide > 0) + walk.trouble
            walk.trouble.clear()
            if folder := os.environ.get("PENSTOCK_SCREENSHOTS"):
                walk.page.screenshot(path=f"{folder}/{name.replace(' ', '-')}-{scheme}-{width}.png")
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_no_page_of_the_menu_is_left_out(looking: Tab):
    looking.open("/jobs")
    links = looking.page.get_by_role("navigation", name="Pages").get_by_role("link")
    expect(links.first).to_be_visible()
    found = {link.get_attribute("href") for link in links.all()}
    assert len(found) >= 12
    assert found <= {f"/console{path}" for path in PAGES.values()}


def test_without_the_3d_viewer_the_build_weighs_less_than_600_kb():
    files = [path for path in FOLDER.rglob("*") if path.suffix in {".js", ".css", ".html", ".svg"}]
    assert any("viewer" in path.name for path in files)
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in files if "viewer" not in path.name}
    assert sum(sizes.values()) <= 600_000, sizes


# -- signing in


def test_a_wrong_key_is_told_and_the_right_one_opens_until_one_leaves(open_tab: OpenTab, theatre: Theatre):
    with open_tab(401) as found:
        page = found.page
        found.open()
        assert found.look() == []
        page.get_by_label("Key", exact=True).fill("psk_000000000000000000_nobody")
        found.button("Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("key was not accepted")
        assert found.look() == []
        page.get_by_label("Key", exact=True).fill(theatre.account)
        found.button("Sign in").click()
        expect(page.get_by_role("heading", name="Playground", level=1)).to_be_visible()
        expect(page.get_by_text("Administration")).to_have_count(0)
        found.button("Sign out").click()
        expect(page.get_by_label("Key", exact=True)).to_be_visible()
        assert theatre.account not in page.evaluate("JSON.stringify([sessionStorage, localStorage])")


def test_a_key_that_is_revoked_under_way_leads_back_to_signing_in(
    open_tab: OpenTab, theatre: Theatre, things: dict[str, str]
):
    wish = {"account": things["account"], "name": "for a moment"}
    made = theatre.call("POST", "/admin/v1/keys", wish)
    with open_tab(401, account=made["key"]) as found:
        found.open(f"/playground/{CHAT}")
        message = found.page.get_by_role("textbox", name="Message")
        expect(message).to_be_visible()
        theatre.call("POST", f"/admin/v1/keys/{made['public_id']}/revoke")
        theatre.until_refused(made["key"])
        message.fill("Am I still here?")
        message.press("Enter")
        expect(found.page.get_by_role("status")).to_contain_text("revoked")
        expect(found.page.get_by_label("Key", exact=True)).to_be_visible()


def test_the_administrator_begins_at_the_keys(open_tab: OpenTab):
    with open_tab() as found:
        found.open()
        found.page.get_by_label("Key", exact=True).fill(ADMIN_KEY)
        found.button("Sign in").click()
        expect(found.page.get_by_role("heading", name="Keys", level=1)).to_be_visible()
        expect(found.page.get_by_role("link", name="Playground")).to_have_count(0)


# -- the playground


def test_chat_streams_its_answer_as_formatted_text(signed_in: Tab):
    signed_in.open(f"/playground/{CHAT}")
    log = signed_in.say("A **bold** word and <b>no HTML</b>")
    expect(signed_in.button("Again")).to_be_visible()
    answer = log.locator('[data-role="assistant"]')
    expect(answer.locator("strong")).to_have_text("bold")
    expect(answer.locator("b")).to_have_count(0)
    expect(answer).to_contain_text("out · ")
    expect(signed_in.page.get_by_label("This conversation")).to_contain_text("Tokens out")


def test_stopping_keeps_what_came_and_ends_the_work_upstream(signed_in: Tab, theatre: Theatre):
    gone = len(theatre.double.gone)
    signed_in.open(f"/playground/{SLOW_CHAT}")
    log = signed_in.say("Take your time")
    answer = log.locator('[data-role="assistant"]')
    expect(answer).to_contain_text("Hello")
    signed_in.button("Stop").click()
    expect(answer).to_contain_text("stopped")
    expect(signed_in.button("Again")).to_be_visible()
    theatre.until_upstream("gone", gone + 1)


def test_a_film_is_made_and_plays(signed_in: Tab):
    page = signed_in.page
    signed_in.open(f"/playground/{DEAR_FILM}")
    page.get_by_role("textbox", name="Prompt", exact=True).fill("A lighthouse in a storm")
    expect(page.get_by_label("Price")).to_contain_text("$0.30")
    page.keyboard.press("Control+Enter")
    film = page.get_by_label("Film")
    expect(film).to_be_visible()
    film.evaluate("film => { film.muted = true; return film.play(); }")
    page.wait_for_function("() => document.querySelector('video').currentTime > 0.2")
    assert signed_in.look() == []


def test_a_budget_that_does_not_allow_it_says_so_before_and_after(open_tab: OpenTab, theatre: Theatre):
    poor = theatre.stage.key(budgets={"total": "0.10"})
    with open_tab(402, account=poor) as found:
        page = found.page
        found.open(f"/playground/{DEAR_FILM}")
        page.get_by_role("textbox", name="Prompt", exact=True).fill("A lighthouse in a storm")
        told = page.get_by_label("Request").get_by_text("budget").first
        expect(told).to_contain_text("budget")
        found.button("Generate").click()
        notice = page.get_by_role("alert")
        expect(notice).to_contain_text("Budget exceeded")
        expect(notice).to_contain_text("0.10")
        assert found.look() == []


# -- jobs


def test_jobs_show_up_and_end_in_the_list_by_themselves(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    signed_in.open("/jobs")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    job = theatre.order("It shows up by itself", latency=3600)
    row = page.get_by_role("row", name="It shows up by itself")
    expect(row).to_contain_text("running")
    theatre.call("POST", f"/api/v1/jobs/{job}/cancel")
    expect(row).to_contain_text("canceled")


def test_a_job_is_followed_to_its_end_and_run_again(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    first = theatre.order("It is run again", latency=1)
    signed_in.open(f"/jobs/{first}")
    head = page.locator(".page-head")
    expect(head).to_contain_text("succeeded")
    expect(page.get_by_role("list", name="Events")).to_contain_text("succeeded")
    signed_in.button("Run again").click()
    signed_in.dialog().get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(lambda url: "/jobs/job_" in url and first not in url)
    second = page.url.rsplit("/", 1)[1]
    expect(head).to_contain_text("succeeded")
    records = [theatre.finish(job) for job in (first, second)]
    assert records[0]["input"] == records[1]["input"]


def test_a_delivery_shows_what_was_sent_and_what_was_answered(signed_in: Tab, theatre: Theatre):
    page = signed_in.page
    hook = theatre.call("POST", "/api/v1/webhooks", {"url": "http://127.0.0.1:9/nobody"})["id"]
    theatre.call("POST", f"/api/v1/webhooks/{hook}/ping")
    signed_in.open(f"/webhooks/{hook}")
    page.get_by_role("button", name="webhook.ping").first.click()
    delivery = page.get_by_label("Deliveries").locator(".delivery-more")
    expect(delivery.get_by_label("Attempts")).to_contain_text("no answer")
    expect(delivery).to_contain_text("webhook-signature: v1,")
    expect(delivery).to_contain_text(f'"webhook_id": "{hook}"')


def test_a_job_whose_picture_came_inside_the_request_is_run_again(signed_in: Tab, theatre: Theatre):
    uri = f"data:image/png;base64,{base64.b64encode(picture()['buffer']).decode()}"
    body = {"model": GEM, "input": [{"params": {"file": {"url": uri}}}]}
    first = theatre.finish(theatre.call("POST", "/model/v1/generation", body)["id"])
    page = signed_in.page
    signed_in.open(f"/jobs/{first['id']}")
    signed_in.button("Run again").click()
    signed_in.dialog().get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(lambda url: "/jobs/job_" in url and first["id"] not in url)
    second = theatre.finish(page.url.rsplit("/", 1)[1])
    assert second["input"]["file"]["sha256"] == first["input"]["file"]["sha256"]


def test_a_running_job_is_canceled(signed_in: Tab, theatre: Theatre):
    job = theatre.order("It is canceled", latency=3600)
    signed_in.open(f"/jobs/{job}")
    signed_in.button("Cancel").click()
    signed_in.dialog().get_by_role("button", name="Cancel the job").click()
    expect(signed_in.page.locator(".page-head")).to_contain_text("canceled")
    assert theatre.finish(job)["status"] == "canceled"


# -- administration


@contextmanager
def administering(open_tab: OpenTab) -> Iterator[Tab]:
    with open_tab(admin=ADMIN_KEY) as found:
        yield found


def test_a_new_key_is_shown_once_and_works(open_tab: OpenTab, theatre: Theatre, things: dict[str, str]):
    with administering(open_tab) as found:
        page = found.page
        found.open("/admin/keys")
        found.button("New key").click()
        dialog = found.dialog()
        dialog.get_by_role("combobox", name="Account").click()
        page.get_by_role("option", name="mill").click()
        dialog.get_by_label("Name").fill("from the console")
        assert found.look() == []
        dialog.get_by_role("button", name="Create").click()
        secret = page.get_by_role("region", name="The secret").inner_text().strip()
        assert found.look() == []
        found.button("I have saved it").click()
        expect(page.get_by_role("heading", name="from the console", level=1)).to_be_visible()
        assert secret not in page.content()
        page.reload()
        expect(page.get_by_role("heading", name="from the console", level=1)).to_be_visible()
        assert secret not in page.content()
    assert theatre.call("GET", "/api/v1/jobs", key=secret)["data"] == []
