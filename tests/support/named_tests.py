"""Tests that pages of the docs name as proof: read from a page, and looked up in the files."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@cache
def find_tests(path: Path) -> frozenset[str]:
    """Return the names of all tests in a file."""
    found = ast.walk(ast.parse(path.read_text()))
    named = (each.name for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(name for name in named if name.startswith("test_"))


def rows_of(page: str, *heads: str) -> list[str]:
    """Return the rows of those tables of a page that begin with one of these heads."""
    rows: list[str] = []
    for table in re.findall(r"(?:^\|.*\n?)+", page, re.MULTILINE):
        head, _, *body = table.splitlines()
        rows += body if head.startswith(heads) else []
    return rows


def check_proofs(page: str) -> None:
    """Fail for a test that a page names and that is not there."""
    for path, name in NAMED.findall(page):
        assert name in find_tests(ROOT / path), f"{path} has no {name}"
