"""Transcripts in results: clients of fal read the words from the result, not from a file."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from penstock.catalog.params import as_object
from penstock.domain.jobs import Job
from penstock.jobs.dialects.fal import TRANSCRIPT
from penstock.store.queries.files import asset_rows
from penstock.vendor_api.generation import Kind
from penstock.web.auth import Caller

MAX_BYTES: Final = 1 << 20
"""Bytes of the longest transcript whose words are in the result."""


async def with_words(caller: Caller, job: Job, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result, with the words of its transcript as `text`, and their times as `chunks` if it has them."""
    found = [asset for asset in job.outputs if asset.kind == Kind.TEXT]
    if TRANSCRIPT not in result or len(found) != 1 or found[0].bytes > MAX_BYTES:
        return result
    gateway = caller.gateway
    asset = await gateway.database.read(asset_rows.get, found[0].id, caller.account_id, gateway.clock())
    return {**read_words(await gateway.assets.read(asset)), **result}


def read_words(data: bytes) -> dict[str, Any]:
    """Return the text of a transcript, and its parts with their times."""
    text = data.decode("utf-8", "replace")
    try:
        document = as_object(msgspec.json.decode(text))
    except msgspec.DecodeError:
        return {"text": text}
    if not isinstance(document.get("text"), str):
        return {"text": text}
    segments: Any = document.get("segments")
    listed = [as_object(each) for each in (cast("list[Any]", segments) if isinstance(segments, list) else [])]
    return {"text": document["text"], **({"chunks": [_write_chunk(each) for each in listed]} if listed else {})}


def _write_chunk(segment: Mapping[str, Any]) -> dict[str, Any]:
    return {"timestamp": [segment.get("start"), segment.get("end")], "text": segment.get("text")}
