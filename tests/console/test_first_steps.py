"""The built console in a real Chromium: first steps, the sample picture, the other key, what a reload keeps."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from chromium import OpenTab, Tab
from console_stage import ADMIN_KEY, FILM, MODEL, Theatre
from playwright.sync_api import Locator, Page, Route, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

SMALL_WINDOW = {"width": 720, "height": 480}


def step(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name="First steps").get_by_role("listitem").filter(has_text=title)


def serve_built_in(page: Page) -> None:
    """Let the models be those of the built-in engines, as after the first start."""

    def change(route: Route) -> None:
        models = route.fetch().json()
        for model in models["data"]:
            hosted = "local" if model["kind"] == "chat" else "embedded"
            model["vendors"] = ["sim"] if model["id"].startswith("sim_") else [hosted]
        route.fulfill(body=json.dumps(models), content_type="application/json")

    page.route("**/api/v1/models", change)


@pytest.fixture
def newcomer(open_tab: OpenTab, theatre: Theatre, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """A tab with a key of an account that has nothing yet."""
    with open_tab(account=theatre.stage.key(account=request.node.name)) as found:
        yield found


# -- first steps


def test_the_steps_tick_themselves_from_facts(newcomer: Tab):
    page = newcomer.page
    page.set_viewport_size(SMALL_WINDOW)
    newcomer.open(f"/playground/{MODEL}")
    panel = page.get_by_role("region", name="First steps")
    expect(panel).to_contain_text("1 of 4 done")  # a vendor that is neither built in nor simulated serves chat
    expect(step(page, "Add a vendor")).to_contain_text("Served by double")
    newcomer.button("Use a sample picture").click()
    expect(page.get_by_alt_text("Your upload")).to_be_visible()
    newcomer.button("Generate").click()
    expect(step(page, "Make one")).to_contain_text("done")
    newcomer.button("Open the code").click()
    page.get_by_role("tabpanel").get_by_role("button", name="Copy").click()
    page.keyboard.press("Escape")
    expect(step(page, "Copy the code")).to_contain_text("done")
    page.get_by_role("link", name="Open webhooks").click()
    newcomer.button("New webhook").click()
    newcomer.dialog().get_by_label("URL").fill("http://127.0.0.1:9/events")
    newcomer.dialog().get_by_role("button", name="Create").click()
    newcomer.button("I have saved it").click()
    newcomer.turn_to(f"/playground/{FILM}")
    expect(panel).to_contain_text("All done")
    assert newcomer.look() == []
    newcomer.button("Hide first steps").click()
    page.reload()
    expect(newcomer.button("Generate")).to_be_visible()
    expect(panel).to_have_count(0)


def test_an_account_is_shown_who_adds_vendors_and_the_administrator_where(open_tab: OpenTab, theatre: Theatre):
    account = theatre.stage.key(account="asks for vendors")
    for admin, words, link in [
        (None, "The server's administrator adds hosted vendors", "Sign in as admin"),
        (ADMIN_KEY, "Only the built-in engines and the simulator serve", "Open vendors"),
    ]:
        with open_tab(account=account, admin=admin) as found:
            serve_built_in(found.page)
            found.open(f"/playground/{FILM}")
            expect(step(found.page, "Add a vendor")).to_contain_text(words)
            step(found.page, "Add a vendor").get_by_role("link", name=link).click()
            heading = "Vendors" if admin else "This page needs the administrator's key"
            expect(found.page.get_by_role("heading", name=heading, level=1)).to_be_visible()


def test_the_first_page_is_where_the_built_in_engines_are_best(newcomer: Tab):
    serve_built_in(newcomer.page)
    newcomer.open()
    newcomer.page.wait_for_url(f"**/console/playground/{MODEL}")
    expect(newcomer.button("Use a sample picture")).to_be_visible()
    assert newcomer.look() == []


def test_the_sample_picture_is_used_like_a_chosen_file_and_outlives_a_reload(newcomer: Tab):
    page = newcomer.page
    newcomer.open(f"/playground/{MODEL}")
    newcomer.button("Use a sample picture").click()
    upload = page.get_by_alt_text("Your upload")
    expect(upload).to_be_visible()
    expect(page.get_by_text(re.compile("sample-vase.png · 512 . 512"))).to_be_visible()
    page.reload()
    expect(page.get_by_text(re.compile("sample-vase.png · 512 . 512"))).to_be_visible()
    page.wait_for_function("() => document.querySelector('[alt=\"Your upload\"]')?.naturalWidth === 512")
    newcomer.button("Show code").click()
    expect(newcomer.dialog()).to_contain_text("upload sample-vase.png")


# -- the other kind of key


def test_a_link_leads_to_the_admin_pages_and_back(open_tab: OpenTab, theatre: Theatre):
    with open_tab(account=theatre.account) as found:
        page = found.page
        found.open("/jobs")
        page.get_by_role("link", name="Sign in as admin", exact=True).click()
        expect(page.get_by_role("heading", name="This page needs the administrator's key")).to_be_visible()
        assert found.look() == []
        page.get_by_role("link", name="Back to the playground").click()
        expect(page.get_by_role("heading", name="Playground", level=1)).to_be_visible()
        page.get_by_role("link", name="Sign in as admin", exact=True).first.click()
        page.get_by_label("Key", exact=True).fill(ADMIN_KEY)
        found.button("Sign in").click()
        expect(page.get_by_role("heading", name="Keys", level=1)).to_be_visible()
        expect(page.get_by_role("link", name="Sign in as admin")).to_have_count(0)
        page.get_by_role("link", name="Playground").click()
        expect(page.get_by_role("heading", name="Playground", level=1)).to_be_visible()


def test_the_administrator_finds_the_way_to_an_accounts_pages(open_tab: OpenTab, theatre: Theatre):
    with open_tab(admin=ADMIN_KEY) as found:
        found.open()
        found.page.get_by_role("link", name="Use an account's key").click()
        found.page.get_by_label("Key", exact=True).fill(theatre.account)
        found.button("Sign in").click()
        expect(found.page.get_by_role("heading", name="Playground", level=1)).to_be_visible()


# -- what a page shows at once, and after a reload


def test_a_reload_keeps_the_thumbnails_of_films(newcomer: Tab, theatre: Theatre):
    page = newcomer.page
    newcomer.open(f"/playground/{FILM}")
    page.get_by_role("textbox", name="Prompt", exact=True).fill("A boat with a thumbnail")
    newcomer.button("Generate").click()
    expect(page.locator('[data-status="succeeded"]')).to_be_visible()
    shown = "() => document.querySelector('.thumb img')?.naturalWidth > 0"
    newcomer.turn_to("/jobs")
    page.wait_for_function(shown)
    page.route(re.compile(r"/api/v1/assets/.*\.mp4"), lambda route: route.fulfill(status=200, body=b""))
    page.reload()
    page.wait_for_function(shown)


# -- deliveries


class Receiver(BaseHTTPRequestHandler):
    """Refuses the first message, accepts the second."""

    answers: list[tuple[int, bytes]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        status, body = self.answers.pop(0)
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def receiver() -> Iterator[str]:
    Receiver.answers = [(500, b"The disk is full."), (200, b"Thank you.")]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/events"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_delivery_lists_each_attempt_with_its_time_and_its_answer(signed_in: Tab, theatre: Theatre, receiver: str):
    page = signed_in.page
    hook = theatre.call("POST", "/api/v1/webhooks", {"url": receiver})["id"]
    theatre.call("POST", f"/api/v1/webhooks/{hook}/ping")
    signed_in.open(f"/webhooks/{hook}")
    page.get_by_role("button", name="webhook.ping").first.click()
    attempts = page.get_by_label("Deliveries").get_by_role("list", name="Attempts").get_by_role("listitem")
    expect(attempts).to_have_count(1)
    expect(attempts.first).to_contain_text("answered 500")
    expect(attempts.first).to_contain_text("The disk is full.")
    signed_in.button("Redeliver").click()
    expect(attempts).to_have_count(2)
    expect(attempts.last).to_contain_text("answered 200")
    expect(attempts.last).to_contain_text("Thank you.")
    moments = [each.get_attribute("datetime") for each in attempts.locator("time").all()]
    assert moments == sorted(moments)
    assert len(set(moments)) == 2
    delivery = page.locator(".delivery-more")
    expect(delivery.get_by_role("region", name="Headers")).to_contain_text("webhook-id: ")
    expect(delivery.get_by_role("region", name="Body")).to_contain_text('"type": "webhook.ping"')
    assert signed_in.look() == []
