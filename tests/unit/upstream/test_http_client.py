"""Calls to vendors: what a failure means for a paid order."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from penstock.upstream.http_client import HttpClient
from penstock.vendor_api.generation import Call, GenerationVendor, NotSent, ReplyLost


@dataclass
class Options:
    base_url: str
    max_concurrent: int = 1
    networks: None = None


@dataclass
class Silent:
    """A vendor that reads what it is asked and never answers."""

    options: Options
    asked: list[bytes] = field(default_factory=list[bytes])
    addresses: tuple[str, ...] = ()

    async def listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                self.asked.append((await reader.readuntil(b"\r\n\r\n")).split()[1])
        writer.close()


async def order(wire: HttpClient, vendor: Silent, path: str, seconds: float) -> None:
    call = Call("POST", path, {}, json={"prompt": "a mill"}, seconds=seconds)
    async with wire.request("silent", cast("GenerationVendor", vendor), call):
        pass


async def test_an_order_that_never_got_a_connection_was_not_sent():
    vendor = Silent(Options(""))
    server = await asyncio.start_server(vendor.listen, "127.0.0.1", 0)
    vendor.options.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    wire, waiting = HttpClient(), list[asyncio.Task[Any]]()
    try:
        with pytest.raises(ReplyLost):
            await order(wire, vendor, "/heard", 2)  # connected within that time, and sent
        waiting += [asyncio.create_task(order(wire, vendor, f"/{number}", 60)) for number in range(8)]
        async with asyncio.timeout(300):
            while len(vendor.asked) < 9:  # all connections that there may be  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        with pytest.raises(NotSent):
            await order(wire, vendor, "/late", 0.5)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await wire.close()
        server.close()
    assert b"/heard" in vendor.asked
    assert b"/late" not in vendor.asked
