"""A guardrail's hook on loopback: it keeps what it was asked, and answers as it is told."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from conftest import SIMULATOR
from standardwebhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ALLOW = {"verdict": "allow"}
REFUSE = {"verdict": "refuse", "reason": "weapons are not allowed"}
NOTE = {"verdict": "allow", "annotations": {"topic": "boats", "score": 0.25}}
WORDS = '[[guardrails]]\nname = "words"\nwords = ["bomb", "nerve gas"]\nreason = "weapons are not allowed"\n'
Reply = Callable[[dict[str, Any]], Awaitable[web.StreamResponse]]


@dataclass
class Hook:
    """Answers `reply`: an object, a status, or what a function returns."""

    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    reply: dict[str, Any] | int | Reply = field(default_factory=lambda: dict(ALLOW))
    open: int = 0
    most: int = 0
    """Requests under way at once."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.method == "POST"
        raw = await request.read()
        Webhook(SECRET).verify(raw, {name.lower(): value for name, value in request.headers.items()})
        question = json.loads(raw)
        assert request.headers["webhook-id"] == question["id"]
        self.asked.append(question)
        self.news.set()
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            if isinstance(self.reply, int):
                return web.Response(status=self.reply, text="{}")
            return web.json_response(self.reply) if isinstance(self.reply, dict) else await self.reply(question)
        finally:
            self.open -= 1

    async def hang(self, _: dict[str, Any]) -> web.StreamResponse:
        """An answer that never comes."""
        await self.closing.wait()
        return web.Response()

    async def wait(self, count: int) -> None:
        """Wait until it was asked so often."""
        async with asyncio.timeout(60):
            while len(self.asked) < count:
                self.news.clear()
                await self.news.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/check"

    def table(self, more: str = "", *, name: str = "hook", seconds: float = 60) -> str:
        """The settings of this hook."""
        own = f'name = "{name}"\nurl = "{self.url}"\nsecret = "{SECRET}"\ntimeout_seconds = {seconds}\n'
        return f"[[guardrails]]\n{own}{more}\n"


@asynccontextmanager
async def hooked() -> AsyncIterator[Hook]:
    hook = Hook()
    runner = web.ServerRunner(web.Server(hook.handle), shutdown_timeout=0)
    await runner.setup()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0, reuse_address=True).start()
        hook.port = runner.addresses[0][1]
        stack.callback(hook.closing.set)
        yield hook


def simulated(*tables: str) -> str:
    """Settings by which the simulator serves everything, behind these guardrails."""
    return "\n".join([SIMULATOR, *tables])


def texts_of(question: dict[str, Any]) -> list[str]:
    return [each["text"] for each in question["texts"]]
