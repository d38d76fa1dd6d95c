"""Tabs of a real Chromium that write down what a page complains of and asks for, and look at it with axe."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import (
    Browser,
    CDPSession,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Request,
    ViewportSize,
    expect,
)

AXE = Path(__file__).parents[1] / "javascript" / "node_modules" / "axe-core" / "axe.min.js"
SECONDS = 200
"""How long anything may take to appear; a busy machine is no fault of the page."""
KEEP = "keys => { if (!sessionStorage.length) sessionStorage.setItem('penstock.session', JSON.stringify(keys)); }"
LOOK = """rules => axe.run(
    document, {resultTypes: ['violations'], preload: false, ...(rules && {runOnly: rules})}).then(found =>
    found.violations.filter(each => ['serious', 'critical'].includes(each.impact)).map(each =>
        `${each.id}: ${each.nodes.map(node => node.target.join(' ') + ' ' + node.failureSummary).join(' | ')}`))"""
STILL = """() => Promise.allSettled(
    document.getAnimations().filter(each => each instanceof CSSTransition).map(each => each.finished))"""
"""Colours on their way to others are no colours to judge."""
DRIVER_WORDS = ("GL Driver Message", "swiftshader", "rAF timed out")
"""What Chromium and the 3D viewer say of a machine without a graphics card, not of the page."""

VIEWER = "*/assets/viewer-*.js"
STILL_VIEWER = """class StillModel extends HTMLElement {
    loaded = true;
    connectedCallback() {
        Object.assign(this.style, {display: "block", height: "100%"});
    }
    addEventListener(type, ...rest) {
        super.addEventListener(type, ...rest);
        if (type === "load") queueMicrotask(() => this.dispatchEvent(new Event("load")));
    }
}
customElements.define("model-viewer", StillModel);
export const getCamera = () => ({theta: 0, phi: 0, distance: 1, lens: 1});
export const setCamera = () => {};
export const setWireframe = () => {};"""
"""A viewer that draws nothing. Without a graphics card, the real one takes a minute of both cores for each page."""

expect.set_options(timeout=SECONDS * 1000)


@dataclass
class Tab:
    """A page of the console."""

    page: Page
    origin: str
    stand_in: CDPSession
    """Gives the viewer that draws nothing, unless the real one is to draw."""
    refusals: frozenset[int] = frozenset()
    """Statuses that this test provokes: Chromium itself reports them as errors."""
    trouble: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    """The idempotency keys of the jobs that the tab has ordered."""
    is_drawing_in_3d: bool = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        listeners = {"console": self._hear, "pageerror": self._catch, "request": self._see}
        for event, listener in listeners.items():
            self.page.on(event, listener)  # type: ignore[arg-type]  # one name for each of its overloads
        yield
        for event, listener in listeners.items():
            self.page.remove_listener(event, listener)

    def _catch(self, error: Error) -> None:
        self.trouble.append(f"not caught: {error}")

    def _hear(self, message: ConsoleMessage) -> None:
        told = message.text
        is_provoked = any(f"status of {status} " in told for status in self.refusals)
        if message.type in {"error", "warning"} and not is_provoked and not any(word in told for word in DRIVER_WORDS):
            self.trouble.append(f"{message.type}: {told}")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "blob:", "data:")):
            self.trouble.append(f"left the origin: {request.url}")
        if request.method == "POST" and "idempotency-key" in request.headers:
            self.orders.append(request.headers["idempotency-key"])

    def draw_in_3d(self) -> None:
        """Show models by the real viewer from now on."""
        self.stand_in.send("Fetch.disable")
        self.is_drawing_in_3d = True

    def open(self, path: str = "") -> None:
        self.page.goto(f"{self.origin}/console{path}")

    def turn_to(self, path: str) -> None:
        """Go to another page as a link does, without loading the console again."""
        self.page.evaluate("path => history.pushState(null, '', path)", f"/console{path}")

    def settled(self) -> None:
        """Wait until the page shows what it is about."""
        expect(self.page.locator("h1, h2").first).to_be_visible()
        expect(self.page.get_by_label("Loading", exact=True)).to_have_count(0)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    def say(self, text: str) -> Locator:
        """Send a chat message; returns the log of the conversation."""
        self.page.get_by_role("textbox", name="Message").fill(text)
        self.page.keyboard.press("Enter")
        return self.page.get_by_role("log", name="Messages")

    def look(self, *rules: str) -> list[str]:
        """What axe finds serious or critical; by all of its rules, or by those named."""
        self.page.evaluate(STILL)
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(f"{AXE.read_text('utf-8')}; void 0")  # the page's policy does not hold for the protocol
        return self.page.evaluate(LOOK, list(rules) or None)


WINDOW: Final[ViewportSize] = {"width": 1280, "height": 800}


@dataclass
class Tabs:
    """Tabs for the pages of one server.

    A tab is one that was closed before, without what that has stored. So it need not fetch and compile the console
    again, which is most of the work of opening it.
    """

    browser: Browser
    origin: str
    free: list[tuple[Page, CDPSession]] = field(default_factory=list)

    @contextmanager
    def open(self, *refusals: int, account: str | None = None, admin: str | None = None) -> Iterator[Tab]:
        """Open a tab with these keys signed in; at its end nothing may have gone wrong in it."""
        page, stand_in = self.free.pop() if self.free else self._make()
        found = Tab(page, self.origin, stand_in, frozenset(refusals))
        keys = json.dumps({"account": account, "admin": admin})
        is_sound = False
        try:
            with page.add_init_script(f"({KEEP})({keys})" if account or admin else "void 0"), found.watching():
                yield found
                assert not found.trouble, found.trouble
            is_sound = not found.is_drawing_in_3d  # else the next one could find the real viewer in the cache
        finally:
            if is_sound:
                self._clear(page)
                self.free.append((page, stand_in))
            else:
                page.context.close()

    def _make(self) -> tuple[Page, CDPSession]:
        context = self.browser.new_context(service_workers="block")
        page = context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        stand_in = draw_nothing_in_3d(page)
        self._clear(page)
        return page, stand_in

    def _clear(self, page: Page) -> None:
        """Forget all that the tests have changed."""
        for other in page.context.pages:
            if other is not page:
                other.close()
        page.unroute_all()
        page.goto(f"{self.origin}/console/mark.svg")  # has the console's storage, and no script
        page.evaluate("() => { sessionStorage.clear(); localStorage.clear(); }")
        page.context.clear_cookies()
        page.context.clear_permissions()
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.set_viewport_size(WINDOW)
        page.mouse.move(0, 0)


def draw_nothing_in_3d(page: Page) -> CDPSession:
    """Show models by a viewer that draws nothing; no `route`, which would keep Chromium from using its cache."""
    session = page.context.new_cdp_session(page)
    answer = {
        "responseCode": 200,
        "responseHeaders": [
            {"name": "content-type", "value": "text/javascript"},
            {"name": "cache-control", "value": "no-store"},
        ],
        "body": base64.b64encode(STILL_VIEWER.encode()).decode(),
    }

    def fulfill(event: dict[str, Any]) -> None:
        session.send("Fetch.fulfillRequest", {"requestId": event["requestId"], **answer})

    session.on("Fetch.requestPaused", fulfill)
    session.send("Fetch.enable", {"patterns": [{"urlPattern": VIEWER}]})
    return session


OpenTab = Callable[..., AbstractContextManager[Tab]]
"""`Tabs.open` in the Chromium and at the server of a file of tests."""
