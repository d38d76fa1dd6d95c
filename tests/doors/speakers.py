"""The doors and vendors themselves, without a gateway: pure functions from requests to requests."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doors.neutral import Json

from penstock.chat.doors import DOORS as BY_DIALECT
from penstock.chat.doors.door import Door
from penstock.domain.chat import Ask, Dialect
from penstock.vendor_api.chat import ChatVendor
from penstock.vendor_api.generation import VendorFolders
from penstock.vendors.anthropic import Anthropic
from penstock.vendors.gemini import Gemini
from penstock.vendors.openai_compatible import OpenAICompatible

NOWHERE = VendorFolders(Path("nowhere"), Path("nowhere"))
DOORS: dict[str, Door] = {dialect.value: door for dialect, door in BY_DIALECT.items()}
"""By name."""


def _make(kind: type[Any], **options: Any) -> ChatVendor:
    return kind(kind.options_type(type="any", api_key="sk-upstream", **options), NOWHERE)


VENDORS: dict[str, ChatVendor] = {
    "chat": _make(OpenAICompatible),
    **(
        {"responses": _make(OpenAICompatible, responses=True)}
        if "responses" in OpenAICompatible.options_type.model_fields
        else {}
    ),
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
    request = ask if is_native else DOORS[door].to_chat(ask)
    call = speaker.complete(request, "upstream")
    assert call.body is not None
    return Sent(json.loads(call.body), request.left_out + call.left_out, ask, request)
