"""Bridge from MCP over stdin and stdout to the server's `/mcp`. It resends what a broken connection lost."""

import asyncio
import base64
import json
import threading
import uuid
from collections.abc import Mapping
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
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 5.0
PARSE_ERROR, INVALID_MESSAGE, NOT_REACHED = -32700, -32600, -32000


class ConnectionCut(Exception):
    """The answer did not arrive whole, or the server is starting or stopping."""


async def serve(address: Address, source: BinaryIO, sink: BinaryIO) -> None:
    """Carry messages until the input ends. Jobs of open calls go on at the server."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        for line in source:
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
        bridge.stop()


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
        self._begin(cast("dict[str, Any]", message))

    def _begin(self, message: Mapping[str, Any]) -> None:
        request_id, params = message.get("id"), as_object(message.get("params"))
        if message.get("method") == "notifications/cancelled":
            if isinstance(name := params.get("requestId"), str | int) and name in self._open:
                self._open.pop(name).cancel()
        elif "id" not in message:
            return  # a notification, of which the server needs none
        elif isinstance(request_id, str | int):
            self._open[request_id] = self._tasks.create_task(self._answer(message, request_id))
        else:
            self._write(_error(None, INVALID_MESSAGE, "`id` of a request should be a string or an integer."))

    def stop(self) -> None:
        """Give up what is open."""
        for task in self._open.values():
            task.cancel()

    async def _answer(self, message: Mapping[str, Any], request_id: str | int) -> None:
        """Send a request until it is answered. The server finds by its key what it has accepted already."""
        loop = asyncio.get_running_loop()
        headers = self._headers(message)
        until, pause = loop.time() + PATIENCE_SECONDS, FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._exchange(message, request_id, headers)
                break
            except (httpx2.TransportError, httpx2.StreamError, ConnectionCut) as error:
                if loop.time() + pause > until:
                    said = f"{self._url} does not answer: {error or type(error).__name__}."
                    self._write(_error(request_id, NOT_REACHED, f"{said} Is the server running?"))
                    break
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        self._open.pop(request_id, None)

    async def _exchange(self, message: Mapping[str, Any], request_id: str | int, headers: Mapping[str, str]) -> None:
        async with self._http.stream("POST", self._url, json=message, headers=headers) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                events = EventLines()
                async for chunk in response.aiter_bytes():
                    for event in events.feed(chunk):
                        if self._pass_on(json.loads(event.data), message, request_id):
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
        headers = {"accept": "application/json, text/event-stream", "idempotency-key": f"mcp-{uuid.uuid4()}"}
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


def _encode(value: str) -> str:
    """Return a text as a header may hold it."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _error(request_id: str | int | None, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
