"""Name resolution for callers' hosts, apart from vendors' hosts, as callers' names may be slow on purpose."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from aiohttp.abc import AbstractResolver, ResolveResult

AT_ONCE: Final = 512
"""A lookup cannot be cancelled: it keeps its thread until the system's resolver times out.

So there are twice as many as attempts of webhooks: the resolver may be more patient than they are.
"""
OF_DOMAIN: Final = 4
"""Concurrent lookups under one domain, so that a domain that never answers delays only its own names."""
NUMERIC: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV

Found = list[tuple[Any, ...]]


class Resolver(AbstractResolver):
    """The system's resolver, in daemon threads of its own."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)
        self._domains: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return all addresses of a name; raise `OSError`."""
        looking = await self._begin(host, partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM))
        return [
            ResolveResult(hostname=host, host=address[0], port=port, family=kind, proto=protocol, flags=NUMERIC)
            for kind, _, protocol, _, address in await asyncio.shield(looking)
        ]

    async def close(self) -> None:
        """Do nothing: lookups in progress end by themselves."""

    async def _begin(self, host: str, look_up: Callable[[], Found]) -> "asyncio.Future[Found]":
        """Wait for a slot; it is released when the lookup ends, not when its caller is cancelled."""
        name = ".".join(host.lower().rstrip(".").split(".")[-2:])
        domain = self._domains.get(name) or asyncio.Semaphore(OF_DOMAIN)
        self._domains[name] = domain
        await domain.acquire()
        try:
            await self._places.acquire()
        except asyncio.CancelledError:
            domain.release()
            raise
        done = asyncio.get_running_loop().create_future()

        def end(looked: "asyncio.Future[Found]") -> None:
            self._places.release()
            domain.release()
            looked.exception()  # retrieved, in case no caller waits any more

        done.add_done_callback(end)
        try:
            threading.Thread(target=_work, args=(look_up, done), name="name-lookup", daemon=True).start()
        except RuntimeError as error:  # no more threads
            done.set_exception(OSError(str(error)))
        return done


def _work(look_up: Callable[[], Found], done: "asyncio.Future[Found]") -> None:
    try:
        tell = partial(done.set_result, look_up())
    except OSError as error:
        tell = partial(done.set_exception, error)
    except UnicodeError as error:  # not a valid name
        tell = partial(done.set_exception, OSError(str(error)))
    with suppress(RuntimeError):  # the loop has ended
        done.get_loop().call_soon_threadsafe(tell)
