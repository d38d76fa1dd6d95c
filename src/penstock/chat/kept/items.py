"""Items of kept responses: the input as one list, with the ids and forms in which it is shown."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from penstock.vendor_api.lenient_json import read_json

PREFIXES: Final[Mapping[str, str]] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}
"""Prefixes of the ids of items, by type."""
CALLS: Final = frozenset(PREFIXES) - {"reasoning"}
"""Types of items that are shown with a status."""


class ItemPage(NamedTuple):
    """A page of items."""

    items: list[dict[str, Any]]
    has_more: bool


class _Output(msgspec.Struct):
    output: list[msgspec.Raw] = []


class _Identified(msgspec.Struct):
    id: str | None = None
    type: str | None = None


_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_EMPTY: Final = (b"null", b"[]", b'""')
_read_output = msgspec.json.Decoder(_Output).decode
_read_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
_identify = msgspec.json.Decoder(_Identified).decode


def as_items(given: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """Return the items of an `input`. A text is one message of the user."""
    if bytes(memoryview(given)[:1]) == b'"':
        return [msgspec.Raw(b'{"type":"message","role":"user","content":' + bytes(given) + b"}")]
    return _read_raw(given)


def output_items(body: bytes) -> list[msgspec.Raw]:
    """Return the output items of a response object."""
    return _read_output(body).output


def repeat_output(body: bytes) -> list[msgspec.Raw]:
    """Return the output items of a response object as input of another request.

    They have no ids, by which a vendor would look for them. Reasoning that nobody can read is left out.
    """
    found: list[msgspec.Raw] = []
    for item in output_items(body):
        fields = _read_fields(item)
        fields.pop("id", None)
        if bytes(fields.get("type", b"")) != b'"reasoning"' or _is_readable(fields):
            found.append(msgspec.Raw(_encode(fields)))
    return found


def _is_readable(fields: Mapping[str, msgspec.Raw]) -> bool:
    return any(bytes(fields.get(name, b"null")) not in _EMPTY for name in ("encrypted_content", "content"))


def output_ids(body: bytes) -> list[str]:
    """Return the ids of the output items of a response object."""
    return [found for item in output_items(body) if (found := _identify(item).id)]


def id_of(item: msgspec.Raw) -> str | None:
    """Return the id of an item, or None."""
    return _identify(item).id


def references(items: Sequence[msgspec.Raw]) -> dict[str, int]:
    """Return the ids of items that are only referred to, each with its place."""
    found = ((place, _identify(item)) for place, item in enumerate(items) if b"item_reference" in bytes(item))
    return {item.id: place for place, item in found if item.id and item.type in ("item_reference", None)}


def show(given: bytes, response_id: str) -> list[dict[str, Any]]:
    """Return the input items of a response as the API shows them, each with an id and a type."""
    own = response_id.rpartition("_")[2]
    return [_show(read_json(bytes(item)), own, place) for place, item in enumerate(as_items(given))]


def cut_page(shown: Sequence[dict[str, Any]], after: str | None, limit: int) -> ItemPage | None:
    """Return the items that follow the one with the id `after`; None if there is no such item."""
    start = 0
    if after is not None:
        start = next((place for place, item in enumerate(shown, 1) if item["id"] == after), -1)
        if start < 0:
            return None
    return ItemPage(list(shown[start : start + limit]), len(shown) > start + limit)


def _show(item: Any, own: str, place: int) -> dict[str, Any]:
    given = cast("dict[str, Any]", item) if isinstance(item, dict) else {"content": str(item)}
    kind = given.get("type") or "message"
    found = {"id": f"{PREFIXES.get(kind, 'item')}_{own}{place:04}", "type": kind, **_without_none(given)}
    if kind in CALLS:
        found.setdefault("status", "completed")
    if kind == "message":
        found.setdefault("role", "user")
        if isinstance(content := found.get("content"), str):
            found["content"] = [_show_text(content, is_output=found["role"] == "assistant")]
    return found


def _without_none(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without an id, type or status that is null."""
    return {name: value for name, value in item.items() if value is not None or name not in ("id", "type", "status")}


def _show_text(text: str, *, is_output: bool) -> dict[str, Any]:
    return (
        {"type": "output_text", "text": text, "annotations": []} if is_output else {"type": "input_text", "text": text}
    )
