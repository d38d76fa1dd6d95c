"""Renders the chart's templates: the small part of Go's template language that they keep to, and nothing beyond.

It stands in for `helm template`, which cannot be installed here: what it does not know, it refuses.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "penstock"
ACTION = re.compile(r"(\s*\{\{-|\{\{)\s*(.*?)\s*(-\}\}\s*|\}\})", re.DOTALL)
TOKEN = re.compile(r'"[^"]*"|\(|\)|\||[^\s()|]+')
Scope: TypeAlias = dict[str, Any]


@dataclass
class Block:
    """`if`, `with`, `range` or `define`, with what stands in it and, after `else`, instead of it."""

    head: str
    body: list["str | Block"]
    other: list["str | Block"]


def render(values: dict[str, Any] | None = None, release: str = "test") -> list[dict[str, Any]]:
    """Every manifest of the chart with these values over its own."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    merged = merge(yaml.safe_load((CHART / "values.yaml").read_text()), values or {})
    root = {
        "Values": merged,
        "Release": {"Name": release, "Service": "Helm", "Namespace": "default"},
        "Chart": {"Name": chart["name"], "AppVersion": chart["appVersion"], "Version": chart["version"]},
    }
    templates: dict[str, list[str | Block]] = {}
    texts = []
    for path in sorted(CHART.glob("templates/*")):
        text = _write(parse(path.read_text()), {".": root, "$": root}, templates)
        if path.suffix == ".yaml":
            texts.append(text)
    return [manifest for text in texts for manifest in yaml.safe_load_all(text) if manifest]


def merge(values: Any, over: Any) -> Any:
    """As Helm does: tables are joined, all else is replaced."""
    if isinstance(values, dict) and isinstance(over, dict):
        return values | {name: merge(values.get(name), item) for name, item in over.items()}
    return over


# -- reading


def parse(text: str) -> list[str | Block]:
    """The text between actions, the actions, and blocks of both."""
    pieces = iter(_split(text))
    found, last = _parse_until(pieces)
    assert last == "", f"`{last}` ends nothing"
    return found


def _split(text: str) -> Iterator[tuple[bool, str]]:
    at = 0
    for match in ACTION.finditer(text):
        yield False, text[at : match.start()]
        yield True, match[2]
        at = match.end()
    yield False, text[at:]


def _parse_until(pieces: Iterator[tuple[bool, str]]) -> tuple[list[str | Block], str]:
    found: list[str | Block] = []
    for is_action, piece in pieces:
        if not is_action:
            found.append(piece)
        elif piece in ("end", "else"):
            return found, piece
        elif piece.split()[0] in ("if", "with", "range", "define"):
            body, last = _parse_until(pieces)
            other, last = _parse_until(pieces) if last == "else" else ([], last)
            assert last == "end", f"`{piece}` has no end"
            found.append(Block(piece, body, other))
        elif not piece.startswith("/*"):
            found.append(Block(piece, [], []))
    return found, ""


# -- writing


def _write(parts: list[str | Block], scope: Scope, templates: dict[str, list[str | Block]]) -> str:
    return "".join(part if isinstance(part, str) else _fill(part, scope, templates) for part in parts)


def _fill(block: Block, scope: Scope, templates: dict[str, list[str | Block]]) -> str:
    word, _, rest = block.head.partition(" ")
    if word == "define":
        templates[json.loads(rest)] = block.body
        return ""
    if word == "range":
        names, _, source = rest.partition(":=")
        first, second = (name.strip() for name in names.split(","))
        items = sorted(_evaluate(source, scope, templates).items())
        return "".join(_write(block.body, scope | {first: name, second: item}, templates) for name, item in items)
    if word in ("if", "with"):
        found = _evaluate(rest, scope, templates)
        if not found:
            return _write(block.other, scope, templates)
        return _write(block.body, scope | {".": found} if word == "with" else scope, templates)
    found = _evaluate(block.head, scope, templates)
    assert found is not None, f"`{block.head}` is nothing"
    return json.dumps(found) if isinstance(found, bool) else str(found)


def _evaluate(expression: str, scope: Scope, templates: dict[str, list[str | Block]]) -> Any:
    tokens = TOKEN.findall(expression)
    value = _pipeline(tokens, scope, templates)
    assert not tokens, f"`{expression}` has too much: {tokens}"
    return value


def _pipeline(tokens: list[str], scope: Scope, templates: dict[str, list[str | Block]]) -> Any:
    value = _command(tokens, [], scope, templates)
    while tokens and tokens[0] == "|":
        tokens.pop(0)
        value = _command(tokens, [value], scope, templates)
    return value


def _command(tokens: list[str], piped: list[Any], scope: Scope, templates: dict[str, list[str | Block]]) -> Any:
    name = tokens[0]
    if name not in FUNCTIONS and name != "include":
        return _operand(tokens, scope, templates)
    tokens.pop(0)
    arguments: list[Any] = []
    while tokens and tokens[0] not in ("|", ")"):
        arguments.append(_operand(tokens, scope, templates))
    arguments += piped
    if name == "include":
        template, inner = arguments
        return _write(templates[template], {".": inner, "$": inner}, templates)
    return FUNCTIONS[name](*arguments)


def _operand(tokens: list[str], scope: Scope, templates: dict[str, list[str | Block]]) -> Any:
    token = tokens.pop(0)
    if token == "(":
        value = _pipeline(tokens, scope, templates)
        assert tokens.pop(0) == ")"
        return value
    if token[0] == '"' or token.isdigit():
        return json.loads(token)
    base, *names = token.split(".") if token[0] == "$" else (".", *token[1:].split("."))
    value = scope[base]
    for name in filter(None, names):
        assert isinstance(value, dict), f"`{token}` leads nowhere"
        assert name in value, f"`{token}` is no value of the chart"
        value = value[name]
    return value


def _indent(spaces: int, text: str) -> str:
    return "\n".join(" " * spaces + line if line else line for line in text.split("\n"))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "default": lambda instead, value: value or instead,
    "eq": lambda one, other: one == other,
    "nindent": lambda spaces, text: "\n" + _indent(spaces, text),
    "not": lambda value: not value,
    "quote": lambda value: json.dumps(str(value)),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toYaml": lambda value: yaml.safe_dump(value, sort_keys=True).rstrip("\n"),
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trunc": lambda length, text: text[:length],
}
