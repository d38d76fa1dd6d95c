"""No URL of a caller reaches what is not public, and what is public arrives whole or fails in plain words."""

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import FileFetchFailed, FileUnreadable, UrlNotAllowed
from penstock.fetch import SafeFetcher, check_url, is_allowed, open_session

LOOPBACK = (IPv4Network("127.0.0.0/8"),)
MEGABYTE = 1024 * 1024
UNREACHABLE = "2fff::1"  # public by the rules, though nobody has it
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))

# -- URLs

REFUSED = [
    ("", "scheme"),
    ("example.com/image.png", "scheme"),
    ("//example.com/image.png", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("ftp://example.com/image.png", "scheme"),
    ("gopher://127.0.0.1:6379/_INFO", "scheme"),
    ("data:image/png;base64,AAAA", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("http://", "no host"),
    ("http:///image.png", "no host"),
    ("http:/example.com", "no host"),
    ("http://:80/", "no host"),
    ("http://anna:hunter2@example.com/", "user name"),
    ("http://anna@example.com/", "user name"),
    ("http://example.com:80@127.0.0.1/", "user name"),
    ("http://anna:hunter2@example.com:x/", "user name"),
    ("http://example.com/a b", "white space"),
    (" http://example.com/", "white space"),
    ("http://example.com/\r\nHost: evil", "white space"),
    ("http://exa\tmple.com/", "white space"),
    ("http://exam\u00adple.com/", "white space"),
    ("http://example.com\\@127.0.0.1/", "backslash"),
    ("http:\\\\127.0.0.1\\", "backslash"),
    ("http://example.com/" + "a" * 2048, "too long"),
    ("http://example.com:22/", "port"),
    ("http://example.com:6379/", "port"),
    ("http://example.com:0/", "port"),
    ("http://example.com:99999/", "port"),
    ("http://example.com:80x/", "port"),
    ("http://8.8.8.8:25/", "port"),
    ("http://127.0.0.1/", "not public"),
    ("http://127.0.0.1./", "not public"),
    ("http://127.0.0.1:8080/", "not public"),
    ("http://0.0.0.0/", "not public"),
    ("http://10.1.2.3/", "not public"),
    ("http://172.31.255.255/", "not public"),
    ("http://192.168.0.1/", "not public"),
    ("http://100.64.0.1/", "not public"),
    ("http://169.254.169.254/latest/meta-data/", "not public"),
    ("http://100.100.100.200/", "not public"),
    ("http://168.63.129.16/", "not public"),
    ("http://198.18.0.1/", "not public"),
    ("http://192.0.2.1/", "not public"),
    ("http://224.0.0.1/", "not public"),
    ("http://255.255.255.255/", "not public"),
    ("http://\uff11\uff12\uff17.0.0.1/", "not public"),
    ("http://127\u30020\u30020\u30021/", "not public"),
    ("http://\u2460\u2461\u2466.0.0.1/", "not public"),
    ("http://[::]/", "not public"),
    ("http://[::1]/", "not public"),
    ("http://[0:0:0:0:0:0:0:1]:8080/", "not public"),
    ("http://[::127.0.0.1]/", "not public"),
    ("http://[::ffff:127.0.0.1]/", "not public"),
    ("http://[::ffff:7f00:1]/", "not public"),
    ("http://[::ffff:8.8.8.8]/", "not public"),
    ("http://[64:ff9b::127.0.0.1]/", "not public"),
    ("http://[64:ff9b::a9fe:a9fe]/", "not public"),
    ("http://[64:ff9b:1::8.8.8.8]/", "not public"),
    ("http://[2002:7f00:1::]/", "not public"),
    ("http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "not public"),
    ("http://[fe80::1]/", "not public"),
    ("http://[fc00::1]/", "not public"),
    ("http://[fd00:ec2::254]/", "not public"),
    ("http://[ff02::1]/", "not public"),
    ("http://[2001:db8::1]/", "not public"),
    ("http://[3fff::1]/", "not public"),
    ("http://2130706433/", "odd spelling"),
    ("http://0x7f000001/", "odd spelling"),
    ("http://017700000001/", "odd spelling"),
    ("http://0177.0.0.1/", "odd spelling"),
    ("http://0x7f.1/", "odd spelling"),
    ("http://127.1/", "odd spelling"),
    ("http://127.0.0.0x1/", "odd spelling"),
    ("http://0/", "odd spelling"),
    ("http://256.256.256.256/", "odd spelling"),
    ("http://1.2.3.4.5/", "odd spelling"),
    ("http://%31%32%37.0.0.1/", "percent"),
    ("http://127.0.0.1%2f.example.com/", "percent"),
    ("http://[fe80::1%25eth0]/", "percent"),
    ("http://localhost/", "local name"),
    ("http://LOCALHOST./", "local name"),
    ("http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3/", "local name"),
    ("http://app.localhost:8080/", "local name"),
    ("http://printer.local/", "local name"),
    ("http://metadata.google.internal/computeMetadata/v1/", "local name"),
    ("http://intranet/", "local name"),
    ("http://[::1/", "not a valid name"),
    ("http://[nonsense]/", "not a valid name"),
    ("http://exa<mple.com/", "not a valid name"),
    ("http://example..com/", "not a valid name"),
    ("http://localhost../", "not a valid name"),
    ("http://\u2100.example.com/", "not a valid name"),
    ("http://" + "a" * 64 + ".com/", "not a valid name"),
    ("http://" + "a." * 130 + "com/", "not a valid name"),
]


@pytest.mark.parametrize(("url", "why"), REFUSED)
def test_a_hostile_url_is_refused_saying_why(url: str, why: str):
    with pytest.raises(UrlNotAllowed) as refusal:
        check_url(url)
    assert refusal.value.code == "url_not_allowed"
    assert why in refusal.value.message
    assert "anna" not in refusal.value.message
    assert "hunter2" not in refusal.value.message


@pytest.mark.parametrize(
    ("url", "as_fetched"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:8443/A?b=c#part", "https://example.com:8443/A?b=c"),
        ("http://example.com./image.png", "http://example.com/image.png"),
        ("http://my_bucket.example.com/", "http://my_bucket.example.com/"),
        ("https://m\u00fcnchen.example/stra\u00dfe", "https://xn--mnchen-3ya.example/stra%C3%9Fe"),
        ("https://\u4f8b\u3048.jp/", "https://xn--r8jz45g.jp/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("https://example.com/a%2Fb%7e?sign=%2F+%3d&x='", "https://example.com/a%2Fb%7e?sign=%2F+%3d&x='"),
    ],
)
def test_a_public_url_is_told_as_it_will_be_fetched(url: str, as_fetched: str):
    assert check_url(url) == as_fetched
    assert check_url(as_fetched) == as_fetched


def test_a_host_in_an_allowed_network_may_use_any_port():
    assert check_url("http://127.0.0.1:5000/", LOOPBACK) == "http://127.0.0.1:5000/"
    assert check_url("http://localhost:5000/", LOOPBACK) == "http://localhost:5000/"
    with pytest.raises(UrlNotAllowed, match="not public"):
        check_url("http://10.0.0.1/", LOOPBACK)
    with pytest.raises(UrlNotAllowed, match="port"):
        check_url("http://8.8.8.8:5000/", LOOPBACK)


@settings(deadline=None)
@given(st.text() | st.text().map("http://".__add__))
def test_any_text_is_either_ascii_and_stable_or_refused(url: str):
    try:
        checked = check_url(url)
    except UrlNotAllowed:
        return
    assert checked.isascii()
    assert check_url(checked) == checked


# -- addresses


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::8.8.8.8", "100.63.255.255"])
def test_public_addresses_are_allowed(address: str):
    assert is_allowed(ip_address(address))


@pytest.mark.parametrize(
    ("address", "network", "allowed"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("fd00::1", "fd00::/8", True),
        ("64:ff9b::10.1.2.3", "10.0.0.0/8", True),
        ("192.168.0.1", "10.0.0.0/8", False),
        ("::ffff:10.1.2.3", "10.0.0.0/8", False),
        ("::ffff:10.1.2.3", "::/0", False),
        ("100.100.100.200", "100.64.0.0/10", False),
        ("169.254.169.254", "0.0.0.0/0", False),
        ("64:ff9b::169.254.169.254", "::/0", False),
        ("fd00:ec2::254", "fd00::/8", False),
        ("fd00:ec2::254%eth0", "fd00::/8", False),
        ("169.254.169.254", "169.254.169.254/32", True),
    ],
)
def test_a_named_network_is_allowed_but_no_metadata_in_it(address: str, network: str, allowed: bool):
    assert is_allowed(ip_address(address), (ip_network(network),)) is allowed


SPELLINGS: dict[str, Callable[[IPv4Address], str]] = {
    "dotted": str,
    "decimal": lambda address: str(int(address)),
    "hex": lambda address: hex(int(address)),
    "dotted hex": lambda address: ".".join(map(hex, address.packed)),
    "octal": lambda address: f"0{int(address):o}",
    "dotted octal": lambda address: ".".join(f"0{part:o}" for part in address.packed),
    "short": lambda address: f"{address.packed[0]}.{int(address) % 2**24}",
    "fullwidth": lambda address: "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else "\u3002" for c in str(address)),
    "mapped": lambda address: f"[::ffff:{address}]",
    "compatible": lambda address: f"[::{address}]",
    "NAT64": lambda address: f"[64:ff9b::{address}]",
    "6to4": lambda address: f"[{IPv6Address(0x2002 << 112 | int(address) << 80 | 1)}]",
    "Teredo": lambda address: f"[{IPv6Address(0x20010000 << 96 | (int(address) ^ 0xFFFFFFFF))}]",
}
SPECIAL = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]


@pytest.mark.parametrize("network", SPECIAL)
@pytest.mark.parametrize("spelling", SPELLINGS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_no_spelling_of_a_special_address_is_allowed(spelling: str, network: str, data: st.DataObject):
    address = data.draw(st.ip_addresses(network=network))
    assert isinstance(address, IPv4Address)
    assert not is_allowed(address)
    with pytest.raises(UrlNotAllowed):
        check_url(f"http://{SPELLINGS[spelling](address)}/")


@settings(deadline=None)
@given(st.ip_addresses())
def test_what_is_allowed_is_global_by_the_standard_library_too(address):
    if is_allowed(address) and address not in ip_network("64:ff9b::/96"):
        assert address.is_global
        assert not address.is_multicast


# -- servers to fetch from


class Names(AbstractResolver):
    """Answers each look-up with the next of the given answers, then the last one for ever."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_UNSPEC) -> list[ResolveResult]:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(host)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0) for address in answer
        ]

    async def close(self) -> None:
        """Nothing is held open."""


class Server:
    """A real server on loopback that remembers what reached it."""

    def __init__(self) -> None:
        self.requests: list[web.BaseRequest] = []
        self.reply: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]] = send_image
        self.port = 0
        self.closing = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        return await self.reply(request)

    def url(self, path: str = "/image.png", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


async def send_image(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=PNG, content_type="image/png")


@asynccontextmanager
async def serve(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        server.closing.set()
        await runner.cleanup()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serve(Server()) as running:
        yield running


@pytest.fixture
async def fetcher() -> AsyncIterator[SafeFetcher]:
    async with SafeFetcher(LOOPBACK) as opened:
        yield opened


def redirect_to(*targets: str, status: int = 302) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Redirect to each target in turn, then send the image."""
    waiting = list(targets)

    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        if waiting:
            return web.Response(status=status, headers={"Location": waiting.pop(0)})
        return await send_image(request)

    return reply


# -- what arrives


async def test_a_file_arrives_with_its_content_type_and_url(server: Server, fetcher: SafeFetcher):
    fetched = await fetcher.fetch(server.url("/a%2Fb%7e?sign=%2F+%3d#part"), max_bytes=MEGABYTE)
    assert fetched.body == PNG
    assert fetched.content_type == "image/png"
    assert fetched.url == server.url("/a%2Fb%7e?sign=%2F+%3d")
    (request,) = server.requests
    assert request.raw_path == "/a%2Fb%7e?sign=%2F+%3d"
    assert request.headers["User-Agent"] == "penstock"
    assert request.headers["Accept-Encoding"] == "identity"


async def test_environment_proxies_are_not_used(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with SafeFetcher(LOOPBACK) as fetcher:
        assert (await fetcher.fetch(server.url(), max_bytes=MEGABYTE)).body == PNG


async def test_a_content_type_is_told_only_where_it_is_plain_text(server: Server, fetcher: SafeFetcher):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=PNG, headers={"Content-Type": "image/p\u00f1g"})

    server.reply = reply
    assert (await fetcher.fetch(server.url(), max_bytes=MEGABYTE)).content_type is None


async def test_cookies_are_not_kept(server: Server):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=PNG, headers={"Set-Cookie": "a=b"})

    server.reply = reply
    async with SafeFetcher(LOOPBACK, resolver=Names(["127.0.0.1"])) as fetcher:
        for _ in range(2):
            await fetcher.fetch(server.url(host="files.example"), max_bytes=MEGABYTE)
    assert "Cookie" not in server.requests[1].headers


async def test_a_file_of_exactly_the_cap_arrives(server: Server, fetcher: SafeFetcher):
    assert (await fetcher.fetch(server.url(), max_bytes=len(PNG))).body == PNG
    with pytest.raises(FileUnreadable):
        await fetcher.fetch(server.url(), max_bytes=len(PNG) - 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(server: Server, fetcher: SafeFetcher, status: int):
    server.reply = redirect_to("/second", "third?x=1", server.url("/fourth"), status=status)
    fetched = await fetcher.fetch(server.url("/first/"), max_bytes=MEGABYTE)
    assert fetched.body == PNG
    assert fetched.url == server.url("/fourth")
    assert [request.path for request in server.requests] == ["/first/", "/second", "/third", "/fourth"]


# -- what is kept from being reached


async def test_loopback_is_not_reached_unless_its_network_is_allowed(server: Server):
    async with SafeFetcher() as fetcher:
        for url in (server.url(), server.url(host="localhost"), "http://127.0.0.1/"):
            with pytest.raises(UrlNotAllowed):
                await fetcher.fetch(url, max_bytes=MEGABYTE)
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
            await fetcher.fetch("http://rebind.example:8080/", max_bytes=MEGABYTE)
        assert names.asked == ["rebind.example"]  # checked and dialled on one answer
        with pytest.raises(UrlNotAllowed, match="resolves to is not public"):
            await fetcher.fetch("http://rebind.example:8080/", max_bytes=MEGABYTE)
    assert len(names.asked) == 2
    assert server.requests == []


async def test_the_checked_answer_is_the_dialled_one(server: Server):
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    async with SafeFetcher(LOOPBACK, resolver=names) as fetcher:
        fetched = await fetcher.fetch(server.url(host="files.example"), max_bytes=MEGABYTE)
        assert fetched.body == PNG
        assert server.requests[0].headers["Host"] == f"files.example:{server.port}"
        with pytest.raises(UrlNotAllowed):
            await fetcher.fetch(server.url(host="files.example"), max_bytes=MEGABYTE)
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "::1"]])
async def test_one_bad_address_refuses_the_whole_name(server: Server, answer: list[str]):
    async with SafeFetcher(LOOPBACK, resolver=Names(answer)) as fetcher:
        with pytest.raises(UrlNotAllowed, match="not public") as refusal:
            await fetcher.fetch(server.url(host="mixed.example"), max_bytes=MEGABYTE)
    assert "10.0.0.1" not in refusal.value.message
    assert server.requests == []


async def test_a_name_outside_the_allowed_networks_may_not_use_any_port():
    async with SafeFetcher(LOOPBACK, resolver=Names([UNREACHABLE])) as fetcher:
        with pytest.raises(UrlNotAllowed, match="port"):
            await fetcher.fetch("http://files.example:5000/", max_bytes=MEGABYTE)


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
        await fetcher.fetch(server.url(), max_bytes=MEGABYTE)
    assert why in refusal.value.message
    assert "hunter2" not in refusal.value.message
    assert len(server.requests) == 1


async def test_a_redirect_to_loopback_does_not_reach_it(server: Server):
    """The first host is allowed, the one it redirects to is not."""
    async with serve(Server()) as target, SafeFetcher((ip_network("127.0.0.1/32"),)) as fetcher:
        server.reply = redirect_to(target.url(host="127.0.0.2"))
        with pytest.raises(UrlNotAllowed, match="not public"):
            await fetcher.fetch(server.url(), max_bytes=MEGABYTE)
        assert target.requests == []


async def test_a_redirected_name_is_resolved_and_checked_again(server: Server):
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    server.reply = redirect_to("/again")
    async with SafeFetcher(LOOPBACK, resolver=names) as fetcher:
        with pytest.raises(UrlNotAllowed, match="not public"):
            await fetcher.fetch(server.url(host="rebind.example"), max_bytes=MEGABYTE)
    assert len(server.requests) == 1


async def test_a_redirect_loop_ends_after_three(server: Server, fetcher: SafeFetcher):
    server.reply = redirect_to(*["/image.png"] * 100)
    with pytest.raises(FileFetchFailed, match="3 redirects") as failure:
        await fetcher.fetch(server.url(), max_bytes=MEGABYTE)
    assert failure.value.retryable is False
    assert len(server.requests) == 4


# -- what fails


@pytest.mark.parametrize(("status", "retryable"), [(404, False), (403, False), (206, False), (429, True), (503, True)])
async def test_any_other_status_fails_and_is_told(server: Server, fetcher: SafeFetcher, status: int, retryable: bool):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=PNG)

    server.reply = reply
    with pytest.raises(FileFetchFailed, match=f"status {status}") as failure:
        await fetcher.fetch(server.url(), max_bytes=MEGABYTE)
    assert failure.value.retryable is retryable
    assert failure.value.code == "file_fetch_failed"


async def test_a_redirect_to_nowhere_fails(server: Server, fetcher: SafeFetcher):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302)

    server.reply = reply
    with pytest.raises(FileFetchFailed, match="302"):
        await fetcher.fetch(server.url(), max_bytes=MEGABYTE)


async def test_a_content_encoding_is_refused(server: Server, fetcher: SafeFetcher):
    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=PNG, headers={"Content-Encoding": "gzip"})

    server.reply = reply
    with pytest.raises(FileFetchFailed, match="content-encoding"):
        await fetcher.fetch(server.url(), max_bytes=MEGABYTE)


async def test_a_dripping_server_is_left_when_the_time_is_over(server: Server):
    async def drip(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.01)

    server.reply = drip
    async with SafeFetcher(LOOPBACK, seconds=0.3) as fetcher, asyncio.timeout(5):
        with pytest.raises(FileFetchFailed, match=r"within 0\.3 seconds") as failure:
            await fetcher.fetch(server.url(), max_bytes=MEGABYTE)
    assert failure.value.retryable is True


async def test_a_silent_server_is_left_when_the_time_is_over(server: Server):
    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await server.closing.wait()
        return web.Response()

    server.reply = wait
    async with SafeFetcher(LOOPBACK, seconds=0.3) as fetcher, asyncio.timeout(5):
        with pytest.raises(FileFetchFailed, match="seconds"):
            await fetcher.fetch(server.url(), max_bytes=MEGABYTE)


async def test_too_large_by_header_is_refused_before_the_body(server: Server, fetcher: SafeFetcher):
    async def announce(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(MEGABYTE + 1)})
        await response.prepare(request)
        await server.closing.wait()
        return response

    server.reply = announce
    async with asyncio.timeout(5):
        with pytest.raises(FileUnreadable, match="larger than 1 MB"):
            await fetcher.fetch(server.url(), max_bytes=MEGABYTE)


async def test_too_large_by_stream_is_refused_while_it_arrives(server: Server, fetcher: SafeFetcher):
    async def pour(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            await response.write(bytes(65536))

    server.reply = pour
    async with asyncio.timeout(5):
        with pytest.raises(FileUnreadable, match="larger than 1 MB"):
            await fetcher.fetch(server.url(), max_bytes=MEGABYTE)


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
            await fetcher.fetch(url, max_bytes=MEGABYTE)
    assert failure.value.retryable is retryable
    assert "127.0.0.1" not in failure.value.message
    assert len(heads) == 1


async def test_the_switch_that_stops_resending_still_exists():
    async with open_session() as session:
        assert "_retry_connection" in session.ATTRS
        assert session._retry_connection is False


async def test_a_refused_connection_fails_without_naming_the_address():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with SafeFetcher(LOOPBACK, resolver=Names(["127.0.0.1"])) as fetcher:
        with pytest.raises(FileFetchFailed, match="no connection") as failure:
            await fetcher.fetch(f"http://files.example:{port}/", max_bytes=MEGABYTE)
    assert failure.value.retryable is True
    assert "127.0.0.1" not in failure.value.message


class NoNames(Names):
    async def resolve(self, *_: object, **__: object) -> list[ResolveResult]:
        raise OSError("Name or service not known")


@pytest.mark.parametrize("resolver", [NoNames(), Names([])])
async def test_a_name_that_does_not_resolve_fails(resolver: AbstractResolver):
    async with SafeFetcher(resolver=resolver) as fetcher:
        with pytest.raises(FileFetchFailed, match="could not be resolved"):
            await fetcher.fetch("https://example.com/", max_bytes=MEGABYTE)


# -- TLS


async def test_a_server_without_tls_fails(server: Server, fetcher: SafeFetcher):
    with pytest.raises(FileFetchFailed, match="TLS") as failure:
        await fetcher.fetch(server.url().replace("http:", "https:"), max_bytes=MEGABYTE)
    assert failure.value.retryable is False
    assert "127.0.0.1" not in failure.value.message


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for files.example that signs itself, in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    subject = ["-subj", "/CN=files.example", "-addext", "subjectAltName=DNS:files.example"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command = [openssl, "req", "-x509", *curve, "-nodes", "-keyout", made, "-out", f"{made}.crt", *subject]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603  # every word of it is ours
    made.write_text(made.read_text() + Path(f"{made}.crt").read_text())
    return made


@pytest.fixture
async def tls_server(certificate: Path) -> AsyncIterator[Server]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with serve(Server(), context) as running:
        yield running


@asynccontextmanager
async def trusting(certificate: Path) -> AsyncIterator[SafeFetcher]:
    tls = ssl.create_default_context(cafile=certificate)
    async with SafeFetcher(LOOPBACK, resolver=Names(["127.0.0.1"]), tls=tls) as fetcher:
        yield fetcher


async def test_tls_is_verified_by_name_and_authority(tls_server: Server, certificate: Path):
    async with trusting(certificate) as fetcher:
        url = f"https://files.example:{tls_server.port}/"
        assert (await fetcher.fetch(url, max_bytes=MEGABYTE)).body == PNG
        with pytest.raises(FileFetchFailed, match="TLS"):
            await fetcher.fetch(url.replace("files.", "other."), max_bytes=MEGABYTE)
    async with SafeFetcher(LOOPBACK, resolver=Names(["127.0.0.1"])) as fetcher:
        with pytest.raises(FileFetchFailed, match="TLS"):
            await fetcher.fetch(url, max_bytes=MEGABYTE)
    assert len(tls_server.requests) == 1


async def test_a_redirect_from_https_to_http_is_refused(server: Server, tls_server: Server, certificate: Path):
    tls_server.reply = redirect_to(server.url())
    async with trusting(certificate) as fetcher:
        with pytest.raises(UrlNotAllowed, match="from https to http"):
            await fetcher.fetch(f"https://files.example:{tls_server.port}/", max_bytes=MEGABYTE)
    assert server.requests == []
