"""Settings read anew while the gateway runs: all of them or none, and no job is lost over it."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import MODEL, VIDEO, Server, client_of

from penstock.errors import StoreUnavailable
from penstock.settings.problems import SettingsError
from penstock.settings.tables import load

NEVER = {"ending": "never"}
TWO = '[vendors.{name}]\ntype = "sim"\n[[models]]\nid = "' + MODEL + '"\nvendor = "{name}"\n'
BOTH = TWO.format(name="first") + f'[[models]]\nid = "{VIDEO}"\nvendor = "first"\n'


async def reload(server: Server, toml: str) -> None:
    """What the server does on SIGHUP."""
    data = server.gateway.settings.data
    config = Path(data, "other.toml")
    await asyncio.to_thread(config.write_text, toml)
    await server.gateway.reload(load(config, {}, {"data": data}))


async def models(server: Server) -> list[str]:
    listed = (await server.client.get("/api/v1/models")).json()["data"]
    return sorted(model["id"] for model in listed)


async def post(client: httpx.AsyncClient, model: str, script: dict[str, Any]) -> httpx.Response:
    body = {"model": model, "input": [{"params": {"script": {"latency": 0.05, **script}}}]}
    return await client.post("/model/v1/generation", json=body)


async def test_jobs_of_a_vendor_that_was_taken_off_still_finish(start):
    server = await start(BOTH)
    running = await server.submit(MODEL, script={"latency": 0.8})
    queued = await server.submit(VIDEO, script={"latency": 0.3})
    assert await models(server) == [MODEL, VIDEO]
    before = (await server.client.get("/readyz")).json()["settings"]
    await reload(server, TWO.format(name="second"))
    assert await models(server) == [MODEL]
    assert (await server.client.get("/readyz")).json()["settings"] != before
    refused = await post(server.client, VIDEO, {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
    new = (await post(server.client, MODEL, {})).json()
    assert new["vendor"] == "second"
    for job_id, vendor in ((running["id"], "first"), (queued["id"], "first"), (new["id"], "second")):
        done = await server.finish(job_id)
        assert (done["status"], done["vendor"], done["attempts"][0]["vendor"]) == ("succeeded", vendor, vendor)
        assert (await server.client.get(httpx.URL(done["outputs"][0]["url"]).path)).status_code == 200
    vendors = server.gateway.offers.vendors
    assert [vendors[name].upstream.counts()["orders"] for name in ("first", "second")] == [2, 1]


async def test_a_job_of_a_vendor_that_was_taken_off_can_be_canceled(start):
    server = await start(BOTH)
    job = await server.submit(MODEL, script=NEVER)
    await reload(server, TWO.format(name="second"))
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert (await server.finish(job["id"]))["status"] == "canceled"


BAD = {
    "no TOML": "[vendors",
    "an unknown setting": "[server]\nporrt = 1\n",
    "an unknown vendor type": '[vendors.x]\ntype = "nobody"\n',
    "an unknown model": '[vendors.x]\ntype = "sim"\n[[models]]\nid = "nothing"\nvendor = "x"\n',
    "a route to nowhere": '[[models]]\nid = "' + MODEL + '"\nvendor = "gone"\n',
    "a vendor's wrong option": '[vendors.x]\ntype = "sim"\npoll_seconds = "soon"\n',
}


async def test_settings_with_a_mistake_change_nothing(start):
    server = await start(BOTH)
    before, offers = server.gateway.settings, server.gateway.offers
    for name, toml in BAD.items():
        with pytest.raises(SettingsError):
            await reload(server, toml)
        assert (server.gateway.settings, server.gateway.offers) == (before, offers), name
        assert await models(server) == [MODEL, VIDEO]
    assert (await server.generate(MODEL, script={}))["vendor"] == "first"


async def test_requests_during_reloads_see_the_old_or_the_new(start):
    server = await start(BOTH)
    other = TWO.format(name="second")
    ended = asyncio.Event()

    async def ask() -> set[tuple[str, int]]:
        seen = set()
        while not ended.is_set():
            answer = await post(server.client, VIDEO, {"ending": "failed"})
            seen.add(("video", answer.status_code))
            answer = await post(server.client, MODEL, {"ending": "failed"})
            seen.add((answer.json().get("vendor"), answer.status_code))
            listed = await models(server)
            assert listed in ([MODEL], [MODEL, VIDEO])
        return seen

    asking = [asyncio.create_task(ask()) for _ in range(3)]
    for _ in range(10):
        await reload(server, other)
        assert await models(server) == [MODEL]
        await reload(server, BOTH)
        assert await models(server) == [MODEL, VIDEO]
    ended.set()
    seen = set.union(*await asyncio.gather(*asking))
    assert seen <= {("video", 202), ("video", 404), ("first", 202), ("second", 202)}
    vendors = server.gateway.offers.vendors
    assert [vendors[name].upstream.counts()["duplicates"] for name in ("first", "second")] == [0, 0]


async def test_new_work_is_done_by_the_new_settings(start):
    server = await start()
    old = await server.generate(MODEL, script={"ending": "failed"})
    await reload(server, '[server]\npublic_url = "https://gate.example.com"\n[jobs]\nretention = "forever"\n')
    new = await server.generate(MODEL, script={"ending": "failed"})
    assert (old["expires_at"] is None, new["expires_at"]) == (False, None)
    assert new["urls"]["self"].startswith("https://gate.example.com/")
    refused = {"model": MODEL, "input": [{"params": {"file": {"url": "http://127.0.0.1:1/a.png"}}}]}
    assert (await server.client.post("/model/v1/generation", json=refused)).status_code == 400
    await reload(server, '[fetch]\nallow_networks = ["127.0.0.0/8"]\n')
    fetched = await server.client.post("/model/v1/generation", json=refused)
    assert fetched.status_code == 202
    assert (await server.finish(fetched.json()["id"]))["error"]["code"] == "file_fetch_failed"


async def test_more_seats_are_taken_as_soon_as_they_are_there(start):
    seats = '[vendors.sim]\ntype = "sim"\nmax_concurrent = {}\n'
    server = await start(seats.format(1))
    await server.submit(MODEL, script=NEVER)
    waiting = await server.submit(MODEL, script={"ending": "failed"})
    async with asyncio.timeout(60):
        while (await server.client.get(f"/api/v1/jobs/{waiting['id']}")).json()["phase"] != "throttled":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await reload(server, seats.format(2))
    assert (await server.finish(waiting["id"]))["status"] == "failed"


async def test_keys_and_links_outlive_a_reload(start):
    server = await start(BOTH)
    link = (await server.generate(MODEL, script={}))["outputs"][0]["url"]
    await reload(server, TWO.format(name="second"))
    async with client_of(server.url, None) as nobody:
        assert (await nobody.get(link)).status_code == 200


async def test_a_reload_needs_no_store(start, monkeypatch):
    server = await start(BOTH)
    await reload(server, BOTH)

    async def refuse(*_: object) -> None:
        raise StoreUnavailable

    for way in ("read", "write"):
        monkeypatch.setattr(server.gateway.database, way, refuse)
    await reload(server, TWO.format(name="second"))
    in_use = server.gateway.settings
    with pytest.raises(StoreUnavailable):  # the certificate is read again
        await reload(server, BOTH + '[provenance]\nresults = "unsigned"\n')
    monkeypatch.undo()
    assert server.gateway.settings is in_use
    assert await models(server) == [MODEL]
    assert (await server.generate(MODEL))["vendor"] == "second"
