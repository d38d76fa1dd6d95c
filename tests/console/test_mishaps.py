"""The built console in a real Chromium when things go wrong: a hasty hand, a broken stream, a server that is away."""

from collections.abc import Callable
from pathlib import Path

import pytest
import small_media
from chromium import OpenTab, Tab
from console_stage import CHAT, FILM, MODEL, SLOW_CHAT, Theatre, picture
from playwright.sync_api import Route, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")


# -- the playground


def test_a_double_click_makes_one_job_and_a_press_after_it_another(signed_in: Tab):
    page, orders = signed_in.page, signed_in.orders
    signed_in.open(f"/playground/{FILM}")
    page.get_by_role("textbox", name="Prompt", exact=True).fill("A hasty hand")
    generate, cards = signed_in.button("Generate"), page.get_by_label("Results").locator("[aria-label^='Job ']")
    generate.evaluate("button => { button.click(); button.click(); }")
    expect(cards).to_have_count(1)
    assert len(orders) == 1
    while len(orders) == 1:  # as soon as it is no double-click any more
        generate.click()
        page.wait_for_timeout(200)
    expect(cards).to_have_count(2)
    assert len(set(orders)) == 2
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_answer_that_breaks_off_says_so_after_loading_it_again_too(signed_in: Tab, theatre: Theatre):
    signed_in.open(f"/playground/{CHAT}")
    theatre.double.queue.append("cut")
    answer = signed_in.say("It breaks off in the middle").locator('[data-role="assistant"]')
    expect(signed_in.page.get_by_role("alert")).to_be_visible()
    expect(answer).to_contain_text("cut off")
    signed_in.page.reload()
    expect(answer).to_contain_text("cut off")


def test_an_answer_that_is_left_by_loading_the_page_again_does_not_look_whole(signed_in: Tab):
    signed_in.open(f"/playground/{SLOW_CHAT}")
    answer = signed_in.say("Take your time").locator('[data-role="assistant"]')
    expect(answer).to_contain_text("Hello")
    signed_in.page.reload()
    expect(signed_in.button("Again")).to_be_visible()
    assert all("cut off" in each for each in answer.all_inner_texts())  # nothing of it may be left


def test_a_prompt_that_is_too_long_is_not_cut_and_says_by_how_much(open_tab: OpenTab, theatre: Theatre):
    with open_tab(400, account=theatre.account) as found:
        page, orders = found.page, found.orders
        found.open(f"/playground/{FILM}")
        prompt = page.get_by_role("textbox", name="Prompt", exact=True)
        prompt.focus()
        page.keyboard.insert_text("\N{WATER WAVE}" * 4000 + "a word too many")
        expect(prompt).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_text("15 characters too many; at most 4,000 are taken.")).to_be_visible()
        expect(page.get_by_text("One param is not valid.")).to_be_visible()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", scheme)
            assert found.look("color-contrast") == []
        with page.expect_response(lambda response: "idempotency-key" in response.request.headers):
            found.button("Generate").click()
        assert len(orders) == 1
        expect(page.get_by_label("Results").locator("[aria-label^='Job ']")).to_have_count(0)


def test_another_picture_takes_the_place_of_the_first(signed_in: Tab):
    page, chooser = signed_in.page, signed_in.page.get_by_label("Picture file")
    signed_in.open(f"/playground/{MODEL}")
    for name in ("first.png", "second.png"):
        chooser.set_input_files(picture(name))
        expect(page.get_by_text(name)).to_be_visible()
        expect(signed_in.button("Choose another")).to_be_visible()
    expect(page.get_by_text("first.png")).to_have_count(0)
    expect(page.get_by_label("Price")).to_be_visible()


def test_ctrl_and_enter_generate_after_an_example(signed_in: Tab):
    page = signed_in.page
    signed_in.open(f"/playground/{FILM}")
    signed_in.button("Fill in an example").click()
    expect(page.get_by_label("Price")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_label("Results").locator("[aria-label^='Job ']")).to_have_count(1)


def test_the_example_of_the_simulator_succeeds(signed_in: Tab):
    signed_in.open(f"/playground/{FILM}")
    signed_in.button("Fill in an example").click()
    signed_in.button("Generate").click()
    expect(signed_in.page.get_by_label("Results").get_by_label("Film")).to_be_visible()


def test_a_canceled_job_is_not_counted_as_failed(open_tab: OpenTab, theatre: Theatre):
    key = theatre.stage.key(account="ferry")
    order = {"model": FILM, "input": [{"params": {"prompt": "A ferry", "script": {"latency": 3600}}}]}
    job = theatre.call("POST", "/model/v1/generation", order, key)["id"]
    theatre.call("POST", f"/api/v1/jobs/{job}/cancel", key=key)
    while not theatre.call("GET", f"/api/v1/jobs/{job}?wait=30", key=key)["done"]:
        pass
    with open_tab(account=key) as found:
        found.open("/usage")
        failed = found.page.locator(".tile", has_text="Failed")
        expect(failed).to_contain_text("0")
        expect(found.page.locator(".tile", has_text="Jobs")).to_contain_text("1")


# -- signing in


@pytest.mark.parametrize("path", ["/keys", "/admin/keys"])
def test_a_page_of_the_administrator_says_whose_key_it_needs(signed_in: Tab, path: str):
    signed_in.open(path)
    expect(signed_in.page.get_by_role("heading", name="This page needs the administrator's key")).to_be_visible()


@pytest.mark.parametrize("text", ["\N{KEY}", "psk_\N{CYRILLIC SMALL LETTER KA}", "psk_000000000000000000_no\u200bbody"])
def test_what_cannot_be_a_key_is_told_in_plain_words(open_tab: OpenTab, text: str):
    with open_tab(401) as found:
        found.open()
        found.page.get_by_label("Key", exact=True).fill(text)
        found.button("Sign in").click()
        expect(found.page.get_by_role("alert")).to_contain_text("The key was not accepted")
        expect(found.page.get_by_role("alert")).not_to_contain_text("Headers")


# -- a server that is away


def is_code(name: str) -> Callable[[str], bool]:
    return lambda url: f"/assets/{name}-" in url and url.endswith(".js")


def loads_of(found: Tab) -> list[str]:
    """Every time that the console is loaded into the tab from now on."""
    loads: list[str] = []
    found.page.on("domcontentloaded", lambda page: loads.append(page.url))
    return loads


def test_a_page_that_could_not_be_fetched_appears_when_the_server_is_back(signed_in: Tab):
    page = signed_in.page
    signed_in.open("/jobs")
    signed_in.settled()
    loads = loads_of(signed_in)
    page.route("**", lambda route: route.abort("connectionrefused"))
    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("heading", name="The server does not answer", level=1)).to_be_visible()
    assert signed_in.look() == []
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/console")):
        signed_in.button("Try again").click()
    expect(page.get_by_role("heading", name="The server does not answer", level=1)).to_be_visible()
    page.unroute_all()
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
    assert page.url.endswith("/console/usage")
    assert len(loads) == 1
    assert not [each for each in signed_in.trouble if each.startswith("not caught")]
    signed_in.trouble.clear()


def test_a_page_of_an_older_build_says_that_there_is_a_newer(signed_in: Tab):
    page = signed_in.page
    signed_in.open("/jobs")
    signed_in.settled()
    loads = loads_of(signed_in)
    page.route(is_code("usage"), lambda route: route.fulfill(status=404))
    page.route("**/console", renew)
    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("heading", name="A new version is available", level=1)).to_be_visible()
    page.unroute_all()
    signed_in.button("Load again").click()
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
    assert len(loads) == 1
    signed_in.trouble.clear()


def renew(route: Route) -> None:
    """Give the page as another build has it."""
    route.fulfill(body=route.fetch().text().replace("/assets/index-", "/assets/index-newer-"))


def test_code_that_never_comes_is_tried_again_once(signed_in: Tab):
    page = signed_in.page
    signed_in.open("/jobs")
    signed_in.settled()
    loads = loads_of(signed_in)
    page.route(is_code("usage"), lambda route: route.abort())
    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("heading", name="This page could not be loaded", level=1)).to_be_visible()
    assert len(loads) == 1
    signed_in.trouble.clear()


def test_help_that_could_not_be_fetched_does_not_end_the_console(signed_in: Tab):
    page = signed_in.page
    signed_in.open("/jobs")
    signed_in.settled()
    page.route("**", lambda route: route.abort("connectionrefused"))
    signed_in.button("Keyboard shortcuts").click()
    expect(page.get_by_role("heading", name="The server does not answer", level=1)).to_be_visible()
    page.unroute_all()
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    signed_in.trouble.clear()


def test_a_large_file_is_sent_in_pieces_and_goes_on_after_a_mishap(open_tab: OpenTab, theatre: Theatre, tmp_path: Path):
    long = tmp_path / "long silence.wav"
    long.write_bytes(small_media.sound((33 << 20) / 16000))
    pieces: list[str] = []

    def refuse_second(route: Route) -> None:
        if route.request.method == "PATCH":
            pieces.append(route.request.headers["upload-offset"])
            if len(pieces) == 2:
                route.fulfill(status=503)
                return
        route.continue_()

    with open_tab(503, account=theatre.account) as found:
        found.page.route("**/api/v1/files/tus/*", refuse_second)
        found.open(f"/playground/{FILM}")
        field = found.page.get_by_role("group", name="Audio", exact=True)
        field.get_by_label("Sound file").set_input_files(long)
        expect(field.get_by_role("progressbar", name="Upload")).to_be_visible()
        expect(field.get_by_text("long silence.wav")).to_be_visible()
    assert pieces[0] == "0"
    assert "0" not in pieces[1:], "what had arrived was not sent again"
