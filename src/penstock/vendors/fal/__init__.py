"""`fal`: the models of fal's queue. A few are known here; the configuration may declare any other."""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Final, cast
from urllib.parse import quote, urlsplit

import msgspec
from pydantic import Field

from penstock.catalog import edit_image, image_to_model, text_to_image, text_to_video
from penstock.catalog.edit_image import make_edit_image
from penstock.catalog.model import Expectation, GenerationModel, Recipe
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import FILE, SchemaParams
from penstock.catalog.text_to_image import make_text_to_image
from penstock.domain.files import ending_of
from penstock.domain.job_errors import ContentFiltered, UpstreamError, UpstreamRejected, UpstreamUnavailable
from penstock.vendor_api.film_apps import FilmApp, find_app
from penstock.vendor_api.films import FRAMES, MEGABYTE, FilmTerms, Unfit, expect_kept, film_model, read_film
from penstock.vendor_api.generation import (
    Accepted,
    Call,
    DataUri,
    Done,
    Failed,
    Flow,
    GenerationDefaults,
    Notice,
    Order,
    Refused,
    Reply,
    Running,
    ServedModel,
    Unclear,
    VendorFolders,
    VendorOptions,
    WebhookOptions,
)
from penstock.vendor_api.pictures import ParamTerm, PictureTerms, PixelTerms, RatioTerms, ask_picture, is_picture
from penstock.vendor_api.replies import (
    GONE_STATUSES,
    NO_CREDIT,
    classify_refusal,
    fail_gone,
    finish,
    keep_recipe,
    upstream_reason,
    video_warnings,
)
from penstock.vendors.fal import solids
from penstock.vendors.fal.solids import FalOrder

VEO: Final = "fal-ai/veo3.1"
TRIPO: Final = "tripo3d/h3.1/image-to-3d"
VERSIONS: Final = {
    TRIPO: "v3.1-20260211",
    "tripo3d/p1/image-to-3d": "P1-20260311",
    "tripo3d/p2/image-to-3d": "P2-20260801",
}
"""Releases of Tripo by endpoint."""
TO_3D: Final = Recipe("3d", "image_url", preview="rendered_image")
TO_VIDEO: Final = Recipe("video", output="video")
MAX_INLINE: Final = 4 * 1024 * 1024
"""A larger picture is uploaded instead of sent inline."""
ADDRESSES: Final = {"status_url": "/status", "response_url": "", "cancel_url": "/cancel"}
"""Fields with a request's URLs, and the usual ending of each."""

POLICY: Final = "content_policy_violation"
ERRORS: Final = {POLICY: ContentFiltered, "bad_request": UpstreamRejected, "client_cancelled": UpstreamError}
"""Error types that override the HTTP status, or stand where there is none."""
DOUBTFUL: Final = {401, 403, 404, 408, 409, 425, 429}
"""Statuses of a call for a result that may not come from the model, so the call is retried."""
UNFINISHED: Final = "still in progress"

MAX_SKEW, KEYS_SECONDS, ASK_SECONDS = 300.0, 86_400.0, 300.0
"""Seconds: the maximum age of a notice, the lifetime of cached keys, the shortest time between two fetches of keys."""


class FalOptions(WebhookOptions):
    """Settings of `[vendors.NAME]` with type `fal`."""

    base_url: str = "https://queue.fal.run"
    rest_url: str = Field(
        default="https://rest.fal.ai", description="where it takes files and shows its keys; or `base_url`, if set"
    )
    schema_url: str = Field(default="https://fal.ai", description="where it describes models; or `base_url`, if set")
    poll_seconds: float = Field(default=1.0, gt=0)


# -- models by their own names


def _expect_video(params: Mapping[str, Any]) -> Expectation:
    seconds = int(params["duration"].removesuffix("s"))
    return text_to_video.expect({**params, "aspectRatio": params["aspect_ratio"], "durationSeconds": seconds})


TRIPO_PARAMS: Final = {
    "image_url": {"type": "string"},
    "texture": {"type": "boolean", "description": "whether to texture the result"},
    "pbr": {"type": "boolean", "description": "whether to make PBR materials"},
    "face_limit": {"type": "integer", "minimum": 1, "description": "most faces of the result"},
}
VEO_PARAMS: Final = {
    "prompt": {"type": "string", "minLength": 1, "description": "what the video shows"},
    "aspect_ratio": {"enum": ["16:9", "9:16"], "default": "16:9", "description": "width to height"},
    "duration": {"enum": ["4s", "6s", "8s"], "default": "8s", "description": "length"},
    "resolution": {"enum": ["720p", "1080p"], "default": "720p", "description": "lines of the short side"},
    "generate_audio": {"type": "boolean", "default": True, "description": "whether it has sound"},
    "negative_prompt": {"type": "string", "description": "what the video does not show"},
    "seed": {"type": "integer", "minimum": 0, "maximum": 2147483647, "description": "random when absent, and echoed"},
}
IMAGE_TO_3D: Final = GenerationModel(
    id="fal_tripo_image_to_3d",
    kind="3d",
    title="Tripo H3.1 at fal: image to 3D model",
    params=SchemaParams({"properties": TRIPO_PARAMS, "required": ["image_url"]}, file="image_url"),
    expect=image_to_model.expect,
    example={"file": {"url": "https://example.com/cat.png"}, "texture": True, "face_limit": 10000},
)
TEXT_TO_VIDEO: Final = GenerationModel(
    id="fal_veo31_text_to_video",
    kind="video",
    title="Veo 3.1 at fal: text to video",
    params=SchemaParams({"properties": VEO_PARAMS, "required": ["prompt"]}),
    expect=_expect_video,
    example={"prompt": "A paper boat drifts down a rainy street", "duration": "8s", "resolution": "720p"},
    seed_param="seed",
)


# -- films in the neutral params


VEO_APP: Final = FilmApp(
    terms=FilmTerms(
        title="Veo 3.1 at fal",
        seconds=(4, 6, 8),
        usual=8,
        resolutions=("720p", "1080p", "4k"),
        frames=FRAMES,
        references=3,
        modes=("extend",),
        fixed={"input_references": 8},
        needs_prompt=True,
        picture_bytes=8 * MEGABYTE,
    ),
    endpoints={
        "frame": "/image-to-video",
        "frames": "/first-last-frame-to-video",
        "references": "/reference-to-video",
        "film": "/extend-video",
    },
    frames=("first_frame_url", "last_frame_url"),
    unit="s",
)
BOTH_PATHS: Final = {"text": "/text-to-video", "frame": "/image-to-video", "frames": "/image-to-video"}
KLING_APP: Final = FilmApp(
    terms=FilmTerms(
        title="Kling 2.6 at fal",
        seconds=(5, 10),
        usual=5,
        ratios=("16:9", "9:16", "1:1"),
        resolutions=(),
        ignored=frozenset({"seed"}),
        frames=FRAMES,
        frame_rules=True,
        needs_prompt=True,
        picture_bytes=10 * MEGABYTE,
    ),
    endpoints=BOTH_PATHS,
    frame="start_image_url",
    frames=("start_image_url", "end_image_url"),
)
SEEDANCE_APP: Final = FilmApp(
    terms=FilmTerms(
        title="Seedance 2.0 at fal",
        seconds=range(4, 13),
        usual=5,
        ratios=("16:9", "9:16", "1:1", "4:3", "3:4", "21:9"),
        resolutions=("480p", "720p", "1080p"),
        ignored=frozenset({"negative_prompt"}),
        frames=FRAMES,
        frame_rules=True,
        needs_prompt=True,
        picture_bytes=10 * MEGABYTE,
    ),
    endpoints=BOTH_PATHS,
)
FILM_APPS: Final = {
    VEO: VEO_APP,
    f"{VEO}/fast": VEO_APP,
    "fal-ai/kling-video/v2.6/pro": KLING_APP,
    "bytedance/seedance-2.0": SEEDANCE_APP,
}
"""Apps to which a route of `fal_video` may lead. Any other is declared in the settings with its own params."""
FILM: Final = film_model("fal_video", "fal: video from a prompt, pictures or a video", seeded=False)


# -- pictures

FLUX: Final = "fal-ai/flux/dev"
BANANA: Final = "fal-ai/nano-banana-2"
GPT: Final = "openai/gpt-image-2"
TO_IMAGE: Final = Recipe("image", output="images")
COMMON: Final = {"prompt": ParamTerm("prompt"), "n": ParamTerm("num_images"), "seed": ParamTerm("seed")}
PIXELS: Final = PixelTerms(lambda width, height: {"image_size": {"width": width, "height": height}})
RATIOS: Final = ("21:9", "16:9", "3:2", "4:3", "5:4", "1:1", "4:5", "3:4", "2:3", "9:16")
FLUX_TERMS: Final = PictureTerms(
    vendor="fal",
    terms={**COMMON, "output_format": ParamTerm("output_format", {"png": "png", "jpeg": "jpeg"})},
    size=PIXELS,
    most=4,
)
BANANA_TERMS: Final = PictureTerms(
    vendor="fal",
    terms={**COMMON, "output_format": ParamTerm("output_format")},
    size=RatioTerms(
        "aspect_ratio", RATIOS, ParamTerm("resolution", {"512": "0.5K", "1K": "1K", "2K": "2K", "4K": "4K"})
    ),
    most=4,
)
GPT_TERMS: Final = PictureTerms(
    vendor="fal",
    terms={
        name: COMMON.get(name, ParamTerm(name)) for name in ("prompt", "n", "output_format", "quality", "background")
    },
    size=replace(PIXELS, step=16, sides=(16, 3840), pixels=(655_360, 8_294_400), most_ratio=3.0),
    most=4,
)
PICTURE_APPS: Final = {
    **dict.fromkeys(("fal-ai/flux/schnell", FLUX, "fal-ai/flux-2"), FLUX_TERMS),
    "fal-ai/flux-2/edit": replace(FLUX_TERMS, images="image_urls", most_images=4),
    **dict.fromkeys((BANANA, "fal-ai/nano-banana-pro"), BANANA_TERMS),
    **dict.fromkeys(
        (f"{BANANA}/edit", "fal-ai/nano-banana-pro/edit"), replace(BANANA_TERMS, images="image_urls", most_images=14)
    ),
    GPT: GPT_TERMS,
    f"{GPT}/edit": replace(GPT_TERMS, images="image_urls", most_images=16),
}
"""Apps to which a route of the catalogue's picture models may lead. Any other is declared in the settings."""
PICTURES: Final = (
    *(ServedModel(model, name=FLUX) for model in text_to_image.MODELS),
    *(ServedModel(model, name=f"{BANANA}/edit") for model in edit_image.MODELS),
    ServedModel(make_text_to_image("fal_flux_image", "FLUX at fal: text to picture"), name=FLUX),
    ServedModel(make_text_to_image("fal_nano_banana_image", "Nano Banana 2 at fal: text to picture"), name=BANANA),
    ServedModel(make_edit_image("fal_nano_banana_edit", "Nano Banana 2 at fal: edit a picture"), name=f"{BANANA}/edit"),
    ServedModel(make_text_to_image("fal_gpt_image", "GPT Image at fal: text to picture"), name=GPT),
    ServedModel(make_edit_image("fal_gpt_image_edit", "GPT Image at fal: edit a picture"), name=f"{GPT}/edit"),
)


# -- replies of fal


class _Status(msgspec.Struct):
    """The state of a request, or an error. A model's errors are a list in `detail`, the queue's own are a text."""

    status: Any = None
    queue_position: Any = None
    error: Any = None
    error_type: Any = None
    detail: Any = None


class _Upload(msgspec.Struct):
    upload_url: str
    file_url: str


class _Keys(msgspec.Struct):
    keys: list[dict[str, Any]]


class Fal(GenerationDefaults):
    """Requests in fal's queue; the result is the model's own reply."""

    options_type: ClassVar[type[VendorOptions]] = FalOptions
    declares = True
    models: Sequence[ServedModel] = [
        *(ServedModel(model, name=TRIPO) for model in (*image_to_model.MODELS, IMAGE_TO_3D)),
        *(ServedModel(model, name=VEO) for model in (*text_to_video.MODELS, TEXT_TO_VIDEO, FILM)),
        *PICTURES,
        *solids.MODELS,
    ]

    def __init__(self, options: FalOptions, folders: VendorFolders) -> None:
        del folders
        self.options = options
        self._origin = "{0.scheme}://{0.netloc}/".format(urlsplit(options.base_url))
        given, base = options.model_fields_set, options.base_url
        self._rest = (base if "base_url" in given and "rest_url" not in given else options.rest_url).rstrip("/")
        self._schemas = (base if "base_url" in given and "schema_url" not in given else options.schema_url).rstrip("/")
        self.addresses = (self._rest, self._schemas)
        self._keys: list[bytes] = []
        self._keys_at = self._asked_at = -math.inf

    # -- requests

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Upload a large picture, then place the order."""
        try:
            asked = _translate(order)
        except Unfit as unfit:
            return unfit.failure
        model, recipe = asked.model, asked.recipe
        given = asked.body if order.file is None else {**asked.body, recipe.file or FILE: DataUri(order.file)}
        body = yield from self._fill(given)
        if not isinstance(body, dict):
            return body
        query = f"?fal_webhook={quote(order.webhook, safe='')}" if order.webhook else ""
        reply = yield self._call("POST", f"/{quote(model)}{query}", body)
        if not 200 <= reply.status < 300:
            return _classify(reply)
        record = reply.decode(dict[str, Any])
        request_id = record.get("request_id")
        if not isinstance(request_id, str) or not request_id:
            raise Unclear("a reply without an id")
        urls = {name: record[name] for name in ADDRESSES if isinstance(record.get(name), str)}
        kept = {"id": request_id, "app": _app(model), "recipe": keep_recipe(recipe), **urls, **asked.kept}
        return Accepted(request_id, kept, asked.warnings)

    def _fill(self, given: Mapping[str, Any]) -> Flow[dict[str, Any] | Refused | Failed]:
        """Upload the large files of an order; return its body with what stands for each."""
        body: dict[str, Any] = {}
        for name, value in given.items():
            files = cast("list[Any]", value) if isinstance(value, list) else [value]
            filled: list[Any] = []
            for each in files:
                source = (yield from self._hand_over(each)) if isinstance(each, DataUri) else each
                if isinstance(source, Refused | Failed):
                    return source
                filled.append(source)
            body[name] = filled if isinstance(value, list) else filled[0]
        return body

    def _hand_over(self, given: DataUri) -> Flow[DataUri | str | Refused | Failed]:
        """Upload a large file; return what stands for it in the order."""
        file = given.file
        if file.bytes <= MAX_INLINE:
            return given
        noun = {"image": "picture", "3d": "model"}.get(file.kind, "video")
        upload = {"file_name": f"{noun}.{ending_of(file.content_type)}", "content_type": file.content_type}
        url = f"{self._rest}/storage/upload/initiate?storage_type=gcs"
        reply = yield self._call("POST", url, upload, prepares=True)
        if not 200 <= reply.status < 300:
            return _classify(reply)
        place, headers = reply.decode(_Upload), {"content-type": file.content_type}
        reply = yield Call("PUT", place.upload_url, headers, file=file, seconds=300, prepares=True)
        if not 200 <= reply.status < 300:
            raise Unclear(f"HTTP {reply.status} on upload")
        return place.file_url

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the request's state, with its result once there is one."""
        reply = yield self._call("GET", self._address(operation, "status_url"))
        if reply.status in GONE_STATUSES:
            return fail_gone(reply, _explain(reply)[1], operation["id"])
        if reply.status not in (200, 202):
            raise Unclear(f"HTTP {reply.status}")
        state = reply.decode(_Status)
        if state.status != "COMPLETED":
            place = state.queue_position
            return Running(queue_position=place if type(place) is int and 0 <= place < 2**31 else None)
        if state.error_type:
            error = ERRORS.get(str(state.error_type), UpstreamError)
            return Failed(
                error(stage="generating", upstream=upstream_reason(state.error_type, state.error, operation["id"]))
            )
        reply = yield self._call("GET", self._address(operation, "response_url"))
        try:
            return expect_kept(_settle(reply, operation), operation)
        except Unclear:
            if not state.error:  # otherwise it certainly failed
                if reply.status in GONE_STATUSES:
                    return fail_gone(reply, _explain(reply)[1], operation["id"])
                raise
            return Failed(UpstreamError(upstream=upstream_reason(None, state.error, operation["id"])))

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Remove a waiting request from the queue, or stop a running one; return False for a finished one."""
        reply = yield self._call("PUT", self._address(operation, "cancel_url"))
        if reply.status >= 500 or reply.status in (408, 425, 429):
            raise Unclear(f"HTTP {reply.status}")
        return 200 <= reply.status < 300

    def _address(self, operation: Mapping[str, Any], name: str) -> str:
        """Return the URL that fal named, or the usual one if that is on another host, as our key goes there."""
        url = operation.get(name, "")
        if url.startswith(self._origin):
            return url
        return f"/{quote(operation['app'])}/requests/{quote(operation['id'], safe='')}{ADDRESSES[name]}"

    def _call(self, method: str, url: str, json: Any = None, *, prepares: bool = False) -> Call:
        return Call(method, url, {"authorization": f"Key {self.options.api_key}"}, json, prepares=prepares)

    # -- notices and schemas

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """Return whether one of fal's keys signed the notice recently; raise `Unclear` if no key is known."""
        signature = _read_signature(notice)
        if signature is None:
            return False
        now = notice.received_at
        keys = self._keys if 0 <= now - self._keys_at <= KEYS_SECONDS else []
        if _is_signed(notice, signature, keys):
            return True
        if 0 <= now - self._asked_at < ASK_SECONDS:
            if not keys:
                raise Unclear("fal's keys are not known")
            return False
        self._asked_at = now
        reply = yield Call("GET", f"{self._rest}/.well-known/jwks.json", seconds=10)
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        self._keys, self._keys_at = _read_keys(reply), now
        return _is_signed(notice, signature, self._keys)

    def describe(self, model: str) -> Flow[Mapping[str, Any] | None]:
        """Return the model's OpenAPI document."""
        reply = yield Call("GET", f"{self._schemas}/api/openapi/queue/openapi.json?endpoint_id={quote(model, safe='')}")
        if reply.status not in (200, 404):
            raise Unclear(f"HTTP {reply.status}")
        return reply.decode(dict[str, Any]) if reply.status == 200 else None

    def most_results(self, model: str) -> int | None:
        """Return the pictures of one request, where the fields of the app are known."""
        terms = PICTURE_APPS.get(model)
        return terms and terms.most


# -- requests to fal


def _translate(order: Order) -> FalOrder:
    """Return the order in fal's terms, without `order.file`. Raise `Unfit` if the app cannot make it."""
    model, params, recipe = order.model.strip("/"), order.params, order.recipe
    if order.model_id == FILM.id:
        return _ask_film(model, order)
    if is_picture(order):
        return _ask_pictures(model, order)
    if operation := solids.operation_asked(order):
        return solids.describe(order, operation)
    if recipe is None and "model_version" in params:
        return _ask_tripo(model, params)
    if recipe is None and "durationSeconds" in params:
        return _ask_veo(model, params)
    recipe = recipe or (TO_3D if FILE in params else TO_VIDEO)
    return FalOrder(model, {name: value for name, value in params.items() if name != FILE or not recipe.file}, recipe)


def _ask_pictures(model: str, order: Order) -> FalOrder:
    """Build an order for pictures; with references it goes to the app's endpoint of edits, if it has one."""
    if order.given("references") and f"{model}/edit" in PICTURE_APPS:
        model = f"{model}/edit"
    terms = PICTURE_APPS.get(model)
    if terms is None:
        advice = "Declare it as a model of its own, or name one of"
        problem = f"`{order.model_id}` does not know the fields of `{model}`. {advice} {', '.join(PICTURE_APPS)}."
        raise Unfit("model", problem)
    asked = ask_picture(order, terms)
    body = {**asked.body, **asked.files(terms)}
    return FalOrder(model, body, TO_IMAGE, asked.warnings, {"expected": asked.expected.kept, "pictures": True})


def _ask_tripo(model: str, params: Mapping[str, Any]) -> FalOrder:
    """Build a Tripo order; on the default route the version selects the endpoint."""
    wanted = params["model_version"]
    if model == TRIPO:
        model = next((name for name, version in VERSIONS.items() if version == wanted), TRIPO)
    runs = VERSIONS.get(model, model)
    names = ("model_seed", "face_limit", "texture", "pbr")
    body = {name: params[name] for name in names if params.get(name) is not None}
    lost = f"`model_version` {wanted} is not supported by fal, which runs {runs}."
    return FalOrder(model, body, TO_3D, () if runs == wanted else (lost,))


def _ask_veo(model: str, params: Mapping[str, Any]) -> FalOrder:
    body = {
        "prompt": params["prompt"],
        "aspect_ratio": params["aspectRatio"],
        "duration": f"{params['durationSeconds']}s",
        "resolution": params["resolution"],
        "generate_audio": True,
    }
    return FalOrder(model, body, TO_VIDEO, video_warnings(params, "fal"))


def _ask_film(model: str, order: Order) -> FalOrder:
    """Build an order in the neutral params: each kind of input has an endpoint of its own."""
    app = find_app(FILM_APPS, model, FILM.id)
    film = read_film(order, app.terms)
    endpoint, body = app.write(film)
    return FalOrder(f"{model}{endpoint}", body, TO_VIDEO, film.warnings, {"expected": film.expected})


def _app(model: str) -> str:
    """Return the owner and app of a model's name, which are the path of its requests."""
    parts = model.split("/")
    return "/".join(parts[: 3 if parts[0] in ("workflows", "comfy") else 2])


# -- errors


def _explain(reply: Reply) -> tuple[str, str, bool]:
    """Return the type of an error, its text, and whether it comes from a model; the content policy goes first."""
    body = reply.try_decode(_Status) or _Status()
    points = [as_object(point) for point in _items(body.detail)]
    kinds = [*(point.get("type") for point in points), body.error_type, reply.headers.get("x-fal-error-type")]
    kind = POLICY if POLICY in kinds else str(next(filter(None, kinds), ""))
    texts = [f"{'.'.join(map(str, _items(point.get('loc'))))}: {point.get('msg')}" for point in points]
    return kind, body.detail if isinstance(body.detail, str) else "; ".join(texts), bool(points)


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order."""
    kind, message, _ = _explain(reply)
    reason = upstream_reason(kind or reply.status, message, reply.headers.get("x-fal-request-id"))
    if kind == POLICY and 400 <= reply.status < 500:
        return Failed(ContentFiltered(stage="dispatching", upstream=reason))
    if reply.status == 403 and "balance" in message.lower():
        return Failed(UpstreamUnavailable(NO_CREDIT, upstream=reason))
    return classify_refusal(reply, reason)


def _settle(reply: Reply, operation: Mapping[str, Any]) -> Done | Failed:
    """Return the end of a request; raise `Unclear` if the failure may not be the request's own."""
    if reply.status == 200 and operation.get("pictures"):
        return _read_pictures(as_object(reply.json()), operation)
    if reply.status == 200:
        return finish(reply.json(), operation["recipe"], operation["id"])
    kind, message, by_model = _explain(reply)
    refused = 400 <= reply.status < 500
    evidence = kind or (reply.status == 500 and message) or (refused and reply.try_decode(_Status))
    if not evidence or UNFINISHED in message or (reply.status in DOUBTFUL and not by_model):
        raise Unclear(f"HTTP {reply.status}")
    retryable = reply.headers.get("x-fal-retryable", "").lower() == "true"
    error = ERRORS.get(kind, UpstreamRejected if refused and not retryable else UpstreamError)
    return Failed(error(stage="generating", upstream=upstream_reason(kind or reply.status, message, operation["id"])))


def _read_pictures(result: Mapping[str, Any], operation: Mapping[str, Any]) -> Done | Failed:
    """Return the pictures of a result without the black ones that the safety checker put in the place of others."""
    pictures = _items(result.get("images")) or [result.get("image")]
    unsafe = _items(result.get("has_nsfw_concepts"))
    shown = [picture for number, picture in enumerate(pictures) if unsafe[number : number + 1] != [True]]
    if pictures and not shown:
        reason = upstream_reason("has_nsfw_concepts", "the safety checker held every picture back", operation["id"])
        return Failed(ContentFiltered(stage="generating", upstream=reason))
    done = finish({"images": shown}, operation["recipe"], operation["id"])
    if isinstance(done, Failed):
        return done
    held = len(pictures) - len(shown)
    warnings = (f"fal's safety checker held {held} of {len(pictures)} pictures back.",) if held else ()
    seed = result.get("seed")
    return replace(done, warnings=warnings, seed=seed if type(seed) is int and 0 <= seed < 2**63 else None)


# -- signatures


def _read_signature(notice: Notice) -> bytes | None:
    """Return the signature of a notice; None if it has none or is too old."""
    try:
        signed_at = int(notice.headers["x-fal-webhook-timestamp"])
        signature = bytes.fromhex(notice.headers["x-fal-webhook-signature"])
        return signature if abs(notice.received_at - signed_at) <= MAX_SKEW else None
    except (KeyError, ValueError, OverflowError):
        return None


def _is_signed(notice: Notice, signature: bytes, keys: Sequence[bytes]) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  only who is called back needs it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    values = [notice.headers.get(f"x-fal-webhook-{name}", "") for name in ("request-id", "user-id", "timestamp")]
    message = "\n".join([*values, hashlib.sha256(notice.body).hexdigest()]).encode()
    for key in keys:
        with suppress(InvalidSignature, ValueError):
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
            return True
    return False


def _read_keys(reply: Reply) -> list[bytes]:
    """Return the Ed25519 keys of a key set."""
    found: list[bytes] = []
    for key in reply.decode(_Keys).keys:
        if key.get("crv") == "Ed25519":
            with suppress(ValueError):
                found.append(base64.urlsafe_b64decode(f"{key.get('x')}==="))
    if not found:
        raise Unclear("a key set without a key")
    return found


VENDOR = Fal
