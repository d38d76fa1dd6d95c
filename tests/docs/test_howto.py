"""What the quickstart and the how-tos tell a reader to run is run, as it stands there."""

import asyncio
import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from openai_double import KEY, OpenAIDouble
from openai_replies import GREETING
from ports import free_port
from typer.main import get_command

from penstock.cli.main import app

ROOT = Path(__file__).parents[2]
HOME = "http://127.0.0.1:8787"
HOWTOS = sorted(
    path.stem for path in (ROOT / "docs" / "howto").glob("*.md") if path.stem not in ("add-a-vendor", "index")
)
pytestmark = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs bash and curl")


def blocks(page: str, language: str = "sh") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)


def write_files(page: str, folder: Path) -> None:
    """The files that a page shows, each after its name."""
    text = (ROOT / "docs" / page).read_text()
    for name, content in re.findall(r"`([\w.-]+\.\w+)`[^`\n]*:\n\n```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        (folder / name).write_text(content)


async def run(folder: Path, script: str, **environment: str) -> str:
    """What the lines print; `penstock` and `pytest` are there as a reader has them."""
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    for name in ("penstock", "pytest"):
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
        command.chmod(0o755)
    kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH", "PENSTOCK_WEIGHTS") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        cwd=folder,
        env={
            "PATH": f"{commands}:{os.environ['PATH']}",
            "no_proxy": "*",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **kept,
            **environment,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, f"{script}\n{out.decode()}\n{err.decode()}"
    return out.decode()


def with_double(url: str) -> str:
    """Settings by which what the pages name is served by the simulator and a double of a chat vendor."""
    models = ("vendora_image_to_model", "vendorb_video_31", "sim_text_to_video", "good-chat", "smollm2-135m")
    settings = ['[vendors.sim]\ntype = "sim"\nscript = {latency = 0.05}\npoll_seconds = 0.05']
    settings += [f'[vendors.double]\ntype = "openai_compatible"\napi_key = "{KEY}"\nbase_url = "{url}"']
    for model in models:
        chat = 'kind = "chat"\nvendor = "double"\nmodel = "plain"' if "-" in model else 'vendor = "sim"'
        settings.append(f'[[models]]\nid = "{model}"\n{chat}')
    return "\n".join(settings)


@pytest.fixture
async def double() -> AsyncIterator[OpenAIDouble]:
    async with OpenAIDouble() as double:
        yield double


async def test_the_quickstart(start, double, tmp_path):
    """With doubles in the place of the engines; tools/docs/follow_quickstart.py follows it to the letter."""
    server = await start(with_double(double.url))
    started, export, *rest = blocks("quickstart.md")
    assert started == "make run\n"
    lines = [export.partition("\n")[2], *(block for block in rest if "pip install" not in block)]
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "pictures" / "cat.png", tmp_path / "docs" / "pictures")
    write_files("quickstart.md", tmp_path)
    chat = (tmp_path / "chat.py").read_text()
    (tmp_path / "chat.py").write_text(chat.replace(HOME, server.url))
    script = "\n".join(lines).replace(HOME, server.url).replace(".venv/bin/python", sys.executable)
    script = script.replace(".venv/bin/penstock", "penstock")
    out = await run(tmp_path, script, PENSTOCK_API_KEY=await server.new_key(), PENSTOCK_BASE_URL=server.url)
    assert out.startswith("succeeded\nevent: job.queued\n")
    films, _, words = out.partition("event: job.succeeded\n")
    assert "event: job.started" in films
    assert words.startswith(f"{GREETING}\nsmall-cat.glb\n")
    assert words.count(GREETING) == 2
    assert words.count("succeeded") == 3
    for name in ("cat.glb", "small-cat.glb"):
        assert (tmp_path / name).read_bytes()[:4] == b"glTF"
    for name in ("boat.mp4", "fox.mp4"):
        assert (tmp_path / name).read_bytes()[4:8] == b"ftyp"


async def test_the_requests_of_the_howtos(start, double, tmp_path):
    server = await start(with_double(double.url))
    key = await server.new_key()
    told = {}
    for page in HOWTOS:
        lines = [block for block in blocks(f"howto/{page}.md") if "curl" in block and "penstock " not in block]
        told[page] = await run(tmp_path, "\n".join(lines).replace(HOME, server.url), PENSTOCK_API_KEY=key)
    assert json.loads(told["test-your-app"])["error"]["code"] == "content_filtered"
    assert '"secret":"whsec_' in told["receive-webhooks"]
    assert told["team-budgets"].startswith("day,model,")
    assert '"status":"queued"' in told["move-from-fal"]
    assert '"status":"succeeded"' in told["move-from-replicate"]
    assert '"finish_reason":' in told["move-from-litellm"]


def test_the_commands_of_the_howtos_are_ones_that_there_are():
    """Parsed as the command line would, and not carried out."""
    words = r"^(?:\w+=\$\(|\$ )?penstock (.+?)\)?(?: *[#>&].*)?$"
    lines = [
        line
        for page in HOWTOS
        for block in blocks(f"howto/{page}.md")
        for line in re.findall(words, block, re.MULTILINE)
    ]
    assert len(lines) > 12
    for line in lines:
        command, rest = get_command(app), shlex.split(line)
        while hasattr(command, "commands"):
            command = command.commands[rest.pop(0)]
        command.make_context(line, rest)


@pytest.mark.long
async def test_the_commands_of_the_howtos(start, double, tmp_path):
    """All on one store, one page after the other, as somebody might who reads them all."""
    server = await start(with_double(double.url))
    here = {
        "PENSTOCK_DATA": str(server.gateway.settings.data),
        "PENSTOCK_CONFIG": str(tmp_path / "penstock.toml"),
        "PENSTOCK_SERVER_PORT": str(free_port()),
    }
    told = {}
    for page in ("team-budgets", "operate", "move-from-litellm"):
        lines = [block for block in blocks(f"howto/{page}.md") if "pip install" not in block and "curl" not in block]
        told[page] = await run(tmp_path, "\n".join(lines), **here)
    assert "key.revoked" in told["team-budgets"]
    assert "The books are right" in told["operate"]
    with closing(sqlite3.connect(tmp_path / "backup" / "penstock.db")) as backup:
        assert backup.execute("SELECT count(*) FROM keys").fetchone()[0] > 3
    assert (tmp_path / "backup" / "assets").is_dir()


async def test_the_tests_of_the_page_about_tests(start, double, tmp_path):
    """Against a server that is there already."""
    server = await start(with_double(double.url))
    write_files("howto/test-your-app.md", tmp_path)
    key = await server.new_key()
    fixture = f"""
        import pytest
        @pytest.fixture
        def penstock():
            return {server.url!r}, {key!r}
        """
    (tmp_path / "conftest.py").write_text(textwrap.dedent(fixture))
    script = "node --test app.test.mjs & pytest -q -p no:cacheprovider && wait $!"
    out = await run(tmp_path, script, PENSTOCK_BASE_URL=server.url, PENSTOCK_API_KEY=key)
    assert re.search(r"^5 passed", out, re.MULTILINE), out
    assert re.search(r"pass 2$", out, re.MULTILINE), out


@pytest.mark.long
@pytest.mark.parametrize(("runner", "port"), [("pytest", "8790"), ("node", "8791")])
async def test_the_tests_of_the_page_about_tests_with_their_own_server(tmp_path, runner, port):
    write_files("howto/test-your-app.md", tmp_path)
    (script,) = [block for block in blocks("howto/test-your-app.md") if f"{runner} -" in block]
    here = str(free_port())
    conftest = (tmp_path / "conftest.py").read_text()
    (tmp_path / "conftest.py").write_text(conftest.replace(port, here))
    out = await run(tmp_path, script.replace(port, here))
    assert re.search(r"^5 passed|pass 2$", out, re.MULTILINE), out
