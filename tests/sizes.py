"""`make check` runs this: nothing in src grows past what one can hold in mind, and every name says where it is."""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "penstock"
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_DEPTH = 3
EMPTY_NAMES = frozenset({"utils", "helpers", "common", "misc", "manager", "base"})


def find_offenders() -> Iterator[str]:
    """Every breach of the limits, with its place."""
    sources = sorted(PACKAGE.rglob("*.py"))
    for path in sources:
        lines = path.read_text().count("\n")
        if lines > MAX_FILE_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines, at most {MAX_FILE_LINES}"
        if path.stem in EMPTY_NAMES:
            yield f"{path.relative_to(ROOT)}: `{path.stem}` says nothing of what is in it"
        yield from _long_functions(path)
        yield from _deep_folder(path)
    yield from _same_names(sources)


def _long_functions(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield f"{place}: {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}"


def _deep_folder(path: Path) -> Iterator[str]:
    depth = len(path.parent.relative_to(PACKAGE).parts)
    if depth > MAX_DEPTH:
        yield f"{path.relative_to(ROOT)}: {depth} folders deep in penstock, at most {MAX_DEPTH}"


def _same_names(sources: list[Path]) -> Iterator[str]:
    """One file of each name, so that jump-to-file answers "where?"; a vendor's file is named by its type."""
    named = [path for path in sources if path.name != "__init__.py" and path.parent.name != "vendors"]
    counts = Counter(path.name for path in named)
    for path in named:
        if counts[path.name] > 1:
            yield f"{path.relative_to(ROOT)}: another file in src has this name"


if __name__ == "__main__":
    sys.exit("\n".join(find_offenders()) or 0)
