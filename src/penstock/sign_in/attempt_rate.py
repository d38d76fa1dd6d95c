"""The rate of sign-ins by address, in bounded memory."""

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from penstock.errors import RateLimited

MAX_PER_MINUTE: Final = 120
"""Sign-ins that one address may begin in a minute at one process."""
MAX_ADDRESSES: Final = 10_000
WINDOW_SECONDS: Final = 60.0
IPV6_PREFIX: Final = 64


class AttemptRate:
    """Counts sign-ins that begin, by address. An IPv6 network of 64 bits counts as one."""

    def __init__(self, steady: Callable[[], float], most: int = MAX_PER_MINUTE) -> None:
        self._steady = steady
        self._most = most
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def admit(self, address: str) -> None:
        """Count a sign-in. Raise if there are too many from this address."""
        owner, now = _owner_of(address), self._steady()
        begun, number = self._windows.get(owner, (now, 0))
        if now >= begun + WINDOW_SECONDS:
            begun, number = now, 0
        if number >= self._most:
            message = f"Too many sign-ins from this address: at most {self._most} may begin in a minute."
            raise RateLimited(message, retry_after=begun + WINDOW_SECONDS - now)
        self._windows[owner] = begun, number + 1
        self._windows.move_to_end(owner)
        while len(self._windows) > MAX_ADDRESSES:
            self._windows.popitem(last=False)


def _owner_of(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Network((found, IPV6_PREFIX), strict=False))
    return str(found)
