"""A process that was frozen before its order went out does not send it when it wakes up."""

import threading
from pathlib import Path

import pytest
from aiohttp import web
from loopback import Server, serve

from penstock.domain.files import StoredFile
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.generation import Call, Flow, InDoubt, Reply, VendorFolders
from penstock.vendors.sim import Sim, SimOptions


async def no_file(file: StoredFile) -> bytes:
    raise AssertionError(f"{file} is not asked for here")


def order(*paths: str) -> Flow[Reply]:
    """A flow that posts to these paths."""
    replies = []
    for path in paths:
        replies.append((yield Call("POST", path, json={})))  # noqa: PERF401  a comprehension cannot yield
    return replies[-1]


async def test_what_is_in_doubt_when_it_is_sent_is_not_sent():
    async def answer(_request: web.BaseRequest) -> web.Response:
        return web.json_response({})

    looks = iter([True, True, True, False, False])  # with the connection, and with what is written

    def be_sure() -> None:
        if not next(looks):
            raise InDoubt

    server = Server()
    server.reply = answer
    async with serve(server):
        sim = Sim(SimOptions(type="sim", base_url=f"http://127.0.0.1:{server.port}"), VendorFolders(Path(), Path()))
        exchange = Exchange(no_file)
        try:
            with pytest.raises(InDoubt):  # the second call has its connection, and is frozen before it writes
                await exchange.drive("far", sim, "submit", order("/one", "/two"), be_sure=be_sure)
            await exchange.close()
            with pytest.raises(InDoubt):  # this one has a connection of its own
                await exchange.drive("far", sim, "submit", order("/three"), be_sure=be_sure)
        finally:
            await exchange.close()
    assert [request.path for request in server.requests] == ["/one"]


async def test_what_is_in_doubt_when_its_thread_begins_is_not_done(tmp_path: Path):
    sim = Sim(SimOptions(type="sim"), VendorFolders(tmp_path, tmp_path))
    assert sim.upstream is not None
    asked: list[str] = []

    def be_sure() -> None:
        asked.append(threading.current_thread().name)
        raise InDoubt

    exchange = Exchange(no_file)
    try:
        with pytest.raises(InDoubt):
            await exchange.drive("near", sim, "submit", order("/orders"), be_sure=be_sure)
        assert sim.upstream.counts()["orders"] == 0
    finally:
        await exchange.close()
        sim.upstream.close()
    assert asked
    assert threading.main_thread().name not in asked
