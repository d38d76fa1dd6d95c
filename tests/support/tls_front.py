"""TLS in front of a gateway, for clients that speak nothing else. It can lose an answer on the way."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trustme

LOST = b"cut the answer"


class Front:
    """TLS in front of a gateway. It loses the first answer to each order with `LOST` in its prompt."""

    def __init__(self) -> None:
        self.port = self.target = self.orders = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.target)
        is_cut = False

        async def pass_on() -> None:
            nonlocal is_cut
            while data := await reader.read(1 << 16):
                if LOST in data:
                    self.orders += 1
                    is_cut = self.orders == 1
                inner_writer.write(data)
            inner_writer.close()

        passing = asyncio.create_task(pass_on())
        try:
            while data := await inner_reader.read(1 << 16):
                if is_cut:
                    break
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)
            for each in (writer, inner_writer):
                each.transport.abort()


@asynccontextmanager
async def fronted(authority: trustme.CA) -> AsyncGenerator[Front]:
    front, context = Front(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    listening = await asyncio.start_server(front.handle, "127.0.0.1", 0, ssl=context)
    front.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield front
