"""Limits on connections: in all, by address, and on the time a client may read nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

from penstock.errors import Overloaded, PenstockError, RateLimited

Network: TypeAlias = IPv4Network | IPv6Network

WRITE_SECONDS: Final = 60.0
MAX_CONNECTIONS: Final = 20_000
MAX_PER_ADDRESS: Final = 5_000
RETRY_SECONDS: Final = 5.0
IPV6_PREFIX: Final = 64
"""An IPv6 network of this prefix counts as one address, since one client has all 2^64 of it."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """The operator's limits. `proxies` are not limited by address, since many callers share one."""

    max_connections: int = MAX_CONNECTIONS
    max_per_address: int = MAX_PER_ADDRESS
    proxies: Sequence[Network] = ()
    write_seconds: float = WRITE_SECONDS


class Doorman:
    """Counts the connections of one server, in all and by address."""

    def __init__(self, bounds: ConnectionBounds = ConnectionBounds()) -> None:  # noqa: B008  frozen
        self.bounds = bounds
        self._addresses: dict[str, int] = {}
        self.count = 0

    def enter(self, host: str) -> PenstockError | None:
        """Count a connection. Return the error if it must be refused. Each one has to `leave`, refused or not."""
        owner = _owner_of(host)
        number = self._addresses[owner] = self._addresses.get(owner, 0) + 1
        self.count += 1
        if self.count >= self.bounds.max_connections:
            return Overloaded(f"Too many connections: {self.count} are open.", retry_after=RETRY_SECONDS)
        if number > self.bounds.max_per_address and not self._is_proxy(host):
            return RateLimited(
                f"Too many connections from this address: at most {self.bounds.max_per_address} may be open.",
                suggestion="Reuse connections instead of opening new ones.",
                retry_after=RETRY_SECONDS,
            )
        return None

    @property
    def is_overrun(self) -> bool:
        """Return whether there are too many connections to write a refusal to each."""
        return self.count > self.bounds.max_connections * 1.1 + 16

    def leave(self, host: str) -> None:
        """Stop counting a connection."""
        owner = _owner_of(host)
        self.count -= 1
        left = self._addresses[owner] - 1
        if left:
            self._addresses[owner] = left
        else:
            del self._addresses[owner]

    def _is_proxy(self, host: str) -> bool:
        return is_among(host, self.bounds.proxies)


@lru_cache(4_096)
def _owner_of(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Network((address, IPV6_PREFIX), strict=False))
    return host


def is_among(host: str, networks: Sequence[Network]) -> bool:
    """Return whether an address lies in one of the networks."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in networks)
