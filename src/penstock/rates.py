"""How often a key may ask, and for how many tokens: buckets that fill up evenly over a minute."""

import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from penstock.errors import RateLimited
from penstock.keys import ApiKey

MINUTE: Final = 60.0
MAX_KEYS: Final = 10_000


class Bucket:
    """Holds at most `limit`, and as much flows in per minute. What is taken too much is owed."""

    __slots__ = ("_at", "_level", "limit")

    def __init__(self, limit: int, now: float) -> None:
        self.limit = limit
        self._level = float(limit)
        self._at = now

    def level(self, now: float) -> float:
        """What is in it."""
        gained = max(0.0, now - self._at) * self.limit / MINUTE
        self._level, self._at = min(float(self.limit), self._level + gained), max(now, self._at)
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Seconds until this much can be taken; what is more than the bucket holds needs a full one."""
        missing = min(amount, self.limit) - self.level(now)
        return max(0.0, missing * MINUTE / self.limit)

    def take(self, amount: float, now: float) -> None:
        """Take this much, or give it back if it is negative."""
        self._level = min(float(self.limit), self.level(now) - amount)

    def describe(self, now: float, name: str) -> Iterator[tuple[str, str]]:
        """The headers that clients read."""
        level = self.level(now)
        yield f"x-ratelimit-limit-{name}", str(self.limit)
        yield f"x-ratelimit-remaining-{name}", str(max(0, math.floor(level)))
        yield f"x-ratelimit-reset-{name}", write_duration((self.limit - level) * MINUTE / self.limit)


def write_duration(seconds: float) -> str:
    """`12ms`, `1.5s` or `6m0s`."""
    milliseconds = math.ceil(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    told = f"{rest / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{minutes}m{told}s" if minutes else f"{told}s"


class Lease:
    """What one request took; the tokens are settled when it is known how many they were."""

    __slots__ = ("_requests", "_reserved", "_tokens")

    def __init__(self, requests: Bucket | None, tokens: Bucket | None, reserved: int) -> None:
        self._requests = requests
        self._tokens = tokens
        self._reserved = reserved

    def settle(self, tokens: int, now: float) -> None:
        """The request is over: what it really used."""
        if self._tokens is not None:
            self._tokens.take(tokens - self._reserved, now)
            self._reserved = tokens

    def describe(self, now: float) -> list[tuple[str, str]]:
        """The headers that clients read."""
        found: list[tuple[str, str]] = []
        for bucket, name in ((self._requests, "requests"), (self._tokens, "tokens")):
            if bucket is not None:
                found += bucket.describe(now, name)
        return found


class Rates:
    """The buckets of every key that has a limit; those used longest ago are forgotten first, when they are full."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    def take(self, key: ApiKey, tokens: int, now: float) -> Lease | None:
        """Let a request of about so many tokens in, or say when it may come again; None for a key without limits."""
        if key.limits.requests_per_minute is None and key.limits.tokens_per_minute is None:
            return None
        requests = self._find(key.public_id, "requests", key.limits.requests_per_minute, now)
        budget = self._find(key.public_id, "tokens", key.limits.tokens_per_minute, now)
        lease = Lease(requests, budget, tokens)
        waits = {
            "requests": requests.wait(1, now) if requests else 0.0,
            "tokens": budget.wait(tokens, now) if budget else 0.0,
        }
        name = max(waits, key=lambda kind: waits[kind])
        if waits[name] > 0:
            limit = key.limits.requests_per_minute if name == "requests" else key.limits.tokens_per_minute
            raise RateLimited(
                f"Rate limit reached for this API key: {limit} {name} per minute. "
                f"Please try again in {write_duration(waits[name])}.",
                code="rate_limit_exceeded",
                retry_after=waits[name],
                headers=dict(lease.describe(now)),
            )
        if requests:
            requests.take(1, now)
        if budget:
            budget.take(tokens, now)
        return lease

    def _find(self, key_id: str, name: str, limit: int | None, now: float) -> Bucket | None:
        if limit is None:
            return None
        place = (key_id, name)
        bucket = self._buckets.get(place)
        if bucket is None or bucket.limit != limit:
            bucket = self._buckets[place] = Bucket(limit, now)
        self._buckets.move_to_end(place)
        while len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
        return bucket
