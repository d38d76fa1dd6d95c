"""Which server, by which key: from arguments, else from the environment. The key is never shown."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, urlsplit

from penstock import __version__
from penstock.client.errors import BadInput

HOME: Final = "http://127.0.0.1:8787"


@dataclass(frozen=True, slots=True)
class Address:
    """Where requests go, and what lets them in."""

    base_url: str
    api_key: str = field(repr=False)
    timeout: float = 60.0
    """Seconds for sending, and for an answer that is not held on purpose."""
    connections: int = 100

    @property
    def is_local(self) -> bool:
        """Whether it is this machine, which no proxy leads to."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"authorization": f"Bearer {self.api_key}", "user-agent": f"penstock-python/{__version__}"}


def find_address(
    base_url: str | None,
    api_key: str | None,
    *,
    timeout: float,
    connections: int,
    environ: Mapping[str, str] = os.environ,
) -> Address:
    """The address that was given, else that of PENSTOCK_BASE_URL and PENSTOCK_API_KEY."""
    url = (base_url or environ.get("PENSTOCK_BASE_URL") or HOME).strip().rstrip("/")
    if not _is_address(url):
        raise BadInput("The server's address should look like http://127.0.0.1:8787; a key goes into PENSTOCK_API_KEY.")
    key = (api_key or environ.get("PENSTOCK_API_KEY") or "").strip()
    if not key:
        raise BadInput("There is no key: set PENSTOCK_API_KEY, or give `api_key`.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise BadInput("The key has characters that no key has: was it copied whole?")
    return Address(url, key, timeout, connections)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:  # a port or a name that is none
        return False
    return known and not (parts.username or parts.query or parts.fragment)


def path_to(root: str, *names: str) -> str:
    """A path below a root; a name from elsewhere stays one step of it, whatever it holds."""
    for name in names:
        if name in ("", ".", ".."):
            raise BadInput(f"`{name}` is no id.")
    return "/".join((root, *(quote(name, safe="") for name in names)))
