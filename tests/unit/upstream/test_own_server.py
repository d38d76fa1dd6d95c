"""A chat server of our own that dies: it is started again for a question that it has not read, and for no other."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from ports import free_port

from penstock.domain.files import StoredFile
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.chat import ChatOptions, ChatVendor
from penstock.vendor_api.generation import Call, NotSent, NotStarted, ReplyLost

CALL = Call("POST", "/chat/completions", {"connection": "close"}, body=b'{"question": 1}')
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi"


class Child:
    """A listener that does what the test says with the connection that it gets."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    async def accept(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        connection, _ = await loop.sock_accept(self.listener)
        connection.setblocking(False)
        while not _peek(connection).endswith(CALL.body or b""):  # noqa: ASYNC110  a socket tells nobody
            await asyncio.sleep(0.005)
        return connection

    def die(self) -> None:
        self.listener.close()


def _peek(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536, socket.MSG_PEEK)
    except BlockingIOError:
        return b""


class Mortal:
    """A chat server whose children the test has made."""

    def __init__(self, *children: Child | str) -> None:
        self.starts = 0
        self.now: str | None = None
        self._addresses: Iterator[str] = iter([each if isinstance(each, str) else each.address for each in children])

    def address(self) -> str | None:
        return self.now

    def start(self) -> str:
        self.starts += 1
        self.now = next(self._addresses, None)
        if self.now is None:
            raise ConnectionRefusedError("no more of them")
        return self.now

    def enter(self) -> None: ...

    def leave(self) -> None: ...

    def retire(self) -> None: ...

    def close(self) -> None: ...


class Own:
    """All that the exchange asks of a vendor."""

    def __init__(self, server: Mortal) -> None:
        self.server = server
        self.options = ChatOptions(type="local")


async def no_file(file: StoredFile) -> bytes:
    raise AssertionError(f"{file} is not asked for here")


async def ask(server: Mortal) -> bytes:
    exchange = Exchange(no_file)
    try:
        incoming = await exchange.open(cast("ChatVendor", Own(server)), CALL)
        return await incoming.read_all(1000)
    finally:
        await exchange.close()


async def answer(child: Child) -> bytes:
    connection = await child.accept()
    loop = asyncio.get_running_loop()
    asked = await loop.sock_recv(connection, 65536)
    await loop.sock_sendall(connection, ANSWER)
    connection.close()
    return asked


@pytest.fixture
def make() -> Iterator[Callable[[], Child]]:
    made: list[Child] = []

    def begin() -> Child:
        made.append(Child())
        return made[-1]

    yield begin
    for child in made:
        child.die()


def dead() -> str:
    return f"http://127.0.0.1:{free_port()}"


def once_asked(server: Mortal, times: int) -> Any:
    """Let a dead child pass for a living one for so many looks, as the system does for a moment."""
    seen = 0
    address = server.now

    def look() -> str | None:
        nonlocal seen
        seen += 1
        if server.now == address and seen > times:
            server.now = None
        return server.now

    return look


@pytest.mark.parametrize("looks", [1, 2, 150])
async def test_a_closed_port_means_a_new_start(make, looks, monkeypatch):
    child = make()
    server = Mortal(child)
    server.now = dead()
    monkeypatch.setattr(server, "address", once_asked(server, looks))
    asking = asyncio.create_task(ask(server))
    assert (CALL.body or b"") in await answer(child)
    assert await asking == b"hi"
    assert server.starts == 1


async def test_one_that_dies_as_soon_as_it_has_started_is_started_again(make, monkeypatch):
    child = make()
    server = Mortal(dead(), child)
    alive = set[str]()

    def look() -> str | None:  # seen once after its start, then gone
        if server.now is not None and server.now != child.address:
            if server.now in alive:
                return None
            alive.add(server.now)
        return server.now

    monkeypatch.setattr(server, "address", look)
    asking = asyncio.create_task(ask(server))
    await answer(child)
    assert await asking == b"hi"
    assert server.starts == 2


async def test_one_that_keeps_dying_is_given_up(monkeypatch):
    server = Mortal(*(dead() for _ in range(20)))
    monkeypatch.setattr(server, "address", lambda: None)
    with pytest.raises(NotSent):
        await ask(server)
    assert server.starts <= 4


async def test_a_question_that_was_not_read_is_asked_again(make):
    first, second = make(), make()
    server = Mortal(first, second)
    asking = asyncio.create_task(ask(server))
    connection = await first.accept()
    server.now = None
    first.die()
    connection.close()  # with all of the question unread
    await answer(second)
    assert await asking == b"hi"
    assert server.starts == 2


async def test_a_question_that_was_read_is_never_asked_again(make):
    first, second = make(), make()
    server = Mortal(first, second)
    asking = asyncio.create_task(ask(server))
    connection = await first.accept()
    await asyncio.get_running_loop().sock_recv(connection, 65536)
    server.now = None
    first.die()
    connection.close()
    with pytest.raises(ReplyLost):
        await asking
    assert server.starts == 1


async def test_a_question_is_sent_to_two_at_most(make):
    children = [make() for _ in range(3)]
    server = Mortal(*children)
    asking = asyncio.create_task(ask(server))
    for child in children[:2]:
        connection = await child.accept()
        server.now = None
        child.die()
        connection.close()
    with pytest.raises(ReplyLost):
        await asking
    assert server.starts == 2


async def test_one_that_resets_and_lives_is_not_asked_again(make):
    child = make()
    server = Mortal(child)
    asking = asyncio.create_task(ask(server))
    connection = await child.accept()
    connection.close()
    with pytest.raises(ReplyLost):
        await asking
    assert server.starts == 1


async def test_who_leaves_before_the_answer_hangs_up(make):
    child = make()
    asking = asyncio.create_task(ask(Mortal(child)))
    connection = await child.accept()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(300):
        try:
            while await loop.sock_recv(connection, 65536):
                pass
        except ConnectionResetError:
            pass
    connection.close()


async def test_one_that_cannot_be_started_says_why():
    with pytest.raises(NotStarted, match="no more of them"):
        await ask(Mortal())
