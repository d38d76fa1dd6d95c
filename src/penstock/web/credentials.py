"""Credentials of requests: API keys, for which each SDK has its own header, and the cookies of console sessions."""

import re
from collections.abc import Mapping
from typing import Final

from penstock.domain.people.sign_in_errors import CsrfHeaderMissing
from penstock.errors import OriginNotAllowed
from penstock.web.server.asgi import Headers

HEADERS: Final = (b"x-api-key", b"x-goog-api-key")
"""Headers that hold nothing but the key, in the order in which they are read."""
_SCHEMES: Final = re.compile("(?:key|token) ", re.IGNORECASE)
"""Schemes of some clients, instead of `Bearer `."""
SESSION: Final = "penstock_session"
ATTEMPT: Final = "penstock_sign_in"
"""The cookie that binds a sign-in to the browser in which it began."""
SECURE_PREFIX: Final = "__Host-"
"""Prefix under https. Browsers accept such a cookie from this host alone, and only over https."""
ACCOUNT_HEADER: Final = b"x-penstock-account"
CSRF_HEADER: Final = b"x-penstock-csrf"
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
MAX_COOKIES: Final = 16 << 10
"""Characters of the cookies that are read."""
OWN_SITES: Final = (b"same-origin", b"none")
"""Values of `sec-fetch-site` for requests of our own pages, and of a person who enters an address."""


def find_credential(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the key of a request as an `Authorization` header; None if there is none. Names are in lower case."""
    sent = headers.get(b"authorization")
    if sent is not None:
        text = sent.decode("latin-1")
        return _SCHEMES.sub("Bearer ", text, count=1) if _SCHEMES.match(text) else text
    key = next((headers[name] for name in HEADERS if headers.get(name)), None)
    return None if key is None else f"Bearer {key.decode('latin-1')}"


# -- cookies


def name_cookie(name: str, base_url: str) -> str:
    """Return the name of a cookie at an address."""
    return SECURE_PREFIX + name if base_url.startswith("https://") else name


def read_cookie(headers: Headers, name: str, base_url: str) -> str | None:
    """Return the value of a cookie. Of two with one name, none counts: another site may have set one of them."""
    sought, found = name_cookie(name, base_url), list[str]()
    for header, line in headers:
        if header == b"cookie" and len(line) <= MAX_COOKIES:
            pairs = (pair.partition("=") for pair in line.decode("latin-1").split(";"))
            found += [value.strip() for given, _, value in pairs if given.strip() == sought]
    return found[0] if len(found) == 1 and found[0] else None


def write_cookie(name: str, value: str, base_url: str, seconds: float) -> str:
    """Return a `set-cookie` header. No script can read the cookie, and requests of other sites do not carry it."""
    secure = "; Secure" if base_url.startswith("https://") else ""
    limits = f"Max-Age={int(seconds)}; Path=/; HttpOnly; SameSite=Lax{secure}"
    return f"{name_cookie(name, base_url)}={value}; {limits}"


def remove_cookie(name: str, base_url: str) -> str:
    """Return a `set-cookie` header that removes a cookie."""
    return write_cookie(name, "", base_url, 0)


def refuse_other_sites(method: str, headers: Headers, own_origin: str) -> None:
    """Raise if a request with a cookie may come from a page of another site.

    The origin must be ours wherever a browser names it. Changes also need a header that no foreign form can send.
    """
    fields = dict(headers)
    origin, site = fields.get(b"origin"), fields.get(b"sec-fetch-site")
    if origin is not None and origin.decode("latin-1") != own_origin:
        raise OriginNotAllowed("Pages of other origins may not use the session's cookie.")
    if site is not None and site not in OWN_SITES:
        raise OriginNotAllowed("Pages of other sites may not use the session's cookie.")
    if method not in SAFE_METHODS and fields.get(CSRF_HEADER) != b"1":
        raise CsrfHeaderMissing
