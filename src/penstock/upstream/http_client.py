"""HTTP to vendors: one connection pool for each, and failures by class that say whether a call was sent."""

import asyncio
import io
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urljoin, urlsplit

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesIOPayload
from yarl import URL

from penstock.domain.files import ending_of
from penstock.domain.job_errors import UrlNotAllowed
from penstock.safe_fetch.address_guard import Guard
from penstock.safe_fetch.policy import Network, is_allowed
from penstock.vendor_api.generation import AddressRefused, Call, GenerationVendor, InDoubt, NotSent, ReplyLost, Unclear

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 60.0
MAX_CONNECTIONS: Final = 256
MAX_REDIRECTS: Final = 5
PIECE_BYTES: Final = 1 << 18
HEARTBEAT_SECONDS: Final = 30.0
MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The largest message of a WebSocket; a larger one closes it. ComfyUI sends pictures besides progress."""
URL_SAFE_CHARACTERS: Final = "%!#$&'()*+,/:;=?@[]~"
"""Characters that are not quoted, so that a signed URL is sent byte for byte."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
Origin: TypeAlias = tuple[str, int | None]
"""A host and a port."""
ABSOLUTE_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
"""The start of a URL with a scheme; another URL may follow inside its query."""


CREDENTIAL_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that authenticate us, besides those whose names end in `-key` or `-token`."""

log = logging.getLogger(__name__)


class HttpClient:
    """Connection pools by vendor; opened in the event loop that uses it."""

    def __init__(self, allow_networks: Callable[[], Sequence[Network]] = tuple) -> None:
        self._allow_networks = allow_networks
        self._sessions: dict[tuple[str, tuple[Network, ...] | None, bool, bool], aiohttp.ClientSession] = {}

    async def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    @asynccontextmanager
    async def request(
        self,
        name: str,
        vendor: GenerationVendor,
        call: Call,
        be_sure: Callable[[], None] | None = None,
        *,
        redirected_from: Origin | None = None,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Make one HTTP call; the class of its failure says what it means for a paid order.

        An address that a vendor named must be public, in an allowed network, or the vendor's own: see `_is_trusted`.
        Credentials go to its own hosts only. `be_sure` is called once there is a connection, and again in the step
        that writes to it. If it raises `InDoubt`, nothing is sent.
        """
        target, headers, is_trusted = _address(vendor, call, redirected_from)
        body, send = _body(call), _SendCheck(be_sure)
        if body is not None and call.form is None:
            headers.setdefault("content-type", "application/json")
        if isinstance(body, bytes):
            body = _CheckedBody(body, send.check)
        session = self._session(name, vendor, is_trusted=is_trusted)
        try:
            async with asyncio.timeout(call.seconds):
                response = await session.request(
                    call.method, target, data=body, headers=headers, allow_redirects=False, trace_request_ctx=send.check
                )
            async with response:
                yield response
        except UrlNotAllowed as error:
            raise _refuse(name, target, is_trusted=is_trusted) from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise NotSent(type(error).__name__) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if send.refused:
                raise InDoubt from error
            if not send.connected:  # no connection of the pool became free in time
                raise NotSent(type(error).__name__) from error
            raise ReplyLost(type(error).__name__) from error

    @asynccontextmanager
    async def download(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[aiohttp.ClientResponse]:
        """Make a GET and follow its redirects; credentials are dropped when the host changes."""
        target = _target(vendor, call)
        url, headers, named = str(target), call.headers, None
        for _ in range(MAX_REDIRECTS + 1):
            step = Call("GET", url, headers, seconds=call.seconds)
            async with self.request(name, vendor, step, redirected_from=named) as response:
                if response.status not in REDIRECTS:
                    yield response
                    return
                following = _follow(url, response.headers.get("location", ""))
            if urlsplit(following)[:2] != urlsplit(url)[:2]:
                headers = dict[str, str]()
            url, named = following, _origin(target)
        raise Unclear(f"too many redirects: at most {MAX_REDIRECTS} are followed")

    @asynccontextmanager
    async def listen(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[AsyncIterator[str]]:
        """Open a WebSocket and yield its texts as they come. The rules of `request` hold; no redirect is followed.

        Raise `Unclear` if the server does not offer it, else what `request` raises.
        """
        target, headers, is_trusted = _address(vendor, call)
        session = self._session(name, vendor, is_trusted=is_trusted, listens=True)
        try:
            async with asyncio.timeout(call.seconds):
                socket = await session.ws_connect(
                    target,
                    headers=headers,
                    heartbeat=HEARTBEAT_SECONDS,
                    max_msg_size=MAX_MESSAGE_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=1.0),  # pyright: ignore[reportCallIssue] made by attrs
                )
            async with socket:
                yield _texts(socket)
        except (UrlNotAllowed, aiohttp.WSServerHandshakeError) as error:
            raise Unclear("the WebSocket is not offered") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ReplyLost(type(error).__name__) from error

    def _session(
        self, name: str, vendor: GenerationVendor, *, is_trusted: bool, listens: bool = False
    ) -> aiohttp.ClientSession:
        """Return the connection pool of a vendor. WebSockets have one of their own: they stay open."""
        networks = vendor.options.networks if is_trusted else tuple(self._allow_networks())
        place = (name, networks, is_trusted, listens)
        session = self._sessions.get(place)
        if session is None:
            guard = None
            if networks is not None:
                guard = Guard(networks, aiohttp.ThreadedResolver(), any_port=is_trusted)
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,
                    limit_per_host=0 if listens else max(8, min(vendor.options.max_concurrent, MAX_CONNECTIONS)),
                    keepalive_timeout=15,
                    ttl_dns_cache=30,
                    resolver=guard,
                    socket_factory=None if guard is None else guard.open_socket,
                ),
                trace_configs=[_refuse_redirects() if listens else _watch_connections()],
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=IDLE_SECONDS),
            )
            session._retry_connection = False  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] aiohttp resends GETs
            self._sessions[place] = session
        return session


def _refuse(name: str, target: URL, *, is_trusted: bool) -> Exception:
    """Return the failure of a call to an address that may not be reached, and log it."""
    fields = {"vendor": name, "host": target.host, "port": target.port}
    if is_trusted:
        log.warning("vendor's own address is one that vendors added at run time may not have", extra={"fields": fields})
        return AddressRefused("the address may not be reached from here")
    log.warning(
        "vendor named a private address that is not its own; blocked unless `fetch.allow_networks` has it",
        extra={"fields": fields},
    )
    return Unclear("the address may not be reached from here")


class _SendCheck:
    """Check with every piece written that a call may still be sent, and remember a refusal."""

    def __init__(self, be_sure: Callable[[], None] | None) -> None:
        self._be_sure = be_sure
        self.refused = False
        self.connected = False

    def check(self) -> None:
        """Raise `InDoubt` if the call may not be sent any more."""
        self.connected = True
        if self._be_sure is not None:
            try:
                self._be_sure()
            except InDoubt:
                self.refused = True
                raise


class _CheckedBody(BytesIOPayload):
    """A body that is checked before each piece, because aiohttp writes it later in a task of its own."""

    def __init__(self, body: bytes, check: Callable[[], None]) -> None:
        super().__init__(io.BytesIO(body))
        self._check = check

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Write the body; nothing runs between a check and its write."""
        del content_length  # that of the body itself
        self._value.seek(0)
        while piece := self._value.read(PIECE_BYTES):
            self._check()
            await writer.write(piece)


def _watch_connections() -> aiohttp.TraceConfig:
    """Return hooks that check a call once it has its connection."""
    trace = aiohttp.TraceConfig()

    async def ask(_session: aiohttp.ClientSession, context: Any, _params: Any) -> None:
        if context.trace_request_ctx is not None:
            context.trace_request_ctx()

    trace.on_connection_create_end.append(ask)
    trace.on_connection_reuseconn.append(ask)
    return trace


def _refuse_redirects() -> aiohttp.TraceConfig:
    """Return hooks that end a call which is redirected: `ws_connect` has no option for that."""
    trace = aiohttp.TraceConfig()

    async def refuse(_session: aiohttp.ClientSession, _context: Any, _params: Any) -> None:
        raise Unclear("the WebSocket redirects")

    trace.on_request_redirect.append(refuse)
    return trace


async def _texts(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[str]:
    async for message in socket:
        if message.type is aiohttp.WSMsgType.TEXT:
            yield message.data


def _address(
    vendor: GenerationVendor, call: Call, redirected_from: Origin | None = None
) -> tuple[URL, dict[str, str], bool]:
    """Return the URL of a call, the headers to send there, and whether it may be in a private network."""
    target = _target(vendor, call)
    is_own = _origin(target) in own_origins(vendor)
    given = call.headers if is_own else without_credentials(call.headers)
    headers = {"accept-encoding": "identity", "user-agent": "penstock", **given}
    return target, headers, is_own or _is_trusted(vendor, target, redirected_from)


def _target(vendor: GenerationVendor, call: Call) -> URL:
    """Return the URL of a call, byte for byte."""
    url = call.url if ABSOLUTE_URL.match(call.url) else vendor.options.base_url.rstrip("/") + call.url
    return _read(url, NotSent)


def _follow(url: str, location: str) -> str:
    """Return the target of a redirect; raise `Unclear` if it may not be followed."""
    try:
        target = urljoin(url, location)
    except ValueError:
        target = ""
    scheme = _read(target, Unclear).scheme
    if scheme not in ("http", "https") or (scheme == "http" and urlsplit(url).scheme == "https"):
        raise Unclear("the download redirects to an address that is not allowed")
    return target


def _read(url: str, failure: type[Exception]) -> URL:
    """Parse a URL; raise `failure` if it is none."""
    try:
        target = URL(quote(url, safe=URL_SAFE_CHARACTERS), encoded=True)
        if target.host and target.port:  # reading the port finds one that is not a number
            return target
    except ValueError as error:
        raise failure("not an address") from error
    raise failure("not an address")


def own_origins(vendor: GenerationVendor) -> set[Origin]:
    """Return the hosts and ports that the operator configured for a vendor."""
    addresses = (vendor.options.base_url, *getattr(vendor, "addresses", ()))  # chat vendors have none
    return {origin for address in addresses if (origin := _read_origin(address)) is not None}


@lru_cache(maxsize=1024)
def _read_origin(address: str) -> Origin | None:
    """Return the host and port of a configured address, or None if it has no host."""
    with suppress(ValueError):
        url = URL(address)
        return _origin(url) if url.host else None
    return None


def _is_trusted(vendor: GenerationVendor, target: URL, redirected_from: Origin | None) -> bool:
    """Return whether a vendor inside our network may name this address.

    It may name another port of its own host, such as a file server. A redirect must stay on the named origin.
    """
    hosts = {host for host, _ in own_origins(vendor) if _is_inside(host)}
    if _origin(target)[0] not in hosts:
        return False
    return redirected_from is None or _origin(target) == redirected_from


def _is_inside(host: str) -> bool:
    """Return whether a configured host is inside the operator's network, judged by its name."""
    try:
        return not is_allowed(ip_address(host))
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))


def _origin(url: URL) -> Origin:
    return (url.host or "").lower().rstrip("."), url.port


def without_credentials(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that may be sent to a host that is not the vendor's own."""
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in CREDENTIAL_HEADERS and not name.lower().endswith(("-key", "-token"))
    }


def _body(call: Call) -> bytes | aiohttp.FormData | None:
    if call.form is None:
        return call.body if call.json is None else msgspec.json.encode(call.json)
    form = aiohttp.FormData()
    for name, value in call.form.fields.items():
        form.add_field(name, value)
    for (name, file), data in zip(call.form.parts, call.form.loaded, strict=True):
        filename = f"{file.sha256[:16]}.{ending_of(file.content_type)}"
        form.add_field(name, data, filename=filename, content_type=file.content_type)
    return form
