"""`meshy`: 3D models by Meshy's API."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import quote

import msgspec
from pydantic import Field

from penstock.catalog import image_to_model
from penstock.catalog.model import GenerationModel
from penstock.catalog.model_family import asked_operation
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import FILE, SchemaParams
from penstock.domain.job_errors import ContentFiltered, UpstreamError, UpstreamRejected
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Call,
    DataUri,
    Done,
    Failed,
    Flow,
    GenerationDefaults,
    Kind,
    LookupUnsupported,
    Order,
    Output,
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
from penstock.vendor_api.meshy_terms import FEWEST_FACES, MOST_FACES
from penstock.vendor_api.replies import (
    GONE_STATUSES,
    Row,
    classify_refusal,
    fail_empty,
    fail_gone,
    may_match,
    read_list,
    server_time,
    upstream_reason,
)
from penstock.vendors.meshy import family
from penstock.vendors.meshy.family import LATEST, PATHS, PICTURES

PATH: Final = PATHS["image_to_3d"]
PAGE: Final = 50
MODERATION: Final = re.compile(
    r"moderat|nsfw|harmful|inappropriate|sensitive|prohibited|policy|violat|safety", re.IGNORECASE
)
STOPPED: Final = {200, 202, 204, 404, 410}
"""Statuses of a stopped order, or of one that is gone: the reply to the first try may have been lost."""
NOT_STOPPED: Final = {400, 405, 409, 422}
NO_LIST: Final = {400, 404, 405, 410, 422, 501}
"""Statuses of a server that does not list orders, such as a proxy for some of the API."""

NATIVE: Final = GenerationModel(
    id="meshy_image_to_3d",
    kind="3d",
    title="Meshy image to 3D",
    params=SchemaParams(
        {
            "properties": {
                "image_url": {"type": "string"},
                "ai_model": {
                    "enum": [LATEST, "meshy-7.1", "meshy-7", "meshy-6", "meshy-5", "meshy-t1", "meshy-t2"],
                    "description": "meshy-t1 and meshy-t2 are for smart-topology; default: latest",
                },
                "model_type": {"enum": ["standard", "smart-topology", "lowpoly"], "description": "default: standard"},
                "should_texture": {"type": "boolean", "default": True},
                "enable_pbr": {"type": "boolean", "default": False},
                "texture_resolution": {"enum": ["2k", "4k", "8k"], "description": "default: 2k"},
                "texture_prompt": {"type": "string", "minLength": 1, "maxLength": 600},
                "texture_image_url": {"type": "string", "pattern": "^https?://", "maxLength": 2048},
                "should_remesh": {
                    "type": "boolean",
                    "description": "needed for `topology` and `target_polycount`; default: true on meshy-5 only",
                },
                "topology": {"enum": ["quad", "triangle"], "description": "default: triangle"},
                "target_polycount": {
                    "type": "integer",
                    "minimum": FEWEST_FACES,
                    "maximum": MOST_FACES,
                    "description": "about how many faces; default: 30000",
                },
                "decimation_mode": {"enum": [1, 2, 3, 4], "description": "instead of `target_polycount`"},
                "pose_mode": {"enum": ["a-pose", "t-pose"]},
                "image_enhancement": {"type": "boolean", "description": "default: true"},
                "remove_lighting": {"type": "boolean", "description": "default: true"},
                "ultra_mode": {"type": "boolean", "description": "of meshy-7 only"},
                "moderation": {"type": "boolean", "description": "whether the picture is screened; default: false"},
                "auto_size": {"type": "boolean"},
                "origin_at": {"enum": ["bottom", "center"]},
                "alpha_thumbnail": {"type": "boolean", "description": "a preview without background"},
            },
            "required": ["image_url"],
        },
        file="image_url",
    ),
    example={"file": {"url": "https://example.com/cat.png"}, "enable_pbr": True},
)


class MeshyOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `meshy`."""

    base_url: str = "https://api.meshy.ai"
    max_concurrent: int = Field(default=10, ge=1)
    lookup_seconds: float = Field(default=60.0, ge=0, description="how long a lost order is searched for, in seconds")


# -- replies of Meshy


class _NoList(Exception):
    """Orders are not listed here."""


class _Created(msgspec.Struct):
    result: Annotated[str, msgspec.Meta(min_length=1)]


class _Task(msgspec.Struct):
    status: str
    progress: Any = None
    preceding_tasks: Any = None
    model_urls: Any = None
    result: Any = None
    thumbnail_url: Any = None
    finished_at: Any = None
    task_error: Any = None


class _Listed(msgspec.Struct):
    id: str = ""
    created_at: Any = None


class _ErrorBody(msgspec.Struct):
    message: Any = None
    error_code: Any = None


class Meshy(GenerationDefaults):
    """The picture is sent inside the order. Meshy's list does not show inputs, so it can only prove absence."""

    options_type: ClassVar[type[VendorOptions]] = MeshyOptions
    models: Sequence[ServedModel] = [
        ServedModel(NATIVE),
        *(ServedModel(model, name=LATEST) for model in image_to_model.MODELS),
        *family.MODELS,
    ]

    def __init__(self, options: MeshyOptions, folders: VendorFolders) -> None:
        del folders
        self.options = options
        self.lookup_seconds = options.lookup_seconds

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place the order."""
        if asked_operation(order.params):
            return (yield from self._submit_family(order))
        if order.file is not None and order.file.content_type not in PICTURES:
            return Failed(UpstreamRejected("Meshy takes JPEG and PNG pictures only."))
        body, warnings = _describe(order)
        return (yield from self._order(PATH, body, {"faces": order.params.get("face_limit")}, warnings))

    def _submit_family(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place an order of the 3D family: name a model of Meshy's own by its task, and send any other file."""
        if problem := family.find_problem(order):
            return Failed(UpstreamRejected(problem))
        task: str | None = None
        if named := family.find_named_path(order):
            path, name = named
            reply = yield self._call("GET", f"{path}/{quote(name, safe='')}", prepares=True)
            if reply.status == 200:
                task = name
            elif reply.status not in GONE_STATUSES:
                raise Unclear(f"HTTP {reply.status}")
            elif asked_operation(order.params) == "animate":
                return Failed(UpstreamRejected("Meshy no longer has the rigged model: rig it again."))
        asked = family.describe(order, task)
        return (yield from self._order(asked.path, asked.body, asked.kept, asked.warnings))

    def _order(
        self, path: str, body: Mapping[str, Any], kept: Mapping[str, Any], warnings: tuple[str, ...]
    ) -> Flow[Accepted | Refused | Failed]:
        reply = yield self._call("POST", path, body)
        if not 200 <= reply.status < 300:
            return _classify(reply)
        task_id = reply.decode(_Created).result
        return Accepted(task_id, {"id": task_id, **kept}, warnings)

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Return the orders that may be this one; the list does not show which of them it is."""
        path = PATHS.get(asked_operation(order.params) or "", PATH)
        if asked_operation(order.params) == "convert" and "face_limit" in order.params:
            path = PATHS["remesh"]
        if path in family.UNLISTED:
            return LookupUnsupported()
        try:
            latest, listing = yield from read_list(order, lambda number, _: self._list(path, number))
        except _NoList:
            return LookupUnsupported()
        recent = [row.upstream_id for row in latest if may_match(order, row.created_at, listing.answered_at)]
        return Similar((), listing, tuple(recent))

    def _list(self, path: str, number: int) -> Flow[tuple[Sequence[Row], float | None]]:
        reply = yield self._call("GET", f"{path}?page_num={number + 1}&page_size={PAGE}&sort_by=-created_at")
        if reply.status in NO_LIST:
            raise _NoList
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        found = reply.try_decode(list[_Listed])
        if found is None:
            raise _NoList
        return [Row(record.id, _seconds(record.created_at), None) for record in found], server_time(reply)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state."""
        reply = yield self._call("GET", _address(operation))
        if reply.status in GONE_STATUSES:
            return fail_gone(reply, (reply.try_decode(_ErrorBody) or _ErrorBody()).message, operation["id"])
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        return _read_state(reply.decode(_Task), operation)

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Delete the order, which stops it."""
        reply = yield self._call("DELETE", _address(operation))
        if reply.status in STOPPED | NOT_STOPPED:
            return reply.status in STOPPED
        raise Unclear(f"HTTP {reply.status}")

    def _call(self, method: str, path: str, json: Any = None, *, prepares: bool = False) -> Call:
        headers = {"authorization": f"Bearer {self.options.credential}"}
        return Call(method, path, headers, json, seconds=120, prepares=prepares)


# -- requests to Meshy


def _describe(order: Order) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of the order, and the warnings."""
    picture = {} if order.file is None else {"image_url": DataUri(order.file)}
    always = {**picture, "target_formats": ["glb"]}
    params = order.params
    if "model_version" not in params:  # the params are Meshy's own
        return always | {name: value for name, value in params.items() if name != FILE}, ()
    remesh, clamped = family.limit_faces(params.get("face_limit"))
    body = {"ai_model": order.model, "should_texture": params["texture"], "enable_pbr": params["pbr"], **remesh}
    warnings = [f"`model_version` {params['model_version']} is not run here: made by Meshy's {order.model}."]
    if "model_seed" in params:
        warnings.append("`model_seed` is not supported by Meshy and was ignored.")
    return always | body, (*warnings, *clamped)


def _address(operation: Mapping[str, Any]) -> str:
    """Return the path of an order: each operation has its own."""
    return f"{operation.get('path', PATH)}/{quote(operation['id'], safe='')}"


# -- meaning of the replies


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order."""
    failure = reply.try_decode(_ErrorBody) or _ErrorBody()
    reason = upstream_reason(failure.error_code or reply.status, failure.message)
    if reply.status in (400, 403, 422) and _is_moderation(reason):
        return Failed(ContentFiltered(stage="dispatching", upstream=reason))
    return classify_refusal(reply, reason)


def _is_moderation(reason: Mapping[str, str | None]) -> bool:
    return any(MODERATION.search(reason[name] or "") for name in ("code", "message"))


def _read_state(task: _Task, operation: Mapping[str, Any]) -> Running | Done | Failed:
    """Map a task's status to ours; an unknown status means that it still runs."""
    match task.status:
        case "SUCCEEDED":
            return _finish(task, operation)
        case "FAILED" | "CANCELED":
            error = as_object(task.task_error)
            reason = upstream_reason(error.get("code") or task.status, error.get("message"), operation["id"])
            return Failed((ContentFiltered if _is_moderation(reason) else UpstreamError)(upstream=reason))
        case _:
            percent = _number(task.progress, 100)
            ahead = _number(task.preceding_tasks, 1e6) if task.status == "PENDING" else None
            return Running(None if percent is None else percent / 100, None if ahead is None else int(ahead))


def _finish(task: _Task, operation: Mapping[str, Any]) -> Done | Failed:
    named = family.RESULTS.get(operation.get("path", PATH))
    url = as_object(task.result).get(named) if named else as_object(task.model_urls).get(operation.get("format", "glb"))
    if not isinstance(url, str) or not url:
        return fail_empty(operation["id"])
    outputs = [Output(Kind.MODEL, Role.PRIMARY, Call("GET", url, seconds=300))]
    if isinstance(task.thumbnail_url, str) and task.thumbnail_url:
        outputs.append(Output(Kind.IMAGE, Role.PREVIEW, Call("GET", task.thumbnail_url)))
    return Done(tuple(outputs), expected=family.expect(operation), finished_at=_seconds(task.finished_at))


def _seconds(value: Any) -> float | None:
    """Return a time in seconds since the epoch; Meshy gives milliseconds, and 0 for not yet."""
    moment = _number(value, 1e15)
    return moment / 1000 if moment else None


def _number(value: Any, most: float) -> float | None:
    """Return a number within bounds; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= most else None


VENDOR = Meshy
