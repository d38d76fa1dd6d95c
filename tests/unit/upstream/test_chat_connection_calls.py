"""Calls over the chat wire: where they go, what is sent, and whether a failed one was sent at all."""

import asyncio
import socket
import threading
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ports import free_port
from raw_vendor import OK, Line, Recorder, answer, each_loop, hear, ping, post, run_on, vendor_of, wire_of

from penstock.vendor_api.generation import Call, NotSent, ReplyLost

LONG = bytes(30_000_000)


def count_open() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


# -- what is said


@pytest.mark.parametrize(
    ("base_url", "url", "asked", "host", "path"),
    [
        ("http://a.example", "/x", ("a.example", 80, False), "a.example", "/x"),
        ("http://a.example/v1/", "/x?y=%20z", ("a.example", 80, False), "a.example", "/v1/x?y=%20z"),
        ("http://A.example:8080//v1", "/x#y", ("a.example", 8080, False), "a.example:8080", "//v1/x"),
        ("https://a.example/v1", "/x", ("a.example", 443, True), "a.example", "/v1/x"),
        ("https://a.example:443", "/x", ("a.example", 443, True), "a.example", "/x"),
        ("https://a.example:80", "/x", ("a.example", 80, True), "a.example:80", "/x"),
        ("http://[::1]:8080/v1", "/x", ("::1", 8080, False), "[::1]:8080", "/v1/x"),
        ("http://[2001:db8::1]", "/x", ("2001:db8::1", 80, False), "[2001:db8::1]", "/x"),
        ("http://user:secret@a.example", "/x", ("a.example", 80, False), "a.example", "/x"),
        ("http://bücher.example", "/x", ("xn--bcher-kva.example", 80, False), "xn--bcher-kva.example", "/x"),
        ("http://elsewhere.example", "https://a.example?y", ("a.example", 443, True), "a.example", "/?y"),
    ],
)
def test_where_a_call_goes(base_url, url, asked, host, path):
    async def scenario() -> None:
        async with vendor_of(answer) as vendor, wire_of() as wire:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, Recorder)
            loop.port = vendor.port
            await hear(wire, base_url, Call("POST", url, body=b"{}"), 5)
            assert loop.asked == asked
            first, *lines = vendor.heads[0].decode().split("\r\n")
            assert first == f"POST {path} HTTP/1.1"
            assert lines[0] == f"host: {host}"

    run_on(Recorder, scenario())


@each_loop
async def test_what_is_sent_is_what_the_call_says_and_no_more(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with vendor_of(answer) as vendor, wire_of() as wire:
        await hear(wire, vendor.url, Call("POST", "/x", {"x-key": "schlüssel-ключ", "user-agent": "me"}, body=b"ab"), 5)
        await hear(wire, vendor.url, Call("GET", "/x"), 5)
    first = vendor.heads[0].decode().split("\r\n")
    assert first == [
        "POST /v1/x HTTP/1.1",
        f"host: 127.0.0.1:{vendor.port}",
        "accept-encoding: identity",
        "content-type: application/json",
        "user-agent: me",
        "x-key: schlüssel-ключ",
        "content-length: 2",
        "",
        "",
    ]
    assert vendor.heads[1].startswith(b"GET /v1/x HTTP/1.1\r\n")
    assert vendor.bodies == [b"ab", b""]


@pytest.mark.parametrize(
    "call",
    [
        Call("POST", "/x", {"authorization": "a\r\nx-evil: 1"}),
        Call("POST", "/x", {"authorization": "a\n"}),
        Call("POST", "/x", {"authorization": "a\rb"}),
        Call("POST", "/x", {"authorization": "a\0b"}),
        Call("POST", "/x", {"x\r\ny": "z"}),
        Call("POST\r\n", "/x"),
        Call("POST", "/x y"),
        Call("POST", "/x\x7f"),
        Call("POST", "/ü"),
        Call("POST", "ftp://127.0.0.1/x"),
        Call("POST", "http:///x"),
        Call("POST", "http://[::1/x"),
        Call("POST", "http://127.0.0.1:99999/x"),
        Call("POST", "http://127.0.0.1:x/x"),
        Call("POST", f"http://{'a' * 64}.example/x"),
        Call("POST", "http://a..example/x"),
    ],
)
@each_loop
async def test_what_cannot_be_said_was_not_sent(call):
    async with vendor_of(answer) as vendor, wire_of() as wire:
        with pytest.raises(NotSent):
            await hear(wire, vendor.url, call, 5)
        assert vendor.lines == []


# -- what does not arrive


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "http://nowhere.invalid", "https://127.0.0.1:{port}"])
@each_loop
async def test_what_cannot_be_connected_was_not_sent(url):
    async with wire_of() as wire:
        with pytest.raises(NotSent):
            await post(wire, url.format(port=free_port()))


@pytest.mark.parametrize("by", ["timeout", "cancel"])
@each_loop
async def test_connecting_without_end_is_given_up_and_leaves_nothing_open(by):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as fillers:
        address = listener.getsockname()
        for _ in range(4):  # nobody accepts them, so that there is no room for more
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        async with wire_of() as wire:
            counts: list[int] = []
            for _ in range(3):
                seconds = 0.1 if by == "timeout" else 60
                calling = asyncio.create_task(post(wire, f"http://127.0.0.1:{address[1]}", seconds=seconds))
                if by == "cancel":
                    await asyncio.sleep(0.02)
                    assert not calling.done()
                    calling.cancel()
                with pytest.raises(NotSent if by == "timeout" else asyncio.CancelledError):
                    await calling
                await asyncio.sleep(0.02)
                counts.append(count_open())
            assert max(counts) == counts[0]


@pytest.mark.parametrize("first", [b"", b"220 mail\r\n"])
def test_closed_before_anything_was_sent(first):
    """A vendor that hangs up on everybody, or speaks first: noticed before the call goes out, it was not sent."""

    class Late(asyncio.SelectorEventLoop):
        async def create_connection(self, *given: Any, **named: Any):
            transport, protocol = await super().create_connection(*given, **named)
            while not transport.is_closing():  # noqa: ASYNC110  nothing else tells
                await asyncio.sleep(0)
            return transport, protocol

    async def scenario() -> None:
        async with vendor_of(lambda line: line.say(first)) as vendor, wire_of() as wire:
            with pytest.raises(NotSent):
                await post(wire, vendor.url)
            assert vendor.heads == []

    run_on(Late, scenario())


# -- long calls


@pytest.mark.parametrize("by", ["cancel", "hang up", "reset"])
@each_loop
async def test_to_a_vendor_that_does_not_listen_only_a_little_is_sent(by):
    async def handle(line: Line) -> None:
        await line.hear_some(100)
        await told.wait()
        if by == "hang up":
            with line.socket() as own:
                own.shutdown(socket.SHUT_WR)
            await lost.wait()
        elif by == "reset":
            line.reset()
        await line.see_end()

    told, lost = asyncio.Event(), asyncio.Event()
    async with vendor_of(handle, answer) as vendor, wire_of() as wire:
        tracemalloc.start()
        calling = asyncio.create_task(post(wire, vendor.url, LONG))
        await asyncio.sleep(0.3)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8 << 20
        assert not calling.done()
        told.set()
        if by == "cancel":
            calling.cancel()
        with pytest.raises(asyncio.CancelledError if by == "cancel" else ReplyLost):
            await calling
        lost.set()
        await vendor.ends()
        assert await ping(wire, vendor.url) == b"pong"


@each_loop
async def test_a_long_call_arrives_also_where_the_reply_begins_before_its_end():
    async def handle(line: Line) -> None:
        await line.say(OK + b"transfer-encoding: chunked\r\n\r\n")
        await line.hear()
        await line.say(b"0\r\n\r\n")
        await answer(line)

    async with vendor_of(handle) as vendor, wire_of() as wire:
        assert await (await post(wire, vendor.url, LONG)).read_all(100) == b""
        assert await ping(wire, vendor.url) == b"pong"
        assert [len(body) for body in vendor.bodies] == [len(LONG), 2]
        assert len(vendor.lines) == 1


def refuse(listener: socket.socket, size: int, times: int) -> None:
    """Read a little of every call, refuse it and hang up: to a caller that still writes that is a reset."""
    for _ in range(times):
        connection, _ = listener.accept()
        with connection:
            heard = 0
            while heard < size and (data := connection.recv(size - heard)):
                heard += len(data)
            connection.sendall(b"HTTP/1.1 413 Large\r\ncontent-length: 4\r\n\r\npong")


@pytest.mark.parametrize("size", [100, 1_000_000, 5_000_000])
@each_loop
async def test_a_long_call_refused_by_a_vendor_that_hangs_up_is_refused(size):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        refusing = threading.Thread(target=refuse, args=(listener, size, 20))
        refusing.start()
        async with wire_of() as wire:
            for _ in range(20):
                incoming = await post(wire, f"http://127.0.0.1:{listener.getsockname()[1]}", LONG)
                assert incoming.status == 413
                incoming.close()
        refusing.join()


@each_loop
async def test_a_connection_with_half_a_call_is_not_used_again():
    async def handle(line: Line) -> None:
        await line.hear_some(1_000)
        await line.say(b"HTTP/1.1 413 Large\r\ncontent-length: 4\r\n\r\n")
        await known.wait()
        await line.say(b"pong")
        await line.see_end()

    known = asyncio.Event()
    async with vendor_of(handle, answer) as vendor, wire_of() as wire:
        incoming = await post(wire, vendor.url, LONG)
        known.set()
        assert (incoming.status, await incoming.read_all(100)) == (413, b"pong")
        await vendor.ends()
        assert await ping(wire, vendor.url) == b"pong"
        assert len(vendor.lines) == 2
