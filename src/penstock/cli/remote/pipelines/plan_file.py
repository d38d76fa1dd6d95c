"""Files that describe pipelines, in JSON or TOML."""

import json
import sys
import tomllib
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final, cast

from penstock.cli.printing import fail

STORED: Final = frozenset({"steps", "on_error", "params", "description"})
"""Fields of a template."""
RUN: Final = STORED | {"client_ref", "metadata", "webhook", "start_timeout", "run_timeout", "retention"}
"""Fields of a pipeline that is run. The description is for people only."""


def read_plan(file: str, known: AbstractSet[str]) -> dict[str, Any]:
    """Return the fields of a file, or of stdin for `-`. End the command if it is no pipeline."""
    text = _read(file)
    try:
        plan: Any = tomllib.loads(text) if file.endswith(".toml") else json.loads(text)
    except (ValueError, RecursionError) as error:
        fail(f"FILE: {file} is not {'TOML' if file.endswith('.toml') else 'JSON'}: {error}.")
    if not isinstance(plan, dict) or "steps" not in plan:
        fail(f'FILE: {file} has no steps: write {{"steps": {{"picture": {{"model": …, "params": …}}}}}}.')
    fields = cast("dict[str, Any]", plan)
    if unknown := [name for name in fields if name not in known]:
        fail(f"FILE: {file} has the unknown field `{unknown[0]}`. Known: {', '.join(sorted(known))}.")
    if not isinstance(fields.get("params", {}), dict):
        fail(f"FILE: `params` of {file} should be an object of names and values.")
    return fields


def _read(file: str) -> str:
    try:
        if file == "-":
            return "" if sys.stdin is None else sys.stdin.buffer.read().decode()
        return Path(file).expanduser().read_text("utf-8")
    except (OSError, RuntimeError) as error:
        fail(f"FILE: {file} cannot be read: {getattr(error, 'strerror', None) or error}.")
    except UnicodeDecodeError:
        fail(f"FILE: {file} is not text in UTF-8.")
