"""HTTP to sign-in providers: JSON, bounded in time and size, without redirects."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from penstock.domain.people.sign_in import check_secure_url

if TYPE_CHECKING:  # slow to load, as it reads the system's certificates; only a server with providers needs it
    import aiohttp

CALL_SECONDS: Final = 5.0
"""The time that a call may take in all."""
MAX_ANSWER_BYTES: Final = 256 << 10
HEADERS: Final = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "penstock"}


class ProviderFailed(Exception):
    """The provider gave no usable answer. The text is for the operator's log, and quotes nothing of the answer."""

    def __init__(self, problem: str, *, status: int | None = None) -> None:
        super().__init__(problem)
        self.status = status
        """The HTTP status, if it is not 200."""


class ProviderHttp:
    """The connection pool to all sign-in providers of a process; opened at first use."""

    def __init__(self, call_seconds: float = CALL_SECONDS) -> None:
        self._call_seconds = call_seconds
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, url: str, token: str | None = None) -> Mapping[str, Any]:
        """Return the JSON object at a URL."""
        headers = HEADERS if token is None else {**HEADERS, "authorization": f"Bearer {token}"}
        return await self._ask("GET", url, headers, None)

    async def post(self, url: str, form: Mapping[str, str], authorization: str | None = None) -> Mapping[str, Any]:
        """Send a form and return the JSON object of the answer."""
        headers = HEADERS if authorization is None else {**HEADERS, "authorization": authorization}
        return await self._ask("POST", url, headers, form)

    async def _ask(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> Mapping[str, Any]:
        import aiohttp  # noqa: PLC0415 - see above

        try:
            check_secure_url(url)
            async with asyncio.timeout(self._call_seconds):
                body = await self._read(method, url, headers, form)
        except TimeoutError:
            raise ProviderFailed(f"no answer in {self._call_seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ProviderFailed(f"no connection, or it broke ({type(error).__name__})") from None
        try:
            found: Any = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ProviderFailed("the answer is not JSON") from None
        if not isinstance(found, dict):
            raise ProviderFailed("the answer is not a JSON object")
        return cast("dict[str, Any]", found)

    async def _read(self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None) -> bytes:
        session = self._open()
        async with session.request(method, url, headers=headers, data=form, allow_redirects=False) as response:
            if response.status != 200:
                raise ProviderFailed(f"HTTP {response.status}", status=response.status)
            body = bytearray()
            async for piece in response.content.iter_chunked(1 << 14):
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise ProviderFailed(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        return bytes(body)

    def _open(self) -> "aiohttp.ClientSession":
        import aiohttp  # noqa: PLC0415 - see above

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=32, limit_per_host=8, keepalive_timeout=15, ttl_dns_cache=30),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session
