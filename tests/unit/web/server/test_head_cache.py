"""Heads that come again are not parsed again: nobody may see a difference."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.web.server.connection import GuardedConnection
from penstock.web.server.head_cache import MAX_HEADS, Head, Heads
from penstock.web.server.serving import serve

PLAIN = b"POST /echo?a=1 HTTP/1.1\r\nhost: x\r\nContent-Length: %d\r\nx-kind: %b\r\n\r\n"


async def tell(scope, receive, send):
    """Everything that an application sees of a request."""
    if scope["type"] == "lifespan":
        for _ in range(2):
            await send({"type": (await receive())["type"] + ".complete"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    seen = {name: scope[name] for name in ("method", "path", "http_version")}
    seen |= {"query": scope["query_string"].decode(), "body": body.decode()}
    seen["headers"] = [[name.decode(), value.decode()] for name, value in scope["headers"]]
    answer = json.dumps(seen).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]})
    await send({"type": "http.response.body", "body": answer})


class Site:
    """A server whose heads are its own."""

    def __init__(self) -> None:
        self.heads = Heads()

    async def ask(self, *writes: bytes, count: int | None = None) -> list[dict]:
        """What comes back on one connection, each write sent when the answers to those before are there."""
        ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
        protocol = type("Own", (GuardedConnection,), {"heads": self.heads})
        serving = asyncio.create_task(
            serve(
                tell, host="127.0.0.1", port=0, drain_seconds=1, on_ready=ready.set_result, stop=stop, protocol=protocol
            )
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", await ready)
        answers = []
        try:
            for write in writes:
                writer.write(write)
                for _ in range(1 if count is None else count):
                    answers.append(await _read(reader))  # noqa: PERF401  one after the other
        finally:
            writer.close()
            stop.set()
            await serving
        return answers


async def _read(reader: asyncio.StreamReader) -> dict:
    async with asyncio.timeout(300):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return json.loads(await reader.readexactly(length))


def make(body: bytes, kind: bytes = b"a") -> bytes:
    return PLAIN % (len(body), kind) + body


async def test_a_head_that_comes_again_means_the_same_with_any_body():
    bodies = [b"one", b"", b"three times", b"x" * 1000, b"one"]
    site = Site()
    for told, body in zip(await site.ask(*map(make, bodies)), bodies, strict=True):
        assert told["body"] == body.decode()
        assert told["headers"] == [["host", "x"], ["content-length", str(len(body))], ["x-kind", "a"]]
        assert (told["method"], told["path"], told["query"]) == ("POST", "/echo", "a=1")
    assert site.heads.find(make(b"again")) is not None
    assert site.heads.find(make(b"").replace(b" 0", b" ")) is None  # a length without a number is never good


@settings(max_examples=12, deadline=None)
@given(
    requests=some.lists(
        some.tuples(some.sampled_from([b"a", b"b"]), some.text("ab\r\n", max_size=12).map(str.encode)),
        min_size=3,
        max_size=8,
    ),
)
def test_whatever_comes_between(requests):
    """One after the other, or all in one write: each is told as it was sent."""

    async def run():
        site = Site()
        whole = [make(body, kind) for kind, body in requests]
        return await site.ask(*whole), await site.ask(b"".join(whole), count=len(whole))

    together, pipelined = asyncio.run(run())
    wanted = [(body.decode(), kind.decode()) for kind, body in requests]
    assert [(told["body"], told["headers"][2][1]) for told in together] == wanted
    assert together == pipelined


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n" + make(b"one"),
        make(b"one") + make(b"two"),
        make(b"one")[:-1],
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\nx-request-id: abcdefgh\r\n\r\n",
        b"GET / HTTP/1.0\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\nhost: x\r\n\r\n",
    ],
)
async def test_only_a_plain_whole_request_is_remembered(data):
    heads = Heads()
    method, _, rest = data.strip().partition(b" ")
    lines = rest.split(b"\r\n\r\n")[0].splitlines()[1:]
    headers = [tuple(part.strip().lower() for part in line.split(b":", 1)) for line in lines]
    version = "1.0" if b"HTTP/1.0" in data else "1.1"
    head = Head(method.decode(), b"/", version, headers, keep_alive=version == "1.1")
    for _ in range(3):
        heads.keep(data, head)
    assert heads.find(data) is None


async def test_heads_that_never_come_again_do_not_pile_up():
    heads = Heads()
    for number in range(3 * MAX_HEADS):
        data = b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number
        for _ in range(2):
            heads.keep(data, Head("GET", b"/%d" % number, "1.1", [(b"host", b"x")], keep_alive=True))
    assert len(heads) <= MAX_HEADS
