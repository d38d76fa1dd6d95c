"""A key that reuses results, through the clients of other services: the kept result comes again, uncharged."""

import sys
from typing import Any

import httpx
import openai
import pytest
from agent_client import connected
from conftest import SIMULATOR, Server, Start
from openai_media import IMAGE, QUICK, VIDEO, client_of, draw
from plain import NO_TLS
from sqlalchemy import Connection, select

from penstock.store.tables import jobs

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
SETTINGS = SIMULATOR + "".join(
    f'[[models]]\nid = "{name}"\nvendor = "sim"\nprice = {{per_job = "0.05"}}\n' for name in (IMAGE, VIDEO)
)
EXACT, OFF = {"x-penstock-reuse": "exact"}, {"x-penstock-reuse": "off"}


@pytest.fixture
async def server(start: Start) -> Server:
    return await start(SETTINGS)


async def poor_key(server: Server) -> str:
    """A key that reuses results, with a budget for one job and room for one open job."""
    return await server.new_key(reuse="exact", budgets={"total": "0.05"}, concurrent_jobs=1)


async def job_ids(server: Server) -> list[str]:
    def read(connection: Connection) -> list[str]:
        return list(connection.execute(select(jobs.c.id).order_by(jobs.c.id)).scalars())

    return await server.gateway.database.read(read)


async def test_openai_pictures(server: Server) -> None:
    client = await client_of(server, await poor_key(server))
    first = await client.images.with_raw_response.generate(model=IMAGE, prompt="a boat", extra_body=QUICK)
    again = await client.images.with_raw_response.generate(model=IMAGE, prompt="a boat", extra_body=QUICK)

    assert ("reused" in first.headers, again.headers["reused"]) == (False, "true")
    assert first.headers["x-penstock-job"] == again.headers["x-penstock-job"]
    assert first.parse().data[0].b64_json == again.parse().data[0].b64_json
    with pytest.raises(openai.APIStatusError) as caught:
        await client.images.generate(model=IMAGE, prompt="another boat", extra_body=QUICK)
    assert caught.value.status_code == 402


async def test_a_header_decides_for_one_request(server: Server) -> None:
    client = await client_of(server, await server.new_key())

    async def film(headers: dict[str, str]) -> Any:
        wanted = {"model": VIDEO, "prompt": "a boat", "input_reference": draw(), "extra_body": QUICK}
        return await client.videos.with_raw_response.create(**wanted, extra_headers=headers)

    first = await client.videos.poll((await film({})).parse().id)
    again = await film(EXACT)
    assert (again.headers["reused"], again.parse().id) == ("true", first.id)
    reusing = await client_of(server, await server.new_key(reuse="exact"))
    made = await reusing.videos.create(model=VIDEO, prompt="a boat", input_reference=draw(), extra_body=QUICK)
    assert made.id == first.id
    assert (await film(OFF)).parse().id != first.id
    with pytest.raises(openai.BadRequestError) as caught:
        await film({"x-penstock-reuse": "near"})
    assert caught.value.param == "x-penstock-reuse"


async def test_openai_videos(server: Server) -> None:
    client = await client_of(server, await poor_key(server))
    first = await client.videos.create_and_poll(model=VIDEO, prompt="a boat", extra_body=QUICK)

    again = await client.videos.with_raw_response.create(model=VIDEO, prompt="a boat", extra_body=QUICK)

    assert again.headers["reused"] == "true"
    video = again.parse()
    assert (video.id, video.status) == (first.id, "completed")
    assert (await client.videos.download_content(video.id)).content[4:8] == b"ftyp"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the client needs pydantic 1, which Python 3.14 lacks")
async def test_replicate(server: Server) -> None:
    from replicate.client import Client  # noqa: PLC0415  see above

    key = await poor_key(server)
    transport = httpx.AsyncHTTPTransport(verify=NO_TLS)
    client = Client(api_token=key, base_url=f"{server.url}/replicate", transport=transport, trust_env=False)
    client.poll_interval = 0.05
    server.clients.push_async_callback(client._async_client.aclose)
    wanted = {"model": ("penstock", IMAGE), "input": {"prompt": "a boat", **QUICK}}
    first = await client.models.predictions.async_create(**wanted)
    await first.async_wait()

    again = await client.models.predictions.async_create(**wanted)
    assert (again.id, again.status) == (first.id, "succeeded")
    assert [_without_signature(url) for url in again.output] == [_without_signature(url) for url in first.output]


def _without_signature(url: str) -> str:
    """Return the URL of an output without its query, which says how long the URL is valid from now."""
    return url.partition("?")[0]


async def test_fal(server: Server) -> None:
    keys = [
        await poor_key(server),
        await poor_key(server),
    ]  # fal's clients repeat orders, so that one key would hide it
    first, again = [
        await server.clients.enter_async_context(
            httpx.AsyncClient(base_url=f"{server.url}/fal", headers={"authorization": f"Key {key}"}, timeout=300)
        )
        for key in keys
    ]
    wanted = {"prompt": "a boat", **QUICK}
    made = await first.post(f"/run/{IMAGE}", json=wanted)
    assert made.status_code == 200, made.text
    queued = await again.post(f"/queue/{IMAGE}", json=wanted)
    assert queued.headers["reused"] == "true"
    result = await again.get(f"/queue/{IMAGE}/requests/{queued.json()['request_id']}")
    assert [image["file_size"] for image in result.json()["images"]] == [
        image["file_size"] for image in made.json()["images"]
    ]
    assert (await again.post(f"/run/{IMAGE}", json=wanted)).headers["reused"] == "true"
    assert len(await job_ids(server)) == 1


async def test_agents(server: Server) -> None:
    async def draw_with(client: Any, **more: Any) -> dict[str, Any]:
        given = {"model": IMAGE, "params": {"prompt": "a boat", **QUICK}, **more}
        result = await client.call_tool("generate_image", given)
        assert not result.is_error, result
        return result.structured_content

    async with connected(server.url, await poor_key(server)) as client:
        first = await draw_with(client)
        again = await draw_with(client)
    assert ("reused" in first, again["reused"], again["job_id"]) == (False, True, first["job_id"])
    async with connected(server.url, await server.new_key(reuse="exact")) as client:
        assert (await draw_with(client, reuse="off"))["job_id"] != first["job_id"]
    async with connected(server.url, await server.new_key()) as client:
        assert (await draw_with(client, reuse="exact"))["job_id"] == first["job_id"]


async def test_an_order_with_a_webhook_gets_a_job_that_calls_it(server: Server) -> None:
    headers = {"authorization": f"Bearer {await server.new_key(reuse='exact')}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False, timeout=300) as client:
        wanted = {"input": {"prompt": "a boat", **QUICK}}
        path = f"/replicate/v1/models/penstock/{IMAGE}/predictions"
        first = (await client.post(path, json=wanted, headers={"prefer": "wait"})).json()
        assert first["status"] == "succeeded"
        called = await client.post(path, json={**wanted, "webhook": "https://example.com/hook"})
        assert called.json()["id"] != first["id"]
        again = await client.post(path, json=wanted)
        assert (again.json()["id"], again.headers["reused"]) == (first["id"], "true")
