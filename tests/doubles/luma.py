"""Luma's Dream Machine, as its documents say."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import httpx
from aiohttp import web
from doubles.media import Case, MediaDouble, Placed, Refusal, Sample, Verdict, Wish, answer
from plain import NO_TLS

from penstock.vendor_api.generation import Accepted, Done, Failed, Refused, Running, Similar, Unclear

PREFIX = "/dream-machine/v1"
RATIOS = {"1:1": 1.0, "16:9": 16 / 9, "9:16": 9 / 16, "4:3": 4 / 3, "3:4": 3 / 4, "21:9": 21 / 9, "9:21": 9 / 21}
SHORT_SIDES = {"540p": 540, "720p": 720, "1080p": 1080, "4k": 2160}
MODERATED = "Advanced prompt moderation failed"


def one_of(*allowed: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in allowed


def is_url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://"))


def is_frame(value: Any) -> bool:
    match value:
        case {"type": "image", "url": url, **rest}:
            return is_url(url) and not rest
        case {"type": "generation", "id": str(), **rest}:
            return not rest
    return False


FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "model": one_of("ray-2", "ray-flash-2"),
    "prompt": lambda value: isinstance(value, str) and 3 <= len(value) <= 5000,
    "aspect_ratio": one_of(*RATIOS),
    "duration": one_of("5s", "9s"),
    "resolution": one_of(*SHORT_SIDES),
    "loop": lambda value: isinstance(value, bool),
    "keyframes": lambda value: value.keys() <= {"frame0", "frame1"} and all(map(is_frame, value.values())),
    "concepts": lambda value: all(item.keys() == {"key"} and isinstance(item["key"], str) for item in value),
    "callback_url": is_url,
    "generation_type": one_of("video"),
}


EDIT = {name: FIELDS[name] for name in ("model", "prompt", "callback_url")} | {
    "generation_type": one_of("modify_video"),
    "media": lambda value: value.keys() == {"url"} and is_url(value["url"]),
    "mode": one_of(*(f"{word}_{level}" for word in ("adhere", "flex", "reimagine") for level in (1, 2, 3))),
}


def trouble(detail: Any = "no") -> dict[str, Any]:
    return {"detail": detail}


def wish_of(body: Mapping[str, Any]) -> Wish:
    short, ratio = SHORT_SIDES[body.get("resolution", "720p")], RATIOS[body.get("aspect_ratio", "16:9")]
    long = round(short * max(ratio, 1 / ratio)) // 2 * 2
    width, height = (long, short) if ratio >= 1 else (short, long)
    return Wish("video", width, height, int(body.get("duration", "5s")[0]))


class LumaDouble(MediaDouble):
    vendor = "luma"
    credential = "luma-0123456789abcdefghij"
    cases = (
        Case("vendorb_video_31", {"prompt": "a mill", "durationSeconds": 4}, warnings=1),
        Case("vendorb_video_31", {"prompt": "a mill", "aspectRatio": "9:16", "durationSeconds": 8}, warnings=1),
        Case("luma_text_to_video", {"prompt": "ein Mühlrad 🌊"}),
        Case(
            "luma_text_to_video",
            {
                "model": "ray-flash-2",
                "prompt": "a mill",
                "aspect_ratio": "16:9",
                "duration": "5s",
                "resolution": "540p",
                "loop": True,
                "concepts": [{"key": "dolly_zoom"}],
                "keyframes": {"frame0": {"type": "image", "url": "https://example.com/mill.png"}},
            },
        ),
        Case("luma_text_to_video", {"prompt": "a mill", "aspect_ratio": "21:9", "resolution": "540p"}),
    )
    order_call = ("POST", f"{PREFIX}/generations/video")
    poll_call = ("GET", f"{PREFIX}/generations/")
    finds = True
    cancels = True
    endings = {
        "failed": Verdict("upstream_error", retryable=True),
        "moderated": Verdict("content_filtered"),
        "blacklisted": Verdict("content_filtered"),
        "no reason": Verdict("upstream_error", retryable=True),
        "empty": Verdict("content_filtered"),
    }
    refusals = {
        "400": Refusal(400, trouble(), Verdict("upstream_rejected")),
        "400 moderation": Refusal(400, trouble(MODERATED), Verdict("content_filtered")),
        "400 credit": Refusal(400, trouble("Insufficient credits"), Verdict("upstream_unavailable", retryable=True)),
        "401": Refusal(401, trouble(), Verdict("upstream_auth")),
        "403": Refusal(403, trouble(), Verdict("upstream_auth")),
        "404": Refusal(404, trouble(), Verdict("upstream_rejected")),
        "422": Refusal(422, trouble([{"loc": ["body", "model"], "msg": "no"}]), Verdict("upstream_rejected")),
        "no detail": Refusal(422, None, Verdict("upstream_rejected")),
    }
    busy = Refusal(429, trouble(), Verdict(None), {"Retry-After": "0"})

    def __init__(self) -> None:
        super().__init__()
        self.callers: set[asyncio.Task[None]] = set()
        self.fetches = False  # whether it fetches what an order points to

    def settings(self, **more: Any) -> str:
        return super().settings(**{"base_url": f"{self.url}{PREFIX}", **more})

    async def hide(self) -> None:
        for caller in self.callers:
            caller.cancel()
        await asyncio.gather(*self.callers, return_exceptions=True)
        await super().hide()

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.credential}":
            return answer(401, trouble("Not authenticated"))
        match request.method, request.path.removeprefix(PREFIX).strip("/").split("/"):
            case "POST", ["generations"] | ["generations", "video"]:
                return await self._order(json.loads(await request.read()), FIELDS)
            case "POST", ["generations", "video", "modify"]:
                return await self._order(json.loads(await request.read()), EDIT)
            case "GET", ["generations"]:
                return self._list(request)
            case "GET", ["generations", name] if (order := self._known(name)) is not None:
                order.polls += 1
                return answer(200, self.tell(order, over=order.done))
            case "DELETE", ["generations", name] if (order := self._known(name)) is not None:
                order.canceled = True
                return web.Response(status=204)
        return answer(404, trouble("Generation not found"))

    def _known(self, name: str) -> Placed | None:
        order = self.orders.get(name)
        return None if order is None or order.canceled else order

    async def _order(self, body: dict[str, Any], fields: Mapping[str, Callable[[Any], bool]]) -> web.Response:
        wrong = [name for name, value in body.items() if name not in fields or not fields[name](value)]
        if "model" not in body or (fields is EDIT and "media" not in body):
            wrong.append("model")
        if not wrong and self.fetches:
            wrong += [slot for slot, address in _addresses(body) if await self.fetch(slot, address) is None]
        frames = body.get("keyframes", {}).values()
        own = [frame["id"] for frame in frames if frame.get("type") == "generation"]
        wrong += [name for name in own if self._known(name) is None or not self.orders[name].is_over()]
        if wrong:
            return answer(422, trouble([{"loc": ["body", name], "msg": "no", "type": "value_error"} for name in wrong]))
        order = self.place(body, wish_of(body), webhook=body.get("callback_url"))
        if order.webhook and order.plan.seconds is not None:
            caller = asyncio.create_task(self._call_back(order, order.webhook, order.plan.seconds))
            self.callers.add(caller)
            caller.add_done_callback(self.callers.discard)
        return answer(201, self.tell(order, over=False))

    def _list(self, request: web.BaseRequest) -> web.Response:
        start, most = int(request.query["offset"]), int(request.query["limit"])
        known = [order for order in self.orders.values() if not order.canceled]
        latest = sorted(known, key=lambda order: order.created_at, reverse=True)
        told = [self.tell(order, over=order.is_over()) for order in latest[start : start + most]]
        page = {"has_more": len(known) > start + most, "count": len(told), "limit": most, "offset": start}
        return answer(200, page | {"generations": told})

    async def _call_back(self, order: Placed, address: str, seconds: float) -> None:
        """The whole object when it begins and when it is over; nobody signs it."""
        with suppress(httpx.HTTPError):
            async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as client:
                await client.post(address, json=self.tell(order, over=False) | {"state": "dreaming"})
                await asyncio.sleep(max(0.0, order.created_at + seconds - time.time()) + 0.01)
                await client.post(address, json=self.tell(order, over=order.is_over()))

    def tell(self, order: Placed, *, over: bool) -> dict[str, Any]:
        told: dict[str, Any] = {
            "id": order.id,
            "generation_type": "video",
            "state": "queued" if order.polls < 2 else "dreaming",
            "failure_reason": None,
            "created_at": datetime.fromtimestamp(order.created_at, UTC).isoformat().replace("+00:00", "Z"),
            "model": order.body["model"],
            "request": {"generation_type": "video", "loop": False, "callback_url": None, **order.body},
            "assets": None,
        }
        return told | self._end(order) if over else told

    def _end(self, order: Placed) -> dict[str, Any]:
        match order.plan.ending:
            case "ok" | "corrupt":
                video, image = self.host.link(order, "video.mp4"), self.host.link(order, "preview.jpg")
                return {"state": "completed", "assets": {"video": video, "image": image, "progress_video": None}}
            case "empty":
                return {"state": "completed", "assets": {"video": None, "image": None, "progress_video": None}}
            case "moderated":
                return {"state": "failed", "failure_reason": MODERATED}
            case "blacklisted":
                return {"state": "failed", "failure_reason": "Contains blacklisted words"}
            case "no reason":
                return {"state": "failed"}
            case state:
                return {"state": state, "failure_reason": f"Job failed for {self.credential}"}


def _addresses(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The slots and the addresses of an order's files."""
    frames = [(name, frame["url"]) for name, frame in body.get("keyframes", {}).items() if "url" in frame]
    return [*frames, *(("media", body["media"]["url"]) for _ in [0] if "media" in body)]


DOUBLES = (LumaDouble,)


def generation(state: Any, **more: Any) -> dict[str, Any]:
    return {"id": "g1", "state": state, "failure_reason": None, "assets": None, **more}


MILL = {
    "prompt": "a mill",
    "durationSeconds": 8,
    "aspectRatio": "16:9",
    "resolution": "720p",
    "compressionQuality": "lossless",
    "personGeneration": "dont_allow",
}
ECHO = {"model": "ray-2", "prompt": "a mill", "aspect_ratio": "16:9", "resolution": "720p", "duration": "9s"}
SAMPLE = Sample(
    options={"type": "luma", "api_key": "luma-1"},
    operation={"id": "g1", "expected": {"width": 1280, "height": 720, "seconds": 9}},
    replies={
        "submit": [
            (201, generation("queued"), Accepted),
            (200, {"id": "g1"}, Accepted),
            (429, trouble(), Refused),
            (400, trouble(), Failed),
            (422, trouble([{"msg": 7}, None, "x"]), Failed),
            (200, generation("queued", id=None), Unclear),
            (200, {"id": ""}, Unclear),
            (408, trouble(), Unclear),
            (500, trouble(), Unclear),
        ],
        "find": [
            (200, {"generations": []}, Similar),
            (200, {"generations": [generation("queued", request=ECHO, created_at="2026-11-15T10:00:00Z")]}, Similar),
            (200, {"generations": [generation(None, request=ECHO, id=None), generation("x", request=[])]}, Similar),
            (200, {"generations": None}, Unclear),
            (404, {}, Unclear),
            (503, {}, Unclear),
        ],
        "poll": [
            (200, generation("queued"), Running),
            (200, generation("dreaming", assets={"progress_video": "https://x.example/p.mp4"}), Running),
            (200, generation("a word of tomorrow"), Running),
            (200, generation(None), Running),
            (200, generation("completed", assets={"video": "https://x.example/v.mp4"}), Done),
            (200, generation("completed", assets={"video": "https://x.example/v.mp4", "image": 7}), Done),
            (200, generation("completed", assets={"video": ["https://x.example/v.mp4"]}), Failed),
            (200, generation("completed"), Failed),
            (200, generation("failed", failure_reason={"moderation": 1}), Failed),
            (200, generation("failed", failure_reason="Frame moderation failed"), Failed),
            (200, generation(7), Unclear),
            (404, trouble(), Failed),
            (401, trouble(), Unclear),
        ],
        "cancel": [(204, {}, bool), (200, {}, bool), (404, {}, bool), (401, {}, Unclear), (503, {}, Unclear)],
    },
    orders=[("ray-2", MILL), ("luma_text_to_video", {"model": "ray-2", "prompt": "a mill"})],
)
