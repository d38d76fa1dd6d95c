"""A simulated vendor in a process of its own. It prints its address; its file of orders is the vendor's own book.

python tools/demo/vendor.py FOLDER
"""

import asyncio
import sys
from pathlib import Path

from aiohttp import web

from penstock.simulator.upstream import Simulator


async def serve(folder: Path) -> None:
    """Answer as the vendor, until killed."""
    simulator = Simulator(folder)

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        status, headers, content = await asyncio.to_thread(simulator.answer, request.method, request.path_qs, body)
        return web.Response(status=status, headers=dict(headers), body=content)

    async def count(request: web.Request) -> web.Response:
        del request
        return web.json_response(await asyncio.to_thread(simulator.counts))

    app = web.Application()
    app.router.add_get("/books", count)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
