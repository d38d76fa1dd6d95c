"""Tripo, version 3 and version 2, as its documents say."""

import json
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from doubles.media import Case, MediaDouble, Placed, Refusal, Sample, Verdict, Wish, answer, read_form

from penstock.vendor_api.generation import Accepted, Done, Failed, LookupUnsupported, Refused, Running, Similar, Unclear

VERSIONS = {"v3.1-20260211", "v3.0-20250812", "v2.5-20250123", "P1-20260311", "v1.4-20240625"}
TYPES = {
    "generation/text-to-model": "text_to_model",
    "generation/image-to-model": "image_to_model",
    "generation/multiview-to-model": "multiview_to_model",
    "models/texture": "texture_model",
    "mesh/decimate": "highpoly_to_lowpoly",
    "animations/rig": "animate_rig",
    "animations/retarget": "animate_retarget",
    "models/convert": "convert_model",
}
"""Types of tasks by path."""
MADE = {"model", "face_limit", "texture", "pbr", "quad", "model_seed", "texture_seed"}
FIELDS = {
    "text_to_model": MADE | {"prompt", "negative_prompt"},
    "image_to_model": MADE | {"input"},
    "multiview_to_model": MADE | {"inputs"},
    "texture_model": {"input", "model", "texture", "pbr", "texture_prompt", "texture_seed"},
    "highpoly_to_lowpoly": {"input", "model", "face_limit", "quad", "bake"},
    "animate_rig": {"input", "model", "rig_type", "spec", "out_format"},
    "animate_retarget": {"input", "animation", "out_format", "export_with_geometry"},
    "convert_model": {"input", "format", "face_limit", "quad"},
}
RELEASES = {
    "texture_model": {"v2.5-20250123", "v3.0-20250812"},
    "highpoly_to_lowpoly": {"v1.0", "v2.0", "v3.0"},
    "animate_rig": {"v1.0-20240301", "v2.5-20260210", "v3.0-20260909"},
}
FORMATS = {"GLTF": "", "USDZ": "usdz", "FBX": "fbx", "OBJ": "obj", "STL": "stl"}
SKELETAL = {"animate_rig", "animate_retarget"}
READABLE = (b"\x89PNG", b"\xff\xd8", b"RIFF", b"glTF", b"Kaydara")
PREFIXES = {"v3": "/v3", "v2": "/v2/openapi"}


def trouble(code: int, message: str = "no") -> dict[str, Any]:
    return {"code": code, "message": message, "suggestion": "Read the documentation."}


class TripoDouble(MediaDouble):
    vendor = "tripo"
    mode = "v3"
    credential = "tsk_0123456789abcdef"
    cases = (
        Case("vendora_image_to_model", {"face_limit": 5000, "texture": True}, takes_file=True),
        Case("vendora_image_to_model", {"model_version": "v1.4-20240625"}, takes_file=True, warnings=2),
    )
    order_call = ("POST", "/v3/generation/image-to-model")
    poll_call = ("GET", "/v3/tasks/")
    finds = True
    endings = {
        "failed": Verdict("upstream_error", retryable=True),
        "banned": Verdict("content_filtered"),
        "expired": Verdict("upstream_error", retryable=True),
        "cancelled": Verdict("upstream_error", retryable=True),
        "unknown": Verdict("upstream_error", retryable=True),
        "2008": Verdict("content_filtered"),
        "2018": Verdict("upstream_rejected"),
        "empty": Verdict("content_filtered"),
        "quarantined": Verdict("upstream_error", retryable=True),
        "lost": Verdict("upstream_error"),
    }
    refusals = {
        "1002": Refusal(401, trouble(1002), Verdict("upstream_auth")),
        "1005": Refusal(403, trouble(1005), Verdict("upstream_auth")),
        "1004": Refusal(400, trouble(1004), Verdict("upstream_rejected")),
        "2003": Refusal(400, trouble(2003), Verdict("upstream_rejected")),
        "2008": Refusal(400, trouble(2008), Verdict("content_filtered")),
        "2010": Refusal(403, trouble(2010), Verdict("upstream_unavailable", retryable=True)),
        "2017": Refusal(400, trouble(2017), Verdict("upstream_rejected")),
        "no code": Refusal(422, {}, Verdict("upstream_rejected")),
    }
    busy = Refusal(429, trouble(2000), Verdict(None), {"Retry-After": "0"})

    def settings(self, **more: Any) -> str:
        return super().settings(**{"lookup_seconds": 1, **more})

    def __init__(self) -> None:
        super().__init__()
        self.tokens: set[str] = set()
        self.types: dict[str, str] = {}  # by task
        self.page = 50  # how many orders a page of the list holds at most
        self.lag = 0.0  # how long an order is not listed yet
        self.ahead = 0.0  # how many seconds its clock is ahead

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await self._play(request)
        response.headers["X-Tripo-Trace-ID"] = str(uuid.uuid4())
        return response

    async def _play(self, request: web.BaseRequest) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.credential}":
            return answer(401, trouble(1002, "bad key"))
        path = request.path.removeprefix(PREFIXES[self.mode])
        match request.method, path.strip("/").split("/"):
            case "POST", ["files"] | ["upload", "sts"]:
                return await self._upload(request)
            case "POST", [folder, name] if self.mode == "v3" and f"{folder}/{name}" in TYPES:
                return self._order(TYPES[f"{folder}/{name}"], json.loads(await request.read()))
            case "POST", ["task"] if self.mode == "v2":
                return self._order_v2(json.loads(await request.read()))
            case "GET", ["tasks" | "task", task_id]:
                return self._get(task_id)
            case "POST", ["tasks", "list"] if self.mode == "v3":
                return self._list(json.loads(await request.read())["task_ids"])
            case "GET", ["account", "usage"] if self.mode == "v3":
                return self._usage(int(request.query["limit"]), int(request.query["offset"]))
        return answer(404, trouble(2001, "not found"))

    async def _upload(self, request: web.BaseRequest) -> web.Response:
        name, data = (await read_form(request)).get("file", (None, b""))
        if not name or not (data.startswith(READABLE) or name.endswith((".obj", ".stl"))):
            return answer(400, trouble(2004, "file type"))
        token = f"file_{uuid.uuid4()}"
        self.tokens.add(token)
        self.receive("file", data)
        return answer(200, {"code": 0, "data": {"file_token": token, "image_token": token}})

    def _order(self, kind: str, body: dict[str, Any]) -> web.Response:
        wrong = body.keys() - FIELDS[kind]
        if wrong or body.get("face_limit", 1) < 1:
            return answer(400, trouble(1004, f"parameter {sorted(wrong) or 'face_limit'}"))
        if (problem := self._find_wrong_source(kind, body)) is not None:
            return problem
        if kind not in ("animate_retarget", "convert_model") and body.get("model") not in RELEASES.get(kind, VERSIONS):
            return answer(400, trouble(2017, "version"))
        if (problem := self._find_wrong_values(kind, body)) is not None:
            return answer(400, trouble(1004, problem))
        if self.open_orders >= 10:
            return answer(429, trouble(2000, "full"), {"Retry-After": "1"})
        form = "fbx" if body.get("quad") else FORMATS.get(body.get("format", ""), "rigged" if kind in SKELETAL else "")
        order = self.place(body, Wish("model", face_limit=body.get("face_limit"), form=form))
        self.types[order.id] = kind
        return answer(200, {"code": 0, "data": {"task_id": order.id}})

    def _find_wrong_source(self, kind: str, body: dict[str, Any]) -> web.Response | None:
        """Each input is an uploaded file, or a task that succeeded and is of a type that fits."""
        sources = body.get("inputs", [body["input"]] if "input" in body else [])
        if kind == "multiview_to_model" and (len(sources) != 4 or sources[0] is None or sources.count(None) > 2):
            return answer(400, trouble(1004, "views"))
        if kind != "text_to_model" and not any(sources):
            return answer(400, trouble(1003, "input is required"))
        sources = [*sources, body.get("texture_prompt", {}).get("image")]
        for source in filter(None, sources):
            task = self.orders.get(source)
            if source not in self.tokens and task is None:
                return answer(404, trouble(2019 if kind == "image_to_model" else 2001, "not found"))
            made_by = self.types.get(source, "import_model")
            if task is not None and not task.is_over():
                return answer(400, trouble(2007, "the source has not succeeded"))
            if (kind == "animate_retarget") != (made_by == "animate_rig") and (
                kind == "animate_retarget" or (made_by in SKELETAL and kind != "convert_model")
            ):
                return answer(400, trouble(2006, f"{made_by} does not fit"))
        return None

    def _find_wrong_values(self, kind: str, body: dict[str, Any]) -> str | None:
        match kind:
            case "text_to_model" if not body.get("prompt") or len(body["prompt"]) > 1024:
                return "prompt"
            case "text_to_model" if len(body.get("negative_prompt", "")) > 255:
                return "negative_prompt"
            case "texture_model" if len(body.get("texture_prompt", {}).keys() & {"text", "image"}) != 1:
                return "texture_prompt"
            case "highpoly_to_lowpoly":
                most = 10_000 if body.get("quad") else 20_000
                return None if 500 <= body.get("face_limit", 500) <= most else "face_limit"
            case "animate_rig" if body["model"].startswith("v1.0") and body["rig_type"] != "biped":
                return "rig_type"
            case "animate_retarget" if not str(body.get("animation")).startswith("preset:"):
                return "animation"
            case "convert_model" if body.get("format") not in FORMATS:
                return "format"
        return None

    def _order_v2(self, body: dict[str, Any]) -> web.Response:
        file = body.get("file", {})
        if body.get("type") != "image_to_model" or (file.get("file_token") not in self.tokens and "object" not in file):
            return answer(400, trouble(1004, "parameter"))
        order = self.place(body, Wish("model", face_limit=body.get("face_limit")))
        return answer(200, {"code": 0, "data": {"task_id": order.id}})

    def _get(self, task_id: str) -> web.Response:
        order = self.orders.get(task_id)
        if order is None or (order.plan.ending == "lost" and order.polls):
            return answer(404, trouble(2001, "task not found"))
        return answer(200, {"code": 0, "data": self._task(order)})

    def _list(self, ids: list[str]) -> web.Response:
        known = [order for name in ids if (order := self.orders.get(name)) and order.plan.ending != "lost"]
        tasks = {order.id: self._task(order) for order in known}
        return answer(200, {"code": 0, "data": {"tasks": tasks, "missed": [name for name in ids if name not in tasks]}})

    def _usage(self, limit: int, offset: int) -> web.Response:
        listed = [order for order in self.orders.values() if time.time() >= order.created_at + self.lag]
        latest = sorted(listed, key=lambda order: order.created_at, reverse=True)[offset:][: min(limit, self.page)]
        items = [
            {
                "task_id": order.id,
                "type": "image_to_model",
                "status": "running",
                "created_at": datetime.fromtimestamp(order.created_at + self.ahead, UTC).isoformat(),
                "credits_consumed": 30,
            }
            for order in latest
        ]
        return answer(200, {"code": 0, "data": {"items": items}})

    def _task(self, order: Placed) -> dict[str, Any]:
        order.polls += 1
        task: dict[str, Any] = {
            "task_id": order.id,
            "type": self.types.get(order.id, "image_to_model"),
            "input": order.body,
            "progress": 0,
            "queuing_num": -1,
            "running_left_time": -1,
            "created_at": datetime.fromtimestamp(order.created_at + self.ahead, UTC).isoformat(),
        }
        if not order.done:
            return task | (
                {"status": "queued", "queuing_num": 3}
                if order.polls == 1
                else {"status": "running", "progress": 40 + order.polls, "running_left_time": 0.1}
            )
        task |= {"progress": 100, "completed_at": datetime.fromtimestamp(time.time(), UTC).isoformat()}
        match order.plan.ending:
            case "ok" | "corrupt":
                return task | {"status": "success", "output": self._output(order)}
            case "empty":
                return task | {"status": "success", "output": {}}
            case "2008" | "2018" as code:
                return task | {"status": "failed", "error_code": int(code), "error_message": f"see {self.url}"}
            case word:
                return task | {"status": word, "error_code": 1001, "error_message": f"see {self.url}"}

    def _output(self, order: Placed) -> dict[str, str]:
        end = "_url" if self.mode == "v3" else ""
        return {
            f"model{end}": self.host.link(order, f"model.{order.wish.form or 'glb'}"),
            f"rendered_image{end}": self.host.link(order, "preview.png"),
        }


class TripoV2Double(TripoDouble):
    mode = "v2"
    order_call = ("POST", "/v2/openapi/task")
    poll_call = ("GET", "/v2/openapi/task/")
    finds = False

    def settings(self, **more: Any) -> str:
        return super().settings(version="v2", **{"base_url": f"{self.url}/v2/openapi", **more})


DOUBLES = (TripoDouble, TripoV2Double)


def task(status: str, **more: Any) -> dict[str, Any]:
    return {"code": 0, "data": {"task_id": "t1", "status": status, **more}}


SAMPLE = Sample(
    options={"type": "tripo", "api_key": "tsk_1"},
    operation={"id": "t1"},
    replies={
        "submit": [
            (200, {"code": 0, "data": {"task_id": "t1"}}, Accepted),
            (429, trouble(2000), Refused),
            (400, trouble(2014), Refused),
            (401, trouble(1002), Failed),
            (400, trouble(2008), Failed),
            (200, trouble(1004), Failed),
            (500, trouble(1001), Unclear),
            (200, {"code": 0, "data": {}}, Unclear),
        ],
        "find": [(404, {}, LookupUnsupported), (503, {}, Unclear), (200, {"code": 0, "data": {"items": []}}, Similar)],
        "poll": [
            (200, task("queued", queuing_num=2, progress=0), Running),
            (200, task("running", progress=40, running_left_time=9), Running),
            (200, task("a word of tomorrow"), Failed),
            (200, task("success", output={"model_url": "https://files.example/m.glb"}), Done),
            (200, task("success", output={"pbr_model": "https://files.example/m.glb"}), Done),
            (200, task("success", output=None), Failed),
            (200, task("failed", error_code=1001), Failed),
            (200, task("banned"), Failed),
            (404, trouble(2001), Failed),
            (401, trouble(1002), Unclear),
            (200, task("running", progress="half"), Unclear),
        ],
        "cancel": [(200, {}, bool)],
    },
    orders=[
        ("vendora_image_to_model", {"model_seed": 7, "texture": True, "pbr": True, "model_version": "v3.1-20260211"})
    ],
)
