"""Texts that no database takes, on both stores: refused by name where they would be stored, found nowhere else."""

from pathlib import Path
from typing import Any

import pytest
from conftest import SIMULATOR, VIDEO, Server, running

from penstock.settings.tables import load

NUL = "a\0b"


@pytest.fixture
async def server(store_url: str, tmp_path: Path):
    (tmp_path / "penstock.toml").write_text(SIMULATOR)
    overrides = {"data": tmp_path / "data", "database_url": store_url}
    async with running(load(tmp_path / "penstock.toml", {}, overrides)) as server:
        yield server


def refused(answer: Any, param: str) -> bool:
    error = answer.json()["error"]
    return (answer.status_code, error["code"], error["param"]) == (400, "invalid_params", param)


async def test_a_nul_is_refused_where_it_would_be_stored_and_found_nowhere(server: Server):
    client = server.client
    body = {"model": VIDEO, "input": [{"params": {}}], "client_ref": NUL}
    assert refused(await client.post("/model/v1/generation", json=body), "client_ref")
    hook = {"url": "https://example.com/hook", "description": NUL}
    assert refused(await client.post("/api/v1/webhooks", json=hook), "description")
    for path in ("jobs/%00", "jobs/%00/events", "webhooks/%00", "files/%00", "assets/%00/x.glb"):
        answer = await client.get(f"/api/v1/{path}")
        assert answer.status_code in (404, 405), (path, answer.text)
    for path in ("jobs/%00/cancel", "webhooks/%00/ping"):
        assert (await client.post(f"/api/v1/{path}")).status_code == 404, path
    for query in ("client_ref", "model", "batch_id"):
        page = await client.get("/api/v1/jobs", params={query: NUL})
        assert (page.status_code, page.json()["data"]) == (200, []), query
