"""Bounds connections: how many one address may have, and how long a reader may take nothing of its response."""

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
"""Of IPv6 a whole network counts as one address: who has one address there has 2^64."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """The operator's limits; `proxies` are not counted by address, as many callers come through one."""

    max_connections: int = MAX_CONNECTIONS
    max_per_address: int = MAX_PER_ADDRESS
    proxies: Sequence[Network] = ()
    write_seconds: float = WRITE_SECONDS


class Doorman:
    """Counts the connections of one server."""

    def __init__(self, bounds: ConnectionBounds = ConnectionBounds()) -> None:  # noqa: B008  frozen
        self.bounds = bounds
        self._addresses: dict[str, int] = {}
        self.count = 0

    def enter(self, host: str) -> PenstockError | None:
        """Count a connection; return why it is to be refused, if it is. Each one has to `leave`."""
        owner = _owner_of(host)
        number = self._addresses[owner] = self._addresses.get(owner, 0) + 1
        self.count += 1
        if self.count >= self.bounds.max_connections:
            return Overloaded(f"{self.count} connections are open.", retry_after=RETRY_SECONDS)
        if number > self.bounds.max_per_address and not self._is_proxy(host):
            return RateLimited(
                f"{self.bounds.max_per_address} connections are open from this address.",
                suggestion="Use connections again instead of opening new ones.",
                retry_after=RETRY_SECONDS,
            )
        return None

    @property
    def is_overrun(self) -> bool:
        """Tell if there are so many that not even a refusal can be written to each."""
        return self.count > self.bounds.max_connections * 1.1 + 16

    def leave(self, host: str) -> None:
        """Count a connection no more."""
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
