"""A ComfyUI server, as its documents say, behind a proxy that asks for a key."""

import asyncio
import json
import time
import uuid
from collections.abc import Iterator, Mapping
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
    read_form,
)

from penstock.vendor_api.generation import Absent, Accepted, Done, Failed, Refused, Running, Unclear
from penstock.vendors.comfyui import NAMESPACE

CHECKPOINTS = ["base.safetensors", "video/base.safetensors"]
LINK = list
CLASSES: Mapping[str, Mapping[str, type]] = {
    "CheckpointLoaderSimple": {"ckpt_name": str},
    "CLIPTextEncode": {"text": str, "clip": LINK},
    "EmptyLatentImage": {"width": int, "height": int, "batch_size": int},
    "EmptyVideo": {"width": int, "height": int, "length": int},
    "KSampler": {"seed": int, "steps": int, "model": LINK, "positive": LINK},
    "VAEDecode": {"samples": LINK},
    "LoadImage": {"image": str},
    "Inflate": {"image": LINK, "seed": int, "face_limit": int},
    "SaveImage": {"images": LINK, "filename_prefix": str},
    "PreviewImage": {"images": LINK},
    "SaveVideo": {"video": LINK, "filename_prefix": str},
    "SaveGLB": {"mesh": LINK, "filename_prefix": str},
}
"""The nodes there are, with their inputs; all are required here."""
SAVED = {"SaveImage": ("images", "png"), "SaveVideo": ("images", "mp4"), "SaveGLB": ("3d", "glb")}
ORDER_FIELDS = {"prompt", "prompt_id", "client_id", "extra_data", "number", "front", "partial_execution_targets"}


def node(class_type: str, **inputs: Any) -> dict[str, Any]:
    return {"class_type": class_type, "inputs": inputs, "_meta": {"title": class_type}}


SAMPLER = {
    "3": node("KSampler", seed=1, steps=20, model=["4", 0], positive=["6", 0]),
    "4": node("CheckpointLoaderSimple", ckpt_name="base.safetensors"),
    "6": node("CLIPTextEncode", text="a boat", clip=["4", 1]),
    "8": node("VAEDecode", samples=["3", 0]),
}
PAINTING = SAMPLER | {"9": node("SaveImage", images=["8", 0], filename_prefix="sketch")}
VIDEO = SAMPLER | {
    "5": node("EmptyVideo", width=640, height=480, length=49),
    "9": node("SaveVideo", video=["8", 0], filename_prefix="clips"),
}
STATUE = {
    "10": node("LoadImage", image="example.png"),
    "11": node("Inflate", image=["10", 0], seed=1, face_limit=2000),
    "12": node("PreviewImage", images=["10", 0]),
    "9": node("SaveGLB", mesh=["11", 0], filename_prefix="statues"),
}
DRAWING = PAINTING | {"5": node("EmptyLatentImage", width=512, height=512, batch_size=1)}
"""A graph of pictures of any size."""
BLENDING = PAINTING | {"10": node("LoadImage", image="example.png"), "11": node("LoadImage", image="example.png")}
"""A graph of one picture and a mask."""
RESTYLING = PAINTING | {"10": node("LoadImage", image="example.png"), "12": node("PreviewImage", images=["10", 0])}


def write(value: Any) -> str:
    """A value in TOML; a graph as the text of its file."""
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return "{" + ", ".join(f"{json.dumps(name)} = {json.dumps(item)}" for name, item in value.items()) + "}"
    return json.dumps(json.dumps(value) if isinstance(value, dict) else value)


def table(head: str, **values: Any) -> str:
    return "\n".join([head, *(f"{name} = {write(value)}" for name, value in values.items())]) + "\n"


def declare(model_id: str, **values: Any) -> str:
    return table("[[models]]", id=model_id, vendor="comfyui", **values)


WORKFLOWS = table(
    "[vendors.comfyui.workflows.wan]",
    model="vendorb_video_31",
    workflow=VIDEO,
    bind={"prompt": "6.text", "width": "5.width", "height": "5.height", "frames": "5.length", "seed": "3.seed"},
    output="9",
) + table(
    "[vendors.comfyui.workflows.inflate]",
    model="vendora_image_to_model",
    workflow=STATUE,
    bind={"file": "10.image", "model_seed": "11.seed", "face_limit": "11.face_limit"},
)
MODELS = (
    declare(
        "sketch",
        kind="image",
        workflow=PAINTING,
        bind={"prompt": "6.text", "seed": "3.seed", "checkpoint": "4.ckpt_name"},
        output="9",
    )
    + declare("restyle", kind="image", workflow=RESTYLING, bind={"prompt": "6.text", "file": "10.image"})
    + declare(
        "statue",
        kind="3d",
        workflow=STATUE,
        file="picture",
        bind={"picture": "10.image", "faces": "11.face_limit"},
        preview="12",
    )
    + declare("vendorb_video_31")
    + declare("vendora_image_to_model")
)


def trouble(kind: str = "invalid_prompt", details: str = "", **node_errors: Any) -> dict[str, Any]:
    error = {"type": kind, "message": "no", "details": details, "extra_info": {}}
    return {"error": error, "node_errors": node_errors}


def node_error(class_type: str, details: str = "ckpt_name") -> dict[str, Any]:
    error = {"type": "value_not_in_list", "message": "no", "details": details, "extra_info": {}}
    return {"errors": [error], "dependent_outputs": ["9"], "class_type": class_type}


class ComfyUIDouble(MediaDouble):
    vendor = "comfyui"
    longest = 0.3  # one at a time
    cases = (
        Case("sketch", {"prompt": "a mill"}),
        Case("restyle", {"prompt": "a mill"}, takes_file=True),
        Case("statue", {"faces": 500}, takes_file=True),
        Case("vendorb_video_31", {"prompt": "a mill", "durationSeconds": 4, "aspectRatio": "9:16"}),
        Case(
            "vendorb_video_31", {"prompt": "a mill", "durationSeconds": 4, "compressionQuality": "lossless"}, False, 1
        ),
        Case("vendora_image_to_model", {"face_limit": 1000}, takes_file=True),
        Case("vendora_image_to_model", {"face_limit": 1000, "texture": False}, takes_file=True, warnings=2),
    )
    order_call = ("POST", "/prompt")
    poll_call = ("GET", "/queue")
    finds = True
    cancels = True
    links = False
    endings = {
        "error": Verdict("upstream_error", retryable=True),
        "interrupted": Verdict("upstream_error", retryable=True),
        "silent error": Verdict("upstream_error", retryable=True),
        "lost": Verdict("upstream_error", retryable=True),
        "empty": Verdict("content_filtered"),
        "preview only": Verdict("content_filtered"),
        "another kind": Verdict("content_filtered"),
        "no status": Verdict(None),
    }
    refusals = {
        "no_prompt": Refusal(400, trouble("no_prompt", "No prompt provided"), Verdict("upstream_rejected")),
        "invalid_prompt": Refusal(400, trouble(details="Node ID '#3'"), Verdict("upstream_rejected")),
        "node errors": Refusal(
            400,
            trouble("prompt_outputs_failed_validation", **{"4": node_error("CheckpointLoaderSimple")}),
            Verdict("upstream_rejected"),
        ),
        "401": Refusal(401, {"error": "no"}, Verdict("upstream_auth")),
        "403": Refusal(403, {}, Verdict("upstream_auth")),
        "413": Refusal(413, [], Verdict("upstream_rejected")),
    }
    busy = Refusal(429, {"error": "no"}, Verdict(None), {"Retry-After": "0"})

    def __init__(self) -> None:
        super().__init__()
        self.open = False  # without a proxy before it
        self.subfolder = ""  # where it puts what is uploaded
        self.uploads: dict[str, bytes] = {}
        self.gone: set[str] = set()  # neither in the queue nor in the history any more
        self.sockets: dict[str, web.WebSocketResponse] = {}  # by client
        self.sockets_changed = asyncio.Condition()

    async def forget(self) -> None:
        await super().forget()
        self.open, self.subfolder = False, ""
        self.uploads.clear()
        self.gone.clear()
        self.sockets.clear()

    def settings(self, **more: Any) -> str:
        return super().settings(**more) + WORKFLOWS + MODELS

    def restart(self) -> None:
        """It forgets its queue and its history; its files stay."""
        self.gone |= self.orders.keys()

    @property
    def queue(self) -> list[Placed]:
        """The one that runs, and those that wait."""
        known = [order for order in self.orders.values() if order.id not in self.gone]
        return [order for order in known if not order.is_over() and not order.canceled]

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        if not self.open and request.headers.get("Authorization") != f"Bearer {self.credential}":
            return answer(401, {"error": "who are you?"})
        return web.Response(status=403) if "Origin" in request.headers else await self._route(request)

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        what, _, rest = request.path.strip("/").partition("/")
        match request.method, what:
            case "POST", "upload" if rest == "image":
                return await self._upload(request)
            case "POST", "prompt" | "queue" | "interrupt":
                takes = {"prompt": self._order, "queue": self._delete, "interrupt": self._interrupt}
                return takes[what](json.loads(await request.read()))
            case "GET", "queue":
                return self._list()
            case "GET", "history":
                return answer(200, self._history(rest))
            case "GET", "ws":
                return await self._serve_socket(request)
            case "GET", "view":
                return await self._view(request.query)
        return web.Response(status=404, text="404: Not Found")

    async def _upload(self, request: web.BaseRequest) -> web.Response:
        form = await read_form(request)
        name, data = form.pop("image", (None, b""))
        fields = {field: value.decode() for field, (_, value) in form.items()}
        if not name or not data or fields != {"overwrite": "true", "type": "input"}:
            return web.Response(status=400)
        self.uploads["/".join(filter(None, (self.subfolder, name)))] = data
        return answer(200, {"name": name, "subfolder": self.subfolder, "type": "input"})

    # -- the order

    def _order(self, body: dict[str, Any]) -> web.Response:
        graph = body.get("prompt")
        if not isinstance(graph, dict):
            return answer(400, trouble("no_prompt", "No prompt provided"))
        name = body.get("prompt_id") or str(uuid.uuid4())
        if body.keys() - ORDER_FIELDS or name in self.orders or str(uuid.UUID(name)) != name:
            return answer(400, trouble("invalid_prompt", "unknown field, or an id that was used before"))
        unknown = [key for key, item in graph.items() if item.get("class_type") not in CLASSES]
        if unknown:
            return answer(400, trouble("invalid_prompt", f"Node ID '#{unknown[0]}'"))
        savers = [item["class_type"] for item in graph.values() if item["class_type"] in SAVED]
        errors = {key: {**node_error(item["class_type"]), "errors": wrong} for key, item, wrong in self._check(graph)}
        if errors or not savers:
            return answer(400, trouble("prompt_outputs_failed_validation", **errors))
        number = len(self.orders)
        order = self.place(body, self._wish(graph, savers[0]), id=name)
        return answer(200, {"prompt_id": order.id, "number": number, "node_errors": {}})

    def _check(self, graph: dict[str, Any]) -> Iterator[tuple[str, Any, list[Any]]]:
        """What is wrong with each node's inputs."""
        for key, item in graph.items():
            wanted, given = CLASSES[item["class_type"]], item["inputs"]
            wrong = [{"message": "Required input is missing", "details": name} for name in wanted if name not in given]
            wrong += [
                {"message": "Failed to convert an input value", "details": f"{name}, {value}"}
                for name, value in given.items()
                if type(value) is not wanted.get(name) or (type(value) is LINK and value[0] not in graph)
            ]
            if given.get("ckpt_name", CHECKPOINTS[0]) not in CHECKPOINTS:
                details = f"ckpt_name: '{given['ckpt_name']}' not in {CHECKPOINTS}"
                wrong.append({"message": "Value not in list", "details": details})
            if given.get("image") not in (*self.uploads, "example.png") and item["class_type"] == "LoadImage":
                details = f"image - Invalid image file: /srv/comfy/input/{given['image']}"
                wrong.append({"message": "Custom validation failed for node", "details": details})
            if wrong:
                yield key, item, wrong

    @staticmethod
    def _wish(graph: dict[str, Any], saver: str) -> Wish:
        inputs = {name: value for item in graph.values() for name, value in item["inputs"].items()}
        match saver:
            case "SaveVideo":
                return Wish("video", inputs["width"], inputs["height"], (inputs["length"] - 1) // 24)
            case "SaveGLB":
                return Wish("model", face_limit=inputs["face_limit"])
            case _ if "batch_size" in inputs:
                return Wish("image", inputs["width"], inputs["height"], picture_type="png")
            case _:
                return Wish("image")

    # -- how it stands

    def _list(self) -> web.Response:
        queue = list(self.queue)  # it may be shorter in a moment
        if queue:
            queue[0].polls += 1
        numbers = {name: number for number, name in enumerate(self.orders)}
        items = [[numbers[order.id], order.id, order.body["prompt"], {}, ["9"]] for order in queue]
        return answer(200, {"queue_running": items[:1], "queue_pending": items[:0:-1]})  # a heap is in no order

    def _history(self, name: str) -> dict[str, Any]:
        order = self.orders.get(name)
        if order is None or order in self.queue or name in self.gone or order.plan.ending == "lost":
            return {}
        ending = order.plan.ending if order.done and not order.canceled else "interrupted"
        events = [["execution_start", {"prompt_id": name, "timestamp": int(order.created_at * 1000)}]]
        events += self._last_events(name, ending)
        failed = ending in ("error", "interrupted", "silent error")
        status = {"status_str": "error" if failed else "success", "completed": not failed, "messages": events}
        outputs = {} if failed or ending == "empty" else self._outputs(order, ending)
        entry = {"prompt": [0, name, order.body["prompt"], {}, ["9"]], "outputs": outputs, "meta": {}}
        return {name: entry | {"status": None if ending == "no status" else status}}

    def _last_events(self, name: str, ending: str) -> list[Any]:
        told = {"prompt_id": name, "node_id": "3", "node_type": "KSampler", "executed": ["4"]}
        match ending:
            case "interrupted":
                return [["execution_interrupted", told]]
            case "error":
                message = (
                    f"{self.credential} at {self.url} cannot open '/srv/comfy/models/base.safetensors' of C:\\comfy\\x"
                )
                trace = ["  File /srv/comfy/execution.py, line 1"]
                more = {"exception_message": message, "exception_type": "OSError", "traceback": trace}
                return [["execution_error", told | more]]
            case "silent error":
                return []
            case _:
                return [["execution_success", {"prompt_id": name, "timestamp": int(time.time() * 1000)}]]

    def _outputs(self, order: Placed, ending: str) -> dict[str, Any]:
        """What each node has saved, under names that must be written with care in a URL."""
        outputs: dict[str, Any] = {}
        for key, item in order.body["prompt"].items():
            if item["class_type"] in SAVED and ending != "preview only":
                place, extension = SAVED[item["class_type"]]
                extension = "txt" if ending == "another kind" else extension
                file = {"filename": f"{order.id} a+b&c=é_00001_.{extension}", "subfolder": "x y/z", "type": "output"}
                outputs[key] = {place: [file], "animated": [True], "text": ["done"]}
            if item["class_type"] == "PreviewImage" or (ending == "preview only" and item["class_type"] in SAVED):
                outputs[key] = {"images": [{"filename": f"{order.id}_temp.png", "subfolder": "", "type": "temp"}]}
        return outputs

    async def _view(self, query: Mapping[str, str]) -> web.Response:
        order = self.orders.get(query.get("filename", "")[:36])
        place = (query.get("subfolder"), query.get("type"))
        if order is None or place not in (("x y/z", "output"), ("", "temp")):
            return web.Response(status=404)
        if not query["filename"].startswith((f"{order.id} a+b&c=é_", f"{order.id}_temp")):
            return web.Response(status=404)
        if order.plan.ending == "corrupt":
            return web.Response(body=b"not what it should be" * 50)
        wish = Wish("image") if query["type"] == "temp" else order.wish
        return web.Response(body=await asyncio.to_thread(make_result, wish))

    # -- its WebSocket

    async def _serve_socket(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        client = request.query.get("clientId") or uuid.uuid4().hex
        await self._keep(client, socket)
        status = {"exec_info": {"queue_remaining": len(self.queue)}}
        await socket.send_json({"type": "status", "data": {"status": status, "sid": client}})
        async for _ in socket:
            pass
        await self._keep(client, None if self.sockets.get(client) is socket else self.sockets.get(client))
        return socket

    async def _keep(self, client: str, socket: web.WebSocketResponse | None) -> None:
        async with self.sockets_changed:
            if socket is None:
                self.sockets.pop(client, None)
            else:
                self.sockets[client] = socket
            self.sockets_changed.notify_all()

    async def wait_for_sockets(self, count: int) -> None:
        """Wait until so many clients listen."""
        async with self.sockets_changed:
            await self.sockets_changed.wait_for(lambda: len(self.sockets) == count)

    async def tell(self, order: Placed, kind: str, **data: Any) -> None:
        """Send a message to the client that placed the order, and to nobody else."""
        await self.sockets[order.body["client_id"]].send_json({"type": kind, "data": {"prompt_id": order.id, **data}})

    async def tell_progress(self, order: Placed, **nodes: tuple[float, float]) -> None:
        """Tell how many steps of how many each node has done."""
        states = {
            name: {
                "value": value,
                "max": most,
                "state": "finished" if value == most else "running",
                "node_id": name,
                "prompt_id": order.id,
                "display_node_id": name,
                "parent_node_id": None,
                "real_node_id": name,
            }
            for name, (value, most) in nodes.items()
        }
        await self.tell(order, "progress_state", nodes=states)

    # -- stopping it

    def _delete(self, body: dict[str, Any]) -> web.Response:
        for order in self.queue[1:]:
            if order.id in body.get("delete", ()):
                order.canceled = True
                self.gone.add(order.id)
        return web.Response()

    def _interrupt(self, body: dict[str, Any]) -> web.Response:
        if "prompt_id" not in body:
            return web.Response(status=400)  # it would stop whatever runs, someone else's too
        for order in self.queue[:1]:
            order.canceled = order.canceled or order.id == body["prompt_id"]
        return web.Response()


DOUBLES = (ComfyUIDouble,)
KNOWN = str(uuid.uuid5(NAMESPACE, "job_1-1"))


def queue(running: tuple[str, ...] = (), pending: tuple[str, ...] = (), **history: Any) -> dict[str, Any]:
    """An answer to a look at the queue, and at the history."""
    items = [[number, name, {}, {}, ["9"]] for number, name in enumerate((*running, *pending))]
    return {"queue_running": items[: len(running)], "queue_pending": items[len(running) :], **history}


def entry(status: str, *messages: Any, **outputs: Any) -> dict[str, Any]:
    return {"outputs": outputs, "status": {"status_str": status, "completed": True, "messages": list(messages)}}


CLIP = {"images": [{"filename": "a.mp4", "subfolder": "", "type": "output"}]}

SAMPLE = Sample(
    options={
        "type": "comfyui",
        "workflows": {
            "wan": {"model": "vendorb_video_31", "workflow": VIDEO, "bind": {"prompt": "6.text", "width": "5.width"}}
        },
    },
    operation={"id": "p1", "kind": "video"},
    replies={
        "submit": [
            (200, {"prompt_id": "p1", "number": 1, "node_errors": {}}, Accepted),
            (200, {"prompt_id": "p1", "number": 1, "node_errors": {"4": node_error("KSampler")}}, Accepted),
            (200, {"prompt_id": "", "number": 1}, Unclear),
            (400, trouble("no_prompt"), Failed),
            (400, trouble("invalid", **{"4": node_error("KSampler")}), Failed),
            (400, trouble("invalid", **{"4": {"errors": []}, "5": None}), Failed),
            (401, {}, Failed),
            (429, {}, Refused),
            (500, {}, Unclear),
        ],
        "find": [
            (200, queue(running=(KNOWN,)), Accepted),
            (200, queue(pending=("p0", KNOWN)), Accepted),
            (200, queue(**{KNOWN: entry("success")}), Accepted),
            (200, queue(running=("p0",)), Absent),
            (200, {}, Unclear),
            (502, {}, Unclear),
        ],
        "poll": [
            (200, queue(running=("p1",)), Running),
            (200, queue(pending=("p0", "p1")), Running),
            (200, queue(p1=entry("success", **{"9": CLIP})), Done),
            (200, queue(p1=entry("a word of tomorrow", **{"9": CLIP})), Done),
            (200, queue(p1={"outputs": {"9": CLIP}, "status": None}), Done),
            (200, queue(p1=entry("success", ["execution_success", {"timestamp": 10**400}], **{"9": CLIP})), Done),
            (200, queue(p1=entry("success")), Failed),
            (200, queue(p1={"outputs": None, "status": None}), Failed),
            (200, queue(p1=entry("success", **{"9": {"images": [None, {"filename": None}], "text": "x"}})), Failed),
            (200, queue(p1=entry("error", ["execution_interrupted", {}])), Failed),
            (200, queue(p1=entry("error", ["execution_error", None], [])), Failed),
            (200, queue(p1={"status": {"status_str": "error", "messages": None}}), Failed),
            (200, queue(), Failed),
            (200, queue(p1="done"), Unclear),
            (200, {"queue_running": [[]], "queue_pending": []}, Unclear),
            (200, {"queue_running": [], "queue_pending": [[None, "p1"], [1, "p2"]]}, Unclear),
            (200, {}, Unclear),
            (401, {}, Unclear),
            (404, {}, Unclear),
            (502, {}, Unclear),
        ],
        "cancel": [
            (200, queue(running=("p1",)), bool),
            (200, queue(pending=("p0", "p1")), bool),
            (200, queue(p1=entry("success")), bool),
            (200, queue(), bool),
            (200, {}, Unclear),
            (503, {}, Unclear),
        ],
    },
    orders=[
        (
            "wan",
            {
                "prompt": "a mill",
                "durationSeconds": 4,
                "aspectRatio": "16:9",
                "resolution": "720p",
                "compressionQuality": "optimized",
                "personGeneration": "allow_adult",
            },
        )
    ],
)
