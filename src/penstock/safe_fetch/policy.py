"""Policy for callers' URLs: only those on the public internet, and in networks that the operator allows."""

import re
import string
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

import idna

from penstock.domain.job_errors import UrlNotAllowed

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

MAX_URL_CHARACTERS = 2048
MAX_NAME_CHARACTERS = 253
PORTS = (80, 443, 8080, 8443)

# -- addresses

# Written out, as `ipaddress.is_global` changes between releases of Python.
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

PRIVATE = tuple(
    ip_network(network)
    for network in (
        "127.0.0.0/8",  # loopback
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",  # carrier-grade NAT, and overlay networks such as Tailscale's
        "::1/128",  # loopback
        "fc00::/7",
    )
)
"""Networks of the operator's own machine and site. Link-local ones, where clouds have their metadata, are not."""

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
"""Metadata services, which return credentials in clouds."""


SPECIAL = "Loopback, private, link-local and other special addresses are not allowed."


def is_allowed(address: Address, allow_networks: Sequence[Network] = ()) -> bool:
    """Return whether the address is public, or in a network that the operator allows.

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


def check_address(
    address: Address, port: int, allow_networks: Sequence[Network], subject: str, *, any_port: bool = False
) -> None:
    """Raise for an address that is not allowed, or not at this port; `subject` begins the message."""
    if not is_allowed(address, allow_networks):
        raise UrlNotAllowed(f"{subject} is not public. {SPECIAL}")
    if not any_port and not _is_named(address, allow_networks):
        _check_port(port)


def _check_port(port: int) -> None:
    if port not in PORTS:
        raise UrlNotAllowed(f"The URL's port is not allowed. Allowed are {', '.join(map(str, PORTS))}.")


# -- URLs

NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
NUMBER_AT_THE_END = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)")
LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")


def check_url(url: str, allow_networks: Sequence[Network] = (), *, any_port: bool = False) -> str:
    """Return the URL as it will be fetched, in ASCII and without its fragment, or raise `UrlNotAllowed`.

    Nothing is looked up. What a name resolves to is checked when it is fetched, so where the operator
    allows networks, a name's port and whether it is a local one are left to that check.
    """
    parts = _split(url)
    port = _port(parts)
    host = _parse_host(parts.hostname or "")
    if not isinstance(host, str):
        check_address(host, port, allow_networks, f"The URL's host {str(host)!r}", any_port=any_port)
    elif not allow_networks:
        if not any_port:
            _check_port(port)
        _check_name(host)
    netloc = f"[{host}]" if isinstance(host, IPv6Address) else str(host)
    if parts.port is not None:
        netloc += f":{port}"
    # Only what is not ASCII is quoted: any other change would break a signed URL.
    return quote(urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, "")), safe=string.punctuation)


def check_characters(url: str) -> None:
    """Raise for characters that parsers treat differently."""
    if not url.isprintable() or " " in url or "\\" in url:
        raise UrlNotAllowed("The URL has white space, a control character or a backslash in it; percent-encode it.")


def _split(url: str) -> SplitResult:
    """Parse the URL. Messages here quote nothing of it, as a misplaced part may be a password."""
    if len(url) > MAX_URL_CHARACTERS:
        raise UrlNotAllowed(f"The URL is too long: {len(url)} characters, allowed are {MAX_URL_CHARACTERS}.")
    check_characters(url)
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
    """Return the address that the host spells, or else its name in ASCII."""
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
