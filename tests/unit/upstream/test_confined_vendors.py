"""Vendors that are confined to networks: a name that leads elsewhere is found as it is dialled."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from ipaddress import ip_network
from typing import Any, cast

import pytest
import pytest_asyncio

from penstock.safe_fetch.policy import PRIVATE
from penstock.safe_fetch.vendor_address import is_vendor_address
from penstock.upstream.chat_connection import ChatConnections
from penstock.upstream.http_client import HttpClient
from penstock.vendor_api.generation import AddressRefused, Call, GenerationVendor, NotSent, VendorOptions


class Neighbour:
    """A server that counts what it is sent."""

    def __init__(self) -> None:
        self.heard = b""
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard += await reader.read(1 << 16)
        if self.heard:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()


@pytest_asyncio.fixture
async def neighbour() -> AsyncGenerator[Neighbour]:
    found = Neighbour()
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    yield found
    server.close()


class Confined:
    """A vendor with nothing but options."""

    addresses: tuple[str, ...] = ()

    def __init__(self, base_url: str, networks: Any) -> None:
        self.options = VendorOptions(type="sim", base_url=base_url)
        self.options.confine(networks)


Ask = Callable[[Confined], Any]


async def ask_media(vendor: Confined) -> None:
    client = HttpClient()
    try:
        async with client.request("near", cast("GenerationVendor", vendor), Call("GET", "/x")) as response:
            await response.read()
    finally:
        await client.close()


async def ask_chat(vendor: Confined) -> None:
    connections = ChatConnections()
    try:
        incoming = await connections.open(vendor.options.base_url, Call("POST", "/x"), 5.0, vendor.options)
        await incoming.wait_head()
        incoming.close()
    finally:
        connections.close()


async def test_a_media_vendor_is_not_dialled_where_it_may_not_be(neighbour: Neighbour):
    with pytest.raises(AddressRefused):
        await ask_media(Confined(f"http://localhost:{neighbour.port}", ()))
    assert neighbour.heard == b""
    await ask_media(Confined(f"http://127.0.0.1:{neighbour.port}", PRIVATE))
    assert neighbour.heard


async def test_a_chat_vendor_is_sent_nothing_where_it_may_not_be(neighbour: Neighbour):
    with pytest.raises(NotSent):
        await ask_chat(Confined(f"http://127.0.0.1:{neighbour.port}", (ip_network("10.0.0.0/8"),)))
    assert neighbour.heard == b""
    await ask_chat(Confined(f"http://127.0.0.1:{neighbour.port}", PRIVATE))
    assert neighbour.heard


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "169.254.7.7", "fd00:ec2::254", "fe80::1%eth0", "0.0.0.0", "224.0.0.1"]
)
def test_private_networks_hold_no_metadata(address: str):
    assert not is_vendor_address(address, PRIVATE)
    assert is_vendor_address(address, None), "the file may name any address"


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.1.2.3", "192.168.1.20", "100.100.3.4", "fd12::1", "1.1.1.1"]
)
def test_private_networks_hold_the_operators_machines(address: str):
    assert is_vendor_address(address, PRIVATE)


def test_options_of_other_networks_are_not_equal():
    free, confined = VendorOptions(type="sim"), VendorOptions(type="sim")
    assert free == confined
    confined.confine(PRIVATE)
    assert free != confined
