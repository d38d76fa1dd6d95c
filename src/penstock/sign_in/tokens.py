"""Checks of signed tokens from sign-in providers: the signature, then every claim. The time is passed in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from penstock.domain.people.sign_in import MAX_SUBJECT, Claims

if TYPE_CHECKING:
    from jwt.api_jws import PyJWS

ALGORITHMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""Signatures that are accepted, with their kinds of keys: none with a shared secret."""
MAX_TOKEN_CHARACTERS: Final = 32 << 10
LEEWAY_SECONDS: Final = 30.0
MAX_AGE_SECONDS: Final = 600.0
"""Age at which an ID token or a logout token is too old to be used."""
MAX_MODULUS_CHARACTERS: Final = 1_400
"""Characters of an RSA modulus in Base64: 8,400 bits. Longer ones take long to verify."""
LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
LOGOUT_TYPES: Final = ("logout+jwt", "application/logout+jwt", "jwt")


class TokenRefused(Exception):
    """A token that does not count. The text is for the operator's log."""


@dataclass(frozen=True, slots=True)
class TokenHeader:
    """The part of a token that says how it is signed. It is not verified yet."""

    algorithm: str
    key_id: str | None
    type: str | None


@cache
def _open_reader() -> "PyJWS":
    from jwt.api_jws import PyJWS  # noqa: PLC0415 - slow to load; only a server with providers needs it

    return PyJWS(algorithms=list(ALGORITHMS), options={"verify_signature": True, "enforce_minimum_key_length": True})


def read_header(token: str) -> TokenHeader:
    """Return the header of a token that is short enough and signed in an accepted way."""
    import jwt  # noqa: PLC0415 - see above

    if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii():
        raise TokenRefused(f"the token has more than {MAX_TOKEN_CHARACTERS} characters, or others than ASCII")
    try:
        header = _open_reader().get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise TokenRefused("the token is not a signed JWT") from None
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenRefused(f"the algorithm {str(algorithm)[:20]!r} is not accepted")
    if key_id is not None and not isinstance(key_id, str):
        raise TokenRefused("`kid` is not a text")
    return TokenHeader(algorithm, key_id, kind if isinstance(kind, str) else None)


def find_keys(keys: Sequence[Mapping[str, Any]], header: TokenHeader) -> Sequence[Mapping[str, Any]]:
    """Return the keys that may have signed a token. A token without `kid` needs a provider with one such key."""
    kind = ALGORITHMS[header.algorithm]
    fitting = [
        key
        for key in keys
        if key.get("kty") == kind
        and key.get("use", "sig") == "sig"
        and key.get("alg", header.algorithm) == header.algorithm
        and "d" not in key
        and len(str(key.get("n", ""))) <= MAX_MODULUS_CHARACTERS
    ]
    if header.key_id is None:
        return fitting if len(fitting) == 1 else ()
    return [key for key in fitting if key.get("kid") == header.key_id][:1]


def verify(token: str, header: TokenHeader, key: Mapping[str, Any]) -> Claims:
    """Check the signature and return the claims."""
    import jwt  # noqa: PLC0415 - see above
    from jwt.api_jwk import PyJWK  # noqa: PLC0415 - see above

    try:
        public = PyJWK(dict(key), header.algorithm)
        payload = _open_reader().decode(token, public, algorithms=[header.algorithm])
        claims: Any = json.loads(payload)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TokenRefused(f"the signature does not fit ({type(error).__name__})") from None
    if not isinstance(claims, dict):
        raise TokenRefused("the claims are not an object")
    return cast("dict[str, Any]", claims)


def check_id_token(claims: Claims, issuer: str, client_id: str, nonce: str, now: float) -> None:
    """Raise unless an ID token was just made by this issuer for this client and this sign-in."""
    _check_parties(claims, issuer, client_id)
    _check_times(claims, now)
    if claims.get("nonce") != nonce:
        raise TokenRefused("`nonce` is not the one of this sign-in")
    _check_subject(claims)


def check_logout_token(claims: Claims, header: TokenHeader, issuer: str, client_id: str, now: float) -> None:
    """Raise unless a token was just made to end sessions of this client. No ID token passes."""
    if header.type is not None and header.type.lower() not in LOGOUT_TYPES:
        raise TokenRefused("`typ` is not that of a logout token")
    _check_parties(claims, issuer, client_id)
    _check_times(claims, now)
    events: Any = claims.get("events")
    if not isinstance(events, dict) or not isinstance(cast("dict[str, Any]", events).get(LOGOUT_EVENT), dict):
        raise TokenRefused("`events` does not name a logout")
    if "nonce" in claims:
        raise TokenRefused("it has a `nonce`, so it is no logout token")
    if not is_id(claims.get("jti")):
        raise TokenRefused("`jti` is missing")
    if "sub" in claims:
        _check_subject(claims)
    elif not is_id(claims.get("sid")):
        raise TokenRefused("`sub` and `sid` are missing")
    if "sid" in claims and not is_id(claims["sid"]):
        raise TokenRefused("`sid` is not a text")


def _check_parties(claims: Claims, issuer: str, client_id: str) -> None:
    if claims.get("iss") != issuer:
        raise TokenRefused("`iss` is another issuer")
    audience: Any = claims.get("aud")
    audiences = cast("list[Any]", audience) if isinstance(audience, list) else [audience]
    if client_id not in audiences:
        raise TokenRefused("`aud` does not name this client")
    authorized: Any = claims.get("azp")
    if (len(audiences) > 1 or authorized is not None) and authorized != client_id:
        raise TokenRefused("`azp` is not this client")


def _check_times(claims: Claims, now: float) -> None:
    expires, issued, begins = (claims.get(name) for name in ("exp", "iat", "nbf"))
    if expires is None or issued is None:
        raise TokenRefused("`exp` or `iat` is missing")
    if not _is_time(expires) or not _is_time(issued):
        raise TokenRefused("`exp` or `iat` is no time")
    if now >= expires + LEEWAY_SECONDS:
        raise TokenRefused("it has expired")
    if issued > now + LEEWAY_SECONDS:
        raise TokenRefused("`iat` is in the future")
    if issued < now - MAX_AGE_SECONDS:
        raise TokenRefused("`iat` is too long ago")
    if begins is not None and (not _is_time(begins) or begins > now + LEEWAY_SECONDS):
        raise TokenRefused("`nbf` is in the future")


def _check_subject(claims: Claims) -> None:
    if not is_id(claims.get("sub")):
        raise TokenRefused("`sub` is missing or too long")


def is_id(value: Any) -> TypeGuard[str]:
    """Return whether a claim is an identifier: printable ASCII of bounded length."""
    return isinstance(value, str) and 0 < len(value) <= MAX_SUBJECT and value.isascii() and value.isprintable()


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
