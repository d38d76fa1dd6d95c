"""Sign-ins from their beginning to the session, sign-outs, and logouts that providers report."""

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.clocks import Clocks
from penstock.domain.people.roles import Person, read_email
from penstock.domain.people.sign_in import Claims, Identity, Session, SessionPolicy, decide, read_return_path
from penstock.domain.people.sign_in_errors import (
    InvalidLogoutToken,
    ProviderNotFound,
    ProviderUnavailable,
    SignInFailed,
)
from penstock.errors import SecretsUnavailable
from penstock.sealing.sealer import Sealer
from penstock.sealing.vault import Vault
from penstock.sign_in import tokens
from penstock.sign_in.attempt_rate import AttemptRate
from penstock.sign_in.enrolment import PURPOSE, Enrolment, Visitor, end_by_provider, enrol
from penstock.sign_in.provider import Provider, ProviderOptions, encode
from penstock.sign_in.provider_http import ProviderFailed, ProviderHttp
from penstock.sign_in.tokens import TokenRefused
from penstock.store.database import Connection, Database
from penstock.store.queries.accounts import identity_rows
from penstock.store.queries.accounts.identity_rows import SignInAttempt

ATTEMPT_SECONDS: Final = 600.0
"""Time that a person has for signing in at the provider."""
MAX_ATTEMPTS: Final = 10_000
"""Attempts in the store. The oldest make room for new ones."""
MAX_CODE: Final = 4_096
MAX_NAME: Final = 200
MAX_STATE: Final = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SignInBegun:
    """A sign-in that has begun: the provider's address, and the secret of the browser's cookie."""

    url: str
    browser_secret: str


@dataclass(frozen=True, slots=True)
class Response:
    """The parameters with which a provider sends a browser back."""

    state: str
    code: str | None = None
    error: str | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class SignInDone:
    """A sign-in that succeeded. Without a session, the person has no role here."""

    title: str
    name: str
    person: Person | None
    has_session: bool
    return_to: str


class SignIn:
    """The sign-in providers of a process. No request waits for one but those that sign in by it."""

    def __init__(self, database: Database, vault: Vault, policy: Callable[[], SessionPolicy], clocks: Clocks) -> None:
        self._database = database
        self._vault = vault
        self._policy = policy
        self._clock, self._steady = clocks
        self._http = ProviderHttp()
        self._rate = AttemptRate(self._steady)
        self._providers: dict[str, Provider] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def use(self, options: Sequence[ProviderOptions]) -> None:
        """Use these providers from now on. Those that are unchanged keep what they have fetched."""
        former, self._providers = self._providers, {}
        for each in options:
            known = former.get(each.name)
            is_same = known is not None and known.options == each
            self._providers[each.name] = known if is_same and known else Provider(each, self._http, self._steady)
        for name, provider in former.items():
            if self._providers.get(name) is not provider:
                stopping = asyncio.create_task(provider.stop())
                self._stopping.add(stopping)
                stopping.add_done_callback(self._stopping.discard)

    async def stop(self) -> None:
        """Close connections to providers."""
        for provider in self._providers.values():
            await provider.stop()
        await asyncio.gather(*self._stopping, return_exceptions=True)
        await self._http.close()

    @property
    def titles(self) -> Mapping[str, str]:
        """Return the titles of all providers by name."""
        return {name: provider.options.title for name, provider in self._providers.items()}

    async def begin(self, name: str, return_to: str | None, redirect_uri: str, address: str) -> SignInBegun:
        """Begin a sign-in for one browser, and return the provider's address."""
        provider = self._get(name)
        self._rate.admit(address)
        state, browser_secret = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        challenge = encode(hashlib.sha256(_make_verifier(browser_secret, state).encode()).digest())
        try:
            url = await provider.authorization_url(state, _make_nonce(state), challenge, redirect_uri)
        except ProviderFailed as error:
            raise self._report(name, error) from None
        now = self._clock()
        attempt = SignInAttempt(
            state_hash=_digest(state),
            browser_hash=_digest(browser_secret),
            provider=name,
            return_to=read_return_path(return_to),
            redirect_uri=redirect_uri,
            expires_at=now + ATTEMPT_SECONDS,
        )
        await self._database.write(identity_rows.begin, attempt, now, MAX_ATTEMPTS)
        return SignInBegun(url, browser_secret)

    async def finish(self, name: str, response: Response, browser_secret: str, visitor: Visitor) -> SignInDone:
        """Finish a sign-in that began in this browser: exchange the code, apply the rules, begin a session."""
        provider = self._get(name)
        attempt = await self._take(name, response.state, browser_secret)
        if response.error is not None:
            raise SignInFailed("The provider did not sign you in.")
        try:
            claims, token = await self._exchange(provider, response, browser_secret, attempt)
        except TokenRefused as error:
            self._log(name, error, "sign-in refused")
            raise SignInFailed("The provider's answer could not be accepted.") from None
        except ProviderFailed as error:
            raise self._report(name, error) from None
        identity = _read_identity(provider.options, claims, token)
        enrolment = await self._enrol(provider, identity, claims, visitor)
        who = identity.email or identity.name
        return SignInDone(
            provider.options.title, who, enrolment.person, enrolment.session is not None, attempt.return_to
        )

    async def end_session_url(self, session: Session, id_token: bytes | None, return_to: str) -> str | None:
        """Return the address at which a provider ends its own session, if it has one. The ID token is sealed."""
        provider = self._providers.get(session.provider)
        if provider is None:
            return None
        return await provider.end_session_url(await self._open(session, id_token), return_to)

    async def _open(self, session: Session, id_token: bytes | None) -> str | None:
        """Return the ID token of a session. Where it does not open, sign-out works without it."""
        sealer = None if id_token is None else await self._find_sealer()
        try:
            return None if sealer is None else sealer.open(PURPOSE, session.id, id_token or b"").decode()
        except SecretsUnavailable:
            return None

    async def log_out(self, name: str, token: str) -> int:
        """End the sessions that a provider's logout token names. Return their number."""
        provider = self._get(name)
        now = self._clock()
        try:
            claims = await provider.read_logout(token, now)
        except TokenRefused as error:
            self._log(name, error, "logout token refused")
            raise InvalidLogoutToken from None
        except ProviderFailed as error:
            raise self._report(name, error) from None
        issuer, subject, sid = provider.options.issuer, claims.get("sub"), claims.get("sid")

        def end(connection: Connection) -> int | None:
            until = now + tokens.MAX_AGE_SECONDS + 2 * tokens.LEEWAY_SECONDS
            if not identity_rows.use_logout_token(connection, issuer, claims["jti"], until):
                return None
            return end_by_provider(connection, name, issuer, subject, sid, now)

        ended = await self._database.write(end)
        if ended is None:
            self._log(name, TokenRefused("it was used before"), "logout token refused")
            raise InvalidLogoutToken
        return ended

    # -- inside

    def _get(self, name: str) -> Provider:
        provider = self._providers.get(name)
        if provider is None:
            raise ProviderNotFound(f"There is no sign-in provider `{name[:100]}`.", param="provider")
        return provider

    async def _take(self, name: str, state: str, browser_secret: str) -> SignInAttempt:
        """Return the attempt of this state. It cannot be used again, whatever follows."""
        attempt = None
        if browser_secret and 0 < len(state) <= MAX_STATE:
            attempt = await self._database.write(identity_rows.take, _digest(state))
        if (
            attempt is None
            or attempt.provider != name
            or self._clock() >= attempt.expires_at
            or not hmac.compare_digest(attempt.browser_hash, _digest(browser_secret))
        ):
            raise SignInFailed("This sign-in is unknown in this browser, too old, or was used before.")
        return attempt

    async def _exchange(
        self, provider: Provider, response: Response, browser_secret: str, attempt: SignInAttempt
    ) -> tuple[Claims, str]:
        await provider.check_response_issuer(response.issuer)
        if not response.code or len(response.code) > MAX_CODE:
            raise TokenRefused("the provider sent no code")
        state, verifier = response.state, _make_verifier(browser_secret, response.state)
        now = self._clock()
        return await provider.exchange(response.code, verifier, attempt.redirect_uri, _make_nonce(state), now)

    async def _enrol(self, provider: Provider, identity: Identity, claims: Claims, visitor: Visitor) -> Enrolment:
        grants = decide(provider.options.rules, claims, identity.email)
        sealer, now = await self._find_sealer(), self._clock()
        enrolment = await self._database.write(enrol, identity, grants, self._policy(), visitor, sealer, now)
        for problem in enrolment.problems:
            fields = {"provider": provider.options.name, "problem": problem}
            log.error("a sign-in rule gives no role: correct its account", extra={"fields": fields})
        return enrolment

    async def _find_sealer(self) -> Sealer | None:
        """Return what seals ID tokens, or None on a server without a master key: then they are not kept."""
        try:
            return await self._vault.sealer()
        except SecretsUnavailable:
            return None

    def _report(self, name: str, error: ProviderFailed) -> ProviderUnavailable:
        """Log a provider's failure, and return the error for the caller."""
        self._log(name, error, "sign-in provider failed")
        return ProviderUnavailable(retry_after=5)

    def _log(self, name: str, error: Exception, event: str) -> None:
        log.warning(event, extra={"fields": {"provider": name, "problem": str(error)}})


def _read_identity(options: ProviderOptions, claims: Claims, token: str) -> Identity:
    name, sid = claims.get("name"), claims.get("sid")
    printable = "".join(each for each in name if each.isprintable())[:MAX_NAME] if isinstance(name, str) else ""
    return Identity(
        issuer=options.issuer,
        subject=claims["sub"],
        provider=options.name,
        email=_read_address(claims, options.trust_email),
        name=printable,
        session=sid if tokens.is_id(sid) else None,
        id_token=token,
    )


def _read_address(claims: Claims, trust: str) -> str | None:
    """Return the e-mail address, if it is verified or the provider is trusted for it."""
    address, verified = claims.get("email"), claims.get("email_verified")
    if not isinstance(address, str) or (trust != "always" and verified is not True and verified != "true"):
        return None
    try:
        return read_email(address)
    except ValueError:
        return None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _make_nonce(state: str) -> str:
    """Return the nonce of an attempt. Only the provider and this server learn it."""
    return encode(hashlib.sha256(f"nonce:{state}".encode()).digest())


def _make_verifier(browser_secret: str, state: str) -> str:
    """Return the PKCE verifier of an attempt. The store alone does not suffice to make it."""
    return encode(hmac.digest(browser_secret.encode(), f"verifier:{state}".encode(), "sha256"))
