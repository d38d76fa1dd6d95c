"""A proxy without a framework: uvicorn in front, aiohttp behind, and nothing between but bytes.

python -m bench.chat.peer_bare PORT UPSTREAM

It checks no key and counts nothing, but hangs up on the upstream when its caller leaves: the least that a gateway of
these two libraries costs.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import uvicorn

PASSED = {b"content-type", b"authorization", b"accept", b"user-agent"}
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Proxy:
    """The ASGI application."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """A request, or the beginning and end of the process."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        body = await read(receive)
        answering = asyncio.create_task(self._answer(scope, body, send))
        leaving = asyncio.create_task(left(receive))
        done, _ = await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        (leaving if answering in done else answering).cancel()
        if answering in done:
            answering.result()

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
            )
            await send({"type": "lifespan.startup.complete"})
        if self._session:
            await self._session.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: dict[str, Any], body: bytes, send: Send) -> None:
        assert self._session  # noqa: S101  the lifespan came first
        headers = {name.decode(): value.decode() for name, value in scope["headers"] if name in PASSED}
        async with self._session.post(self._upstream + scope["path"], data=body, headers=headers) as response:
            passed = [
                (name.lower(), value)
                for name, value in response.raw_headers
                if name.lower() in {b"content-type", b"content-length"}
            ]
            await send({"type": "http.response.start", "status": response.status, "headers": passed})
            async for chunk in response.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body"})


async def read(receive: Receive) -> bytes:
    """The whole body of a request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def left(receive: Receive) -> None:
    """Until the caller is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


if __name__ == "__main__":
    port, upstream = sys.argv[1:]
    uvicorn.run(
        Proxy(f"http://127.0.0.1:{upstream}"), host="127.0.0.1", port=int(port), log_level="warning", access_log=False
    )
