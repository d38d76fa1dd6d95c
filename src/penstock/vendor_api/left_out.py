"""Names of the fields of a chat request that a vendor with another dialect cannot get."""

from collections.abc import Collection, Iterable
from typing import Any, Final

from penstock.domain.chat import Ask

REASONING: Final = "reasoning"
"""Reasoning of earlier turns, whatever its name in the caller's dialect."""
_READ_BY_GATEWAY: Final = frozenset({"messages", "model", "stream", "stream_options"})
_NO_EFFECT: Final[dict[str, Any]] = {
    "metadata": {},
    "service_tier": "auto",
    "store": False,
    "top_logprobs": 0,
    "verbosity": "medium",
}
"""Values that change nothing."""


def find_left_out(ask: Ask, taken: Collection[str], found: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the fields that are not `taken` and have an effect, after the names `found` already."""
    names = [
        name
        for name in ask.fields
        if name not in taken and name not in _READ_BY_GATEWAY and ask.has(name, but=_NO_EFFECT.get(name))
    ]
    return tuple(dict.fromkeys([*found, *names]))
