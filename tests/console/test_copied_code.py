"""The code that the console shows, copied in a real Chromium and run: bash, Python and node, until the files arrive."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import av
import pytest
from chromium import SECONDS, OpenTab, Tab
from console_stage import CHAT, FILM, MODEL, Theatre, picture
from PIL import Image
from playwright.sync_api import Route, expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

JAVASCRIPT_CLIENTS = Path(__file__).parents[1] / "javascript" / "node_modules"
PROGRAMS = {
    "curl": ("program.sh", ["bash"]),
    "Command line": ("program.sh", ["bash"]),
    "Python": ("program.py", [sys.executable]),
    "JavaScript": ("program.mjs", ["node"]),
}
LANGUAGES = ("curl", "Python", "JavaScript")
HARD_PROMPT = """It's a "paper" boat for $HOME, `date` & 5 \\ 3"""
HARD_NAME = "Ann's vase; blue, 2.png"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(theatre: Theatre, tmp_path: Path) -> Run:
    """Run code of a language in a folder of its own, as a newcomer would."""

    def run(language: str, code: str, key: str | None = None) -> subprocess.CompletedProcess[str]:
        name, command = PROGRAMS[language]
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not here")
        (tmp_path / name).write_text(code, "utf-8")
        environ = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environ |= {"PENSTOCK_API_KEY": key or theatre.account, "PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8"}
        environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
        return subprocess.run(  # noqa: S603  what the console shows is what is tested
            [*command, name], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    return run


def copied(found: Tab, language: str, label: str = "Code") -> str:
    """Press *Copy* beside the code of this language; returns the clipboard."""
    page = found.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=found.origin)
    page.get_by_role("tablist", name=label).get_by_role("tab", name=language).click()
    panel = page.get_by_role("tabpanel", name=language)
    panel.get_by_role("button", name="Copy").click()
    expect(panel.get_by_role("button", name="Copied")).to_be_visible()
    return page.evaluate("() => navigator.clipboard.readText()")


def newest(theatre: Theatre) -> dict:
    return theatre.call("GET", "/api/v1/jobs?limit=1")["data"][0]


def opens_as_film(path: Path) -> bool:
    with av.open(str(path)) as film:
        return next(film.decode(video=0)).width > 0


def opens_as_model(path: Path) -> bool:
    head = path.read_bytes()
    return head[:4] == b"glTF" and int.from_bytes(head[8:12], "little") == len(head)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_film_is_made_by_the_copied_code(signed_in: Tab, theatre: Theatre, run: Run, tmp_path: Path, language: str):
    signed_in.open(f"/playground/{FILM}")
    signed_in.page.get_by_role("textbox", name="Prompt", exact=True).fill(HARD_PROMPT)
    signed_in.button("Show code").click()
    code = copied(signed_in, language)
    assert theatre.account not in code
    done = run(language, code)
    assert done.returncode == 0, done.stderr
    assert "Saved video.mp4" in done.stdout
    assert opens_as_film(tmp_path / "video.mp4")
    record = newest(theatre)
    assert record["id"] in done.stdout
    assert record["input"]["prompt"] == HARD_PROMPT


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_chosen_picture_becomes_a_model_by_the_copied_code(
    signed_in: Tab, theatre: Theatre, run: Run, tmp_path: Path, language: str
):
    chosen = picture(HARD_NAME)
    page = signed_in.page
    signed_in.open(f"/playground/{MODEL}")
    page.get_by_label("Picture file").set_input_files(chosen)
    expect(page.get_by_alt_text("Your upload")).to_be_visible()
    signed_in.button("Show code").click()
    code = copied(signed_in, language)
    assert "file_token" in code
    assert not re.search(r"file_[0-9a-z]{20}", code), "a token of an upload ends; the code uploads the file"
    missing = run(language, code)
    assert missing.returncode != 0
    assert HARD_NAME in missing.stderr
    (tmp_path / HARD_NAME).write_bytes(chosen["buffer"])
    done = run(language, code)
    assert done.returncode == 0, done.stderr
    assert opens_as_model(tmp_path / "model.glb")
    assert newest(theatre)["input"]["file"]["name"] == HARD_NAME


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_of_a_model_has_code_that_runs_as_it_is(signed_in: Tab, run: Run, tmp_path: Path, language: str):
    signed_in.open(f"/models/{MODEL}")
    done = run(language, copied(signed_in, language, "Example request"))
    assert done.returncode == 0, done.stderr
    assert opens_as_model(tmp_path / "model.glb")
    with Image.open(tmp_path / "sample-vase.png") as sample:
        assert sample.size == (512, 512)


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_of_a_job_has_code_that_downloads_it(
    signed_in: Tab, theatre: Theatre, run: Run, tmp_path: Path, language: str
):
    signed_in.open(f"/jobs/{theatre.order('A boat to fetch')}")
    signed_in.button("Show code").click()
    done = run(language, copied(signed_in, language))
    assert done.returncode == 0, done.stderr
    assert opens_as_film(tmp_path / "video.mp4")


DIALECTS = {
    "Chat Completions": "/llm/chat/completions",
    "Messages API": "/v1/messages",
    "Responses API": "/v1/responses",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_chat_answers_the_copied_code(signed_in: Tab, theatre: Theatre, run: Run, dialect: str):
    assert theatre.call("GET", f"/api/v1/models/{CHAT}")["endpoints"] == [*DIALECTS.values()]
    signed_in.open(f"/playground/{CHAT}")
    log = signed_in.say(HARD_PROMPT)
    expect(signed_in.button("Again")).to_be_visible()
    expect(log).to_contain_text("boat")
    signed_in.button("Show code").click()
    signed_in.page.get_by_role("radiogroup", name="Dialect").get_by_text(dialect, exact=True).click()
    for language in LANGUAGES:
        code = copied(signed_in, language)
        assert DIALECTS[dialect] in code or language == "Python"
        done = run(language, code)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("model", [FILM, CHAT])
def test_a_refusal_is_shown_in_the_servers_words(signed_in: Tab, run: Run, language: str, model: str):
    signed_in.open(f"/playground/{model}")
    signed_in.button("Show code").click()
    done = run(language, copied(signed_in, language), key="psk_000000000000000000_nobody")
    assert done.returncode != 0
    assert "Incorrect API key" in done.stderr


PIPELINE = {
    "steps": [
        {"name": "film", "model": FILM, "params": {"prompt": {"param": "prompt"}, "script": {"latency": 0}}},
        {
            "name": "each",
            "model": FILM,
            "for_each": ["a", "b"],
            "params": {
                "prompt": {"item": True},
                "video": {"step": "film"},
                "input_references": [{"param": "picture"}],
                "script": {"latency": 0},
            },
        },
    ],
    "on_error": "continue",
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_pipeline_with_a_file_is_run_by_the_copied_code(
    open_tab: OpenTab, theatre: Theatre, run: Run, tmp_path: Path, language: str
):
    chosen = picture(HARD_NAME)
    with open_tab(400, account=theatre.account) as found:  # while params are missing
        page = found.page
        found.open("/pipelines/new")
        page.get_by_role("textbox", name="Steps", exact=True).fill(json.dumps(PIPELINE))
        page.get_by_role("textbox", name="Prompt").fill(HARD_PROMPT)
        page.get_by_label("Picture file").set_input_files(chosen)
        expect(page.get_by_label("Price")).to_contain_text("3 jobs")
        found.button("Show code").click()
        code = copied(found, language)
    assert theatre.account not in code
    assert not re.search(r"file_[0-9a-z]{20}", code), "a token of an upload ends; the code uploads the file"
    (tmp_path / HARD_NAME).write_bytes(chosen["buffer"])
    done = run(language, code)
    assert done.returncode == 0, done.stderr
    made = theatre.call("GET", "/api/v1/pipelines?limit=1")["data"][0]
    assert (made["status"], made["params"]["prompt"], made["on_error"]) == ("succeeded", HARD_PROMPT, "continue")
    films = sorted(tmp_path.rglob("each*.mp4"))
    assert len(films) == 2, done.stdout
    assert all(map(opens_as_film, films))
    assert not [*tmp_path.rglob("film*.mp4")], "only results of the last steps are saved"


@pytest.mark.long
@pytest.mark.parametrize("language", PROGRAMS)
def test_a_failed_pipeline_is_reported_by_the_copied_code(signed_in: Tab, theatre: Theatre, run: Run, language: str):
    steps = [{"name": "film", "model": FILM, "params": {"prompt": "x", "script": {"latency": 0, "ending": "filtered"}}}]
    made = theatre.call("POST", "/api/v1/pipelines", {"steps": steps})["id"]
    signed_in.open(f"/pipelines/{made}")
    signed_in.button("Show code").click()
    done = run(language, copied(signed_in, language))
    assert done.returncode != 0
    assert "`film` failed" in done.stderr


CHATS = {"OpenAI": ("Python", "JavaScript"), "Anthropic": ("Python", "JavaScript"), "Vercel AI SDK": ("Chat",)}
MAKERS = {"Replicate": ("Python", "JavaScript"), "fal": ("JavaScript",)}


@pytest.fixture
def javascript_clients(tmp_path: Path) -> None:
    """Have the official clients where the copied code runs."""
    if JAVASCRIPT_CLIENTS.is_dir():
        (tmp_path / "node_modules").symlink_to(JAVASCRIPT_CLIENTS)


@pytest.mark.usefixtures("javascript_clients")
@pytest.mark.parametrize("client", [*CHATS, *MAKERS])
def test_a_client_works_by_the_copied_program(signed_in: Tab, run: Run, client: str):
    page = signed_in.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=signed_in.origin)
    signed_in.open("/connect")
    page.get_by_role("tab", name=client, exact=True).click()
    for use in (CHATS | MAKERS)[client]:
        card = page.get_by_role("region", name=f"{client}, {use}", exact=True)
        line = card.get_by_label(f"Changed line, {client}, {use}").inner_text()
        assert signed_in.origin in line
        card.get_by_text("Whole program").click()
        card.get_by_role("button", name="Copy").nth(1).click()
        program = page.evaluate("() => navigator.clipboard.readText()")
        assert line.strip() in program
        done = run("Python" if use == "Python" else "JavaScript", program)
        assert done.returncode == 0, done.stderr
        assert "/api/v1/assets/" in done.stdout if client in MAKERS else done.stdout.strip()


def test_a_film_is_made_by_openais_client(signed_in: Tab, run: Run, tmp_path: Path):
    page = signed_in.page
    signed_in.open("/connect")
    card = page.get_by_role("region", name="OpenAI, Pictures and films")
    card.get_by_text("Whole program").click()
    done = run("Python", card.get_by_label("Program, OpenAI, Pictures and films").inner_text())
    assert done.returncode == 0, done.stderr
    assert opens_as_film(tmp_path / "film.mp4")


@pytest.mark.usefixtures("javascript_clients")
@pytest.mark.parametrize(
    ("dialect", "language"),
    [("OpenAI Videos", "Python"), ("Replicate", "Python"), ("Replicate", "JavaScript"), ("fal", "JavaScript")],
)
def test_a_film_is_made_by_the_copied_code_of_another_client(
    signed_in: Tab, theatre: Theatre, run: Run, dialect: str, language: str
):
    signed_in.open(f"/playground/{FILM}")
    signed_in.page.get_by_role("textbox", name="Prompt", exact=True).fill(HARD_PROMPT)
    signed_in.button("Show code").click()
    signed_in.page.get_by_role("radiogroup", name="Dialect").get_by_text(dialect, exact=True).click()
    done = run(language, copied(signed_in, language))
    assert done.returncode == 0, done.stderr
    assert ".mp4" in done.stdout, "the name of the file or the link"
    record = newest(theatre)
    assert (record["status"], record["input"]["prompt"]) == ("succeeded", HARD_PROMPT)


def test_each_client_has_the_servers_own_address(signed_in: Tab):
    page = signed_in.page
    host = signed_in.origin.removeprefix("http://")
    places = {
        "OpenAI": f'"{signed_in.origin}/v1"',
        "Anthropic": f"ANTHROPIC_BASE_URL={signed_in.origin} ",
        "Replicate": f'"{signed_in.origin}/replicate"',
        "fal": f"FAL_QUEUE_RUN_HOST={host}/fal/queue",
        "Vercel AI SDK": f'"{signed_in.origin}/replicate/v1"',
        "MCP": f"claude mcp add --transport http penstock {signed_in.origin}/mcp",
    }
    signed_in.open("/connect")
    for client, place in places.items():
        page.get_by_role("tab", name=client, exact=True).click()
        expect(page.get_by_role("tabpanel", name=client, exact=True)).to_contain_text(place)
        assert signed_in.look() == []


def test_protocols_that_are_switched_off_are_not_shown(signed_in: Tab):
    def switch_off(route: Route) -> None:
        answer = route.fetch()
        models = answer.json()
        for model in models["data"]:
            model["endpoints"] = [path for path in model["endpoints"] if not path.startswith(("/fal", "/v1/videos"))]
        route.fulfill(response=answer, json=models)

    page = signed_in.page
    page.route("**/api/v1/models", switch_off)
    signed_in.open("/connect")
    expect(page.get_by_role("tab", name="Replicate", exact=True)).to_be_visible()
    expect(page.get_by_role("tab", name="fal", exact=True)).to_have_count(0)
    expect(page.get_by_role("region", name="OpenAI, Python", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="OpenAI, Pictures and films")).to_have_count(0)  # there are films only
    signed_in.open(f"/playground/{FILM}")
    signed_in.button("Show code").click()
    dialects = page.get_by_role("radiogroup", name="Dialect")
    expect(dialects).to_contain_text("Replicate")
    expect(dialects).not_to_contain_text("fal")
    expect(dialects).not_to_contain_text("OpenAI")
