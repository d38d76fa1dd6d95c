"""Problems of the settings, each with its place, its cause and a remedy."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

PRICE_KINDS = ("<media>", "<chat>")
"""Pydantic's names for the two forms of a price, which are not in the file."""
SHORTEST_HIDDEN = 4
"""Length of the shortest secret that is hidden in messages."""

KeyPath: TypeAlias = tuple[str | int, ...]
"""The path of a value: ("server", "port") or ("models", 0, "routes", 1, "vendor")."""

# -- problems


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, its place and its remedy."""

    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n    {self.remedy}"


class SettingsError(Exception):
    """The settings cannot be used. All problems are reported together, without values that could be secrets."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


@dataclass(frozen=True, slots=True)
class Source:
    """The source of every value, so that a problem can point at it."""

    file: str | None = None
    lines: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    origins: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    """The options and variables that override the file."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    secret_files: tuple[Path, ...] = ()
    """The files beside the settings that secrets were read from."""
    added: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    """The names of vendors and models that are not in the file, by path."""

    def locate(self, path: KeyPath) -> str:
        """Return the place of a value, such as `penstock.toml:12 [server] port`, `PENSTOCK_SERVER_PORT` or `--port`."""
        label = _label(path)
        for length in (2, 1):
            if name := self.added.get(path[:length]):
                return ".".join((name, *map(str, path[length:])))
        for length in range(len(path), 0, -1):
            if origin := self.origins.get(path[:length]):
                return origin
            if line := self.lines.get(path[:length]):
                return f"{self.file}:{line} {label}"
        return f"{self.file or 'settings'} {label}".strip()

    def hide(self, text: str) -> str:
        """Return the text with every secret masked, the longest first, as one may contain another.

        One of a letter or two hides nothing: its marks would show where it stood, and spoil the whole message.
        """
        for secret in sorted(self.secrets, key=len, reverse=True):
            if len(secret) >= SHORTEST_HIDDEN:
                text = text.replace(secret, "***")
        return text


def _label(path: KeyPath) -> str:
    """Format a path, such as `[server] port`, `[vendors.mine] api_key`, `[[models]] 1 vendor` or `data`."""
    match path:
        case ("models" | "prices" | "guardrails" as name, int(index), *rest):
            table = f"[[{name}]] {index + 1}"
        case ("vendors" | "sign_in" as part, str(name), *rest):
            table = f"[{part}.{name}]"
        case (str(section), name, *others):
            table, rest = f"[{section}]", [name, *others]
        case _:
            table, rest = "", list(path)
    return f"{table} {'.'.join(str(part) for part in rest)}".strip()


# -- remedies


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at the nearest name, or else at all names."""
    names = sorted(known)
    if close := get_close_matches(name, names, 1):
        return f"Did you mean `{close[0]}`?"
    return f"Known here: {', '.join(names)}." if names else "Remove it, or correct its name."


def explain(error: ValidationError, where: str, source: Source, form: type[BaseModel] | None = None) -> SettingsError:
    """Return the problems that Pydantic found in the table `where`; `form` is its class, for hints."""
    start = tuple(where.split(".")) if where else ()
    return SettingsError(
        [
            _describe(found, start, source, form)
            for found in error.errors(include_input=False, include_url=False)
            if found["type"] != "default_factory_not_called"  # only repeats that `data` was wrong
        ]
    )


def _describe(found: ErrorDetails, start: KeyPath, source: Source, form: type[BaseModel] | None) -> Problem:
    path = tuple(part for part in found["loc"] if part not in ("[key]", *PRICE_KINDS))
    names = [part for part in path if isinstance(part, str)]
    name = names[-1] if names else ""
    fields = _fields_beside(form, names)
    match found["type"]:
        case "extra_forbidden":
            what, remedy = "is not a setting", nearest(name, fields)
        case "missing":
            what, remedy = "is missing", f"Add `{name} = …`."
        case "model_type" | "dict_type" | "mapping_type":
            what, remedy = "should be a table", "Write it as a [table] with `key = value` lines."
        case "tuple_type":
            what, remedy = (
                "should be a list",
                "Write it as a list [ … ], or as [[models]], [[prices]] and [[guardrails]] tables.",
            )
        case "string_pattern_mismatch":
            what, remedy = "is not written as allowed", _advise(fields.get(name))
        case _:
            what = found["msg"].removeprefix("Value error, ").removeprefix("Input ")
            remedy = found.get("ctx", {}).get("remedy") or _advise(fields.get(name))
    return Problem(source.locate(start + path), source.hide(what), source.hide(remedy))


def _fields_beside(form: type[BaseModel] | None, names: Sequence[str]) -> Mapping[str, FieldInfo]:
    """Return the fields of the table that holds the last of the names."""
    for name in names[:-1]:
        info = form.model_fields.get(name) if form else None
        if info is not None:  # else it is the name of a table, such as that of a sign-in provider
            form = next(_classes_in(info.annotation), None)
    return {info.alias or name: info for name, info in form.model_fields.items()} if form else {}


def _classes_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _classes_in(part)


def _advise(info: FieldInfo | None) -> str:
    default = info.default if info else None
    advice = f"Correct it, or remove it for {default}." if isinstance(default, str | int | float) else "Correct it."
    return f"{advice} Meaning: {info.description}." if info and info.description else advice


def reject(what: str, remedy: str) -> PydanticCustomError:
    """Return the exception for a validator to raise, so that `explain` shows its remedy."""
    return PydanticCustomError("setting", "{what}", {"what": what, "remedy": remedy})


# -- line numbers

_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"


def scan_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of every table and key; a multi-line text that looks like one may shift it by a few lines."""
    lines: dict[KeyPath, int] = {}
    latest: dict[KeyPath, int] = {}  # the index of each array's newest table
    table: KeyPath = ()
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]", line):
            table = ()
            *parents, name = _split_key(header[2])
            for parent in parents:
                table = _enter(table, parent, latest)
                lines.setdefault(table, number)
            if header[1] == "[[":
                latest[*table, name] = latest.get((*table, name), -1) + 1
            lines.setdefault((*table, name), number)
            table = _enter(table, name, latest)
            lines.setdefault(table, number)
        elif entry := re.match(rf"\s*({_DOTTED})\s*=", line):
            path = table
            for name in _split_key(entry[1]):
                path = (*path, name)
                lines.setdefault(path, number)
    return lines


def _split_key(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]


def _enter(table: KeyPath, name: str, latest: Mapping[KeyPath, int]) -> KeyPath:
    """Return the table of this name; of an array of tables, the latest."""
    path = (*table, name)
    return (*path, latest[path]) if path in latest else path
