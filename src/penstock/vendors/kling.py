"""`kling`: videos from text, pictures and its own videos by Kling's own API."""

import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, Literal
from urllib.parse import quote

import msgspec
from pydantic import ConfigDict, Field, field_validator

from penstock.catalog import text_to_video
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import SchemaParams
from penstock.domain.job_errors import (
    ContentFiltered,
    JobError,
    UpstreamAuth,
    UpstreamError,
    UpstreamRejected,
    UpstreamUnavailable,
)
from penstock.vendor_api.films import FRAMES, MEGABYTE, Film, FilmTerms, Unfit, film_model, read_film
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Base64,
    Call,
    Done,
    Failed,
    Flow,
    GenerationDefaults,
    LookupUnsupported,
    Notice,
    Order,
    Refused,
    Reply,
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
from penstock.vendor_api.replies import (
    GONE_STATUSES,
    NO_CREDIT,
    Row,
    classify_refusal,
    fail_empty,
    fail_gone,
    may_match,
    pick_outputs,
    read_list,
    server_time,
    upstream_reason,
    value_at,
    video_warnings,
)

PATHS: Final = "/v1/videos"
PATH: Final = f"{PATHS}/text2video"
PAGE: Final = 500
TURBO: Final = "kling-v2-5-turbo"
MODELS: Final = ["kling-v1", "kling-v1-6", "kling-v2-master", "kling-v2-1-master", TURBO, "kling-v2-6"]
MAX_PROMPT: Final = 2500
LENGTHS: Final = {4: 5, 6: 5, 8: 10}
"""Seconds requested of Kling, by the `durationSeconds` of `vendorb_video_31`."""
RESOLUTION: Final = "1080p"  # of the mode `pro`, which all of its models have
MODES: Final = {"std": "720p", "pro": RESOLUTION}

TOKEN_SECONDS: Final = 1800
SPARE_SECONDS: Final = 300  # a token is replaced so long before it ends
SKEW_SECONDS: Final = 5  # how far our clock may be ahead of Kling's

BUSY: Final = {1302, 1303}
BROKEN: Final = {5000, 5001, 5002}
ERRORS: Final[Mapping[int, type[JobError]]] = {
    **dict.fromkeys((1000, 1001, 1002, 1003, 1004, 1103, 1304), UpstreamAuth),
    **dict.fromkeys((1200, 1201, 1202, 1203), UpstreamRejected),
}
UNKNOWN: Final = 1203  # what was asked for is not there
NO_PAYMENT: Final = {1100, 1101, 1102}
POLICY: Final = {1300, 1301}
POLICY_WORDS: Final = re.compile(
    r"policy|policies|risk control|sensitive|moderat|violat|prohibited|inappropriate|safety|nsfw", re.IGNORECASE
)
RESULT: Final = {"kind": "video", "output": "videos"}
MAX_MILLISECONDS: Final = 1e15

NATIVE: Final = GenerationModel(
    id="kling_text_to_video",
    kind="video",
    title="Kling text to video",
    params=SchemaParams(
        {
            "properties": {
                "model_name": {"enum": MODELS, "default": "kling-v1"},
                "prompt": {"type": "string", "minLength": 1, "maxLength": MAX_PROMPT, "description": "what it shows"},
                "negative_prompt": {"type": "string", "maxLength": MAX_PROMPT, "description": "what it must not show"},
                "duration": {"enum": ["5", "10"], "default": "5", "description": "length in seconds, as a text"},
                "mode": {"enum": ["std", "pro"], "default": "std", "description": "quality of the video"},
                "aspect_ratio": {"enum": ["16:9", "9:16", "1:1"], "default": "16:9"},
                "cfg_scale": {"type": "number", "minimum": 0, "maximum": 1, "description": "how closely it follows"},
                "sound": {"enum": ["on", "off"], "description": "from kling-v2-6 on"},
            },
            "required": ["prompt"],
        }
    ),
    example={"prompt": "A paper boat drifts down a rainy street", "model_name": TURBO, "duration": "5", "mode": "pro"},
    expect=lambda params: Expectation(seconds=float(params["duration"])),
)
FILM_MODEL, REFERENCE_MODEL, EDIT_MODEL = "kling-v2-6", "kling-v1-6", "kling-video-o1"
"""Models of films from a prompt or frames, from references, and of edited films."""
FILM: Final = film_model("kling_video", "Kling: video from a prompt, pictures or a video", seeded=False)
TERMS: Final = FilmTerms(
    title="Kling",
    seconds=(5, 10),
    usual=5,
    ratios=("16:9", "9:16", "1:1"),
    ignored=frozenset({"seed"}),
    frames=FRAMES,
    last_alone=True,
    references=4,
    modes=("extend", "edit"),
    own_films=True,
    frame_rules=True,
    most_prompt=MAX_PROMPT,
    pictures=("image/jpeg", "image/png"),
    picture_bytes=10 * MEGABYTE,
    picture_side=300,
    picture_shape=2.5,
)
SILENT_TERMS: Final = replace(TERMS, ignored=TERMS.ignored | {"generate_audio"})
EDIT_TERMS: Final = replace(
    SILENT_TERMS, own_films=False, needs_prompt=True, films=("video/mp4", "video/quicktime"), film_seconds=(3, 10)
)


class KlingOptions(WebhookOptions):
    """Settings of `[vendors.NAME]` with type `kling`."""

    model_config = ConfigDict(hide_input_in_errors=True)

    base_url: str = "https://api.klingai.com"
    poll_seconds: float = Field(default=10.0, gt=0)
    max_concurrent: int = Field(default=5, ge=1)
    lookup_seconds: float = Field(default=30.0, ge=0, description="how long a lost order is searched for, in seconds")

    @field_validator("api_key")
    @classmethod
    def _check_key(cls, key: str | None) -> str | None:
        if key and not all(key.partition(":")):
            raise ValueError("should be the access key and the secret key with a colon between them")
        return key


# -- replies of Kling


class _Task(msgspec.Struct):
    task_id: str = ""
    task_status: str | None = None
    task_status_msg: Any = None
    updated_at: Any = None
    task_result: Any = None


class _Answer(msgspec.Struct):
    code: Literal[0]  # any other is an error
    data: _Task


class _Listing(msgspec.Struct):
    code: Literal[0]
    data: list[Any]


class _ErrorBody(msgspec.Struct):
    code: int | None = None
    message: Any = None
    request_id: Any = None


class Kling(GenerationDefaults):
    """Orders carry our reference, so a lost one can be looked up. Callbacks are unsigned."""

    options_type: ClassVar[type[VendorOptions]] = KlingOptions
    models: Sequence[ServedModel] = [
        ServedModel(NATIVE),
        ServedModel(FILM, name=FILM_MODEL),
        *(ServedModel(model, name=TURBO) for model in text_to_video.MODELS),
    ]

    def __init__(self, options: KlingOptions, folders: VendorFolders) -> None:
        self.options = options
        self.lookup_seconds = options.lookup_seconds
        self._access, _, self._secret = options.credential.partition(":")
        self._clock = folders.clocks.now
        self._token, self._signed_at = "", 0

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place the order."""
        length = len(order.params.get("prompt") or "")
        if length > MAX_PROMPT:
            message = f"The prompt has {length} characters. Kling takes at most {MAX_PROMPT}."
            return Failed(UpstreamRejected(message))
        try:
            request = _describe(order)
        except Unfit as unfit:
            return unfit.failure
        reply = yield self._call("POST", request.path, request.body)
        taken = reply.try_decode(_Answer) if 200 <= reply.status < 300 else None
        if taken is not None and taken.data.task_id:
            return request.accept(taken.data.task_id)
        failure = reply.try_decode(_ErrorBody) or _ErrorBody()
        code = failure.code or reply.status
        return _classify(reply, code, self._reason(code, failure.message, failure.request_id))

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look up our reference in the account's latest orders."""
        request = _describe(order)
        latest, listing = yield from read_list(order, partial(self._list, request.path))
        doubtful: list[str] = []
        for row in latest:
            reference = as_object(row.record.get("task_info")).get("external_task_id")
            if reference == order.reference:
                return request.accept(row.upstream_id)
            if not reference and may_match(order, row.created_at, listing.answered_at):
                doubtful.append(row.upstream_id)
        return Similar((), listing, tuple(doubtful))

    def _list(self, path: str, number: int, offset: int) -> Flow[tuple[Sequence[Row], float | None]]:
        del offset
        reply = yield self._call("GET", f"{path}?pageNum={number + 1}&pageSize={PAGE}")
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        found = map(as_object, reply.decode(_Listing).data)
        rows = [Row(_name(fields.get("task_id")), _moment(fields.get("created_at")), fields) for fields in found]
        return rows, server_time(reply)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state."""
        path = operation.get("path", PATH)
        reply = yield self._call("GET", f"{path}/{quote(operation['id'], safe='')}")
        failure = reply.try_decode(_ErrorBody) or _ErrorBody()
        if reply.status in GONE_STATUSES or failure.code == UNKNOWN:
            lost = self._reason(failure.code, failure.message, operation["id"])
            return fail_gone(reply, lost["message"], operation["id"])
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        task = reply.decode(_Answer).data
        match task.task_status:
            case "succeed":
                return _finish(task, operation)
            case "failed":
                reason = self._reason(task.task_status, task.task_status_msg, operation["id"])
                is_policy = POLICY_WORDS.search(reason["message"] or "")
                return Failed((ContentFiltered if is_policy else UpstreamError)(upstream=reason))
            case _:  # submitted, processing, or a future state
                return Running()

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """Accept every notice that names an order: notices are unsigned, and only Kling knows the URL."""
        try:
            task = msgspec.json.decode(notice.body, type=_Task)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return without_call(answer=False)
        return without_call(bool(task.task_id and task.task_status))

    def _call(self, method: str, path: str, json: Any = None) -> Call:
        return Call(method, path, {"authorization": f"Bearer {self._authorize()}"}, json)

    def _authorize(self) -> str:
        """Return a token that we signed, cached while it is valid."""
        now = int(self._clock())
        if not self._signed_at <= now < self._signed_at + TOKEN_SECONDS - SPARE_SECONDS:
            self._token, self._signed_at = _sign(self._access, self._secret, now), now
        return self._token

    def _reason(self, code: Any, message: Any, upstream_id: Any) -> dict[str, str | None]:
        """Return Kling's reason without the access key, as the gateway redacts only both keys together."""
        reason = upstream_reason(code, message, upstream_id)
        if self._access:
            return {name: text and text.replace(self._access, "…") for name, text in reason.items()}
        return reason


# -- tokens


def _sign(access: str, secret: str, now: int) -> str:
    """Return a JWT in HS256."""
    header = {"alg": "HS256", "typ": "JWT"}
    claims = {"iss": access, "exp": now + TOKEN_SECONDS, "nbf": now - SKEW_SECONDS}
    text = b".".join(_encode(msgspec.json.encode(part)) for part in (header, claims))
    return (text + b"." + _encode(hmac.digest(secret.encode(), text, "sha256"))).decode()


def _encode(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


# -- requests to Kling


@dataclass(frozen=True, slots=True)
class _Request:
    """An order in Kling's terms, with the facts about it that later calls need."""

    body: Mapping[str, Any]
    path: str = PATH
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()

    def accept(self, task_id: str) -> Accepted:
        return Accepted(task_id, {"id": task_id, **self.kept}, self.warnings)


def _describe(order: Order) -> _Request:
    """Return the order in Kling's terms. Raise `Unfit` if Kling cannot make it."""
    params = order.params
    ours = {"external_task_id": order.reference}
    if order.webhook is not None:
        ours["callback_url"] = order.webhook
    if order.model_id == FILM.id:
        return _describe_film(order, ours)
    if "durationSeconds" not in params:  # the params are Kling's own
        return _Request({**params, **ours})
    seconds = LENGTHS[params["durationSeconds"]]
    expected = replace(text_to_video.expect({**params, "resolution": RESOLUTION}), seconds=seconds)
    body = {
        "model_name": order.model,
        "prompt": params["prompt"],
        "duration": str(seconds),
        "mode": "pro",
        "aspect_ratio": params["aspectRatio"],
        **ours,
    }
    return _Request(body, kept={"expected": expected.kept}, warnings=tuple(_warnings(params, seconds)))


def _describe_film(order: Order, ours: Mapping[str, str]) -> _Request:
    """Return an order in the neutral params: each kind of input has a path of its own."""
    film = read_film(order, _terms_of(order))
    words = film.renamed({"prompt": "prompt", "negative_prompt": "negative_prompt"})
    if film.video is not None and film.mode == "extend":
        body = {"video_id": film.video.origin and film.video.origin.upstream_id, **words}
        return _Request({**body, **ours}, f"{PATHS}/video-extend", {"path": f"{PATHS}/video-extend"}, film.warnings)
    mode, warnings = _choose_mode(film)
    body = {**words, "mode": mode, **ours}
    if film.video is not None:
        source = {"video_url": SignedUrl(film.video), "refer_type": "base", "keep_original_sound": "yes"}
        body |= {"model_name": EDIT_MODEL, "video_list": [source]}
        return _Request(body, f"{PATHS}/omni-video", {"path": f"{PATHS}/omni-video"}, warnings)
    if film.ratio or not (film.first or film.last):
        body["aspect_ratio"] = film.ratio or "16:9"
    body |= {"duration": str(film.seconds), "model_name": order.model}
    path = "text2video"
    if film.references:
        body |= {"model_name": REFERENCE_MODEL, "image_list": [{"image": Base64(each)} for each in film.references]}
        path = "multi-image2video"
    elif film.first or film.last:
        frames = {"image": film.first, "image_tail": film.last}
        body |= {name: Base64(frame) for name, frame in frames.items() if frame is not None}
        path = "image2video"
    if "generate_audio" in film.rest:
        body["sound"] = "on" if film.rest["generate_audio"] else "off"
    expected = replace(film, resolution=MODES[mode]).expected
    return _Request(body, f"{PATHS}/{path}", {"path": f"{PATHS}/{path}", "expected": expected}, warnings)


def _terms_of(order: Order) -> FilmTerms:
    """Return the terms of the model that makes the order."""
    if order.params.get("mode") == "edit":
        return EDIT_TERMS
    is_silent = order.model != FILM_MODEL or "video" in order.params or "input_references" in order.params
    return SILENT_TERMS if is_silent else TERMS


def _choose_mode(film: Film) -> tuple[str, tuple[str, ...]]:
    """Return the mode, and the warnings: sound and last frames need the mode pro, which makes 1080p."""
    if film.resolution != MODES["std"]:
        return "pro", film.warnings
    if not film.last and not film.rest.get("generate_audio"):
        return "std", film.warnings
    cause = "a last frame" if film.last else "sound"
    return "pro", (*film.warnings, f"`resolution` 720p is not supported by Kling with {cause}: it makes {RESOLUTION}.")


def _warnings(params: Mapping[str, Any], seconds: int) -> Iterator[str]:
    """Yield a warning for each param that Kling does not support."""
    wanted = params["durationSeconds"]
    yield f"`durationSeconds` {wanted} is not supported by Kling: {seconds} seconds were requested instead."
    if params["resolution"] != RESOLUTION:
        yield f"`resolution` {params['resolution']} is not supported by Kling: its mode pro makes {RESOLUTION}."
    yield from video_warnings(params, "Kling")


# -- meaning of the replies


def _classify(reply: Reply, code: int, reason: Mapping[str, str | None]) -> Refused | Failed:
    """Classify a refused order by Kling's own code, or else by the status."""
    if reply.status >= 500 or code in BROKEN:
        raise Unclear(f"HTTP {reply.status}, code {code}")
    if code in BUSY:
        return Refused(reply.retry_after)
    if code in POLICY:
        return Failed(ContentFiltered(stage="dispatching", upstream=reason))
    if code in NO_PAYMENT:
        return Failed(UpstreamUnavailable(NO_CREDIT, upstream=reason))
    return Failed(ERRORS[code](upstream=reason)) if code in ERRORS else classify_refusal(reply, reason)


def _moment(value: Any) -> float | None:
    """Return milliseconds as seconds since the epoch."""
    is_time = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_MILLISECONDS
    return value / 1000 if is_time else None


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _finish(task: _Task, operation: Mapping[str, Any]) -> Done | Failed:
    outputs, expected, updated_at = pick_outputs(task.task_result, RESULT), operation.get("expected"), task.updated_at
    if not outputs:
        return fail_empty(operation["id"])
    return Done(
        outputs,
        expected=None if expected is None else Expectation(**expected),
        finished_at=_moment(updated_at),
        result_id=_name(value_at(task.task_result, "videos.0.id")) or None,
    )


VENDOR = Kling
