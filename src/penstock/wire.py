"""HTTP to vendors: one pool of connections each, and by class of failure whether a call was sent."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from penstock.contract import Call, GenerationVendor, NotSent, ReplyLost

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 60.0


class Wire:
    """Opened in the event loop that uses it."""

    def __init__(self) -> None:
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    @asynccontextmanager
    async def request(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[aiohttp.ClientResponse]:
        """One HTTP call; what its failure means for a paid order is decided here, by class."""
        url = call.url if "://" in call.url else vendor.options.base_url.rstrip("/") + call.url
        body = call.body if call.json is None else msgspec.json.encode(call.json)
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
