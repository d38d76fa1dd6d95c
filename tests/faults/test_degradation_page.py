"""The degradation contract promises nothing that no test proves, and no test here is left out of it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "degradation.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def find_tests(path: Path) -> set[str]:
    found = ast.walk(ast.parse(path.read_text()))
    named = (each.name for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    return {name for name in named if name.startswith("test_")}


def test_every_row_has_its_proof():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| Fault |")]
    assert len(rows) > 20
    for row in rows:
        assert NAMED.search(row), row
    for path, name in NAMED.findall(PAGE):
        assert name in find_tests(ROOT / path), f"{path} has no {name}"


def test_every_test_of_a_fault_is_on_the_page():
    named = {name for _, name in NAMED.findall(PAGE)}
    for path in Path(__file__).parent.glob("test_*.py"):
        if path != Path(__file__):
            assert find_tests(path) <= named, path
