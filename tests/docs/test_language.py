"""Plain language in src: docstrings open with a verb or a noun, and the usual words are used."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
OPENER = re.compile(r"(What|Who|Whoever|Whose|Whether|How|Which|Where|When|Why|The same|Same)\b")
MAX_OPENERS_PERCENT = 2
MAX_TOLD = 20


@cache
def docstrings() -> list[tuple[str, str]]:
    """Return every docstring in src with its place, those of attributes included."""
    return [found for path in SOURCES for found in _docstrings_in(path)]


def _docstrings_in(path: Path) -> Iterator[tuple[str, str]]:
    for owner in ast.walk(ast.parse(path.read_text())):
        body = getattr(owner, "body", None)
        for node in body if isinstance(body, list) else ():
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text.strip()


def test_docstrings_open_with_a_verb_or_a_noun():
    found = [f"{place}: {text[:80]}" for place, text in docstrings() if OPENER.match(text)]
    percent = 100 * len(found) / len(docstrings())
    listed = "\n".join(found[:50])
    assert percent < MAX_OPENERS_PERCENT, f"{percent:.1f} % of the docstrings open with a question word:\n{listed}"


def test_told_is_rare():
    """Write report, return, raise, log, show, send or notify instead."""
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for _ in re.findall(r"\btold\b", line)
    ]
    assert len(lines) < MAX_TOLD, f"{len(lines)} times `told`:\n" + "\n".join(lines[:50])


OLD_WORDS = re.compile(r"\b(told|anew|whoever|remarks?)\b", re.IGNORECASE)


def test_pages_and_commands_avoid_old_words():
    """Write sent, shown, listed or reported; again; the person who; a warning. The console has its own check."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/howto").glob("*.md")]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in pages
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if OLD_WORDS.search(line)
    ]
    assert not found, "\n".join(found)
    printed = [found for path in sorted((ROOT / "src/penstock/cli").rglob("*.py")) for found in _old_texts(path)]
    assert not printed, "\n".join(printed)


def _old_texts(path: Path) -> list[str]:
    texts = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value[:80]}"
        for node in texts
        if isinstance(node.value, str) and OLD_WORDS.search(node.value)
    ]
