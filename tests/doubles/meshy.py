"""Meshy's API, as its documents say: one path and one set of fields for each operation."""

import base64
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from doubles.media import Case, MediaDouble, Placed, Refusal, Sample, Verdict, Wish, answer, open_base64

from penstock.vendor_api.generation import Accepted, Done, Failed, LookupUnsupported, Refused, Running, Similar, Unclear

PATH = "/openapi/v1/image-to-3d"
MOST_AT_ONCE = 10
PICTURE = re.compile(r"data:image/(jpe?g|png);base64,(.+)")
AI_MODELS = {"latest", "meshy-7.1", "meshy-7", "meshy-6", "meshy-5", "meshy-t1", "meshy-t2"}


def is_picture(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if value.startswith(("http://", "https://")):
        return True
    found = PICTURE.fullmatch(value)
    head = {"png": b"\x89PNG", "jpg": b"\xff\xd8\xff", "jpeg": b"\xff\xd8\xff"}
    return bool(found) and base64.b64decode(found[2], validate=True).startswith(head[found[1]])


def is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def one_of(*allowed: Any) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, bool) and value in allowed


FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "image_url": is_picture,
    "ai_model": one_of(*AI_MODELS),
    "model_type": one_of("standard", "smart-topology", "lowpoly"),
    "should_texture": is_bool,
    "enable_pbr": is_bool,
    "texture_resolution": one_of("2k", "4k", "8k"),
    "texture_prompt": lambda value: isinstance(value, str) and 0 < len(value) <= 600,
    "texture_image_url": is_picture,
    "should_remesh": is_bool,
    "topology": one_of("quad", "triangle"),
    "target_polycount": lambda value: type(value) is int and 100 <= value <= 300_000,
    "decimation_mode": one_of(1, 2, 3, 4),
    "pose_mode": one_of("a-pose", "t-pose"),
    "image_enhancement": is_bool,
    "remove_lighting": is_bool,
    "ultra_mode": is_bool,
    "target_formats": lambda value: (
        isinstance(value, list) and set(value) <= {"glb", "obj", "fbx", "stl", "usdz", "3mf"}
    ),
    "moderation": is_bool,
    "auto_size": is_bool,
    "origin_at": one_of("bottom", "center"),
    "alpha_thumbnail": is_bool,
}


PATHS = {
    "text": "/openapi/v2/text-to-3d",
    "image": PATH,
    "views": "/openapi/v1/multi-image-to-3d",
    "retexture": "/openapi/v1/retexture",
    "remesh": "/openapi/v1/remesh",
    "rig": "/openapi/v1/rigging",
    "animate": "/openapi/v1/animations",
    "convert": "/openapi/v1/convert",
}
SOURCES = {"text", "image", "views", "retexture", "remesh"}
"""Operations whose tasks others take by their ids."""
STYLES = ("text_style_prompt", "image_style_url", "multiview_image_urls")
MESH = re.compile(r"data:application/octet-stream;base64,(.+)", re.DOTALL)


def is_formats(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and set(value) <= {"glb", "obj", "fbx", "stl", "usdz", "3mf"}


def is_words(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 600


def is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


COMMON = {name: FIELDS[name] for name in ("topology", "target_polycount", "decimation_mode")} | {
    "target_formats": is_formats
}
MADE = COMMON | {name: FIELDS[name] for name in ("should_remesh", "pose_mode", "auto_size", "origin_at", "moderation")}
GIVEN = {"input_task_id": is_name, "model_url": is_name}
SURFACE = {name: FIELDS[name] for name in ("ai_model", "enable_pbr", "texture_resolution", "remove_lighting")}
ACCEPTED: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "text": MADE
    | {"mode": one_of("preview"), "prompt": is_words, "ai_model": one_of("latest", "meshy-5", "meshy-6")}
    | {"model_type": one_of("standard", "lowpoly")},
    "image": FIELDS,
    "views": MADE
    | SURFACE
    | {"should_texture": is_bool, "image_urls": lambda value: 0 < len(value) <= 4 and all(map(is_picture, value))},
    "retexture": GIVEN
    | SURFACE
    | {"text_style_prompt": is_words, "image_style_url": is_picture, "enable_original_uv": is_bool}
    | {"target_formats": is_formats},
    "remesh": GIVEN | COMMON,
    "rig": GIVEN | {"height_meters": lambda value: value > 0},
    "animate": {"rig_task_id": is_name, "action_id": lambda value: type(value) is int},
    "convert": GIVEN | {"target_formats": is_formats},
}
NEEDED = {
    "text": ("mode", "prompt"),
    "image": ("image_url",),
    "views": ("image_urls",),
    "animate": ("rig_task_id", "action_id"),
    "convert": ("target_formats",),
}


def trouble(message: str = "no", **more: Any) -> dict[str, Any]:
    return {"message": message, **more}


class MeshyDouble(MediaDouble):
    vendor = "meshy"
    credential = "msy_0123456789abcdefghij"
    cases = (
        Case("vendora_image_to_model", {"face_limit": 127}, takes_file=True, warnings=2),
        Case("vendora_image_to_model", {"texture": False}, takes_file=True, warnings=2),
        Case("meshy_image_to_3d", {}, takes_file=True),
        Case(
            "meshy_image_to_3d",
            {
                "ai_model": "meshy-7",
                "model_type": "standard",
                "should_texture": True,
                "enable_pbr": True,
                "texture_resolution": "4k",
                "texture_prompt": "läuft über vor Moos",
                "texture_image_url": "https://example.com/moss.png",
                "should_remesh": True,
                "topology": "quad",
                "target_polycount": 150,
                "decimation_mode": 2,
                "pose_mode": "a-pose",
                "image_enhancement": False,
                "remove_lighting": False,
                "ultra_mode": True,
                "moderation": True,
                "auto_size": True,
                "origin_at": "bottom",
                "alpha_thumbnail": True,
            },
            takes_file=True,
        ),
    )
    order_call = ("POST", PATH)
    poll_call = ("GET", f"{PATH}/")
    cancels = True
    endings = {
        "FAILED": Verdict("upstream_error", retryable=True),
        "CANCELED": Verdict("upstream_error", retryable=True),
        "moderated": Verdict("content_filtered"),
        "no reason": Verdict("upstream_error", retryable=True),
        "empty": Verdict("content_filtered"),
    }
    refusals = {
        "400": Refusal(400, trouble(), Verdict("upstream_rejected")),
        "400 moderation": Refusal(400, trouble("Content moderation: no"), Verdict("content_filtered")),
        "401": Refusal(401, trouble(), Verdict("upstream_auth")),
        "402": Refusal(402, trouble(), Verdict("upstream_unavailable", retryable=True)),
        "403": Refusal(403, trouble(), Verdict("upstream_auth")),
        "404": Refusal(404, trouble(), Verdict("upstream_rejected")),
        "with a code": Refusal(400, trouble(error_code="InvalidImage"), Verdict("upstream_rejected")),
        "no message": Refusal(422, [], Verdict("upstream_rejected")),
    }
    busy = Refusal(429, trouble("NoMoreConcurrentTasks"), Verdict(None), {"Retry-After": "0"})

    def __init__(self) -> None:
        super().__init__()
        self.operations: dict[str, str] = {}  # by order

    def settings(self, **more: Any) -> str:
        return super().settings(**{"lookup_seconds": 1, **more})

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.credential}":
            return answer(401, trouble("Invalid API key"))
        operation = next((name for name, path in PATHS.items() if f"{request.path}/".startswith(f"{path}/")), "")
        match request.method, request.path.removeprefix(PATHS.get(operation, "")).split("/"):
            case "POST", [""]:
                return await self._order(operation, json.loads(await request.read()))
            case "GET", [""] if operation not in ("rig", "animate"):
                return self._list(operation, int(request.query["page_num"]), int(request.query["page_size"]))
            case "GET", ["", task_id] if (order := self._known(task_id, operation)) is not None:
                return answer(200, self._task(order))
            case "DELETE", ["", task_id] if (order := self._known(task_id, operation)) is not None:
                order.canceled = True
                return web.Response(status=200)
        return answer(404, trouble("Task not found"))

    def _list(self, operation: str, number: int, size: int) -> web.Response:
        """A page of one operation's tasks, the newest first; none says of which picture it is."""
        listed = [order for order in self.orders.values() if self._operation(order) == operation]
        latest = sorted(listed, key=lambda order: order.created_at, reverse=True)
        page = latest[(number - 1) * size : number * size]
        return answer(200, [{"id": order.id, "created_at": int(order.created_at * 1000)} for order in page])

    def _operation(self, order: Placed) -> str:
        return self.operations.get(order.id, "image")

    def _known(self, task_id: str, operation: str) -> Placed | None:
        """A task at the path of its own operation; any other path does not know it."""
        order = self.orders.get(task_id)
        return None if order is None or order.canceled or self._operation(order) != operation else order

    async def _order(self, operation: str, body: dict[str, Any]) -> web.Response:
        fields = ACCEPTED[operation]
        wrong = [name for name, value in body.items() if name not in fields or not fields[name](value)]
        wrong += [name for name in NEEDED.get(operation, ()) if name not in body]
        if body.get("ultra_mode") and body.get("ai_model", "latest") not in ("latest", "meshy-7"):
            wrong.append("ultra_mode")
        if operation == "retexture" and sum(name in body for name in STYLES) != 1:
            wrong.append("exactly one style")
        if not wrong:
            wrong += await self._find_wrong_source(operation, body)
        if wrong:
            return answer(400, trouble(f"Invalid values: {', '.join(wrong)}"))
        for name, value in body.items():
            self._receive_pictures(name, value)
        if self.open_orders >= MOST_AT_ONCE:
            return answer(429, trouble("NoMoreConcurrentTasks"))
        if "pose" in body.get("model_url", "")[-40:]:
            return answer(422, trouble("Pose estimation failed"))
        asks = operation == "remesh" or body.get("should_remesh")
        target = body.get("target_polycount") if asks else None
        (form,) = body.get("target_formats", ["rigged"] if operation in ("rig", "animate") else ["glb"])
        wish = Wish("model", face_limit=target and int(target * 1.05), form="" if form == "glb" else form)
        order = self.place(body, wish)  # the number of faces is only a target
        self.operations[order.id] = operation
        return answer(202, {"result": order.id})

    async def _find_wrong_source(self, operation: str, body: dict[str, Any]) -> list[str]:
        """The model to work on: exactly one of a finished task of our own, and a file."""
        if operation == "animate":
            rig = self._known(body["rig_task_id"], "rig")
            return [] if rig is not None and rig.is_over() else ["rig_task_id"]
        if "model_url" not in ACCEPTED[operation]:
            return []
        task = self.orders.get(body.get("input_task_id", ""))
        if ("input_task_id" in body) == ("model_url" in body):
            return ["exactly one source"]
        if "input_task_id" in body:
            known = task is not None and task.is_over() and self._operation(task) in SOURCES
            return [] if known else ["input_task_id"]
        address = body["model_url"]
        inline = MESH.fullmatch(address)
        data = open_base64(inline[1]) if inline else await self.fetch("model_url", address)
        if data is None or (operation == "rig" and not data.startswith(b"glTF")):
            return ["model_url"]
        if inline:
            self.receive("model_url", data)
        return []

    def _receive_pictures(self, name: str, value: Any) -> None:
        for number, text in enumerate(value if isinstance(value, list) else [value]):
            found = PICTURE.fullmatch(text) if isinstance(text, str) else None
            if found:
                slot = f"{name}.{number}" if isinstance(value, list) else name
                self.receive(slot, base64.b64decode(found[2]))

    def _task(self, order: Placed) -> dict[str, Any]:
        order.polls += 1
        task: dict[str, Any] = {
            "id": order.id,
            "type": self._operation(order),
            "status": "IN_PROGRESS",
            "progress": min(99, 40 + order.polls),
            "model_urls": {},
            "thumbnail_url": "",
            "texture_urls": [],
            "created_at": int(order.created_at * 1000),
            "started_at": int(order.created_at * 1000),
            "finished_at": 0,
            "expires_at": 0,
            "preceding_tasks": 0,
            "consumed_credits": 30,
            "task_error": {"message": ""},
        }
        if not order.done:
            waits = {"status": "PENDING", "progress": 0, "preceding_tasks": 3, "started_at": 0}
            return task | (waits if order.polls == 1 else {})
        now = int(time.time() * 1000)
        return task | {"finished_at": now, "expires_at": now + 259_200_000} | self._end(order)

    def _end(self, order: Placed) -> dict[str, Any]:
        match order.plan.ending:
            case "ok" | "corrupt" if (operation := self._operation(order)) in ("rig", "animate"):
                name = {"rig": "rigged_character", "animate": "animation"}[operation]
                urls = {f"{name}_{form}_url": self.host.link(order, f"model.{form}") for form in ("glb", "fbx")}
                return {"status": "SUCCEEDED", "progress": 100, "model_urls": None, "result": urls}
            case "ok" | "corrupt":
                urls = {name: self.host.link(order, f"model.{name}") for name in order.body["target_formats"]}
                thumbnail = self.host.link(order, "preview.png")
                return {"status": "SUCCEEDED", "progress": 100, "model_urls": urls, "thumbnail_url": thumbnail}
            case "empty":
                return {"status": "SUCCEEDED", "progress": 100}
            case "moderated":
                return {"status": "FAILED", "task_error": {"message": "The image did not pass moderation"}}
            case "no reason":
                return {"status": "FAILED", "task_error": None}
            case status:
                return {"status": status, "task_error": {"message": f"{self.credential} failed", "code": "Timeout"}}


DOUBLES = (MeshyDouble,)


def task(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "t1", "status": status, "progress": 0, "task_error": {"message": ""}, **more}


GLB = {"glb": "https://assets.example/m.glb"}
SAMPLE = Sample(
    options={"type": "meshy", "api_key": "msy_1"},
    operation={"id": "t1", "faces": 48},
    replies={
        "submit": [
            (202, {"result": "t1"}, Accepted),
            (200, {"result": "t1"}, Accepted),
            (429, trouble("RateLimitExceeded"), Refused),
            (400, trouble(), Failed),
            (402, trouble(), Failed),
            (200, {"result": ""}, Unclear),
            (200, {"result": None}, Unclear),
            (409, trouble(), Unclear),
            (500, trouble(), Unclear),
        ],
        "find": [
            (200, [], Similar),
            (404, trouble(), LookupUnsupported),
            (200, {"result": []}, LookupUnsupported),
            (500, {}, Unclear),
        ],
        "poll": [
            (200, task("PENDING", preceding_tasks=2), Running),
            (200, task("IN_PROGRESS", progress=40, preceding_tasks=0), Running),
            (200, task("IN_PROGRESS", progress="half", preceding_tasks=None), Running),
            (200, task("PENDING", progress=10**400, preceding_tasks=-(10**400)), Running),
            (200, task("a word of tomorrow"), Running),
            (200, task("SUCCEEDED", model_urls=GLB, finished_at=1_700_000_000_000), Done),
            (200, task("SUCCEEDED", model_urls=GLB, finished_at=0, thumbnail_url="https://x.example/p.png"), Done),
            (200, task("SUCCEEDED", model_urls=GLB, finished_at=10**400, thumbnail_url=7), Done),
            (200, task("SUCCEEDED", model_urls={"glb": ""}), Failed),
            (200, task("SUCCEEDED", model_urls=None), Failed),
            (200, task("FAILED", task_error=None), Failed),
            (200, task("FAILED", task_error={"message": ["NSFW"], "code": {}}), Failed),
            (200, task("CANCELED"), Failed),
            (200, {"message": "ok"}, Unclear),
            (404, trouble(), Failed),
            (401, trouble(), Unclear),
        ],
        "cancel": [(200, {}, bool), (204, {}, bool), (404, {}, bool), (409, {}, bool), (401, {}, Unclear)],
    },
    orders=[
        ("latest", {"model_seed": 7, "texture": True, "pbr": True, "model_version": "v3.1-20260211", "face_limit": 48}),
        ("meshy_image_to_3d", {"should_texture": True, "enable_pbr": False}),
    ],
)
