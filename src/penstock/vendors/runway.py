"""`runway`: videos from text, pictures and videos by Runway's API, with its own models or those of others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import quote

import msgspec
from pydantic import Field

from penstock.catalog import text_to_video
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.schema_params import SchemaParams
from penstock.catalog.video import film_size
from penstock.domain.files import StoredFile, ending_of
from penstock.domain.job_errors import ContentFiltered, JobError, UpstreamError, UpstreamRejected, UpstreamUnavailable
from penstock.vendor_api.films import (
    FIRST,
    FRAMES,
    MEGABYTE,
    Film,
    FilmTerms,
    Unfit,
    expect_kept,
    film_model,
    read_film,
)
from penstock.vendor_api.generation import (
    Accepted,
    Call,
    DataUri,
    Done,
    Failed,
    Flow,
    Form,
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


# -- films in the neutral params

REFERENCES, EXTEND, EDIT = "klingO3_pro", "gemini_omni_flash_1.1", "aleph2"
"""Models to which Runway's default gives films from references, extensions and edits."""
MAX_INLINE: Final = 3_500_000
"""Upper bound of a picture inside an order, in bytes: its `data:` URI may have 5 MB. Larger files are uploaded."""
FILM: Final = film_model("runway_video", "Runway: video from a prompt, pictures or a video", seeded=False)
VEO_TERMS: Final = FilmTerms(
    title="Veo at Runway",
    seconds=(4, 6, 8),
    usual=8,
    frames=FRAMES,
    most_prompt=MAX_PROMPT,
    picture_bytes=16 * MEGABYTE,
)
OMNI: Final = replace(
    VEO_TERMS,
    title="Gemini Omni at Runway",
    seconds=range(3, 11),
    modes=("extend",),
    ignored=frozenset({"negative_prompt", "generate_audio", "seed"}),
    needs_prompt=True,
    film_seconds=(0, 30),
)
TERMS: Final[Mapping[str, FilmTerms]] = {
    VEO: VEO_TERMS,
    VEO_FAST: VEO_TERMS,
    GEN: replace(
        VEO_TERMS,
        title="Runway Gen-4.5",
        seconds=range(2, 11),
        resolutions=("720p",),
        frames=(FIRST,),
        ignored=frozenset({"negative_prompt", "generate_audio"}),
        needs_prompt=True,
    ),
    REFERENCES: replace(
        VEO_TERMS,
        title="Kling O3 at Runway",
        seconds=range(3, 16),
        usual=5,
        resolutions=("1080p",),
        frames=(),
        references=7,
        ignored=frozenset({"negative_prompt", "seed"}),
        needs_prompt=True,
    ),
    EXTEND: OMNI,
    EDIT: replace(
        VEO_TERMS,
        title="Runway Aleph 2",
        frames=(),
        modes=("edit",),
        ignored=frozenset({"negative_prompt", "generate_audio"}),
        films=("video/mp4", "video/quicktime", "video/webm"),
        film_seconds=(2, 30),
    ),
}


def _choose_model(order: Order) -> str:
    """Return the model for an order: Runway's default takes text and frames, and others take the rest."""
    params = order.params
    if order.model != VEO:
        return order.model
    if "video" in params:
        return EDIT if params.get("mode") == "edit" else EXTEND
    return REFERENCES if "input_references" in params else VEO


MODELS: Final = (
    ServedModel(FILM, name=VEO),
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


class _Upload(msgspec.Struct):
    uploadUrl: str  # noqa: N815  Runway's own names, here and below
    fields: dict[str, str]
    runwayUri: str  # noqa: N815


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
        if order.model_id == FILM.id:
            return (yield from self._submit_film(order))
        body, warnings = _describe(order)
        return (yield from self._place("/v1/text_to_video", body, {}, warnings))

    def _submit_film(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Upload large files, then place an order in the neutral params."""
        model = _choose_model(order)
        terms = TERMS.get(model)
        if terms is None:
            return Failed(UpstreamRejected(f"`{model}` is no model for this. Name one of {', '.join(TERMS)}."))
        try:
            film = read_film(order, terms)
        except Unfit as unfit:
            return unfit.failure
        uris: list[DataUri | str] = []
        for file in _files_of(film):
            uri = yield from self._hand_over(file)
            if isinstance(uri, Refused | Failed):
                return uri
            uris.append(uri)
        path, body = _describe_film(model, film, uris)
        return (yield from self._place(path, body, {"expected": film.expected}, film.warnings))

    def _hand_over(self, file: StoredFile) -> Flow[DataUri | str | Refused | Failed]:
        """Upload a video or a large picture; return its address in the order."""
        if file.kind == "image" and file.bytes <= MAX_INLINE:
            return DataUri(file)
        wanted = {"filename": f"{file.sha256[:16]}.{ending_of(file.content_type)}", "type": "ephemeral"}
        reply = yield msgspec.structs.replace(self._call("POST", "/v1/uploads", wanted), prepares=True)
        if not 200 <= reply.status < 300:
            return _classify(reply)
        place = reply.decode(_Upload)
        reply = yield Call(
            "POST", place.uploadUrl, form=Form("file", file, place.fields), seconds=300, prepares=True
        )  # its signature is good once: a failed upload begins again with another place
        if not 200 <= reply.status < 300:
            raise Unclear(f"HTTP {reply.status} on upload")
        return place.runwayUri

    def _place(
        self, path: str, body: Mapping[str, Any], kept: Mapping[str, Any], warnings: tuple[str, ...]
    ) -> Flow[Accepted | Refused | Failed]:
        units = sum(1 + (character > "\uffff") for character in body.get("promptText", ""))
        if units > MAX_PROMPT:
            message = f"The prompt has {units} UTF-16 units, and Runway takes at most {MAX_PROMPT}."
            return Failed(UpstreamRejected(message))
        reply = yield self._call("POST", path, body)
        if not 200 <= reply.status < 300:
            return _classify(reply)
        created = reply.decode(_Created)
        return Accepted(created.id, {"id": created.id, **kept}, warnings)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state; a deleted order is gone."""
        reply = yield self._call("GET", f"/v1/tasks/{quote(operation['id'], safe='')}")
        if reply.status in GONE_STATUSES:
            return fail_gone(reply, _reason(reply)["message"], operation["id"])
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        return expect_kept(_read_state(reply.decode(_Task), operation["id"]), operation)

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


def _files_of(film: Film) -> list[StoredFile]:
    """Return the input files: frames first, then references, or the video alone."""
    return [file for file in (film.first, film.last, *film.references, film.video) if file is not None]


def _describe_film(model: str, film: Film, uris: Sequence[DataUri | str]) -> tuple[str, dict[str, Any]]:
    """Return path and body of an order in the neutral params; `uris` are the addresses of its files."""
    names = {
        "prompt": "promptText",
        "negative_prompt": "negativePrompt",
        "generate_audio": "audio",
        "seed": "seed",
    }
    body = {"model": model, **film.renamed(names)}
    if film.video is not None:
        return "/v1/video_to_video", body | {"videoUri": uris[0]} | ({"mode": "extend"} if model == EXTEND else {})
    resolution = film.resolution or TERMS[model].resolutions[0]
    width, height = film_size({"aspect_ratio": film.ratio or "16:9", "resolution": resolution})
    body |= {"ratio": f"{width}:{height}", "duration": film.seconds}
    if film.references:
        return "/v1/text_to_video", body | {"references": [{"uri": uri} for uri in uris]}
    if not uris:
        return "/v1/text_to_video", body
    positions = ("first", "last")
    frames = [{"uri": uri, "position": place} for uri, place in zip(uris, positions, strict=False)]
    return "/v1/image_to_video", body | {"promptImage": frames}


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
