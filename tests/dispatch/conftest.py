"""Servers that only tests of dispatchers need, and parts of gateways that they share."""

from collections.abc import AsyncGenerator, Generator

import pytest
from crew import Crew, gathered
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


@pytest.fixture(params=["local", "postgres", "temporal"])
async def crew(request: pytest.FixtureRequest, tmp_path, empty_store) -> AsyncGenerator[Crew]:
    """Workers of each dispatcher on a store of its kind."""
    if request.param == "local":
        (tmp_path / "store.db").write_bytes(empty_store.read_bytes())
        url = f"sqlite:///{tmp_path / 'store.db'}"
    else:
        url = request.getfixturevalue("postgres_store_url")
    address = request.getfixturevalue("temporal_server").address if request.param == "temporal" else ""
    async with gathered(request.param, url, address) as crew:
        yield crew
