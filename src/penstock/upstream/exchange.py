"""The only code that calls vendors: it drives a flow's calls over HTTP or to an upstream inside this process."""

import asyncio
import base64
import importlib
import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec
from msgspec import structs

from penstock.domain.files import StoredFile
from penstock.domain.job_errors import BadOutput
from penstock.observability import metrics, traces
from penstock.safe_fetch.policy import Network
from penstock.upstream.chat_connection import ChatConnections
from penstock.upstream.chat_response import Incoming
from penstock.upstream.redaction import Redactor
from penstock.vendor_api.chat import ChatServer, ChatVendor
from penstock.vendor_api.generation import (
    Base64,
    Call,
    DataUri,
    FileValue,
    Flow,
    GenerationVendor,
    InProcessUpstream,
    KeptReply,
    NoPublicUrl,
    NotSent,
    NotStarted,
    Reply,
    ReplyLost,
    SignedUrl,
    Unclear,
    Unread,
)

if TYPE_CHECKING:
    from penstock.upstream.http_client import HttpClient

T = TypeVar("T")

MAX_REPLY_BYTES = 128 * 1024 * 1024  # some vendors put a whole video into a JSON reply
CHUNK_BYTES = 1 << 18
OTHER_SCHEME = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
"""The start of an address that is neither HTTP nor HTTPS."""
NO_PUBLIC_URL = "This vendor fetches files itself: set `server.public_url` to an address that it can reach."
MAX_STARTS = 3
"""Starts of a server of our own for one chat request."""
MAX_EXIT_CHECKS = 500
MAX_REMEMBERED_TOKENS = 64
"""Tokens lately sent to vendors, which are removed from vendors' texts."""

log = logging.getLogger(__name__)


TROUBLE = (NotSent, ReplyLost, Unclear)
"""Failures that may be temporary: a poll or a download is retried."""


async def open_http_client(allow_networks: Callable[[], Sequence[Network]] = tuple) -> "HttpClient":
    """Return an HTTP client, imported in a thread at its first use to keep every start fast."""
    module: Any = await asyncio.to_thread(importlib.import_module, "penstock.upstream.http_client")
    return module.HttpClient(allow_networks)


class Exchange:
    """Makes vendors' calls, over HTTP or inside this process."""

    def __init__(
        self,
        read_file: Callable[[StoredFile], Awaitable[bytes]],
        open_http_client: "Callable[[], Awaitable[HttpClient]]" = open_http_client,
        link: Callable[[StoredFile], str | None] = lambda _: None,
    ) -> None:
        self._read_file = read_file
        self._link = link
        self._open_new_client = open_http_client
        self._http_client: HttpClient | None = None
        self._connections = ChatConnections()
        self._starts: dict[ChatServer, asyncio.Future[str]] = {}
        self._sent_tokens: deque[str] = deque(maxlen=MAX_REMEMBERED_TOKENS)

    def redact(self, texts: Mapping[str, str | None] | None, redactor: Redactor) -> dict[str, str | None] | None:
        """Return a media vendor's texts without secrets, and without the tokens lately sent to vendors."""
        return redactor.upstream(texts, self._sent_tokens)

    async def close(self) -> None:
        """Close every connection."""
        self._connections.close()
        if self._http_client is not None:
            await self._http_client.close()

    async def drive(
        self,
        name: str,
        vendor: GenerationVendor,
        verb: str,
        flow: Flow[T],
        before_paying: Callable[[], Awaitable[None]] | None = None,
        be_sure: Callable[[], None] | None = None,
    ) -> T:
        """Make a flow's calls one after the other and return its result.

        `before_paying` is awaited once, before the first call that does more than prepare. `be_sure` may still refuse
        such a call at the moment it is sent.
        """
        with traces.call(name, verb) as span:
            return await self._drive(name, vendor, verb, flow, before_paying, be_sure, span)

    async def _drive(
        self,
        name: str,
        vendor: GenerationVendor,
        verb: str,
        flow: Flow[T],
        before_paying: Callable[[], Awaitable[None]] | None,
        be_sure: Callable[[], None] | None,
        span: traces.Span,
    ) -> T:
        outcome, prepares = "ok", True
        try:
            call, reply = _advance(flow, None), None
            while isinstance(call, Call):
                prepares = call.prepares
                call = await self._load(call)  # before anything is paid, as the bytes may be unreachable
                if before_paying is not None and not prepares:
                    await before_paying()
                    before_paying = None
                reply = await self._ask(name, vendor, call, None if prepares else be_sure)
                span.tell({"http.response.status_code": reply.status})
                call = _advance(flow, reply)
        except TROUBLE as error:
            outcome = type(error).__name__
            log.info("vendor call failed", extra={"fields": {"vendor": name, "verb": verb, "trouble": outcome}})
            if prepares and not isinstance(error, NoPublicUrl):
                raise NotSent("nothing was ordered yet") from error
            raise
        else:
            return call.value
        finally:
            flow.close()
            metrics.UPSTREAM_CALLS.labels(name, verb, outcome).inc()

    @asynccontextmanager
    async def download(
        self, name: str, vendor: GenerationVendor, source: Call | str | KeptReply
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Yield the bytes of one output as they come; raise for anything but a complete 200."""
        if isinstance(source, str):
            yield _decode_chunks(source)
            return
        if isinstance(source, KeptReply):
            raise TypeError("a stored reply is opened in the storage")
        with traces.call(name, "download"):
            async with self._download(name, vendor, source) as chunks:
                yield chunks

    @asynccontextmanager
    async def _download(
        self, name: str, vendor: GenerationVendor, source: Call
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        if OTHER_SCHEME.match(source.url):
            raise BadOutput("The vendor named a result with an address that is not HTTP.")
        if vendor.upstream is not None:
            status, _, data = await self._ask_inside(vendor.upstream, source)
            if status != 200:
                raise Unclear(f"HTTP {status} on download")
            yield _read_chunks(data)
        else:
            async with (await self._open_http_client()).download(name, vendor, source) as response:
                if response.status != 200:
                    raise Unclear(f"HTTP {response.status} on download")
                yield response.content.iter_chunked(CHUNK_BYTES)

    @asynccontextmanager
    async def listen(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[AsyncIterator[str]]:
        """Yield the texts of a vendor's WebSocket as they come."""
        async with (await self._open_http_client()).listen(name, vendor, call) as texts:
            yield texts

    def open(self, vendor: ChatVendor, call: Call) -> Awaitable[Incoming]:
        """Return the reply to a chat request once the request is sent; the caller sets the timeout."""
        if vendor.server is None:
            return self._connections.open(vendor.options.base_url, call, vendor.options.connect_seconds, vendor.options)
        return self._open_own(vendor.server, call, vendor.options.connect_seconds)

    async def _open_own(self, server: ChatServer, call: Call, seconds: float) -> Incoming:
        """Like `open`, but start a server of our own, and restart it if it died before it read the call.

        A call that it may have read is never repeated, because that call may have killed the server.
        """
        unread = 0
        for left in reversed(range(MAX_STARTS)):
            address = server.address() or await self._start(server)
            try:
                return await self._open_head(address, call, seconds)
            except (NotSent, Unread) as error:
                unread += isinstance(error, Unread)
                if not left or unread > 1 or not await _is_gone(server, address):
                    raise
        raise NotSent("it died as often as it was started")

    async def _open_head(self, address: str, call: Call, seconds: float) -> Incoming:
        """Make a call and wait for the head of its reply."""
        incoming = await self._connections.open(address, call, seconds)
        try:
            await incoming.wait_head()
        except BaseException:
            incoming.close()
            raise
        return incoming

    async def _start(self, server: ChatServer) -> str:
        """Start the server and return its address; all waiting callers share one thread, as threads are few."""
        start = self._starts.get(server)
        if start is None or start.done():  # a server from an earlier start may be dead
            start = self._starts[server] = asyncio.ensure_future(asyncio.to_thread(server.start))
            start.add_done_callback(partial(self._end_start, server))
        try:
            return await asyncio.shield(start)  # a caller that leaves must not cancel it for the others
        except ConnectionRefusedError as error:
            raise NotStarted(str(error)) from error
        except OSError as error:
            raise NotStarted(f"The server of this model cannot be started: {error.strerror}.") from error

    def _end_start(self, server: ChatServer, start: asyncio.Future[str]) -> None:
        if self._starts.get(server) is start:
            del self._starts[server]
        if not start.cancelled():
            start.exception()  # every waiting caller has seen it

    async def _ask(self, name: str, vendor: GenerationVendor, call: Call, be_sure: Callable[[], None] | None) -> Reply:
        shown = call.headers.get("authorization", "").rpartition(" ")[2]
        if shown and shown not in self._sent_tokens:
            self._sent_tokens.append(shown)
        if vendor.upstream is not None:
            status, headers, data = await self._ask_inside(vendor.upstream, call, be_sure)
            return Reply(status, headers, data if isinstance(data, bytes) else await asyncio.to_thread(data.read_bytes))
        http_client = await self._open_http_client()
        async with http_client.request(name, vendor, call, be_sure) as response, asyncio.timeout(call.seconds):
            body = bytearray()
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                body += chunk
                if len(body) > MAX_REPLY_BYTES:
                    raise Unclear("the reply is too large")
            headers = {key.lower(): value for key, value in response.headers.items()}
            return Reply(response.status, headers, bytes(body))

    async def _load(self, call: Call) -> Call:
        """Return the call with the bytes of the caller's file wherever it names that file."""
        if call.file is not None:
            return structs.replace(call, body=await self._read_file(call.file), file=None)
        if call.form is not None:
            loaded = [await self._read_file(file) for _, file in call.form.parts]
            return structs.replace(call, form=replace(call.form, loaded=tuple(loaded)))
        values = set(_file_values(call.json))
        if not values:
            return call
        texts = {value: await self._write(value) for value in values}
        return structs.replace(call, json=_fill(call.json, texts))

    async def _write(self, value: FileValue) -> str:
        """Return the text that stands for a file in a call's JSON."""
        if isinstance(value, SignedUrl):
            link = self._link(value.file)
            if link is None:
                raise NoPublicUrl(NO_PUBLIC_URL)
            return link
        text = await asyncio.to_thread(_encode, await self._read_file(value.file))
        return text if isinstance(value, Base64) else f"data:{value.file.content_type};base64,{text}"

    async def _ask_inside(
        self, upstream: InProcessUpstream, call: Call, be_sure: Callable[[], None] | None = None
    ) -> tuple[int, Mapping[str, str], bytes | Path]:
        body = (call.body or b"") if call.json is None else msgspec.json.encode(call.json)

        def ask() -> tuple[int, Mapping[str, str], bytes | Path]:
            if be_sure is not None:
                be_sure()  # here, as the process may have been frozen before the thread began
                place = getattr(upstream, "place", None)  # of those that check once more, as they write
                if place is not None:
                    return place(call.method, call.url, body, be_sure)
            return upstream.answer(call.method, call.url, body)

        try:
            return await asyncio.to_thread(ask)
        except ConnectionRefusedError as error:
            raise NotSent("connection refused") from error
        except ConnectionError as error:
            raise ReplyLost("connection lost") from error

    async def _open_http_client(self) -> "HttpClient":
        """Return the HTTP client, which is opened at its first use."""
        if self._http_client is not None:
            return self._http_client
        opened = await self._open_new_client()
        if self._http_client is None:  # unless another call was first
            self._http_client = opened
        return self._http_client


@dataclass(frozen=True, slots=True)
class _Returned(Generic[T]):
    """The result of a finished flow."""

    value: T


def _advance(flow: Flow[T], reply: Reply | None) -> Call | _Returned[T]:
    """Return the flow's next call or its result; raise `Unclear` for a reply of an unexpected shape."""
    try:
        return next(flow) if reply is None else flow.send(reply)
    except StopIteration as end:
        return _Returned(end.value)
    except Unclear as error:
        error.retry_after = None if reply is None else reply.retry_after
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Unclear(f"the reply has an unexpected shape ({type(error).__name__})") from error


async def _is_gone(server: ChatServer, address: str) -> bool:
    """Return whether the server has just died: its port closes a moment before its process is seen to end."""
    for _ in range(MAX_EXIT_CHECKS):
        if server.address() != address:
            return True
        await asyncio.sleep(0.01)
    return False


async def _decode_chunks(text: str) -> AsyncIterator[bytes]:
    """Decode Base64 piece by piece, so that other tasks run in between."""
    size = CHUNK_BYTES // 3 * 4
    for start in range(0, len(text), size):
        try:
            yield base64.b64decode(text[start : start + size], validate=True)
        except ValueError as error:
            raise BadOutput("The output in the vendor's reply is not Base64.") from error


# -- callers' files inside of calls


def _file_values(value: Any) -> Iterator[FileValue]:
    match value:
        case DataUri() | Base64() | SignedUrl():
            yield value
        case dict():
            for item in cast("dict[str, Any]", value).values():
                yield from _file_values(item)
        case list() | tuple():
            for item in cast("Sequence[Any]", value):
                yield from _file_values(item)
        case _:
            return


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _fill(value: Any, texts: Mapping[FileValue, str]) -> Any:
    match value:
        case DataUri() | Base64() | SignedUrl():
            return texts[value]
        case dict():
            return {name: _fill(item, texts) for name, item in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_fill(item, texts) for item in cast("Sequence[Any]", value)]
        case _:
            return value


async def _read_chunks(body: bytes | Path) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        yield body
        return
    with await asyncio.to_thread(body.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
