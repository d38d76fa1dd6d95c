"""The code that the console shows, copied in a real Chromium and run: bash, Python and node, until the files arrive."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import av
import pytest
from chromium import SECONDS, Tab
from console_stage import CHAT, FILM, MODEL, Theatre, picture
from PIL import Image
from playwright.sync_api import expect

from penstock.web.console import FOLDER

pytest_plugins = ["console_fixtures"]
pytestmark = pytest.mark.skipif(not (FOLDER / "index.html").is_file(), reason="The console is not built: make console")

PROGRAMS = {
    "curl": ("program.sh", ["bash"]),
    "Python": ("program.py", [sys.executable]),
    "JavaScript": ("program.mjs", ["node"]),
}
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


@pytest.mark.parametrize("language", PROGRAMS)
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


@pytest.mark.parametrize("language", PROGRAMS)
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
@pytest.mark.parametrize("language", PROGRAMS)
def test_the_page_of_a_model_has_code_that_runs_as_it_is(signed_in: Tab, run: Run, tmp_path: Path, language: str):
    signed_in.open(f"/models/{MODEL}")
    done = run(language, copied(signed_in, language, "Example request"))
    assert done.returncode == 0, done.stderr
    assert opens_as_model(tmp_path / "model.glb")
    with Image.open(tmp_path / "sample-vase.png") as sample:
        assert sample.size == (512, 512)


@pytest.mark.long
@pytest.mark.parametrize("language", PROGRAMS)
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
    for language in PROGRAMS:
        code = copied(signed_in, language)
        assert DIALECTS[dialect] in code or language == "Python"
        done = run(language, code)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize("model", [FILM, CHAT])
def test_a_refusal_is_shown_in_the_servers_words(signed_in: Tab, run: Run, language: str, model: str):
    signed_in.open(f"/playground/{model}")
    signed_in.button("Show code").click()
    done = run(language, copied(signed_in, language), key="psk_000000000000000000_nobody")
    assert done.returncode != 0
    assert "Incorrect API key" in done.stderr
