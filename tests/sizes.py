"""Check the size, place and name of everything in src, and the heads of the decisions; part of `make check`."""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
PACKAGE = SOURCES / "penstock"
DECISIONS = ROOT / "docs" / "decisions"
MAX_FILE_LINES = 700
"""Split a file by concept long before: 500 lines are a lot."""
MAX_FUNCTION_LINES = 50
MAX_DEPTH = 4
MAX_FILES = 15
MAX_FILES_BESIDE_PACKAGES = 12
WIDER_FOLDERS = {PACKAGE / "client": 20, PACKAGE / "vendors": 20, PACKAGE: MAX_FILES_BESIDE_PACKAGES}
UNCOUNTED_FOLDERS = (PACKAGE / "console", PACKAGE / "store" / "migrations" / "versions")
"""The built console, and migrations, of which every change of the schema adds one."""
OTHER_NAMESPACES = (PACKAGE / "client", PACKAGE / "web" / "openapi")
"""Their classes carry the public names of records, also where the server has its own class for one."""
EMPTY_NAMES = frozenset({"utils", "helpers", "common", "misc", "manager", "base"})


DECISION_HEAD = re.compile(r"# (\d{4}): [^\n.]+\n\nDate: \d{4}-\d\d-\d\d · Status: (accepted|superseded by \d{4})\n\n")


def find_offenders() -> Iterator[str]:
    """Find every breach of the limits, with its place."""
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
    yield from _full_folders()
    yield from _repeated_classes()
    yield from _odd_decisions()


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


def _full_folders() -> Iterator[str]:
    files = Counter(path.parent for path in SOURCES.rglob("*") if path.is_file() and path.suffix != ".pyc")
    for folder, count in sorted(files.items()):
        limit = WIDER_FOLDERS.get(folder, MAX_FILES)
        if count > limit and not any(folder.is_relative_to(uncounted) for uncounted in UNCOUNTED_FOLDERS):
            yield f"{folder.relative_to(ROOT)}: {count} files, at most {limit}"


def _repeated_classes() -> Iterator[str]:
    """Two public classes of one name send a reader, and an import, to the wrong one."""
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if not any(path.is_relative_to(folder) for folder in OTHER_NAMESPACES):
            for node in _walk(path):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    for name, found in places.items():
        if len(found) > 1:
            yield f"{found[-1]}: the class `{name}` is also at {', '.join(found[:-1])}"


def _odd_decisions() -> Iterator[str]:
    for path in sorted(DECISIONS.glob("*.md")):
        head = DECISION_HEAD.match(path.read_text())
        if head is None or head[1] != path.name[:4]:
            yield (
                f"{path.relative_to(ROOT)}: begin with `# {path.name[:4]}: Title`, "
                "then the line `Date: YYYY-MM-DD · Status: accepted` (or `superseded by NNNN`)"
            )


if __name__ == "__main__":
    sys.exit("\n".join(find_offenders()) or 0)
