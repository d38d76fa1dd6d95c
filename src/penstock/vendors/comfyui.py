"""`comfyui`: graphs on the operator's own ComfyUI server; the settings bind params to inputs of the graph."""

import copy
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal, cast
from urllib.parse import quote, urlencode

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from penstock.catalog import edit_image, image_to_model, text_to_image, text_to_video
from penstock.catalog.model import Expectation, Recipe
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import FILE
from penstock.catalog.text_to_image import picture_size
from penstock.domain.files import StoredFile
from penstock.domain.job_errors import UpstreamError, UpstreamRejected
from penstock.domain.prices import FREE
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Call,
    Done,
    Failed,
    Flow,
    Form,
    GenerationDefaults,
    Kind,
    LookupUnsupported,
    Order,
    Output,
    ProgressChannel,
    Refused,
    Reply,
    Role,
    Running,
    ServedModel,
    Similar,
    Unclear,
    VendorFolders,
    VendorOptions,
)
from penstock.vendor_api.pictures import is_picture
from penstock.vendor_api.replies import ENDINGS, KINDS, classify_refusal, fail_empty, keep_recipe, upstream_reason

FAMILIES: Final = (text_to_video, image_to_model, text_to_image, edit_image)
CATALOGUE: Final = {model.id: model for family in FAMILIES for model in family.MODELS}
NAMESPACE: Final = uuid.UUID("5b6a1c0e-8f0d-5c7c-9a52-6f1f0f3f8188")
"""Namespace of the ids of our orders: each is derived from our reference, so that an order can be looked up."""
SIZE: Final = ("aspectRatio", "resolution", "size", "aspect_ratio")
MEANT: Final = {
    "width": SIZE,
    "height": SIZE,
    "seconds": ("durationSeconds",),
    "frames": ("durationSeconds",),
    "image": ("images", "references"),
    "image_2": ("images", "references"),
    "image_3": ("images", "references"),
}
"""Names that a graph may bind instead of the catalogue's params, and the params that they stand for."""
MAX_STEPS: Final = 1000
"""The most steps of a node that count toward progress."""
CHECKED: Final = {*SIZE, "durationSeconds", "face_limit", "output_format"}
"""Params that results are checked against, unless the graph does not bind them."""
USUAL: Final[Mapping[str, Any]] = {
    "compressionQuality": "optimized",
    "personGeneration": "allow_adult",
    "model_version": image_to_model.DEFAULT_VERSION,
    "texture": True,
    "pbr": True,
    "n": 1,
    "output_format": "png",
    "background": "auto",
    "quality": "auto",
}
"""Default values: a graph that does not bind these params needs no warning."""


def _parse_graph(value: Any) -> Any:
    """Return a graph from a table of the settings or the text of a JSON file."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.DecodeError:
        raise ValueError('write it as a table, or as "file:PATH" of a JSON file') from None


class Workflow(BaseModel):
    """`[vendors.NAME.workflows.WORKFLOW]`: a graph that runs a model of the catalogue."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Literal["vendorb_video_31", "vendora_image_to_model", "text_to_image", "edit_image"] = Field(
        description="the model that it runs"
    )
    workflow: Annotated[Mapping[str, Any], BeforeValidator(_parse_graph)] = Field(
        description='the graph in its API format, or "file:PATH" of it'
    )
    bind: Mapping[str, str] = Field(
        description="which input each param sets; of a video also width, height, seconds, frames and seed"
    )
    output: str | None = Field(default=None, description="the node that saves the result; default: found")
    preview: str | None = Field(default=None, description="the node that saves a picture to show")
    fps: int = Field(default=24, ge=1, description="how many frames the graph makes a second of")


class ComfyUIOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `comfyui`; `api_key` is for a proxy before it that asks for one."""

    base_url: str = "http://127.0.0.1:8188"
    poll_seconds: float = Field(default=1.0, gt=0)
    max_concurrent: int = Field(default=1, ge=1, description="how many jobs it has at once; it runs one at a time")
    lookup_seconds: float = Field(default=5.0, ge=0, description="how long a lost order may still be in transit")
    workflows: Mapping[str, Workflow] = Field(default={}, description="graphs for models of the catalogue, by name")


# -- replies of ComfyUI


class _Uploaded(msgspec.Struct):
    name: str
    subfolder: str = ""


class _Created(msgspec.Struct):
    prompt_id: Annotated[str, msgspec.Meta(min_length=1)]
    node_errors: Any = None


class _Queue(msgspec.Struct):
    queue_running: list[list[Any]]
    queue_pending: list[list[Any]]


class _Status(msgspec.Struct):
    status_str: str | None = None
    messages: list[list[Any]] | None = None


class _Entry(msgspec.Struct):
    outputs: Any = None
    status: _Status | None = None


class _ErrorBody(msgspec.Struct):
    error: Any = None
    node_errors: Any = None


class _NodeProgress(msgspec.Struct):
    value: float
    max: float
    parent_node_id: str | None = None


class _News(msgspec.Struct):
    prompt_id: str
    node: str | None = ""
    nodes: dict[str, _NodeProgress] = {}


class _Message(msgspec.Struct):
    type: str
    data: _News


class ComfyUI(GenerationDefaults):
    """Runs graphs under ids of ours. The server forgets all orders when it restarts."""

    options_type: ClassVar[type[VendorOptions]] = ComfyUIOptions
    declares = True

    def __init__(self, options: ComfyUIOptions, folders: VendorFolders) -> None:
        del folders
        self.options = options
        self.lookup_seconds = options.lookup_seconds
        names: dict[str, str] = {}
        for name, workflow in options.workflows.items():
            names.setdefault(workflow.model, name)
        self.models: Sequence[ServedModel] = [
            ServedModel(CATALOGUE[model], FREE, name) for model, name in names.items()
        ]

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Upload the picture, then queue the filled graph."""
        recipe, values = self._plan(order)
        graph, bind = copy.deepcopy(dict(recipe.workflow or {})), recipe.bind or {}
        if problem := _find_problem(graph, bind):
            return Failed(UpstreamRejected(problem))
        given = _pictures(order, recipe, bind)
        if isinstance(given, str):
            return Failed(UpstreamRejected(given))
        for param, file in given.items():
            form = Form("image", file, {"overwrite": "true", "type": "input"})
            reply = yield self._call("POST", "/upload/image", form=form, prepares=True)
            if reply.status != 200:
                return _classify(reply)
            picture = reply.decode(_Uploaded)
            values[param] = "/".join(filter(None, (picture.subfolder, picture.name)))
        for name in bind.keys() & values.keys():
            node, _, slot = bind[name].partition(".")
            graph[node]["inputs"][slot] = values[name]
        body = {"prompt": graph, "prompt_id": _name(order), "client_id": _name(order)}
        reply = yield self._call("POST", "/prompt", body)
        if reply.status != 200:
            return _classify(reply)
        created = reply.decode(_Created)
        wrong = _wrong_nodes(created.node_errors)
        skipped = [f"The server leaves out {_scrub(node)} of the workflow." for node in wrong]
        return self._accept(order, created.prompt_id, skipped)

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look for our id in the queue and in the history."""
        found = yield from self._look(_name(order))
        return Absent() if found is None else self._accept(order, _name(order))

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state."""
        found = yield from self._look(operation["id"])
        if isinstance(found, Running):
            return found
        if found is None:
            message = "The server no longer knows the job: it was restarted, or its history was cleared."
            return Failed(UpstreamError(message, upstream=upstream_reason(None, None, operation["id"])))
        return self._finish(found, operation)

    def progress_channel(self, operation: Mapping[str, Any]) -> ProgressChannel:
        """Return the server's WebSocket under the client id of the order, which the server sends its progress to."""
        call = self._call("GET", f"/ws?clientId={operation['id']}", seconds=10)
        return ProgressChannel(call, partial(_read_message, operation))

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Take the order out of the queue, or interrupt it; what is finished is kept."""
        name = operation["id"]
        found = yield from self._look(name)
        if isinstance(found, Running) and found.queue_position is not None:
            _require_ok((yield self._call("POST", "/queue", {"delete": [name]})))
            found = yield from self._look(name)  # it may have begun just then
        if isinstance(found, Running):
            _require_ok((yield self._call("POST", "/interrupt", {"prompt_id": name})))
        return not isinstance(found, _Entry)

    def _look(self, name: str) -> Flow[Running | _Entry | None]:
        """Look up an order. It moves from the queue to the history atomically, so the queue is read first."""
        queue = _require_ok((yield self._call("GET", "/queue"))).decode(_Queue)
        if any(item[1] == name for item in queue.queue_running):
            return Running()
        pending = [item[1] for item in sorted(queue.queue_pending, key=lambda item: item[0])]
        if name in pending:
            return Running(queue_position=pending.index(name) + 1)
        history = _require_ok((yield self._call("GET", f"/history/{name}"))).decode(dict[str, Any])
        return msgspec.convert(history.get(name), _Entry | None)

    def _plan(self, order: Order) -> tuple[Recipe, dict[str, Any]]:
        """Return the recipe and the values of an order; of a video also size and length as graphs name them."""
        values = {name: value for name, value in order.params.items() if name != FILE}
        workflow = self.options.workflows.get(order.model)
        if order.recipe is not None or workflow is None:
            return order.recipe or Recipe(""), values
        if "durationSeconds" in values:
            values["width"], values["height"] = text_to_video.frame_size(values)
            values["seconds"] = values["durationSeconds"]
            values["frames"] = values["seconds"] * workflow.fps + 1  # such models count a first frame
            values["seed"] = uuid.UUID(_name(order)).int % 2**32
        if is_picture(order):
            values.setdefault("seed", uuid.UUID(_name(order)).int % 2**32)
            if size := picture_size(values):
                values["width"], values["height"] = size
        kind = CATALOGUE[workflow.model].kind
        recipe = Recipe(kind, FILE, workflow.output, workflow.preview, workflow.workflow, workflow.bind)
        return recipe, values

    def _accept(self, order: Order, name: str, warnings: Sequence[str] = ()) -> Accepted:
        """Return the accepted order with what `poll` needs, and a warning for each param that was ignored."""
        recipe, _ = self._plan(order)
        bound = {param for given in recipe.bind or () for param in (given, *MEANT.get(given, ()))}
        bound |= {FILE} if recipe.file in bound else set[str]()
        lost = {param: value for param, value in order.params.items() if param not in bound}
        ignored = [
            f"`{param}` is not bound in the workflow and was ignored."
            for param in lost
            if lost[param] != USUAL.get(param)
        ]
        checked = {"unchecked": True} if CHECKED & lost.keys() else {}
        operation = {"id": name, **keep_recipe(recipe), **checked, **_count_steps(recipe.workflow or {})}
        return Accepted(name, operation, (*warnings, *ignored))

    def _finish(self, entry: _Entry, operation: Mapping[str, Any]) -> Done | Failed:
        """Return the outputs of a finished order, or its error."""
        events = _events(entry.status)
        if entry.status and entry.status.status_str == "error":
            return Failed(_blame(events, operation["id"]))
        kind, node, preview = KINDS[operation["kind"]], operation.get("output"), operation.get("preview")
        made = [file for file in _files(entry.outputs, kind, node) if file.get("type") != "temp"]
        if not made:
            return fail_empty(operation["id"])
        shown = list(_files(entry.outputs, Kind.IMAGE, preview))[:1] if preview else []
        outputs = [Output(kind, Role.PRIMARY, self._view(file)) for file in made]
        outputs += [Output(Kind.IMAGE, Role.PREVIEW, self._view(file)) for file in shown]
        expected = Expectation() if operation.get("unchecked") else None
        return Done(tuple(outputs), expected=expected, finished_at=_last_time(events))

    def _view(self, file: Mapping[str, Any]) -> Call:
        query = {name: file[name] for name in ("filename", "subfolder", "type") if isinstance(file.get(name), str)}
        return self._call("GET", f"/view?{urlencode(query, quote_via=quote)}", seconds=300)

    def _call(self, method: str, path: str, json: Any = None, **more: Any) -> Call:
        headers = {"authorization": f"Bearer {self.options.api_key}"} if self.options.api_key else {}
        return Call(method, path, headers, json, **more)


def _name(order: Order) -> str:
    """Return the order's id at the server."""
    return str(uuid.uuid5(NAMESPACE, order.reference))


def _pictures(order: Order, recipe: Recipe, bind: Mapping[str, str]) -> dict[str, StoredFile] | str:
    """Return the pictures to upload by the name that the graph binds, or why they cannot be used."""
    if order.file is not None:
        name = recipe.file or FILE
        return {name: order.file} if name in bind else {}
    files = [given.file for name in ("images", "references") for given in order.given(name)]
    found = {"image" if number == 1 else f"image_{number}": file for number, file in enumerate(files, 1)}
    for given in order.given("mask"):
        found["mask"] = given.file
    missing = [name for name in found if name not in bind]
    if order.recipe is None and missing:
        return f"The workflow of this model takes no `{missing[0]}`: the settings bind {', '.join(sorted(bind))}."
    return {name: file for name, file in found.items() if name in bind}


def _require_ok(reply: Reply) -> Reply:
    if reply.status != 200:
        raise Unclear(f"HTTP {reply.status}")
    return reply


def _find_problem(graph: Mapping[str, Any], bind: Mapping[str, str]) -> str | None:
    """Return what is wrong with the settings of a graph; None if nothing is."""
    if not graph:
        return "The settings of this model name no workflow."
    for param, place in bind.items():
        node, _, slot = place.partition(".")
        if slot not in as_object(as_object(graph.get(node)).get("inputs")):
            return f"The workflow of this model has no input `{place}`, which the settings bind `{param}` to."
    return None


# -- progress


def _count_steps(graph: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many nodes a graph has, and of those that take several steps how many."""
    named = {name: as_object(as_object(node).get("inputs")).get("steps") for name, node in graph.items()}
    steps = {name: min(count, MAX_STEPS) for name, count in named.items() if isinstance(count, int) and count > 1}
    return {"nodes": len(graph), "steps": steps}


def _read_message(operation: Mapping[str, Any], text: str) -> Running | None:
    """Return the progress of our order; None for every other message. At the end the history has the result."""
    message = msgspec.json.decode(text, type=_Message)
    if message.data.prompt_id != operation["id"]:
        return None
    if message.type == "executing" and message.data.node is None:
        return Running(poll_after=0.0)
    return Running(_share(operation, message.data.nodes)) if message.type == "progress_state" else None


def _share(operation: Mapping[str, Any], begun: Mapping[str, _NodeProgress]) -> float:
    """Return the share of steps that are done. A node that has not begun counts with the steps that its graph names."""
    left: int = operation["nodes"] - len(operation["steps"]) + sum(operation["steps"].values())
    done = total = 0.0
    for name, node in begun.items():
        if node.parent_node_id is None and node.max > 0:  # not inside of another node
            named = operation["steps"].get(name, 1)
            steps = max(named, min(node.max, MAX_STEPS))  # a node reports a single step until it knows better
            done, total, left = done + steps * min(node.value / node.max, 1.0), total + steps, left - named
    return done / max(total + max(left, 0), 1.0)


# -- errors


def _scrub(text: str) -> str:
    """Remove everything that looks like a file path, so that the server's folders are not disclosed."""
    return " ".join("…" if "/" in word or "\\" in word else word for word in text.split())


def _reason(error: Any) -> str:
    """Return the text of an error, which is an object, or a string from a proxy."""
    parts = [as_object(error).get(name) for name in ("message", "details")]
    return ": ".join(str(part) for part in parts if part) or str(error or "")


def _wrong_nodes(node_errors: Any) -> dict[str, str]:
    """Return the nodes that cannot run, with the reason."""
    found: dict[str, str] = {}
    for name, node in as_object(node_errors).items():
        errors = as_object(node).get("errors")
        first = cast("list[Any]", errors)[:1] if isinstance(errors, list) else []
        found[f"node {name} ({as_object(node).get('class_type')})"] = _reason(*first or [None])
    return found


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order; the reason names the first wrong node."""
    failure = reply.try_decode(_ErrorBody) or _ErrorBody()
    wrong = [f"{node}: {why}" for node, why in _wrong_nodes(failure.node_errors).items()]
    code = as_object(failure.error).get("type") or reply.status
    return classify_refusal(reply, upstream_reason(code, _scrub(wrong[0] if wrong else _reason(failure.error))))


def _events(status: _Status | None) -> dict[str, Mapping[str, Any]]:
    """Return the events of an order by name."""
    messages = status.messages if status else None
    return {str(message[0]): as_object(message[-1]) for message in messages or () if message}


def _blame(events: Mapping[str, Mapping[str, Any]], name: str) -> UpstreamError:
    """Return the error of an order without a result."""
    if "execution_interrupted" in events:
        message = "The job was interrupted at the server."
        return UpstreamError(message, upstream=upstream_reason("execution_interrupted", None, name))
    error = events.get("execution_error", {})
    node = f"node {error.get('node_id')} ({error.get('node_type')})"
    reason = _scrub(f"{node}: {error.get('exception_message')}")
    return UpstreamError(upstream=upstream_reason(_scrub(str(error.get("exception_type"))), reason, name))


# -- outputs


def _files(outputs: Any, kind: Kind, node: str | None) -> Iterator[Mapping[str, Any]]:
    """Yield the saved files of a kind, of one node or of all, whatever field lists them."""
    nodes = as_object(outputs)
    for saved in [nodes.get(node)] if node else nodes.values():
        for listed in as_object(saved).values():
            for item in cast("list[Any]", listed) if isinstance(listed, list) else ():
                file = as_object(item)
                if str(file.get("filename")).lower().endswith(ENDINGS[kind]):
                    yield file


def _last_time(events: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Return the time of the last event in seconds; ComfyUI reports milliseconds."""
    times = [event.get("timestamp") for event in events.values()]
    return max((time / 1000 for time in times if isinstance(time, int) and 0 < time < 10**14), default=None)


VENDOR = ComfyUI
