"""Vendors of the simulation: doubles that take orders, and the HTTP client by which gateways reach them."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec
from simulation.virtual_loop import VirtualLoop
from simulation.world import Chance, World

from penstock.vendor_api.generation import Call, GenerationVendor, InDoubt, NotSent, ReplyLost

TRANSIT_SECONDS: Final = 0.02
LATE_SECONDS: Final = (0.5, 3.0)
"""Delay of a late request: shorter than the vendor's `lookup_seconds`, after which a lost order counts as lost."""
LOST_SECONDS: Final = 0.6
"""Seconds after which a gateway learns that a reply is lost: its caller may change their mind meanwhile."""
FREEZE_CHANCE: Final = 0.01
FREEZE_SECONDS: Final = (1.0, 40.0)
"""Seconds for which a process freezes between the intent and the order: others may have the job when it wakes up."""
CALL_FAULTS: Final = (
    ("vendor: refused", 0.01),
    ("vendor: lost on the way", 0.01),
    ("vendor: reply lost", 0.01),
    ("vendor: never answers", 0.003),
    ("vendor: swallowed", 0.003),
    ("vendor: late", 0.01),
    ("vendor: reset, arrives later", 0.01),
    ("vendor: death, arrives later", 0.006),
    ("vendor: twice", 0.003),
    ("vendor: reply late", 0.01),
)
LATE_FAULTS: Final = ("vendor: late", "vendor: reset, arrives later", "vendor: death, arrives later")
Reply = tuple[int, Mapping[str, str], bytes]
JSON: Final = {"content-type": "application/json"}


@dataclass
class PlacedOrder:
    """An order that a vendor accepted: it costs money from here on."""

    id: str
    reference: str
    job_id: str
    script: Mapping[str, Any]
    result: Mapping[str, Any]
    accepted_at: float
    canceled: bool = False
    polls: int = 0
    downloads: int = 0


@dataclass
class VendorDouble:
    """A vendor's own side: it takes orders and plays their scripts, like the simulator does."""

    world: World
    name: str
    on_order: Callable[[PlacedOrder], None]
    orders: dict[str, PlacedOrder] = field(default_factory=dict[str, PlacedOrder])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    down_until: float = 0.0

    def answer(self, method: str, path: str, body: bytes, *, is_repeat: bool = False) -> Reply:
        """Answer one request; raise ConnectionResetError if the reply is lost."""
        self.world.recorder.add(f"{self.name} {method} {path} {body!r}")
        parts = urlsplit(path)
        match (method, parts.path.strip("/").split("/")):
            case ("POST", ["orders"]):
                return self._submit(json.loads(body), is_repeat=is_repeat)
            case ("GET", ["orders"]):
                return self._find(parse_qs(parts.query)["reference"][0])
            case ("GET", ["orders", order_id]):
                return self._poll(order_id)
            case ("POST", ["orders", order_id, "cancel"]):
                return self._cancel(order_id)
            case ("GET", ["orders", order_id, "outputs", name]):
                return self._download(order_id, name)
            case _:
                return _say(404, {"error": {"code": "not_found"}})

    def _submit(self, wish: dict[str, Any], *, is_repeat: bool) -> Reply:
        script, reference = wish["script"], wish["reference"]
        job_id = reference.rpartition("-")[0]
        if is_repeat:  # the network doubled a request, whose connection the vendor knows
            return _say(409, {"error": {"code": "doubled"}})
        earlier = self.calls[job_id] = self.calls.get(job_id, 0) + 1
        is_over = earlier > script.get("submission_times", 1)
        trouble = "accepted" if is_over else script.get("submission", "accepted")
        match trouble:
            case "unreachable":
                raise ConnectionRefusedError
            case "never_arrived":
                raise ConnectionResetError
            case "busy":
                return _say(429, {"error": {"code": "busy"}}, {"retry-after": "0.2"})
            case "rejected":
                return _say(400, {"error": {"code": "bad_order", "message": "no"}})
            case "unauthorized":
                return _say(401, {"error": {"code": "bad_credential"}})
            case _:
                order = self._accept(reference, job_id, script, wish["result"])
        if trouble == "reply_lost":
            raise ConnectionResetError
        return _say(201, {"id": order.id})

    def _accept(self, reference: str, job_id: str, script: Any, result: Any) -> PlacedOrder:
        order = PlacedOrder(f"{self.name}-{len(self.orders) + 1}", reference, job_id, script, result, self.world.now)
        self.orders[order.id] = order
        self.on_order(order)
        return order

    def _find(self, reference: str) -> Reply:
        found = [order for order in self.orders.values() if order.reference == reference]
        if any(not order.script.get("findable", True) for order in found):
            return _say(501, {"error": {"code": "no_lookup"}})
        return _say(200, {"orders": [{"id": order.id} for order in found]})

    def _poll(self, order_id: str) -> Reply:
        order = self.orders.get(order_id)
        if order is None:
            return _say(404, {"id": order_id, "error": {"code": "not_found"}})
        order.polls += 1
        if order.polls <= order.script.get("poll_errors", 0):
            return _trouble(order.polls)
        return _say(200, {"id": order_id, **self._standing(order), "seed": order.result.get("seed")})

    def _cancel(self, order_id: str) -> Reply:
        order = self.orders.get(order_id)
        if order is None or not order.script.get("cancelable", True) or self._is_over(order):
            return _say(409, {"id": order_id, "error": {"code": "not_cancelable"}})
        order.canceled = True
        return _say(200, {"id": order_id})

    def _download(self, order_id: str, name: str) -> Reply:
        order = self.orders.get(order_id)
        if order is None:
            return _say(404, {"error": {"code": "not_found"}})
        order.downloads += 1
        if order.downloads <= order.script.get("download_errors", 0):
            return _trouble(order.downloads % 2)
        data = json.dumps({"order": order_id, "name": name, "seconds": order.result.get("seconds", 1)}).encode()
        return 200, {"content-length": str(len(data))}, data[:9] if order.script.get("ending") == "corrupt" else data

    def _is_over(self, order: PlacedOrder) -> bool:
        is_late = self.world.now - order.accepted_at >= order.script.get("latency", 0.5)
        return is_late and order.script.get("ending") != "never"

    def _standing(self, order: PlacedOrder) -> dict[str, Any]:
        ending = order.script.get("ending", "succeeded")
        state: dict[str, Any] = {"progress": None, "queue_position": None, "eta_seconds": None, "outputs": []}
        if order.canceled:
            return state | {"status": "canceled", "error": {"code": "canceled"}}
        if not self._is_over(order):
            latency = order.script.get("latency", 0.5) or 0.001
            elapsed = self.world.now - order.accepted_at
            return state | {"status": "running", "progress": min(0.99, elapsed / latency)}
        if ending in ("failed", "filtered"):
            return state | {"status": ending, "error": {"code": ending}}
        return state | {"status": "succeeded", "outputs": [] if ending == "no_output" else _outputs(order)}


def _outputs(order: PlacedOrder) -> list[dict[str, str]]:
    kind = order.result["kind"]
    outputs = [{"kind": kind, "role": "primary", "path": f"/orders/{order.id}/outputs/primary"}]
    if kind == "model":
        outputs.append({"kind": "image", "role": "preview", "path": f"/orders/{order.id}/outputs/preview"})
    return outputs


def _say(status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Reply:
    return status, {**JSON, **(headers or {})}, json.dumps(body).encode()


def _trouble(times: int) -> Reply:
    troubles: tuple[Reply, ...] = (
        (503, {**JSON, "retry-after": "0.1"}, b'{"error": {"code": "overloaded"}}'),
        (502, {"content-type": "text/html"}, b"<html>Bad Gateway</html>"),
        (200, JSON, b'{"status": "succ'),
    )
    return troubles[times % len(troubles)]


@dataclass(frozen=True)
class _Content:
    data: bytes

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        for start in range(0, len(self.data), size):
            yield self.data[start : start + size]


@dataclass(frozen=True)
class VendorReply:
    """A vendor's reply, with the parts of aiohttp's response that are used."""

    status: int
    headers: Mapping[str, str]
    content: _Content


class VendorClient:
    """The way of one process to the vendors. Its methods are those of `HttpClient`."""

    def __init__(self, world: World, loop: VirtualLoop, doubles: Mapping[str, VendorDouble]) -> None:
        self._world = world
        self._loop = loop
        self._doubles = doubles
        self.under_way = 0

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    @asynccontextmanager
    async def request(
        self, name: str, vendor: GenerationVendor, call: Call, be_sure: Callable[[], None] | None = None
    ) -> AsyncGenerator[VendorReply]:
        """Make one call; the class of its failure says what it means for a paid order."""
        del vendor
        self.under_way += 1
        try:
            status, headers, body = await self._ask(name, call, be_sure)
            yield VendorReply(status, headers, _Content(body))
        finally:
            self.under_way -= 1

    @asynccontextmanager
    async def download(self, name: str, vendor: GenerationVendor, call: Call) -> AsyncGenerator[VendorReply]:
        """Get an output."""
        async with self.request(name, vendor, call) as reply:
            yield reply

    async def _ask(self, name: str, call: Call, be_sure: Callable[[], None] | None) -> Reply:
        double = self._doubles[name]
        chance = self._world.chance(f"{self._loop.name} to {name}")
        await asyncio.sleep(TRANSIT_SECONDS * chance.random())
        fault = chance.draw(CALL_FAULTS)
        if fault == "vendor: refused" or double.down_until > self._world.now:
            raise NotSent("refused")
        if be_sure is not None:
            await self._freeze(chance)
            be_sure()
        answer: asyncio.Future[Reply] = self._loop.create_future()
        late = chance.uniform(*LATE_SECONDS) if fault in LATE_FAULTS else 0.0
        if fault not in ("vendor: lost on the way", "vendor: swallowed"):
            self._world.later(late + TRANSIT_SECONDS * chance.random(), self._arrive, double, call, answer, fault)
        if fault == "vendor: twice":
            self._world.later(TRANSIT_SECONDS + 0.5 * chance.random(), self._arrive_again, double, call)
        if fault in ("vendor: lost on the way", "vendor: reply lost", "vendor: reset, arrives later"):
            self._loop.call_later(0.1, _fail, answer, ReplyLost("reset"))
        if fault == "vendor: death, arrives later":
            self._loop.steps_left = 0  # killed before its next step
        try:
            async with asyncio.timeout(call.seconds):
                return await answer
        except TimeoutError as error:
            raise ReplyLost("timeout") from error

    async def _freeze(self, chance: Chance) -> None:
        """Freeze this process at the worst moment, now and then."""
        if chance.strikes(FREEZE_CHANCE, "freeze before an order"):
            self._loop.frozen_until = self._world.now + chance.uniform(*FREEZE_SECONDS)
            await asyncio.sleep(0.001)

    def _arrive_again(self, double: VendorDouble, call: Call) -> None:
        with suppress(ConnectionError):
            double.answer(call.method, call.url, _body(call), is_repeat=True)

    def _arrive(self, double: VendorDouble, call: Call, answer: "asyncio.Future[Reply]", fault: str | None) -> None:
        reply: Reply | Exception
        try:
            reply = double.answer(call.method, call.url, _body(call))
        except ConnectionRefusedError:
            reply = NotSent("refused")
        except ConnectionError:
            reply = ReplyLost("reset")
        if fault not in ("vendor: reply lost", "vendor: never answers"):
            seconds = self._world.chance(f"{double.name} back").uniform(1, 8) if fault == "vendor: reply late" else 0.01
            seconds = LOST_SECONDS if isinstance(reply, ReplyLost) else seconds
            self._loop.call_later(seconds, _settle, answer, reply)


def _body(call: Call) -> bytes:
    return (call.body or b"") if call.json is None else msgspec.json.encode(call.json)


def _fail(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _settle(answer: "asyncio.Future[Reply]", reply: "Reply | Exception") -> None:
    if isinstance(reply, Exception):
        _fail(answer, reply)
    elif not answer.done():
        answer.set_result(reply)


__all__ = ["InDoubt", "PlacedOrder", "VendorClient", "VendorDouble"]
