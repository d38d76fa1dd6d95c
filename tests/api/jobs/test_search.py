"""Search over HTTP: an account finds its jobs by words of the prompt, a file's name, a ref and an id."""

import io
from typing import Any

import httpx
import pytest
from conftest import MODEL, Server, Start
from PIL import Image
from steps import FAILS, NEVER, refused

SIMULATED = "sim_text_to_video"


@pytest.fixture
async def stored(store_url: str, start: Start) -> Server:
    """A gateway on either kind of store."""
    return await start(overrides={"database_url": store_url})


async def search(client: httpx.AsyncClient, text: str, **query: Any) -> list[str]:
    answer = await client.get("/api/v1/jobs", params={"q": text, **query})
    assert answer.status_code == 200, answer.text
    return [job["id"] for job in answer.json()["data"]]


async def order(server: Server, prompt: str, **top: Any) -> str:
    body = {"model": SIMULATED, "input": [{"params": {"prompt": prompt, "script": NEVER}}], **top}
    answer = await server.client.post("/model/v1/generation", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def upload(server: Server, name: str) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (30, 30), "red").save(buffer, "PNG")
    answer = await server.client.post("/api/v1/files", files={"file": (name, buffer.getvalue())})
    assert answer.status_code == 201
    return answer.json()["file_token"]


async def test_a_job_is_found_as_soon_as_it_is_accepted(stored):
    boat = await order(stored, "A paper boat drifts down a rainy street", client_ref="Order 4711")
    train = await order(stored, "A night train")
    token = await upload(stored, "holiday/Old Mill.PNG")
    mill = (await stored.submit(MODEL, script=NEVER, file={"file_token": token}))["id"]
    assert await search(stored.client, "rainy PAPER") == [boat]
    assert await search(stored.client, "tra") == [train]
    assert await search(stored.client, "old mill.png") == [mill]
    assert await search(stored.client, "4711") == [boat]
    assert await search(stored.client, train) == await search(stored.client, train[:-3]) == [train]
    assert await search(stored.client, "steamboat") == []


async def test_nobody_finds_jobs_of_others(stored):
    job = await order(stored, "A secret boat", client_ref="private-ref")
    other = await stored.sign_in("other")
    for text in ("secret", "boat", "private", job, job[:12], "job_0"):
        assert await search(other, text) == []
    assert await search(stored.client, "secret") == [job]


async def test_a_search_goes_with_filters_and_pages(stored):
    made = [await order(stored, f"boat number {number}", client_ref=f"ref-{number % 2}") for number in range(5)]
    assert await search(stored.client, "boat", client_ref="ref-1") == [made[3], made[1]]
    assert await search(stored.client, "boat", status="succeeded") == []
    found, cursor = [], None
    while True:
        query = {"q": "boat", "limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await stored.client.get("/api/v1/jobs", params=query)).json()
        found += [job["id"] for job in page["data"]]
        cursor = page["next_cursor"]
        assert page["has_more"] is (cursor is not None)
        if cursor is None:
            break
    assert found == made[::-1]


async def test_a_deleted_job_is_not_found(stored):
    body = {"model": SIMULATED, "input": [{"params": {"prompt": "A private boat", "script": {"latency": 0, **FAILS}}}]}
    job = (await stored.client.post("/model/v1/generation", json=body)).json()["id"]
    await stored.finish(job)
    assert await search(stored.client, "private") == [job]
    assert (await stored.client.delete(f"/api/v1/jobs/{job}")).status_code == 204
    for text in ("private", job):
        assert await search(stored.client, text) == []


@pytest.mark.parametrize("text", ["", "   ", "…!?", "x" * 201])
async def test_a_search_without_words_is_refused_by_name(server, text):
    error = refused(await server.client.get("/api/v1/jobs", params={"q": text}), 400, "invalid_params")
    assert error["param"] == "q"


@pytest.mark.parametrize("text", ["%", "a%", "' OR 1=1 --", "a\0b", "\\", "*", '"a" NEAR b', "a" * 200, "😀 boat"])
async def test_odd_texts_find_nothing_and_break_nothing(stored, text):
    await order(stored, "Quiet lake")
    answer = await stored.client.get("/api/v1/jobs", params={"q": text})
    assert answer.status_code in (200, 400), answer.text
    assert answer.json().get("data", []) == []
