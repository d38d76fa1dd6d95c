"""Takes the console's pictures: a server of its own with some work done, every page in light, dark and on a phone.

python tools/console/console_pictures.py [FOLDER]

Without a folder, those of docs are renewed. It needs the built console, the weights and a Chromium.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import browser as browsers
import httpx
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
ADMIN_KEY = "pictures-are-taken-with-this-key"
SETTINGS = f"""
[server]
port = 0
admin_key = "{ADMIN_KEY}"
[fetch]
allow_networks = ["127.0.0.0/8"]
[vendors.embedded]
type = "embedded"
[vendors.local]
type = "local"
[vendors.sim]
type = "sim"
[[models]]
id = "vendora_image_to_model"
vendor = "embedded"
price = {{per_job = "0.20"}}
[[models]]
id = "vendorb_video_31"
vendor = "embedded"
price = {{per_second = "0.05"}}
[[models]]
id = "smollm2-135m"
kind = "chat"
vendor = "local"
price = {{input_per_million = "0.10", output_per_million = "0.40"}}
[[models]]
id = "sim_text_to_video"
vendor = "sim"
price = {{per_job = "0.05"}}
"""
SOLIDS = ("sketch_1", "inflate_1", "turntable_1")
SETTINGS += "".join(f'[[models]]\nid = "{each}"\nvendor = "embedded"\n' for each in SOLIDS)
CHAT, MODEL, FILM, SIMULATED = "smollm2-135m", "vendora_image_to_model", "vendorb_video_31", "sim_text_to_video"
FILMS = ("A sailing boat on a calm sea at sunset", "A fox trots through a snowy forest at night")
STEPS = [
    {"name": "picture", "model": "sketch_1", "params": {"prompt": {"param": "prompt"}, "background": "transparent"}},
    {"name": "model", "model": "inflate_1", "params": {"image": {"step": "picture"}}},
    {"name": "film", "model": "turntable_1", "params": {"mesh": {"step": "model"}, "duration": 3}},
]
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390), "phone-dark": ("dark", 390)}
KEPT = {
    "playground-3d": ("light", "phone"),
    "playground-chat": ("light", "dark"),
    "jobs": ("light", "dark", "phone"),
    "job-3d": ("light",),
    "pipeline": ("light",),
    "compare": ("light",),
    "gallery": ("dark",),
    "usage": ("light",),
    "keys": ("light",),
    "first-vendor": ("light",),
    "vendor-form": ("light",),
    "vendor": ("light",),
    "settings-history": ("light",),
}
"""What docs show."""
PATIENCE_MS = 180_000


@dataclass
class Gateway:
    """A running server, spoken to with the key of an account or the administrator's."""

    url: str
    account: str

    def call(self, method: str, path: str, **options: Any) -> Any:
        """What the server answers."""
        key = ADMIN_KEY if path.startswith("/admin") else self.account
        headers = {"authorization": f"Bearer {key}"}
        response = httpx.request(method, self.url + path, headers=headers, timeout=90, trust_env=False, **options)
        response.raise_for_status()
        return response.json()

    def order(self, model: str, params: dict[str, Any], **extra: Any) -> str:
        """Begin a job; returns its id."""
        return self.call("POST", "/model/v1/generation", json={"model": model, "input": [{"params": params}], **extra})[
            "id"
        ]

    def finish(self, job: str) -> None:
        """Wait for a job's end."""
        while not self.call("GET", f"/api/v1/jobs/{job}?wait=60")["done"]:
            pass


@contextmanager
def serving(folder: Path) -> Iterator[Gateway]:
    """A server on a data folder of its own; its first start writes a key to a file."""
    config, log = folder / "penstock.toml", folder / "log"
    config.write_text(SETTINGS)
    command = [sys.executable, "-m", "penstock", "serve", "--config", str(config), "--data", str(folder / "data")]
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out)  # noqa: S603  our own server
    try:
        yield Gateway(*await_start(log, folder / "data" / "first-key", server))
    finally:
        server.terminate()
        server.wait(30)


def await_start(log: Path, first_key: Path, server: subprocess.Popen[bytes]) -> tuple[str, str]:
    """Its address and the first key."""
    give_up_at = time.monotonic() + 60
    while time.monotonic() < give_up_at and server.poll() is None:
        address = re.search(r"http://127\.0\.0\.1:[1-9]\d*", log.read_text())
        if address and first_key.is_file():
            return address[0], first_key.read_text().strip()
        time.sleep(0.1)
    sys.exit(f"The server did not start:\n{log.read_text()}")


def fill(gateway: Gateway) -> dict[str, str]:
    """Some of everything; returns the names that pages' addresses hold."""
    cat = {"file": (PICTURES / "cat.png").open("rb")}
    token = gateway.call("POST", "/api/v1/files", files=cat)["file_token"]
    picture = {"file": {"type": "png", "file_token": token}, "face_limit": 20_000}
    budget = [{"period": "month", "cap": "50.00"}]
    jobs = [gateway.order(FILM, {"prompt": prompt, "durationSeconds": 4}, client_ref="trailer-7") for prompt in FILMS]
    failing = {"prompt": "Something forbidden", "script": {"latency": 1, "ending": "filtered"}}
    lasting = {"prompt": "A lighthouse at dusk", "script": {"latency": 900}}
    names = {
        "model": gateway.order(MODEL, picture, client_ref="order-17", metadata={"shop": "toys"}),
        "film": jobs[0],
        "other film": jobs[1],
        "failed": gateway.order(SIMULATED, failing),
        "webhook": gateway.call("POST", "/api/v1/webhooks", json={"url": "http://127.0.0.1:9/penstock"})["id"],
    }
    for name in ("studio", "mill"):
        account = gateway.call("POST", "/admin/v1/accounts", json={"name": name, "budgets": budget})["id"]
        for purpose in ("website", "nightly batch"):
            wish = {"account": account, "name": purpose, "budgets": [{"period": "day", "cap": "5.00"}]}
            names |= {"account": account, "key": gateway.call("POST", "/admin/v1/keys", json=wish)["public_id"]}
    for question in ("What is the capital of Japan?", "Give me three reasons to read books."):
        body = {"model": CHAT, "messages": [{"role": "user", "content": question}], "max_tokens": 60}
        gateway.call("POST", "/llm/chat/completions", json=body)
    pipeline = {"params": {"prompt": "a red fox"}, "steps": STEPS}
    names["pipeline"] = gateway.call("POST", "/api/v1/pipelines", json=pipeline)["id"]
    while not gateway.call("GET", f"/api/v1/pipelines/{names['pipeline']}?wait=60")["done"]:
        pass
    for job in (*jobs, names["model"], names["failed"]):
        gateway.finish(job)
    gateway.call("POST", f"/api/v1/jobs/{names['model']}/shares", json={"expires_in": 604_800})
    gateway.order(SIMULATED, lasting)
    names["version"] = add_vendor(gateway)
    return names


def add_vendor(gateway: Gateway) -> str:
    """Add a vendor and change it once; returns the newest version."""
    table = {"type": "luma", "api_key": "luma-key-of-the-pictures"}
    film = {"vendor": "luma", "model": "ray-2", "kind": "video"}
    for base, part in enumerate(
        (
            {"vendors": {"luma": table}, "models": {"luma_text_to_video": film}, "note": "Films for the studio"},
            {"limits": {"jobs.max_waiting": 5000}, "note": "Half as many jobs may wait"},
        )
    ):
        made = gateway.call("PATCH", "/admin/v1/settings", json={"base_version": base, **part})
    return str(made["version"])


def paths(names: dict[str, str]) -> dict[str, str]:
    """The pages that only need to be opened."""
    return {
        "playground-video": f"/playground/{FILM}",
        "jobs": "/jobs",
        "pipelines": "/pipelines",
        "new-pipeline": "/pipelines/new",
        "pipeline": f"/pipelines/{names['pipeline']}",
        "gallery": "/gallery",
        "shared-links": "/shares",
        "compare": f"/compare?jobs={names['film']},{names['other film']}",
        "job-3d": f"/jobs/{names['model']}",
        "job-film": f"/jobs/{names['film']}",
        "job-failed": f"/jobs/{names['failed']}",
        "models": "/models",
        "model": f"/models/{MODEL}",
        "usage": "/usage",
        "webhooks": "/webhooks",
        "webhook": f"/webhooks/{names['webhook']}",
        "keys": "/admin/keys",
        "key": f"/admin/keys/{names['key']}",
        "accounts": "/admin/accounts",
        "account": f"/admin/accounts/{names['account']}",
        "people": "/admin/people",
        "budgets": "/admin/budgets",
        "ledger": "/admin/ledger",
        "all-usage": "/admin/usage",
        "vendors": "/admin/vendors",
        "first-vendor": "/admin/vendors/new",
        "vendor-form": "/admin/vendors/new/luma",
        "vendor": "/admin/vendors/luma",
        "model-routes": "/admin/routes",
        "prices": "/admin/prices",
        "settings-history": "/admin/settings",
        "settings-version": f"/admin/settings/{names['version']}",
        "audit": "/admin/audit",
    }


def show_chat(page: Page, url: str) -> None:
    page.goto(f"{url}/console/playground/{CHAT}")
    page.get_by_label("Max tokens").fill("90")
    page.get_by_role("textbox", name="Message").fill("What is the capital of Japan?")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Again", exact=True).wait_for()


def show_model(page: Page, url: str) -> None:
    page.goto(f"{url}/console/playground/{MODEL}")
    page.get_by_label("Picture file").set_input_files(PICTURES / "cat.png")
    page.get_by_label("Face limit").fill("20000")
    page.get_by_label("Price").get_by_text("$").wait_for()
    page.get_by_role("button", name="Generate", exact=True).click()
    page.locator('[data-standing="shown"]').wait_for()
    page.locator(".viewer").first.scroll_into_view_if_needed()


@contextmanager
def signed_in(browser: Browser, look: str, gateway: Gateway) -> Iterator[Page]:
    scheme, width = LOOKS[look]
    height = 844 if width < 400 else 800
    with browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme) as context:  # type: ignore[arg-type]
        keys = f"JSON.stringify({{account: '{gateway.account}', admin: '{ADMIN_KEY}'}})"
        context.add_init_script(
            f"sessionStorage.getItem('penstock.session') || sessionStorage.setItem('penstock.session', {keys})"
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        yield page


def take(browser: Browser, gateway: Gateway, names: dict[str, str], folder: Path, *, every: bool) -> None:
    wanted = {name: tuple(LOOKS) for name in ("playground-chat", "playground-3d", *paths(names), "sign-in")}
    for look in LOOKS:
        chosen = [name for name in (wanted if every else KEPT) if look in (wanted if every else KEPT)[name]]
        with signed_in(browser, look, gateway) as page:
            for name in chosen:
                visit(page, gateway.url, name, paths(names))
                save(page, folder / f"console-{name}-{look}.webp")


def visit(page: Page, url: str, name: str, known: dict[str, str]) -> None:
    """Open a page and wait until there is something to see; after the one for signing in, nobody is signed in."""
    if name == "sign-in":
        page.goto(f"{url}/console/")
        page.get_by_role("button", name="Sign out").or_(page.get_by_role("button", name="Menu")).first.wait_for()
        page.evaluate("() => sessionStorage.setItem('penstock.session', '{}')")
        page.reload()
    elif name == "playground-chat":
        show_chat(page, url)
    elif name == "playground-3d":
        show_model(page, url)
    else:
        page.goto(f"{url}/console{known[name]}")
    page.locator("h1").first.wait_for()
    page.get_by_label("Loading", exact=True).first.wait_for(state="hidden")
    if name == "job-3d":
        page.locator('[data-standing="shown"]').wait_for()
    page.wait_for_timeout(700)  # pictures inside the page, and movements, come to rest


def save(page: Page, path: Path) -> None:
    with Image.open(io.BytesIO(page.screenshot(animations="disabled"))) as picture:
        picture.convert("RGB").save(path, quality=88, method=6)
    print(path.name, f"{path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    found = browsers.fetch() or sys.exit("There is no Chromium.")
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["NO_PROXY"] = "*"
    with tempfile.TemporaryDirectory() as own, serving(Path(own)) as gateway, sync_playwright() as playwright:
        names = fill(gateway)
        browser = playwright.chromium.launch(executable_path=found, args=list(browsers.FLAGS))
        take(browser, gateway, names, folder, every=folder != PICTURES)
        browser.close()


if __name__ == "__main__":
    main()
