"""An upstream that writes what it is told, byte for byte, and hangs up: for what no honest server would send."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\nconnection: close\r\n\r\n"
STREAM = HEAD % b"text/event-stream"
WHOLE = HEAD % b"application/json"


@dataclass
class Canned:
    """`reply` is what the next requests get, in pieces that end at `cuts`; `requests` are those that came."""

    url: str = ""
    reply: bytes = b""
    cuts: Sequence[int] = ()
    requests: list[bytes] = field(default_factory=list[bytes])

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        ends = sorted({0, len(self.reply), *(cut for cut in self.cuts if cut < len(self.reply))})
        with suppress(ConnectionError):  # the caller may have heard enough
            for start, end in pairwise(ends):
                writer.write(self.reply[start:end])
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()


@asynccontextmanager
async def canned() -> AsyncGenerator[Canned]:
    """One that listens on 127.0.0.1 while the block runs."""
    upstream = Canned()
    server = await asyncio.start_server(upstream.answer, "127.0.0.1", 0)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield upstream


def settings_of(upstream: Canned, more: str = "", price: str = "") -> str:
    """A gateway's settings with the model `canned`."""
    vendor = (
        f'[vendors.canned]\ntype = "openai_compatible"\napi_key = "sk-canned-012345"\nbase_url = "{upstream.url}"\n'
    )
    return f'{vendor}{more}\n[[models]]\nid = "canned"\nkind = "chat"\nvendor = "canned"\n{price}\n'
