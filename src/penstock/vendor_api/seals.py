"""Sealed reasoning: a vendor's opaque data, wrapped so that any client returns it and only that vendor gets it back.

Messages clients return it as the signature of a thinking block, Responses clients as encrypted content. Chat clients
return nothing of the kind, but always the ids of tool calls: there the seal is a part of the first call's id.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

import msgspec

PREFIX: Final = "penstock-"
"""The beginning of every seal. No vendor's own signature begins so."""
ID_MARK: Final = "_sealed_"
_SEAL: Final = re.compile(rf"{PREFIX}([a-z]+)-([\w-]*)", re.ASCII)


def seal(vendor: str, data: Any) -> str:
    """Return a vendor's data as a text of letters, digits, `-` and `_`. `vendor` names its dialect in lower case."""
    return f"{PREFIX}{vendor}-{urlsafe_b64encode(msgspec.json.encode(data)).decode().rstrip('=')}"


def unseal(text: str, vendor: str) -> Any:
    """Return the data of a seal of this vendor; None for any other text."""
    found = _SEAL.fullmatch(text)
    if found is None or found[1] != vendor:
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(found[2] + "=" * (-len(found[2]) % 4)))
    except ValueError:
        return None


def is_seal(text: str) -> bool:
    """Return whether a signature or encrypted content is one of ours."""
    return text.startswith(PREFIX)


def attach(call_id: str, sealed: str) -> str:
    """Return the id of a tool call with a seal in it."""
    return f"{call_id}{ID_MARK}{sealed}"


def detach(call_id: str) -> tuple[str, str | None]:
    """Return the id of a tool call without its seal, and the seal."""
    bare, found, sealed = call_id.partition(ID_MARK)
    return (bare, sealed) if found else (call_id, None)
