"""`make new-vendor`: what it writes is a whole vendor, found, served and tested without a change to anything else."""

import asyncio
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "add-a-vendor.md"
BUILT_IN = {"__init__.py", "embedded.py", "local.py", "sim.py"}
VENDOR, DOUBLE = Path("src/penstock/vendors/acme.py"), Path("tests/doubles/acme.py")
PLUGINS = ("-p", "pytest_asyncio.plugin", "-p", "pytest_timeout", "-p", "no:cacheprovider")


def copy(root: Path) -> None:
    """The project as far as a vendor and its tests need it, with no vendor but those that are built in."""
    for name in ("src", "tests/client", "tests/doubles", "tests/store", "tests/support", "tests/vendors"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("pyproject.toml", *(path.relative_to(ROOT) for path in (ROOT / "tests").glob("*.py"))):
        shutil.copy(ROOT / name, root / name)
    others = [path for path in (root / "src/penstock/vendors").glob("*.py") if path.name not in BUILT_IN]
    for path in (*others, *(root / "tests/doubles").glob("*.py")):
        if path.name != "media.py":
            path.unlink()


def shown(language: str) -> list[str]:
    """What the page shows."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def digests(root: Path) -> dict[Path, str]:
    """Every file of the tree, by what is in it."""
    files = [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(root): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def run(root: Path, *words: str) -> tuple[int | None, str]:
    """The exit code of a Python command in this tree, and all that it printed."""
    own = {"PYTHONPATH": str(root / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        cwd=root,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | own,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode, out.decode()


async def begin(root: Path, name: str = "acme") -> tuple[int | None, str]:
    return await run(root, str(ROOT / "tools" / "vendors" / "new_vendor.py"), name, "--root", str(root))


@pytest.fixture
async def tree(tmp_path):
    """A copy of the project in which a vendor was begun."""
    await asyncio.to_thread(copy, tmp_path)
    before = digests(tmp_path)
    code, out = await begin(tmp_path)
    assert code == 0, out
    after = digests(tmp_path)
    assert after.keys() - before.keys() == {VENDOR, DOUBLE}
    assert {path: after[path] for path in before} == before, "nothing else is changed"
    return tmp_path


async def test_a_new_vendor_passes_the_suite_as_it_is(tree):
    """It is found by its name and runs jobs of a whole gateway, against its double."""
    chosen = "acme and (happy or ending or answer_lost or busy or vendor_is_what)"
    suite = ("tests/vendors/test_media_contract.py", "tests/vendors/test_contract.py")
    code, out = await run(tree, "-m", "pytest", *PLUGINS, "-q", *suite, "-k", chosen)
    assert code == 0, out
    assert re.search(r"^13 passed", out, re.MULTILINE), out


@pytest.mark.long
async def test_its_file_alone_is_enough(tree):
    """Without a double it is served all the same, and held to the contract."""
    (tree / DOUBLE).unlink()
    code, out = await run(tree, "-m", "pytest", *PLUGINS, "-q", "tests/vendors/test_contract.py", "-k", "acme or every")
    assert code == 0, out
    assert re.search(r"^\d\d passed", out, re.MULTILINE), out
    (settings,) = shown("toml")
    (tree / "penstock.toml").write_text(settings.replace("env:ACME_API_KEY", "k"))
    code, out = await run(
        tree, "-m", "penstock", "models", "list", "--config", "penstock.toml", "--data", "data", "--json"
    )
    assert code == 0, out
    assert re.search(r'"vendorb_video_31".*?"vendors": \[\s*"acme"', out, re.DOTALL), out


async def test_it_is_as_clean_as_the_rest(tree):
    for command in (("ruff", "check"), ("ruff", "format", "--check")):
        code, out = await run(tree, "-m", *command, "--no-cache", str(VENDOR), str(DOUBLE))
        assert code == 0, out
    code, out = await run(tree, "-m", "pyright", "--pythonpath", sys.executable, str(VENDOR))
    assert code == 0, out


def test_the_page_shows_what_is_written():
    assert shown("python")[0] == (ROOT / "tools" / "vendors" / "vendor_template" / "vendor.py.txt").read_text()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project for commands that change nothing."""
    root = tmp_path_factory.mktemp("untouched")
    copy(root)
    return root


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Acme", "small letters"),
        ("2nd", "beginning with a letter"),
        ("../acme", "small letters"),
        ("class", "Python's own"),
        ("call", "its class would be `Call`"),
        ("sim", "src/penstock/vendors/sim.py is there already"),
        ("media", "tests/doubles/media.py is there already"),
    ],
)
async def test_a_name_that_cannot_be_is_refused(untouched, name, reason):
    before = digests(untouched)
    code, out = await begin(untouched, name)
    assert code == 1
    assert reason in out
    assert digests(untouched) == before


async def test_a_folder_that_is_not_the_project_is_refused(tmp_path):
    code, out = await begin(tmp_path)
    assert code == 1
    assert "does not hold the project" in out
    assert list(tmp_path.iterdir()) == []
