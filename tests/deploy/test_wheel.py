"""Builds the wheel and installs parts of it: the gateway without the engines, and the engines without the gateway."""

import asyncio
import json
import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from chat_steps import HELLO, settings_of
from conftest import VIDEO, client_of
from openai_double import OpenAIDouble
from ports import free_port

ROOT = Path(__file__).parents[2]
PACKAGES = ("penstock", "penstock_engines", "penstock_sandbox")
DATA_FILES = (
    *(f"{package}/py.typed" for package in PACKAGES),
    "penstock/client/viewer.js",
    "penstock/web/openapi/reference.css",
    "penstock/web/openapi/reference.js",
    "penstock_engines/weights.toml",
    "penstock_engines/cinema/prompt/languages.toml",
)
IMPORT_ENGINES = """
import importlib, pkgutil, sys, penstock_engines
for module in pkgutil.walk_packages(penstock_engines.__path__, "penstock_engines."):
    if not module.name.startswith("penstock_engines.vendors"):
        importlib.import_module(module.name)
print(sum(name.startswith("penstock_engines.") for name in sys.modules), "penstock" in sys.modules)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a release has it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=500)  # noqa: S603  our own words
    [path] = folder.glob("*.whl")
    return path


def install(wheel: Path, folder: Path, *, without: str) -> Path:
    """Install the wheel without one of its packages, and return the interpreter.

    A `.pth` file lends it the libraries of this environment. The `.pth` files among those are not read, so the
    editable install of this checkout is out of sight.
    """
    venv.create(folder, symlinks=True)
    [libraries] = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(libraries)
    shutil.rmtree(libraries / without)
    if without == "penstock_engines":
        [points] = libraries.glob("penstock-*.dist-info/entry_points.txt")
        points.write_text(points.read_text().partition("[penstock.vendors]")[0])
    (libraries / "lent.pth").write_text("\n".join(site.getsitepackages()))
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def gateway_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("gateway") / "venv", without="penstock_engines")


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", "PYTHON"))}


def run(python: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [python, "-P", *words]
    return subprocess.run(  # noqa: S603  our own words
        command, check=False, capture_output=True, text=True, timeout=500, env=environment()
    )


def test_the_wheel_has_every_package_with_its_data_and_entry_points(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [points] = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        entry_points = archive.read(points).decode()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    assert names.issuperset(DATA_FILES)
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert sources <= names
    for line in (
        "penstock = penstock.cli.main:app",
        "embedded = penstock_engines.vendors.embedded:VENDOR",
        "local = penstock_engines.vendors.local:VENDOR",
    ):
        assert line in entry_points.splitlines()


def test_engines_import_without_the_gateway(wheel: Path, tmp_path: Path):
    python = install(wheel, tmp_path / "venv", without="penstock")
    done = run(python, "-c", IMPORT_ENGINES)
    assert done.returncode == 0, done.stderr
    count, has_gateway = done.stdout.split()
    assert int(count) > 100
    assert has_gateway == "False"


@asynccontextmanager
async def serving(python: Path, data: Path, config: Path) -> AsyncGenerator[tuple[httpx.AsyncClient, str]]:
    """Yield a client of `penstock serve`, and the lines that the server printed."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        python, "-P", "-m", "penstock", "serve", "--port", str(port), "--data", data, "--config", config,
        env=environment(), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = ""
        async with asyncio.timeout(300):
            while "first API key is in" not in lines:
                line = await process.stdout.readline()
                assert line, f"the server ended: {lines}"
                lines += line.decode()
        async with client_of(f"http://127.0.0.1:{port}", (data / "first-key").read_text().strip()) as client:
            yield client, lines
    finally:
        process.kill()
        await process.wait()


async def test_without_the_engines_every_configured_vendor_serves(gateway_python: Path, tmp_path: Path):
    assert run(gateway_python, "-c", "import penstock_engines").returncode == 1, "the engines are in sight"
    config = tmp_path / "penstock.toml"
    async with OpenAIDouble() as upstream:
        config.write_text(
            settings_of(upstream, ["plain"], more='[vendors.sim]\ntype = "sim"\n')
            + f'\n[[models]]\nid = "{VIDEO}"\nvendor = "sim"\n'
        )
        async with serving(gateway_python, tmp_path / "data", config) as (client, _lines):
            answer = await client.post("/llm/chat/completions", json={"model": "plain", "messages": HELLO})
            assert answer.status_code == 200, answer.text
            assert len(upstream.requests) == 1
            body = {"model": VIDEO, "input": [{"params": {"script": {"latency": 0.05}}}]}
            job = (await client.post("/model/v1/generation", json=body)).json()
            record = (await client.get(f"/api/v1/jobs/{job['id']}", params={"wait": 60})).json()
            assert record["status"] == "succeeded", record


async def test_without_engines_and_vendors_the_simulator_serves(gateway_python: Path, tmp_path: Path):
    config = tmp_path / "penstock.toml"
    config.write_text("")
    async with serving(gateway_python, tmp_path / "data", config) as (client, lines):
        assert "no vendor is configured: the simulator serves" in lines
        assert "penstock models pull" not in lines
        models = (await client.get("/api/v1/models")).json()
        assert VIDEO in {model["id"] for model in models["data"]}


def test_commands_say_that_the_engines_are_not_installed(gateway_python: Path, tmp_path: Path):
    config = tmp_path / "penstock.toml"
    config.write_text("")

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return run(gateway_python, "-m", "penstock", *words, "--data", tmp_path / "data", "--config", config)

    checks = {check["check"]: check for check in json.loads(command("doctor", "--json").stdout)["checks"]}
    assert checks["vendors"]["message"] == "none is configured: the simulator serves"
    assert checks["engines"]["message"].startswith("not installed")
    assert "weights" not in checks
    listed = command("models", "list", "--json")
    assert VIDEO in {model["id"] for model in json.loads(listed.stdout)}
    for options, code in (([], 1), (["--list"], 1), (["--optional"], 0)):
        pulled = command("models", "pull", *options)
        assert pulled.returncode == code
        assert "The built-in engines are not installed" in pulled.stderr
    assert command("models", "pull", "--optional", "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ("[vendors.embedded]\nseats = 1\n", ":1 [vendors.embedded] type"),
        ('[[models]]\nid = "vendorb_video_31"\nvendor = "embedded"\n', ":2 [[models]] 1 id"),
        ('[[models]]\nid = "small"\nkind = "chat"\nvendor = "local"\n', ":2 [[models]] 1 id"),
    ],
)
def test_settings_that_need_the_engines_are_refused(gateway_python: Path, tmp_path: Path, settings: str, where: str):
    config = tmp_path / "penstock.toml"
    config.write_text(settings)
    listed = run(gateway_python, "-m", "penstock", "models", "list", "--config", config, "--data", tmp_path / "data")
    assert listed.returncode == 2
    assert where in listed.stderr
    assert "belongs to the built-in engines: they are not installed" in listed.stderr
    assert "Traceback" not in listed.stderr
