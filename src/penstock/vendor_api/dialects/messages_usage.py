"""Token counts in Anthropic's dialect, which come in several events and add up."""

from typing import Any, cast

from penstock.domain.chat import Usage, read_count


class MessagesCounts:
    """The counts of one reply so far. Those of a later event replace earlier ones; none of them is an increment."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, usage: dict[str, Any]) -> Usage:
        """Take the `usage` of a message or an event, and return the usage so far."""
        counts = dict(usage)
        for name in ("output_tokens_details", "cache_creation"):
            counts |= cast("dict[str, Any]", usage[name]) if isinstance(usage.get(name), dict) else {}
        whole = {name: count for name, count in counts.items() if isinstance(count, int | float) and count % 1 == 0}
        self._counts |= {name: read_count(count) for name, count in whole.items()}
        count = self._counts.get
        cached, written = count("cache_read_input_tokens", 0), count("cache_creation_input_tokens", 0)
        prompt = count("input_tokens", 0) + written + cached
        return Usage(
            prompt,
            count("output_tokens", 0),
            cached,
            count("thinking_tokens", 0),
            cache_writes=written,
            cache_writes_1h=min(written, count("ephemeral_1h_input_tokens", 0)),
        )


def write_usage(usage: Usage) -> dict[str, int]:
    """Return the `usage` of a message: at Anthropic, the prompt's tokens exclude those of its cache."""
    return {
        "input_tokens": max(0, usage.prompt - usage.cached - usage.cache_writes),
        "cache_creation_input_tokens": usage.cache_writes,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }
