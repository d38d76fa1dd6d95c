"""One provider of OpenID Connect: its metadata and keys, which are cached, and the exchange of a code for claims."""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

from penstock.domain.people.sign_in import Claims, SignInRule, check_secure_url, is_overflown
from penstock.sign_in import tokens
from penstock.sign_in.provider_http import ProviderFailed, ProviderHttp
from penstock.sign_in.tokens import TokenRefused

METADATA_SECONDS: Final = 3_600.0
KEYS_SECONDS: Final = 600.0
"""Age at which keys are fetched again, so that a removed one stops to count."""
RETRY_SECONDS: Final = 5.0
"""Interval between two attempts to reach a provider that failed."""
REFETCH_SECONDS: Final = 10.0
"""Interval between two fetches for keys that are unknown."""
MAX_KEYS: Final = 100
T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOptions:
    """The operator's settings of one provider."""

    name: str
    title: str
    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ("openid",)
    groups_claim: str = "groups"
    trust_email: str = "verified"
    uses_userinfo: bool = True
    rules: tuple[SignInRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The parts of a provider's discovery document that are used."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    takes_basic: bool
    sends_issuer: bool


class _Cached(Generic[T]):
    """A value that is fetched at first use and when it is old. Callers share one fetch; failures are not repeated."""

    def __init__(self, fetch: Callable[[], Awaitable[T]], seconds: float, steady: Callable[[], float]) -> None:
        self._fetch = fetch
        self._seconds = seconds
        self._steady = steady
        self._found: tuple[float, T] | None = None
        self._failed: tuple[float, str] | None = None
        self._fetching: asyncio.Task[T] | None = None

    async def get(self, max_age: float | None = None) -> T:
        """Return the value, which is not older than this."""
        now = self._steady()
        if self._found is not None and now < self._found[0] + (self._seconds if max_age is None else max_age):
            return self._found[1]
        if self._failed is not None and now < self._failed[0] + RETRY_SECONDS:
            raise ProviderFailed(self._failed[1])
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._refresh(), name="sign-in provider")
            self._fetching.add_done_callback(_forgive)
        return await asyncio.shield(self._fetching)

    async def _refresh(self) -> T:
        try:
            found = await self._fetch()
        except ProviderFailed as error:
            self._failed = (self._steady(), str(error))
            raise
        else:
            self._found, self._failed = (self._steady(), found), None
            return found
        finally:
            self._fetching = None

    async def stop(self) -> None:
        """Cancel a fetch under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)


def _forgive(fetching: "asyncio.Task[Any]") -> None:
    """Mark a failure as retrieved: those who waited may have left."""
    if not fetching.cancelled():
        fetching.exception()


class Provider:
    """A sign-in provider. Nothing is fetched before somebody signs in."""

    def __init__(self, options: ProviderOptions, http: ProviderHttp, steady: Callable[[], float]) -> None:
        self.options = options
        self._http = http
        self._metadata = _Cached(self._discover, METADATA_SECONDS, steady)
        self._keys = _Cached(self._fetch_keys, KEYS_SECONDS, steady)

    async def stop(self) -> None:
        """Cancel fetches under way."""
        await self._metadata.stop()
        await self._keys.stop()

    async def authorization_url(self, state: str, nonce: str, challenge: str, redirect_uri: str) -> str:
        """Return the provider's address at which a person signs in."""
        metadata = await self._metadata.get()
        query = {
            "response_type": "code",
            "client_id": self.options.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self.options.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return _add_query(metadata.authorization_endpoint, query)

    async def check_response_issuer(self, issuer: str | None) -> None:
        """Raise if an authorization response comes from another issuer (RFC 9207)."""
        metadata = await self._metadata.get()
        if issuer is None and not metadata.sends_issuer:
            return
        if issuer != self.options.issuer:
            raise TokenRefused("`iss` of the response is another issuer, or missing")

    async def exchange(self, code: str, verifier: str, redirect_uri: str, nonce: str, now: float) -> tuple[Claims, str]:
        """Exchange a code for the person's claims and the ID token."""
        metadata = await self._metadata.get()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        try:
            answer = await self._post_as_client(metadata, form)
        except ProviderFailed as error:
            if error.status in (400, 401, 403):
                raise TokenRefused(f"the provider refused the code or this client (HTTP {error.status})") from None
            raise
        token, access_token = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str):
            raise TokenRefused("the provider sent no ID token")
        claims = await self._verify(token, tokens.read_header(token))
        tokens.check_id_token(claims, self.options.issuer, self.options.client_id, nonce, now)
        if self.options.uses_userinfo and metadata.userinfo_endpoint and isinstance(access_token, str):
            claims = await self._add_userinfo(metadata.userinfo_endpoint, access_token, claims)
        if is_overflown(claims, self.options.groups_claim):
            raise TokenRefused("the provider left the groups out, as there are too many; use roles of the application")
        return claims, token

    async def read_logout(self, token: str, now: float) -> Claims:
        """Return the claims of a valid logout token."""
        header = tokens.read_header(token)
        claims = await self._verify(token, header)
        tokens.check_logout_token(claims, header, self.options.issuer, self.options.client_id, now)
        return claims

    async def end_session_url(self, id_token: str | None, return_to: str) -> str | None:
        """Return the provider's address that ends its own session, or None if it has none or does not answer."""
        try:
            metadata = await self._metadata.get()
        except ProviderFailed:
            return None
        if metadata.end_session_endpoint is None:
            return None
        query = {"client_id": self.options.client_id, "post_logout_redirect_uri": return_to}
        return _add_query(metadata.end_session_endpoint, query | ({"id_token_hint": id_token} if id_token else {}))

    # -- inside

    async def _post_as_client(self, metadata: Metadata, form: Mapping[str, str]) -> Mapping[str, Any]:
        client_id, secret = self.options.client_id, self.options.client_secret
        if secret is None:
            return await self._http.post(metadata.token_endpoint, {**form, "client_id": client_id})
        if metadata.takes_basic:
            pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
            basic = f"Basic {base64.b64encode(pair.encode()).decode()}"
            return await self._http.post(metadata.token_endpoint, form, basic)
        return await self._http.post(metadata.token_endpoint, {**form, "client_id": client_id, "client_secret": secret})

    async def _verify(self, token: str, header: tokens.TokenHeader) -> Claims:
        found = tokens.find_keys(await self._keys.get(), header)
        if not found:  # the provider may have a new key
            found = tokens.find_keys(await self._keys.get(REFETCH_SECONDS), header)
        if not found:
            raise TokenRefused("the provider has no such key")
        return tokens.verify(token, header, found[0])

    async def _add_userinfo(self, url: str, access_token: str, claims: Claims) -> Claims:
        """Return the claims with those that only the userinfo has. It must be about the same person."""
        more = await self._http.get(url, access_token)
        if more.get("sub") != claims["sub"]:
            raise TokenRefused("`sub` of the userinfo is another person")
        if more.get("email") != claims.get("email", more.get("email")):
            more = {name: value for name, value in more.items() if name != "email_verified"}  # of another address
        return {**more, **claims}

    async def _discover(self) -> Metadata:
        issuer = self.options.issuer
        found = await self._http.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise ProviderFailed("its discovery document names another issuer")
        endpoints = {
            name: self._read_endpoint(found, name, is_needed=is_needed)
            for name, is_needed in (
                ("authorization_endpoint", True),
                ("token_endpoint", True),
                ("jwks_uri", True),
                ("userinfo_endpoint", False),
                ("end_session_endpoint", False),
            )
        }
        methods: Any = found.get("token_endpoint_auth_methods_supported")
        return Metadata(
            **cast("dict[str, Any]", endpoints),
            takes_basic=not isinstance(methods, list) or "client_secret_basic" in methods,
            sends_issuer=found.get("authorization_response_iss_parameter_supported") is True,
        )

    def _read_endpoint(self, found: Mapping[str, Any], name: str, *, is_needed: bool) -> str | None:
        given: Any = found.get(name)
        if given is None and not is_needed:
            return None
        url = given if isinstance(given, str) else ""
        try:
            check_secure_url(url)
        except ValueError as error:
            raise ProviderFailed(f"its `{name}` {error}") from None
        if urlsplit(self.options.issuer).scheme == "https" and urlsplit(url).scheme != "https":
            raise ProviderFailed(f"its `{name}` is not https")
        return url

    async def _fetch_keys(self) -> Sequence[Mapping[str, Any]]:
        metadata = await self._metadata.get()
        found: Any = (await self._http.get(metadata.jwks_uri)).get("keys")
        if not isinstance(found, list):
            raise ProviderFailed("its keys are not a list")
        keys = cast("list[Any]", found)[:MAX_KEYS]
        return [cast("dict[str, Any]", each) for each in keys if isinstance(each, dict)]


def _add_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(query)}"


def encode(raw: bytes) -> str:
    """Encode bytes in Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
