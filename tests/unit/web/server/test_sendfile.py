"""Bodies out of files, over real sockets, on either event loop."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.web.server import serving
from penstock.web.server.request_cycle import FILE

SIZE = 24 << 20
LIVES = [{"type": f"lifespan.{moment}.complete"} for moment in ("startup", "shutdown")]


class App:
    """Answers `/start/count` with these bytes of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ended: list[str] = []

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            for answer in LIVES:
                await receive()
                await send(answer)
            return
        _, start, count = scope["path"].split("/")
        try:
            with self.path.open("rb") as file:
                headers = [(b"content-length", count.encode())]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": FILE, "file": file.fileno(), "offset": int(start), "count": int(count)})
        finally:
            self.ended.append(scope["path"])


@asynccontextmanager
async def running(app: App):
    ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
    drained = asyncio.create_task(
        serving.serve(app, host="127.0.0.1", port=0, drain_seconds=0.2, on_ready=ready.set_result, stop=stop)
    )
    try:
        yield await ready
    finally:
        stop.set()
        await drained


@asynccontextmanager
async def asking(port: int, *paths: str, version: str = "1.1"):
    """A connection on which all of these were asked for, whose kernel holds little."""
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    own.setblocking(False)
    await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=own)
    for path in paths:
        writer.write(f"GET {path} HTTP/{version}\r\nhost: x\r\n\r\n".encode())
    yield reader, writer
    writer.transport.abort()


async def read(reader: asyncio.StreamReader, count: int) -> bytes:
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    return await reader.readexactly(count)


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(300):
        while not happened():  # noqa: ASYNC110  told by nobody
            await asyncio.sleep(0.01)


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("files") / "large"
    made.write_bytes(os.urandom(1 << 20) * (SIZE >> 20))
    return made


@pytest.fixture(params=[serving.run, asyncio.run], ids=["fast", "plain"])
def run(request):
    return request.param


def test_what_is_asked_for_comes_whole_and_in_turn(run, path):
    async def main() -> None:
        whole, app = path.read_bytes(), App(path)
        async with running(app) as port:
            asked = [(0, SIZE), (5, 10), (SIZE - 1, 1), (7, 0), (1 << 20, 9 << 20)]
            async with asking(port, *(f"/{start}/{count}" for start, count in asked)) as (reader, _):
                for start, count in asked:
                    assert await read(reader, count) == whole[start : start + count]
            async with asking(port, f"/3/{SIZE - 3}", version="1.0") as (reader, _):
                await reader.readuntil(b"\r\n\r\n")
                assert await reader.read(-1) == whole[3:]

    run(main())


def test_who_leaves_or_stands_still_holds_nothing_for_long(run, path):
    async def main() -> None:
        async with running(App(path)):
            before = open_files()
        app = App(path)
        async with running(app) as port:
            async with asking(port, f"/0/{SIZE}") as (reader, _):
                await reader.readexactly(1000)
            await until(lambda: len(app.ended) == 1)
            async with asking(port, f"/0/{SIZE}") as (reader, writer):
                await reader.readexactly(1000)
                writer.write_eof()
                await until(lambda: len(app.ended) == 2)
            async with asking(port, "/0/9") as (reader, _):
                assert len(await read(reader, 9)) == 9
            stuck = asking(port, f"/0/{SIZE}")
            reader, _ = await stuck.__aenter__()
            await reader.readexactly(1000)
        assert len(app.ended) == 4, "the drain has cut it off"
        await stuck.__aexit__(None, None, None)
        await until(lambda: open_files() <= before)

    run(main())


def test_a_file_that_is_too_short_ends_the_connection(run, path, caplog):
    async def main() -> None:
        app = App(path)
        async with running(app) as port, asking(port, f"/{SIZE - 5}/10") as (reader, _):
            await reader.readuntil(b"\r\n\r\n")
            assert len(await reader.read(-1)) == 5

    run(main())
    assert "differs from its Content-Length" in caplog.text
