"""What each failure between us and a vendor means: not sent, reply lost or unclear; and what stays in the house."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as some
from vendors.double import Double, double_of, drip, drop, drop_after, hang, raw, reply, reset

from penstock.contract import Call, Flow, Home, Order, Reply, Unclear
from penstock.exchange import MAX_REPLY_BYTES, TROUBLE, Exchange, NotSent, ReplyLost, redact
from penstock.files import StoredFile
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
    return Sim(SimOptions(type="sim", base_url=url, api_key=API_KEY), Home(folder, folder))


async def no_file(file: StoredFile) -> bytes:
    raise AssertionError(f"{file} is not asked for here")


class Line:
    """One vendor and the exchange that speaks to it."""

    def __init__(self, vendor: Sim) -> None:
        self.vendor = vendor
        self.exchange = Exchange(no_file)

    async def drive(self, flow: Flow[Any]) -> Any:
        return await self.exchange.drive("far", self.vendor, "test", flow)

    async def get(self, path: str = "/orders/x", seconds: float = 5) -> Reply:
        return (await self.drive(ask(Call("GET", path, seconds=seconds))))[0]

    async def post(self, seconds: float = 5) -> Reply:
        return (await self.drive(ask(Call("POST", "/orders/x/cancel", json={}, seconds=seconds))))[0]

    async def download(self, path: str = "/orders/x/outputs/primary", seconds: float = 5) -> bytes:
        call = Call("GET", path, seconds=seconds)
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


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


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
    begun = time.monotonic()
    with pytest.raises(ReplyLost):
        await line.post(seconds=0.4)
    assert double.count("POST") == 1
    assert time.monotonic() - begun < 3


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
    assert "vendor trouble" in caplog.text


# -- downloads

CUT = {
    "short of its length": raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"),
    "cut between chunks": LOST["cut between chunks"],
    "no answer": hang,
    "gone": reply(404, b"gone"),
    "a part": reply(206, b"part"),
    "a redirect": reply(302, location="/elsewhere"),
}


@pytest.mark.parametrize("fault", CUT)
async def test_a_download_is_whole_or_trouble(double, line, fault):
    double.fault(CUT[fault], times=9)
    with pytest.raises(TROUBLE):
        await line.download(seconds=0.4)
    assert len(double.seen) == 1


async def test_a_download_may_take_longer_than_a_call(double, line):
    async def slowly(_double, request):
        response = web.StreamResponse(headers={"content-length": "3"})
        await response.prepare(request)
        for _ in range(3):
            await asyncio.sleep(0.2)
            await response.write(b"x")
        return response

    double.fault(slowly)
    assert await line.download(seconds=0.3) == b"xxx"


async def test_who_reads_a_download_is_not_blamed_on_the_vendor(double, line):
    double.fault(reply(200, b"bytes"))
    with pytest.raises(LookupError, match="mine"):
        async with line.exchange.download("far", line.vendor, Call("GET", "/x")):
            raise LookupError("mine")


# -- an upstream inside this process


@pytest.mark.parametrize(("submission", "error"), [("unreachable", NotSent), ("never_arrived", ReplyLost)])
async def test_an_upstream_inside_fails_in_the_same_words(tmp_path, submission, error):
    line = Line(Sim(SimOptions(type="sim", script={"submission": submission}), Home(tmp_path, tmp_path)))
    with pytest.raises(error):
        await line.drive(line.vendor.submit(ORDER))
    with pytest.raises(Unclear):
        await line.download()


# -- what a caller may read of it


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("see https://api.vendor.example/v1?key=1 for more", "see … for more"),
        ("host api.vendor.ai:8443/x is busy", "host … is busy"),
        ("gs://bucket/key and s3://bucket/key", "… and …"),
        ("at 10.0.0.7:9000 or 127.0.0.1", "at … or …"),
        ("wss://queue.vendor/x", "…"),
        (f"key {API_KEY} is bad", "key … is bad"),
        ("key key.io/a+b is bad", "key … is bad"),
        ("the prompt was refused", "the prompt was refused"),
        ("x" * 500, "x" * 300),
        (None, None),
    ],
)
def test_what_a_vendor_said_is_told_without_addresses_and_secrets(text, clean):
    told = redact({"code": text, "message": text}, frozenset({API_KEY, "key.io/a+b"}))
    assert told == {"code": clean, "message": clean}


def test_nothing_said_is_nothing_told():
    assert redact(None, frozenset()) is None
    assert redact({"code": "busy"}, frozenset({""})) == {"code": "busy"}


@given(some.text(max_size=400), some.text(min_size=8, max_size=20), some.text(max_size=400))
def test_no_secret_gets_through_wherever_it_stands(before, secret, after):
    told = redact({"message": f"{before}{secret}{after}"}, frozenset({secret}))
    assert told is not None
    assert secret not in (told["message"] or "")
