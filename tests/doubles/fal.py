"""fal's queue, its file store, its keys and its descriptions of models, as its documents say."""

import base64
import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from doubles.media import Case, FileHost, MediaDouble, Placed, Refusal, Sample, Verdict, Wish, answer, open_data_uri

from penstock.vendor_api.generation import Accepted, Done, Failed, LookupUnsupported, Refused, Running, Unclear

UNFINISHED = "Request is still in progress"
READABLE = (b"\x89PNG", b"\xff\xd8", b"RIFF", b"glTF")
REQUEST_ERRORS = {
    "request_timeout": 504,
    "startup_timeout": 504,
    "runner_scheduling_failure": 503,
    "runner_connection_timeout": 503,
    "runner_disconnected": 503,
    "runner_connection_refused": 503,
    "runner_server_error": 500,
    "client_cancelled": 499,
}
MODEL_ERRORS = {
    "content_policy_violation": 422,
    "image_too_small": 422,
    "internal_server_error": 500,
    "downstream_service_error": 400,
}
RETRYABLE = {"internal_server_error", "downstream_service_error"}


def point(kind: str, message: str = "no", *loc: str) -> dict[str, Any]:
    """A model's error."""
    told = {"loc": ["body", *loc], "msg": message, "type": kind, "url": f"https://docs.fal.ai/errors#{kind}"}
    return {"detail": [told | {"input": None}]}


def is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def one_of(*values: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in values


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


TRIPO: Mapping[str, Callable[[Any], bool]] = {
    "image_url": is_text,
    "texture": is_flag,
    "pbr": is_flag,
    "face_limit": is_number,
    "model_seed": is_number,
    "quad": is_flag,
}
TRIPO_TEXT = {name: TRIPO[name] for name in TRIPO if name != "image_url"} | {
    "prompt": is_text,
    "negative_prompt": is_text,
}
TRIPO_VIEWS: Mapping[str, Callable[[Any], bool]] = {
    **{f"{side}_image_url": is_text for side in ("front", "left", "back", "right")},
    "texture": one_of("no", "standard", "HD"),
    "pbr": is_flag,
    "quad": is_flag,
    "face_limit": is_number,
    "seed": is_number,
}
RETEXTURE: Mapping[str, Callable[[Any], bool]] = {
    "model_url": is_text,
    "text_style_prompt": is_text,
    "image_style_url": is_text,
    "enable_original_uv": is_flag,
    "enable_pbr": is_flag,
}
REMESH: Mapping[str, Callable[[Any], bool]] = {
    "model_url": is_text,
    "topology": one_of("quad", "triangle"),
    "target_polycount": lambda value: is_number(value) and 100 <= value <= 300_000,
    "target_formats": lambda value: isinstance(value, list) and set(value) <= {"glb", "fbx", "obj", "usdz", "stl"},
}
RIG: Mapping[str, Callable[[Any], bool]] = {
    "model_url": is_text,
    "height_meters": lambda value: isinstance(value, int | float) and value > 0,
    "enable_animation": is_flag,
    "animation_action_id": is_number,
}
VEO: Mapping[str, Callable[[Any], bool]] = {
    "prompt": is_text,
    "aspect_ratio": one_of("16:9", "9:16"),
    "duration": one_of("4s", "6s", "8s"),
    "resolution": one_of("720p", "1080p"),
    "generate_audio": is_flag,
    "negative_prompt": is_text,
    "seed": is_number,
}
VEO_WITH = {**VEO, "aspect_ratio": one_of("auto", "16:9", "9:16"), "resolution": one_of("720p", "1080p", "4k")}
VEO_FRAME = {**VEO_WITH, "image_url": is_text}
VEO_FRAMES = {**VEO_WITH, "first_frame_url": is_text, "last_frame_url": is_text}
VEO_REFERENCES = {
    **VEO_WITH,
    "duration": one_of("8s"),
    "image_urls": lambda value: isinstance(value, list) and 1 <= len(value) <= 3,
}
VEO_FILM = {**VEO, "video_url": is_text}
KLING: Mapping[str, Callable[[Any], bool]] = {
    "prompt": is_text,
    "negative_prompt": is_text,
    "duration": one_of("5", "10"),
    "generate_audio": is_flag,
    "start_image_url": is_text,
    "end_image_url": is_text,
}
LTX: Mapping[str, Callable[[Any], bool]] = {"prompt": is_text, "steps": is_number, "image": is_text}
SEVERAL: Mapping[str, Callable[[Any], bool]] = {
    "prompt": is_text,
    "num_images": lambda value: is_number(value) and 1 <= value <= 4,
    "seed": is_number,
}
FLUX: Mapping[str, Callable[[Any], bool]] = {
    **SEVERAL,
    "file": is_text,
    "image_size": lambda value: isinstance(value, dict) and set(value) == {"width", "height"},
    "output_format": one_of("jpeg", "png"),
}
BANANA: Mapping[str, Callable[[Any], bool]] = {
    **SEVERAL,
    "aspect_ratio": one_of("auto", "1:1", "16:9", "3:2"),
    "resolution": one_of("0.5K", "1K", "2K", "4K"),
    "output_format": one_of("jpeg", "png", "webp"),
}
GPT: Mapping[str, Callable[[Any], bool]] = {
    "prompt": is_text,
    "num_images": SEVERAL["num_images"],
    "image_size": FLUX["image_size"],
    "quality": one_of("auto", "low", "medium", "high"),
    "background": one_of("auto", "opaque", "transparent"),
    "output_format": one_of("jpeg", "png", "webp"),
}
GPT_EDIT = {**GPT, "image_urls": lambda value: isinstance(value, list) and 1 <= len(value) <= 16}
BANANA_EDIT = {**BANANA, "image_urls": lambda value: isinstance(value, list) and 1 <= len(value) <= 14}
GPT: Mapping[str, Callable[[Any], bool]] = {
    **{name: SEVERAL[name] for name in ("prompt", "num_images")},
    "image_size": FLUX["image_size"],
    "quality": one_of("auto", "low", "medium", "high"),
    "background": one_of("auto", "opaque", "transparent"),
    "output_format": one_of("jpeg", "png", "webp"),
}
GPT_EDIT = {**GPT, "image_urls": BANANA_EDIT["image_urls"], "mask_url": is_text}
MODELS = {
    "tripo3d/h3.1/image-to-3d": (TRIPO, "image_url"),
    "tripo3d/p1/image-to-3d": (TRIPO, "image_url"),
    "tripo3d/p2/image-to-3d": (TRIPO, "image_url"),
    "tripo3d/h3.1/text-to-3d": (TRIPO_TEXT, "prompt"),
    "tripo3d/tripo/v2.5/multiview-to-3d": (TRIPO_VIEWS, "front_image_url"),
    "fal-ai/meshy/v5/retexture": (RETEXTURE, "model_url"),
    "fal-ai/meshy/v5/remesh": (REMESH, "model_url"),
    "fal-ai/meshy/rigging": (RIG, "model_url"),
    "fal-ai/veo3.1": (VEO, "prompt"),
    "fal-ai/veo3.1/image-to-video": (VEO_FRAME, "image_url"),
    "fal-ai/veo3.1/first-last-frame-to-video": (VEO_FRAMES, "last_frame_url"),
    "fal-ai/veo3.1/reference-to-video": (VEO_REFERENCES, "image_urls"),
    "fal-ai/veo3.1/extend-video": (VEO_FILM, "video_url"),
    "fal-ai/kling-video/v2.6/pro/image-to-video": (KLING, "start_image_url"),
    "fal-ai/ltx": (LTX, "prompt"),
    "fal-ai/flux/dev": (FLUX, "prompt"),
    "fal-ai/nano-banana-2": (BANANA, "prompt"),
    "fal-ai/nano-banana-2/edit": (BANANA_EDIT, "image_urls"),
    "openai/gpt-image-2": (GPT, "prompt"),
    "openai/gpt-image-2/edit": (GPT_EDIT, "image_urls"),
}
"""What each takes, and what it cannot do without."""
WISHES = {"fal-ai/ltx": Wish("video"), "fal-ai/flux/dev": Wish("image")}


def wish_of(model: str, body: Mapping[str, Any]) -> Wish:
    if model.startswith(("fal-ai/veo3.1", "fal-ai/kling")):
        short = int(body.get("resolution", "720p").removesuffix("p"))
        sides = (short * 16 // 9, short)
        width, height = sides[::-1] if body.get("aspect_ratio") == "9:16" else sides
        return Wish("video", width, height, int(body.get("duration", "8s").removesuffix("s")))
    if "num_images" in body:
        size = body.get("image_size", {"width": 1024, "height": 768})
        return Wish("image", size["width"], size["height"], picture_type=body.get("output_format", "jpeg"))
    form = (
        "rigged" if model.endswith("/rigging") else body.get("target_formats", ["fbx" if body.get("quad") else ""])[0]
    )
    limit = body.get("face_limit", body.get("target_polycount"))
    return WISHES.get(model) or Wish("model", face_limit=limit, form="" if form == "glb" else form)


def open_api(model: str) -> dict[str, Any]:
    """How fal describes a model that takes a prompt."""
    reference = {"$ref": "#/components/schemas/LtxInput"}
    fields = {"prompt": {"type": "string"}, "steps": {"type": "integer", "default": 30}}
    return {
        "openapi": "3.0.4",
        "info": {"title": f"Queue OpenAPI for {model}", "version": "1.0.0"},
        "components": {
            "schemas": {"LtxInput": {"type": "object", "title": "Ltx", "required": ["prompt"], "properties": fields}}
        },
        "paths": {
            f"/{model}/requests/{{request_id}}/status": {"get": {}},
            f"/{model}": {"post": {"requestBody": {"content": {"application/json": {"schema": reference}}}}},
        },
    }


class FalFiles(FileHost):
    """Takes uploads too; like every file host, without a credential."""

    def __init__(self) -> None:
        super().__init__()
        self.uploads: dict[str, bytes | None] = {}  # None: a place that nothing was put in yet

    def make_place(self) -> dict[str, str]:
        name = uuid.uuid4().hex
        self.uploads[f"{self.url}/files/{name}"] = None
        return {"upload_url": f"{self.url}/files/{name}?signature=%2F+x", "file_url": f"{self.url}/files/{name}"}

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "PUT":
            return await super().play(request)
        place = f"{self.url}{request.path}"
        signed = request.path_qs.endswith("?signature=%2F+x")
        if place not in self.uploads or not signed or request.headers["Content-Type"] != "image/png":
            return web.Response(status=403, text="<Error>SignatureDoesNotMatch</Error>")
        self.uploads[place] = await request.read()
        return web.Response()


class FalDouble(MediaDouble):
    vendor = "fal"
    credential = "0a1b2c3d-key:0123456789abcdef"
    cases = (
        Case("vendora_image_to_model", {"face_limit": 5000, "texture": True}, takes_file=True),
        Case("vendora_image_to_model", {"model_version": "P1-20260311"}, takes_file=True),
        Case("vendora_image_to_model", {"model_version": "P2-20260801"}, takes_file=True),
        Case("vendora_image_to_model", {"model_version": "v2.0-20240919"}, takes_file=True, warnings=1),
        Case("vendorb_video_31", {"prompt": "a mill", "durationSeconds": 4}),
        Case(
            "vendorb_video_31",
            {
                "prompt": "a mill",
                "durationSeconds": 4,
                "aspectRatio": "9:16",
                "compressionQuality": "lossless",
                "personGeneration": "dont_allow",
            },
            warnings=2,
        ),
        Case("fal_flux_image", {"prompt": "a fox", "size": "640x480", "n": 2, "output_format": "jpeg"}),
        Case("fal_tripo_image_to_3d", {"texture": False, "face_limit": 5000}, takes_file=True),
        Case("fal_veo31_text_to_video", {"prompt": "a mill", "duration": "4s", "negative_prompt": "rain", "seed": 3}),
    )
    order_call = ("POST", "/")  # the path is the model's name; no picture of the suite is large enough for an upload
    poll_call = ("GET", "/")
    cancels = True
    endings = {
        **{name: Verdict("upstream_error", retryable=True) for name in REQUEST_ERRORS},
        **{f"status {name}": Verdict("upstream_error", retryable=True) for name in REQUEST_ERRORS},
        "content_policy_violation": Verdict("content_filtered"),
        "image_too_small": Verdict("upstream_rejected"),
        "internal_server_error": Verdict("upstream_error", retryable=True),
        "downstream_service_error": Verdict("upstream_error", retryable=True),
        "status content_policy_violation": Verdict("content_filtered"),
        "untyped content_policy_violation": Verdict("content_filtered"),
        "untyped image_too_small": Verdict("upstream_rejected"),
        "untyped": Verdict("upstream_error", retryable=True),
        "empty": Verdict("content_filtered"),
    }
    refusals = {
        "401": Refusal(401, {"detail": "no"}, Verdict("upstream_auth")),
        "403": Refusal(403, {"detail": "no"}, Verdict("upstream_auth")),
        "balance": Refusal(
            403,
            {"detail": "User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard/billing."},
            Verdict("upstream_unavailable", retryable=True),
        ),
        "402": Refusal(402, {"detail": "no"}, Verdict("upstream_unavailable", retryable=True)),
        "404": Refusal(404, {"detail": "no"}, Verdict("upstream_rejected")),
        "422": Refusal(422, point("value_error", "no", "image_url"), Verdict("upstream_rejected")),
        "policy": Refusal(422, point("content_policy_violation", "no", "prompt"), Verdict("content_filtered")),
        "bad_request": Refusal(400, {"detail": "no", "error_type": "bad_request"}, Verdict("upstream_rejected")),
    }
    busy = Refusal(429, {"detail": "no"}, Verdict(None), {"Retry-After": "0"})

    def __init__(self) -> None:
        super().__init__()
        self.host: FalFiles = FalFiles()
        self.apps: dict[str, str] = {}  # by request
        self.keys = [Ed25519PrivateKey.generate()]
        self.base: str | None = None  # the host that it names in a request's addresses; default: itself

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/.well-known/jwks.json":
            return answer(200, {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": public(key)} for key in self.keys]})
        if request.path == "/api/openapi/queue/openapi.json":
            model = request.query.get("endpoint_id", "")
            return answer(200, open_api(model)) if model in MODELS else answer(404, {"detail": "not found"})
        response = await self._answer_ours(request)
        response.headers["X-Fal-Request-Id"] = str(uuid.uuid4())
        return response

    async def _answer_ours(self, request: web.BaseRequest) -> web.Response:
        if request.headers.get("Authorization") != f"Key {self.credential}":
            return answer(401, {"detail": "No user found for Key ID and Secret"})
        body = await request.read()
        if request.method == "POST" and request.path == "/storage/upload/initiate":
            return self._make_place(request, json.loads(body))
        if request.method == "POST":
            return self._order(request, json.loads(body))
        match request.method, request.path.strip("/").split("/"):
            case "GET", [_, _, "requests", request_id, "status"] if request_id in self.orders:
                return self._status(self.orders[request_id])
            case "GET", [_, _, "requests", request_id] if request_id in self.orders:
                return self._result(self.orders[request_id])
            case "PUT", [_, _, "requests", request_id, "cancel"] if request_id in self.orders:
                return self._cancel(self.orders[request_id])
        return answer(404, {"status": "NOT_FOUND"} if request.method == "PUT" else {"detail": "Request not found"})

    # -- orders

    def _make_place(self, request: web.BaseRequest, told: Mapping[str, str]) -> web.Response:
        wanted = request.query.get("storage_type") == "gcs" and told.keys() == {"file_name", "content_type"}
        return answer(200, self.host.make_place()) if wanted else answer(422, point("missing", "file_name"))

    def _order(self, request: web.BaseRequest, body: dict[str, Any]) -> web.Response:
        model = request.path.strip("/")
        if model not in MODELS:
            return answer(404, {"detail": f"Application '{model}' not found"})
        fields, needed = MODELS[model]
        wrong = [name for name, value in body.items() if name not in fields or not fields[name](value)]
        files = {name: value for name, value in body.items() if name == "image" or name.endswith("_url")}
        files |= {f"image_urls.{place}": value for place, value in enumerate(body.get("image_urls", []))}
        if model == "fal-ai/meshy/v5/retexture" and ("text_style_prompt" in body) == ("image_style_url" in body):
            wrong.append("text_style_prompt")
        if wrong or needed not in body or any(self._open(value) is None for value in files.values()):
            return answer(422, point("value_error", f"wrong: {wrong}", *wrong))
        for slot, value in files.items():
            self.receive(slot, self._open(value) or b"")
        order = self.place(body, wish_of(model, body), webhook=request.query.get("fal_webhook"))
        self.apps[order.id] = model
        app = "/".join(model.split("/")[:2])
        url = f"{self.base or self.url}/{app}/requests/{order.id}"
        told = {"request_id": order.id, "response_url": url, "status_url": f"{url}/status"}
        return answer(200, {"status": "IN_QUEUE", **told, "cancel_url": f"{url}/cancel", "queue_position": 0})

    def _open(self, address: str) -> bytes | None:
        """The bytes of a small data URI, or of what was uploaded before."""
        found = open_data_uri(address) if len(address) < 6_000_000 else None
        data = found[1] if found else self.host.uploads.get(address)
        return data if data and (data.startswith(READABLE) or data[4:8] == b"ftyp") else None

    def _status(self, order: Placed) -> web.Response:
        order.polls += 1
        told = {"request_id": order.id, "response_url": f"{self.url}/elsewhere", "logs": None}
        if not order.done:
            early = {"status": "IN_QUEUE", "queue_position": 3} if order.polls == 1 else {"status": "IN_PROGRESS"}
            return answer(202, told | early)
        told |= {"status": "COMPLETED", "metrics": {"inference_time": 1.5}}
        way, _, kind = order.plan.ending.rpartition(" ")
        if way == "status":
            told |= {"error": f"failed, see {self.url}", "error_type": kind}
        elif way == "untyped" or kind == "untyped":
            told |= {"error": f"failed, see {self.url}"}
        return answer(200, told)

    def _result(self, order: Placed) -> web.Response:
        if not order.is_over():
            return answer(400, {"detail": UNFINISHED})
        kind = order.plan.ending.rpartition(" ")[2]
        if kind in REQUEST_ERRORS:
            told = {"detail": f"failed, see {self.url}", "error_type": kind}
            return answer(REQUEST_ERRORS[kind], told, {"X-Fal-Error-Type": kind})
        if kind in MODEL_ERRORS:
            retryable = {"X-Fal-Retryable": str(kind in RETRYABLE).lower()}
            return answer(MODEL_ERRORS[kind], point(kind, f"see {self.url}", "image_url"), retryable)
        if kind == "untyped":
            return web.Response(status=500, text="Internal Server Error")
        return answer(200, {} if kind == "empty" else self._output(order))

    def _output(self, order: Placed) -> dict[str, Any]:
        match order.wish.kind:
            case "video":
                return {"video": self._file(order, "video.mp4", "video/mp4"), "seed": 7}
            case "image" if "num_images" in order.body:
                return self._pictures(order)
            case "image":
                return {"images": [self._file(order, "picture.png", "image/png")], "seed": 7, "prompt": "a mill"}
        form = "glb" if order.wish.form in ("", "rigged") else order.wish.form
        mesh = self._file(order, f"model.{form}", "model/gltf-binary")
        match self.apps[order.id]:
            case "fal-ai/meshy/v5/retexture":
                return {"model_glb": mesh, "model_urls": {"glb": mesh, "fbx": None}, "texture_urls": []}
            case "fal-ai/meshy/v5/remesh":
                return {"model_urls": {form: mesh}}
            case "fal-ai/meshy/rigging":
                walk = {"basic_animations": {"walking_glb": self._file(order, "walk.glb", "model/gltf-binary")}}
                moved = {"animation_glb": mesh} if order.body.get("enable_animation") else {}
                fbx = self._file(order, "character.fbx", "application/octet-stream")
                return {"rigged_character_fbx": fbx, **walk, "rigged_character_glb": mesh, "rig_task_id": "r", **moved}
        return {
            "rendered_image": self._file(order, "preview.webp", "image/webp"),
            "model_mesh": mesh,
            "model_urls": {"fbx": None, "glb": mesh},
        }

    def _pictures(self, order: Placed) -> dict[str, Any]:
        count = order.body["num_images"]
        pictures = [self._file(order, f"picture{number}.png", "image/png") for number in range(count)]
        if "image_urls" in order.body and count == 1:
            return {"image": pictures[0], "description": ""}
        black = {"all black": [True] * count, "one black": [True] + [False] * (count - 1)}
        return {"images": pictures, "seed": 77, "has_nsfw_concepts": black.get(order.plan.ending, [False] * count)}

    def _file(self, order: Placed, name: str, content_type: str) -> dict[str, Any]:
        return {"url": self.host.link(order, name), "content_type": content_type, "file_name": name, "file_size": 9}

    def _cancel(self, order: Placed) -> web.Response:
        if order.is_over():
            return answer(400, {"status": "ALREADY_COMPLETED"})
        order.canceled = True
        return answer(202, {"status": "CANCELLATION_REQUESTED"})

    # -- notices

    def sign(self, order: Placed, age: float = 0.0, key: Ed25519PrivateKey | None = None) -> tuple[dict, bytes]:
        """The headers and the body of a notice that an order has ended."""
        told = {"request_id": order.id, "gateway_request_id": order.id, "status": "OK", "payload": None}
        body = json.dumps(told).encode()
        stamp = str(int(time.time() - age))
        message = "\n".join([order.id, "auth0|1", stamp, hashlib.sha256(body).hexdigest()])
        parts = {"Request-Id": order.id, "User-Id": "auth0|1", "Timestamp": stamp}
        parts["Signature"] = (key or self.keys[0]).sign(message.encode()).hex()
        return {f"X-Fal-Webhook-{name}": value for name, value in parts.items()}, body

    async def notify(self, order: Placed, url: str | None = None, **how: Any) -> int:
        """Call back about an order; the status of the answer."""
        headers, body = self.sign(order, **how)
        address = url or order.webhook or ""
        async with aiohttp.ClientSession() as session, session.post(address, data=body, headers=headers) as response:
            return response.status


def public(key: Ed25519PrivateKey) -> str:
    return base64.urlsafe_b64encode(key.public_key().public_bytes_raw()).decode().rstrip("=")


DOUBLES = (FalDouble,)
URL = "https://queue.fal.run/tripo3d/h3.1/requests/r1"
COMPLETED = {"status": "COMPLETED", "request_id": "r1", "metrics": {"inference_time": 1.0}}
TICKET = {"status": "IN_QUEUE", "request_id": "r1", "response_url": URL, "status_url": f"{URL}/status"}

SAMPLE = Sample(
    options={"type": "fal", "api_key": "id:secret"},
    operation={
        "id": "r1",
        "app": "tripo3d/h3.1",
        "recipe": {"kind": "3d", "preview": "rendered_image"},
        "status_url": f"{URL}/status",
        "response_url": URL,
        "cancel_url": f"{URL}/cancel",
    },
    replies={
        "submit": [
            (200, TICKET | {"cancel_url": f"{URL}/cancel"}, Accepted),
            (200, {"request_id": "r1"}, Accepted),
            (200, TICKET | {"status_url": None, "cancel_url": 7}, Accepted),
            (429, {"detail": "slow down"}, Refused),
            (401, {"detail": "no"}, Failed),
            (403, {"detail": "User is locked. Reason: Exhausted balance."}, Failed),
            (422, point("value_error", "no", "image_url"), Failed),
            (422, point("content_policy_violation"), Failed),
            (422, {"detail": [{"loc": 7, "msg": None, "type": ["x"]}, None, "x"]}, Failed),
            (500, {"detail": "oops", "error_type": "internal_error"}, Unclear),
            (200, {"request_id": ""}, Unclear),
            (200, {"status": "IN_QUEUE"}, Unclear),
        ],
        "find": [(200, {}, LookupUnsupported), (503, {}, LookupUnsupported)],
        "poll": [
            (202, {"status": "IN_QUEUE", "queue_position": 2}, Running),
            (202, {"status": "IN_QUEUE", "queue_position": -1}, Running),
            (202, {"status": "IN_QUEUE", "queue_position": 10**30}, Running),
            (202, {"status": "IN_PROGRESS", "logs": [{"message": "half"}]}, Running),
            (202, {"status": "A_WORD_OF_TOMORROW"}, Running),
            (200, COMPLETED | {"model_mesh": {"url": "https://files.example/m.glb"}}, Done),
            (200, COMPLETED | {"model_urls": {"glb": {"url": "https://files.example/m.glb"}}}, Done),
            (200, COMPLETED | {"model_mesh": None}, Failed),
            (200, COMPLETED | {"error": "late", "error_type": "request_timeout"}, Failed),
            (200, COMPLETED | {"error": None, "error_type": 7}, Failed),
            (401, {"detail": "no"}, Unclear),
            (404, {"detail": "Request not found"}, Failed),
            (503, {"detail": "no", "error_type": "internal_error"}, Unclear),
        ],
        "cancel": [
            (200, {"status": "OK"}, bool),
            (202, {"status": "CANCELLATION_REQUESTED"}, bool),
            (400, {"status": "ALREADY_COMPLETED"}, bool),
            (404, {"status": "NOT_FOUND"}, bool),
            (429, {}, Unclear),
            (503, {}, Unclear),
        ],
    },
    orders=[
        (
            "tripo3d/h3.1/image-to-3d",
            {"model_seed": 7, "texture": True, "pbr": True, "model_version": "v3.1-20260211"},
        ),
        (
            "fal-ai/veo3.1",
            {
                "prompt": "a mill",
                "durationSeconds": 4,
                "aspectRatio": "16:9",
                "resolution": "720p",
                "compressionQuality": "optimized",
                "personGeneration": "allow_adult",
            },
        ),
        ("tripo3d/h3.1/image-to-3d", {"file": {"file_token": "t"}, "texture": True}),
        ("fal-ai/veo3.1", {"prompt": "a mill", "duration": "4s", "resolution": "720p", "aspect_ratio": "16:9"}),
    ],
)
