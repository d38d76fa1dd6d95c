"""Sources of settings: the TOML file, overridden by the environment, overridden by the command line; and secrets."""

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from platformdirs import user_data_dir

from penstock.settings.problems import KeyPath, Problem, SettingsError, Source, nearest, scan_lines

DOCUMENTS = ("params", "workflow")
"""Settings that may refer to a file, `file:PATH`, and are no secret."""
PEM_FILES = frozenset(("provenance", name) for name in ("certificate", "private_key", "trust"))
"""Settings that are the path of a PEM file. Its text takes the path's place."""
FOLDERS = ("data", "weights")
"""Settings whose paths are relative to the file's own folder."""
OTHER_VARIABLES = frozenset({"PENSTOCK_CONFIG", "PENSTOCK_BASE_URL", "PENSTOCK_API_KEY", "PENSTOCK_ADMIN_KEY"})


@dataclass(frozen=True, slots=True)
class Gathered:
    """All values with secrets in place, not yet validated, and the problems so far."""

    values: Mapping[str, Any] = field(repr=False)
    source: Source
    problems: tuple[Problem, ...]


def gather(
    config: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any],
    variables: Mapping[str, tuple[str, ...]],
) -> Gathered:
    """Read all sources; `variables` maps environment variables to settings."""
    file, named_by = _choose_file(config, environ, overrides)
    text = _read_text(file, named_by)
    values = _parse_toml(text, file)
    origins = _overlay(values, environ, overrides, variables)
    source = Source(str(file) if text else None, scan_lines(text), origins)
    reader = _SecretReader(environ, file.absolute().parent if text else Path.cwd(), source)
    values = map_texts(values, reader.resolve)
    problems = reader.problems + _check_variables(environ, OTHER_VARIABLES | variables.keys() | reader.variables)
    return Gathered(
        values,
        replace(source, secrets=frozenset(reader.secrets), secret_files=tuple(sorted(reader.files))),
        tuple(problems),
    )


# -- file, environment, command line


def _choose_file(
    config: Path | None, environ: Mapping[str, str], overrides: Mapping[str, Any]
) -> tuple[Path, str | None]:
    """Return the file to read and the source of its name; the data folder's own file may be absent."""
    if config:
        return config, "--config"
    if name := environ.get("PENSTOCK_CONFIG"):
        return Path(name), "PENSTOCK_CONFIG"
    data = overrides.get("data") or environ.get("PENSTOCK_DATA") or user_data_dir("penstock")
    return make_absolute(Path(data), Path.cwd()) / "config.toml", None


def _read_text(file: Path, named_by: str | None) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        if named_by is None:
            return ""
        reason = "there is no such file"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    remedy = "Name a TOML file in UTF-8 that this process may read."
    raise SettingsError([Problem(named_by or str(file), f"cannot read {file}: {reason}", remedy)])


def _parse_toml(text: str, file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        message = str(error)
    else:
        for name in FOLDERS:
            if isinstance(folder := values.get(name), str) and folder:
                values[name] = str(make_absolute(Path(folder), file.absolute().parent))
        return values
    what, _, place = message.partition(" (at ")
    at = re.search(r"line (\d+), column (\d+)", place)
    where = f"{file}:{at[1]}:{at[2]}" if at else f"{file}:{text.count(chr(10)) + 1}"
    raise SettingsError([Problem(where, f"is not TOML: {what}", "Correct the file there; texts stand in quotes.")])


def _overlay(
    values: dict[str, Any],
    environ: Mapping[str, str],
    overrides: Mapping[str, Any],
    variables: Mapping[str, tuple[str, ...]],
) -> dict[KeyPath, str]:
    """Override the file's values by the environment, then by the command line; an empty variable counts as not set."""
    given = [(path, environ[name], name) for name, path in variables.items() if environ.get(name)]
    for name, value in overrides.items():
        if value is not None:
            path = tuple(name.split("."))
            given.append((path, value, f"--{name.rpartition('.')[2].replace('_', '-')}"))
    for (*tables, name), value, _ in given:
        table: Any = values.setdefault(tables[0], {}) if tables else values
        if isinstance(table, dict):  # otherwise the file's own value is reported
            table[name] = value
    return {path: origin for path, _, origin in given}


def _check_variables(environ: Mapping[str, str], known: Collection[str]) -> list[Problem]:
    unknown = (name for name in environ if name.startswith("PENSTOCK_") and name not in known)
    return [Problem(name, "is not a setting", nearest(name, known)) for name in unknown]


def make_absolute(path: Path, folder: Path) -> Path:
    """Return the path relative to the folder, unless it is absolute or begins with ~."""
    try:
        return folder / path.expanduser()
    except RuntimeError:  # no such home
        return folder / path


# -- secrets


def map_texts(value: Any, change: Callable[[str, KeyPath], str], path: KeyPath = ()) -> Any:
    """Return the value with every text in it mapped."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {name: map_texts(item, change, (*path, name)) for name, item in table.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [map_texts(item, change, (*path, index)) for index, item in enumerate(items)]
    return change(value, path) if isinstance(value, str) else value


def _may_be_secret(path: KeyPath) -> bool:
    """Return whether a value may be written as `env:NAME` or `file:PATH`. A guardrail's words may look like that."""
    if path[0] in ("vendors", "sealing") or path == ("server", "admin_key"):
        return True
    return (path[0], path[-1]) in (("guardrails", "secret"), ("sign_in", "client_secret"))


@dataclass(frozen=True, slots=True)
class _SecretReader:
    """Replaces `env:NAME` and `file:PATH` by the secret, and records which values are secret."""

    environ: Mapping[str, str]
    folder: Path
    source: Source
    secrets: set[str] = field(default_factory=set[str])
    files: set[Path] = field(default_factory=set[Path])
    variables: set[str] = field(default_factory=set[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    def resolve(self, text: str, path: KeyPath) -> str:
        """Return the text itself, or the value that it refers to."""
        if path[0] in ("models", "vendors") and path[-1] in DOCUMENTS and text.startswith("file:"):
            return self._read_document(text.removeprefix("file:"), path)
        if path in PEM_FILES:
            return text if text.startswith("-----BEGIN") else self._read_pem(text.removeprefix("file:"), path)
        if not _may_be_secret(path):
            return text
        scheme, _, rest = text.partition(":")
        if scheme == "env":
            return self._read_variable(rest, path)
        if scheme == "file":
            return self._read_file(rest, path)
        name = next(part for part in reversed(path) if isinstance(part, str))
        if text and re.search(r"(^|_)key$|secret$|token$|password$|service_account$", name):
            self.secrets.add(text)
        return text

    def _read_variable(self, name: str, path: KeyPath) -> str:
        self.variables.add(name)
        found = self.environ.get(name, "").strip()
        remedy = f"Set {name} in the server's environment, or write file:PATH or the value itself."
        return self._keep(found, path, f"the environment variable {name} is not set, or empty", remedy)

    def _read_file(self, name: str, path: KeyPath) -> str:
        file = make_absolute(Path(name), self.folder)
        try:
            found = file.read_text("utf-8").strip()
        except (OSError, ValueError):
            found = ""
        self.files.add(file)
        remedy = "Put the secret, and nothing else, into that file, or write env:NAME or the value itself."
        return self._keep(found, path, f"the file {file} is missing, unreadable or empty", remedy)

    def _read_document(self, name: str, path: KeyPath) -> str:
        file = make_absolute(Path(name), self.folder)
        try:
            return file.read_text("utf-8")
        except (OSError, ValueError):
            what = f"the file {file} is missing or unreadable"
            remedy = "Name a JSON file that this process may read; its path begins from the settings' own folder."
            self.problems.append(Problem(self.source.locate(path), what, remedy))
            return "{}"

    def _read_pem(self, name: str, path: KeyPath) -> str:
        file = make_absolute(Path(name), self.folder)
        try:
            found = file.read_text("ascii")
        except (OSError, ValueError):
            found, what = "", f"the file {file} is missing, unreadable or not PEM"
            remedy = "Name a PEM file that this process may read; its path begins from the settings' own folder."
            self.problems.append(Problem(self.source.locate(path), what, remedy))
        if path[-1] == "private_key" and found:
            self.secrets.add(found)
            self.files.add(file)
        return found

    def _keep(self, found: str, path: KeyPath, what: str, remedy: str) -> str:
        if found:
            self.secrets.add(found)
        else:
            self.problems.append(Problem(self.source.locate(path), what, remedy))
        return found
