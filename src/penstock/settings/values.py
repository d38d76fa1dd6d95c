"""Types of values in the settings: durations, folders, networks, names, JSON files."""

import base64
import json
import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from penstock.settings.problems import reject
from penstock.settings.sources import make_absolute

BUILT_IN: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "embedded": {"type": "embedded"},
        "hibari": {"type": "hibari"},
        "local": {"type": "local"},
        "local_large": {"type": "local", "gguf": "qwen2.5-coder-1.5b.gguf"},
        "minilm": {"type": "minilm"},
        "sim": {"type": "sim"},
        "whisper": {"type": "whisper"},
    }
)
"""Vendors that need no account and no table. The first that can runs each model that no configured vendor serves."""
MINUTE, HOUR, DAY, WEEK = 60.0, 3600.0, 86400.0, 604800.0
UNITS = {"": 1.0, "s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
LONGEST = 36500 * DAY
ADMIN_KEY_LENGTH, ADMIN_KEY_LETTERS = 8, 5
MASTER_KEY_BYTES = 32


def parse_duration(value: Any) -> float:
    """Return seconds from a number or a text such as "90", "12h" or "30d"."""
    if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)([smhdw]?)", value.strip())):
        value = float(match[1]) * UNITS[match[2]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        raise ValueError('a time is a number of seconds or a text such as "90s", "12h" or "30d", at most 36500d')
    return float(value)


def parse_retention(value: Any) -> float | None:
    """Return a duration in seconds; None for "forever"."""
    return None if value is None or value == "forever" else parse_duration(value)


def parse_folder(value: Any) -> Any:
    """Return an absolute path from one that may begin with ~."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise ValueError("a folder is the path of a folder")
    return make_absolute(Path(value), Path.cwd())


def _parse_network(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError('a network is a text such as "10.1.0.0/16"')
    return ip_network(value.strip())


def split(value: Any) -> Any:
    """Split a list that comes from an environment variable as comma-separated text."""
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _check_name(vendor: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", vendor):
        raise reject("is not a vendor's name", "Use letters, digits, - and _, beginning with a letter or digit.")
    return vendor


def _check_type(table: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(table.get("type"), str) or not table["type"]:
        raise reject(
            "`type` is missing or is not a text", 'Add `type = "…"`: the name of the vendor\'s file, such as "sim".'
        )
    return table


def name_built_in(tables: Any) -> Any:
    """Complete the table of a built-in vendor, unless it is of another type."""
    if not isinstance(tables, dict):
        return tables
    found = cast("dict[str, Any]", tables)
    return {name: _complete(name, table) if name in BUILT_IN else table for name, table in found.items()}


def _complete(name: str, table: Any) -> Any:
    usual = BUILT_IN[name]
    if not isinstance(table, dict) or cast("dict[str, Any]", table).get("type", usual["type"]) != usual["type"]:
        return cast("Any", table)
    return {**usual, **cast("dict[str, Any]", table)}


def parse_document(value: Any) -> Any:
    """Return an object from a table of the file or the text of a JSON file."""
    if not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError('write it as a table, or as "file:PATH" of a JSON file that holds an object')
    return cast("dict[str, Any]", found)


def parse_params(value: Any) -> Any:
    """Return an object, or the word `vendor`."""
    if value is None or value == "vendor":
        return value
    found = parse_document(value)
    if not isinstance(found, dict):
        raise ValueError('write it as a table, "file:PATH" of a JSON file, or "vendor"')
    return cast("dict[str, Any]", found)


def check_admin_key(key: SecretStr) -> SecretStr:
    """Reject a key that is easy to guess, as the administrator's key opens every account."""
    text = key.get_secret_value()
    if len(text) < ADMIN_KEY_LENGTH or len(set(text)) < ADMIN_KEY_LETTERS:
        what = f"is too easy to guess: at least {ADMIN_KEY_LENGTH} characters, {ADMIN_KEY_LETTERS} of them different"
        raise reject(what, "Make one with `openssl rand -hex 32`, and give it to whoever administers.")
    return key


def parse_master_key(text: str) -> bytes:
    """Return the 32 bytes of a key in hexadecimal or base64."""
    try:
        is_hex = len(text) == MASTER_KEY_BYTES * 2
        standard = text.replace("-", "+").replace("_", "/")
        key = bytes.fromhex(text) if is_hex else base64.b64decode(standard, validate=True)
    except ValueError:
        key = b""
    if len(key) != MASTER_KEY_BYTES:
        raise ValueError("is not a key of 32 bytes in hexadecimal or base64")
    return key


def check_master_key(key: SecretStr) -> SecretStr:
    """Reject a text that is not a key, and one that was typed instead of drawn."""
    try:
        drawn = parse_master_key(key.get_secret_value())
    except ValueError as error:
        raise reject(str(error), "Make one with `openssl rand -hex 32`.") from None
    if len(set(drawn)) < MASTER_KEY_BYTES // 2:
        raise reject("is not random", "Make one with `openssl rand -hex 32`.")
    return key


Duration = Annotated[float, BeforeValidator(parse_duration)]
MasterKeyText = Annotated[SecretStr, AfterValidator(check_master_key)]
AdminKey = Annotated[SecretStr, AfterValidator(check_admin_key)]
Timeout = Annotated[Duration, Field(gt=0)]
Retention = Annotated[Annotated[float, Field(gt=0)] | None, BeforeValidator(parse_retention)]
RecordAge = Annotated[Annotated[float, Field(ge=DAY)] | None, BeforeValidator(parse_retention)]
Network = Annotated[IPv4Network | IPv6Network, BeforeValidator(_parse_network)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(split)]
VendorName = Annotated[str, AfterValidator(_check_name)]
VendorTable = Annotated[Mapping[str, Any], AfterValidator(_check_type)]
Document = Annotated[Mapping[str, Any], BeforeValidator(parse_document)]
ORIGIN = r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?$"
ADDRESS = r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$"
PLACE = r"^(file:///|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._/-]*)?$)"
"""URLs of file storage: a folder, or a bucket with a name that S3 allows."""
