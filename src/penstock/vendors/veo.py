"""`veo`: videos by Google's Veo 3.1 on Vertex AI; they come with the reply, or lie in a bucket of the operator's."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import quote, urlencode

import msgspec
from pydantic import ConfigDict, Field, model_validator

from penstock.catalog import text_to_video
from penstock.catalog.model import GenerationModel
from penstock.catalog.params import Number, as_object
from penstock.catalog.schema_params import SchemaParams
from penstock.catalog.video import VideoParams
from penstock.clocks import Clocks
from penstock.domain.files import StoredFile
from penstock.domain.job_errors import ContentFiltered, JobError, UpstreamAuth, UpstreamError, UpstreamRejected
from penstock.domain.prices import Price
from penstock.errors import Detail
from penstock.vendor_api.films import FRAMES, MEGABYTE, FilmTerms, Unfit, expect_kept, film_model, read_film
from penstock.vendor_api.generation import (
    Absent,
    Accepted,
    Base64,
    Call,
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
from penstock.vendor_api.replies import GONE, GONE_STATUSES, classify_refusal, fail_empty, fail_gone, upstream_reason

LOCATION: Final = "us-central1"
HOST: Final = "aiplatform.googleapis.com"
STORAGE: Final = "https://storage.googleapis.com"
TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # noqa: S105  an address
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
HOUR: Final = 3600
SKEW_SECONDS: Final = 30  # how far our clock may be ahead of Google's
SPARE_SECONDS: Final = 300  # a token is replaced so long before it ends

STANDARD, FAST, LITE = "veo-3.1-generate-001", "veo-3.1-fast-generate-001", "veo-3.1-lite-generate-001"
PRICE: Final = Price.model_validate({"per_second": "0.40", "per_second_if": {"resolution=4k": "0.20"}})
FAST_PRICE: Final = Price.model_validate({"per_second": "0.10"})

REJECTED: Final = dict.fromkeys((3, 5, 9, 11, 12), UpstreamRejected)
ERRORS: Final[Mapping[int, type[JobError]]] = {**REJECTED, 7: UpstreamAuth, 16: UpstreamAuth}
"""Errors by the code of a failed operation; all other codes are temporary failures at Google."""
SUPPORT: Final = re.compile(r"support codes?:\s*([0-9]{4,}(?:\s*,\s*[0-9]{4,})*)", re.IGNORECASE)

# -- its own models

FIELDS: Final[Mapping[str, Any]] = {
    "prompt": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "what the video shows"},
    "negativePrompt": {"type": "string", "maxLength": 4000, "description": "what it must not show"},
    "durationSeconds": {"enum": [4, 6, 8], "default": 8, "description": "length in seconds"},
    "aspectRatio": {"enum": ["16:9", "9:16"], "default": "16:9", "description": "width to height"},
    "resolution": {"enum": ["720p", "1080p"], "default": "720p", "description": "lines of the short side"},
    "compressionQuality": {"enum": ["optimized", "lossless"], "default": "optimized"},
    "personGeneration": {"enum": ["dont_allow", "allow_adult", "allow_all"], "default": "allow_adult"},
    "generateAudio": {"type": "boolean", "default": True, "description": "whether it has a sound track"},
    "enhancePrompt": {"type": "boolean", "description": "whether the prompt is rewritten first"},
    "seed": {"type": "integer", "minimum": 0, "maximum": 4294967295},
}


def _native(model_id: str, title: str) -> GenerationModel:
    params = SchemaParams({"properties": FIELDS, "required": ["prompt"]})
    return replace(text_to_video.MODELS[0], id=model_id, title=title, params=params, seed_param="seed")


ADDED_SECONDS: Final = 7  # of an extension
LENGTHS: Final = (4, 6, 8)


class VeoFilmParams(VideoParams):
    """Params of films by Veo. Its price is by the second, so that a length is never changed."""

    duration: Number | None = Field(
        default=None,
        description="length in seconds: 4, 6 or 8; 8 with references. An extension adds 7",
        json_schema_extra={"enum": [*LENGTHS, None], "default": 8},
        gt=0,
        le=8,
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield conflicts, among them a length that Veo does not make."""
        yield from super().conflicts(given)
        wanted = given.get("duration")
        if "video" in given and wanted is not None:
            yield Detail("duration", f"Veo extends a film by {ADDED_SECONDS} seconds: leave `duration` out.")
        elif given.get("input_references") and wanted not in (None, 8):
            yield Detail("duration", "Veo makes films of 8 seconds with `input_references`.")
        elif isinstance(wanted, int | float) and wanted not in LENGTHS:
            yield Detail("duration", "Veo makes films of 4, 6 or 8 seconds.")

    def resolved(self) -> dict[str, Any]:
        """Return the params with the length, on which the price depends."""
        return {"duration": float(ADDED_SECONDS if self.video is not None else 8), **super().resolved()}


FILMS: Final = (
    film_model("veo_video", "Veo 3.1: video from a prompt, pictures or a video", VeoFilmParams, seeded=True),
    film_model("veo_fast_video", "Veo 3.1 Fast: video from a prompt, pictures or a video", VeoFilmParams, seeded=True),
)
TERMS: Final = FilmTerms(
    title="Veo",
    seconds=LENGTHS,
    frames=FRAMES,
    references=3,
    modes=("extend",),
    fixed={"input_references": 8, "video": ADDED_SECONDS},
    pads=True,
    most_prompt=4000,
    pictures=("image/jpeg", "image/png"),
    film_bytes=20 * MEGABYTE,
    film_seconds=(1, 30),
)


# -- settings


class _Account(msgspec.Struct, frozen=True):
    client_email: str
    private_key: str
    private_key_id: str | None = None
    project_id: str | None = None
    token_uri: str = TOKEN_URI


def _read_account(text: str) -> _Account:
    """Return the key file of a service account; raise a `ValueError` that discloses nothing of it."""
    try:
        account = msgspec.json.decode(text, type=_Account)
    except (msgspec.MsgspecError, ValueError):
        wanted = "`service_account` should be a JSON object with `client_email` and `private_key`"
        advice = "" if text.lstrip().startswith(("{", "[")) else '; for the path of a key file use "file:PATH"'
        raise ValueError(wanted + advice) from None
    if not account.private_key.startswith("-----BEGIN ") or "PRIVATE KEY-----" not in account.private_key:
        raise ValueError("the `private_key` of `service_account` is not in PEM")
    if not account.token_uri.startswith(("https://", "http://")):
        raise ValueError("the `token_uri` of `service_account` is not an address")
    return account


class VeoOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `veo`."""

    model_config = ConfigDict(hide_input_in_errors=True)

    service_account: str | None = Field(
        default=None, repr=False, description='the JSON key of a service account, as in "file:key.json"'
    )
    project: str | None = Field(default=None, min_length=1, description="if not the service account's own")
    location: str = Field(default=LOCATION, pattern=r"^[a-z0-9-]+$", description="where it runs, or `global`")
    base_url: str = Field(default=f"https://{LOCATION}-{HOST}", description="Vertex AI's host; by the location")
    storage_uri: str | None = Field(
        default=None, pattern=r"^gs://[^/]+(/|$)", description="gs://bucket/folder/ for results, if not in the reply"
    )
    storage_url: str = Field(default=STORAGE, description="Cloud Storage's host; `base_url`, if that is given")
    lookup_seconds: float = Field(default=900.0, ge=0, description="how long a lost order is looked for in the bucket")
    poll_seconds: float = Field(default=10.0, gt=0)
    max_concurrent: int = Field(default=10, ge=1)

    @property
    def credential(self) -> str:
        """Return the service account, or else the API key."""
        return self.service_account or self.api_key or ""

    @model_validator(mode="before")
    @classmethod
    def _fill_hosts(cls, table: Any) -> Any:
        """Derive the hosts that are not set."""
        given = {name: value for name, value in as_object(table).items() if value != ""}
        region = "" if given.get("location") == "global" else f"{given.get('location', LOCATION)}-"
        return {"base_url": f"https://{region}{HOST}", "storage_url": given.get("base_url", STORAGE), **given}

    @model_validator(mode="after")
    def _check_together(self) -> "VeoOptions":
        if bool(self.service_account) == bool(self.api_key):
            raise ValueError("needs either `service_account` or `api_key`")
        account = _read_account(self.service_account) if self.service_account else None
        if not (self.project or (account and account.project_id)):
            raise ValueError("needs `project`: the credential does not tell it")
        if self.storage_uri and self.api_key:
            raise ValueError("`storage_uri` needs `service_account`: a bucket opens to no API key")
        return self


# -- replies of Google


class _Granted(msgspec.Struct):
    access_token: Annotated[str, msgspec.Meta(pattern=r"^[!-~]+\Z")]
    expires_in: float = HOUR


class _ErrorBody(msgspec.Struct):
    code: Any = None
    status: Any = None
    message: Any = None


class _Video(msgspec.Struct, rename="camel"):
    bytes_base64_encoded: str | None = None
    gcs_uri: str | None = None


class _Videos(msgspec.Struct, rename="camel"):
    videos: list[_Video] | None = None
    rai_media_filtered_count: Any = None
    rai_media_filtered_reasons: list[str] | None = None


class _Operation(msgspec.Struct):
    name: str = ""
    done: bool | None = None
    error: _ErrorBody | None = None
    response: _Videos | None = None


class _Listing(msgspec.Struct):
    items: list[dict[str, Any]] | None = None


class _Denied(Unclear):
    """No token was granted. Nothing was ordered, and polls are retried."""

    def __init__(self, code: Any, message: Any) -> None:
        super().__init__("no token")
        self.error = UpstreamAuth(upstream=upstream_reason(code, message))


class Veo(GenerationDefaults):
    """One order is one operation with one video. Only an order with a bucket can be looked up."""

    options_type: ClassVar[type[VendorOptions]] = VeoOptions
    models: Sequence[ServedModel] = [
        ServedModel(text_to_video.MODELS[0], PRICE, STANDARD),
        ServedModel(_native("veo_text_to_video", "Veo 3.1"), PRICE, STANDARD),
        ServedModel(_native("veo_fast_text_to_video", "Veo 3.1 Fast"), FAST_PRICE, FAST),
        ServedModel(FILMS[0], PRICE, STANDARD),
        ServedModel(FILMS[1], FAST_PRICE, FAST),
        ServedModel(_native("veo_lite_text_to_video", "Veo 3.1 Lite"), None, LITE),  # its price at 1080p is not known
    ]

    def __init__(self, options: VeoOptions, folders: VendorFolders) -> None:
        self.options = options
        self.lookup_seconds = options.lookup_seconds
        self._account = _read_account(options.service_account) if options.service_account else None
        self.addresses = (options.storage_url, *([self._account.token_uri] if self._account else ()))
        project = options.project or (self._account and self._account.project_id) or ""
        self._models = f"/v1/projects/{quote(project, safe=':')}/locations/{options.location}/publishers/google/models"
        self._clocks = folders.clocks
        self._token: tuple[str, float] | None = None  # with its end of use, by the steady clock

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Get a token, then place the order."""
        path = f"{self._models}/{quote(order.model, safe='')}"
        try:
            body, kept, warnings = self._describe(order)
            reply = yield from self._send(Call("POST", f"{path}:predictLongRunning", json=body))
        except Unfit as unfit:
            return unfit.failure
        except _Denied as denied:
            return Failed(denied.error)
        if reply.status != 200:
            return _classify(reply)
        name = reply.decode(_Operation).name
        upstream_id = name.rpartition("/")[2]
        if not upstream_id:
            raise Unclear("an operation without a name")
        return Accepted(upstream_id, {"id": upstream_id, "path": path, "name": name, **kept}, warnings)

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look into the order's folder of the bucket: a video there proves that the order was accepted."""
        folder = self._folder(order)
        videos = None if folder is None else (yield from self._list(folder))
        if videos is None:
            return LookupUnsupported()
        return Accepted(order.reference, {"folder": folder}) if videos else Similar()

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the operation's state, or read the folder of one whose name was lost."""
        if "folder" in operation:
            videos = yield from self._list(operation["folder"])
            if not videos:  # they were there when the order was found: someone removed them
                return Failed(
                    UpstreamError(GONE, retryable=False, upstream=upstream_reason(None, "no video in the folder")),
                    gone=True,
                )
            return Done((yield from self._fetch(videos)))
        ask = Call("POST", f"{operation['path']}:fetchPredictOperation", json={"operationName": operation["name"]})
        reply = yield from self._send(msgspec.structs.replace(ask, seconds=300))
        if reply.status in GONE_STATUSES:
            failure = getattr(reply.try_decode(_Operation), "error", None) or _ErrorBody()
            return fail_gone(reply, failure.message, operation["id"])
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        record = reply.decode(_Operation)
        if not record.done:
            return Running()
        if record.error is not None:
            return _fail(record.error, operation["id"])
        return expect_kept((yield from self._finish(record.response or _Videos(), operation["id"])), operation)

    def _finish(self, response: _Videos, upstream_id: str) -> Flow[Done | Failed]:
        """Return the videos that passed the content filter, if any."""
        videos, reasons = response.videos or (), response.rai_media_filtered_reasons or ()
        inline = [video.bytes_base64_encoded for video in videos]
        outputs = tuple(Output(Kind.VIDEO, Role.PRIMARY, data) for data in inline if data)
        outputs += yield from self._fetch(video.gcs_uri for video in videos)
        is_held = bool(reasons) or str(response.rai_media_filtered_count or 0) != "0"
        if outputs:
            return Done(outputs, ("The vendor's content filter held a part of the result back.",) if is_held else ())
        if not is_held:
            return fail_empty(upstream_id)
        reason = " ".join(reasons)
        return Failed(
            ContentFiltered(upstream=upstream_reason(_support_code(reason) or "filtered", reason or None, upstream_id))
        )

    def _describe(self, order: Order) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
        """Return the body, what polls need to know, and the warnings. Raise `Unfit` for what Veo cannot make."""
        folder = self._folder(order)
        place = {} if folder is None else {"storageUri": folder}
        if any(order.model_id == model.id for model in FILMS):
            instance, given, kept, warnings = _describe_film(order)
            parameters = {**given, "sampleCount": 1, **place}
            return {"instances": [instance], "parameters": parameters}, kept, warnings
        given = {name: value for name, value in order.params.items() if name in FIELDS and name != "prompt"}
        parameters = {"generateAudio": True, **given, "sampleCount": 1, **place}
        return {"instances": [{"prompt": order.params["prompt"]}], "parameters": parameters}, {}, ()

    # -- the bucket

    def _folder(self, order: Order) -> str | None:
        """Return the folder of the order's video; our reference makes it unique."""
        base = self.options.storage_uri
        return f"{base.rstrip('/')}/{order.reference}/" if base else None

    def _list(self, folder: str) -> Flow[list[str] | None]:
        """Return the videos in a folder; None if we have no read access."""
        bucket, prefix = _split(folder)
        reply = yield from self._send(Call("GET", f"{self._objects(bucket)}?prefix={quote(prefix, safe='')}"))
        if reply.status in (403, 404):
            return None
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        names = [str(item.get("name")) for item in reply.decode(_Listing).items or ()]
        return [f"gs://{bucket}/{name}" for name in names if name.endswith(".mp4")]

    def _fetch(self, addresses: Iterable[str | None]) -> Flow[tuple[Output, ...]]:
        """Return downloads from the bucket, with a token for it."""
        places = [place for place in map(_split, filter(None, addresses)) if all(place)]
        headers = (yield from self._authorize()) if places else {}
        urls = [f"{self._objects(bucket)}/{quote(name, safe='')}?alt=media" for bucket, name in places]
        return tuple(Output(Kind.VIDEO, Role.PRIMARY, Call("GET", url, headers, seconds=300)) for url in urls)

    def _objects(self, bucket: str) -> str:
        return f"{self.options.storage_url.rstrip('/')}/storage/v1/b/{quote(bucket, safe='')}/o"

    # -- tokens

    def _send(self, call: Call) -> Flow[Reply]:
        """Make a call with a token; a 401 proves that a cached token was revoked, so retry once."""
        kept = self._token
        headers = yield from self._authorize()
        used = self._token
        reply = yield msgspec.structs.replace(call, headers=headers)
        if reply.status == 401 and used is not None:
            if self._token is used:
                self._token = None
            if used is kept:
                reply = yield msgspec.structs.replace(call, headers=(yield from self._authorize()))
        return reply

    def _authorize(self) -> Flow[dict[str, str]]:
        if self._account is None:
            return {"x-goog-api-key": self.options.api_key or ""}
        token = self._token
        if token is None or self._clocks.steady() >= token[1]:
            token = self._token = yield from _ask_token(self._account, self._clocks)
        return {"authorization": f"Bearer {token[0]}"}


# -- films in the neutral params


def _describe_film(order: Order) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Return the instance, the parameters, what polls need to know, and the warnings."""
    film = read_film(order, replace(TERMS, needs_prompt="input_references" in order.params))
    warnings = film.warnings
    names = {"negative_prompt": "negativePrompt", "generate_audio": "generateAudio", "seed": "seed"}
    given = {"generateAudio": True, "personGeneration": "allow_adult", **film.renamed(names)}
    instance: dict[str, Any] = film.renamed({"prompt": "prompt"})
    if film.first is not None:
        instance["image"] = _attach(film.first)
        given["resizeMode"] = "pad"
    if film.last is not None:
        instance["lastFrame"] = _attach(film.last)
    if film.references:
        instance["referenceImages"] = [{"image": _attach(each), "referenceType": "asset"} for each in film.references]
    if film.video is not None:
        _check_source(film.video)
        instance["video"] = _attach(film.video)
        added = f"Veo returns the {ADDED_SECONDS} seconds that it adds, without the given film."
        return instance, given, {"expected": {}}, (*warnings, added)
    asked = {"durationSeconds": film.seconds, "aspectRatio": film.ratio, "resolution": film.resolution}
    given |= {name: value for name, value in asked.items() if value is not None}
    return instance, given, {"expected": film.expected}, warnings


def _attach(file: StoredFile) -> dict[str, Any]:
    return {"bytesBase64Encoded": Base64(file), "mimeType": file.content_type}


def _check_source(film: StoredFile) -> None:
    """Raise `Unfit` for a film that Veo cannot extend."""
    short, long = sorted((film.width, film.height))
    if short and (short not in (720, 1080) or long * 9 != short * 16):
        wanted = "films of 720p or 1080p in 16:9 or 9:16"
        raise Unfit("video", f"Veo takes {wanted}, got {film.width} x {film.height}.")


def _ask_token(account: _Account, clocks: Clocks) -> Flow[tuple[str, float]]:
    """Exchange a signed claim for a token, which is valid for an hour."""
    claim = _sign(account, int(clocks.now()) - SKEW_SECONDS)
    form = urlencode({"grant_type": GRANT, "assertion": claim}).encode()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    reply = yield Call("POST", account.token_uri, headers, body=form, prepares=True)
    if 400 <= reply.status < 500 and reply.status not in (408, 429):
        answer = reply.try_decode(dict[str, Any]) or {}
        raise _Denied(answer.get("error", reply.status), str(answer.get("error_description", "")).replace(claim, "…"))
    if reply.status != 200:
        raise Unclear(f"HTTP {reply.status}")
    granted = reply.decode(_Granted)
    life = min(granted.expires_in, HOUR)
    return granted.access_token, clocks.steady() + max(life - SPARE_SECONDS, life / 2)


def _sign(account: _Account, now: int) -> str:
    """Return a JWT in RS256; the library is loaded at first use, as it would slow down every start."""
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: PLC0415

    header = {"alg": "RS256", "typ": "JWT", "kid": account.private_key_id}
    claims = {"iss": account.client_email, "scope": SCOPE, "aud": account.token_uri, "iat": now, "exp": now + HOUR}
    text = b".".join(_encode(msgspec.json.encode(part)) for part in (header, claims))
    pem = account.private_key.encode()  # the operator's own: validating it would block all other requests
    try:
        key = serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
        signature = key.sign(text, padding.PKCS1v15(), hashes.SHA256()) if isinstance(key, rsa.RSAPrivateKey) else b""
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError):
        signature = b""
    if not signature:
        raise _Denied("private_key", "the service account's private key cannot be used")
    return (text + b"." + _encode(signature)).decode()


def _encode(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


# -- meaning of the replies


def _classify(reply: Reply) -> Refused | Failed:
    """Classify a refused order."""
    error = getattr(reply.try_decode(_Operation), "error", None) or _ErrorBody()
    reason = upstream_reason(error.status or error.code or reply.status, error.message)
    if reply.status == 400 and (code := _support_code(error.message)):
        return Failed(ContentFiltered(stage="dispatching", upstream=reason | {"code": code}))
    return classify_refusal(reply, reason)


def _fail(error: _ErrorBody, upstream_id: str) -> Failed:
    """Return the error of a failed operation: a filter has a support code, all else a code of google.rpc."""
    if code := _support_code(error.message):
        return Failed(ContentFiltered(upstream=upstream_reason(code, error.message, upstream_id)))
    kind = ERRORS.get(error.code, UpstreamError) if isinstance(error.code, int) else UpstreamError
    return Failed(kind(stage="generating", upstream=upstream_reason(error.code, error.message, upstream_id)))


def _support_code(message: Any) -> str | None:
    found = SUPPORT.search(message) if isinstance(message, str) else None
    return found[1] if found else None


def _split(address: str) -> tuple[str, str]:
    """Return bucket and name of `gs://bucket/name`."""
    bucket, _, name = address.removeprefix("gs://").partition("/")
    return bucket, name


VENDOR = Veo
