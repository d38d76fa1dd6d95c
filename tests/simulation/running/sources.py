"""Sources of chance and time that production reads directly: while a world runs, its seed and clock supply them."""

import random
import secrets
import time
from collections.abc import Callable
from typing import Any, Self

from penstock.domain import ids
from penstock.web.server import access_log

EPOCH = 1_800_000_000.0
"""The wall clock at the start of every world."""


class SeededSources:
    """Replaces the sources of this process until `close`. Only one world at a time may have them."""

    def __init__(self, seed: int | str, now: Callable[[], float]) -> None:
        self._former: list[tuple[Any, str, Any]] = []
        self._chance_before = random.getstate()
        random.seed(f"{seed}/random")
        self._replace_clocks(now)
        self._replace_secrets(random.Random(f"{seed}/secrets"))
        source = ids.IdSource(lambda: int((EPOCH + now()) * 1e9), random.Random(f"{seed}/ids").randbytes)
        self._ids_before = ids.use(source)
        self._replace(access_log, "_ids", ids.Serial("req"))

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._former.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _replace_clocks(self, now: Callable[[], float]) -> None:
        self._replace(time, "time", lambda: EPOCH + now())
        self._replace(time, "time_ns", lambda: int((EPOCH + now()) * 1e9))
        self._replace(time, "monotonic", now)
        self._replace(time, "perf_counter", now)

    def _replace_secrets(self, dice: random.Random) -> None:
        self._replace(secrets, "choice", dice.choice)
        self._replace(secrets, "randbelow", dice.randrange)
        self._replace(secrets, "token_bytes", lambda length=32: dice.randbytes(length))

    def close(self) -> None:
        """Give the process its own sources back."""
        for owner, name, value in reversed(self._former):
            setattr(owner, name, value)
        ids.use(self._ids_before)
        random.setstate(self._chance_before)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
