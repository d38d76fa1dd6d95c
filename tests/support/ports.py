"""Ports for servers that are told theirs: none of those that the system gives to whoever asks for any."""

import random
import socket
from contextlib import suppress
from typing import Final

_given: set[int] = set()
_CHANCE: Final = random.SystemRandom()
"""Not the common one: Hypothesis sets that back, and then every process of the tests would choose the same."""


def free_port() -> int:
    """One that stays free until its server listens there, and while that is away."""
    while True:
        port = _CHANCE.randrange(10_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port
