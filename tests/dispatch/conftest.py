"""Servers that only tests of dispatchers need."""

from collections.abc import Generator

import pytest
from temporal_server import TemporalServer


@pytest.fixture(scope="package")
def temporal_server() -> Generator[TemporalServer]:
    """A Temporal server of this test process, stopped with the last test here: it computes even when it is idle."""
    server = TemporalServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()
