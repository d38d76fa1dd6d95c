"""Limits of the settings that operators may change while servers run: those that need no restart."""

import math
from collections.abc import Mapping
from typing import Any, Final, cast

LIVE_LIMITS: Final = (
    "assets.quota_mb",
    "chat.cache_mb",
    "chat.cache_seconds",
    "chat.heartbeat_seconds",
    "chat.outage_seconds",
    "chat.response_quota_mb",
    "chat.response_retention",
    "fetch.seconds",
    "jobs.file_retention",
    "jobs.link_seconds",
    "jobs.max_timeout",
    "jobs.max_waiting",
    "jobs.max_waiting_total",
    "jobs.retention",
    "jobs.run_timeout",
    "jobs.start_timeout",
    "server.max_bodies_mb",
    "server.max_bodies_mb_per_account",
    "server.max_streams",
    "server.max_streams_per_account",
    "server.max_uploads",
)
"""Dotted names of settings. None opens a way in, and none can erase what is kept for audits."""


def is_limit_value(value: Any) -> bool:
    """Return whether a value has a form that limits have: a finite number, or a text such as "12h" or "forever"."""
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        return not value.startswith(("env:", "file:"))
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def split_limit(name: str) -> tuple[str, str]:
    """Return the table and the key of a dotted name."""
    table, _, key = name.partition(".")
    return table, key


def find_written(written: Mapping[str, Any], name: str) -> Any:
    """Return the value that the file, the environment or the command line gives a limit; None if there is none."""
    table, key = split_limit(name)
    found = written.get(table)
    return cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None


def with_limits(written: Mapping[str, Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with limits that they do not have themselves."""
    values = dict(written)
    for name, value in limits.items():
        if find_written(written, name) is None:
            table, key = split_limit(name)
            values[table] = {**values.get(table, {}), key: value}
    return values
