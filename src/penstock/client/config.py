"""Server address and API key, from arguments or the environment. The key is never shown."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, urlsplit

from penstock import __version__
from penstock.client.errors import BadInput

DEFAULT_BASE_URL: Final = "http://127.0.0.1:8787"


@dataclass(frozen=True, slots=True)
class Address:
    """Base URL, key and connection limits of a server."""

    base_url: str
    api_key: str = field(repr=False)
    timeout: float = 60.0
    """Seconds for sending, and for an answer, apart from long polling."""
    connections: int = 100

    @property
    def is_local(self) -> bool:
        """Return whether the server is this machine, so that no proxy applies."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return {"authorization": f"Bearer {self.api_key}", "user-agent": f"penstock-python/{__version__}"}


def find_address(
    base_url: str | None,
    api_key: str | None,
    *,
    timeout: float,
    connections: int,
    environ: Mapping[str, str] = os.environ,
) -> Address:
    """Return the given address and key, or those in PENSTOCK_BASE_URL and PENSTOCK_API_KEY."""
    url = (base_url or environ.get("PENSTOCK_BASE_URL") or DEFAULT_BASE_URL).strip().rstrip("/")
    if not _is_address(url):
        raise BadInput("The server's address should look like http://127.0.0.1:8787; a key goes into PENSTOCK_API_KEY.")
    key = (api_key or environ.get("PENSTOCK_API_KEY") or "").strip()
    if not key:
        raise BadInput("There is no key: set PENSTOCK_API_KEY, or pass `api_key`.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise BadInput("The key has characters that no key has: was it copied completely?")
    return Address(url, key, timeout, connections)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:  # not a valid port or host name
        return False
    return known and not (parts.username or parts.query or parts.fragment)


def path_to(root: str, *names: str) -> str:
    """Return a path below `root`. Each name is quoted, so that it stays one segment."""
    for name in names:
        if name in ("", ".", ".."):
            raise BadInput(f"`{name}` is no id.")
    return "/".join((root, *(quote(name, safe="") for name in names)))
