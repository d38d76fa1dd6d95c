"""The chat wire over TLS: only to whom the certificate names, and with the same care as without."""

import asyncio
import ssl

import pytest
import trustme
from raw_vendor import OK, PONG, Line, Vendor, answer, each_loop, ping, post, saying, vendor_of, wire_of

from penstock.vendor_api.generation import NotSent, ReplyLost


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture
def trust(authority, monkeypatch, tmp_path) -> None:
    """Have the authority among those of the system."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))


def named(vendor: Vendor, name: str = "localhost") -> str:
    return f"https://{name}:{vendor.port}/v1"


WHOLE = {
    "a length": (PONG, True),
    "chunks": (OK + b"transfer-encoding: chunked\r\n\r\n4\r\npong\r\n0\r\n\r\n", True),
    "not to be kept": (OK + b"connection: close\r\ncontent-length: 4\r\n\r\npong", False),
    "more behind": (PONG + b"HTTP/1.1 200 OK\r\n", False),
}


@pytest.mark.parametrize("kind", WHOLE)
@each_loop
async def test_a_whole_reply(trust, tls, kind):
    reply, is_kept = WHOLE[kind]
    async with vendor_of(saying(reply), tls=tls) as vendor, wire_of() as wire:
        for _ in range(2):
            assert await ping(wire, named(vendor)) == b"pong"
        assert len(vendor.lines) == (1 if is_kept else 2)


@each_loop
async def test_a_reply_that_ends_with_its_connection(trust, tls):
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(OK + b"\r\npong")

    async with vendor_of(handle, tls=tls) as vendor, wire_of() as wire:
        for _ in range(2):
            assert await ping(wire, named(vendor)) == b"pong"


@each_loop
async def test_much_both_ways_to_who_is_slow(trust, tls):
    async def handle(line: Line) -> None:
        await asyncio.sleep(0.1)
        await line.hear()
        await line.say(OK + b"content-length: %d\r\n\r\n" % len(body) + body)
        await answer(line)

    body = bytes(8 << 20)
    async with vendor_of(handle, tls=tls) as vendor, wire_of() as wire:
        incoming = await post(wire, named(vendor), body)
        await asyncio.sleep(0.1)
        assert await incoming.read_all(len(body)) == body
        assert vendor.bodies == [body]
        assert await ping(wire, named(vendor)) == b"pong"
        assert len(vendor.lines) == 1


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
@each_loop
async def test_who_cannot_be_trusted_is_not_sent_anything(authority, tls, name, request):
    if name != "localhost":  # who is, under another name
        request.getfixturevalue("trust")
    async with vendor_of(answer, tls=tls) as vendor, wire_of() as wire:
        with pytest.raises(NotSent, match="SSLCertVerificationError"):
            await post(wire, named(vendor, name))
        assert vendor.heads == []


@each_loop
async def test_the_systems_authorities_are_read_once(trust, tls, monkeypatch):
    made: list[ssl.SSLContext] = []
    make = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: made.append(make()) or made[-1])
    async with vendor_of(answer, tls=tls) as vendor, wire_of() as wire:
        given_up = asyncio.create_task(ping(wire, named(vendor)))
        await asyncio.sleep(0)
        given_up.cancel()
        assert await asyncio.gather(*(ping(wire, named(vendor)) for _ in range(5))) == [b"pong"] * 5
    assert len(made) == 1


async def hold(line: Line) -> None:
    """Accept, and never speak of TLS."""
    await line.see_end()


async def drop(line: Line) -> None:
    await line.hear_some(10)


async def reset(line: Line) -> None:
    await line.hear_some(10)
    line.reset()


async def speak_plainly(line: Line) -> None:
    await line.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await line.see_end()


@pytest.mark.parametrize("handle", [hold, drop, reset, speak_plainly])
@each_loop
async def test_who_does_not_finish_the_handshake_is_not_sent_anything(handle):
    async with vendor_of(handle) as vendor, wire_of() as wire:
        with pytest.raises(NotSent):
            await post(wire, named(vendor, "127.0.0.1"), seconds=0.3)
        await vendor.ends()


@each_loop
async def test_cancelled_in_the_handshake_the_vendor_sees_it_at_once():
    async def handle(line: Line) -> None:
        await line.hear_some(10)
        arrived.set()
        await line.see_end()

    arrived = asyncio.Event()
    async with vendor_of(handle) as vendor, wire_of() as wire:
        calling = asyncio.create_task(post(wire, named(vendor, "127.0.0.1")))
        await arrived.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await vendor.ends()


@pytest.mark.parametrize("how", [Line.hang_up, Line.reset, Line.cut_off])
@pytest.mark.parametrize("sent", [b"", OK, PONG[:-1], OK + b"transfer-encoding: chunked\r\n\r\n4\r\npong\r\n"])
@each_loop
async def test_a_cut_reply_is_lost(trust, tls, sent, how):
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(sent)
        how(line)

    async with vendor_of(handle, answer, tls=tls) as vendor, wire_of() as wire:
        with pytest.raises(ReplyLost):
            await ping(wire, named(vendor))
        assert len(vendor.heads) == 1
        assert await ping(wire, named(vendor)) == b"pong"


@each_loop
async def test_who_leaves_in_the_body_is_seen_to_leave_at_once(trust, tls):
    async def handle(line: Line) -> None:
        await line.hear()
        await line.say(OK + b"content-length: 9\r\n\r\npong")
        await line.see_end()

    async with vendor_of(handle, answer, tls=tls) as vendor, wire_of() as wire:
        incoming = await post(wire, named(vendor))
        assert await incoming.read_some() == b"pong"
        incoming.close()
        await vendor.ends()
        assert await ping(wire, named(vendor)) == b"pong"


@each_loop
async def test_a_long_call_that_is_refused(trust, tls):
    async def handle(line: Line) -> None:
        await line.hear_some(10_000)
        await line.say(b"HTTP/1.1 413 Large\r\ncontent-length: 4\r\n\r\npong")
        await line.see_end()

    async with vendor_of(handle, answer, tls=tls) as vendor, wire_of() as wire:
        incoming = await post(wire, named(vendor), bytes(30_000_000))
        assert (incoming.status, await incoming.read_all(100)) == (413, b"pong")
        await vendor.ends()
        assert await ping(wire, named(vendor)) == b"pong"
