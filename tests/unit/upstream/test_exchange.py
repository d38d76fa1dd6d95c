"""What each failure between us and a vendor means: not sent, reply lost or unclear; and what stays in the house."""

import asyncio
import base64
import email
import email.policy
import json
import logging
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from loopback import PNG, Server, redirect_to, serve
from ports import free_port
from vendors.double import Double, double_of, drip, drop, drop_after, hang, raw, reply, reset

from penstock.domain.files import StoredFile
from penstock.domain.job_errors import BadOutput
from penstock.upstream.exchange import MAX_REPLY_BYTES, TROUBLE, Exchange, NotSent, ReplyLost, open_http_client
from penstock.upstream.redaction import Redactor
from penstock.vendor_api.generation import Call, DataUri, Flow, Form, Order, Reply, Unclear, VendorFolders
from penstock.vendors.sim import Sim, SimOptions

API_KEY = "vendor-secret-0123456789"
ORDER = Order("job_1-1", "sim_text_to_video", {"resolution": "720p", "aspectRatio": "16:9", "durationSeconds": 1})


def ask(*calls: Call) -> Flow[list[Reply]]:
    """A flow that makes these calls."""
    replies: list[Reply] = []
    for call in calls:
        replies.append((yield call))  # noqa: PERF401  a comprehension cannot yield
    return replies


def sim(url: str, folder: Path = Path()) -> Sim:
    return Sim(SimOptions(type="sim", base_url=url, api_key=API_KEY), VendorFolders(folder, folder))


async def no_file(file: StoredFile) -> bytes:
    raise AssertionError(f"{file} is not asked for here")


class Line:
    """One vendor and the exchange that speaks to it."""

    def __init__(self, vendor: Sim, *networks: str) -> None:
        self.vendor = vendor
        allowed = [ip_network(network) for network in networks]
        self.exchange = Exchange(no_file, partial(open_http_client, lambda: allowed))

    async def drive(self, flow: Flow[Any]) -> Any:
        return await self.exchange.drive("far", self.vendor, "test", flow)

    async def get(self, path: str = "/orders/x", seconds: float = 5) -> Reply:
        return (await self.drive(ask(Call("GET", path, seconds=seconds))))[0]

    async def post(self, seconds: float = 5) -> Reply:
        return (await self.drive(ask(Call("POST", "/orders/x/cancel", json={}, seconds=seconds))))[0]

    async def download(self, path: str = "/orders/x/outputs/primary", seconds: float = 5, **headers: str) -> bytes:
        call = Call("GET", path, headers, seconds=seconds)
        async with self.exchange.download("far", self.vendor, call) as chunks:
            return b"".join([chunk async for chunk in chunks])


@pytest.fixture
async def double(tmp_path: Path) -> AsyncGenerator[Double]:
    async with double_of(tmp_path) as double:
        yield double


@pytest.fixture
async def line(double: Double) -> AsyncGenerator[Line]:
    line = Line(sim(double.url))
    yield line
    await line.exchange.close()


@pytest.fixture
async def near(double: Double) -> AsyncGenerator[Line]:
    """The vendor may lead to other hosts of this machine: the operator has named its network."""
    line = Line(sim(double.url), "127.0.0.0/8", "::1/128")
    yield line
    await line.exchange.close()


# -- a call that was never made


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "http://nowhere.invalid", "http://[::1", "nonsense"])
async def test_what_cannot_be_connected_was_not_sent(url):
    line = Line(sim(url.format(port=free_port())))
    with pytest.raises(NotSent):
        await line.post()
    await line.exchange.close()


# -- a call whose answer is lost

LOST = {
    "closed before the vendor did anything": drop,
    "closed after the vendor did it": drop_after,
    "reset": reset,
    "no answer": hang,
    "not HTTP": raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "cut in the head": raw(b"HTTP/1.1 200 OK\r\ncontent-le"),
    "cut in the body": raw(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"id": "x"'),
    "cut between chunks": raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n"),
    "dripping without end": drip(0.02),
}


@pytest.mark.parametrize("fault", LOST)
async def test_a_broken_answer_is_lost_and_nothing_is_sent_again(double, line, fault):
    double.fault(LOST[fault], method="POST", times=9)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(ReplyLost):
        await line.post(seconds=1)
    assert double.count("POST") == 1
    assert asyncio.get_running_loop().time() - begun < 50


@pytest.mark.parametrize("fault", ["closed before the vendor did anything", "reset", "cut in the head"])
async def test_not_even_a_get_on_a_used_connection_is_sent_again(double, line, fault):
    assert (await line.get()).status == 404
    double.fault(LOST[fault], times=9)
    with pytest.raises(ReplyLost):
        await line.get()
    assert double.count("GET") == 2


async def test_the_next_call_after_a_loss_is_a_fresh_one(double, line):
    double.fault(drop)
    with pytest.raises(ReplyLost):
        await line.get()
    assert (await line.get()).status == 404


async def test_a_vendor_that_comes_back_is_found_again(double, line):
    await line.get()
    await double.hide()
    with pytest.raises(TROUBLE):
        await line.get()
    with pytest.raises(NotSent):
        await line.get()
    await double.listen()
    assert (await line.get()).status == 404


# -- an answer that says nothing certain

UNCLEAR = {
    "a proxy's page": reply(502, b"<html>Bad Gateway</html>", content_type="text/html"),
    "a page with 200": reply(200, b"<html>Hello</html>", content_type="text/html"),
    "nothing": reply(200),
    "cut JSON": reply(200, b'{"status": "succ'),
    "not UTF-8": reply(200, b'{"status": "\xff\xfe"}'),
    "a list": reply(200, b"[]"),
    "null": reply(200, b"null"),
    "a number": reply(200, b"7"),
    "no fields": reply(200, b"{}"),
    "fields of other types": reply(200, b'{"status": "succeeded", "outputs": 7, "orders": 7, "id": []}'),
    "outputs of other kinds": reply(200, b'{"status": "succeeded", "orders": [7], "outputs": [{"kind": "song"}]}'),
    "deep": reply(200, b"[" * 100_000),
    "an overload": reply(503, b'{"error": {"code": "overloaded"}}', retry_after="1"),
    "another status": reply(418, b"{}"),
    "a redirect": reply(302, location="/orders/elsewhere"),
    "a permanent redirect": reply(308, location="/orders/elsewhere"),
}


@pytest.mark.parametrize("verb", ["submit", "find", "poll"])
@pytest.mark.parametrize("fault", UNCLEAR)
async def test_an_answer_of_another_shape_is_unclear(double, line, fault, verb):
    double.fault(UNCLEAR[fault], method="POST" if verb == "submit" else "GET", times=9)
    flow = line.vendor.poll({"id": "x"}) if verb == "poll" else getattr(line.vendor, verb)(ORDER)
    with pytest.raises(Unclear):
        await line.drive(flow)
    assert len(double.seen) == 1  # neither sent again nor redirected


async def test_a_reply_beyond_all_measure_is_unclear(double, line):
    double.fault(drip(0, b" " * (1 << 20)))
    with pytest.raises(Unclear, match="too large"):
        await line.get(seconds=60)
    assert MAX_REPLY_BYTES < 1 << 30


async def test_a_flow_may_make_several_calls(double, line):
    replies = await line.drive(ask(Call("GET", "/a"), Call("GET", double.url + "/b")))
    assert [given.status for given in replies] == [404, 404]
    assert [seen.path for seen in double.seen] == ["/a", "/b"]


# -- what goes out


async def test_what_is_sent_is_what_the_call_says_and_no_more(double, line):
    double.fault(reply(200, b"{}", set_cookie="session=1"))
    await line.get()
    await line.drive(ask(Call("POST", "/orders/x/cancel", {"x-own": "1"}, {"ü": [1.5, None]})))
    sent = double.seen[1]
    assert json.loads(sent.body) == {"ü": [1.5, None]}
    headers = {name.lower(): value for name, value in sent.headers.items()}
    assert headers.keys() <= {
        "host",
        "accept",
        "accept-encoding",
        "content-length",
        "content-type",
        "user-agent",
        "x-own",
    }
    assert (headers["content-type"], headers["user-agent"], headers["x-own"]) == ("application/json", "penstock", "1")


async def test_the_vendors_credential_is_sent_and_never_logged(double, line, caplog):
    caplog.set_level(logging.DEBUG)
    for fault in (drop, reset, reply(401, b"{}"), reply(502, b"<html>"), reply(200, b"null")):
        double.fault(fault, method="POST")
        with suppress(*TROUBLE):
            await line.drive(line.vendor.submit(ORDER))
        double.faults.clear()
    assert {seen.headers["Authorization"] for seen in double.seen} == {f"Bearer {API_KEY}"}
    assert len(double.seen) == 5
    assert API_KEY not in caplog.text
    assert "vendor call failed" in caplog.text


# -- downloads

CUT = {
    "short of its length": raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"),
    "cut between chunks": LOST["cut between chunks"],
    "no answer": hang,
    "gone": reply(404, b"gone"),
    "a part": reply(206, b"part"),
    "a redirect to nowhere": reply(302, location="http://[::1"),
}


@pytest.mark.parametrize("fault", CUT)
async def test_a_download_is_whole_or_trouble(double, line, fault):
    double.fault(CUT[fault], times=9)
    with pytest.raises(TROUBLE):
        await line.download(seconds=1)
    assert len(double.seen) == 1


async def test_a_download_may_take_longer_than_a_call(double, line):
    async def slowly(_double, request):
        response = web.StreamResponse(headers={"content-length": "4"})
        await response.prepare(request)
        for _ in range(4):
            await asyncio.sleep(0.8)
            await response.write(b"x")
        return response

    double.fault(slowly)
    assert await line.download(seconds=3) == b"xxxx"


async def test_who_reads_a_download_is_not_blamed_on_the_vendor(double, line):
    double.fault(reply(200, b"bytes"))
    with pytest.raises(LookupError, match="mine"):
        async with line.exchange.download("far", line.vendor, Call("GET", "/x")):
            raise LookupError("mine")


# -- redirects of downloads


def redirect(location: str, status: int = 302) -> Any:
    return reply(status, b"", location=location)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_download_goes_where_it_is_sent_with_the_credential_within_one_origin(double, line, status):
    double.fault(redirect("../b/file%2Fone?sig=%2F+x", status))
    double.fault(redirect(f"{double.url}/c?x=1", status))
    double.fault(reply(200, b"bytes"))
    assert await line.download("/a/x", authorization=f"Bearer {API_KEY}") == b"bytes"
    assert [seen.path for seen in double.seen] == ["/a/x", "/b/file%2Fone?sig=%2F+x", "/c?x=1"]
    assert {seen.headers["Authorization"] for seen in double.seen} == {f"Bearer {API_KEY}"}


async def test_a_credential_goes_to_no_other_origin_and_does_not_come_back(double, near, tmp_path):
    async with double_of(tmp_path / "other") as other:
        double.fault(redirect(f"{other.url}/there"))
        other.fault(redirect(f"{double.url}/back"))
        double.fault(reply(200, b"bytes"), path="/back")
        given_headers = {"authorization": f"Bearer {API_KEY}", "x-api-key": API_KEY}
        assert await near.download("/a", **given_headers) == b"bytes"
        assert API_KEY in str(double.seen[0].headers)
        assert API_KEY not in str([*other.seen, double.seen[1]])


async def test_nor_to_another_name_of_the_same_host(double, near):
    double.fault(redirect(f"http://localhost:{double.port}/there"))
    double.fault(reply(200, b"bytes"), path="/there")
    assert await near.download("/a", authorization=f"Bearer {API_KEY}") == b"bytes"
    assert "Authorization" not in double.seen[1].headers


ODD_PLACES = {
    "nothing": "",
    "a file": "file:///etc/passwd",
    "another scheme": "ftp://127.0.0.1/x",
    "a script": "javascript:alert(1)",
    "a data URI": "data:text/plain,x",
    "half an address": "http://[::1",
    "no host": "http:///x",
    "a port that is none": "http://127.0.0.1:99999/x",
    "a port of letters": "http://127.0.0.1:http/x",
}


@pytest.mark.parametrize("place", ODD_PLACES)
async def test_a_redirect_to_where_nothing_can_be_is_trouble(double, line, place):
    double.fault(redirect(ODD_PLACES[place]), times=99)
    with pytest.raises(Unclear):
        await line.download("/a")
    assert len(double.seen) <= 6


async def test_a_redirect_whose_bytes_are_no_text_is_trouble(double, line):
    double.fault(raw(b"HTTP/1.1 302 Found\r\nlocation: /\xff\xfe\r\ncontent-length: 0\r\n\r\n"), times=9)
    with pytest.raises(TROUBLE):
        await line.download("/a")


@pytest.mark.parametrize("times", [5, 6])
async def test_redirects_without_end_end(double, line, times):
    double.fault(redirect("/again"), times=times)
    double.fault(reply(200, b"bytes"), path="/again")
    if times == 5:
        assert await line.download("/a") == b"bytes"
    else:
        with pytest.raises(Unclear, match="too many redirects"):
            await line.download("/a")
    assert len(double.seen) == 6


@pytest.fixture
async def tls_server(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Server]:
    """A server behind https whose authority is trusted here."""
    authority = trustme.CA()
    context, trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(trust)
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trust)
    async with serve(Server(), context) as running:
        yield running


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
async def test_a_download_never_leaves_https(double, tls_server, scheme):
    line = Line(sim(f"{scheme}://127.0.0.1:{tls_server.port}"))
    tls_server.reply = redirect_to("/twice", f"{double.url}/plain")
    with pytest.raises(Unclear, match="not allowed"):
        await line.download("/a")
    assert (len(tls_server.requests), double.seen) == (2, [])
    await line.exchange.close()


async def test_but_may_come_to_it(double, near, tls_server):
    double.fault(redirect(f"https://127.0.0.1:{tls_server.port}/x"))
    assert await near.download("/a") == PNG


async def test_a_vendor_out_in_the_world_leads_nobody_inside(double, monkeypatch):
    line = Line(sim("https://vendor.example"))
    for call in (Call("GET", f"{double.url}/x"), Call("GET", f"http://localhost:{double.port}/x")):
        with pytest.raises(TROUBLE):
            async with line.exchange.download("far", line.vendor, call):
                pass
        with pytest.raises(TROUBLE):
            await line.drive(ask(call))
    assert double.seen == []
    await line.exchange.close()


SPELLINGS = {
    "another port": "http://127.0.0.1:{port}/x",
    "another address": "http://127.0.0.2:{port}/x",
    "a name": "http://localhost:{port}/x",
    "a number": "http://2130706433:{port}/x",
    "octal": "http://0177.0.0.1:{port}/x",
    "hexadecimal": "http://0x7f.1:{port}/x",
    "mapped": "http://[::ffff:127.0.0.1]:{port}/x",
    "NAT64": "http://[64:ff9b::7f00:1]:{port}/x",
    "any address": "http://0.0.0.0:{port}/x",
    "metadata": "http://169.254.169.254/latest/meta-data",
    "metadata, mapped": "http://[::ffff:169.254.169.254]/latest/meta-data",
    "a private network": "http://10.255.255.1/x",
}


@pytest.fixture
async def neighbour(tmp_path: Path) -> AsyncGenerator[Double]:
    """A server beside the vendor that is not the vendor's."""
    async with double_of(tmp_path / "neighbour") as neighbour:
        neighbour.fault(reply(200, b"inside"), times=99)
        yield neighbour


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_vendor_inside_redirects_to_no_other_private_address(double, line, neighbour, spelling, caplog):
    url = SPELLINGS[spelling].format(port=neighbour.port)
    double.fault(redirect(url))
    with pytest.raises(TROUBLE):
        await line.download("/a")
    double.fault(redirect("/b"))
    double.fault(redirect(url), path="/b")
    with pytest.raises(TROUBLE):
        await line.download("/a")
    assert neighbour.seen == []
    assert "fetch.allow_networks" in caplog.text or spelling in ("a number", "octal"), "these are no addresses at all"


@pytest.mark.parametrize("spelling", [spelling for spelling in SPELLINGS if spelling != "another port"])
async def test_nor_does_it_name_one(line, neighbour, spelling):
    url = SPELLINGS[spelling].format(port=neighbour.port)
    with pytest.raises(TROUBLE):
        await line.download(url)
    for call in (Call("GET", url), Call("PUT", url, body=b"picture", prepares=True), Call("POST", url, json={})):
        with pytest.raises(TROUBLE):
            await line.drive(ask(call))
    assert neighbour.seen == []


async def test_it_names_another_port_of_its_own_host_which_leads_nowhere_else_and_is_shown_no_credential(
    double, line, neighbour, tmp_path
):
    """Such as a server for its files beside it."""
    url = f"http://127.0.0.1:{neighbour.port}/x"
    assert await line.download(url, authorization=f"Bearer {API_KEY}") == b"inside"
    assert API_KEY not in str(neighbour.seen)
    neighbour.faults.clear()
    neighbour.fault(redirect("/again"))
    neighbour.fault(reply(200, b"again"), path="/again")
    assert await line.download(url) == b"again"
    async with double_of(tmp_path / "third") as third:
        neighbour.fault(redirect(f"{third.url}/x"))
        with pytest.raises(Unclear, match="may not be reached"):
            await line.download(url)
        assert third.seen == []
        neighbour.fault(redirect(f"{double.url}/x"))
        double.fault(reply(200, b"back"), path="/x")
        assert await line.download(url) == b"back"


async def test_it_may_where_the_operator_named_the_network_and_is_shown_no_credential(double, near, neighbour):
    headers = {"Authorization": f"Bearer {API_KEY}", "X-API-Key": API_KEY, "x-goog-api-key": API_KEY, "Cookie": API_KEY}
    url = f"http://127.0.0.1:{neighbour.port}/x"
    assert await near.download(url, **headers) == b"inside"
    await near.drive(ask(Call("POST", url, {**headers, "x-own": "1"}, json={})))
    assert [seen.headers.get("x-own") for seen in neighbour.seen] == [None, "1"]
    assert API_KEY not in str(neighbour.seen)
    await near.drive(ask(Call("POST", f"{double.url}/x", headers, json={})))
    assert API_KEY in str(double.seen), "its own host is shown them"


async def test_a_wide_network_does_not_open_the_metadata_of_a_cloud(double):
    line = Line(sim(double.url), "169.254.0.0/16")
    double.fault(redirect("http://169.254.169.254/latest/meta-data"))
    with pytest.raises(Unclear, match="may not be reached"):
        await line.download("/a")
    await line.exchange.close()


async def test_a_name_with_even_one_private_address_is_not_reached(double, line, neighbour, monkeypatch):
    look_up = socket.getaddrinfo

    def lie(host: Any, port: Any, *options: Any, **more: Any) -> Any:
        if host != "cdn.example":
            return look_up(host, port, *options, **more)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", port)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", lie)
    double.fault(redirect(f"http://cdn.example:{neighbour.port}/x"))
    with pytest.raises(Unclear, match="may not be reached"):
        await line.download("/a")
    assert neighbour.seen == []


async def test_other_addresses_of_a_vendors_table_are_its_own(double, line, neighbour):
    line.vendor.addresses = [f"http://127.0.0.1:{neighbour.port}/rest"]
    url = f"http://127.0.0.1:{neighbour.port}/x"
    assert await line.download(url, authorization=f"Bearer {API_KEY}") == b"inside"
    assert API_KEY in str(neighbour.seen)


# -- addresses, byte for byte


@pytest.mark.parametrize(
    "path",
    [
        "/a%2Fb%20c?sig=%2F+%3d%3D&x=a%20b+c&y=(1)~'!*$,;:@[]",
        "/already%25encoded",
        "/x?u=https://elsewhere.example/y",
        "/x?u=a://b",
        "/..%2f./x",
        "/%e2%82%ac",
    ],
)
async def test_an_address_is_sent_as_it_was_written(double, line, path):
    double.fault(reply(200, b"{}"), times=9)
    await line.get(path)
    await line.get(double.url + path)
    await line.download(double.url + path)
    assert [seen.path for seen in double.seen] == [path] * 3


async def test_what_cannot_stand_in_an_address_is_written_as_it_must_be(double, line):
    double.fault(reply(200, b"{}"))
    await line.get('/a b/ü?q="x"')
    assert double.seen[0].path == "/a%20b/%C3%BC?q=%22x%22"


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:99999/", "http:///x", "http://127.0.0.1:x/", "://x"])
async def test_what_is_no_address_was_not_sent(line, url):
    with pytest.raises(NotSent):
        await line.get(url)
    with pytest.raises(NotSent):
        await line.download(url)


# -- callers' files inside of calls

PICTURE = StoredFile("file_1", "acct", "ab" * 32, 5, "image/png", 20, 20, 0.0, None)
OTHER = StoredFile("file_2", "acct", "cd" * 32, 5, "image/jpeg", 20, 20, 0.0, None)
BYTES = {PICTURE: b"\x89PNG\r\n\x00--boundary\r\n\xff", OTHER: b"\xff\xd8other"}


@pytest.fixture
async def filed(double: Double) -> AsyncGenerator[Line]:
    async def read(file: StoredFile) -> bytes:
        return BYTES[file]

    line = Line(sim(double.url))
    line.exchange = Exchange(read)
    yield line
    await line.exchange.close()


def uri_of(file: StoredFile) -> str:
    return f"data:{file.content_type};base64,{base64.b64encode(BYTES[file]).decode()}"


places = some.recursive(
    some.none() | some.integers(-5, 5) | some.text(max_size=3) | some.sampled_from([DataUri(PICTURE), DataUri(OTHER)]),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.tuples(inner, inner)
        | some.dictionaries(some.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(places)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_picture_is_written_into_an_order_wherever_it_stands(double, filed, body):
    def written(value: Any) -> Any:
        match value:
            case DataUri(file):
                return uri_of(file)
            case dict():
                return {name: written(item) for name, item in value.items()}
            case list() | tuple():
                return [written(item) for item in value]
        return value

    double.seen.clear()
    await filed.drive(ask(Call("POST", "/orders/x/cancel", json={"order": body})))
    assert json.loads(double.seen[0].body) == {"order": written(body)}


async def test_the_bytes_themselves_are_sent_under_their_own_type(double, filed):
    headers = {"content-type": PICTURE.content_type}
    await filed.drive(ask(Call("PUT", "/upload?sig=%2F", headers, file=PICTURE)))
    (seen,) = double.seen
    assert (seen.method, seen.path, seen.body) == ("PUT", "/upload?sig=%2F", BYTES[PICTURE])
    assert seen.headers["Content-Type"] == "image/png"


async def test_a_form_is_what_any_parser_of_forms_reads(double, filed):
    fields = {"type": "input", "note": 'q"uote\r\nline', "more": "ü"}
    form = Form("image", PICTURE, fields)
    await filed.drive(ask(Call("POST", "/upload", {"authorization": "Bearer x"}, form=form)))
    (seen,) = double.seen
    head = f"Content-Type: {seen.headers['Content-Type']}\r\n\r\n".encode()
    parsed = email.message_from_bytes(head + seen.body, policy=email.policy.HTTP)
    found = {part.get_param("name", header="content-disposition"): part for part in parsed.iter_parts()}
    picture = found.pop("image")
    assert (picture.get_content_type(), picture.get_content()) == ("image/png", BYTES[PICTURE])
    assert picture.get_filename().endswith(".png")
    assert PICTURE.token not in picture.get_filename()
    assert {name: part.get_payload(decode=True).decode() for name, part in found.items()} == fields
    assert int(seen.headers["Content-Length"]) == len(seen.body)


async def test_a_large_body_is_sent_whole(double, filed):
    text = "x" * (3 << 20)
    await filed.drive(ask(Call("POST", "/orders/x/cancel", json={"text": text})))
    (seen,) = double.seen
    assert json.loads(seen.body) == {"text": text}
    assert seen.headers["Content-Type"] == "application/json"
    assert int(seen.headers["Content-Length"]) == len(seen.body)


# -- outputs that come with the reply


async def decode(line: Line, text: str) -> list[bytes]:
    async with line.exchange.download("far", line.vendor, text) as chunks:
        return [chunk async for chunk in chunks]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, 262_143, 262_144, 1_000_000])
async def test_base64_is_decoded_piece_by_piece(line, size):
    data = bytes(range(256)) * (size // 256 + 1)
    pieces = await decode(line, base64.b64encode(data[:size]).decode())
    assert b"".join(pieces) == data[:size]
    assert all(len(piece) <= 1 << 18 for piece in pieces)


@pytest.mark.parametrize("text", ["<html>", "abc", "ab=c", "YQ==YQ==", "YWJj\n", "YWJ-", "ü" * 8, "A" * 349_528 + "!"])
async def test_what_is_not_base64_is_no_output(line, text):
    with pytest.raises(BadOutput):
        await decode(line, text)


# -- calls that only prepare


def two_steps(first: Call, second: Call) -> Flow[str]:
    """An upload whose reply is read, then the order."""
    reply = yield first
    token = reply.json()["token"]
    yield second
    return token


UPLOAD, PAID = Call("POST", "/upload", json={}, prepares=True, seconds=1), Call("POST", "/orders/x/cancel", json={})
BROKEN = {
    "closed": drop,
    "reset": reset,
    "no answer": hang,
    "a proxy's page": reply(502, b"<html>"),
    "another shape": reply(200, b"[]"),
    "no token": reply(200, b"{}"),
    "cut": raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"),
}


@pytest.mark.parametrize("how", BROKEN)
async def test_an_upload_that_fails_orders_nothing(double, line, how):
    double.fault(BROKEN[how], "POST", "/upload", times=9)
    paid: list[bool] = []

    async def note() -> None:
        paid.append(True)

    with pytest.raises(NotSent):
        await line.exchange.drive("far", line.vendor, "submit", two_steps(UPLOAD, PAID), note)
    assert paid == []
    assert double.count("POST") == 1


async def test_before_the_paid_call_and_once_it_is_told(double, line):
    told: list[int] = []

    async def note() -> None:
        told.append(double.count("POST"))

    double.fault(reply(200, b'{"token": "t"}'), "POST", "/upload")
    assert await line.exchange.drive("far", line.vendor, "submit", two_steps(UPLOAD, PAID), note) == "t"
    assert told == [1]
    double.fault(drop, "POST", "/orders")
    double.fault(reply(200, b'{"token": "t"}'), "POST", "/upload")
    with pytest.raises(ReplyLost):
        await line.drive(two_steps(UPLOAD, PAID))


async def test_whoever_objects_before_the_paid_call_stops_it(double, line):
    async def object_to_it() -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await line.exchange.drive("far", line.vendor, "submit", ask(PAID), object_to_it)
    assert double.seen == []


async def test_a_vendors_mistake_before_the_first_call_orders_nothing(double, line):
    def stumble() -> Flow[None]:
        yield Call("POST", {}["no such param"])

    with pytest.raises(NotSent):
        await line.drive(stumble())
    assert double.seen == []


# -- when to come back


@pytest.mark.parametrize(("told", "wait"), [("7", 7.0), ("0.5", 0.5), ("soon", None), (None, None), ("1e9", 3600.0)])
@pytest.mark.parametrize("status", [429, 503])
async def test_what_is_unclear_says_when_to_ask_again(double, line, status, told, wait):
    double.fault(reply(status, b"{}", **({} if told is None else {"retry_after": told})))
    with pytest.raises(Unclear) as trouble:
        await line.drive(line.vendor.poll({"id": "x"}))
    assert trouble.value.retry_after == wait


# -- an upstream inside this process


@pytest.mark.parametrize(("submission", "error"), [("unreachable", NotSent), ("never_arrived", ReplyLost)])
async def test_an_upstream_inside_fails_in_the_same_words(tmp_path, submission, error):
    line = Line(Sim(SimOptions(type="sim", script={"submission": submission}), VendorFolders(tmp_path, tmp_path)))
    with pytest.raises(error):
        await line.drive(line.vendor.submit(ORDER))
    with pytest.raises(Unclear):
        await line.download()
    line.vendor.upstream.close()


# -- what a caller may read of it


async def test_tokens_that_a_vendor_was_shown_are_taken_out_of_what_it_says(double, line):
    tokens = [f"minted-token-{number:04}" for number in range(100)]
    for token in tokens:
        await line.drive(ask(Call("GET", "/x", {"authorization": f"Bearer {token}"})))
    told = line.exchange.redact({"message": f"{tokens[-1]} and {tokens[-60]} and {API_KEY}"}, Redactor({API_KEY}))
    assert told == {"message": "… and … and …"}
    assert line.exchange.redact(None, Redactor()) is None
