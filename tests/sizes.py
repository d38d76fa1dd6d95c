"""`make check` runs this: nothing in src grows past what one can hold in mind, and every name says what it is."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
MAX_FILE_LINES = 700
"""A file is better split by concept long before: 500 lines are a lot."""
MAX_FUNCTION_LINES = 50
MAX_DEPTH = 4
EMPTY_NAMES = frozenset({"utils", "helpers", "common", "misc", "manager", "base"})


def find_offenders() -> Iterator[str]:
    """Every breach of the limits, with its place."""
    sources = sorted(SOURCES.rglob("*.py"))
    for path in sources:
        lines = path.read_text().count("\n")
        if lines > MAX_FILE_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines, at most {MAX_FILE_LINES}"
        if path.stem in EMPTY_NAMES:
            yield f"{path.relative_to(ROOT)}: `{path.stem}` says nothing of what is in it"
        yield from _long_functions(path)
        yield from _hidden_names(path)
        yield from _deep_folder(path)


@cache
def _walk(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def _long_functions(path: Path) -> Iterator[str]:
    for node in _walk(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield f"{place}: {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}"


def _hidden_names(path: Path) -> Iterator[str]:
    """Python 3.14 reads annotations late: a name that the class has too is then the class's own, not the one meant."""
    for owner in _walk(path):
        if not isinstance(owner, ast.ClassDef):
            continue
        own = {name for node in owner.body for name in _names_given(node)}
        for node in (used for part in owner.body for note in _annotations(part) for used in ast.walk(note)):
            if isinstance(node, ast.Name) and node.id in own:
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield f"{place}: `{node.id}` in this annotation is {owner.name}.{node.id} from Python 3.14 on"


def _names_given(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign) or (isinstance(node, ast.AnnAssign) and node.value is not None):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _annotations(node: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(node, ast.AnnAssign):
        yield node.annotation
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = [part.annotation for part in ast.walk(node.args) if isinstance(part, ast.arg)]
        yield from (note for note in (*given, node.returns) if note is not None)


def _deep_folder(path: Path) -> Iterator[str]:
    depth = len(path.parent.relative_to(SOURCES).parts)
    if depth > MAX_DEPTH:
        yield f"{path.relative_to(ROOT)}: {depth} folders deep in src, at most {MAX_DEPTH}"


if __name__ == "__main__":
    sys.exit("\n".join(find_offenders()) or 0)
