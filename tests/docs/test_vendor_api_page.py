"""The page of the vendor API: it lists every public name, and its example package serves a job."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import vendors

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "vendor-api.md").read_text()
API = ROOT / "src" / "penstock" / "vendor_api"
MODULES = sorted(API.rglob("[!_]*.py"))


def public_names(path: Path) -> Iterator[str]:
    """Yield the names that a module defines, without those that begin with an underscore."""
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_public_name_is_listed(path):
    listed = set(re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE))
    names = {name for cell in listed for name in re.findall(r"`(\w+)", cell)}
    missing = [name for name in public_names(path) if not name.startswith("_") and name != "T" and name not in names]
    assert missing == [], "give it a row in docs/vendor-api.md, or an underscore"
    dotted = ".".join(path.relative_to(API).with_suffix("").parts)
    assert f"`penstock.vendor_api.{dotted}`" in PAGE or f"`{path.stem}`" in PAGE


def test_every_listed_name_is_there():
    tables = PAGE.partition("## `penstock.vendor_api.generation`")[2]
    cells = re.findall(r"^\| (`.+?) \|", tables, re.MULTILINE)
    known = {name for path in MODULES for name in public_names(path)}
    assert [name for cell in cells for name in re.findall(r"`(\w+)", cell) if name not in known] == []


def block(language: str, position: int = 0) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[position]


def forget_packages() -> None:
    for lookup in (vendors._outside, vendors.vendor_names, vendors.load_vendor):
        lookup.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package of the page, as an installer would lay it out."""
    site = tmp_path / "site"
    metadata = site / "penstock_swatch-1.0.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "penstock_swatch.py").write_text(block("python"))
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: penstock-swatch\nVersion: 1.0.0\n")
    point = re.search(r'^\[project\.entry-points\."(.+)"\]\n(\w+) = "(.+)"$', block("toml"), re.MULTILINE)
    assert point is not None
    (metadata / "entry_points.txt").write_text(f"[{point[1]}]\n{point[2]} = {point[3]}\n")
    monkeypatch.syspath_prepend(site)
    forget_packages()
    yield
    monkeypatch.undo()
    forget_packages()


@pytest.mark.usefixtures("package")
async def test_the_example_package_serves_a_job(start):
    server = await start(block("toml", 1))
    job = await server.generate("swatch", red=200)
    assert job["status"] == "succeeded", job
    (output,) = job["outputs"]
    assert (output["kind"], output["width"], output["height"]) == ("image", 128, 128)
