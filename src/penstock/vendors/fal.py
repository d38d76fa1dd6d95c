"""`fal`: the models of fal's queue. A few are known here; the configuration may declare any other."""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, TypeAlias, cast
from urllib.parse import quote, urlsplit

import msgspec
from pydantic import Field

from penstock.catalog import image_to_model, text_to_video
from penstock.catalog.model import Expectation, GenerationModel, Recipe
from penstock.catalog.params import as_object
from penstock.catalog.schema_params import FILE, SchemaParams
from penstock.domain.job_errors import ContentFiltered, UpstreamError, UpstreamRejected, UpstreamUnavailable
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

VEO: Final = "fal-ai/veo3.1"
TRIPO: Final = "tripo3d/h3.1/image-to-3d"
VERSIONS: Final = {
    TRIPO: "v3.1-20260211",
    "tripo3d/p1/image-to-3d": "P1-20260311",
    "tripo3d/p2/image-to-3d": "P2-20260801",
}
"""Which release of Tripo each of its endpoints runs."""
TO_3D: Final = Recipe("3d", "image_url", preview="rendered_image")
TO_VIDEO: Final = Recipe("video", output="video")
MAX_INLINE: Final = 4 * 1024 * 1024
"""A larger picture is uploaded instead of being written into the order."""
ADDRESSES: Final = {"status_url": "/status", "response_url": "", "cancel_url": "/cancel"}
"""What fal tells of a request's addresses, and how each ends."""

POLICY: Final = "content_policy_violation"
ERRORS: Final = {POLICY: ContentFiltered, "bad_request": UpstreamRejected, "client_cancelled": UpstreamError}
"""What types of errors mean where the HTTP status would say otherwise, or is not told."""
DOUBTFUL: Final = {401, 403, 404, 408, 409, 425, 429}
"""Answers to a call for a result that need not be the model's: it is asked for again."""
UNFINISHED: Final = "still in progress"

MAX_SKEW, KEYS_SECONDS, ASK_SECONDS = 300.0, 86_400.0, 300.0
"""How old a notice may be, how old fal's keys, and how long they are not asked for again whatever notices come."""


class FalOptions(WebhookOptions):
    """`[vendors.NAME]` of type `fal`."""

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


# -- what fal says


class _Word(msgspec.Struct):
    """How a request stands, or what is wrong: a model's errors are listed in `detail`, the queue's own are a text."""

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
    """Everything is a request in a queue; its result is the model's own answer, whatever that holds."""

    options_type: ClassVar[type[VendorOptions]] = FalOptions
    declares = True
    models: Sequence[ServedModel] = [
        *(ServedModel(model, name=TRIPO) for model in (*image_to_model.MODELS, IMAGE_TO_3D)),
        *(ServedModel(model, name=VEO) for model in (*text_to_video.MODELS, TEXT_TO_VIDEO)),
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
        """Hand over the picture, then order."""
        model, body, recipe, warnings = _translate(order)
        if order.file is not None:
            source = yield from self._hand_over(DataUri(order.file))
            if isinstance(source, Refused | Failed):
                return source
            body[recipe.file or FILE] = source
        query = f"?fal_webhook={quote(order.webhook, safe='')}" if order.webhook else ""
        reply = yield self._call("POST", f"/{quote(model)}{query}", body)
        if not 200 <= reply.status < 300:
            return _judge(reply)
        told = reply.decode(dict[str, Any])
        request_id = told.get("request_id")
        if not isinstance(request_id, str) or not request_id:
            raise Unclear("an order without an id")
        urls = {name: told[name] for name in ADDRESSES if isinstance(told.get(name), str)}
        kept = {"id": request_id, "app": _app(model), "recipe": keep_recipe(recipe), **urls}
        return Accepted(request_id, kept, warnings)

    def _hand_over(self, picture: DataUri) -> Flow[DataUri | str | Refused | Failed]:
        """What to write into an order for a picture."""
        file = picture.file
        if file.bytes <= MAX_INLINE:
            return picture
        told = {"file_name": f"picture.{file.content_type.partition('/')[2]}", "content_type": file.content_type}
        url = f"{self._rest}/storage/upload/initiate?storage_type=gcs"
        reply = yield self._call("POST", url, told, prepares=True)
        if not 200 <= reply.status < 300:
            return _judge(reply)
        place, headers = reply.decode(_Upload), {"content-type": file.content_type}
        reply = yield Call("PUT", place.upload_url, headers, file=file, seconds=300, prepares=True)
        if not 200 <= reply.status < 300:
            raise Unclear(f"HTTP {reply.status} on upload")
        return place.file_url

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Ask how the request stands, and for its result once there is one."""
        reply = yield self._call("GET", self._address(operation, "status_url"))
        if reply.status in GONE_STATUSES:
            return fail_gone(reply, _explain(reply)[1], operation["id"])
        if reply.status not in (200, 202):
            raise Unclear(f"HTTP {reply.status}")
        told = reply.decode(_Word)
        if told.status != "COMPLETED":
            place = told.queue_position
            return Running(queue_position=place if type(place) is int and 0 <= place < 2**31 else None)
        if told.error_type:
            error = ERRORS.get(str(told.error_type), UpstreamError)
            return Failed(
                error(stage="generating", upstream=upstream_reason(told.error_type, told.error, operation["id"]))
            )
        reply = yield self._call("GET", self._address(operation, "response_url"))
        try:
            return _settle(reply, operation)
        except Unclear:
            if not told.error:  # else it has failed for certain
                if reply.status in GONE_STATUSES:
                    return fail_gone(reply, _explain(reply)[1], operation["id"])
                raise
            return Failed(UpstreamError(upstream=upstream_reason(None, told.error, operation["id"])))

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """What waits leaves the queue, what runs is told to stop; what is done stays."""
        reply = yield self._call("PUT", self._address(operation, "cancel_url"))
        if reply.status >= 500 or reply.status in (408, 425, 429):
            raise Unclear(f"HTTP {reply.status}")
        return 200 <= reply.status < 300

    def _address(self, operation: Mapping[str, Any], name: str) -> str:
        """Where fal said that this is; if that is not its own host, our key goes to the usual place instead."""
        told = operation.get(name, "")
        if told.startswith(self._origin):
            return told
        return f"/{quote(operation['app'])}/requests/{quote(operation['id'], safe='')}{ADDRESSES[name]}"

    def _call(self, method: str, url: str, json: Any = None, *, prepares: bool = False) -> Call:
        return Call(method, url, {"authorization": f"Key {self.options.api_key}"}, json, prepares=prepares)

    # -- notices, and what models take

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """Whether one of fal's keys has signed it, and lately; without a key nobody can tell."""
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
        """The model's OpenAPI document."""
        reply = yield Call("GET", f"{self._schemas}/api/openapi/queue/openapi.json?endpoint_id={quote(model, safe='')}")
        if reply.status not in (200, 404):
            raise Unclear(f"HTTP {reply.status}")
        return reply.decode(dict[str, Any]) if reply.status == 200 else None


# -- an order in fal's words


_Asked: TypeAlias = tuple[str, dict[str, Any], Recipe, tuple[str, ...]]


def _translate(order: Order) -> _Asked:
    """The model, the body without its picture, how to read the result, and what is lost."""
    model, params, recipe = order.model.strip("/"), order.params, order.recipe
    if recipe is None and "model_version" in params:
        return _ask_tripo(model, params)
    if recipe is None and "durationSeconds" in params:
        return _ask_veo(model, params)
    recipe = recipe or (TO_3D if FILE in params else TO_VIDEO)
    return model, {name: value for name, value in params.items() if name != FILE or not recipe.file}, recipe, ()


def _ask_tripo(model: str, params: Mapping[str, Any]) -> _Asked:
    """By the default route the version chooses the endpoint; any other route runs what it runs."""
    wanted = params["model_version"]
    if model == TRIPO:
        model = next((name for name, version in VERSIONS.items() if version == wanted), TRIPO)
    runs = VERSIONS.get(model, model)
    names = ("model_seed", "face_limit", "texture", "pbr")
    body = {name: params[name] for name in names if params.get(name) is not None}
    lost = f"`model_version` {wanted} is not supported by fal, which runs {runs}."
    return model, body, TO_3D, (() if runs == wanted else (lost,))


def _ask_veo(model: str, params: Mapping[str, Any]) -> _Asked:
    body = {
        "prompt": params["prompt"],
        "aspect_ratio": params["aspectRatio"],
        "duration": f"{params['durationSeconds']}s",
        "resolution": params["resolution"],
        "generate_audio": True,
    }
    return model, body, TO_VIDEO, video_warnings(params, "fal")


def _app(model: str) -> str:
    """The owner and the app in a model's name, whose requests are found under these."""
    parts = model.split("/")
    return "/".join(parts[: 3 if parts[0] in ("workflows", "comfy") else 2])


# -- errors


def _explain(reply: Reply) -> tuple[str, str, bool]:
    """The type of an error, what it says, and whether a model says so; of its points the content policy goes first."""
    word = reply.try_decode(_Word) or _Word()
    points = [as_object(point) for point in _items(word.detail)]
    kinds = [*(point.get("type") for point in points), word.error_type, reply.headers.get("x-fal-error-type")]
    kind = POLICY if POLICY in kinds else str(next(filter(None, kinds), ""))
    told = [f"{'.'.join(map(str, _items(point.get('loc'))))}: {point.get('msg')}" for point in points]
    return kind, word.detail if isinstance(word.detail, str) else "; ".join(told), bool(points)


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _judge(reply: Reply) -> Refused | Failed:
    """Why an order was not taken."""
    kind, message, _ = _explain(reply)
    said = upstream_reason(kind or reply.status, message, reply.headers.get("x-fal-request-id"))
    if kind == POLICY and 400 <= reply.status < 500:
        return Failed(ContentFiltered(stage="dispatching", upstream=said))
    if reply.status == 403 and "balance" in message.lower():
        return Failed(UpstreamUnavailable(NO_CREDIT, upstream=said))
    return classify_refusal(reply, said)


def _settle(reply: Reply, operation: Mapping[str, Any]) -> Done | Failed:
    """The end of a request by the answer to the call for its result; not every failure there is the request's."""
    if reply.status == 200:
        return finish(reply.json(), operation["recipe"], operation["id"])
    kind, message, by_model = _explain(reply)
    refused = 400 <= reply.status < 500
    told = kind or (reply.status == 500 and message) or (refused and reply.try_decode(_Word))
    if not told or UNFINISHED in message or (reply.status in DOUBTFUL and not by_model):
        raise Unclear(f"HTTP {reply.status}")
    retryable = reply.headers.get("x-fal-retryable", "").lower() == "true"
    error = ERRORS.get(kind, UpstreamRejected if refused and not retryable else UpstreamError)
    return Failed(error(stage="generating", upstream=upstream_reason(kind or reply.status, message, operation["id"])))


# -- signatures


def _read_signature(notice: Notice) -> bytes | None:
    """The signature of a notice that is not too old to be believed."""
    try:
        signed_at = int(notice.headers["x-fal-webhook-timestamp"])
        signature = bytes.fromhex(notice.headers["x-fal-webhook-signature"])
        return signature if abs(notice.received_at - signed_at) <= MAX_SKEW else None
    except (KeyError, ValueError, OverflowError):
        return None


def _is_signed(notice: Notice, signature: bytes, keys: Sequence[bytes]) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  only who is called back needs it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    told = [notice.headers.get(f"x-fal-webhook-{name}", "") for name in ("request-id", "user-id", "timestamp")]
    message = "\n".join([*told, hashlib.sha256(notice.body).hexdigest()]).encode()
    for key in keys:
        with suppress(InvalidSignature, ValueError):
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
            return True
    return False


def _read_keys(reply: Reply) -> list[bytes]:
    """The Ed25519 keys of a key set."""
    found: list[bytes] = []
    for key in reply.decode(_Keys).keys:
        if key.get("crv") == "Ed25519":
            with suppress(ValueError):
                found.append(base64.urlsafe_b64decode(f"{key.get('x')}==="))
    if not found:
        raise Unclear("a key set without a key")
    return found


VENDOR = Fal
