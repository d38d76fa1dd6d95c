"""Servers that only tests of dispatchers need, and parts of gateways that they share."""

from collections.abc import Generator

import pytest
from spares import sharing, spares
from temporal_server import TemporalServer

__all__ = ["sharing", "spares", "temporal_server"]


@pytest.fixture(scope="module")
def temporal_server() -> Generator[TemporalServer]:
    """A Temporal server for one file of tests: it computes even when it is idle."""
    server = TemporalServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()
