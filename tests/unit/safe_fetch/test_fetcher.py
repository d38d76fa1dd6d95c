"""No URL of a caller reaches what is not public, and what is public arrives whole or fails in plain words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from loopback import LOOPBACK, MEGABYTE, PNG, Names, Server, gather, redirect_to, serve
from ports import free_port

from penstock.domain.job_errors import FileFetchFailed, FileUnreadable, UrlNotAllowed
from penstock.safe_fetch.fetcher import SafeFetcher, open_session

UNREACHABLE = "2fff::1"  # public by the rules, though nobody has it


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serve(Server()) as running:
        yield running


@pytest.fixture
async def fetcher() -> AsyncIterator[SafeFetcher]:
    async with SafeFetcher(LOOPBACK) as opened:
        yield opened


# -- what arrives


async def test_a_file_arrives_from_the_url_as_it_is_written(server: Server, fetcher: SafeFetcher):
    assert await gather(fetcher.fetch(server.url("/a%2Fb%7e?sign=%2F+%3d#part"), max_bytes=MEGABYTE)) == PNG
    (request,) = server.requests
    assert request.raw_path == "/a%2Fb%7e?sign=%2F+%3d"
    assert request.headers["User-Agent"] == "penstock"
    assert request.headers["Accept-Encoding"] == "identity"


async def test_environment_proxies_are_not_used(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with SafeFetcher(LOOPBACK) as fetcher:
        assert await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE)) == PNG


async def test_cookies_are_not_kept(server: Server):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=PNG, headers={"Set-Cookie": "a=b"})

    server.reply = reply
    async with SafeFetcher(LOOPBACK, resolver=Names(["127.0.0.1"])) as fetcher:
        for _ in range(2):
            await gather(fetcher.fetch(server.url(host="files.example"), max_bytes=MEGABYTE))
    assert "Cookie" not in server.requests[1].headers


async def test_a_file_of_exactly_the_cap_arrives(server: Server, fetcher: SafeFetcher):
    assert await gather(fetcher.fetch(server.url(), max_bytes=len(PNG))) == PNG
    with pytest.raises(FileUnreadable):
        await gather(fetcher.fetch(server.url(), max_bytes=len(PNG) - 1))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(server: Server, fetcher: SafeFetcher, status: int):
    server.reply = redirect_to("/second", "third?x=1", server.url("/fourth"), status=status)
    assert await gather(fetcher.fetch(server.url("/first/"), max_bytes=MEGABYTE)) == PNG
    assert [request.path for request in server.requests] == ["/first/", "/second", "/third", "/fourth"]


# -- what is kept from being reached


async def test_loopback_is_not_reached_unless_its_network_is_allowed(server: Server):
    async with SafeFetcher() as fetcher:
        for url in (server.url(), server.url(host="localhost"), "http://127.0.0.1/"):
            with pytest.raises(UrlNotAllowed):
                await gather(fetcher.fetch(url, max_bytes=MEGABYTE))
    assert server.requests == []


async def test_the_dialled_address_is_checked_even_when_nothing_was_resolved(server: Server):
    async with open_session() as session:
        for host in ("127.0.0.1", "[::ffff:127.0.0.1]", "localhost"):
            with pytest.raises(UrlNotAllowed, match="not public"):
                await session.get(server.url(host=host))
    assert server.requests == []


async def test_a_name_that_is_rebound_to_loopback_does_not_reach_it(server: Server):
    names = Names([UNREACHABLE], ["127.0.0.1"])
    async with SafeFetcher(seconds=2.0, resolver=names) as fetcher:
        with pytest.raises(FileFetchFailed):
            await gather(fetcher.fetch("http://rebind.example:8080/", max_bytes=MEGABYTE))
        assert names.asked == ["rebind.example"]  # checked and dialled on one answer
        with pytest.raises(UrlNotAllowed, match="resolves to is not public"):
            await gather(fetcher.fetch("http://rebind.example:8080/", max_bytes=MEGABYTE))
    assert len(names.asked) == 2
    assert server.requests == []


async def test_the_checked_answer_is_the_dialled_one(server: Server):
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    async with SafeFetcher(LOOPBACK, resolver=names) as fetcher:
        assert await gather(fetcher.fetch(server.url(host="files.example"), max_bytes=MEGABYTE)) == PNG
        assert server.requests[0].headers["Host"] == f"files.example:{server.port}"
        with pytest.raises(UrlNotAllowed):
            await gather(fetcher.fetch(server.url(host="files.example"), max_bytes=MEGABYTE))
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "::1"]])
async def test_one_bad_address_refuses_the_whole_name(server: Server, answer: list[str]):
    async with SafeFetcher(LOOPBACK, resolver=Names(answer)) as fetcher:
        with pytest.raises(UrlNotAllowed, match="not public") as refusal:
            await gather(fetcher.fetch(server.url(host="mixed.example"), max_bytes=MEGABYTE))
    assert "10.0.0.1" not in refusal.value.message
    assert server.requests == []


async def test_a_name_outside_the_allowed_networks_may_not_use_any_port():
    async with SafeFetcher(LOOPBACK, resolver=Names([UNREACHABLE])) as fetcher:
        with pytest.raises(UrlNotAllowed, match="port"):
            await gather(fetcher.fetch("http://files.example:5000/", max_bytes=MEGABYTE))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("http://10.0.0.1/", "not public"),
        ("//10.0.0.1/", "not public"),
        ("http://169.254.169.254/latest/meta-data/", "not public"),
        ("http://[::1]/", "not public"),
        ("http://2130706433/", "odd spelling"),
        ("file:///etc/passwd", "scheme"),
        ("http://anna:hunter2@example.com/", "user name"),
        ("/\t/10.0.0.1/", "white space"),
        ("\\\\10.0.0.1", "backslash"),
        ("http://[nonsense/", "not allowed"),
    ],
)
async def test_a_redirect_is_checked_as_the_first_url_was(server: Server, fetcher: SafeFetcher, target: str, why: str):
    server.reply = redirect_to(target)
    with pytest.raises(UrlNotAllowed, match="redirects to one that is not allowed") as refusal:
        await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))
    assert why in refusal.value.message
    assert "hunter2" not in refusal.value.message
    assert len(server.requests) == 1


async def test_a_redirect_to_loopback_does_not_reach_it(server: Server):
    """The first host is allowed, the one it redirects to is not."""
    async with serve(Server()) as target, SafeFetcher((ip_network("127.0.0.1/32"),)) as fetcher:
        server.reply = redirect_to(target.url(host="127.0.0.2"))
        with pytest.raises(UrlNotAllowed, match="not public"):
            await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))
        assert target.requests == []


async def test_a_redirected_name_is_resolved_and_checked_again(server: Server):
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    server.reply = redirect_to("/again")
    async with SafeFetcher(LOOPBACK, resolver=names) as fetcher:
        with pytest.raises(UrlNotAllowed, match="not public"):
            await gather(fetcher.fetch(server.url(host="rebind.example"), max_bytes=MEGABYTE))
    assert len(server.requests) == 1


async def test_a_redirect_loop_ends_after_three(server: Server, fetcher: SafeFetcher):
    server.reply = redirect_to(*["/image.png"] * 100)
    with pytest.raises(FileFetchFailed, match="3 redirects") as failure:
        await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))
    assert failure.value.retryable is False
    assert len(server.requests) == 4


# -- what fails


@pytest.mark.parametrize(("status", "retryable"), [(404, False), (403, False), (206, False), (429, True), (503, True)])
async def test_any_other_status_fails_and_is_told(server: Server, fetcher: SafeFetcher, status: int, retryable: bool):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=PNG)

    server.reply = reply
    with pytest.raises(FileFetchFailed, match=f"status {status}") as failure:
        await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))
    assert failure.value.retryable is retryable
    assert failure.value.code == "file_fetch_failed"


async def test_a_redirect_to_nowhere_fails(server: Server, fetcher: SafeFetcher):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302)

    server.reply = reply
    with pytest.raises(FileFetchFailed, match="302"):
        await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))


async def test_a_content_encoding_is_refused(server: Server, fetcher: SafeFetcher):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=PNG, headers={"Content-Encoding": "gzip"})

    server.reply = reply
    with pytest.raises(FileFetchFailed, match="content-encoding"):
        await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))


async def test_a_dripping_server_is_left_when_the_time_is_over(server: Server):
    async def drip(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.01)

    server.reply = drip
    async with SafeFetcher(LOOPBACK, seconds=0.3) as fetcher, asyncio.timeout(300):
        with pytest.raises(FileFetchFailed, match=r"within 0\.3 seconds") as failure:
            await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))
    assert failure.value.retryable is True


async def test_a_silent_server_is_left_when_the_time_is_over(server: Server):
    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await server.closing.wait()
        return web.Response()

    server.reply = wait
    async with SafeFetcher(LOOPBACK, seconds=0.3) as fetcher, asyncio.timeout(300):
        with pytest.raises(FileFetchFailed, match="seconds"):
            await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))


async def test_too_large_by_header_is_refused_before_the_body(server: Server, fetcher: SafeFetcher):
    async def announce(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(MEGABYTE + 1)})
        await response.prepare(request)
        await server.closing.wait()
        return response

    server.reply = announce
    async with asyncio.timeout(300):
        with pytest.raises(FileUnreadable, match="larger than 1 MB"):
            await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))


async def test_too_large_by_stream_is_refused_while_it_arrives(server: Server, fetcher: SafeFetcher):
    async def pour(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            await response.write(bytes(65536))

    server.reply = pour
    async with asyncio.timeout(300):
        with pytest.raises(FileUnreadable, match="larger than 1 MB"):
            await gather(fetcher.fetch(server.url(), max_bytes=MEGABYTE))


@asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that sends these bytes to every request head, then closes; and the heads it saw."""
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(reply)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", heads


@pytest.mark.parametrize(
    ("reply", "why", "retryable"),
    [
        (b"", "broke", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "broke", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "broke", True),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not valid HTTP", False),
    ],
)
async def test_a_broken_reply_fails_and_is_not_asked_for_again(
    fetcher: SafeFetcher, reply: bytes, why: str, retryable: bool
):
    async with answering(reply) as (url, heads):
        with pytest.raises(FileFetchFailed, match=why) as failure:
            await gather(fetcher.fetch(url, max_bytes=MEGABYTE))
    assert failure.value.retryable is retryable
    assert "127.0.0.1" not in failure.value.message
    assert len(heads) == 1


async def test_the_switch_that_stops_resending_still_exists():
    async with open_session() as session:
        assert "_retry_connection" in session.ATTRS
        assert session._retry_connection is False


async def test_a_refused_connection_fails_without_naming_the_address():
    async with SafeFetcher(LOOPBACK, resolver=Names(["127.0.0.1"])) as fetcher:
        with pytest.raises(FileFetchFailed, match="no connection") as failure:
            await gather(fetcher.fetch(f"http://files.example:{free_port()}/", max_bytes=MEGABYTE))
    assert failure.value.retryable is True
    assert "127.0.0.1" not in failure.value.message


class NoNames(Names):
    async def resolve(self, *_: object, **__: object) -> list[ResolveResult]:
        raise OSError("Name or service not known")


@pytest.mark.parametrize("resolver", [NoNames(), Names([])])
async def test_a_name_that_does_not_resolve_fails(resolver: AbstractResolver):
    async with SafeFetcher(resolver=resolver) as fetcher:
        with pytest.raises(FileFetchFailed, match="could not be resolved"):
            await gather(fetcher.fetch("https://example.com/", max_bytes=MEGABYTE))
