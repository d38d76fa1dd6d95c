"""Where clients put their API key: each SDK has its own header."""

import re
from collections.abc import Mapping
from typing import Final

HEADERS: Final = (b"x-api-key", b"x-goog-api-key")
"""Headers that hold nothing but the key, in the order in which they are read."""
_SCHEMES: Final = re.compile("(?:key|token) ", re.IGNORECASE)
"""Schemes of some clients, instead of `Bearer `."""


def find_credential(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the key of a request as an `Authorization` header; None if there is none. Names are in lower case."""
    sent = headers.get(b"authorization")
    if sent is not None:
        text = sent.decode("latin-1")
        return _SCHEMES.sub("Bearer ", text, count=1) if _SCHEMES.match(text) else text
    key = next((headers[name] for name in HEADERS if headers.get(name)), None)
    return None if key is None else f"Bearer {key.decode('latin-1')}"
