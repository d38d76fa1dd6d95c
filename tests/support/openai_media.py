"""OpenAI's client for Python as it comes, for pictures and films of a gateway."""

import asyncio
import io
from typing import Any

import openai
from conftest import Server
from PIL import Image
from plain import NO_TLS

QUICK: dict[str, Any] = {"script": {"latency": 0.05}}
IMAGE = "sim_text_to_image"
VIDEO = "sim_text_to_video"


async def connect(server: Server, path: str = "/v1", retries: int = 0, **key: Any) -> openai.AsyncOpenAI:
    """Return a client with a new key. It is closed with the server."""
    return await client_of(server, await server.new_key(**key), path, retries)


async def client_of(server: Server, key: str, path: str = "/v1", retries: int = 0) -> openai.AsyncOpenAI:
    """Return a client with this key."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=NO_TLS)
    client = openai.AsyncOpenAI(base_url=f"{server.url}{path}", api_key=key, max_retries=retries, http_client=http)
    return await server.clients.enter_async_context(client)


def script(**fields: Any) -> dict[str, Any]:
    """Return a script for `extra_body`."""
    return {"script": {"latency": 0.05, **fields}}


def draw(side: int = 64, kind: str = "png") -> bytes:
    """Return a picture."""
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (200, 60, 20)).save(buffer, kind)
    return buffer.getvalue()


async def jobs_of(server: Server) -> list[dict[str, Any]]:
    """Return all jobs of the account, newest first."""
    return (await server.client.get("/api/v1/jobs", params={"limit": 100})).json()["data"]


async def end_orders(server: Server) -> None:
    """Let the orders of all open jobs be over, once they have been placed."""
    while any(not job["done"] and job["phase"] != "generating" for job in await jobs_of(server)):  # noqa: ASYNC110  nobody rings
        await asyncio.sleep(0.01)
    server.age_orders()
