"""Events over HTTP: each job's stream from any point without a gap, and the account's feed as pages and as a stream."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from conftest import MODEL

NEVER = {"ending": "never"}
FAILS = {"ending": "failed"}
STREAM = {"accept": "text/event-stream"}
UNKNOWN = "evt_000000000zzzz"


class Listener:
    """An open stream: its events one by one."""

    def __init__(self, response: httpx.Response, seconds: float = 60) -> None:
        self._lines = response.aiter_lines()
        self._seconds = seconds

    async def next(self) -> dict[str, Any] | None:
        """The next event, checked against its frame; None at the stream's end."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(self._seconds):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                elif "data" in fields:
                    event = json.loads(fields["data"])
                    assert (fields["id"], fields["event"]) == (event["id"], event["type"])
                    return event
        return None

    async def rest(self) -> list[dict[str, Any]]:
        """All events until the stream ends."""
        events = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events


@asynccontextmanager
async def listen(
    client: httpx.AsyncClient, path: str, last: str | None = None, **query: Any
) -> AsyncIterator[Listener]:
    headers = STREAM | ({"last-event-id": last} if last else {})
    async with client.stream("GET", path, headers=headers, params=query) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        yield Listener(response)


async def replay(client: httpx.AsyncClient, job_id: str, after: str | None = None) -> list[dict[str, Any]]:
    async with listen(client, f"/api/v1/jobs/{job_id}/events", after) as listener:
        return await listener.rest()


def shown(events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(event["type"], event["sequence"]) for event in events]


async def opens(client: httpx.AsyncClient, path: str) -> int:
    """The status with which a stream opens; it is left at once."""
    async with client.stream("GET", path, headers=STREAM) as response:
        return response.status_code


async def until_open(client: httpx.AsyncClient, path: str) -> None:
    """Ask until a stream opens again."""
    async with asyncio.timeout(60):
        while await opens(client, path) != 200:  # noqa: ASYNC110  only the server knows when
            await asyncio.sleep(0.02)


# -- of one job


async def test_a_finished_job_is_replayed_from_any_point(server):
    job = await server.finish((await server.submit(MODEL, script={"latency": 1.2}))["id"])
    events = await replay(server.client, job["id"])
    count = len(events)
    assert [event["sequence"] for event in events] == list(range(1, count + 1))
    assert events[0]["type"] == "job.queued"
    assert events[1]["type"] == "job.started"
    assert {event["type"] for event in events[2:-1]} == {"job.progress"}
    assert events[-1]["type"] == "job.succeeded"
    names = [event["id"] for event in events]
    assert names == sorted(set(names))
    assert [event["created_at"] for event in events] == sorted(event["created_at"] for event in events)
    assert [event["data"]["done"] for event in events] == [False] * (count - 1) + [True]
    assert [event["data"]["progress"] for event in events] == sorted(event["data"]["progress"] for event in events)
    last = events[-1]["data"]
    assert {**last, "outputs": []} == {**job, "outputs": []}
    assert [output["sha256"] for output in last["outputs"]] == [output["sha256"] for output in job["outputs"]]
    for position, name in enumerate(names[:-1], start=1):
        assert shown(await replay(server.client, job["id"], name)) == shown(events[position:])
    path = f"/api/v1/jobs/{job['id']}/events"
    over = await server.client.get(path, headers={"last-event-id": names[-1]})
    assert (over.status_code, over.content) == (204, b"")
    for unreadable in ("7", "evt_", "evt_!", names[0] + "0"):
        assert shown(await replay(server.client, job["id"], unreadable)) == shown(events)


async def test_listeners_hear_of_everything_as_it_happens(server):
    job = await server.submit(MODEL, script=NEVER)
    path = f"/api/v1/jobs/{job['id']}/events"
    async with listen(server.client, path) as one, listen(server.client, path) as two:
        for listener in (one, two):
            heard = [await listener.next() for _ in range(3)]
            assert shown(heard) == [("job.queued", 1), ("job.started", 2), ("job.progress", 3)]
        async with listen(server.client, path, heard[1]["id"]) as late:
            assert shown([await late.next()]) == [("job.progress", 3)]
            await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
            ends = [await listener.rest() for listener in (one, two, late)]
    assert ends[0][-1]["type"] == "job.canceled"
    assert shown(ends[0]) == shown(ends[1]) == shown(ends[2])
    assert [event["sequence"] for event in ends[0]] == list(range(4, 4 + len(ends[0])))


async def test_who_loses_the_line_again_and_again_misses_nothing(server):
    job = await server.submit(MODEL, script={"latency": 1.5, "queued": 0.7, **FAILS})
    path, events = f"/api/v1/jobs/{job['id']}/events", []
    while not events or not events[-1]["data"]["done"]:
        async with listen(server.client, path, events[-1]["id"] if events else None) as listener:
            events.append(await listener.next())
    assert shown(events) == shown(await replay(server.client, job["id"]))
    assert events[-1]["type"] == "job.failed"


async def test_an_id_from_the_future_does_not_hold_a_stream_open_for_ever(server):
    job = await server.submit(MODEL, script=NEVER)
    path = f"/api/v1/jobs/{job['id']}/events"
    async with listen(server.client, path, "evt_7zzzzzzzzzzzz") as listener:
        await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
        heard = await listener.rest()
    assert heard[-1]["type"] == "job.canceled"


async def test_other_endings_have_events_of_their_own(server):
    body = {"model": MODEL, "input": [{"params": {"script": NEVER}}], "run_timeout": 0.2}
    expired = (await server.client.post("/model/v1/generation", json=body)).json()
    assert (await replay(server.client, expired["id"]))[-1]["type"] == "job.expired"


# -- how many


async def test_streams_are_limited_and_leaving_makes_room(start):
    server = await start(overrides={"server.max_streams": 1})
    job = await server.submit(MODEL, script=NEVER)
    path = f"/api/v1/jobs/{job['id']}/events"
    async with listen(server.client, path) as listener:
        await listener.next()
        for wanted in (path, "/api/v1/events"):
            refused = await server.client.get(wanted, headers=STREAM)
            assert refused.status_code == 429
            assert refused.json()["error"]["code"] == "too_many_streams"
            assert refused.json()["error"]["retryable"] is True
            assert int(refused.headers["retry-after"]) >= 1
        assert (await server.client.get("/api/v1/events")).status_code == 200
    await until_open(server.client, path)
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    await server.finish(job["id"])
    await until_open(server.client, path)
    await replay(server.client, job["id"])
    await until_open(server.client, path)


async def test_a_rush_for_streams_stays_within_the_limit(start):
    server = await start(overrides={"server.max_streams": 3})
    path = f"/api/v1/jobs/{(await server.submit(MODEL, script=NEVER))['id']}/events"
    enough, opened = asyncio.Event(), []

    async def rush() -> None:
        async with server.client.stream("GET", path) as response:
            opened.append(response.status_code)
            if len(opened) == 20:
                enough.set()
            await enough.wait()

    await asyncio.wait_for(asyncio.gather(*(rush() for _ in range(20))), 60)
    assert sorted(opened) == [200] * 3 + [429] * 17
    await until_open(server.client, path)


async def test_a_drain_ends_streams(server):
    job = await server.submit(MODEL, script=NEVER)
    async with (
        listen(server.client, f"/api/v1/jobs/{job['id']}/events") as of_job,
        listen(server.client, "/api/v1/events") as of_account,
    ):
        await of_job.next()
        server.gateway.drain()
        assert all(not event["data"]["done"] for event in await of_job.rest())
        await of_account.rest()
    assert server.gateway.streams.total == 0


async def test_a_stream_ends_with_its_key(server):
    key = await server.sign_in(expires_at=time.time() + 2)
    async with listen(key, "/api/v1/events") as listener, asyncio.timeout(60):
        while (await key.get("/api/v1/events")).status_code == 200:  # noqa: ASYNC110  until the key's time is over
            await asyncio.sleep(0.05)
        await server.submit(MODEL, script=NEVER)
        assert await listener.rest() == []


# -- of the account


async def test_the_feed_is_paged_in_order_without_a_gap(server):
    other = await server.sign_in("other")
    body = {"model": MODEL, "input": [{"params": {"script": {"latency": 0, **FAILS}}}]}
    await other.post("/model/v1/generation", json=body)
    jobs = [await server.generate(MODEL, script=FAILS) for _ in range(3)]
    found, after = [], None
    while True:
        query = {"limit": 2} | ({"after": after} if after else {})
        page = (await server.client.get("/api/v1/events", params=query)).json()
        assert 0 < len(page["data"]) <= 2
        found += page["data"]
        after = page["next_after"]
        if not page["has_more"]:
            break
    streams = [event for job in jobs for event in await replay(server.client, job["id"])]
    assert found == streams
    assert after == found[-1]["id"]
    end = (await server.client.get("/api/v1/events", params={"after": after})).json()
    assert end == {"object": "list", "data": [], "has_more": False, "next_after": after}
    whole = (await server.client.get("/api/v1/events")).json()
    assert whole["data"] == found
    theirs = (await other.get("/api/v1/events")).json()["data"]
    assert {event["data"]["id"] for event in theirs}.isdisjoint(job["id"] for job in jobs)
    assert theirs


@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_a_cursor_that_is_none_is_refused(server, headers):
    for cursor in ("garbage", "evt_", "evt_1", UNKNOWN.replace("0", "u"), "evt_zzzzzzzzzzzzz", "é", "x" * 80):
        answer = await server.client.get("/api/v1/events", params={"after": cursor}, headers=headers)
        assert answer.status_code == 400, cursor
        assert answer.json()["error"]["param"] == "after"
    for limit in ("0", "101", "x"):
        answer = await server.client.get("/api/v1/events", params={"limit": limit}, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "limit"


async def test_the_feed_as_a_stream_begins_now_or_after_a_cursor(server):
    other = await server.sign_in("other")
    old = await server.generate(MODEL, script=FAILS)
    past = (await server.client.get("/api/v1/events")).json()["data"]
    first = past[0]["id"]
    async with (
        listen(server.client, "/api/v1/events") as now,
        listen(server.client, "/api/v1/events", last=first) as resumed,
        listen(server.client, "/api/v1/events", after=first, limit=1) as continued,
        listen(other, "/api/v1/events") as stranger,
    ):
        assert [await resumed.next() for _ in past[1:]] == past[1:]
        assert [await continued.next() for _ in past[1:]] == past[1:]
        new = await server.generate(MODEL, script=FAILS)
        stream = await replay(server.client, new["id"])
        for listener in (now, resumed, continued):
            assert [await listener.next() for _ in stream] == stream
        theirs = await other.post("/model/v1/generation", json={"model": MODEL, "input": [{"params": {}}]})
        assert (await stranger.next())["data"]["id"] == theirs.json()["id"]
    assert new["id"] != old["id"]


async def test_a_browser_that_reconnects_goes_on_where_it_was(server):
    """It repeats its first URL, cursor and all; only the header tells how far it came."""
    await server.generate(MODEL, script=FAILS)
    past = (await server.client.get("/api/v1/events")).json()["data"]
    async with listen(server.client, "/api/v1/events", past[-2]["id"], after=past[0]["id"]) as listener:
        assert await listener.next() == past[-1]
