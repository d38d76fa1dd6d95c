"""Real servers on loopback to fetch from, and names that resolve to what a test wants."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Network

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

LOOPBACK = (IPv4Network("127.0.0.0/8"),)
MEGABYTE = 1024 * 1024
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


class Names(AbstractResolver):
    """Answers each look-up with the next of the given answers, then the last one for ever."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_UNSPEC) -> list[ResolveResult]:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(host)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0) for address in answer
        ]

    async def close(self) -> None:
        """Nothing is held open."""


class Server:
    """A real server on loopback that remembers what reached it."""

    def __init__(self) -> None:
        self.requests: list[web.BaseRequest] = []
        self.reply: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]] = send_image
        self.port = 0
        self.closing = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        return await self.reply(request)

    def url(self, path: str = "/image.png", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


async def send_image(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=PNG, content_type="image/png")


async def gather(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


@asynccontextmanager
async def serve(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        server.closing.set()
        await runner.cleanup()


def redirect_to(*targets: str, status: int = 302) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Redirect to each target in turn, then send the image."""
    waiting = list(targets)

    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        if waiting:
            return web.Response(status=status, headers={"Location": waiting.pop(0)})
        return await send_image(request)

    return reply
