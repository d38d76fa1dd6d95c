"""One account does its worst over HTTP; another one is served all the same."""

import asyncio
import base64
import gzip
import io
import json
import random
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest
from chat_steps import HELLO, chatting
from conftest import MODEL, SIMULATOR, VIDEO, Server, client_of
from PIL import Image
from steps import GENERATION, IDLE, refused

MIB = 1 << 20
CHAT = "/llm/chat/completions"
STREAM = {"accept": "text/event-stream"}
NARROW = "[server]\nmax_body_mb = 2\nmax_bodies_mb = 8\nmax_bodies_mb_per_account = 4\n"


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  the server has no event for it
            await asyncio.sleep(0.01)


# -- event streams


@asynccontextmanager
async def streams(client: httpx.AsyncClient, number: int):
    """The statuses of so many streams that are asked for one after the other, and stay open."""
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(client.stream("GET", "/api/v1/events", headers=STREAM))
            for _ in range(number)
        ]
        yield [response.status_code for response in opened]


async def test_one_account_cannot_take_all_event_streams(start):
    server = await start(IDLE, overrides={"server.max_streams": 20, "server.max_streams_per_account": 12})
    greedy, other, third = server.client, await server.sign_in("other"), await server.sign_in("third")
    async with streams(greedy, 15) as mine:
        assert mine == [200] * 12 + [429] * 3
        told = await greedy.get("/api/v1/events", headers=STREAM)
        error = refused(told, 429, "too_many_streams")
        assert "12" in error["message"]
        assert int(told.headers["retry-after"]) >= 1
        async with streams(other, 8) as theirs:
            assert theirs == [200] * 6 + [429] * 2  # a tenth is for those who have few
            async with streams(third, 2) as few:
                assert few == [200, 429]
    await until(lambda: server.gateway.streams.total == 0)


# -- bodies in flight


def large(model: str = "hang", size: int = MIB * 4 // 3) -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "x" * size}]}).encode()


@pytest.mark.parametrize("packed", [False, True])
async def test_large_chat_bodies_of_one_account_are_bounded_and_others_are_served(start, packed):
    async with chatting(start, NARROW) as chat:
        memory = chat.server.gateway.body_memory
        body = gzip.compress(large()) if packed else large()
        headers = {"content-type": "application/json"} | ({"content-encoding": "gzip"} if packed else {})
        client = client_of(chat.server.url, chat.key)
        other = await chat.server.sign_in("other")
        async with client:
            crowd = [asyncio.create_task(client.post(CHAT, content=body, headers=headers)) for _ in range(4)]
            await chat.double.until(lambda double: len(double.requests) == 2)
            await until(lambda: memory.waiting == 2)
            assert MIB * 2 < memory.held <= 4 * MIB
            answer = await other.post(CHAT, json={"model": "plain", "messages": HELLO})
            assert answer.status_code == 200
            assert len(chat.double.requests) == 3
            done, _ = await asyncio.wait(crowd, return_when=asyncio.FIRST_COMPLETED, timeout=60)
            for task in done:
                error = refused(task.result(), 429, "concurrency_limited")
                assert error["retryable"]
                assert int(task.result().headers["retry-after"]) >= 1
            for task in crowd:
                task.cancel()
            await asyncio.gather(*crowd, return_exceptions=True)
        await until(lambda: memory.held == 0 and memory.waiting == 0)


async def test_a_body_that_is_refused_is_not_read(start):
    async with chatting(start, NARROW) as chat:
        chat.server.gateway.body_memory._wait_seconds = 0.05
        hold = await chat.server.gateway.body_memory.take(await account_of(chat.server), 4 * MIB)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(chat.server.url.rsplit(":", 1)[1]))
        lines = [f"POST {CHAT} HTTP/1.1", "host: x", f"authorization: Bearer {chat.key}", "expect: 100-continue"]
        writer.write("\r\n".join([*lines, f"content-length: {MIB}", "", ""]).encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert head.startswith(b"HTTP/1.1 429 ")  # and no 100 before
        assert b"retry-after:" in head
        writer.close()
        hold.release()
        assert chat.server.gateway.body_memory.held == 0


async def account_of(server: Server) -> str:
    key = server.client.headers["authorization"]
    return (await server.gateway.keyring.check(key)).account_id


async def test_a_stream_gives_the_memory_of_its_body_back_as_soon_as_it_is_answered(start):
    async with chatting(start, NARROW) as chat:
        memory = chat.server.gateway.body_memory
        body = json.loads(large("think:30")) | {"stream": True}
        async with client_of(chat.server.url, chat.key) as client:
            async with client.stream("POST", CHAT, json=body) as response:
                assert response.status_code == 200
                assert memory.held == 0
            answer = await client.post(CHAT, content=large("plain"), headers={"content-type": "application/json"})
            assert answer.status_code == 200


async def test_gzip_may_be_no_larger_unpacked_than_plain(start):
    async with chatting(start, NARROW) as chat:
        memory = chat.server.gateway.body_memory
        async with client_of(chat.server.url, chat.key) as client:
            for size in (3 * MIB, 64 * MIB):  # the latter comes in some 300 KB
                bomb = gzip.compress(large("plain", size), 1)
                headers = {"content-type": "application/json", "content-encoding": "gzip"}
                told = await client.post(CHAT, content=bomb, headers=headers)
                assert "unpacked" in refused(told, 413, "body_too_large")["message"]
                assert memory.held == 0
            good = gzip.compress(large("plain", MIB))
            assert (await client.post(CHAT, content=good, headers=headers)).status_code == 200
            cut = await client.post(CHAT, content=good[:-20], headers=headers)
            assert cut.status_code == 400
        assert memory.held == 0


async def test_chunked_bodies_and_other_routes_count_too(start):
    server = await start(NARROW + IDLE)
    memory = server.gateway.body_memory
    hold = await memory.take(await account_of(server), 4 * MIB)
    memory._wait_seconds = 0.05

    async def pieces():
        for _ in range(16):
            yield b" " * (MIB // 16)

    for path in ("/model/v1/generation", "/api/v1/vendorb_video_31/generate", "/api/v1/webhooks", CHAT):
        headers = {"content-type": "application/json"}
        for content in (b" " * MIB, pieces()):
            told = await server.client.post(path, content=content, headers=headers)
            refused(told, 429, "concurrency_limited")
    small = await server.client.post("/model/v1/generation", json={"model": "x" * 300, "input": []})
    assert small.status_code == 400
    hold.release()
    told = await server.client.post("/model/v1/generation", content=pieces(), headers=headers)
    refused(told, 400, "invalid_json")
    assert memory.held == 0


# -- uploads


async def test_uploads_count_as_requests(start):
    server = await start(IDLE)
    client = await server.sign_in(requests_per_minute=2)
    for _ in range(2):
        answer = await client.post("/api/v1/files", files={"file": ("a.png", b"no picture")})
        assert answer.status_code == 400
    told = await client.post("/api/v1/files", files={"file": ("a.png", b"no picture")})
    error = refused(told, 429, "rate_limited")
    assert error["retryable"]
    assert int(told.headers["retry-after"]) >= 1


# -- storage


def picture(shade: int) -> bytes:
    out = io.BytesIO()
    noise = random.Random(shade).randbytes(64 * 64 * 3)  # noqa: S311  no secret
    Image.frombytes("RGB", (64, 64), noise).save(out, "PNG")
    return out.getvalue()


async def test_a_full_quota_refuses_uploads_and_jobs_and_deleting_frees_it(start):
    server = await start(SIMULATOR + "[server]\nadmin_key = 'the-administrators-key-of-this-test'\n")
    admin = await server.clients.enter_async_context(client_of(server.url, "the-administrators-key-of-this-test"))
    client = await server.sign_in("studio")
    size = len(picture(1))
    changed = await admin.patch("/admin/v1/accounts/studio", json={"storage_quota": 2 * size + 10})
    assert changed.json()["storage"] == {"bytes": 0, "quota": 2 * size + 10}

    async def upload(shade: int) -> httpx.Response:
        return await client.post("/api/v1/files", files={"file": ("a.png", picture(shade))})

    await until_key(client, server, 2 * size + 10)
    answers = await asyncio.gather(*(upload(shade) for shade in range(6)))
    stored = [answer.json()["file_token"] for answer in answers if answer.status_code == 201]
    assert len(stored) == 2
    for answer in answers:
        if answer.status_code != 201:
            error = refused(answer, 403, "storage_quota_exceeded")
            assert str(2 * size + 10) in error["message"]
            assert not error["retryable"]
    usage = (await client.get("/api/v1/usage")).json()
    assert usage["storage"] == {"bytes": 2 * size, "quota": 2 * size + 10}
    await admin.patch("/admin/v1/accounts/studio", json={"storage_quota": 2 * size})
    await until_key(client, server, 2 * size)
    order = {"model": VIDEO, "input": [{"params": {}}]}
    refused(await client.post(GENERATION, json=order), 403, "storage_quota_exceeded")
    inline = {"url": "data:image/png;base64," + base64.b64encode(picture(9)).decode()}
    with_file = {"model": MODEL, "input": [{"params": {"file": inline}}]}
    refused(await client.post(GENERATION, json=with_file), 403, "storage_quota_exceeded")
    assert (await client.delete(f"/api/v1/files/{stored[0]}")).status_code == 204
    job = (await client.post(GENERATION, json=order)).json()
    done = (await client.get(f"/api/v1/jobs/{job['id']}", params={"wait": 60})).json()
    assert done["status"] == "succeeded"  # its result is stored, whatever its size
    made = sum(output["bytes"] for output in done["outputs"])
    assert (await client.get("/api/v1/usage")).json()["storage"]["bytes"] == size + made
    assert (await client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    assert (await client.get("/api/v1/usage")).json()["storage"]["bytes"] == size
    shown = (await admin.get("/admin/v1/accounts/studio")).json()
    assert shown["storage"] == {"bytes": size, "quota": 2 * size}
    assert (await server.client.post("/api/v1/files", files={"file": ("a.png", picture(7))})).status_code == 201


async def until_key(client: httpx.AsyncClient, server: Server, quota: int) -> None:
    """Keys follow their account within a second."""
    async with asyncio.timeout(60):
        while (await server.gateway.keyring.check(client.headers["authorization"])).storage_quota != quota:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
