"""Rate limit headers as chat clients read them, and durations in their notation."""

import math
from typing import Final

MINUTE: Final = 60.0


def describe_bucket(kind: str, limit: int, level: float) -> list[tuple[str, str]]:
    """Return the headers of one limit, given its current level."""
    return [
        (f"x-ratelimit-limit-{kind}", str(limit)),
        (f"x-ratelimit-remaining-{kind}", str(max(0, math.floor(level + 1e-6)))),
        (f"x-ratelimit-reset-{kind}", write_duration((limit - level) * MINUTE / limit)),
    ]


def write_bucket(kind: str, limit: int, level: float) -> bytes:
    """Like `describe_bucket`, but return encoded header lines."""
    left, reset = int(level + 1e-6) if level > 0 else 0, write_duration((limit - level) * MINUTE / limit)
    lines = f"x-ratelimit-limit-{kind}: {limit}\r\nx-ratelimit-remaining-{kind}: {left}\r\n"
    return f"{lines}x-ratelimit-reset-{kind}: {reset}\r\n".encode()


def write_duration(seconds: float) -> str:
    """Return a duration as `12ms`, `1.5s` or `6m0s`."""
    milliseconds = math.ceil(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    text = f"{rest / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{minutes}m{text}s" if minutes else f"{text}s"
