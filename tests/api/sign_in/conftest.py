"""One gateway and one server of doubles for all tests of a module."""

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from conftest import running
from oidc_double import DoubleServer
from sign_in_steps import MovedClocks, Stage, write_settings

from penstock.settings.tables import load


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stage]:
    """A gateway with two providers, on SQLite."""
    clock = MovedClocks()
    doubles = DoubleServer(clock.now)
    await doubles.start("acme", "other")
    folder = tmp_path_factory.mktemp("sign_in")
    (folder / "config.toml").write_text(write_settings(doubles))
    settings = load(None, {}, {"data": folder})
    async with running(settings, clocks=clock.clocks) as server:
        stage = Stage(server, doubles, clock)
        await stage.make_account("mill")
        await stage.make_account("weaver")
        yield stage
    await doubles.stop()
