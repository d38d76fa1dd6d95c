"""The outside world in a process of its own: a simulator, a vendor's double, and a receiver of webhooks; all count.

Prints one line of JSON: its addresses and the vendors' settings. `GET /books` tells what each of them has seen.
"""

import asyncio
import json
import random
import sys
from collections import Counter, deque
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from aiohttp import web
from doubles.media import MediaDouble, Plan, listening
from doubles.tripo import TripoDouble
from standardwebhooks import Webhook, WebhookVerificationError
from vendors.double import Act, Double, drop_after, reply
from vendors.storm import number_of

from penstock.simulator.upstream import Simulator, subject_of

SEATS: Final = 10
LOST: Final = 0.04
"""How often the answer to a call is lost that was carried out."""
BUSY: Final = 0.04
UNLUCKY: Final = 0.15
"""How often the double itself ends an order badly."""
ENDINGS: Final = tuple(name for name in TripoDouble.endings if name != "lost")
"""How; an order that is lost for its caller would still run."""
FAILING: Final = 0.03
"""How often a receiver answers 500, for each message once at most."""


@dataclass(slots=True)
class Told:
    """One event that webhooks told, as often as it came."""

    type: str
    job_id: str
    sequence: int
    times: int = 0
    forged: int = 0
    failed: bool = False


@dataclass
class Receiver:
    """Whoever is told by webhooks: a path for each secret."""

    chance: random.Random
    secrets: dict[str, str] = field(default_factory=dict[str, str])
    told: dict[str, dict[str, Told]] = field(default_factory=dict[str, dict[str, Told]])
    """By path and event id."""

    async def hear(self, request: web.Request) -> web.Response:
        raw, headers = await request.read(), {name.lower(): value for name, value in request.headers.items()}
        body = json.loads(raw)
        about = body["data"].get("id", "")
        told = self.told.setdefault(request.path, {}).setdefault(
            body["id"], Told(body["type"], about, body["sequence"])
        )
        try:
            Webhook(self.secrets[request.path]).verify(raw, headers)
        except WebhookVerificationError:
            told.forged += 1
        if not told.failed and self.chance.random() < FAILING:
            told.failed = True
            return web.Response(status=500)
        told.times += 1
        return web.Response()


class Fickle(TripoDouble):
    """Now and then it is busy or its answer is lost; it knows the most orders that it ever had at once."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.seen = deque(maxlen=1)  # type: ignore[assignment]
        self.host.seen = deque(maxlen=1)  # type: ignore[assignment]
        self.host.seconds = 30.0
        self.chance = chance
        self.most = self.full = 0
        self.weather = self.over_calls

    def over_calls(self, _request: web.BaseRequest) -> Act | None:
        luck = self.chance.random()
        return drop_after if luck < LOST else reply(503, b"<html>busy</html>") if luck < LOST + BUSY else None

    def place(self, *args: Any, **more: Any) -> Any:
        ending = self.chance.choice(ENDINGS) if self.chance.random() < UNLUCKY else "ok"
        self.plans.append(Plan(ending, polls=1, seconds=self.chance.uniform(0.2, 2.0)))
        order = super().place(*args, **more)
        self.most = max(self.most, self.open_orders)
        return order

    def _order(self, kind: str, body: dict[str, Any]) -> web.Response:
        response = super()._order(kind, body)
        self.full += response.status == 429
        return response

    @property
    def open_orders(self) -> int:
        return sum(not order.is_over() for order in list(self.orders.values())[-200:])


class Scripted(Double):
    """The simulator, which has to forget what it was asked: there is too much of it."""

    def __init__(self, simulator: Simulator) -> None:
        super().__init__(simulator)
        self.seen = deque(maxlen=1)  # type: ignore[assignment]


@dataclass(frozen=True)
class World:
    """All of them together."""

    sim: Scripted
    media: Fickle
    receiver: Receiver

    async def books(self, _request: web.Request) -> web.Response:
        return web.json_response(await asyncio.to_thread(self._books))

    def _books(self) -> dict[str, Any]:
        with self.sim.simulator._lock:
            found = self.sim.simulator._database.execute("SELECT reference FROM orders").fetchall()
        orders = self.media.orders.values()
        return {
            "sim": Counter(subject_of(row[0]) for row in found),
            "media": [(number_of(order.body), order.id, order.plan.ending) for order in orders],
            "most": self.media.most,
            "full": self.media.full,
            "told": {
                path: {name: (each.type, each.job_id, each.sequence, each.times, each.forged)
                       for name, each in told.items()}
                for path, told in self.receiver.told.items()
            },
        }  # fmt: skip

    async def trust(self, request: web.Request) -> web.Response:
        self.receiver.secrets |= await request.json()
        return web.Response()


async def serve(folder: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  no secrets
    world = World(Scripted(Simulator(folder / "simulator")), Fickle(chance), Receiver(chance))
    app = web.Application(client_max_size=1 << 24)
    app.router.add_get("/books", world.books)
    app.router.add_post("/secrets", world.trust)
    app.router.add_post("/hook/{name}", world.receiver.hear)
    runner = web.AppRunner(app, access_log=None)
    async with AsyncExitStack() as stack:
        await world.sim.listen()
        await stack.enter_async_context(listening(world.media))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        print(json.dumps(_tell(world.sim, world.media, port)), flush=True)  # noqa: T201  whoever started it reads it
        await asyncio.Event().wait()


def _tell(sim: Double, media: MediaDouble, port: int) -> dict[str, str]:
    settings = media.settings(poll_seconds=0.2, max_concurrent=SEATS, lookup_seconds=5)
    return {"sim": sim.url, "media": settings, "url": f"http://127.0.0.1:{port}"}


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
