"""`runway`: videos from text by Runway's API, with its own Gen-4.5 or with Veo 3.1."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import quote

import msgspec
from pydantic import Field

from penstock.catalog import text_to_video
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.schema_params import SchemaParams
from penstock.domain.job_errors import ContentFiltered, JobError, UpstreamError, UpstreamRejected, UpstreamUnavailable
from penstock.vendor_api.generation import (
    Accepted,
    Call,
    Done,
    Failed,
    Flow,
    GenerationDefaults,
    Order,
    Refused,
    Reply,
    Running,
    ServedModel,
    Unclear,
    VendorFolders,
    VendorOptions,
)
from penstock.vendor_api.replies import (
    GONE_STATUSES,
    NO_CREDIT,
    classify_refusal,
    fail_gone,
    finish,
    upstream_reason,
    video_warnings,
)

GEN, VEO, VEO_FAST = "gen4.5", "veo3.1", "veo3.1_fast"
MAX_PROMPT: Final = 1000
"""In UTF-16 units, which a JSON Schema cannot count: a character beyond U+FFFF is two of them."""


class RunwayOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `runway`."""

    base_url: str = "https://api.dev.runwayml.com"
    version: str = Field(default="2024-11-06", description="the version of Runway's API, as in `X-Runway-Version`")
    poll_seconds: float = Field(default=5.0, gt=0)
    max_concurrent: int = Field(
        default=20, ge=1, description="the best tier's number; what a lower tier cannot run at once waits there"
    )


# -- its own models

PROMPT: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_PROMPT,
    "description": "what the video shows, at most 1000 UTF-16 units",
}
SEED: Final = {"type": "integer", "minimum": 0, "maximum": 4294967295, "description": "random when absent, echoed"}
GEN_SCHEMA: Final[Mapping[str, Any]] = {
    "required": ["promptText", "ratio", "duration"],
    "properties": {
        "promptText": PROMPT,
        "ratio": {"enum": ["1280:720", "720:1280"], "description": "width and height in pixels"},
        "duration": {"type": "integer", "minimum": 2, "maximum": 10, "description": "length in seconds"},
        "seed": SEED,
        "contentModeration": {
            "type": "object",
            "properties": {"publicFigureThreshold": {"enum": ["auto", "low"]}},
            "additionalProperties": False,
            "description": "`low` is less strict about people of public life",
        },
    },
}
VEO_SCHEMA: Final[Mapping[str, Any]] = {
    "required": ["promptText", "ratio"],
    "properties": {
        "model": {"enum": [VEO, VEO_FAST], "default": VEO, "description": "which of the two to run"},
        "promptText": PROMPT,
        "ratio": {
            "enum": ["1280:720", "720:1280", "1920:1080", "1080:1920"],
            "description": "width and height in pixels",
        },
        "duration": {"enum": [4, 6, 8], "default": 8, "description": "length in seconds"},
        "audio": {"type": "boolean", "default": True, "description": "whether to make sound"},
        "negativePrompt": {"type": "string", "description": "what the video must not show"},
        "seed": SEED,
    },
}


def _expect(params: Mapping[str, Any]) -> Expectation:
    """Return the requested size and length."""
    width, _, height = params["ratio"].partition(":")
    return Expectation(width=int(width), height=int(height), seconds=params["duration"])


def _declare(model_id: str, title: str, schema: Mapping[str, Any]) -> GenerationModel:
    example = {"promptText": "A paper boat drifts down a rainy street", "ratio": "1280:720", "duration": 4}
    return GenerationModel(model_id, "video", title, SchemaParams(schema), example, _expect, seed_param="seed")


MODELS: Final = (
    *(ServedModel(model, name=VEO) for model in text_to_video.MODELS),
    ServedModel(_declare("runway_gen45_text_to_video", "Text to video by Runway Gen-4.5", GEN_SCHEMA), name=GEN),
    ServedModel(_declare("runway_veo31_text_to_video", "Text to video by Veo 3.1 at Runway", VEO_SCHEMA), name=VEO),
)


# -- replies of Runway


class _Created(msgspec.Struct):
    id: Annotated[str, msgspec.Meta(min_length=1)]


class _Task(msgspec.Struct):
    status: str
    progress: float | None = None
    output: Any = None
    failure: Any = None
    failureCode: Any = None  # noqa: N815  Runway's own name


class _ErrorBody(msgspec.Struct):
    error: str


class Runway(GenerationDefaults):
    """Links to a result are valid for a day; each poll returns new ones."""

    options_type: ClassVar[type[VendorOptions]] = RunwayOptions
    models: Sequence[ServedModel] = MODELS

    def __init__(self, options: RunwayOptions, folders: VendorFolders) -> None:
        del folders
        self.options = options

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place the order, unless the prompt is too long."""
        body, warnings = _describe(order)
        units = sum(1 + (character > "\uffff") for character in body["promptText"])
        if units > MAX_PROMPT:
            message = f"The prompt has {units} UTF-16 units, and Runway takes at most {MAX_PROMPT}."
            return Failed(UpstreamRejected(message))
        reply = yield self._call("POST", "/v1/text_to_video", body)
        if not 200 <= reply.status < 300:
            return _classify(reply)
        created = reply.decode(_Created)
        return Accepted(created.id, {"id": created.id}, warnings)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state; a deleted order is gone."""
        reply = yield self._call("GET", f"/v1/tasks/{quote(operation['id'], safe='')}")
        if reply.status in GONE_STATUSES:
            return fail_gone(reply, _reason(reply)["message"], operation["id"])
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        return _read_state(reply.decode(_Task), operation["id"])

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Stop the order, which deletes it; an order that is gone counts as stopped."""
        reply = yield self._call("DELETE", f"/v1/tasks/{quote(operation['id'], safe='')}")
        if reply.status not in (200, 204, 404):
            raise Unclear(f"HTTP {reply.status}")
        return True

    def _call(self, method: str, path: str, json: Any = None) -> Call:
        options = self.options
        headers = {"authorization": f"Bearer {options.api_key}", "x-runway-version": options.version}
        return Call(method, path, headers, json)


def _describe(order: Order) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of the order, and the warnings."""
    params = order.params
    if "promptText" in params:
        return {"model": order.model, **params}, ()
    width, height = text_to_video.frame_size(params)
    sound = {} if order.model == GEN else {"audio": True}
    body = {
        "model": order.model,
        "promptText": params["prompt"],
        "ratio": f"{width}:{height}",
        "duration": params["durationSeconds"],
        **sound,
    }
    return body, video_warnings(params, "Runway")


def _reason(reply: Reply) -> dict[str, str | None]:
    error_body = reply.try_decode(_ErrorBody)
    return upstream_reason(reply.status, error_body and error_body.error)


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order; only the message shows that there is no credit."""
    reason = _reason(reply)
    if reply.status == 400 and "enough credits" in (reason["message"] or ""):
        return Failed(UpstreamUnavailable(NO_CREDIT, upstream=reason))
    return classify_refusal(reply, reason)


def _read_state(task: _Task, task_id: str) -> Running | Done | Failed:
    """Map a task's status to ours; an unknown status means that it still runs."""
    match task.status:
        case "SUCCEEDED":
            return finish(task.output, {"kind": "video"}, task_id)
        case "FAILED":
            error = _blame(str(task.failureCode))
            return Failed(
                error(
                    stage="generating", upstream=upstream_reason(task.failureCode or task.status, task.failure, task_id)
                )
            )
        case "CANCELLED":
            return Failed(
                UpstreamError(
                    "The job was canceled at the vendor.", upstream=upstream_reason(task.status, None, task_id)
                )
            )
        case _:
            return Running(task.progress)


def _blame(code: str) -> type[JobError]:
    """Return the error for a failure code such as `SAFETY.INPUT.TEXT`, `ASSET.INVALID` or `INTERNAL`."""
    parts = code.split(".")
    if "SAFETY" in parts:
        return ContentFiltered
    if parts[0] in ("INPUT_PREPROCESSING", "ASSET") and "INTERNAL" not in parts:
        return UpstreamRejected
    return UpstreamError


VENDOR = Runway
