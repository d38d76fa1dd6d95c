"""A Temporal server for the tests that need one."""

from collections.abc import Generator

import pytest
from temporal_server import TemporalServer


@pytest.fixture(scope="session")
def temporal_server() -> Generator[TemporalServer]:
    """A server that is this test process's alone."""
    server = TemporalServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()
