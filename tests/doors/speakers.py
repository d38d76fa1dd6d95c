"""The doors and vendors themselves, without a gateway: pure functions from requests to requests."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doors.neutral import Json
from msgspec import structs

from penstock.chat.doors import DOORS as BY_DIALECT
from penstock.chat.doors.door import Door
from penstock.chat.replies.broken import Broken
from penstock.chat.replies.chunks.parts import ChunkTranslation
from penstock.chat.replies.stream import Stream
from penstock.chat.replies.translated import TranslatedStream, render_whole
from penstock.domain.chat import Ask, Dialect
from penstock.errors import VendorFailed
from penstock.vendor_api.chat import ChatVendor, Translator
from penstock.vendor_api.generation import VendorFolders
from penstock.vendors.anthropic import Anthropic
from penstock.vendors.gemini import Gemini
from penstock.vendors.openai_compatible import OpenAICompatible

REPLY_ID, CREATED = "chatcmpl-0123456789", 1_790_000_000
NOWHERE = VendorFolders(Path("nowhere"), Path("nowhere"))
DOORS: dict[str, Door] = {
    dialect.value: BY_DIALECT[dialect] for dialect in (Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES)
}
"""By name; embeddings have no conversation."""


def _make(kind: type[Any], **options: Any) -> ChatVendor:
    return kind(kind.options_type(type="any", api_key="sk-upstream", **options), NOWHERE)


VENDORS: dict[str, ChatVendor] = {
    "chat": _make(OpenAICompatible),
    "responses": _make(OpenAICompatible, responses=True),
    "anthropic": _make(Anthropic),
    "gemini": _make(Gemini),
}
"""By dialect."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way to a vendor."""

    body: Json
    left_out: tuple[str, ...]
    ask: Ask
    """As it came through the door."""
    request: Ask
    """As the vendor took it."""


def send(door: str, vendor: str, body: Json) -> Sent:
    """Return what becomes of a request; raise `InvalidRequest` if it is refused."""
    ask = DOORS[door].read(json.dumps({"model": "m", **body}).encode(), {})
    speaker = VENDORS[vendor]
    is_native = speaker.dialect is ask.dialect and ask.dialect is not Dialect.CHAT
    request = ask if is_native else _to_chat(door, ask)
    call = speaker.complete(request, "upstream")
    assert call.body is not None
    return Sent(json.loads(call.body), request.left_out + call.left_out, ask, request)


def _to_chat(door: str, ask: Ask) -> Ask:
    found = DOORS[door].to_chat(ask)
    return found if found is ask else structs.replace(found, is_translated=True)


def relay(door: str, vendor: str, sent: Sent, pieces: Iterable[bytes]) -> bytes:
    """Return what the caller gets of a vendor's stream, as the gateway passes it on."""
    stream = _open(door, vendor, sent)
    out: list[bytes] = []
    for data in pieces:
        if stream.quick is not None and (quick := stream.quick(data)) is not None:
            out.append(quick)
            continue
        out.append(stream.feed(data))
        if stream.ended or stream.broken is not None:
            break
    if stream.broken is None:
        out.append(stream.end())
    if stream.broken is not None or not stream.complete:
        own = stream.fail(VendorFailed("The vendor's reply broke off."), "req_1")
        event = stream.broken.event if isinstance(stream.broken, Broken) else None
        out.append(own if event is None else event)
    return b"".join(out)


def relay_whole(door: str, vendor: str, sent: Sent, body: bytes) -> bytes:
    """Return the caller's body for a vendor's whole reply; raise `Broken` or `Malformed` if it is not one."""
    translator = _find_translator(vendor, sent)
    if translator is None:
        return DOORS[door].pass_whole(body, sent.ask, REPLY_ID, CREATED)[0]
    writer = DOORS[door].make_writer(sent.ask, REPLY_ID, CREATED)
    return render_whole(translator.whole(body), sent.ask, writer)[0]


def _open(door: str, vendor: str, sent: Sent) -> Stream:
    translator = _find_translator(vendor, sent)
    if translator is None:
        return DOORS[door].pass_stream(sent.ask, REPLY_ID, CREATED)
    return TranslatedStream(sent.ask, translator, DOORS[door].make_writer(sent.ask, REPLY_ID, CREATED))


def _find_translator(vendor: str, sent: Sent) -> Translator | None:
    found = VENDORS[vendor].translator(sent.request)
    if found is None and sent.request.dialect is not sent.ask.dialect:
        return ChunkTranslation(sent.ask, REPLY_ID, CREATED)
    return found
