"""How a limit per minute is told: the headers that chat clients read, and durations as they write them."""

import math
from typing import Final

MINUTE: Final = 60.0


def describe_bucket(kind: str, limit: int, level: float) -> list[tuple[str, str]]:
    """The headers of one limit, of which so much is left now."""
    return [
        (f"x-ratelimit-limit-{kind}", str(limit)),
        (f"x-ratelimit-remaining-{kind}", str(max(0, math.floor(level + 1e-6)))),
        (f"x-ratelimit-reset-{kind}", write_duration((limit - level) * MINUTE / limit)),
    ]


def write_bucket(kind: str, limit: int, level: float) -> bytes:
    """The same as lines of a head."""
    left, reset = int(level + 1e-6) if level > 0 else 0, write_duration((limit - level) * MINUTE / limit)
    lines = f"x-ratelimit-limit-{kind}: {limit}\r\nx-ratelimit-remaining-{kind}: {left}\r\n"
    return f"{lines}x-ratelimit-reset-{kind}: {reset}\r\n".encode()


def write_duration(seconds: float) -> str:
    """`12ms`, `1.5s` or `6m0s`."""
    milliseconds = math.ceil(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    told = f"{rest / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{minutes}m{told}s" if minutes else f"{told}s"
