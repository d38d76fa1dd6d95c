"""What tests of the built-in chat model do again and again: ask it, stream from it, and look at its process."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from conftest import Server

MODEL = "smollm2-135m"
CHAT = "/llm/chat/completions"
SMALL = "[vendors.local]\ncontext = 1024\nthreads = 1\n"
"""One thread: several that wait for each other on a busy machine take far more of it."""
ROOMY = "[vendors.local]\ncontext = 8192\nthreads = 1\n"
"""With room for an answer that lasts, although a model of few layers is fast."""
HELLO: list[Any] = [{"role": "user", "content": "Say hello."}]
LONG = {"max_tokens": 4000, "ignore_eos": True, "stream": True}
"""More than anyone waits for."""
CITY = {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": CITY}}
]


def children() -> set[int]:
    """The chat servers which this process has started and which are not gone."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            parent_id = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent_id == os.getpid() and b"penstock_engines.llama" in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
    return found


def ticks(child: int) -> int:
    """How long it has been working."""
    return sum(map(int, Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))


def unread_at(port: int) -> bool:
    """Whether something has come to this port that nobody has read."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, here, _, state, queues = line.split()[:5]
        if int(here.rpartition(":")[2], 16) == port and state == "01" and int(queues.partition(":")[2], 16):
            return True
    return False


async def until_it_works(child: int) -> None:
    """Until it has been working for a tenth of a second from now on."""
    enough = ticks(child) + 10
    await until(lambda: ticks(child) >= enough)


async def until(happened: Callable[[], object], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not happened():  # noqa: ASYNC110  a process tells nobody
            await asyncio.sleep(0.01)


def asking(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": HELLO, "max_tokens": 4, **fields}


async def ask(server: Server, **fields: Any) -> httpx.Response:
    return await server.client.post(CHAT, json=asking(**fields))


async def answer(server: Server, **fields: Any) -> Any:
    response = await ask(server, **fields)
    assert response.status_code == 200, response.text
    return response.json()


async def refuse(server: Server, **fields: Any) -> Any:
    response = await ask(server, **fields)
    assert response.status_code == 400, response.text
    return response.json()["error"]


class Streaming:
    """A stream of raw events, begun."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> str:
        """The next line that tells something; empty at the end."""
        async for line in self._lines:
            if line.startswith("data: "):
                return line.removeprefix("data: ")
        return ""

    async def rest(self) -> list[str]:
        found: list[str] = []
        with suppress(httpx.RemoteProtocolError):  # cut off on purpose: nobody may take it for whole
            while line := await self.next():
                found.append(line)
        return found


async def begin(server: Server, **fields: Any) -> Streaming:
    """A stream that has said its first word; `response.aclose` leaves it."""
    request = server.client.build_request("POST", CHAT, json=asking(**{**LONG, **fields}))
    streaming = Streaming(await server.client.send(request, stream=True))
    assert streaming.response.status_code == 200, await streaming.response.aread()
    await streaming.next()
    return streaming
