"""A caller's HTTP client on the simulated network: one request on one connection."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httptools
from simulation.world import World


class CallFailed(Exception):
    """No whole answer came: it is unknown whether the request was served."""


@dataclass
class HttpAnswer:
    """An answer as it arrived."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)


@dataclass
class _Reader(asyncio.Protocol):
    """Parses one response."""

    head: "asyncio.Future[tuple[int, dict[str, str]]]"
    pieces: "asyncio.Queue[bytes | Exception | None]"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    is_complete: bool = False

    def __post_init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        error = exc or ConnectionResetError("closed before the end")
        if not self.head.done():
            self.head.set_exception(error)
        if not self.is_complete:
            self.pieces.put_nowait(error)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_headers_complete(self) -> None:
        if not self.head.done():
            self.head.set_result((self.parser.get_status_code(), self.headers))

    def on_body(self, body: bytes) -> None:
        self.pieces.put_nowait(body)

    def on_message_complete(self) -> None:
        self.is_complete = True
        self.pieces.put_nowait(None)


class HttpCaller:
    """Sends requests of one caller to a gateway."""

    def __init__(self, world: World, key: str) -> None:
        self._world = world
        self._key = key

    async def ask(
        self,
        port: int,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = 60.0,
    ) -> HttpAnswer:
        """Return the whole answer; raise CallFailed if none came."""
        try:
            async with asyncio.timeout(seconds):
                reader = await self._send(port, method, path, body, headers or {})
                try:
                    answer = HttpAnswer(*await reader.head)
                    answer.body = b"".join([piece async for piece in _read(reader)])
                finally:
                    reader.transport.close()
        except (OSError, TimeoutError) as error:
            raise CallFailed(repr(error)) from error
        return answer

    async def stream(
        self,
        port: int,
        path: str,
        body: Any,
        headers: Mapping[str, str] | None = None,
        seconds: float = 120.0,
        method: str = "POST",
    ) -> AsyncGenerator[bytes | HttpAnswer]:
        """Yield the head, then the pieces of the answer; a caller may leave at any piece."""
        try:
            async with asyncio.timeout(seconds):
                reader = await self._send(port, method, path, body, headers or {})
                try:
                    yield HttpAnswer(*await reader.head)
                    async for piece in _read(reader):
                        yield piece
                finally:
                    reader.transport.close()
        except (OSError, TimeoutError) as error:
            raise CallFailed(repr(error)) from error

    async def _send(self, port: int, method: str, path: str, body: Any, headers: Mapping[str, str]) -> _Reader:
        loop = asyncio.get_running_loop()
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        _, reader = await loop.create_connection(
            lambda: _Reader(loop.create_future(), asyncio.Queue()), "gateway", port
        )
        lines = {
            "host": "gateway",
            "authorization": f"Bearer {self._key}",
            "content-type": "application/json",
            "content-length": str(len(data)),
            **headers,
        }
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        reader.transport.write(head.encode() + b"\r\n" + data)
        return reader


async def _read(reader: _Reader) -> AsyncIterator[bytes]:
    while (piece := await reader.pieces.get()) is not None:
        if isinstance(piece, Exception):
            raise piece
        yield piece
