"""Every door with every vendor's dialect: three times four cells, each with the same ten cases."""

import shutil
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from conftest import running
from doors.cases import CASES, HELLO, Cell, say
from doors.clients import DoorClient, sign_in
from doors.upstream import Upstream
from doubles.scripted.vendor import DIALECTS

from penstock.settings.tables import load

DOORS = ("chat", "messages", "responses")
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(
    tmp_path_factory: pytest.TempPathFactory, empty_store: Path, weights: Path
) -> AsyncGenerator[tuple[Upstream, dict[str, DoorClient]]]:
    """One gateway for all cells: a model for each dialect of one vendor, and a client for each door."""
    folder = tmp_path_factory.mktemp("matrix")
    shutil.copy(empty_store, folder)
    async with Upstream(say("")) as upstream:
        tables = [upstream.settings(dialect, dialect) for dialect in DIALECTS]
        tables += [
            f'[[models]]\nid = "{dialect}"\nkind = "chat"\nvendor = "{dialect}"\nmodel = "m"\n' for dialect in DIALECTS
        ]
        config = folder / "penstock.toml"
        config.write_text("\n".join(tables))
        settings = load(config, {}, {"data": folder, "weights": weights})
        async with running(settings) as server, sign_in(server.url, await server.new_key()) as clients:
            yield upstream, clients


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("vendor", DIALECTS)
@pytest.mark.parametrize("door", DOORS)
async def test_a_cell(stage: tuple[Upstream, dict[str, DoorClient]], door: str, vendor: str, case: str) -> None:
    upstream, clients = stage
    await CASES[case](Cell(door, vendor, clients[door], upstream))


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("door", "name"), [("chat", "user"), ("messages", "user"), ("responses", "safety_identifier")])
async def test_what_a_vendor_cannot_get_is_named_in_a_header(
    stage: tuple[Upstream, dict[str, DoorClient]], door: str, name: str, streamed: bool
) -> None:
    upstream, clients = stage
    upstream.begin(say("Hello."))
    await clients[door].ask("gemini", replace(HELLO, user="user-1"), stream=streamed)
    assert clients[door].headers["x-penstock-left-out"] == name
