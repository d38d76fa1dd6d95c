"""Policy for the addresses of vendors that operators add at run time."""

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from penstock.domain.job_errors import UrlNotAllowed
from penstock.safe_fetch.policy import PRIVATE, SPECIAL, Network, check_url, is_allowed

METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.azure.internal", "instance-data"})
"""Names of metadata services in clouds. Others are found when they are resolved."""


def vendor_networks(allow_networks: Sequence[Network], *, private: bool) -> tuple[Network, ...]:
    """Return the networks that such a vendor may be in, besides the public internet. `private` adds the operator's."""
    return (*allow_networks, *(PRIVATE if private else ()))


def check_vendor_url(url: str, networks: Sequence[Network]) -> None:
    """Raise `UrlNotAllowed` for an address that such a vendor may not have. Names are checked as they are dialled."""
    try:
        checked = check_url(url, networks, any_port=True)
    except UrlNotAllowed as error:
        if error.message.endswith(SPECIAL):
            raise UrlNotAllowed(error.message.removesuffix(SPECIAL) + _advise(networks)) from None
        raise
    host = urlsplit(checked).hostname or ""
    if host in METADATA_NAMES:
        raise UrlNotAllowed(f"The URL's host {host!r} is a metadata service. {_advise(networks)}")


def is_vendor_address(host: str, networks: Sequence[Network] | None) -> bool:
    """Return whether a vendor with these networks may be connected to at an address. None: a vendor of the file."""
    return networks is None or is_allowed(ip_address(host.partition("%")[0]), networks)


def _advise(networks: Sequence[Network]) -> str:
    own = "those of your own machine and network" if set(PRIVATE) <= set(networks) else "those that the file allows"
    return f"Allowed are public addresses and {own}. Link-local addresses and metadata services never are."
