"""Runway's text to video, as its documents say."""

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from doubles.media import Case, MediaDouble, Placed, Refusal, Sample, Verdict, Wish, answer, open_data_uri, read_form

from penstock.vendor_api.generation import Accepted, Done, Failed, LookupUnsupported, Refused, Running, Unclear

VERSION = "2024-11-06"
WIDE = {"1280:720", "720:1280"}
FULL = WIDE | {"1920:1080", "1080:1920"}
FAILURES = {
    "SAFETY.INPUT.TEXT": Verdict("content_filtered"),
    "SAFETY.OUTPUT.VIDEO": Verdict("content_filtered"),
    "INPUT_PREPROCESSING.SAFETY.TEXT": Verdict("content_filtered"),
    "INPUT_PREPROCESSING.TEXT": Verdict("upstream_rejected"),
    "INPUT_PREPROCESSING.INTERNAL": Verdict("upstream_error", retryable=True),
    "ASSET.INVALID": Verdict("upstream_rejected"),
    "INTERNAL.BAD_OUTPUT.CODE01": Verdict("upstream_error", retryable=True),
    "INTERNAL": Verdict("upstream_error", retryable=True),
    "A.CODE.OF.TOMORROW": Verdict("upstream_error", retryable=True),
}


def trouble(message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": message, **more}


def is_whole(value: Any, least: int, most: int) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and value == int(value)
        and least <= value <= most
    )


def is_prompt(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value.encode("utf-16-le")) // 2 <= 1000


def is_moderation(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name == "publicFigureThreshold" and told in ("auto", "low") for name, told in value.items()
    )


SEED = ("seed", lambda value: is_whole(value, 0, 4294967295))
VEO = {
    "required": {"promptText": is_prompt, "ratio": lambda value: value in FULL},
    "optional": {
        "duration": lambda value: is_whole(value, 4, 8) and value % 2 == 0,
        "audio": lambda value: isinstance(value, bool),
        "negativePrompt": lambda value: isinstance(value, str),
        **dict([SEED]),
    },
}
MODELS = {
    "gen4.5": {
        "required": {
            "promptText": is_prompt,
            "ratio": lambda value: value in WIDE,
            "duration": lambda value: is_whole(value, 2, 10),
        },
        "optional": {"contentModeration": is_moderation, **dict([SEED])},
    },
    "veo3.1": VEO,
    "veo3.1_fast": VEO,
}


def is_uri(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("data:image/", "runway://"))


def are_frames(value: Any) -> bool:
    return isinstance(value, list) and all(set(each) == {"uri", "position"} and is_uri(each["uri"]) for each in value)


def are_references(value: Any) -> bool:
    return isinstance(value, list) and 1 <= len(value) <= 7 and all(is_uri(each.get("uri")) for each in value)


def places(*allowed: str) -> Any:
    return lambda value: are_frames(value) and [each["position"] for each in value] == list(allowed)[: len(value)]


OF_VIDEO = {"videoUri": lambda value: isinstance(value, str) and value.startswith("runway://")}
VEO_OF_FRAMES = {
    "required": {"ratio": VEO["required"]["ratio"], "promptImage": places("first", "last")},
    "optional": VEO["optional"] | {"promptText": is_prompt},
}
OF_FRAMES = {
    "gen4.5": {
        **MODELS["gen4.5"],
        "required": MODELS["gen4.5"]["required"] | {"promptImage": places("first")},
    },
    "veo3.1": VEO_OF_FRAMES,
    "veo3.1_fast": VEO_OF_FRAMES,
}
TO_VIDEO = MODELS | {
    "klingO3_pro": {
        "required": {
            "promptText": is_prompt,
            "ratio": lambda value: value in ("1920:1080", "1080:1920"),
            "duration": lambda value: is_whole(value, 3, 15),
            "references": are_references,
        },
        "optional": {"audio": lambda value: isinstance(value, bool)},
    }
}
FROM_VIDEO = {
    "aleph2": {"required": OF_VIDEO, "optional": {"promptText": is_prompt, **dict([SEED])}},
    "gemini_omni_flash_1.1": {
        "required": OF_VIDEO
        | {"promptText": is_prompt, "mode": lambda value: value in ("reference", "extend", "edit")},
        "optional": {"duration": lambda value: is_whole(value, 3, 10)},
    },
}
PATHS = {"text_to_video": TO_VIDEO, "image_to_video": OF_FRAMES, "video_to_video": FROM_VIDEO}


def find_issues(body: Any, models: Mapping[str, Any] = MODELS) -> list[str]:
    """What a strict reader objects to."""
    rules = models.get(body.get("model")) if isinstance(body, dict) else None
    if rules is None:
        return ["model"]
    known = rules["required"] | rules["optional"]
    issues = [name for name in rules["required"] if name not in body]
    issues += [name for name in body if name != "model" and name not in known]
    return issues + [name for name, fits in known.items() if name in body and not fits(body[name])]


class RunwayDouble(MediaDouble):
    vendor = "runway"
    credential = "key_0123456789abcdef0123456789abcdef"
    cases = (
        Case("vendorb_video_31", {"prompt": "a mill", "durationSeconds": 4}),
        Case("vendorb_video_31", {"prompt": "a mill", "aspectRatio": "9:16", "resolution": "1080p"}),
        Case(
            "vendorb_video_31",
            {"prompt": "x" * 999, "compressionQuality": "lossless", "personGeneration": "dont_allow"},
            warnings=2,
        ),
        Case(
            "runway_gen45_text_to_video",
            {
                "promptText": "a mill",
                "ratio": "720:1280",
                "duration": 2,
                "contentModeration": {"publicFigureThreshold": "low"},
            },
        ),
        Case("runway_veo31_text_to_video", {"promptText": "a mill", "ratio": "1280:720", "duration": 4, "seed": 7}),
        Case(
            "runway_veo31_text_to_video",
            {"model": "veo3.1_fast", "promptText": "🛶" * 500, "ratio": "1280:720", "negativePrompt": "fog"},
        ),
    )
    order_call = ("POST", "/v1/text_to_video")
    poll_call = ("GET", "/v1/tasks/")
    cancels = True
    endings = {
        **FAILURES,
        "no code": Verdict("upstream_error", retryable=True),
        "cancelled": Verdict("upstream_error", retryable=True),
        "deleted": Verdict("upstream_error"),
        "empty": Verdict("content_filtered"),
        "no output": Verdict("content_filtered"),
    }
    refusals = {
        "400": Refusal(400, trouble(issues=[]), Verdict("upstream_rejected")),
        "no credit": Refusal(
            400,
            trouble("You do not have enough credits to run this task."),
            Verdict("upstream_unavailable", retryable=True),
        ),
        "401": Refusal(401, trouble(), Verdict("upstream_auth")),
        "403": Refusal(403, trouble(), Verdict("upstream_auth")),
        "404": Refusal(404, trouble(), Verdict("upstream_rejected")),
        "405": Refusal(405, trouble(), Verdict("upstream_rejected")),
        "no reason": Refusal(400, [], Verdict("upstream_rejected")),
    }
    busy = Refusal(429, trouble(), Verdict(None), {"Retry-After": "0"})

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, tuple[str, bytes | None]] = {}  # by signature: the address of an upload, and its bytes

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/a-bucket":
            return await self._take(request)
        if request.headers.get("Authorization") != f"Bearer {self.credential}":
            return answer(401, trouble("bad key"))
        if request.headers.get("X-Runway-Version") != VERSION:
            return answer(400, trouble("a version is required"))
        match request.method, request.path.strip("/").split("/"):
            case "POST", ["v1", "text_to_video" | "image_to_video" | "video_to_video" as path]:
                return self._order(json.loads(await request.read()), PATHS[path])
            case "POST", ["v1", "uploads"]:
                return self._make_place(json.loads(await request.read()))
            case "GET", ["v1", "tasks", task_id] if task_id in self.orders:
                return self._get(self.orders[task_id])
            case "DELETE", ["v1", "tasks", task_id] if task_id in self.orders:
                return self._delete(self.orders[task_id])
        return answer(404, trouble("not found"))

    def _make_place(self, body: Any) -> web.Response:
        if set(body) != {"filename", "type"} or body["type"] != "ephemeral" or "." not in body["filename"]:
            return answer(400, trouble("Validation of body failed"))
        signature = uuid.uuid4().hex
        self.places[signature] = (f"runway://{uuid.uuid4()}", None)
        fields = {"key": body["filename"], "signature": signature}
        return answer(
            200, {"uploadUrl": f"{self.url}/a-bucket", "fields": fields, "runwayUri": self.places[signature][0]}
        )

    async def _take(self, request: web.BaseRequest) -> web.Response:
        """An upload: its signature is good once, and no credential belongs there."""
        form = await read_form(request)
        signature = form.get("signature", (None, b""))[1].decode()
        if (
            "Authorization" in request.headers
            or "file" not in form
            or self.places.get(signature, ("", b""))[1] is not None
        ):
            return web.Response(status=403)
        self.places[signature] = (self.places[signature][0], form["file"][1])
        return web.Response(status=204)

    def _open(self, uri: str) -> bytes | None:
        found = open_data_uri(uri)
        return found[1] if found else next((data for name, data in self.places.values() if name == uri), None)

    def _order(self, body: Any, models: Mapping[str, Any]) -> web.Response:
        issues = find_issues(body, models)
        if not issues:
            files = [(f"promptImage.{each['position']}", each["uri"]) for each in body.get("promptImage", [])]
            files += [(f"references.{place}", each["uri"]) for place, each in enumerate(body.get("references", []))]
            files += [("videoUri", body["videoUri"])] if "videoUri" in body else []
            issues = [slot for slot, uri in files if self._open(uri) is None]
            for slot, uri in files if not issues else ():
                self.receive(slot, self._open(uri) or b"")
        if issues:
            told = [{"path": [name], "message": "no"} for name in issues]
            return answer(400, trouble("Validation of body failed", issues=told))
        width, _, height = body.get("ratio", "1280:720").partition(":")
        order = self.place(body, Wish("video", int(width), int(height), int(body.get("duration", 8))))
        return answer(200, {"id": order.id, "estimatedCost": {"credits": 40}})

    def _get(self, order: Placed) -> web.Response:
        order.polls += 1
        task = {
            "id": order.id,
            "createdAt": datetime.fromtimestamp(order.created_at, UTC).isoformat().replace("+00:00", "Z"),
        }
        if order.canceled or (order.done and order.plan.ending == "deleted"):
            return answer(404, trouble("not found"))
        if not order.done:
            words = ({"status": "PENDING"}, {"status": "THROTTLED"})
            running = {"status": "RUNNING", "progress": order.polls / (order.plan.polls + 1)}
            return answer(200, task | (words[order.polls - 1] if order.polls <= len(words) else running))
        return answer(200, task | {"cost": {"credits": 40}} | self._end(order))

    def _end(self, order: Placed) -> dict[str, Any]:
        match order.plan.ending:
            case "ok" | "corrupt":
                return {"status": "SUCCEEDED", "output": [self.host.link(order, "video.mp4")]}
            case "empty":
                return {"status": "SUCCEEDED", "output": []}
            case "no output":
                return {"status": "SUCCEEDED"}
            case "cancelled":
                return {"status": "CANCELLED"}
            case "no code":
                return {"status": "FAILED", "failure": f"{self.credential} cannot"}
            case code:
                return {"status": "FAILED", "failure": f"see {self.url}/x", "failureCode": code}

    def _delete(self, order: Placed) -> web.Response:
        order.canceled = True
        return web.Response(status=204)


DOUBLES = (RunwayDouble,)


def task(status: str, **more: Any) -> dict[str, Any]:
    return {"id": str(uuid.UUID(int=1)), "status": status, "createdAt": "2026-11-15T10:00:00Z", **more}


SAMPLE = Sample(
    options={"type": "runway", "api_key": "key_1"},
    operation={"id": "t1"},
    replies={
        "submit": [
            (200, {"id": "t1", "estimatedCost": {"credits": 40}}, Accepted),
            (200, {"id": ""}, Unclear),
            (200, {"estimatedCost": {"credits": 40}}, Unclear),
            (429, trouble(), Refused),
            (400, trouble(), Failed),
            (401, {}, Failed),
            (502, {}, Unclear),
            (503, trouble(), Unclear),
        ],
        "find": [(200, {}, LookupUnsupported)],
        "poll": [
            (200, task("PENDING", estimatedCost={"credits": 40}), Running),
            (200, task("THROTTLED"), Running),
            (200, task("RUNNING", progress=0.4), Running),
            (200, task("A_WORD_OF_TOMORROW"), Running),
            (200, task("SUCCEEDED", output=["https://files.example/v.mp4?_jwt=a.b"], cost={"credits": 40}), Done),
            (200, task("SUCCEEDED", output=None), Failed),
            (200, task("FAILED", failure="no", failureCode="SAFETY.INPUT.TEXT"), Failed),
            (200, task("FAILED", failure=None, failureCode=None), Failed),
            (200, task("CANCELLED"), Failed),
            (404, trouble(), Failed),
            (404, [], Failed),
            (401, trouble(), Unclear),
            (429, trouble(), Unclear),
            (504, {}, Unclear),
            (200, task("RUNNING", progress="half"), Unclear),
        ],
        "cancel": [(204, {}, bool), (200, {}, bool), (404, {}, bool), (503, {}, Unclear), (401, {}, Unclear)],
    },
    orders=[
        (
            "veo3.1",
            {
                "prompt": "a mill",
                "durationSeconds": 4,
                "aspectRatio": "16:9",
                "resolution": "720p",
                "compressionQuality": "optimized",
                "personGeneration": "allow_adult",
            },
        ),
        ("gen4.5", {"promptText": "a mill", "ratio": "1280:720", "duration": 5, "seed": 7}),
        ("veo3.1", {"model": "veo3.1_fast", "promptText": "a mill", "ratio": "1280:720", "duration": 8}),
    ],
)
