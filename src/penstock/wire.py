"""HTTP to vendors: one pool of connections each, and by class of failure whether a call was sent."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

import aiohttp
import msgspec
from yarl import URL

from penstock.contract import Call, ChatVendor, GenerationVendor, NotSent, ReplyLost

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 60.0
BIG_BODY = 1 << 18
PIECE = 1 << 18
MAX_ADDRESSES = 1_000

_NO_RESPONSE_HEADERS = {"accept-encoding": "identity", "user-agent": "penstock"}
_SKIPPED = ("User-Agent", "Accept-Encoding", "Accept", "Content-Type")


class _Pool(NamedTuple):
    """What a pool of connections is made for; other options make another."""

    name: str
    limit: int
    connect_seconds: float
    idle_seconds: float | None


class Incoming:
    """A reply whose head is here and whose body is on its way."""

    __slots__ = ("_response", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        return {name.lower(): value for name, value in self._response.headers.items()}

    async def read_some(self) -> bytes:
        """What has come, at least a byte; nothing at the end."""
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ReplyLost(type(error).__name__) from error

    async def read_all(self, limit: int) -> bytes:
        """The whole body."""
        first = await self.read_some()
        pieces, size = [first], len(first)
        while not self._response.content.at_eof():
            pieces.append(await self.read_some())
            size += len(pieces[-1])
            if size > limit:
                raise ReplyLost("the reply is too large")
        return first if len(pieces) == 1 else b"".join(pieces)

    @property
    def at_end(self) -> bool:
        """Whether the whole body is here, so that the connection can be used again."""
        return self._response.content.is_eof()

    def close(self) -> None:
        """Hang up, unless the reply has ended: a vendor stops generating when its caller leaves."""
        self._response.close()


class Wire:
    """Opened in the event loop that uses it."""

    def __init__(self) -> None:
        self._sessions: dict[_Pool, aiohttp.ClientSession] = {}
        self._addresses: dict[str, URL] = {}

    async def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    @asynccontextmanager
    async def request(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[aiohttp.ClientResponse]:
        """One HTTP call; what its failure means for a paid order is decided here, by class."""
        pool = _Pool(name, max(8, vendor.options.max_concurrent), CONNECT_SECONDS, IDLE_SECONDS)
        with _told():
            async with asyncio.timeout(call.seconds):
                response = await self._send(pool, vendor.options.base_url, call)
            async with response:
                yield response

    async def open(self, name: str, vendor: ChatVendor, call: Call) -> Incoming:
        """The head of the reply to a chat request; how long it may take is the caller's business."""
        pool = _Pool(name, 0, vendor.options.connect_seconds, None)
        with _told():
            return Incoming(await self._send(pool, vendor.options.base_url, call))

    async def _send(self, pool: _Pool, base_url: str, call: Call) -> aiohttp.ClientResponse:
        body = msgspec.json.encode(call.json) if call.json is not None else call.body
        headers = {**_NO_RESPONSE_HEADERS, **call.headers}
        if body is not None:
            headers.setdefault("content-type", "application/json")
        data = body
        if body is not None and len(body) > BIG_BODY:
            headers["content-length"] = str(len(body))
            data = _in_pieces(body)
        session = self._sessions.get(pool) or self._open_session(pool)
        return await session.request(
            call.method, self._address(base_url, call.url), data=data, headers=headers, allow_redirects=False
        )

    def _address(self, base_url: str, url: str) -> URL:
        whole = url if "://" in url else base_url.rstrip("/") + url
        found = self._addresses.get(whole)
        if found is None:  # parsing one takes as long as a good part of the call
            try:
                found = URL(whole)
            except ValueError as error:
                raise NotSent("not a URL") from error
            if len(self._addresses) >= MAX_ADDRESSES:
                self._addresses.clear()
            self._addresses[whole] = found
        return found

    def _open_session(self, pool: _Pool) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, limit_per_host=pool.limit, keepalive_timeout=15, ttl_dns_cache=30, force_close=False
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            skip_auto_headers=_SKIPPED,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=pool.connect_seconds, sock_read=pool.idle_seconds),
        )
        session._retry_connection = False  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] aiohttp resends GETs
        self._sessions[pool] = session
        return session


@contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
        raise NotSent(type(error).__name__) from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ReplyLost(type(error).__name__) from error


async def _in_pieces(body: bytes) -> AsyncIterator[bytes]:
    """A large body, so that it neither fills the socket's buffer nor holds the event loop up."""
    view = memoryview(body)
    for start in range(0, len(body), PIECE):
        yield bytes(view[start : start + PIECE])
