"""What tests over HTTP do again and again: order jobs, look at them, cancel them, and send bodies."""

import asyncio
import json
from typing import Any

import httpx
from conftest import MODEL, VIDEO, Server

from penstock.jobs.records import JobRecord

GENERATION = "/model/v1/generation"
TEXT_TO_VIDEO = "vendorb_video_31"
NEVER = {"ending": "never"}
FAILS = {"ending": "failed"}
IDLE = '[vendors.sim]\ntype = "sim"\nscript = {ending = "never"}\n'
ONE_SEAT = '[vendors.sim]\ntype = "sim"\nmax_concurrent = 1\npoll_seconds = 0.05\n'
FIELDS = JobRecord.__required_keys__


async def order(client: httpx.AsyncClient, *scripts: dict[str, Any], model: str = MODEL, **top: Any) -> dict[str, Any]:
    """Submit one input per script; `top` stands beside `input`."""
    inputs = [{"params": {"script": {"latency": 0.05, **script}}} for script in scripts]
    response = await client.post("/model/v1/generation", json={"model": model, "input": inputs, **top})
    assert response.status_code == 202, response.text
    return response.json()


async def look(client: httpx.AsyncClient, job_id: str, **query: Any) -> dict[str, Any]:
    response = await client.get(f"/api/v1/jobs/{job_id}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def until(client: httpx.AsyncClient, job_id: str, **wanted: Any) -> dict[str, Any]:
    """The record once these fields have these values."""
    async with asyncio.timeout(60):
        while True:
            job = await look(client, job_id)
            if all(job[name] == value for name, value in wanted.items()):
                return job
            assert not job["done"], job
            await asyncio.sleep(0.01)


async def cancel(client: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    response = await client.post(f"/api/v1/jobs/{job_id}/cancel")
    assert response.status_code == 200, response.text
    return response.json()


def body_of(*params: dict[str, Any], model: str = VIDEO, **top: Any) -> dict[str, Any]:
    return {"model": model, "input": [{"params": each} for each in params or ({},)], **top}


async def post(server: Server, content: Any, path: str = GENERATION, **headers: str) -> httpx.Response:
    """Send a body as it is, or as JSON."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return await server.client.post(path, content=raw, headers={"content-type": "application/json", **names})


def refused(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error, which has the one shape whatever went wrong."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert {"message", "type", "param", "details", "charged", "suggestion"} <= set(error)
    assert error["message"]
    assert response.headers["x-request-id"] == error["request_id"]
    assert response.headers["x-should-retry"] == str(error["retryable"]).lower()
    assert response.headers["content-type"] == "application/json"
    for trace in ("Traceback", 'File "', "penstock/", "pydantic", "sqlalchemy"):
        assert trace not in response.text
    return error


async def count_jobs(server: Server) -> int:
    return len((await server.client.get("/api/v1/jobs", params={"limit": 100})).json()["data"])
