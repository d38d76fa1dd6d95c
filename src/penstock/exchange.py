"""The only code that talks to vendors: drives a flow's calls over HTTP or to an upstream inside this process."""

import asyncio
import importlib
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock import metrics
from penstock.chat_wire import ChatWire, Incoming
from penstock.contract import (
    Call,
    ChatServer,
    ChatVendor,
    Flow,
    GenerationVendor,
    NotSent,
    NotStarted,
    Reply,
    ReplyLost,
    Unclear,
    Upstream,
)
from penstock.files import StoredFile

if TYPE_CHECKING:
    from penstock.wire import Wire

T = TypeVar("T")

MAX_REPLY_BYTES = 128 * 1024 * 1024  # some vendors put a whole video into a JSON reply
CHUNK = 1 << 18

log = logging.getLogger(__name__)


TROUBLE = (NotSent, ReplyLost, Unclear)
"""What may pass by itself: a poll or a download is simply tried again."""


class Exchange:
    """Makes vendors' calls, wherever their upstreams are."""

    def __init__(self, read_file: Callable[[StoredFile], Awaitable[bytes]]) -> None:
        self._read_file = read_file
        self._wire: Wire | None = None
        self._chat_wire = ChatWire()
        self._starts: dict[ChatServer, asyncio.Future[str]] = {}

    async def close(self) -> None:
        """Close every connection."""
        self._chat_wire.close()
        if self._wire is not None:
            await self._wire.close()

    async def drive(self, name: str, vendor: GenerationVendor, verb: str, flow: Flow[T]) -> T:
        """Make a flow's calls one after the other until it returns what they mean."""
        outcome = "ok"
        try:
            call = next(flow)
            while True:
                reply = await self._ask(name, vendor, call)
                call = flow.send(reply)
        except StopIteration as end:
            return end.value
        except TROUBLE as error:
            outcome = type(error).__name__
            log.info("vendor trouble", extra={"fields": {"vendor": name, "verb": verb, "trouble": outcome}})
            raise
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            outcome = "malformed"
            raise Unclear(f"a reply of another shape than expected ({type(error).__name__})") from error
        finally:
            flow.close()
            metrics.UPSTREAM_CALLS.labels(name, verb, outcome).inc()

    @asynccontextmanager
    async def download(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of one output, as they come; anything but a whole 200 is trouble."""
        if vendor.upstream is not None:
            status, _, data = await self._ask_inside(vendor.upstream, call)
            if status != 200:
                raise Unclear(f"HTTP {status} on download")
            yield _read_chunks(data)
            return
        async with (await self._open_wire()).request(name, vendor, call) as response:
            if response.status != 200:
                raise Unclear(f"HTTP {response.status} on download")
            yield response.content.iter_chunked(CHUNK)

    async def open(self, vendor: ChatVendor, call: Call) -> Incoming:
        """The head of the reply to a chat request; how long it may take is the caller's business."""
        server, seconds = vendor.server, vendor.options.connect_seconds
        if server is None:
            return await self._chat_wire.open(vendor.options.base_url, call, seconds)
        address = server.address() or await self._start(server)
        try:
            return await self._chat_wire.open(address, call, seconds)
        except NotSent:
            if not await _is_gone(server, address):
                raise
        return await self._chat_wire.open(await self._start(server), call, seconds)

    async def _start(self, server: ChatServer) -> str:
        """Where it serves once it does; all who wait share one thread, as there are few of them."""
        start = self._starts.get(server)
        if start is None:
            start = self._starts[server] = asyncio.ensure_future(asyncio.to_thread(server.start))
            start.add_done_callback(lambda done: (self._starts.pop(server), done.cancelled() or done.exception()))
        try:
            return await asyncio.shield(start)  # who leaves leaves alone
        except ConnectionRefusedError as error:
            raise NotStarted(str(error)) from error
        except OSError as error:
            raise NotStarted(f"The server of this model cannot be started: {error.strerror}.") from error

    async def _ask(self, name: str, vendor: GenerationVendor, call: Call) -> Reply:
        if call.file is not None:
            call = replace(call, body=await self._read_file(call.file), file=None)
        if vendor.upstream is not None:
            status, headers, data = await self._ask_inside(vendor.upstream, call)
            return Reply(status, headers, data if isinstance(data, bytes) else await asyncio.to_thread(data.read_bytes))
        wire = await self._open_wire()
        async with wire.request(name, vendor, call) as response, asyncio.timeout(call.seconds):
            body = bytearray()
            async for chunk in response.content.iter_chunked(CHUNK):
                body += chunk
                if len(body) > MAX_REPLY_BYTES:
                    raise Unclear("the reply is too large")
            headers = {key.lower(): value for key, value in response.headers.items()}
            return Reply(response.status, headers, bytes(body))

    async def _ask_inside(self, upstream: Upstream, call: Call) -> tuple[int, Mapping[str, str], bytes | Path]:
        body = (call.body or b"") if call.json is None else msgspec.json.encode(call.json)
        try:
            return await asyncio.to_thread(upstream.answer, call.method, call.url, body)
        except ConnectionRefusedError as error:
            raise NotSent("connection refused") from error
        except ConnectionError as error:
            raise ReplyLost("connection lost") from error

    async def _open_wire(self) -> "Wire":
        """The HTTP client; loaded at its first use, and not on the event loop: it would slow every start."""
        if self._wire is not None:
            return self._wire
        module: Any = await asyncio.to_thread(importlib.import_module, "penstock.wire")
        wire: Wire = self._wire or module.Wire()  # another call may have been first
        self._wire = wire
        return wire


async def _is_gone(server: ChatServer, address: str) -> bool:
    """Whether it has just died: its port is closed a moment before its process is known to be over."""
    for _ in range(100):
        if server.address() != address:
            return True
        await asyncio.sleep(0.01)
    return False


async def _read_chunks(body: bytes | Path) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        yield body
        return
    with await asyncio.to_thread(body.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk


_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]*://\S+"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b\S*"
    r"|\b[\w.-]+\.(?:com|net|org|ai|io|dev|cloud|run|app|media|delivery)\b\S*",
    re.IGNORECASE,
)


def redact(said: Mapping[str, str | None] | None, secrets: frozenset[str]) -> dict[str, str | None] | None:
    """What a vendor said, without addresses or secrets, and not at length."""
    if said is None:
        return None
    clean: dict[str, str | None] = {}
    for name, text in said.items():
        if text is not None:
            for secret in sorted(filter(None, secrets), key=len, reverse=True):  # whole, before an address in it is cut
                text = str(text).replace(secret, "…")  # noqa: PLW2901  cleaned step by step
            text = _ADDRESS.sub("…", str(text))[:300]  # noqa: PLW2901
        clean[name] = text
    return clean
