"""A receiver of webhooks on loopback that checks every signature with the official library."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from aiohttp import web
from conftest import SIMULATOR, Server
from standardwebhooks import Webhook, WebhookVerificationError

LOOPBACK = SIMULATOR + '[fetch]\nallow_networks = ["127.0.0.0/8"]\n'
"""Settings by which webhooks may lead to receivers of tests."""
Reply = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Message:
    """What came in."""

    headers: dict[str, str]
    raw: bytes
    path: str
    at: float

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def told(self) -> tuple[str, int]:
        return self.body["type"], self.body["sequence"]


def is_signed(message: Message, secret: str) -> bool:
    """Whether the official library believes it."""
    try:
        body = Webhook(secret).verify(message.raw, message.headers)
    except WebhookVerificationError:
        return False
    assert body["id"] == message.id
    return True


@dataclass
class Receiver:
    """Answers 200 unless it is told otherwise, and keeps what came."""

    port: int = 0
    messages: list[Message] = field(default_factory=list)
    replies: list[int | Reply] = field(default_factory=list)
    """What to answer next, one by one; when none is left, `reply`."""
    reply: int | Reply = 200
    news: asyncio.Event = field(default_factory=asyncio.Event)
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        raw = await request.read()
        assert request.method == "POST"
        self.messages.append(Message(headers, raw, request.path_qs, time.time()))
        self.news.set()
        reply = self.replies.pop(0) if self.replies else self.reply
        if isinstance(reply, int):
            return web.Response(status=reply, text=f"answered {reply}")
        return await reply(request)

    async def hang(self, _: web.BaseRequest) -> web.StreamResponse:
        """A reply that never comes."""
        await self.closing.wait()
        return web.Response()

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def wait(self, count: int, seconds: float = 60) -> list[Message]:
        """The messages once so many have come."""
        async with asyncio.timeout(seconds):
            while len(self.messages) < count:
                self.news.clear()
                await self.news.wait()
        return self.messages


@asynccontextmanager
async def receiving(port: int = 0) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    runner = web.ServerRunner(web.Server(receiver.handle), shutdown_timeout=0)
    await runner.setup()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
        receiver.port = runner.addresses[0][1]
        stack.callback(receiver.closing.set)
        yield receiver


async def create(client: httpx.AsyncClient, url: str, **fields: Any) -> dict[str, Any]:
    response = await client.post("/api/v1/webhooks", json={"url": url, **fields})
    assert response.status_code == 201, response.text
    return response.json()


async def deliveries(client: httpx.AsyncClient, path: str = "deliveries", **query: Any) -> list[dict[str, Any]]:
    response = await client.get(f"/api/v1/webhooks/{path}", params=query)
    assert response.status_code == 200, response.text
    return response.json()["data"]


async def settled(
    client: httpx.AsyncClient, *, attempts: int = 1, count: int = 1, **query: Any
) -> list[dict[str, Any]]:
    """The deliveries once there are so many and each was tried so often."""
    async with asyncio.timeout(60):
        while True:
            found = await deliveries(client, **query)
            if len(found) >= count and all(len(each["attempts"]) >= attempts for each in found):
                return found
            await asyncio.sleep(0.02)


async def secret_of(server: Server) -> str:
    """What signs the webhooks that jobs bring along."""
    response = await server.client.get("/api/v1/webhooks/secret")
    assert response.status_code == 200, response.text
    return response.json()["secret"]
