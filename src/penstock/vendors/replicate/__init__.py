"""`replicate`: predictions of any model at Replicate, by its name, one version of it, or a deployment."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, cast
from urllib.parse import quote

import msgspec
from msgspec import structs
from pydantic import Field

from penstock.catalog import text_to_video
from penstock.catalog.model import Expectation, GenerationModel
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import FILE, SchemaParams
from penstock.domain.files import StoredFile
from penstock.domain.job_errors import ContentFiltered, UpstreamError
from penstock.vendor_api.film_apps import FilmApp, find_app
from penstock.vendor_api.films import FRAMES, MEGABYTE, FilmTerms, Unfit, expect_kept, film_model, read_film
from penstock.vendor_api.generation import (
    Accepted,
    Call,
    DataUri,
    Done,
    Failed,
    Flow,
    Form,
    GenerationDefaults,
    Notice,
    Order,
    Output,
    Refused,
    Reply,
    Running,
    ServedModel,
    Similar,
    Unclear,
    VendorFolders,
    VendorOptions,
    WebhookOptions,
)
from penstock.vendor_api.order_lookup import ListedOrder, Listing, contradicts
from penstock.vendor_api.pictures import is_picture
from penstock.vendor_api.replies import (
    GONE_STATUSES,
    classify_refusal,
    fail_empty,
    fail_gone,
    finish,
    keep_recipe,
    may_match,
    parse_time,
    seed_of,
    server_time,
    upstream_reason,
    video_warnings,
)
from penstock.vendors.replicate import pictures

VEO: Final = "google/veo-3.1-fast"
PICTURE: Final = "image"
"""The param of `VEO` that takes the caller's picture."""
MAX_INLINE: Final = 256 * 1024
"""Upper bound of an inline file in bytes; larger files are uploaded first."""
MAX_PAGES: Final = 3
ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
PERCENT: Final = re.compile(r"([0-9]{1,3})%\|")
RESET: Final = re.compile(r"~([0-9]{1,4})s")
UNSAFE: Final = re.compile(r"\bnsfw\b|\bsafety\b|\bflagged\b|\bmoderation\b|\bcontent policy\b", re.IGNORECASE)
LOG_TAIL: Final = 4000
REMOVED: Final = "The vendor has removed the result: it keeps one for an hour."
MAX_SKEW: Final = 300.0
"""Tolerance for the time of a notice, in seconds."""
SECRET_SECONDS: Final = 86_400.0
REFETCH_SECONDS: Final = 300.0
RETRY_SECONDS: Final = 5.0


def _expect(params: Mapping[str, Any]) -> Expectation:
    named = {"aspectRatio": params["aspect_ratio"], "resolution": params["resolution"]}
    width, height = text_to_video.frame_size(named)
    return Expectation(width=width, height=height, seconds=params["duration"])


VEO_FAST: Final = GenerationModel(
    id="replicate_veo_31_fast",
    kind="video",
    title="Veo 3.1 Fast at Replicate",
    params=SchemaParams(
        {
            "required": ["prompt"],
            "properties": {
                "prompt": {"type": "string", "minLength": 1, "description": "what the video shows"},
                "aspect_ratio": {"enum": ["16:9", "9:16"], "default": "16:9"},
                "duration": {"enum": [4, 6, 8], "default": 8, "description": "length in seconds"},
                PICTURE: {},
                "last_frame": {"type": "string", "pattern": "^https?://", "description": "URL of the last picture"},
                "negative_prompt": {"type": "string", "description": "what the video does not show"},
                "resolution": {"enum": ["720p", "1080p"], "default": "720p"},
                "generate_audio": {"type": "boolean", "default": True, "description": "whether it is to be heard"},
                "seed": {"type": "integer", "minimum": 0, "maximum": 2147483647},
            },
        },
        PICTURE,
    ),
    example={"prompt": "A paper boat drifts down a rainy street", "duration": 8, "resolution": "720p"},
    expect=_expect,
    seed_param="seed",
)


# -- films in the neutral params

VEO_APP: Final = FilmApp(
    terms=FilmTerms(
        title="Veo 3.1 at Replicate",
        seconds=(4, 6, 8),
        usual=8,
        frames=FRAMES,
        references=3,
        fixed={"input_references": 8},
        needs_prompt=True,
    ),
    frame=PICTURE,
    frames=(PICTURE, "last_frame"),
    references="reference_images",
    unit=None,
)
KLING_APP: Final = FilmApp(
    terms=FilmTerms(
        title="Kling at Replicate",
        seconds=(5, 10),
        usual=5,
        ratios=("16:9", "9:16", "1:1"),
        resolutions=(),
        ignored=frozenset({"generate_audio", "seed"}),
        frames=FRAMES,
        frame_rules=True,
        needs_prompt=True,
        picture_bytes=10 * MEGABYTE,
    ),
    frame="start_image",
    frames=("start_image", "end_image"),
    unit=None,
)
FILM_APPS: Final = {VEO: VEO_APP, "google/veo-3.1": VEO_APP, "kwaivgi/kling-v2.1": KLING_APP}
"""Models to which a route of `replicate_video` may lead. Any other is declared in the settings."""
FILM: Final = film_model("replicate_video", "Replicate: video from a prompt or pictures", seeded=False)


class ReplicateOptions(WebhookOptions):
    """Settings of `[vendors.NAME]` with type `replicate`."""

    base_url: str = "https://api.replicate.com"
    poll_seconds: float = Field(default=1.0, gt=0)
    lookup_seconds: float = Field(default=30.0, ge=0, description="how long a lost order is looked for, at least")


# -- replies of Replicate


class _Prediction(msgspec.Struct):
    id: Any = None
    model: Any = None
    version: Any = None
    status: Any = None
    input: Any = None
    output: Any = None
    logs: Any = None
    error: Any = None
    created_at: Any = None
    completed_at: Any = None
    data_removed: Any = None


class _Page(msgspec.Struct):
    results: list[_Prediction]
    next: str | None = None


class _Uploaded(msgspec.Struct):
    urls: dict[str, str]


class _Secret(msgspec.Struct):
    key: str


class Replicate(GenerationDefaults):
    """Runs predictions; their results are on another host for an hour."""

    options_type: ClassVar[type[VendorOptions]] = ReplicateOptions
    models: Sequence[ServedModel] = [
        *(ServedModel(model, name=VEO) for model in (*text_to_video.MODELS, VEO_FAST, FILM)),
        *pictures.MODELS,
    ]
    declares = True

    def __init__(self, options: ReplicateOptions, folders: VendorFolders) -> None:
        del folders
        self.options = options
        self.lookup_seconds = options.lookup_seconds
        self._base = f"{options.base_url.rstrip('/')}/"
        self._secret = b""
        self._secret_at = self._asked_at = float("-inf")

    # -- orders

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Upload large files, then place the order."""
        path, field, name = _place(order.model)
        try:
            given = _describe(order)
        except Unfit as unfit:
            return unfit.failure
        uploads: dict[StoredFile, str] = {}
        for file in _files_in(given):
            if file.bytes > MAX_INLINE and file not in uploads:
                upload = self._call("POST", "/v1/files")
                reply = yield structs.replace(upload, form=Form("content", file), prepares=True)
                if not _is_fine(reply):
                    return _classify(reply)
                uploads[file] = reply.decode(_Uploaded).urls["get"]
        given = _with_uploads(given, uploads)
        body: dict[str, Any] = {"input": given} | ({field: name} if field == "version" else {})
        if order.webhook is not None:
            body |= {"webhook": order.webhook, "webhook_events_filter": ["completed"]}
        reply = yield self._call("POST", path, body)
        if not _is_fine(reply):
            return _classify(reply)
        prediction = reply.decode(_Prediction)
        if not _is_named(prediction):
            raise Unclear("a reply without an id")
        return _accept(order, prediction.id)

    def find(self, order: Order) -> Flow[Similar]:
        """Look up the order in the account's latest predictions, newest first."""
        latest: list[_Prediction] = []
        recent = latest
        page, answered_at = _Page([], "/v1/predictions"), None
        for number in range(MAX_PAGES):
            reply = yield self._call("GET", page.next or "")
            if reply.status != 200:
                raise Unclear(f"HTTP {reply.status}")
            page, answered_at = reply.decode(_Page), answered_at if number else server_time(reply)
            latest += page.results
            recent = [each for each in latest if may_match(order, parse_time(each.created_at), answered_at)]
            if not self._is_own(page.next) or len(recent) < len(latest):
                break
        found = tuple(_accept(order, each.id) for each in reversed(recent) if _matches(each, order))
        entries = tuple(ListedOrder(str(each.id), parse_time(each.created_at)) for each in latest)
        doubtful = tuple(str(each.id) for each in recent if not _matches(each, order) and _may_be(each, order))
        return Similar(found, Listing(entries, page.next is None, answered_at), doubtful)

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state."""
        reply = yield self._call("GET", f"/v1/predictions/{operation['id']}")
        if reply.status in GONE_STATUSES:
            return fail_gone(reply, (reply.try_decode(dict[str, Any]) or {}).get("detail"), operation["id"])
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        prediction = reply.decode(_Prediction)
        match prediction.status:
            case "succeeded":
                return self._finish(prediction, operation)
            case "failed" | "canceled" | "aborted":
                return _fail(prediction, operation["id"])
            case str():
                return Running(_progress(prediction.logs))
            case _:
                raise Unclear("a prediction without a status")

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Stop the prediction, unless it already has a result."""
        reply = yield self._call("POST", f"/v1/predictions/{operation['id']}/cancel")
        if reply.status in (400, 404, 409, 422):
            return False
        status = reply.decode(_Prediction).status
        if reply.status != 200 or not isinstance(status, str):
            raise Unclear(f"HTTP {reply.status}")
        return status != "succeeded"

    def most_results(self, model: str) -> int | None:
        """Return the pictures of one prediction."""
        return pictures.most_results(model)

    def describe(self, model: str) -> Flow[Mapping[str, Any] | None]:
        """Return the OpenAPI document of the named version, or else of the latest."""
        name, _, version = model.partition(":")
        if name.count("/") != 1:  # a deployment, or a version of an unknown model
            return None
        path = f"/v1/models/{quote(name)}" + (f"/versions/{quote(version, safe='')}" if version else "")
        reply = yield self._call("GET", path)
        if reply.status == 404:
            return None
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        record = as_object(reply.json())
        return as_object((record if version else as_object(record.get("latest_version"))).get("openapi_schema")) or None

    def _finish(self, prediction: _Prediction, operation: Mapping[str, Any]) -> Done | Failed:
        result = {"output": prediction.output} if operation.get("pictures") else prediction.output
        done = finish(result, operation["recipe"], operation["id"], parse_time(prediction.completed_at))
        if isinstance(done, Done):
            return expect_kept(replace(done, outputs=tuple(self._open(output) for output in done.outputs)), operation)
        if prediction.data_removed is True:
            return Failed(UpstreamError(REMOVED, upstream=upstream_reason("data_removed", None, operation["id"])))
        return fail_empty(operation["id"])

    # -- webhooks

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """Return whether the account's secret signed the notice; it is fetched about once a day."""
        now = notice.received_at
        if not _is_recent(notice):
            return False
        known = now - self._secret_at < SECRET_SECONDS
        if known and _is_signed(notice, self._secret):
            return True
        if now - self._asked_at < (REFETCH_SECONDS if known else RETRY_SECONDS):
            if known:
                return False
            raise Unclear("the secret was asked for a moment ago")
        self._asked_at = now
        reply = yield self._call("GET", "/v1/webhooks/default/secret")
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        secret = base64.b64decode(reply.decode(_Secret).key.removeprefix("whsec_"), validate=True)
        if not secret:
            raise Unclear("a secret that is none")
        self._secret, self._secret_at = secret, now
        return _is_signed(notice, secret)

    # -- calls

    def _call(self, method: str, path: str, json: Any = None) -> Call:
        return Call(method, path, {"authorization": f"Bearer {self.options.api_key}"}, json, seconds=120)

    def probe(self) -> Call:
        """Return the call that reads the account."""
        return self._call("GET", "/v1/account")

    def _is_own(self, url: str | None) -> bool:
        """Return whether a URL is Replicate's own, so that the key may be sent there."""
        return url is not None and url.startswith(self._base)

    def _open(self, output: Output) -> Output:
        """Return the download of an output, with our key if it is on the API's own host."""
        call = output.download
        if isinstance(call, Call) and self._is_own(call.url):
            return replace(output, download=structs.replace(call, headers=self._call("GET", call.url).headers))
        return output


# -- requests to Replicate


def _place(model: str) -> tuple[str, str, str]:
    """Return the path of a model's orders, and the field and value that name it in predictions, if any do."""
    match [quote(part, safe="") for part in model.split("/")]:
        case ["deployments", owner, name]:
            return f"/v1/deployments/{owner}/{name}/predictions", "", ""
        case [owner, name] if ":" not in model:
            return f"/v1/models/{owner}/{name}/predictions", "model", model
        case _:
            return "/v1/predictions", "version", model.rpartition(":")[2]


def _slot(order: Order) -> str:
    """Return the name of the input that takes the caller's file."""
    return PICTURE if order.recipe is None else order.recipe.file or FILE


def _describe(order: Order) -> dict[str, Any]:
    """Return the input, with its files. Raise `Unfit` if the model cannot make it."""
    params = order.params
    if order.model_id == FILM.id:
        app = find_app(FILM_APPS, order.model, FILM.id)
        body = app.write(read_film(order, app.terms))[1]
        return body if "seed" in app.terms.ignored else {"seed": seed_of(order), **body}
    if is_picture(order):
        return pictures.describe(order)
    if order.recipe is None and "durationSeconds" in params:
        return {
            "prompt": params["prompt"],
            "aspect_ratio": params["aspectRatio"],
            "duration": params["durationSeconds"],
            "resolution": params["resolution"],
            "generate_audio": True,
            "seed": seed_of(order),
        }
    given = {name: value for name, value in params.items() if name != FILE or not isinstance(value, Mapping)}
    return given if order.file is None else {**given, _slot(order): DataUri(order.file)}


def _files_in(given: Mapping[str, Any]) -> list[StoredFile]:
    """Return the files of an input."""
    lists = [cast("list[Any]", value) if isinstance(value, list) else [value] for value in given.values()]
    return [each.file for values in lists for each in values if isinstance(each, DataUri)]


def _with_uploads(value: Any, uploads: Mapping[StoredFile, str]) -> Any:
    """Return a part of an input with the addresses of the files that were uploaded."""
    match value:
        case DataUri(file):
            return uploads.get(file, value)
        case list():
            return [_with_uploads(each, uploads) for each in cast("list[Any]", value)]
        case dict():
            fields = cast("dict[str, Any]", value)
            return {name: _with_uploads(each, uploads) for name, each in fields.items()}
        case _:
            return value


def _accept(order: Order, prediction_id: str) -> Accepted:
    if is_picture(order):
        asked = pictures.ask(order)
        kept = {"recipe": pictures.RECIPE, "pictures": True, "expected": asked.expected.kept}
        return Accepted(prediction_id, {"id": prediction_id, **kept}, asked.warnings)
    recipe = {"kind": "video"} if order.recipe is None else keep_recipe(order.recipe)
    kept = {"id": prediction_id, "recipe": recipe}
    if order.model_id == FILM.id:
        film = read_film(order, FILM_APPS[order.model].terms)
        return Accepted(prediction_id, {**kept, "expected": film.expected}, film.warnings)
    return Accepted(prediction_id, kept, video_warnings(order.params, "Replicate") if order.recipe is None else ())


def _matches(prediction: _Prediction, order: Order) -> bool:
    """Return whether model and input are certainly the order's: another caller's result is worse than none."""
    wanted, echo, (_, field, name) = _describe(order), as_object(prediction.input), _place(order.model)
    if not _is_named(prediction):
        return False
    if wanted.keys() != echo.keys() or (not field and "seed" not in echo):
        return False
    if field and str(getattr(prediction, field)).lower() != name.lower():
        return False
    is_marked = wanted.get("seed") == seed_of(order)
    return all(_equals(echo[each], value, is_marked=is_marked) for each, value in wanted.items())


def _equals(echo: Any, wanted: Any, *, is_marked: bool) -> bool:
    """Compare one input; a file by its digest. An uploaded file has none: there the seed must be ours alone."""
    if isinstance(wanted, DataUri):
        digest = _digest(echo)
        return is_marked if digest is None else digest == wanted.file.sha256
    if isinstance(wanted, list) and isinstance(echo, list):
        echoes, values = cast("list[Any]", echo), cast("list[Any]", wanted)
        pairs = zip(echoes, values, strict=False)
        return len(echoes) == len(values) and all(_equals(*pair, is_marked=is_marked) for pair in pairs)
    return echo == wanted


def _may_be(prediction: _Prediction, order: Order) -> bool:
    """Return whether it may still be the order: inputs are removed after an hour, and large files are uploaded."""
    wanted = {name: value for name, value in _describe(order).items() if not isinstance(value, DataUri)}
    return not contradicts(as_object(prediction.input), wanted)


def _is_named(prediction: _Prediction) -> bool:
    """Return whether it has an id that is safe in a path."""
    return isinstance(prediction.id, str) and ID.fullmatch(prediction.id) is not None


def _digest(uri: Any) -> str | None:
    """Return the SHA-256 of a file in a `data:` URI; None for an uploaded one."""
    head, _, data = str(uri).partition(";base64,")
    try:
        return hashlib.sha256(base64.b64decode(data, validate=True)).hexdigest() if head.startswith("data:") else None
    except ValueError:
        return None


# -- meaning of the replies


def _is_fine(reply: Reply) -> bool:
    return 200 <= reply.status < 300


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order; the delay may stand only in the message."""
    failure = reply.try_decode(dict[str, Any]) or {}
    if reply.status == 429 and reply.retry_after is None:
        delay = RESET.search(str(failure.get("detail")))
        return Refused(float(delay[1]) if delay else None)
    return classify_refusal(reply, upstream_reason(reply.status, failure.get("detail") or failure.get("title")))


def _fail(prediction: _Prediction, prediction_id: str) -> Failed:
    kind = ContentFiltered if UNSAFE.search(str(prediction.error)) else UpstreamError
    return Failed(kind(upstream=upstream_reason(prediction.status, prediction.error, prediction_id)))


def _progress(logs: Any) -> float | None:
    """Return the last percentage of a progress bar in the logs."""
    percents = PERCENT.findall(logs[-LOG_TAIL:]) if isinstance(logs, str) else []
    return min(1.0, int(percents[-1]) / 100) if percents else None


# -- signatures of notices


def _is_recent(notice: Notice) -> bool:
    """Return whether the notice was signed recently."""
    sent_at = notice.headers.get("webhook-timestamp", "")
    return re.fullmatch("[0-9]{1,12}", sent_at) is not None and abs(notice.received_at - int(sent_at)) <= MAX_SKEW


def _is_signed(notice: Notice, secret: bytes) -> bool:
    """Return whether one of its signatures was made with this secret."""
    headers = notice.headers
    message = f"{headers.get('webhook-id', '')}.{headers['webhook-timestamp']}.".encode() + notice.body
    wanted = b"v1," + base64.b64encode(hmac.digest(secret, message, "sha256"))
    signatures = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(wanted, each.encode()) for each in signatures)


VENDOR = Replicate
