"""`luma`: videos from text, pictures and videos by Luma's Dream Machine API."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, cast
from urllib.parse import quote

import msgspec
from pydantic import Field

from penstock.catalog import text_to_video
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import SchemaParams
from penstock.domain.job_errors import ContentFiltered, UpstreamError, UpstreamUnavailable
from penstock.vendor_api.films import FRAMES, FilmTerms, Unfit, film_model, read_film
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Call,
    Done,
    Failed,
    Flow,
    GenerationDefaults,
    Kind,
    LookupUnsupported,
    Notice,
    Order,
    Output,
    Refused,
    Reply,
    Role,
    Running,
    ServedModel,
    SignedUrl,
    Similar,
    Unclear,
    VendorFolders,
    VendorOptions,
    WebhookOptions,
    without_call,
)
from penstock.vendor_api.order_lookup import contradicts
from penstock.vendor_api.replies import (
    GONE_STATUSES,
    NO_CREDIT,
    Row,
    classify_refusal,
    fail_empty,
    fail_gone,
    may_match,
    parse_time,
    read_list,
    server_time,
    upstream_reason,
    video_warnings,
)

RAY: Final = "ray-2"
LENGTHS: Final = {4: 5, 6: 5, 8: 9}
"""Seconds requested of Luma, by the `durationSeconds` of `vendorb_video_31`."""
SHORT_SIDES: Final = {"540p": 540, "720p": 720, "1080p": 1080, "4k": 2160}
PAGE: Final = 50
ENDED: Final = {"completed", "failed"}
MODERATION: Final = re.compile(r"moderat|blacklisted|nsfw|policy|prohibited|inappropriate|safety", re.IGNORECASE)
CREDIT: Final = re.compile(r"\bcredits?\b|\bbalance\b", re.IGNORECASE)
STOPPED: Final = {200, 202, 204, 404, 410}
"""Statuses of a stopped order, or of one that is gone: the reply to the first try may have been lost."""
NOT_STOPPED: Final = {400, 405, 409, 422}
CONCEPT: Final = {
    "type": "object",
    "properties": {"key": {"type": "string", "minLength": 1, "maxLength": 200}},
    "required": ["key"],
    "additionalProperties": False,
}
FRAME: Final = {
    "type": "object",
    "properties": {"type": {"const": "image"}, "url": {"type": "string", "pattern": "^https?://", "maxLength": 2048}},
    "required": ["type", "url"],
    "additionalProperties": False,
}


def expect(params: Mapping[str, Any]) -> Expectation:
    """Return the requested length, and the size where it is known."""
    seconds = float(params["duration"].removesuffix("s")) if "duration" in params else None
    short, ratio = SHORT_SIDES.get(params.get("resolution", "")), params.get("aspect_ratio")
    if short is None or ratio not in ("16:9", "9:16"):
        return Expectation(seconds=seconds)
    width, height = (short * 16 // 9, short) if ratio == "16:9" else (short, short * 16 // 9)
    return Expectation(width=width, height=height, seconds=seconds)


NATIVE: Final = GenerationModel(
    id="luma_text_to_video",
    kind="video",
    title="Luma text to video",
    params=SchemaParams(
        {
            "properties": {
                "model": {"enum": [RAY, "ray-flash-2"], "default": RAY},
                "prompt": {"type": "string", "minLength": 3, "maxLength": 5000},
                "aspect_ratio": {"enum": ["1:1", "16:9", "9:16", "4:3", "3:4", "21:9", "9:21"]},
                "duration": {"enum": ["5s", "9s"]},
                "resolution": {"enum": list(SHORT_SIDES)},
                "loop": {"type": "boolean"},
                "concepts": {"type": "array", "items": CONCEPT, "maxItems": 16},
                "keyframes": {
                    "type": "object",
                    "description": "first and last frame; Luma fetches them itself",
                    "properties": {"frame0": FRAME, "frame1": FRAME},
                    "minProperties": 1,
                    "additionalProperties": False,
                },
            },
            "required": ["prompt"],
        }
    ),
    example={"prompt": "A paper boat drifts down a rainy street", "duration": "5s", "resolution": "720p"},
    expect=expect,
)
FILM: Final = film_model("luma_video", "Luma: video from a prompt, pictures or a video", seeded=False)
TERMS: Final = FilmTerms(
    title="Luma",
    seconds=(5, 9),
    usual=5,
    ratios=("1:1", "16:9", "9:16", "4:3", "3:4", "21:9", "9:21"),
    resolutions=tuple(SHORT_SIDES),
    ignored=frozenset({"negative_prompt", "generate_audio", "seed"}),
    frames=FRAMES,
    modes=("extend", "edit"),
    own_films=True,
    most_prompt=5000,
)
EDIT_TERMS: Final = replace(TERMS, own_films=False, resolutions=())
EDIT_STRENGTH: Final = "flex_1"
"""How far an edited film may leave its source; between `adhere_1` and `reimagine_3`."""


class LumaOptions(WebhookOptions):
    """Settings of `[vendors.NAME]` with type `luma`."""

    base_url: str = "https://api.lumalabs.ai/dream-machine/v1"
    poll_seconds: float = Field(default=3.0, gt=0)
    lookup_seconds: float = Field(default=30.0, ge=0, description="how long a lost order is searched for, in seconds")


# -- replies of Luma


class _Generation(msgspec.Struct):
    id: str | None = None
    state: str | None = None
    failure_reason: Any = None
    created_at: Any = None
    request: Any = None
    assets: Any = None


class _List(msgspec.Struct):
    generations: list[_Generation]


class _ErrorBody(msgspec.Struct):
    detail: Any = None


class Luma(GenerationDefaults):
    """The list echoes each request, so a lost order can be looked up. Callbacks are unsigned."""

    options_type: ClassVar[type[VendorOptions]] = LumaOptions
    models: Sequence[ServedModel] = [
        ServedModel(NATIVE),
        ServedModel(FILM, name=RAY),
        *(ServedModel(model, name=RAY) for model in text_to_video.MODELS),
    ]

    def __init__(self, options: LumaOptions, folders: VendorFolders) -> None:
        del folders
        self.options = options
        self.lookup_seconds = options.lookup_seconds

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place the order."""
        try:
            request = _describe(order)
        except Unfit as unfit:
            return unfit.failure
        reply = yield self._call("POST", request.path, request.body)
        if not 200 <= reply.status < 300:
            return _classify(reply)
        created = reply.decode(_Generation).id
        if not created:
            raise Unclear("a reply without an id")
        return request.accept(created)

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look up equal requests in the account's latest orders, those still running first."""
        callback, request = {"callback_url": order.webhook}, _describe(order)  # ours alone, where there is one
        wanted = callback if order.webhook else {**callback, "keyframes": None, **request.body}
        latest, listing = yield from read_list(order, self._list)
        recent = [row for row in latest if may_match(order, row.created_at, listing.answered_at)]
        found = [row for row in recent if _matches(row.record.request, wanted)]
        found.sort(key=lambda row: (row.record.state in ENDED, row.created_at or math.inf))
        doubtful = [
            row for row in recent if row not in found and not contradicts(as_object(row.record.request), wanted)
        ]
        orders = tuple(request.accept(row.upstream_id) for row in found)
        return Similar(orders, listing, tuple(row.upstream_id for row in doubtful))

    def _list(self, number: int, offset: int) -> Flow[tuple[Sequence[Row], float | None]]:
        del number
        reply = yield self._call("GET", f"/generations?limit={PAGE}&offset={offset}")
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        found = reply.decode(_List).generations
        return [
            Row(generation.id or "", parse_time(generation.created_at), generation) for generation in found
        ], server_time(reply)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state."""
        reply = yield self._call("GET", f"/generations/{quote(operation['id'], safe='')}")
        if reply.status in GONE_STATUSES:
            return fail_gone(
                reply, _reason_text((reply.try_decode(_ErrorBody) or _ErrorBody()).detail), operation["id"]
            )
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        return _read_state(reply.decode(_Generation), operation)

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Delete the order, which stops it."""
        reply = yield self._call("DELETE", f"/generations/{quote(operation['id'], safe='')}")
        if reply.status in STOPPED | NOT_STOPPED:
            return reply.status in STOPPED
        raise Unclear(f"HTTP {reply.status}")

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """Accept every notice that is a generation: notices are unsigned, and only Luma knows the URL."""
        try:
            generation = msgspec.json.decode(notice.body, type=_Generation)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return without_call(answer=False)
        return without_call(bool(generation.id and generation.state))

    def _call(self, method: str, path: str, json: Any = None) -> Call:
        return Call(method, path, {"authorization": f"Bearer {self.options.credential}"}, json)


# -- requests to Luma


@dataclass(frozen=True, slots=True)
class _Request:
    """An order in Luma's terms, with the facts about it that later calls need."""

    body: Mapping[str, Any]
    path: str = "/generations/video"
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()

    def accept(self, generation_id: str) -> Accepted:
        return Accepted(generation_id, {"id": generation_id, **self.kept}, self.warnings)


def _describe(order: Order) -> _Request:
    """Return the order in Luma's terms. Raise `Unfit` if Luma cannot make it."""
    params = order.params
    callback = {} if order.webhook is None else {"callback_url": order.webhook}
    if order.model_id == FILM.id:
        return _describe_film(order, callback)
    if "durationSeconds" not in params:  # the params are Luma's own
        return _Request({**params, **callback})
    seconds = LENGTHS[params["durationSeconds"]]
    body = {
        "model": order.model,
        "prompt": params["prompt"],
        "aspect_ratio": params["aspectRatio"],
        "resolution": params["resolution"],
        "duration": f"{seconds}s",
        **callback,
    }
    expected = replace(text_to_video.expect(params), seconds=seconds).kept
    return _Request(body, kept={"expected": expected}, warnings=tuple(_warnings(params, seconds)))


def _describe_film(order: Order, callback: Mapping[str, str]) -> _Request:
    """Return an order in the neutral params. Luma fetches pictures, and continues its own videos by their ids."""
    is_edit = order.params.get("mode") == "edit"
    film = read_film(order, EDIT_TERMS if is_edit else TERMS)
    body: dict[str, Any] = {"model": order.model, **film.renamed({"prompt": "prompt"}), **callback}
    if film.video is not None and is_edit:
        body |= {"generation_type": "modify_video", "media": {"url": SignedUrl(film.video)}, "mode": EDIT_STRENGTH}
        return _Request(body, "/generations/video/modify", warnings=film.warnings)
    asked = {"aspect_ratio": film.ratio, "resolution": film.resolution}
    body |= {name: value for name, value in asked.items() if value is not None}
    frames = {"frame0": film.first, "frame1": film.last}
    keyframes: dict[str, Any] = {
        name: {"type": "image", "url": SignedUrl(frame)} for name, frame in frames.items() if frame is not None
    }
    if film.video is not None and film.video.origin is not None:
        keyframes["frame0"] = {"type": "generation", "id": film.video.origin.upstream_id}
    if keyframes:
        body["keyframes"] = keyframes
    if film.seconds is not None:
        body["duration"] = f"{film.seconds}s"
    return _Request(body, kept={"expected": film.expected}, warnings=film.warnings)


def _warnings(params: Mapping[str, Any], seconds: int) -> Iterator[str]:
    """Yield a warning for each param that Luma does not support."""
    wanted = params["durationSeconds"]
    yield f"`durationSeconds` {wanted} is not supported by Luma: {seconds} seconds were requested instead."
    yield from video_warnings(params, "Luma")


def _matches(echo: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether an echoed request is that of the order; fields that Luma adds are ignored."""
    fields = as_object(echo)
    return all(_equals(fields.get(name), value) for name, value in wanted.items())


def _equals(echo: Any, wanted: Any) -> bool:
    """Compare one field. A link of ours is known by its file, as its signature differs from the next link's."""
    if isinstance(wanted, SignedUrl):
        return isinstance(echo, str) and wanted.file.token in echo.split("/")
    if not isinstance(wanted, Mapping):
        return echo == wanted
    fields, names = as_object(echo), cast("Mapping[str, Any]", wanted)
    return fields.keys() == names.keys() and all(_equals(fields[name], value) for name, value in names.items())


# -- meaning of the replies


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order."""
    failure = reply.try_decode(_ErrorBody) or _ErrorBody()
    reason = upstream_reason(reply.status, _reason_text(failure.detail))
    if reply.status in (400, 403, 422) and MODERATION.search(reason["message"] or ""):
        return Failed(ContentFiltered(stage="dispatching", upstream=reason))
    if reply.status in (400, 403) and CREDIT.search(reason["message"] or ""):
        return Failed(UpstreamUnavailable(NO_CREDIT, upstream=reason))
    return classify_refusal(reply, reason)


def _reason_text(detail: Any) -> Any:
    """Return the text of a `detail`, which is a sentence or a list of problems of fields."""
    if not isinstance(detail, list):
        return detail
    texts = [as_object(item).get("msg") for item in cast("list[Any]", detail)]
    return "; ".join(item for item in texts if isinstance(item, str)) or None


def _read_state(generation: _Generation, operation: Mapping[str, Any]) -> Running | Done | Failed:
    """Map a generation's state to ours; an unknown state means that it still runs."""
    match generation.state:
        case "completed":
            return _finish(as_object(generation.assets), operation)
        case "failed":
            reason = upstream_reason(generation.state, generation.failure_reason, operation["id"])
            is_moderation = MODERATION.search(reason["message"] or "")
            return Failed((ContentFiltered if is_moderation else UpstreamError)(upstream=reason))
        case _:
            return Running()


def _finish(assets: Mapping[str, Any], operation: Mapping[str, Any]) -> Done | Failed:
    video, picture = assets.get("video"), assets.get("image")
    if not isinstance(video, str) or not video:
        return fail_empty(operation["id"])
    outputs = [Output(Kind.VIDEO, Role.PRIMARY, Call("GET", video, seconds=300))]
    if isinstance(picture, str) and picture:
        outputs.append(Output(Kind.IMAGE, Role.PREVIEW, Call("GET", picture)))
    expected = operation.get("expected")
    return Done(tuple(outputs), expected=None if expected is None else Expectation(**expected))


VENDOR = Luma
