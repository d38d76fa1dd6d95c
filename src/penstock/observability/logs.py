"""Logs: one line per record, with its context and without secrets."""

import asyncio
import atexit
import json as json_text
import logging
import math
import re
import sys
import time
import traceback
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, TextIO, TypeAlias, cast
from urllib.parse import quote

from penstock.domain.ids import timestamp

MAX_TEXT = 8_192
"""The longest string in a line; longer ones are cut."""

MAX_FIELDS_TEXT = 32_768
"""Upper bound of one record's fields; further ones are left out."""

LINES_SECONDS = 0.05
"""Time for which a request's line may wait to be written with others."""

MAX_ITEMS = 64
MAX_DEPTH = 4

_QUIET = ("uvicorn.error", "asyncio", "aiohttp", "alembic", "sqlalchemy")
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROL_BUT_NEWLINE = {code: text for code, text in _CONTROL.items() if chr(code) != "\n"}
_MASK = "***"
_TOKENS = re.compile(
    r"(?P<key>psk_[A-Za-z0-9-]+_)[A-Za-z0-9_-]+"
    r"|(?P<scheme>\bbearer\s+)(?!psk_[A-Za-z0-9-]+_)[^\s\"',;]+",
    re.IGNORECASE,
)

_bound: ContextVar[Mapping[str, object]] = ContextVar("bound", default={})  # noqa: B039  never changed, only replaced
_hidden: list[str] = []
_access = logging.getLogger("penstock.access")
_lines: "_Lines | None" = None
"""The destination of request lines, if they are JSON."""


# -- what a record belongs to


@contextmanager
def bind(**fields: object) -> Generator[None]:
    """Put these fields (`request_id`, `job_id`, `account`) on every record made inside, also by what it starts."""
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def belong(**fields: object) -> None:
    """Like `context`, but until the end of the task, which is a request's own."""
    _bound.set({**_bound.get(), **fields})


# -- secrets


def hide(secret: str) -> None:
    """Mask this value from now on, also as it looks inside JSON, Python's repr or a URL."""
    if len(secret) < 4:  # it would mask ordinary words
        return
    forms = {secret, json_text.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")}
    _hidden.extend(forms.difference(_hidden))
    _place.cache_clear()
    _hidden.sort(key=len, reverse=True)  # a secret may contain another


def mask(text: str) -> str:
    """Return the text without secrets; a key keeps its public id."""
    for secret in _hidden:
        if secret in text:
            text = text.replace(secret, _MASK)
    return _TOKENS.sub(lambda found: (found["key"] or found["scheme"]) + _MASK, text)


def _clean(value: object, depth: int = 0) -> Any:
    """Return a copy that is safe to write: masked, shortened, and of JSON's own types."""
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case bytes() | bytearray():
            return f"{len(value)} bytes"
        case Mapping() if depth < MAX_DEPTH:
            pairs = cast("Mapping[object, object]", value).items()
            return {_cut(str(name)): _clean(item, depth + 1) for name, item in islice(pairs, MAX_ITEMS)}
        case list() | tuple() | set() | frozenset() if depth < MAX_DEPTH:
            return [_clean(item, depth + 1) for item in islice(cast("Iterable[object]", value), MAX_ITEMS)]
        case _:
            return _cut(str(value))


def _cut(text: str) -> str:
    clean = mask(text)
    return clean if len(clean) <= MAX_TEXT else f"{clean[:MAX_TEXT]}… ({len(text)} characters)"


# -- lines


def tell_request(request_id: str, method: str, path: str, status: int, seconds: float, account: str | None) -> None:
    """Formats the line of every request by hand and in bulk, as logging would be its largest cost."""
    if not _access.isEnabledFor(logging.INFO):
        return
    milliseconds = round(seconds * 1000, 2)
    if _lines is None:
        fields = {"method": method, "path": path[:200], "status": status, "ms": milliseconds, "account": account}
        _access.info("request", extra={"fields": fields})
        return
    _lines.write((time.time(), request_id, method, path[:200], account, status, milliseconds))


_Request: TypeAlias = tuple[float, str, str, str, str | None, int, float]
"""End time, id, method, path, account, status and duration in milliseconds."""


def _write_line(request: _Request) -> str:
    now, request_id, method, path, account, status, milliseconds = request
    return (
        f'{{"time": "{_second(int(now))}.{int(now * 1000) % 1000:03d}Z", "level": "info", '
        f'"logger": "penstock.access", "message": "request", "request_id": "{request_id}", '
        f'{_place(method, path, account)}, "status": {status}, "ms": {milliseconds}}}\n'
    )


@lru_cache(maxsize=1024)
def _place(method: str, path: str, account: str | None) -> str:
    return json_text.dumps({"method": method, "path": mask(path), "account": account})[1:-1]


class _Lines(logging.StreamHandler[TextIO]):
    """A stream that buffers request lines; other records are written immediately, in order."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._waiting: list[_Request] = []
        atexit.register(self.flush_lines)

    def write(self, request: _Request) -> None:
        """Write a request's line soon."""
        if not self._waiting:
            try:
                asyncio.get_running_loop().call_later(LINES_SECONDS, self.flush_lines)
            except RuntimeError:  # no loop that would write them later
                self._waiting.append(request)
                self.flush_lines()
                return
        self._waiting.append(request)

    def flush_lines(self) -> None:
        """Write the buffered lines."""
        requests, self._waiting = self._waiting, []
        if requests:
            with suppress(OSError, ValueError):  # a full disk, a closed stream: not worth a request
                self.stream.write("".join(map(_write_line, requests)))
                self.stream.flush()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record after the buffered lines."""
        self.flush_lines()
        super().emit(record)


@lru_cache(maxsize=4)
def _second(moment: int) -> str:
    return str(timestamp(moment))[:19]


def _read(record: logging.LogRecord) -> tuple[str, dict[str, Any], str]:
    """Return a record's message, fields and traceback, all masked."""
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001  logging would print the arguments of a wrong call unmasked
        message = f"{record.msg} {record.args}"
    fields = _clean(record.__dict__.get("fields", {}))
    if fields and len(str(fields)) > MAX_FIELDS_TEXT:
        fields = {"fields": f"left out: more than {MAX_FIELDS_TEXT} characters"}
    trace = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
    # The end of a traceback says what happened.
    trace = mask(trace + (record.stack_info or "")).rstrip()[-MAX_TEXT:]
    return _cut(message), {**_clean(_bound.get()), **fields}, trace


class _JsonFormatter(logging.Formatter):
    """For machines: one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        message, fields, trace = _read(record)
        line = {
            "time": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        if trace:
            line["exception"] = trace
        return json_text.dumps({**line, **{name: item for name, item in fields.items() if name not in line}})


class _TextFormatter(logging.Formatter):
    """For a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        message, fields, trace = _read(record)
        moment = self.formatTime(record, "%H:%M:%S")
        line = f"{moment} {record.levelname:<7} {record.name}: {message}"
        line += "".join(f" {name}={item}" for name, item in fields.items() if item is not None)
        # Escaped, as a caller's text must be able neither to forge a line nor to steer the terminal.
        return line.translate(_CONTROL) + (f"\n{trace}" if trace else "").translate(_CONTROL_BUT_NEWLINE)


def configure(level: str = "INFO", *, json: bool | None = None, stream: TextIO | None = None) -> None:
    """Send all records of this level to stderr: as JSON, or as text where that is a terminal."""
    handler = _Lines(stream or sys.stderr)
    as_json = not handler.stream.isatty() if json is None else json
    handler.setFormatter(_JsonFormatter() if as_json else _TextFormatter())
    global _lines  # noqa: PLW0603  logging itself is global
    _lines = handler if as_json else None
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(root.level, logging.WARNING))
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False  # otherwise a full disk is reported with unmasked arguments
