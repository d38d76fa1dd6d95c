"""A raw HTTP connection to the gateway, for what no client library would send or show."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from chat_steps import HELLO, Chat


@dataclass
class Wire:
    """One connection; requests are written and replies read byte by byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    key: str

    async def send(self, method: str, path: str, body: bytes = b"", version: str = "1.1", **headers: str) -> None:
        """Write a request; `content_type` is the header content-type, an empty value leaves a header out."""
        given = {
            "host": "gateway",
            "authorization": f"Bearer {self.key}",
            "content-type": "application/json" if body else "",
            "content-length": str(len(body)) if body else "",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in given.items() if value)]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()

    async def ask(self, model: str, version: str = "1.1", **fields: Any) -> None:
        """Write a chat request."""
        body = json.dumps({"model": model, "messages": HELLO, **fields}).encode()
        await self.send("POST", "/llm/chat/completions", body, version)

    async def head(self) -> tuple[int, dict[str, str]]:
        """The status and headers of a reply."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split(" ")[1]), headers

    async def chunk(self) -> bytes:
        """One piece of a chunked body; empty at its end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def body(self, headers: dict[str, str]) -> bytes:
        """A whole body, however it comes; `IncompleteReadError` tells of one that was cut."""
        if headers.get("transfer-encoding") != "chunked":
            return await self.reader.readexactly(int(headers["content-length"]))
        pieces: list[bytes] = []
        while piece := await self.chunk():
            pieces.append(piece)
        return b"".join(pieces)

    async def cut_body(self) -> bytes:
        """A chunked body that must break off: between two pieces, with nothing that ends it."""
        pieces: list[bytes] = []
        while line := await self.reader.readline():
            assert line != b"0\r\n", "the body ended as if it were whole"
            pieces.append((await self.reader.readexactly(int(line, 16) + 2))[:-2])
        return b"".join(pieces)

    async def reply(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        status, headers = await self.head()
        return status, headers, await self.body(headers)


@asynccontextmanager
async def connect(chat: Chat) -> AsyncGenerator[Wire]:
    """A new connection to the gateway."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(chat.server.url.rsplit(":", 1)[1]))
    try:
        async with asyncio.timeout(60):
            yield Wire(reader, writer, chat.key)
    finally:
        writer.close()


def events_of(body: bytes) -> list[Any]:
    """The data of a stream's events, each of which must be exactly one line; comments are left out."""
    *events, rest = body.split(b"\n\n")
    assert rest == b"", rest
    data = [event for event in events if not event.startswith(b": ")]
    assert all(event.startswith(b"data: ") and b"\n" not in event and b"\r" not in event for event in data), data
    return [event[6:] if event == b"data: [DONE]" else json.loads(event[6:]) for event in data]
