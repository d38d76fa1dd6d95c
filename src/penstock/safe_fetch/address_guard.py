"""Guard of outgoing connections: they reach only public addresses and networks that the operator allows."""

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult

from penstock.safe_fetch.policy import Network, check_address

Target: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]  # as from `socket.getaddrinfo`


class Guard(AbstractResolver):
    """Lets connections reach allowed addresses only: checked as a name is resolved, and again as it is dialled.

    The first check refuses a name with even one bad address; the second also sees addresses that need no resolving.
    """

    def __init__(
        self, allow_networks: Sequence[Network], resolver: AbstractResolver, *, any_port: bool = False
    ) -> None:
        self._allow_networks = allow_networks
        self._resolver = resolver
        self._any_port = any_port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Resolve once; the connection uses exactly these addresses."""
        answers = await self._resolver.resolve(host, port, family)
        if not answers:
            raise OSError("no address")
        for answer in answers:
            subject = f"An address that the URL's host {host!r} resolves to"
            self._check(answer["host"], answer["port"], subject)
        return answers

    async def close(self) -> None:
        """Do nothing: the resolver is shared."""

    def open_socket(self, target: Target) -> socket.socket:
        """Create the socket for a connection, if the target is allowed."""
        family, kind, protocol, _, destination = target
        self._check(destination[0], destination[1], "The URL's host")
        return socket.socket(family, kind, protocol)

    def _check(self, host: str, port: int, subject: str) -> None:
        check_address(ip_address(host), port, self._allow_networks, subject, any_port=self._any_port)
