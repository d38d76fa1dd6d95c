"""Replicate's predictions, as its documents say."""

import base64
import hmac
import json
import secrets
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

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
    make_result,
    open_data_uri,
    read_form,
)

from penstock.vendor_api.generation import Accepted, Done, Failed, Refused, Running, Similar, Unclear

VEO = "google/veo-3.1-fast"
KLING = "kwaivgi/kling-v2.1"
FLUX, FLUX_2 = "black-forest-labs/flux-schnell", "black-forest-labs/flux-2-pro"
BANANA = "google/nano-banana-2"
PICTURE = "black-forest/flux"
UPSCALER = "tools/upscaler"
VERSION = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
DEPLOYMENT = "acme/flux-live"
MAX_INLINE = 256 * 1024
BODY = {"input", "webhook", "webhook_events_filter", "stream"}
EVENTS = {"start", "output", "logs", "completed"}
SHORT = {"720p": 720, "1080p": 1080}


def trouble(status: int, detail: str = "no", title: str = "Problem") -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": f"/problems/{uuid.uuid4()}",
    }


THROTTLED = {"detail": "Request was throttled. Your rate limit resets in ~30s."}

MODELS: Mapping[str, Mapping[str, Any]] = {
    VEO: {
        "prompt": str,
        "aspect_ratio": ("16:9", "9:16"),
        "duration": (4, 6, 8),
        "image": "uri",
        "last_frame": "uri",
        "reference_images": ["uri"],
        "negative_prompt": str,
        "resolution": ("720p", "1080p"),
        "generate_audio": bool,
        "seed": int,
    },
    KLING: {
        "prompt": str,
        "negative_prompt": str,
        "duration": (5, 10),
        "aspect_ratio": ("16:9", "9:16", "1:1"),
        "start_image": "uri",
        "end_image": "uri",
    },
    FLUX: {
        "prompt": str,
        "aspect_ratio": ("1:1", "16:9", "21:9", "3:2", "2:3", "4:5", "5:4", "3:4", "4:3", "9:16", "9:21"),
        "num_outputs": (1, 2, 3, 4),
        "output_format": ("webp", "jpg", "png"),
        "seed": int,
    },
    FLUX_2: {
        "prompt": str,
        "input_images": ["uri"],
        "aspect_ratio": ("match_input_image", "custom"),
        "width": int,
        "height": int,
        "output_format": ("webp", "jpg", "png"),
        "seed": int,
    },
    BANANA: {
        "prompt": str,
        "image_input": ["uri"],
        "aspect_ratio": ("match_input_image", "1:1", "16:9", "3:2"),
        "resolution": ("1K", "2K", "4K"),
        "output_format": ("jpg", "png"),
    },
    PICTURE: {"prompt": str, "steps": int, "seed": int},
    UPSCALER: {"image": "uri", "scale": int},
}
"""What each model takes: a type, some values, or a file."""
REQUIRED = {
    VEO: {"prompt"},
    KLING: {"prompt"},
    FLUX: {"prompt"},
    FLUX_2: {"prompt"},
    BANANA: {"prompt"},
    PICTURE: {"prompt"},
    UPSCALER: {"image"},
}


FIELDS = {"prompt": {"type": "string"}, "steps": {"type": "integer", "default": 4}}
OF_PICTURE = {
    "id": VERSION,
    "openapi_schema": {
        "openapi": "3.0.2",
        "components": {
            "schemas": {"Input": {"type": "object", "title": "Flux", "required": ["prompt"], "properties": FIELDS}}
        },
    },
}
"""The one version of a model that is described."""


class ReplicateDouble(MediaDouble):
    vendor = "replicate"
    credential = "r8_0123456789abcdef"
    cases = (
        Case("vendorb_video_31", {"prompt": "a mill", "durationSeconds": 4}),
        Case(
            "vendorb_video_31",
            {
                "prompt": "a mill",
                "durationSeconds": 6,
                "aspectRatio": "9:16",
                "compressionQuality": "lossless",
                "personGeneration": "dont_allow",
            },
            warnings=2,
        ),
        Case("replicate_veo_31_fast", {"prompt": "a mill", "duration": 4, "negative_prompt": "people"}),
        Case("replicate_veo_31_fast", {"prompt": "a mill", "duration": 4, "seed": 7}, takes_file=True),
    )
    order_call = ("POST", f"/v1/models/{VEO}/predictions")
    poll_call = ("GET", "/v1/predictions/")
    finds = True
    cancels = True
    endings = {
        "failed": Verdict("upstream_error", retryable=True),
        "nsfw": Verdict("content_filtered"),
        "safety": Verdict("content_filtered"),
        "canceled": Verdict("upstream_error", retryable=True),
        "aborted": Verdict("upstream_error", retryable=True),
        "empty": Verdict("content_filtered"),
        "removed": Verdict("upstream_error", retryable=True),
    }
    refusals = {
        "401": Refusal(401, trouble(401), Verdict("upstream_auth")),
        "402": Refusal(402, trouble(402), Verdict("upstream_unavailable", retryable=True)),
        "404": Refusal(404, trouble(404), Verdict("upstream_rejected")),
        "422": Refusal(422, trouble(422), Verdict("upstream_rejected")),
        "nothing said": Refusal(400, {}, Verdict("upstream_rejected")),
    }
    busy = Refusal(429, THROTTLED, Verdict(None), {"Retry-After": "0"})

    def __init__(self) -> None:
        super().__init__()
        self.secret = secrets.token_bytes(24)
        self.uploads: dict[str, bytes] = {}
        self.behind_api = False  # whether results lie behind the API itself, where the key is asked for
        self.page = 100  # how many predictions a page of the list holds
        self.abroad = ""  # where the list's next page is said to be, if not here

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.credential}":
            return answer(401, trouble(401, "You did not pass a valid authentication token", "Unauthenticated"))
        if "Prefer" in request.headers:
            return answer(400, trouble(400, "this double holds no requests"))
        path = request.path.strip("/").split("/")[1:]
        found = await self._post(path, request) if request.method == "POST" else self._get(path, request.path_qs)
        return found or answer(404, trouble(404, "The requested resource could not be found.", "Not found"))

    async def _post(self, path: list[str], request: web.BaseRequest) -> web.Response | None:
        match path:
            case ["predictions"]:
                return self._order_version(json.loads(await request.read()))
            case ["models", owner, name, "predictions"]:
                return self._order(json.loads(await request.read()), f"{owner}/{name}", "hidden")
            case ["deployments", owner, name, "predictions"] if f"{owner}/{name}" == DEPLOYMENT:
                return self._order(json.loads(await request.read()), PICTURE, VERSION)
            case ["predictions", name, "cancel"] if name in self.orders:
                return answer(200, self._cancel(self.orders[name]))
            case ["files"]:
                return await self._upload(request)
        return None

    def _get(self, path: list[str], address: str) -> web.Response | None:
        match path:
            case ["predictions"]:
                return self._list(address.partition("cursor=")[2])
            case ["predictions", name] if name in self.orders:
                return answer(200, self._advance(self.orders[name]))
            case ["files", token] if token in self.host.files:
                return web.Response(body=make_result(self.host.files[token][0].wish))
            case ["models", "black-forest", "flux"]:
                return answer(200, {"owner": "black-forest", "name": "flux", "latest_version": OF_PICTURE})
            case ["models", "black-forest", "flux", "versions", version] if version == VERSION:
                return answer(200, OF_PICTURE)
            case ["webhooks", "default", "secret"]:
                return answer(200, {"key": f"whsec_{base64.b64encode(self.secret).decode()}"})
        return None

    # -- orders

    def _order_version(self, body: dict[str, Any]) -> web.Response:
        if body.pop("version", None) != VERSION:
            return answer(422, trouble(422, "The specified version does not exist", "Invalid version"))
        return self._order(body, PICTURE, VERSION)

    def _order(self, body: dict[str, Any], model: str, version: str) -> web.Response:
        if model not in MODELS:
            return answer(404, trouble(404, "The requested resource could not be found.", "Not found"))
        if wrong := self._wrong(body, model):
            return answer(422, trouble(422, f"- {wrong}", "Input validation failed"))
        given = body["input"]
        wish = Wish("image")
        if model == VEO:
            short = SHORT[given.get("resolution", "1080p")]
            size = (short * 16 // 9, short) if given.get("aspect_ratio", "16:9") == "16:9" else (short, short * 16 // 9)
            wish = Wish("video", *size, given.get("duration", 8))
        elif model in (FLUX, FLUX_2, BANANA):
            picture_type = given.get("output_format", "webp").replace("jpg", "jpeg")
            wish = Wish("image", given.get("width", 512), given.get("height", 512), picture_type=picture_type)
        elif model == KLING:
            wish = Wish("video", seconds=given.get("duration", 5))
        order = self.place(
            {"model": model, "version": version, "input": given},
            wish,
            id=secrets.token_hex(13),
            webhook=body.get("webhook"),
        )
        return answer(201, self._tell(order))

    def _wrong(self, body: dict[str, Any], model: str) -> str | None:
        """What is wrong with an order."""
        if unknown := body.keys() - BODY:
            return f"unknown {unknown}"
        if "webhook" in body and not set(body.get("webhook_events_filter", [])) <= EVENTS:
            return "webhook_events_filter"
        given = body.get("input")
        if not isinstance(given, dict):
            return "input is required"
        if missing := REQUIRED[model] - given.keys():
            return f"{missing} is required"
        if wrong := [name for name, value in given.items() if not self._fits(value, MODELS[model].get(name))]:
            return f"input.{wrong[0]}: invalid"
        if "reference_images" in given and (given.get("duration") != 8 or {"image", "last_frame"} & given.keys()):
            return "input.reference_images: 8 seconds, and no other pictures"
        self._receive_files(given, MODELS[model])
        return None

    def _receive_files(self, given: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        """Write down the pictures that stand in an order."""
        for name, value in given.items():
            for place, each in enumerate(value if isinstance(value, list) else [value]):
                if fields[name] in ("uri", ["uri"]) and (data := open_data_uri(each)):
                    self.receive(f"{name}.{place}" if isinstance(value, list) else name, data[1])

    def _fits(self, value: Any, wanted: Any) -> bool:
        if wanted is None:
            return False
        if isinstance(wanted, tuple):
            return any(value == each and type(value) is type(each) for each in wanted)
        if isinstance(wanted, list):
            return isinstance(value, list) and 1 <= len(value) <= 3 and all(map(self._is_file, value))
        return self._is_file(value) if wanted == "uri" else type(value) is wanted

    def _is_file(self, value: Any) -> bool:
        if not isinstance(value, str):
            return False
        if value.startswith("data:image/"):
            return len(base64.b64decode(value.partition(";base64,")[2], validate=True)) <= MAX_INLINE
        return value in self.uploads or not value.startswith(self.url)

    async def _upload(self, request: web.BaseRequest) -> web.Response:
        form = await read_form(request)
        name, data = form.get("content", (None, b""))
        if not name or form.keys() != {"content"}:
            return answer(422, trouble(422, "content is required"))
        url = f"{self.url}/v1/files/{uuid.uuid4()}"
        self.uploads[url] = data
        told = {"id": url.rpartition("/")[2], "name": name, "size": len(data), "urls": {"get": url}}
        return answer(201, told)

    # -- what becomes of them

    def _advance(self, order: Placed) -> dict[str, Any]:
        order.polls += 1
        return self._tell(order, over=order.done)

    def _cancel(self, order: Placed) -> dict[str, Any]:
        order.canceled = not order.is_over()
        return self._tell(order)

    def _list(self, cursor: str) -> web.Response:
        latest = sorted(self.orders.values(), key=lambda order: order.created_at, reverse=True)
        start = int(cursor or 0)
        more = start + self.page < len(latest)
        following = f"{self.abroad or self.url}/v1/predictions?cursor={start + self.page}" if more else None
        results = [self._tell(order) for order in latest[start : start + self.page]]
        return answer(200, {"previous": None, "next": following, "results": results})

    def _tell(self, order: Placed, *, over: bool | None = None) -> dict[str, Any]:
        """The prediction as the API shows it."""
        over = order.is_over() if over is None else over
        told: dict[str, Any] = {
            "id": order.id,
            **order.body,
            "status": "starting",
            "output": None,
            "logs": "",
            "error": None,
            "metrics": {},
            "created_at": stamp(order.created_at),
            "started_at": None,
            "completed_at": None,
            "data_removed": False,
            "urls": {"get": "https://elsewhere.invalid/v1/predictions/x", "cancel": "https://elsewhere.invalid/x"},
        }
        if order.canceled:
            return told | {"status": "canceled", "completed_at": stamp(time.time())}
        if not over:
            bars = "".join(f"\r {each * 20}%|███   | {each}/5" for each in range(order.polls))
            return told | ({"status": "processing", "logs": f"Seed: 7\n{bars}"} if order.polls else {})
        told |= {"completed_at": stamp(time.time()), "metrics": {"predict_time": 1.5}}
        match order.plan.ending:
            case "ok" | "corrupt":
                return told | {"status": "succeeded", "output": self._output(order)}
            case "empty":
                return told | {"status": "succeeded"}
            case "removed":
                return told | {"status": "succeeded", "input": {}, "data_removed": True}
            case "nsfw":
                return told | {"status": "failed", "error": "NSFW content detected. Try another prompt."}
            case "safety":
                return told | {"status": "failed", "error": f"Blocked by safety filters, see {self.url}"}
            case word:
                return told | {"status": word, "error": f"see {self.url}"}

    def _output(self, order: Placed) -> Any:
        if (count := order.body["input"].get("num_outputs", 1)) > 1:
            return [self.host.link(order, f"out-{number}.png") for number in range(count)]
        if order.body["model"] in (FLUX_2, BANANA):  # a single address, not a list
            return self.host.link(order, "out.png")
        name = "tmp.mp4" if order.wish.kind == "video" else "out-0.png"
        url = self.host.link(order, name)
        if self.behind_api:
            url = f"{self.url}/v1/files/{url.partition('signature=')[2].partition('%2F')[0]}"
        return [url] if order.wish.kind == "image" else url

    # -- webhooks

    def notice(self, order: Placed, secret: bytes | None = None, age: float = 0.0) -> tuple[dict[str, str], bytes]:
        """Headers and body of what is sent to an order's webhook."""
        body = json.dumps(self._tell(order)).encode()
        return sign(secret or self.secret, body, time.time() - age), body


def sign(secret: bytes, body: bytes, moment: float) -> dict[str, str]:
    """The headers of a notice; the first of its two signatures is of another secret."""
    name, told = f"msg_{uuid.uuid4().hex}", str(int(moment))
    message = f"{name}.{told}.".encode() + body
    made = [base64.b64encode(hmac.digest(key, message, "sha256")).decode() for key in (b"another", secret)]
    signatures = " ".join(f"v1,{each}" for each in made)
    return {"webhook-id": name, "webhook-timestamp": told, "webhook-signature": signatures}


def stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


DOUBLES = (ReplicateDouble,)


def told(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "p1", "model": VEO, "version": "hidden", "status": status, "logs": "", **more}


VIDEO = {
    "prompt": "a mill",
    "durationSeconds": 4,
    "aspectRatio": "16:9",
    "resolution": "720p",
    "compressionQuality": "optimized",
    "personGeneration": "allow_adult",
}
FILM = "https://replicate.delivery/x/tmp.mp4"

SAMPLE = Sample(
    options={"type": "replicate", "api_key": "r8_1"},
    operation={"id": "p1", "recipe": {"kind": "video"}},
    replies={
        "submit": [
            (201, told("starting"), Accepted),
            (202, told("processing"), Accepted),
            (429, THROTTLED, Refused),
            (401, trouble(401), Failed),
            (402, trouble(402), Failed),
            (422, trouble(422), Failed),
            (201, told("starting", id="../v1/account"), Unclear),
            (201, told("starting", id=None), Unclear),
            (201, {}, Unclear),
            (500, trouble(500), Unclear),
            (302, {}, Unclear),
        ],
        "find": [
            (200, {"next": None, "previous": None, "results": []}, Similar),
            (200, {"next": "https://elsewhere.invalid/x", "results": [told("starting", input=None)]}, Similar),
            (200, {"results": [1]}, Unclear),
            (404, trouble(404), Unclear),
            (503, {}, Unclear),
        ],
        "poll": [
            (200, told("starting"), Running),
            (200, told("processing", logs="  40%|████      | 2/5"), Running),
            (200, told("processing", logs=None), Running),
            (200, told("a word of tomorrow"), Running),
            (200, told("succeeded", output=FILM, completed_at="2026-11-15T10:00:00.123456Z"), Done),
            (200, told("succeeded", output=[FILM]), Done),
            (200, told("succeeded", output={"video": {"url": FILM}}), Done),
            (200, told("succeeded", output=None), Failed),
            (200, told("succeeded", output=None, data_removed=True), Failed),
            (200, told("failed", error="out of memory"), Failed),
            (200, told("failed", error=None), Failed),
            (200, told("canceled"), Failed),
            (200, told("aborted"), Failed),
            (200, {}, Unclear),
            (404, trouble(404), Failed),
            (401, trouble(401), Unclear),
        ],
        "cancel": [
            (200, told("canceled"), bool),
            (200, told("succeeded"), bool),
            (404, trouble(404), bool),
            (200, {}, Unclear),
            (429, THROTTLED, Unclear),
            (503, {}, Unclear),
        ],
    },
    orders=[(VEO, VIDEO), (VEO, {"prompt": "a mill", "duration": 4, "seed": 7}), (PICTURE, {"prompt": "a mill"})],
)
