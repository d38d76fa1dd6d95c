"""Builds the docs as a site in site/, and checks it: `make docs`.

python tools/docs/docs_site.py
"""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]
DOCS, PAGES, SITE = ROOT / "docs", ROOT / "build" / "pages", ROOT / "site"
BESIDE = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages of the site that lie beside docs/."""
LIST = "decisions/list.md"
"""What stands in the site for a link to the folder of decisions."""
SHIM = "https://unpkg.com/iframe-worker/shim"
"""What Zensical has every page load from elsewhere, for search in pages that are opened as files."""
OWN_SHIM = Path(__file__).parent / "file_worker.js"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
LOADS = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src", "video": "src"}


# -- gathering


def gather() -> None:
    """Every page of the site into one folder, with links that hold there."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for path in sorted(DOCS.rglob("*")):
        if path.suffix in (".css", ".json", ".md", ".png", ".svg", ".webp"):
            target = PAGES / path.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(move_links(path).encode() if path.suffix == ".md" else path.read_bytes())
    for name, moved in BESIDE.items():
        (PAGES / moved).write_text(move_links(ROOT / name))
    (PAGES / LIST).write_text(list_decisions())


def move_links(path: Path) -> str:
    """The text of a page; what is beside docs/ in the checkout is elsewhere in the site, or not there."""
    here = path.relative_to(DOCS) if path.is_relative_to(DOCS) else Path(BESIDE[path.name])
    up = "../" * (len(here.parts) - 1)

    def move(link: re.Match[str]) -> str:
        target, mark, anchor = link[2].partition("#")
        if not target or "://" in target:
            return link[0]
        linked = (path.parent / target).resolve()
        if linked.is_dir() and linked.is_relative_to(DOCS):
            return f"{link[1]}{up}{linked.relative_to(DOCS)}/{Path(LIST).name}{link[3]}"
        if linked.is_relative_to(DOCS):
            return f"{link[1]}{up}{linked.relative_to(DOCS)}{mark}{anchor}{link[3]}"
        if linked.name in BESIDE and linked.parent == ROOT:
            return f"{link[1]}{up}{BESIDE[linked.name]}{mark}{anchor}{link[3]}"
        sys.exit(f"{path.relative_to(ROOT)}: the site has no {link[2]}; name the file in backticks instead.")

    return LINK.sub(move, path.read_text())


def list_decisions() -> str:
    """A page of all decisions, by their titles."""
    pages = sorted(path for path in (DOCS / "decisions").glob("*.md"))
    titles = [path.read_text().partition("\n")[0].removeprefix("# ") for path in pages]
    rows = [f"- [{title}]({path.name})" for title, path in zip(titles, pages, strict=True)]
    about = "Choices that the next reader would question: context, decision, consequences, one page each."
    return "\n".join(["# Decisions", "", about, "", *rows, ""])


# -- building


def build() -> None:
    shutil.rmtree(SITE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=ROOT, check=True)
    shutil.copy(OWN_SHIM, SITE / "assets" / "javascripts" / OWN_SHIM.name)
    for path in SITE.rglob("*.html"):
        up = "../" * (len(path.relative_to(SITE).parts) - 1)
        path.write_text(path.read_text().replace(SHIM, f"{up}assets/javascripts/{OWN_SHIM.name}"))


# -- checking


class Page(HTMLParser):
    """What a page loads, what it links to, and what can be linked to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what leads somewhere."""
        found = dict(attrs)
        if anchor := found.get("id"):
            self.anchors.add(anchor)
        if target := found.get(LOADS.get(tag, "")):
            self.loads.append(target)
        if tag == "a" and (target := found.get("href")):
            self.links.append(target)


def check() -> list[str]:
    """Whatever is loaded from elsewhere, or leads nowhere."""
    pages = {path.resolve(): Page(path) for path in SITE.rglob("*.html") if path.name != "404.html"}
    problems = []
    for path, page in pages.items():
        name = path.relative_to(SITE)
        problems += [f"{name}: loads {target}" for target in page.loads if _is_elsewhere(target)]
        for target in [*page.links, *page.loads]:
            if not _is_elsewhere(target) and (why := _follow(path, target, pages)):
                problems.append(f"{name}: {target} {why}")
    for path in SITE.rglob("*.css"):
        problems += [
            f"{path.relative_to(SITE)}: loads {url}" for url in re.findall(r"url\((https?:[^)]*)", path.read_text())
        ]
    return problems


def _is_elsewhere(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "mailto")


def _follow(path: Path, target: str, pages: dict[Path, Page]) -> str:
    """Why a link leads nowhere; nothing if it leads somewhere."""
    parts = urlsplit(target)
    if parts.scheme == "data":
        return ""
    linked = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not linked.is_file():
        return "is not there"
    anchor = unquote(parts.fragment)
    if anchor and linked in pages and anchor not in pages[linked].anchors:
        return "has no such heading"
    return ""


def main() -> None:
    gather()
    build()
    problems = check()
    print("\n".join(problems) or f"{SITE.relative_to(ROOT)}/index.html is complete, and asks nothing of another host.")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
