"""Bridge from MCP over stdin and stdout to the server's `/mcp`. It resends what a broken connection lost."""

import asyncio
import base64
import contextlib
import json
import os
import select
import threading
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final, cast

import httpx2

from penstock.catalog.params import as_object
from penstock.client.config import Address
from penstock.client.transport.httpx_options import client_options
from penstock.client.transport.sse import EventLines

VERSION: Final = "io.modelcontextprotocol/protocolVersion"
PATIENCE_SECONDS: Final = 60.0
"""Seconds for which a request is sent again while the server does not answer: it may be restarting."""
READ_SECONDS: Final = 120.0
LAST_SECONDS: Final = 60.0
"""Seconds for which open calls are still answered after the input has ended."""
LOOK_SECONDS: Final = 1.0
"""Seconds after which it is checked that the output is still read."""
READ_BYTES: Final = 1 << 16
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 5.0
PARSE_ERROR, INVALID_MESSAGE, NOT_REACHED, NOT_ANSWERED = -32700, -32600, -32000, -32001


class ConnectionCut(Exception):
    """The answer did not arrive whole, or the server is starting or stopping."""


async def serve(address: Address, source: BinaryIO, sink: BinaryIO) -> None:
    """Carry messages until the input ends, then answer the calls that are open. Their jobs go on at the server."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            for line in _read_lines(source.fileno()):
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    options: dict[str, Any] = client_options(address) | {
        "timeout": httpx2.Timeout(address.timeout, read=READ_SECONDS, pool=None)
    }
    async with httpx2.AsyncClient(**options) as http, asyncio.TaskGroup() as tasks:
        bridge = Bridge(http, f"{address.base_url}/mcp", sink, tasks)
        while line := await lines.get():
            bridge.take(line)
        await bridge.finish()


class Bridge:
    """Sends each message as a request of its own, and writes what is answered."""

    def __init__(self, http: httpx2.AsyncClient, url: str, sink: BinaryIO, tasks: asyncio.TaskGroup) -> None:
        self._http = http
        self._url = url
        self._sink = sink
        self._tasks = tasks
        self._open: dict[str | int, asyncio.Task[None]] = {}
        self._version: str | None = None
        """The version that the handshake settled, for clients with a handshake."""

    def take(self, line: bytes) -> None:
        """Begin to answer one message."""
        if not line.strip():
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._write(_error(None, PARSE_ERROR, "The message is not valid JSON."))
            return
        if not isinstance(message, dict):
            self._write(_error(None, INVALID_MESSAGE, "The message should be a JSON object."))
            return
        self._begin(cast("dict[str, Any]", message), line)

    def _begin(self, message: Mapping[str, Any], line: bytes) -> None:
        request_id, params = message.get("id"), as_object(message.get("params"))
        if message.get("method") == "notifications/cancelled":
            if isinstance(name := params.get("requestId"), str | int) and name in self._open:
                self._open.pop(name).cancel()
        elif "id" not in message:
            return  # a notification, of which the server needs none
        elif not isinstance(request_id, str | int):
            self._write(_error(None, INVALID_MESSAGE, "`id` of a request should be a string or an integer."))
        elif request_id in self._open:
            self._write(_error(None, INVALID_MESSAGE, f"`id` {request_id!r:.100} is that of an open request."))
        else:
            self._open[request_id] = self._tasks.create_task(self._answer(message, line, request_id))

    async def finish(self) -> None:
        """Answer what is open, for as long as somebody reads it and at most for `LAST_SECONDS`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + LAST_SECONDS
        while self._open and (left := until - loop.time()) > 0 and not _is_closed(self._sink):
            await asyncio.wait(self._open.values(), timeout=min(left, LOOK_SECONDS))
        for request_id, task in self._open.items():
            task.cancel()
            self._write(_error(request_id, NOT_ANSWERED, "The input has ended. A job that this call began goes on."))

    async def _answer(self, message: Mapping[str, Any], line: bytes, request_id: str | int) -> None:
        """Send a request until it is answered. The server finds by its key what it has accepted already."""
        loop = asyncio.get_running_loop()
        headers = self._headers(message)
        until, pause = loop.time() + PATIENCE_SECONDS, FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._exchange(message, line, request_id, headers)
                break
            except (httpx2.TransportError, httpx2.StreamError, ConnectionCut) as error:
                if loop.time() + pause > until:
                    said = f"{self._url} does not answer: {error or type(error).__name__}."
                    self._write(_error(request_id, NOT_REACHED, f"{said} Is the server running?"))
                    break
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        self._open.pop(request_id, None)

    async def _exchange(
        self, message: Mapping[str, Any], line: bytes, request_id: str | int, headers: Mapping[str, str]
    ) -> None:
        async with self._http.stream("POST", self._url, content=line, headers=headers) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                events = EventLines()
                async for chunk in response.aiter_bytes():
                    for event in events.feed(chunk):
                        if event.data and self._pass_on(json.loads(event.data), message, request_id):
                            return
                raise ConnectionCut("the answer was cut off")
            body = await response.aread()
            if response.status_code in (502, 503, 504):
                raise ConnectionCut(f"HTTP status {response.status_code}")
            try:
                answer: Any = json.loads(body)
            except ValueError:
                answer = None
            if not isinstance(answer, dict):
                answer = _error(
                    request_id, NOT_REACHED, f"{self._url} answered with HTTP status {response.status_code}."
                )
            self._pass_on(cast("dict[str, Any]", answer), message, request_id)

    def _pass_on(self, answer: dict[str, Any], message: Mapping[str, Any], request_id: str | int) -> bool:
        """Write a message of the server. Return whether it is the answer."""
        if "method" in answer:
            self._write(answer)
            return False
        if message.get("method") == "initialize":
            self._version = as_object(answer.get("result")).get("protocolVersion")
        self._write({**answer, "id": request_id})
        return True

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers by which the server finds version, method and tool, and a key for resending."""
        method, params = str(message.get("method")), as_object(message.get("params"))
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "idempotency-key": f"mcp-{uuid.uuid4()}",
        }
        version = as_object(params.get("_meta")).get(VERSION)
        if isinstance(version, str):
            headers |= {"mcp-protocol-version": _encode(version), "mcp-method": _encode(method)}
            if isinstance(name := params.get("name", params.get("uri")), str):
                headers["mcp-name"] = _encode(name)
        elif self._version is not None:
            headers["mcp-protocol-version"] = self._version
        return headers

    def _write(self, message: Mapping[str, Any]) -> None:
        self._sink.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._sink.flush()


def _read_lines(source: int) -> Iterator[bytes]:
    """Yield lines, which end in a newline. It holds no lock of Python's, which could not end before the input does."""
    rest: list[bytes] = []
    while piece := os.read(source, READ_BYTES):
        *whole, last = piece.split(b"\n")
        for line in whole:
            yield b"".join([*rest, line, b"\n"])
            rest.clear()
        rest.append(last)
    if any(rest):
        yield b"".join([*rest, b"\n"])


def _is_closed(sink: BinaryIO) -> bool:
    """Return whether nobody reads the output any more."""
    look = select.poll()
    look.register(sink.fileno(), 0)
    return bool(look.poll(0))


def _encode(value: str) -> str:
    """Return a text as a header may hold it."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _error(request_id: str | int | None, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
