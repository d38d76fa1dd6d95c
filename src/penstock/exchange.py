"""The only code that talks to vendors: drives a flow's calls over HTTP or to an upstream inside this process."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import aiohttp
import msgspec

from penstock import metrics
from penstock.contract import Call, Flow, GenerationVendor, Reply, Unclear

T = TypeVar("T")

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 60.0
MAX_REPLY_BYTES = 128 * 1024 * 1024  # some vendors put a whole video into a JSON reply
CHUNK = 1 << 18

log = logging.getLogger(__name__)


class NotSent(Exception):
    """The call provably never reached the vendor: it may be made again, there or elsewhere."""


class ReplyLost(Exception):
    """The call may have reached the vendor and its answer did not reach us: never make a paid one again blindly."""


TROUBLE = (NotSent, ReplyLost, Unclear)
"""What may pass by itself: a poll or a download is simply tried again."""


class Exchange:
    """One pool of connections per vendor; opened in the event loop that uses it."""

    def __init__(self) -> None:
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

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
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            outcome = "malformed"
            raise Unclear(f"a reply of another shape than expected ({type(error).__name__})") from error
        finally:
            flow.close()
            metrics.UPSTREAM_CALLS.labels(name, verb, outcome).inc()

    @asynccontextmanager
    async def download(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of one output, as they come; anything but a whole 200 is trouble."""
        if vendor.upstream is not None:
            reply = await self._ask(name, vendor, call)
            if reply.status != 200:
                raise Unclear(f"HTTP {reply.status} on download")
            yield _one(reply.body)
            return
        async with self._request(name, vendor, call) as response:
            if response.status != 200:
                raise Unclear(f"HTTP {response.status} on download")
            yield _chunks(response)

    async def _ask(self, name: str, vendor: GenerationVendor, call: Call) -> Reply:
        if vendor.upstream is not None:
            return await self._ask_inside(vendor, call)
        async with self._request(name, vendor, call) as response:
            body = bytearray()
            async for chunk in _chunks(response):
                body += chunk
                if len(body) > MAX_REPLY_BYTES:
                    raise Unclear("the reply is too large")
            headers = {key.lower(): value for key, value in response.headers.items()}
            return Reply(response.status, headers, bytes(body))

    async def _ask_inside(self, vendor: GenerationVendor, call: Call) -> Reply:
        assert vendor.upstream is not None  # noqa: S101  told by the caller
        body = b"" if call.json is None else msgspec.json.encode(call.json)
        try:
            status, headers, data = await asyncio.to_thread(vendor.upstream.answer, call.method, call.url, body)
        except ConnectionRefusedError as error:
            raise NotSent("connection refused") from error
        except ConnectionError as error:
            raise ReplyLost("connection lost") from error
        return Reply(status, headers, data)

    @asynccontextmanager
    async def _request(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[aiohttp.ClientResponse]:
        """One HTTP call; what its failure means for a paid order is decided here, by class."""
        url = call.url if "://" in call.url else vendor.options.base_url.rstrip("/") + call.url
        body = None if call.json is None else msgspec.json.encode(call.json)
        headers = {"accept-encoding": "identity", "user-agent": "penstock", **call.headers}
        if body is not None:
            headers.setdefault("content-type", "application/json")
        session = self._session(name, vendor)
        try:
            async with asyncio.timeout(call.seconds):
                response = await session.request(call.method, url, data=body, headers=headers, allow_redirects=False)
            async with response:
                yield response
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise NotSent(type(error).__name__) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ReplyLost(type(error).__name__) from error

    def _session(self, name: str, vendor: GenerationVendor) -> aiohttp.ClientSession:
        session = self._sessions.get(name)
        if session is None:
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    limit_per_host=max(8, vendor.options.max_concurrent),
                    keepalive_timeout=15,
                    ttl_dns_cache=30,
                ),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=IDLE_SECONDS),
            )
            session._retry_connection = False  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] aiohttp resends GETs
            self._sessions[name] = session
        return session


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for chunk in response.content.iter_chunked(CHUNK):
        yield chunk


_ADDRESS = re.compile(r"(?:https?|gs|s3)://\S+|\b[\w.-]+\.(?:com|net|org|ai|io|dev|cloud|run|app|media|delivery)\b\S*")


def redact(said: Mapping[str, str | None] | None, secrets: frozenset[str]) -> dict[str, str | None] | None:
    """What a vendor said, without addresses or secrets, and not at length."""
    if said is None:
        return None
    clean: dict[str, str | None] = {}
    for name, text in said.items():
        if text is not None:
            text = _ADDRESS.sub("…", str(text))  # noqa: PLW2901  cleaned step by step
            for secret in secrets:
                text = text.replace(secret, "…")  # noqa: PLW2901
        clean[name] = text if text is None else text[:300]
    return clean
