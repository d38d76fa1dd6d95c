"""Luma's Agents API with Ray 3.2, as its documents say."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from doubles.media import Case, MediaDouble, Placed, Refusal, Sample, Verdict, Wish, answer, open_base64

from penstock.vendor_api.generation import Accepted, Done, Failed, LookupUnsupported, Refused, Running, Unclear

PREFIX = "/v1"
RATIOS = {"9:16", "3:4", "1:1", "4:3", "16:9", "21:9"}
SHORT_SIDES = {"360p": 360, "540p": 540, "720p": 720, "1080p": 1080}
STRENGTHS = {f"{word}_{level}" for word in ("adhere", "flex", "reimagine") for level in (1, 2, 3)}
FIELDS = {"type", "model", "prompt", "aspect_ratio", "source", "video", "user_id"}
OF_VIDEO = {"start_frame", "end_frame", "duration", "resolution", "loop", "edit"}


def trouble(message: str = "no", code: str | None = None) -> dict[str, Any]:
    return {"detail": message, **({} if code is None else {"failure_code": code})}


class LumaAgentsDouble(MediaDouble):
    vendor = "luma_agents"
    credential = "luma-agents-0123456789"
    cases = (
        Case("luma_ray32_video", {"prompt": "a mill", "duration": 5, "aspect_ratio": "16:9", "resolution": "720p"}),
        Case("luma_ray32_video", {"prompt": "a mill", "seed": 7, "generate_audio": True}, warnings=2),
    )
    order_call = ("POST", f"{PREFIX}/generations")
    poll_call = ("GET", f"{PREFIX}/generations/")
    endings = {
        "content_moderated": Verdict("content_filtered"),
        "corrupt_input": Verdict("upstream_rejected"),
        "generation_failed": Verdict("upstream_error", retryable=True),
        "empty": Verdict("content_filtered"),
    }
    refusals = {
        "400": Refusal(400, trouble(), Verdict("upstream_rejected")),
        "401": Refusal(401, trouble(), Verdict("upstream_auth")),
        "moderated": Refusal(400, trouble("no", "content_moderated"), Verdict("content_filtered")),
        "budget": Refusal(402, trouble("no", "budget_exhausted"), Verdict("upstream_unavailable", retryable=True)),
    }
    busy = Refusal(429, trouble(), Verdict(None), {"Retry-After": "0"})

    def settings(self, **more: Any) -> str:
        return super().settings(**{"base_url": f"{self.url}{PREFIX}", **more})

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.credential}":
            return answer(401, trouble("Not authenticated"))
        match request.method, request.path.removeprefix(PREFIX).strip("/").split("/"):
            case "POST", ["generations"]:
                return await self._order(json.loads(await request.read()))
            case "GET", ["generations", name] if name in self.orders:
                order = self.orders[name]
                order.polls += 1
                return answer(200, self._tell(order, over=order.done))
        return answer(404, trouble("Generation not found"))

    async def _order(self, body: dict[str, Any]) -> web.Response:
        video = body.get("video", {})
        frames = {name: video[name] for name in ("start_frame", "end_frame") if name in video}
        is_edit = body.get("type") == "video_edit"
        wrong = [
            *(name for name in body if name not in FIELDS),
            *(name for name in video if name not in OF_VIDEO),
            *(["type"] if body.get("type") not in ("video", "video_edit") or body.get("model") != "ray-3.2" else []),
            *(["prompt"] if not isinstance(body.get("prompt"), str) or not 1 <= len(body["prompt"]) <= 6000 else []),
            *(
                ["aspect_ratio"]
                if body.get("aspect_ratio", "1:1") not in RATIOS or (is_edit and "aspect_ratio" in body)
                else []
            ),
            *(["duration"] if video.get("duration", "5s") not in (("5s",) if frames else ("5s", "10s")) else []),
            *(["resolution"] if video.get("resolution", "720p") not in SHORT_SIDES else []),
            *(["source"] if is_edit != ("source" in body) or is_edit != ("edit" in video) else []),
            *(["edit"] if is_edit and video["edit"].get("strength") not in STRENGTHS else []),
        ]
        files = {**frames, **({"source": body["source"]} if "source" in body else {})}
        for name, file in () if wrong else files.items():
            wrong += [] if await self._receive(name, file) else [name]
        if wrong:
            return answer(400, trouble(f"Invalid: {wrong}", "invalid_request"))
        short, ratio = SHORT_SIDES[video.get("resolution", "720p")], body.get("aspect_ratio", "16:9")
        wide, high = map(int, ratio.split(":"))
        long = round(short * max(wide / high, high / wide)) // 2 * 2
        width, height = (long, short) if wide >= high else (short, long)
        order = self.place(body, Wish("video", width, height, int(video.get("duration", "5s").removesuffix("s"))))
        return answer(201, self._tell(order, over=False))

    async def _receive(self, slot: str, file: Mapping[str, Any]) -> bool:
        """Take a media reference: an own generation that is over, bytes with their type, or an address."""
        match dict(file):
            case {"generation_id": str(name), **rest} if not rest:
                return name in self.orders and self.orders[name].is_over()
            case {"data": str(text), "media_type": str(), **rest} if not rest and (data := open_base64(text)):
                self.receive(slot, data)
                return True
            case {"url": str(address), "media_type": str(), **rest} if not rest:
                return await self.fetch(slot, address) is not None
        return False

    def _tell(self, order: Placed, *, over: bool) -> dict[str, Any]:
        told: dict[str, Any] = {"id": order.id, "type": order.body["type"], "state": "processing", "output": []}
        if not over:
            return told | ({"state": "queued"} if order.polls < 2 else {})
        match order.plan.ending:
            case "ok" | "corrupt":
                return told | {
                    "state": "completed",
                    "output": [{"type": "video", "url": self.host.link(order, "v.mp4")}],
                }
            case "empty":
                return told | {"state": "completed"}
            case code:
                return told | {"state": "failed", "failure_code": code, "failure_reason": f"{self.credential}: no"}


DOUBLES = (LumaAgentsDouble,)


def generation(state: Any, **more: Any) -> dict[str, Any]:
    return {"id": "g1", "state": state, "output": [], **more}


SAMPLE = Sample(
    options={"type": "luma_agents", "api_key": "k", "base_url": "http://127.0.0.1:1"},
    operation={"id": "g1", "expected": {"seconds": 5}},
    replies={
        "submit": [
            (201, generation("queued"), Accepted),
            (400, trouble(), Failed),
            (402, trouble("no", "budget_exhausted"), Failed),
            (429, trouble(), Refused),
            (500, trouble(), Unclear),
            (200, {"id": ""}, Unclear),
        ],
        "find": [(200, {}, LookupUnsupported)],
        "poll": [
            (200, generation("queued"), Running),
            (200, generation("a word of tomorrow"), Running),
            (200, generation("completed", output=[{"url": "https://files.example/v.mp4"}]), Done),
            (200, generation("completed"), Failed),
            (200, generation("failed", failure_code="content_moderated"), Failed),
            (200, generation(None), Unclear),
            (404, trouble(), Failed),
            (503, trouble(), Unclear),
        ],
        "cancel": [(200, {}, bool)],
    },
    orders=[("ray-3.2", {"prompt": "a mill", "duration": 5})],
)
