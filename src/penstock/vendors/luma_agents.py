"""`luma_agents`: videos by Luma's Agents API, with its model Ray 3.2."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import quote

import msgspec
from pydantic import Field

from penstock.domain.files import StoredFile
from penstock.domain.job_errors import (
    ContentFiltered,
    JobError,
    UpstreamError,
    UpstreamRejected,
    UpstreamUnavailable,
)
from penstock.vendor_api.films import FRAMES, MEGABYTE, Film, FilmTerms, Unfit, expect_kept, film_model, read_film
from penstock.vendor_api.generation import (
    Accepted,
    Base64,
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
    SignedUrl,
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
)

RAY: Final = "ray-3.2"
MAX_INLINE: Final = 20 * MEGABYTE
"""Upper bound of a file inside an order, in bytes; Luma fetches a larger one from us."""
LONG_SECONDS: Final = 10
STRENGTH: Final = "flex_2"
"""How far an edited film may leave its source; between `adhere_1` and `reimagine_3`."""
ERRORS: Final[Mapping[str, type[JobError]]] = {
    "content_moderated": ContentFiltered,
    **dict.fromkeys(("image_too_large", "unsupported_format", "corrupt_input", "invalid_request"), UpstreamRejected),
    "budget_exhausted": UpstreamUnavailable,
}
"""Errors by the code of a failed order; all other codes are failures at Luma."""
FILM: Final = film_model("luma_ray32_video", "Luma Ray 3.2: video from a prompt, pictures or a video", seeded=False)
TERMS: Final = FilmTerms(
    title="Luma Ray 3.2",
    seconds=(5, LONG_SECONDS),
    usual=5,
    ratios=("9:16", "3:4", "1:1", "4:3", "16:9", "21:9"),
    resolutions=("360p", "540p", "720p", "1080p"),
    ignored=frozenset({"negative_prompt", "generate_audio", "seed"}),
    frames=FRAMES,
    last_alone=True,
    modes=("extend", "edit"),
    own_films=True,
    fixed={"frame_images": 5},
    needs_prompt=True,
)
EDIT_TERMS: Final = replace(
    TERMS, own_films=False, films=("video/mp4", "video/quicktime", "video/webm"), film_seconds=(0, 18)
)


class LumaAgentsOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `luma_agents`."""

    base_url: str = "https://agents.lumalabs.ai/v1"
    poll_seconds: float = Field(default=3.0, gt=0)


class _Generation(msgspec.Struct):
    id: Annotated[str, msgspec.Meta(min_length=1)]
    state: Any = None
    failure_code: Any = None
    failure_reason: Any = None
    output: Any = None


class _ErrorBody(msgspec.Struct):
    detail: Any = None
    message: Any = None
    failure_code: Any = None


class LumaAgents(GenerationDefaults):
    """Orders have neither a list nor a cancel. Each poll returns new links, which are valid for an hour."""

    options_type: ClassVar[type[VendorOptions]] = LumaAgentsOptions
    models: Sequence[ServedModel] = [ServedModel(FILM, name=RAY)]

    def __init__(self, options: LumaAgentsOptions, folders: VendorFolders) -> None:
        del folders
        self.options = options

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place the order."""
        try:
            film = read_film(order, EDIT_TERMS if order.params.get("mode") == "edit" else TERMS)
        except Unfit as unfit:
            return unfit.failure
        reply = yield self._call("POST", "/generations", _describe(order.model, film))
        if not 200 <= reply.status < 300:
            return _classify(reply)
        created = reply.decode(_Generation).id
        return Accepted(created, {"id": created, "expected": film.expected}, film.warnings)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state."""
        reply = yield self._call("GET", f"/generations/{quote(operation['id'], safe='')}")
        if reply.status in GONE_STATUSES:
            return fail_gone(reply, _reason(reply)["message"], operation["id"])
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        record = reply.decode(_Generation)
        match record.state:
            case "completed":
                return expect_kept(finish(record.output, {"kind": "video"}, operation["id"]), operation)
            case "failed":
                reason = upstream_reason(record.failure_code, record.failure_reason, operation["id"])
                error = ERRORS.get(str(record.failure_code), UpstreamError)
                return Failed(error(stage="generating", upstream=reason))
            case str():
                return Running()
            case _:
                raise Unclear("a generation without a state")

    def _call(self, method: str, path: str, json: Any = None) -> Call:
        return Call(method, path, {"authorization": f"Bearer {self.options.credential}"}, json, seconds=120)


def _describe(model: str, film: Film) -> dict[str, Any]:
    """Return the body of the order."""
    body: dict[str, Any] = {"type": "video", "model": model, "prompt": film.prompt}
    asked = {"resolution": film.resolution}
    if film.video is not None and film.mode == "edit":
        video = {"edit": {"strength": STRENGTH}, **_given(asked)}
        return {**body, "type": "video_edit", "source": _refer(film.video), "video": video}
    asked |= {
        "start_frame": _refer(film.video or film.first),
        "end_frame": _refer(film.last),
        "duration": f"{film.seconds}s" if film.seconds else None,
    }
    return {**body, **_given({"aspect_ratio": film.ratio, "video": _given(asked)})}


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _refer(file: StoredFile | None) -> dict[str, Any] | None:
    """Return a media reference: by Luma's own id, inline, or by a link of ours."""
    if file is None:
        return None
    if file.kind == "video" and file.origin is not None:  # a preview's origin would name the video
        return {"generation_id": file.origin.upstream_id}
    if file.bytes <= MAX_INLINE:
        return {"data": Base64(file), "media_type": file.content_type}
    return {"url": SignedUrl(file), "media_type": file.content_type}


def _reason(reply: Reply) -> dict[str, str | None]:
    body = reply.try_decode(_ErrorBody) or _ErrorBody()
    return upstream_reason(body.failure_code or reply.status, body.message or body.detail)


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order by its code, or else by its status."""
    reason = _reason(reply)
    match ERRORS.get(reason["code"] or ""):
        case None:
            return classify_refusal(reply, reason)
        case error if error is UpstreamUnavailable:
            return Failed(UpstreamUnavailable(NO_CREDIT, upstream=reason))
        case error:
            return Failed(error(stage="dispatching", upstream=reason))


VENDOR = LumaAgents
