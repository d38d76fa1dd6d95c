"""The docs as a site: every page has a place, links hold, what comes from code is as the code, and the checker sees."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docs_site
import drawings
import pytest
import reference_pages

ROOT = Path(__file__).parents[2]
SITE = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


def listed(entries: Any) -> Iterator[str]:
    """Every page that the navigation names."""
    match entries:
        case str():
            yield entries
        case list():
            for entry in entries:
                yield from listed(entry)
        case dict():
            yield from listed(list(entries.values()))


def test_every_page_has_one_place_in_the_navigation():
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    pages = {name for name in pages if not name.startswith("decisions/")} | set(docs_site.BESIDE.values())
    found = list(listed(SITE["nav"]))
    assert sorted(found) == sorted(pages | {docs_site.LIST}), "give it a place in `nav` of zensical.toml"


def test_pages_are_gathered_with_links_that_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(docs_site, "PAGES", tmp_path)
    docs_site.gather()
    for path in tmp_path.rglob("*.md"):
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            assert "://" in target or (path.parent / target).is_file(), f"{path.name}: {target}"
    assert "0001-job-row-is-the-truth.md" in (tmp_path / docs_site.LIST).read_text()


def test_nothing_is_asked_of_another_host():
    assert SITE["theme"]["font"] is False
    for path in (ROOT / "docs").rglob("*.md"):
        text = path.read_text()
        assert "```mermaid" not in text, f"{path.name}: a page would load it from elsewhere; draw an SVG"
        assert not re.search(r"!\[[^]]*\]\(https?:|<(img|script|iframe)\b", text), path.name
    for path in (ROOT / "docs" / "pictures").glob("*.svg"):
        assert not re.search(r"(href|src)=\"?https?:|@import|url\(http", path.read_text()), path.name


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ('<a href="b.html#there">', ""),
        ('<a href="https://example.com/x"> <img src="data:image/png;base64,AA==">', ""),
        ('<a href="c.html">', "a.html: c.html is not there"),
        ('<a href="b.html#gone">', "a.html: b.html#gone has no such heading"),
        ('<a href="#gone">', "a.html: #gone has no such heading"),
        ('<img src="cat.png">', "a.html: cat.png is not there"),
        ('<script src="https://unpkg.com/x"></script>', "a.html: loads https://unpkg.com/x"),
        ('<link href="//fonts.example.com/x">', "a.html: loads //fonts.example.com/x"),
    ],
)
def test_the_checker_sees_what_is_wrong(tmp_path, monkeypatch, page, problem):
    monkeypatch.setattr(docs_site, "SITE", tmp_path)
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "b.html").write_text('<h2 id="there">')
    assert docs_site.check() == [problem] * bool(problem)


# -- pages and pictures that come from code


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_the_drawings_are_drawn(name):
    assert (drawings.PICTURES / name).read_text() == drawings.DRAWINGS[name](), "python tools/docs/drawings.py"


def test_the_page_of_models_is_drawn_from_the_code():
    assert (ROOT / "docs" / "models.md").read_text() == reference_pages.draw_models(), (
        "python tools/docs/reference_pages.py"
    )


async def test_the_page_of_endpoints_is_drawn_from_the_code(server):
    document = (await server.client.get("/openapi.json")).json()
    drawn = reference_pages.draw_endpoints(document)
    assert (ROOT / "docs" / "roles.md").read_text() == reference_pages.draw_roles(), (
        "python tools/docs/reference_pages.py"
    )
    assert (ROOT / "docs" / "endpoints.md").read_text() == drawn, "python tools/docs/reference_pages.py"


def test_the_architecture_lists_every_package_in_the_order_of_imports():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    tiers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    packages = [name for tier in tiers for name in tier.split(" | ") if name != "__main__"]
    text = (ROOT / "docs" / "architecture.md").read_text().partition("## Packages")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == packages


def test_the_architecture_names_files_and_functions_that_are_there():
    sources = ROOT / "src" / "penstock"
    text = (ROOT / "docs" / "architecture.md").read_text()
    files = set(re.findall(r"`((?:\w+/)*\w+\.py)`", text))
    assert len(files) > 20
    assert [name for name in files if not (sources / name).is_file()] == []
    steps = re.findall(r"^\| \d+ \| `([\w/.]+)` \| `(\w+)` \|", text, re.MULTILINE)
    assert len(steps) > 30
    for file, name in steps:
        found = re.search(
            rf"^ *(?:(?:async )?def|class) {name}\b|^{name}\b", (sources / file).read_text(), re.MULTILINE
        )
        assert found, f"{file} has no `{name}`"
