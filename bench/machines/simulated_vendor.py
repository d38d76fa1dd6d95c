"""A simulated vendor that keeps its orders in memory and knows the most that were ever under way at once.

It speaks as the simulator does, and prints its port. `GET /books` tells what it has seen.
"""

import asyncio
import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
import uvloop
from aiohttp import web

from penstock.simulator import samples

MODEL = samples.make_model(7, 48, texture=False)
PREVIEW = samples.make_preview(7, 64, 64)


@dataclass(slots=True)
class Taken:
    """One order."""

    reference: str
    script: dict[str, Any]
    at: float = field(default_factory=time.time)
    canceled: bool = False


class Vendor:
    """All orders."""

    def __init__(self) -> None:
        self.orders: dict[str, Taken] = {}
        self.under_way: set[str] = set()
        self.most = 0
        self.calls: Counter[str] = Counter()
        self._numbers = itertools.count(1)

    async def submit(self, request: web.Request) -> web.Response:
        """Take an order."""
        said = msgspec.json.decode(await request.read())
        self.calls["submit"] += 1
        name = f"sim-{next(self._numbers)}"
        order = self.orders[name] = Taken(said["reference"], said["script"])
        self.under_way.add(name)
        self.most = max(self.most, len(self.under_way))
        asyncio.get_running_loop().call_later(order.script.get("latency", 0.5), self.under_way.discard, name)
        return answer(201, {"id": name})

    async def find(self, request: web.Request) -> web.Response:
        """Look orders up by reference."""
        wanted = request.query["reference"]
        self.calls["find"] += 1
        found = [{"id": name} for name, order in self.orders.items() if order.reference == wanted]
        return answer(200, {"orders": found})

    async def poll(self, request: web.Request) -> web.Response:
        """How an order stands."""
        self.calls["poll"] += 1
        name = request.match_info["name"]
        order = self.orders[name]
        left = order.at + order.script.get("latency", 0.5) - time.time()
        state: dict[str, Any] = {"id": name, "queue_position": None, "seed": None, "outputs": []}
        if order.canceled:
            return answer(200, state | {"status": "canceled", "progress": None, "eta_seconds": None})
        if left > 0:
            done = 1 - left / max(order.script["latency"], 0.001)
            return answer(200, state | {"status": "running", "progress": done, "eta_seconds": left})
        outputs = [
            {"kind": "model", "role": "primary", "path": f"/orders/{name}/outputs/primary"},
            {"kind": "image", "role": "preview", "path": f"/orders/{name}/outputs/preview"},
        ]
        done = {"status": "succeeded", "progress": None, "eta_seconds": None, "outputs": outputs}
        return answer(200, state | done)

    async def cancel(self, request: web.Request) -> web.Response:
        """Stop an order."""
        self.orders[request.match_info["name"]].canceled = True
        self.under_way.discard(request.match_info["name"])
        return answer(200, {"id": request.match_info["name"]})

    async def download(self, request: web.Request) -> web.Response:
        """A result, the same for all."""
        self.calls["download"] += 1
        is_preview = request.match_info["output"] == "preview"
        kind = "image/png" if is_preview else "application/octet-stream"
        return web.Response(body=PREVIEW if is_preview else MODEL, content_type=kind)

    async def books(self, _request: web.Request) -> web.Response:
        """What was ever seen."""
        jobs = Counter(order.reference.rsplit("-", 1)[0] for order in self.orders.values())
        doubled = sum(times > 1 for times in jobs.values())
        found = {"orders": len(self.orders), "doubled": doubled, "most": self.most, "under_way": len(self.under_way)}
        return answer(200, found | {"calls": self.calls})


def answer(status: int, body: Any) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


async def serve() -> None:
    vendor, app = Vendor(), web.Application()
    app.router.add_post("/orders", vendor.submit)
    app.router.add_get("/orders", vendor.find)
    app.router.add_get("/orders/{name}", vendor.poll)
    app.router.add_post("/orders/{name}/cancel", vendor.cancel)
    app.router.add_get("/orders/{name}/outputs/{output}", vendor.download)
    app.router.add_get("/books", vendor.books)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve())
