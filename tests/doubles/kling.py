"""Kling's own API, as its documents say."""

import asyncio
import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import httpx
from aiohttp import web
from doubles.media import (
    Case,
    MediaDouble,
    Placed,
    Refusal,
    Sample,
    Verdict,
    Wish,
    answer,
    open_base64,
    open_picture,
)
from plain import NO_TLS

from penstock.vendor_api.generation import Accepted, Done, Failed, Refused, Running, Similar, Unclear

PATH = "/v1/videos/text2video"
ACCESS, SECRET = "Ak-0123456789abcdefghij", "Sk:ü0123456789"  # a secret key may hold anything, a colon too
RATIOS = {"16:9": 16 / 9, "9:16": 9 / 16, "1:1": 1.0}
SHORT_SIDES = {"std": 720, "pro": 1080}
MOST = 5
"""How many orders may be under way at once."""
RISK = "Failure to pass the risk control system"
STATUSES = {
    **dict.fromkeys((1000, 1001, 1002, 1003, 1004), 401),
    **dict.fromkeys((1100, 1101, 1102, 1302, 1303), 429),
    **dict.fromkeys((1200, 1201, 1202, 1300, 1301), 400),
    1103: 403,
    1203: 404,
    1304: 403,
}


def one_of(*allowed: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in allowed


def is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 2500


FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "model_name": one_of(
        "kling-v1", "kling-v1-6", "kling-v2-master", "kling-v2-1-master", "kling-v2-5-turbo", "kling-v2-6"
    ),
    "prompt": lambda value: is_text(value) and value != "",
    "negative_prompt": is_text,
    "duration": one_of("5", "10"),
    "mode": one_of("std", "pro"),
    "aspect_ratio": one_of(*RATIOS),
    "cfg_scale": lambda value: type(value) in (int, float) and 0 <= value <= 1,
    "sound": one_of("on", "off"),
    "callback_url": lambda value: isinstance(value, str) and value.startswith(("http://", "https://")),
    "external_task_id": lambda value: isinstance(value, str) and value != "",
}
PROMPTS = {name: FIELDS[name] for name in ("prompt", "negative_prompt", "callback_url", "external_task_id")}
MADE = {name: FIELDS[name] for name in ("model_name", "duration", "mode", "cfg_scale", "sound")}


def is_frame(value: Any) -> bool:
    """A picture in bare Base64, as large and of the shape that Kling takes."""
    data = open_base64(value)
    found = None if data is None else open_picture(data)
    if found is None or found[0] not in ("image/jpeg", "image/png") or len(data or b"") > 10 << 20:
        return False
    short, long = sorted(found[1:])
    return short >= 300 and long <= 2.5 * short


def is_source(value: Any) -> bool:
    return set(value) == {"video_url", "refer_type", "keep_original_sound"} and value["refer_type"] in (
        "base",
        "feature",
    )


ENDPOINTS: Mapping[str, tuple[Mapping[str, Callable[[Any], bool]], set[str]]] = {
    "text2video": (FIELDS, {"prompt"}),
    "image2video": (PROMPTS | MADE | {"image": is_frame, "image_tail": is_frame}, set()),
    "multi-image2video": (
        PROMPTS
        | {"model_name": one_of("kling-v1-6"), "image_list": lambda value: 1 <= len(value) <= 4}
        | {name: FIELDS[name] for name in ("duration", "mode", "aspect_ratio")},
        {"image_list"},
    ),
    "video-extend": (PROMPTS | {"video_id": is_text, "cfg_scale": FIELDS["cfg_scale"]}, {"video_id"}),
    "omni-video": (
        PROMPTS
        | {"model_name": one_of("kling-video-o1"), "mode": FIELDS["mode"]}
        | {"video_list": lambda value: len(value) == 1 and is_source(value[0])},
        {"prompt", "video_list"},
    ),
}
"""The fields of each endpoint, and those that it cannot do without."""


def envelope(data: Any) -> dict[str, Any]:
    return {"code": 0, "message": "SUCCEED", "request_id": "r1", "data": data}


def trouble(code: Any, message: Any = "no") -> dict[str, Any]:
    return {"code": code, "message": message, "request_id": "r1"}


def refuse(code: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return answer(STATUSES[code], trouble(code, message), headers)


def refusals() -> dict[str, Refusal]:
    """What each code means; with its own status, and in a reply that looks like success."""
    meanings = {
        "upstream_auth": (1000, 1001, 1002, 1003, 1004, 1103, 1304),
        "upstream_unavailable": (1100, 1101, 1102),
        "upstream_rejected": (1200, 1201, 1202, 1203),
        "content_filtered": (1300, 1301),
    }
    verdicts = {
        code: Verdict(word, retryable=word == "upstream_unavailable")
        for word, codes in meanings.items()
        for code in codes
    }
    own = {str(code): Refusal(STATUSES[code], trouble(code), verdict) for code, verdict in verdicts.items()}
    plain = {f"{code} in 200": Refusal(200, trouble(code), verdicts[code]) for code in (1002, 1102, 1201, 1301)}
    no_code = {
        "400 alone": Refusal(400, {"error": "no"}, Verdict("upstream_rejected")),
        "401 alone": Refusal(401, None, Verdict("upstream_auth")),
    }
    return own | plain | no_code


def wish_of(body: Mapping[str, Any]) -> Wish:
    short, ratio = SHORT_SIDES[body.get("mode", "std")], RATIOS[body.get("aspect_ratio", "16:9")]
    if frame := open_picture(open_base64(body.get("image") or body.get("image_tail")) or b""):
        ratio = frame[1] / frame[2]
    long = round(short * max(ratio, 1 / ratio) / 2) * 2
    width, height = (long, short) if ratio >= 1 else (short, long)
    return Wish("video", width, height, int(body.get("duration", "5")))


class KlingDouble(MediaDouble):
    vendor = "kling"
    credential = ACCESS  # the one that Kling is shown, and may tell
    wrong_credential = {"api_key": f"{ACCESS}:another"}
    cases = (
        Case("vendorb_video_31", {"prompt": "a mill", "durationSeconds": 4}, warnings=2),
        Case(
            "vendorb_video_31",
            {"prompt": "a mill", "aspectRatio": "9:16", "resolution": "1080p", "compressionQuality": "lossless"},
            warnings=2,
        ),
        Case("kling_text_to_video", {"prompt": "ein Mühlrad 🌊"}),
        Case(
            "kling_text_to_video",
            {
                "model_name": "kling-v2-6",
                "prompt": "a mill",
                "negative_prompt": "people",
                "duration": "10",
                "mode": "std",
                "aspect_ratio": "1:1",
                "cfg_scale": 1.0,
                "sound": "on",
            },
        ),
    )
    order_call = ("POST", PATH)
    poll_call = ("GET", f"{PATH}/")
    finds = True
    endings = {
        "failed": Verdict("upstream_error", retryable=True),
        "policy": Verdict("content_filtered"),
        "no reason": Verdict("upstream_error", retryable=True),
        "empty": Verdict("content_filtered"),
        "no result": Verdict("content_filtered"),
    }
    refusals = refusals()
    busy = Refusal(429, trouble(1303), Verdict(None), {"Retry-After": "0"})

    def __init__(self) -> None:
        super().__init__()
        self.callers: set[asyncio.Task[None]] = set()
        self.endpoints: dict[str, str] = {}  # by order

    def settings(self, **more: Any) -> str:
        return super().settings(**{"api_key": f"{ACCESS}:{SECRET}", **more})

    async def hide(self) -> None:
        for caller in self.callers:
            caller.cancel()
        await asyncio.gather(*self.callers, return_exceptions=True)
        await super().hide()

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if (code := check_token(request.headers.get("Authorization", ""), time.time())) is not None:
            return refuse(code, f"{ACCESS}: {request.headers.get('Authorization')}")
        _, endpoint, name = (*request.path.removeprefix("/v1").split("/")[1:], "", "")[:3]
        if endpoint not in ENDPOINTS or not request.path.startswith("/v1/videos/"):
            return refuse(1203, "not found")
        match request.method, name:
            case "POST", "":
                return await self._order(endpoint, json.loads(await request.read()))
            case "GET", "":
                return self._list(endpoint, request)
            case "GET", _ if name in self.orders and self.endpoints.get(name, "text2video") == endpoint:
                order = self.orders[name]
                order.polls += 1
                return answer(200, envelope(self.tell(order, over=order.done)))
        return refuse(1203, "not found")

    async def _order(self, endpoint: str, body: dict[str, Any]) -> web.Response:
        fields, needed = ENDPOINTS[endpoint]
        wrong = [name for name, value in body.items() if name not in fields or not fields[name](value)]
        known = {order.body.get("external_task_id") for order in self.orders.values()}
        if wrong or needed - body.keys() or body.get("external_task_id", "") in known:
            return refuse(1201, f"wrong: {wrong or [*needed, 'external_task_id']}")
        if body.get("sound") == "on" and (body.get("model_name") != "kling-v2-6"):
            return refuse(1201, "this model makes no sound")
        if (refusal := await self._take_inputs(endpoint, body)) is not None:
            return refusal
        if self.open_orders >= MOST:
            return refuse(1303, "parallel task over resource pack limit", {"Retry-After": "0"})
        order = self.place(body, wish_of(body), webhook=body.get("callback_url"))
        self.endpoints[order.id] = endpoint
        if order.webhook and order.plan.seconds is not None:
            caller = asyncio.create_task(self._call_back(order, order.webhook, order.plan.seconds))
            self.callers.add(caller)
            caller.add_done_callback(self.callers.discard)
        told = self.tell(order, over=False)
        return answer(200, envelope({name: told[name] for name in told if name != "task_status_msg"}))

    async def _take_inputs(self, endpoint: str, body: Mapping[str, Any]) -> web.Response | None:
        """Open the files of an order; the refusal, if one of them is wrong."""
        if endpoint == "image2video" and not {"image", "image_tail"} & body.keys():
            return refuse(1201, "image or image_tail is required")
        if endpoint == "video-extend":
            made = {f"v-{order.id}" for order in self.orders.values() if order.is_over()}
            return None if body["video_id"] in made else refuse(1203, "video_id not found")
        pictures = [(slot, body[slot]) for slot in ("image", "image_tail") if slot in body]
        for number, each in enumerate(body.get("image_list", [])):
            if set(each) != {"image"} or not is_frame(each["image"]):
                return refuse(1201, f"image_list {number}")
            pictures.append((f"image_list.{number}", each["image"]))
        for slot, text in pictures:
            self.receive(slot, open_base64(text) or b"")
        films = [await self.fetch("video_url", each["video_url"]) for each in body.get("video_list", [])]
        return refuse(1201, "the video cannot be fetched") if None in films else None

    def _list(self, endpoint: str, request: web.BaseRequest) -> web.Response:
        page, size = int(request.query.get("pageNum", "1")), int(request.query.get("pageSize", "30"))
        if not (1 <= page <= 1000 and 1 <= size <= 500):
            return refuse(1201, "pageNum or pageSize")
        own = [order for order in self.orders.values() if self.endpoints.get(order.id, "text2video") == endpoint]
        latest = sorted(own, key=lambda order: order.created_at, reverse=True)
        told = [self.tell(order, over=order.is_over()) for order in latest[(page - 1) * size : page * size]]
        return answer(200, envelope(told))

    async def _call_back(self, order: Placed, address: str, seconds: float) -> None:
        """The whole object when it begins and when it is over; nobody signs it."""
        with suppress(httpx.HTTPError):
            async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as client:
                await client.post(address, json=self.tell(order, over=False))
                await asyncio.sleep(max(0.0, order.created_at + seconds - time.time()) + 0.01)
                await client.post(address, json=self.tell(order, over=order.is_over()))

    def tell(self, order: Placed, *, over: bool) -> dict[str, Any]:
        told: dict[str, Any] = {
            "task_id": order.id,
            "task_status": "submitted" if order.polls < 2 else "processing",
            "task_status_msg": "",
            "task_info": {"external_task_id": order.body.get("external_task_id")},
            "created_at": int(order.created_at * 1000),
            "updated_at": int((order.noticed_at or order.created_at) * 1000),
        }
        return told | self._end(order) if over else told

    def _end(self, order: Placed) -> dict[str, Any]:
        match order.plan.ending:
            case "ok" | "corrupt":
                video = {"id": f"v-{order.id}", "url": self.host.link(order, "video.mp4")}
                video["duration"] = f"{order.wish.seconds}.1"
                return {"task_status": "succeed", "task_result": {"videos": [video]}}
            case "empty":
                return {"task_status": "succeed", "task_result": {"videos": []}}
            case "no result":
                return {"task_status": "succeed"}
            case "policy":
                return {"task_status": "failed", "task_status_msg": RISK}
            case "no reason":
                return {"task_status": "failed"}
            case word:
                return {"task_status": word, "task_status_msg": f"{ACCESS} has failed, see {self.url}"}


def check_token(header: str, now: float) -> int | None:
    """Return the code of what is wrong with an `Authorization` at this time."""
    if not header:
        return 1001
    try:
        scheme, text = header.split(" ")
        signed, signature = text.rsplit(".", 1)
        head, claims = (json.loads(_decode(part)) for part in signed.split("."))
        wanted = hmac.new(SECRET.encode(), signed.encode(), hashlib.sha256).digest()
        is_ours = scheme == "Bearer" and hmac.compare_digest(_decode(signature), wanted)
        begin, end = claims["nbf"], claims["exp"]
    except (ValueError, KeyError, TypeError):
        return 1002
    is_whole = head == {"alg": "HS256", "typ": "JWT"} and claims == {"iss": ACCESS, "exp": end, "nbf": begin}
    if not (is_ours and is_whole and type(begin) is type(end) is int and end - begin <= 1805):
        return 1002
    if begin > now:
        return 1003
    return None if now < end else 1004


def _decode(text: str) -> bytes:
    if "=" in text:
        raise ValueError("a JWT has no padding")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


DOUBLES = (KlingDouble,)


# -- plain data


def task(status: Any, **more: Any) -> dict[str, Any]:
    return envelope({"task_id": "k1", "task_status": status, **more})


def succeed(*videos: Any, **more: Any) -> dict[str, Any]:
    return task("succeed", task_result={"videos": list(videos)}, **more)


def listing(*references: Any) -> dict[str, Any]:
    return envelope([{"task_id": "k1", "task_info": {"external_task_id": each}} for each in references])


MILL = {
    "prompt": "a mill",
    "durationSeconds": 8,
    "aspectRatio": "16:9",
    "resolution": "720p",
    "compressionQuality": "lossless",
    "personGeneration": "dont_allow",
}
VIDEO = {"id": "v1", "url": "https://x.example/v.mp4", "duration": "5.1"}
SAMPLE = Sample(
    options={"type": "kling", "api_key": f"{ACCESS}:{SECRET}"},
    operation={"id": "k1", "expected": {"width": 1920, "height": 1080, "seconds": 10}},
    replies={
        "submit": [
            (200, task("submitted"), Accepted),
            (200, envelope({"task_id": "k1"}), Accepted),
            (429, trouble(1302), Refused),
            (200, trouble(1303), Refused),
            (429, {}, Refused),
            (429, trouble(1102), Failed),
            (200, trouble(1301), Failed),
            (400, trouble(1201, [1]), Failed),
            (400, trouble("1201"), Failed),
            (404, [], Failed),
            (400, trouble(0), Failed),
            (200, trouble(0), Unclear),
            (200, trouble(1999), Unclear),
            (200, trouble(5000), Unclear),
            (400, trouble(5001), Unclear),
            (500, trouble(5002), Unclear),
            (503, trouble(1303), Unclear),
            (200, envelope({"task_id": ""}), Unclear),
            (200, envelope({"task_id": 7}), Unclear),
            (200, envelope(None), Unclear),
            (200, {"data": {"task_id": "k1"}}, Unclear),
            (408, {}, Unclear),
        ],
        "find": [
            (200, listing("another", "job_1-1"), Accepted),
            (200, listing(), Similar),
            (200, listing("job_1-10", None, 7), Similar),
            (200, envelope([None, 7, {"task_id": 7, "task_info": {"external_task_id": "job_1-1"}}]), Similar),
            (200, envelope([{"task_id": "", "task_info": {"external_task_id": "job_1-1"}}]), Similar),
            (200, envelope(None), Unclear),
            (200, trouble(1302), Unclear),
            (200, listing("job_1-1") | {"code": 1000}, Unclear),
            (404, listing("job_1-1"), Unclear),
            (503, {}, Unclear),
        ],
        "poll": [
            (200, task("submitted"), Running),
            (200, task("processing", task_status_msg=None), Running),
            (200, task("a word of tomorrow"), Running),
            (200, task(None), Running),
            (200, succeed(VIDEO, updated_at=1763200000000), Done),
            (200, succeed(VIDEO, VIDEO, updated_at="soon"), Done),
            (200, succeed(VIDEO, updated_at=1e300), Done),
            (200, succeed({"id": "v1", "url": None}), Failed),
            (200, succeed({"url": 7}, None), Failed),
            (200, succeed(), Failed),
            (200, task("succeed", task_result=[]), Failed),
            (200, task("failed", task_status_msg=RISK), Failed),
            (200, task("failed", task_status_msg=["policy"]), Failed),
            (200, task("failed"), Failed),
            (200, task(7), Unclear),
            (200, envelope(None), Unclear),
            (200, task("failed") | {"code": 5000}, Unclear),
            (404, trouble(1203), Failed),
            (200, trouble(1203), Failed),
            (401, trouble(1004), Unclear),
            (429, trouble(1302), Unclear),
        ],
        "cancel": [(200, {}, bool)],
    },
    orders=[
        ("kling-v2-5-turbo", MILL),
        ("kling_text_to_video", {"model_name": "kling-v1", "prompt": "a mill", "duration": "5"}),
    ],
)
