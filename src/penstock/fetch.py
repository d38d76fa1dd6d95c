"""Fetching of callers' URLs such that none of them reaches a network that is not the public internet."""

import asyncio
import re
import socket
import ssl
import string
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Self, TypeAlias
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

import aiohttp
import idna
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from penstock.errors import FileFetchFailed, FileUnreadable, JobError, UrlNotAllowed

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Target: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]  # as from `socket.getaddrinfo`

MAX_URL_CHARACTERS = 2048
MAX_NAME_CHARACTERS = 253
PORTS = (80, 443, 8080, 8443)
CONNECT_SECONDS = 5.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})
RETRYABLE_STATUSES = frozenset({408, 425, 429})

# -- addresses

# Written out, because what `ipaddress.is_global` says changes between releases of Python.
SPECIAL_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
GLOBAL_IPV6 = IPv6Network("2000::/3")
SPECIAL_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments; Teredo, which wraps an IPv4 address, is among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which wraps an IPv4 address
        "3fff::/20",  # documentation
    )
)
NAT64 = IPv6Network("64:ff9b::/96")

METADATA = frozenset(
    ip_address(address)
    for address in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "168.63.129.16",  # inside a public network, though no other host has it
        "100.100.100.200",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    )
)
"""Where clouds hand out credentials."""


def is_allowed(address: Address, allow_networks: Sequence[Network] = ()) -> bool:
    """Whether the address is a public one, or in a network that the operator named.

    A cloud's metadata address must be named by itself: a wider network does not include it.
    """
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped or address.scope_id:
            return False
        if address in NAT64:
            return is_allowed(IPv4Address(address.packed[-4:]), allow_networks)
    if address in METADATA:
        return ip_network(address) in allow_networks
    return _is_named(address, allow_networks) or _is_public(address)


def _is_named(address: Address, allow_networks: Sequence[Network]) -> bool:
    return any(address in network for network in allow_networks)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in SPECIAL_IPV4)
    return address in GLOBAL_IPV6 and not any(address in network for network in SPECIAL_IPV6)


def _check_address(address: Address, port: int, allow_networks: Sequence[Network], subject: str) -> None:
    if not is_allowed(address, allow_networks):
        raise UrlNotAllowed(
            f"{subject} is not public. Loopback, private, link-local and other special addresses are not allowed."
        )
    if not _is_named(address, allow_networks):
        _check_port(port)


def _check_port(port: int) -> None:
    if port not in PORTS:
        raise UrlNotAllowed(f"The URL's port is not allowed. Allowed are {', '.join(map(str, PORTS))}.")


# -- URLs

NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
NUMBER_AT_THE_END = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")
LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")


def check_url(url: str, allow_networks: Sequence[Network] = ()) -> str:
    """Tell the URL as it will be fetched, in ASCII and without its fragment, or raise `UrlNotAllowed`.

    Nothing is looked up. What a name resolves to is checked when it is fetched, so where the operator
    allows networks, a name's port and whether it is a local one are left to that check.
    """
    parts = _split(url)
    port = _port(parts)
    host = _parse_host(parts.hostname or "")
    if not isinstance(host, str):
        _check_address(host, port, allow_networks, f"The URL's host {str(host)!r}")
    elif not allow_networks:
        _check_port(port)
        _check_name(host)
    netloc = f"[{host}]" if isinstance(host, IPv6Address) else str(host)
    if parts.port is not None:
        netloc += f":{port}"
    # Only what is not ASCII is quoted: any other change would break a signed URL.
    return quote(urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, "")), safe=string.punctuation)


def _check_characters(url: str) -> None:
    if not url.isprintable() or " " in url or "\\" in url:
        raise UrlNotAllowed("The URL has white space, a control character or a backslash in it; percent-encode it.")


def _split(url: str) -> SplitResult:
    """Take the URL apart. A message here quotes nothing of it, as a part out of place may be a password."""
    if len(url) > MAX_URL_CHARACTERS:
        raise UrlNotAllowed(f"The URL is too long: {len(url)} characters, allowed are {MAX_URL_CHARACTERS}.")
    _check_characters(url)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UrlNotAllowed("The URL's host is not a valid name or address.") from error
    if parts.scheme not in {"http", "https"}:
        raise UrlNotAllowed("The URL's scheme is not allowed. It must start with http:// or https://.")
    if "@" in parts.netloc:
        raise UrlNotAllowed("The URL must not carry a user name or password.")
    if not parts.hostname:
        raise UrlNotAllowed("The URL has no host. It must look like https://example.com/image.png.")
    return parts


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError as error:
        raise UrlNotAllowed(f"The URL's port is not a number. Allowed are {', '.join(map(str, PORTS))}.") from error
    if port is None:
        return 443 if parts.scheme == "https" else 80
    return port


def _parse_host(host: str) -> str | Address:
    """Tell the address that the host spells, or else its name in ASCII."""
    if "%" in host:
        raise UrlNotAllowed("The URL's host has a percent sign in it; encoded names and zone ids are not allowed.")
    try:
        if ":" in host:
            return IPv6Address(host)
        name = _ascii_name(host)
    except ValueError as error:
        raise UrlNotAllowed("The URL's host is not a valid name or address.") from error
    if not NUMBER_AT_THE_END.fullmatch(name):
        return name
    # An address in a spelling that only some resolvers understand (octal, 0x7f.1, 127.1) is a trick or a mistake.
    try:
        return IPv4Address(name)
    except ValueError as error:
        raise UrlNotAllowed(
            f"The URL's host {name!r} is an address in an odd spelling. "
            "Write it as four decimal numbers without leading zeros, like 192.0.2.1."
        ) from error


def _ascii_name(host: str) -> str:
    if len(host) <= MAX_NAME_CHARACTERS:
        ascii_host = host if host.isascii() else idna.encode(host, uts46=True).decode()
        name = ascii_host.removesuffix(".")
        if NAME.fullmatch(name):
            return name
    raise ValueError


def _check_name(name: str) -> None:
    if "." not in name or name.endswith(LOCAL_SUFFIXES):
        raise UrlNotAllowed(f"The URL's host {name!r} is a local name. Only names of the public internet are allowed.")


# -- connections


class Guard(AbstractResolver):
    """Lets connections reach allowed addresses only: checked as a name is resolved, and again as it is dialled.

    The first check refuses a name with even one bad address; the second also sees addresses that need no resolving.
    """

    def __init__(self, allow_networks: Sequence[Network], resolver: AbstractResolver) -> None:
        self._allow_networks = allow_networks
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve once; what is returned here is what gets dialled."""
        answers = await self._resolver.resolve(host, port, family)
        if not answers:
            raise OSError("no address")
        for answer in answers:
            subject = f"An address that the URL's host {host!r} resolves to"
            _check_address(ip_address(answer["host"]), answer["port"], self._allow_networks, subject)
        return answers

    async def close(self) -> None:
        """Do nothing: the resolver belongs to whoever gave it."""

    def open_socket(self, target: Target) -> socket.socket:
        """Make the socket for a connection to the target, if it may be made."""
        family, kind, protocol, _, destination = target
        _check_address(ip_address(destination[0]), destination[1], self._allow_networks, "The URL's host")
        return socket.socket(family, kind, protocol)


def open_session(
    allow_networks: Sequence[Network] = (),
    *,
    resolver: AbstractResolver | None = None,
    tls: ssl.SSLContext | None = None,
) -> aiohttp.ClientSession:
    """Open a session for callers' URLs. It belongs to the running event loop and must be closed.

    `tls` is for hosts whose certificates a private authority signs.
    """
    guard = Guard(allow_networks, resolver or aiohttp.ThreadedResolver())
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
"""What a failure is told as, a special one before its parents, and whether trying again can help."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was behind a URL; `url` is the one that answered, after redirects."""

    body: bytes
    content_type: str | None
    url: str


class SafeFetcher:
    """Fetches callers' URLs. Use it as an async context manager."""

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
        self._resolver = resolver
        self._tls = tls

    async def __aenter__(self) -> Self:
        self._session = open_session(self._allow_networks, resolver=self._resolver, tls=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def fetch(self, url: str, *, max_bytes: int) -> Fetched:
        """Fetch the URL, or raise `UrlNotAllowed`, `FileFetchFailed` or, where it is too large, `FileUnreadable`."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(check_url(url, self._allow_networks), max_bytes)
        except aiohttp.ClientError as error:
            raise _explain(error) from error
        except TimeoutError as error:
            raise FileFetchFailed(f"The file did not arrive whole within {self._seconds:g} seconds.") from error

    async def _follow(self, url: str, max_bytes: int) -> Fetched:
        for _ in range(self._max_redirects + 1):
            # `encoded` keeps the URL as it was checked, byte for byte.
            async with self._session.get(URL(url, encoded=True), allow_redirects=False) as response:
                if response.status not in REDIRECTS:
                    return Fetched(await _read(response, max_bytes), _content_type(response), url)
                url = self._redirect(url, response)
        raise FileFetchFailed(
            f"The URL redirects too often; followed are {self._max_redirects} redirects.", retryable=False
        )

    def _redirect(self, url: str, response: aiohttp.ClientResponse) -> str:
        location = response.headers.get("Location")
        if location is None:
            raise FileFetchFailed(f"The URL answered {response.status} without saying where to.", retryable=False)
        try:
            _check_characters(location)  # before joining, which would silently drop some of them
            target = check_url(urljoin(url, location), self._allow_networks)
        except (UrlNotAllowed, ValueError) as error:
            raise UrlNotAllowed(f"The URL redirects to one that is not allowed. {error}") from error
        if url.startswith("https:") and target.startswith("http:"):
            raise UrlNotAllowed("The URL redirects from https to http, which is not allowed.")
        return target


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
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
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


def _content_type(response: aiohttp.ClientResponse) -> str | None:
    told = response.headers.get("Content-Type", "")
    return told if told and told.isascii() else None


def _too_large(max_bytes: int) -> FileUnreadable:
    return FileUnreadable(f"The file is larger than {max_bytes / 2**20:g} MB, the most that is allowed.")


def _explain(error: aiohttp.ClientError) -> JobError:
    """Tell a failure in plain words: aiohttp's own name the address that was dialled."""
    reason, retryable = next((reason, retryable) for kind, reason, retryable in FAILURES if isinstance(error, kind))
    return FileFetchFailed(f"The URL's host could not be read from: {reason}.", retryable=retryable)
