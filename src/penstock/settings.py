"""Every setting with its type, default and meaning, read once: command line over environment over TOML file."""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

from platformdirs import user_data_dir
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from penstock.money import Price

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value stands: ("server", "port") or ("models", 0, "routes", 1, "vendor")."""

# -- what can be wrong


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong, where it stands, and what to do about it."""

    where: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n    {self.remedy}"


class SettingsError(Exception):
    """The settings cannot be used; every problem is told at once, and no value that could be a secret."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


@dataclass(frozen=True, slots=True)
class Source:
    """Where every value came from, so that a problem can point at it."""

    file: str | None = None
    lines: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    origins: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    """The options and variables that stand above the file."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def locate(self, path: KeyPath) -> str:
        """`penstock.toml:12 [server] port`, `PENSTOCK_SERVER_PORT` or `--port`; the nearest known parent's line."""
        label = _label(path)
        for length in range(len(path), 0, -1):
            if origin := self.origins.get(path[:length]):
                return origin
            if line := self.lines.get(path[:length]):
                return f"{self.file}:{line} {label}"
        return f"{self.file or 'settings'} {label}".strip()

    def hide(self, text: str) -> str:
        """The text with every secret made unreadable; the longest first, as one may hold another."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def _label(path: KeyPath) -> str:
    """`[server] port`, `[vendors.mine] api_key`, `[[models]] 1 vendor` or `data`."""
    match path:
        case ("models", int(index), *rest):
            table = f"[[models]] {index + 1}"
        case ("vendors", str(name), *rest):
            table = f"[vendors.{name}]"
        case (str(section), name, *others):
            table, rest = f"[{section}]", [name, *others]
        case _:
            table, rest = "", list(path)
    return f"{table} {'.'.join(str(part) for part in rest)}".strip()


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the name that was likely meant, or else at all there are."""
    names = sorted(known)
    if close := get_close_matches(name, names, 1):
        return f"Did you mean `{close[0]}`?"
    return f"Known here: {', '.join(names)}." if names else "Remove it, or correct its name."


def explain(error: ValidationError, where: str, source: Source, form: type[BaseModel] | None = None) -> SettingsError:
    """What Pydantic found in the table `where` (such as "vendors.mine"); `form` is its class, for hints."""
    start = tuple(where.split(".")) if where else ()
    return SettingsError(
        [
            _describe(found, start, source, form)
            for found in error.errors(include_input=False, include_url=False)
            if found["type"] != "default_factory_not_called"  # only repeats that `data` was wrong
        ]
    )


def _describe(found: ErrorDetails, start: KeyPath, source: Source, form: type[BaseModel] | None) -> Problem:
    path = tuple(part for part in found["loc"] if part != "[key]")
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
            what, remedy = "should be a list", "Write it as a list [ … ], or for `models` as [[models]] tables."
        case "string_pattern_mismatch":
            what, remedy = "is not written as allowed", _advise(fields.get(name))
        case _:
            what = found["msg"].removeprefix("Value error, ").removeprefix("Input ")
            remedy = found.get("ctx", {}).get("remedy") or _advise(fields.get(name))
    return Problem(source.locate(start + path), source.hide(what), source.hide(remedy))


def _fields_beside(form: type[BaseModel] | None, names: Sequence[str]) -> Mapping[str, FieldInfo]:
    """The fields of the table in which the last of the names stands."""
    for name in names[:-1]:
        info = form.model_fields.get(name) if form else None
        form = next(_classes_in(info.annotation), None) if info else None
    return form.model_fields if form else {}


def _classes_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _classes_in(part)


def _advise(info: FieldInfo | None) -> str:
    default = info.default if info else None
    advice = f"Correct it, or remove it for {default}." if isinstance(default, str | int | float) else "Correct it."
    return f"{advice} Meaning: {info.description}." if info and info.description else advice


def _reject(what: str, remedy: str) -> PydanticCustomError:
    return PydanticCustomError("setting", "{what}", {"what": what, "remedy": remedy})


def _scan_lines(text: str) -> dict[KeyPath, int]:
    """The line of every table and key; a look-alike inside a multi-line text can at worst point a few lines off."""
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


_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"


def _split_key(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]


def _enter(table: KeyPath, name: str, latest: Mapping[KeyPath, int]) -> KeyPath:
    """The table of this name; of an array of tables, the newest."""
    path = (*table, name)
    return (*path, latest[path]) if path in latest else path


# -- values

MINUTE, HOUR, DAY, WEEK = 60.0, 3600.0, 86400.0, 604800.0
UNITS = {"": 1.0, "s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
LONGEST = 36500 * DAY


def parse_duration(value: Any) -> float:
    """Seconds, from a number or a text such as "90", "12h" or "30d"."""
    if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)([smhdw]?)", value.strip())):
        value = float(match[1]) * UNITS[match[2]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        raise ValueError('a time is a number of seconds or a text such as "90s", "12h" or "30d", at most 36500d')
    return float(value)


def parse_retention(value: Any) -> float | None:
    """A duration; "forever" is None."""
    return None if value is None or value == "forever" else parse_duration(value)


def _absolute(path: Path, folder: Path) -> Path:
    try:
        return folder / path.expanduser()
    except RuntimeError:  # there is no such home
        return folder / path


def _parse_folder(value: Any) -> Any:
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError("a folder is the path of a folder")
    return _absolute(Path(value), Path.cwd())


def _parse_network(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError('a network is a text such as "10.1.0.0/16"')
    return ip_network(value.strip())


def _split(value: Any) -> Any:
    """An environment variable holds a list as comma-separated text."""
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _check_name(vendor: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", vendor):
        raise _reject("is not a vendor's name", "Use letters, digits, - and _, beginning with a letter or digit.")
    return vendor


def _check_type(table: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(table.get("type"), str) or not table["type"]:
        raise _reject(
            "`type` is missing or is not a text", 'Add `type = "…"`: the name of the vendor\'s file, such as "sim".'
        )
    return table


def _check_declared(vendor: str, info: ValidationInfo) -> str:
    if isinstance(info.context, _Context) and vendor not in info.context.vendors:
        hint = nearest(vendor, info.context.vendors)
        raise _reject(f"there is no vendor `{vendor}`", f"{hint} Every vendor has its own [vendors.NAME] table.")
    return vendor


Duration = Annotated[float, BeforeValidator(parse_duration)]
Timeout = Annotated[Duration, Field(gt=0)]
Retention = Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(parse_retention)]
Network = Annotated[IPv4Network | IPv6Network, BeforeValidator(_parse_network)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_split)]
VendorName = Annotated[str, AfterValidator(_check_name)]
VendorTable = Annotated[Mapping[str, Any], AfterValidator(_check_type)]
DeclaredVendor = Annotated[str, AfterValidator(_check_declared)]
_ORIGIN = r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?$"

# -- the settings


class Table(BaseModel):
    """One table of the file: unknown keys are refused, nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @field_validator("*", mode="before")
    @classmethod
    def refuse_boolean(cls, value: Any) -> Any:
        """No setting is a boolean yet, and Pydantic would read `true` as the number 1."""
        if isinstance(value, bool):
            raise ValueError("should not be true or false")
        return value


class Server(Table):
    """`[server]`."""

    host: str = Field(default="127.0.0.1", min_length=1, description="the address to listen on")
    port: int = Field(default=8787, ge=0, le=65535, description="the port to listen on; 0 takes any free one")
    public_url: str | None = Field(
        default=None, pattern=_ORIGIN, description="the origin in links, such as https://penstock.example.com"
    )
    max_body_mb: int = Field(default=32, ge=1, le=1024, description="the largest request body, in MiB")
    drain_seconds: Duration = Field(default=20.0, description="how long a stopping server lets open requests finish")
    admin_key: SecretStr | None = Field(default=None, description="the administrator's key")
    max_streams: int = Field(default=1000, ge=1, description="how many event streams may be open at once")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="the least level logged"
    )
    log_format: Literal["auto", "json", "text"] = Field(
        default="auto", description="auto: text on a terminal, else JSON"
    )


class Fetch(Table):
    """`[fetch]`: how callers' URLs are fetched."""

    allow_networks: Networks = Field(default=(), description="private networks (CIDR) that callers' URLs may lead into")
    seconds: Timeout = Field(default=20.0, description="how long fetching one file may take")


class Jobs(Table):
    """`[jobs]`."""

    start_timeout: Timeout = Field(
        default=HOUR, description="how long a job may wait to start, if its caller says nothing"
    )
    run_timeout: Timeout = Field(
        default=HOUR, description="how long a started job may take, if its caller says nothing"
    )
    max_timeout: Timeout = Field(default=DAY, validate_default=True, description="the longest timeout a caller may set")
    retention: Retention = Field(
        default=7 * DAY, description='how long finished jobs and their assets are kept, or "forever"'
    )
    file_retention: Retention = Field(default=DAY, description='how long uploaded files are kept, or "forever"')
    link_seconds: Timeout = Field(default=HOUR, description="how long a signed link works")
    max_waiting: int = Field(
        default=10_000, ge=1, description="how many jobs may wait before new ones get `queue_full`"
    )
    max_held: int = Field(default=5_000, ge=1, description="how many jobs one process runs at once")

    @field_validator("max_timeout")
    @classmethod
    def cover_defaults(cls, value: float, info: ValidationInfo) -> float:
        """The default timeouts must be allowed themselves."""
        if value < max(info.data.get("start_timeout", 0), info.data.get("run_timeout", 0)):
            raise _reject("is less than start_timeout or run_timeout", "Raise max_timeout, or lower the other two.")
        return value


class Route(Table):
    """One way to run a model."""

    vendor: DeclaredVendor = Field(description="the name of a [vendors.NAME] table")
    model: str = Field(default="", description="the vendor's own name of the model; default: the id")
    weight: int = Field(default=1, ge=1, description="the share of jobs among the routes of one order")
    order: int = Field(default=1, ge=1, description="routes of a lower order are used first")


class ModelEntry(Table):
    """One of `[[models]]`. Whichever form was written, `routes` holds it."""

    id: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$", description="the name by which callers ask for the model"
    )
    kind: Literal["chat", "3d", "video", "image", "audio"] | None = Field(default=None, description="what it makes")
    vendor: DeclaredVendor | None = Field(default=None, description="the one vendor that runs it")
    model: str = Field(default="", description="the vendor's own name of the model; default: the id")
    price: Price | None = Field(default=None, description="what a job costs; default: what the vendor's file says")
    routes: tuple[Route, ...] = Field(default=(), validate_default=True, description="several ways to run it")

    @field_validator("id")
    @classmethod
    def refuse_duplicate(cls, value: str, info: ValidationInfo) -> str:
        """Entries are read in order, so the later one is told."""
        if isinstance(info.context, _Context):
            if value in info.context.ids:
                raise _reject(
                    f"the id `{value}` was given before", "Give each model one entry; use `routes` for several vendors."
                )
            info.context.ids.add(value)
        return value

    @field_validator("routes")
    @classmethod
    def settle(cls, routes: tuple[Route, ...], info: ValidationInfo) -> tuple[Route, ...]:
        """One form for both ways to write it."""
        if not {"id", "vendor", "model"} <= info.data.keys():
            return routes  # one of them is wrong, which is told already
        vendor, model = info.data["vendor"], info.data["model"]
        if bool(routes) == bool(vendor) or (routes and model):
            raise _reject("needs either `vendor` (and `model`) or `routes`", "Keep exactly one of the two forms.")
        written = routes or (Route(vendor=vendor, model=model),)
        return tuple(route.model_copy(update={"model": route.model or info.data["id"]}) for route in written)


class Settings(Table):
    """Everything the operator can set."""

    data: Annotated[Path, BeforeValidator(_parse_folder)] = Field(
        default_factory=lambda: Path(user_data_dir("penstock")), description="the folder of everything that is kept"
    )
    database_url: str = Field(
        pattern=r"^sqlite:///[^:]",
        default_factory=lambda earlier: f"sqlite:///{earlier['data'] / 'penstock.db'}",
        description="the store: sqlite:/// and the path of a file (this version has no other store)",
    )
    assets_url: str = Field(
        pattern=r"^file:///",
        default_factory=lambda earlier: (earlier["data"] / "assets").as_uri(),
        description="where files are kept: file:// and the whole path of a folder (this version has no other place)",
    )
    server: Server = Server()
    fetch: Fetch = Fetch()
    jobs: Jobs = Jobs()
    vendors: Mapping[VendorName, VendorTable] = Field(default={}, repr=False)
    models: tuple[ModelEntry, ...] = ()
    _source: Source = Source()

    def model_post_init(self, context: Any, /) -> None:
        """Keep where the values came from."""
        self._source = context.source if isinstance(context, _Context) else Source()

    @property
    def source(self) -> Source:
        """Where the values came from, to `explain` what a vendor finds wrong in its table."""
        return self._source

    @property
    def secrets(self) -> frozenset[str]:
        """Every secret among the values, so that logs can hide them."""
        return self._source.secrets

    @cached_property
    def fingerprint(self) -> str:
        """Equal for equal settings; secrets do not take part."""
        values = _map_texts(self.model_dump(mode="json"), lambda text, _: "***" if text in self.secrets else text)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class _Context:
    """What checking one entry needs to know of the others."""

    source: Source
    vendors: frozenset[str]
    ids: set[str] = field(default_factory=set[str])


# -- reading

VARIABLES: Mapping[str, tuple[str, ...]] = {
    f"PENSTOCK_{'_'.join(path).upper()}": path
    for path in (
        *(("data",), ("database_url",), ("assets_url",)),
        *(("server", name) for name in Server.model_fields),
        *(("fetch", name) for name in Fetch.model_fields),
        *(("jobs", name) for name in Jobs.model_fields),
    )
}
"""The environment variable of every setting."""
OTHER_VARIABLES = frozenset({"PENSTOCK_CONFIG", "PENSTOCK_BASE_URL", "PENSTOCK_API_KEY", "PENSTOCK_ADMIN_KEY"})


def load(config: Path | None, environ: Mapping[str, str], overrides: Mapping[str, Any]) -> Settings:
    """Read every setting; `overrides` are the command line's, such as {"server.port": 80}, None where not given."""
    file, named_by = _choose_file(config, environ, overrides)
    text = _read_text(file, named_by)
    values = _parse_toml(text, file)
    origins = _overlay(values, environ, overrides)
    source = Source(str(file) if text else None, _scan_lines(text), origins)
    reader = _SecretReader(environ, file.absolute().parent if text else Path.cwd(), source)
    values = _map_texts(values, reader.resolve)
    source = replace(source, secrets=frozenset(reader.secrets))
    problems = reader.problems + _check_variables(environ, reader.variables)
    vendors = values.get("vendors")
    names = frozenset(cast("dict[str, Any]", vendors)) if isinstance(vendors, dict) else frozenset[str]()
    try:
        settings = Settings.model_validate(values, context=_Context(source, names))
    except ValidationError as error:
        problems += explain(error, "", source, Settings).problems
    else:
        if not problems:
            return settings
    raise SettingsError(problems)  # outside `except`: Pydantic's error holds the values


def _choose_file(
    config: Path | None, environ: Mapping[str, str], overrides: Mapping[str, Any]
) -> tuple[Path, str | None]:
    """The file to read and who named it; the data folder's own file may be absent."""
    if config:
        return config, "--config"
    if name := environ.get("PENSTOCK_CONFIG"):
        return Path(name), "PENSTOCK_CONFIG"
    data = overrides.get("data") or environ.get("PENSTOCK_DATA") or user_data_dir("penstock")
    return _absolute(Path(data), Path.cwd()) / "config.toml", None


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
        if isinstance(data := values.get("data"), str) and data:
            values["data"] = str(_absolute(Path(data), file.absolute().parent))
        return values
    what, _, place = message.partition(" (at ")
    at = re.search(r"line (\d+), column (\d+)", place)
    where = f"{file}:{at[1]}:{at[2]}" if at else f"{file}:{text.count(chr(10)) + 1}"
    raise SettingsError([Problem(where, f"is not TOML: {what}", "Correct the file there; texts stand in quotes.")])


def _overlay(values: dict[str, Any], environ: Mapping[str, str], overrides: Mapping[str, Any]) -> dict[KeyPath, str]:
    """Put the environment, then the command line over the file's values; an empty variable counts as not set."""
    given = [(path, environ[name], name) for name, path in VARIABLES.items() if environ.get(name)]
    for name, value in overrides.items():
        if value is not None:
            path = tuple(name.split("."))
            given.append((path, value, f"--{name.rpartition('.')[2].replace('_', '-')}"))
    for (*tables, name), value, _ in given:
        table: Any = values.setdefault(tables[0], {}) if tables else values
        if isinstance(table, dict):  # else the file's own value is the problem told
            table[name] = value
    return {path: origin for path, _, origin in given}


def _check_variables(environ: Mapping[str, str], used: set[str]) -> list[Problem]:
    known = OTHER_VARIABLES | VARIABLES.keys() | used
    unknown = (name for name in environ if name.startswith("PENSTOCK_") and name not in known)
    return [Problem(name, "is not a setting", nearest(name, known)) for name in unknown]


def _map_texts(value: Any, change: Callable[[str, KeyPath], str], path: KeyPath = ()) -> Any:
    """The value with every text in it changed."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {name: _map_texts(item, change, (*path, name)) for name, item in table.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_map_texts(item, change, (*path, index)) for index, item in enumerate(items)]
    return change(value, path) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class _SecretReader:
    """Puts the secret itself in place of `env:NAME` and `file:PATH`, and notes what is secret."""

    environ: Mapping[str, str]
    folder: Path
    source: Source
    secrets: set[str] = field(default_factory=set[str])
    variables: set[str] = field(default_factory=set[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    def resolve(self, text: str, path: KeyPath) -> str:
        """The text itself, or what it refers to."""
        if path[0] != "vendors" and path != ("server", "admin_key"):
            return text
        scheme, _, rest = text.partition(":")
        if scheme == "env":
            return self._read_variable(rest, path)
        if scheme == "file":
            return self._read_file(rest, path)
        name = next(part for part in reversed(path) if isinstance(part, str))
        if text and re.search(r"(^|_)key$|secret$|token$|password$", name):
            self.secrets.add(text)
        return text

    def _read_variable(self, name: str, path: KeyPath) -> str:
        self.variables.add(name)
        found = self.environ.get(name, "").strip()
        remedy = f"Set {name} in the server's environment, or write file:PATH or the value itself."
        return self._keep(found, path, f"the environment variable {name} is not set, or empty", remedy)

    def _read_file(self, name: str, path: KeyPath) -> str:
        file = _absolute(Path(name), self.folder)
        try:
            found = file.read_text("utf-8").strip()
        except (OSError, ValueError):
            found = ""
        remedy = "Put the secret, and nothing else, into that file, or write env:NAME or the value itself."
        return self._keep(found, path, f"the file {file} is missing, unreadable or empty", remedy)

    def _keep(self, found: str, path: KeyPath, what: str, remedy: str) -> str:
        if found:
            self.secrets.add(found)
        else:
            self.problems.append(Problem(self.source.locate(path), what, remedy))
        return found
