"""Fetching of callers' URLs, which are checked on parsing, on name resolution and on connecting."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from penstock.domain.job_errors import FileFetchFailed, FileUnreadable, JobError, UrlNotAllowed
from penstock.safe_fetch.address_guard import Guard
from penstock.safe_fetch.policy import Network, check_characters, check_url
from penstock.safe_fetch.resolver import Resolver

CONNECT_SECONDS = 5.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})
RETRYABLE_STATUSES = frozenset({408, 425, 429})
ANSWER_SECONDS = 2.0
"""Timeout of the beginning of a body, after the status."""

# -- connections


def open_session(
    allow_networks: Sequence[Network] = (),
    *,
    resolver: AbstractResolver | None = None,
    tls: ssl.SSLContext | None = None,
) -> aiohttp.ClientSession:
    """Open a session for callers' URLs. It belongs to the running event loop and must be closed.

    `tls` is for hosts whose certificates a private authority signs.
    """
    guard = Guard(allow_networks, resolver or Resolver())
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,
            force_close=True,
            use_dns_cache=False,
            resolver=guard,
            socket_factory=guard.open_socket,
            ssl=tls or True,
        ),
        headers={"User-Agent": "penstock", "Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    )
    # aiohttp sends a GET a second time when the connection drops, and has no public switch for it.
    session._retry_connection = False  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return session


# -- fetching

FAILURES: tuple[tuple[type[Exception], str, bool], ...] = (
    (aiohttp.ClientConnectorDNSError, "its name could not be resolved", True),
    (aiohttp.ClientSSLError, "no trusted TLS connection could be made", False),
    (aiohttp.ClientConnectorError, "no connection could be made", True),
    (aiohttp.ConnectionTimeoutError, "no connection could be made in time", True),
    (aiohttp.ClientResponseError, "its reply is not valid HTTP", False),
    (aiohttp.ClientError, "the connection broke before the whole file had arrived", True),
)
"""Messages by exception, special ones before their parents, and whether a retry can help."""


@dataclass(frozen=True, slots=True)
class Posted:
    """The response to a message: its status and the beginning of its body."""

    status: int
    beginning: bytes
    retry_after: str | None


class SafeFetcher:
    """Fetches callers' URLs, and sends to them. An async context manager."""

    _session: aiohttp.ClientSession

    def __init__(
        self,
        allow_networks: Sequence[Network] = (),
        *,
        max_redirects: int = 3,
        seconds: float = 20.0,
        resolver: AbstractResolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allow_networks = tuple(allow_networks)
        self._max_redirects = max_redirects
        self._seconds = seconds
        self._resolver = resolver or Resolver()
        self._tls = tls

    async def __aenter__(self) -> Self:
        self._session = open_session(self._allow_networks, resolver=self._resolver, tls=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def fetch(self, url: str, *, max_bytes: int) -> AsyncGenerator[bytes]:
        """Yield the body in chunks; raise `UrlNotAllowed`, `FileFetchFailed` or, if too large, `FileUnreadable`."""
        deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with aclosing(self._follow(check_url(url, self._allow_networks), max_bytes)) as chunks:
                while True:
                    async with asyncio.timeout_at(deadline):  # here only: it must not hit the consumer of the chunks
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        return
                    yield chunk
        except aiohttp.ClientError as error:
            raise _explain(error) from error
        except TimeoutError as error:
            raise FileFetchFailed(f"The file did not arrive whole within {self._seconds:g} seconds.") from error

    async def check(self, url: str) -> str:
        """Return the normalised URL; raise `UrlNotAllowed`. A name that cannot be resolved now passes."""
        checked = check_url(url, self._allow_networks)
        parts = urlsplit(checked)
        guard = Guard(self._allow_networks, self._resolver)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                await guard.resolve(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        return checked

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, max_bytes: int
    ) -> Posted:
        """Send to the URL; raise `UrlNotAllowed` or `FileFetchFailed`. Redirects are not followed."""
        try:
            async with asyncio.timeout(seconds):
                target = URL(check_url(url, self._allow_networks), encoded=True)
                async with self._session.post(target, data=body, headers=headers, allow_redirects=False) as response:
                    beginning = await _read_beginning(response, max_bytes)
                    return Posted(response.status, beginning, response.headers.get("Retry-After"))
        except aiohttp.ClientError as error:
            raise _explain(error, "answer") from error
        except TimeoutError as error:
            raise FileFetchFailed(f"The URL did not answer within {seconds:g} seconds.") from error

    async def _follow(self, url: str, max_bytes: int) -> AsyncGenerator[bytes]:
        for _ in range(self._max_redirects + 1):
            # `encoded` keeps the URL as it was checked, byte for byte.
            async with self._session.get(URL(url, encoded=True), allow_redirects=False) as response:
                if response.status not in REDIRECTS:
                    async for chunk in _read(response, max_bytes):
                        yield chunk
                    return
                url = self._redirect(url, response)
        raise FileFetchFailed(
            f"The URL redirects too often; followed are {self._max_redirects} redirects.", retryable=False
        )

    def _redirect(self, url: str, response: aiohttp.ClientResponse) -> str:
        location = response.headers.get("Location")
        if location is None:
            raise FileFetchFailed(f"The URL answered {response.status} without saying where to.", retryable=False)
        try:
            check_characters(location)  # before joining, which would silently drop some of them
            target = check_url(urljoin(url, location), self._allow_networks)
        except (UrlNotAllowed, ValueError) as error:
            raise UrlNotAllowed(f"The URL redirects to one that is not allowed. {error}") from error
        if url.startswith("https:") and target.startswith("http:"):
            raise UrlNotAllowed("The URL redirects from https to http, which is not allowed.")
        return target


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> AsyncGenerator[bytes]:
    if response.status != 200:
        raise FileFetchFailed(
            f"The URL answered with status {response.status}; 200 is needed.",
            retryable=response.status >= 500 or response.status in RETRYABLE_STATUSES,
        )
    encoding = ", ".join(response.headers.getall("Content-Encoding", ["identity"]))
    if encoding.strip().lower() != "identity":
        raise FileFetchFailed("The URL answered with a content-encoding; only identity is allowed.", retryable=False)
    if (response.content_length or 0) > max_bytes:
        raise _too_large(max_bytes)
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        yield chunk


async def _read_beginning(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """Return the beginning of a body that arrives in time; ignore a broken connection."""
    beginning = bytearray()
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(ANSWER_SECONDS):
            async for chunk in response.content.iter_any():
                beginning += chunk
                if len(beginning) >= max_bytes:
                    break
    return bytes(beginning[:max_bytes])


def _too_large(max_bytes: int) -> FileUnreadable:
    return FileUnreadable(f"The file is larger than {max_bytes / 2**20:g} MB, the most that is allowed.")


def _explain(error: aiohttp.ClientError, what: str = "file") -> JobError:
    """Return the error for a failure, without aiohttp's message, which contains the address."""
    reason, retryable = next((reason, retryable) for kind, reason, retryable in FAILURES if isinstance(error, kind))
    reason = reason.replace("file", what)
    return FileFetchFailed(f"The URL's host could not be read from: {reason}.", retryable=retryable)
