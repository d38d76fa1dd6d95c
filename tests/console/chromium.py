"""A tab of a real Chromium that writes down what a page complains of and asks for, and looks at it with axe."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

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

VIEWER = re.compile(r"/assets/viewer-[^/]*\.js$")
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
    refusals: frozenset[int] = frozenset()
    """Statuses that this test provokes: Chromium itself reports them as errors."""
    trouble: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.set_default_timeout(SECONDS * 1000)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.trouble.append(f"not caught: {error}"))
        self.page.on("request", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        told = message.text
        is_provoked = any(f"status of {status} " in told for status in self.refusals)
        if message.type in {"error", "warning"} and not is_provoked and not any(word in told for word in DRIVER_WORDS):
            self.trouble.append(f"{message.type}: {told}")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "blob:", "data:")):
            self.trouble.append(f"left the origin: {request.url}")

    def draw_in_3d(self) -> None:
        """Show models by the real viewer from now on."""
        self.page.context.unroute(VIEWER)

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


@contextmanager
def tab(
    browser: Browser, origin: str, *refusals: int, account: str | None = None, admin: str | None = None
) -> Iterator[Tab]:
    """A tab of its own with these keys signed in; at its end nothing may have gone wrong in it."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="light", reduced_motion="reduce", service_workers="block"
    )
    keys: dict[str, Any] = {"account": account, "admin": admin}
    if account or admin:
        context.add_init_script(f"({KEEP})({json.dumps(keys)})")
    context.route(VIEWER, lambda route: route.fulfill(content_type="text/javascript", body=STILL_VIEWER))
    found = Tab(context.new_page(), origin, frozenset(refusals))
    found.watch()
    try:
        yield found
        assert not found.trouble, found.trouble
    finally:
        context.close()


OpenTab = Callable[..., AbstractContextManager[Tab]]
"""`tab` in the Chromium and at the server of a file of tests."""
