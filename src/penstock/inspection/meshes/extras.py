"""Writes facts into the `asset.extras` of a GLB. All other bytes of its document stay as they are."""

import shutil
from typing import IO, Any, Final

import msgspec

from penstock.inspection.meshes.document import MAX_DOCUMENT_BYTES

KEY: Final = "penstock"
HEAD: Final = 12
JSON_CHUNK: Final = b"JSON"


def mark_glb(source: IO[bytes], target: IO[bytes], facts: dict[str, Any]) -> None:
    """Copy a GLB to `target`, with the facts in its `asset.extras`."""
    document, rest = _read_document(source)
    asset = msgspec.json.decode(document["asset"], type=dict[str, msgspec.Raw])
    try:
        extras = msgspec.json.decode(asset.get("extras", msgspec.Raw(b"{}")), type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:  # glTF allows any value here
        extras = {"vendor": asset["extras"]}
    extras[KEY] = msgspec.Raw(msgspec.json.encode(facts))
    asset["extras"] = msgspec.Raw(msgspec.json.encode(extras))
    document["asset"] = msgspec.Raw(msgspec.json.encode(asset))
    text = msgspec.json.encode(document)
    text += b" " * (-len(text) % 4)
    target.seek(0)
    total = HEAD + 8 + len(text) + rest
    target.write(b"glTF" + (2).to_bytes(4, "little") + total.to_bytes(4, "little"))
    target.write(len(text).to_bytes(4, "little") + JSON_CHUNK + text)
    shutil.copyfileobj(source, target, 1 << 20)
    target.flush()


def read_glb_facts(source: IO[bytes]) -> dict[str, Any] | None:
    """Return the facts in a GLB's `asset.extras`, None if it is no GLB or has none."""
    try:
        document, _ = _read_document(source)
        asset = msgspec.json.decode(document["asset"], type=dict[str, msgspec.Raw])
        extras = msgspec.json.decode(asset["extras"], type=dict[str, msgspec.Raw])
        return msgspec.json.decode(extras[KEY], type=dict[str, Any])
    except (KeyError, ValueError, RecursionError):
        return None


def _read_document(source: IO[bytes]) -> tuple[dict[str, msgspec.Raw], int]:
    """Return the members of the JSON document, and the bytes behind it, where the file stands then."""
    source.seek(0)
    head = source.read(HEAD + 8)
    if len(head) < HEAD + 8 or head[:4] != b"glTF" or head[16:20] != JSON_CHUNK:
        raise ValueError("the file is no GLB")
    length = int.from_bytes(head[12:16], "little")
    total = int.from_bytes(head[8:12], "little")
    if length > MAX_DOCUMENT_BYTES:
        raise ValueError("the document is too large")
    text = source.read(length)
    if len(text) != length or total < HEAD + 8 + length:
        raise ValueError("the document is cut off")
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw]), total - HEAD - 8 - length
