"""`embedded`: the built-in engines for pictures, 3D models and films. They need no account."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec
from pydantic import Field

from penstock.catalog import image_to_model, speech, text_to_video
from penstock.domain.job_errors import FileUnreadable, JobError, UpstreamError, UpstreamRejected, UpstreamUnavailable
from penstock.domain.prices import FREE
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
from penstock_engines.processors import count_processors
from penstock_engines.studio.run import Limits
from penstock_engines.studio.studio import Studio
from penstock_engines.vendors import picture_models, solid_models
from penstock_engines.vendors.picture_models import find_refusal, list_unsupported

FAMILIES: Final = (image_to_model, text_to_video, speech, picture_models, solid_models)
SERVED: Final = [ServedModel(model, FREE) for family in FAMILIES for model in family.MODELS]
USUAL_FACES: Final = {
    "v2.5-20250123": 20_000,
    "v2.0-20240919": 20_000,
    "Turbo-v1.0-20250506": 8_000,
    "P1-20260311": 3_000,
    "P2-20260801": 3_000,
    "v1.4-20240625": 5_000,
}
"""Face limit of each version where the caller sets none. Other versions follow the picture's detail."""


POLL_SECONDS: Final = 0.5
"""Polling is cheap here, and callers like to see progress."""


class EmbeddedOptions(VendorOptions):
    """`[vendors.embedded]`."""

    poll_seconds: float = Field(default=0.2, gt=0)
    max_concurrent: int = Field(
        default=count_processors(), ge=1, description="how many jobs run at once; default: one per core"
    )
    seconds: float = Field(default=900.0, gt=0, description="how long one job may take")
    memory_mb: int = Field(default=3072, ge=512, description="how much memory one job may take, in MiB")


# -- answers of the studio


class _Made(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    role: Role


class _Reason(msgspec.Struct, frozen=True):
    code: str
    message: str


class _OrderState(msgspec.Struct, frozen=True):
    status: str
    progress: float | None = None
    eta_seconds: float | None = None
    outputs: tuple[_Made, ...] = ()
    seed: int | None = None
    warnings: tuple[str, ...] = ()
    error: _Reason | None = None


def _read(reply: Reply) -> _OrderState:
    try:
        return msgspec.convert({"status": "", **reply.json()}, _OrderState)
    except (msgspec.ValidationError, TypeError) as error:
        raise Unclear(str(error)) from error


class Embedded(GenerationDefaults):
    """Orders run in child processes on this machine: free, repeatable, and started again after a crash."""

    options_type: ClassVar[type[VendorOptions]] = EmbeddedOptions
    models: Sequence[ServedModel] = SERVED
    repeats = True

    def __init__(self, options: EmbeddedOptions, folders: VendorFolders) -> None:
        self.options = options
        self.upstream = Studio(folders.own, folders.weights, Limits(options.seconds, options.memory_mb))

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Send the files, then the order."""
        path = f"/orders/{order.reference}"
        if refusal := find_refusal(order):
            return Failed(UpstreamRejected(refusal))
        if order.file is not None:
            yield Call("PUT", f"{path}/inputs/file", file=order.file)
        for given in order.given("audio"):
            yield Call("PUT", f"{path}/inputs/audio", file=given.file)
        for name, file in (*picture_models.list_inputs(order), *solid_models.list_inputs(order)):
            yield Call("PUT", f"{path}/inputs/{name}", file=file)
        reply = yield Call("PUT", path, json=DESCRIBERS[order.model](order))
        match reply.status:
            case 201:
                version = order.params.get("model_version")
                operation = {"id": order.reference, "version": version}
                return Accepted(order.reference, operation, (*_find_ignored(order.params), *list_unsupported(order)))
            case 501:
                return Failed(_find_error(_read(reply)))
            case _:
                raise Unclear(f"HTTP {reply.status}")

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look the order up by our reference, which is its id."""
        reply = yield Call("GET", f"/orders/{order.reference}")
        if reply.status == 404:
            return Absent()
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        return Accepted(order.reference, {"id": order.reference, "version": order.params.get("model_version")})

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the state of the order."""
        reply = yield Call("GET", f"/orders/{operation['id']}")
        if reply.status == 404:
            error = UpstreamError("The built-in engine no longer knows the job: it ran on another machine.")
            return Failed(error, gone=True)
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        order = _read(reply)
        match order.status:
            case "succeeded" if order.outputs:
                return _finish(order, operation)
            case "succeeded" | "failed" | "canceled":
                return Failed(_find_error(order))
            case _:
                return Running(order.progress, None, order.eta_seconds, poll_after=POLL_SECONDS)

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Stop the order. Its child process ends at once."""
        reply = yield Call("POST", f"/orders/{operation['id']}/cancel")
        if reply.status not in (200, 404):  # an unknown order does not run
            raise Unclear(f"HTTP {reply.status}")
        return True


def _describe_made_film(order: Order) -> dict[str, Any]:
    params = order.params
    width, height = text_to_video.frame_size(params)
    wish = {
        "prompt": params["prompt"],
        "width": width,
        "height": height,
        "seconds": params["durationSeconds"],
        "lossless": params["compressionQuality"] == "lossless",
        "people": params["personGeneration"] != "dont_allow",
    }
    return {"engine": "cinema", "wish": wish}


def _describe_made_model(order: Order) -> dict[str, Any]:
    params = order.params
    wish = {
        "face_limit": params.get("face_limit") or USUAL_FACES.get(params["model_version"]),
        "texture": params["texture"],
        "pbr": params["pbr"],
        "style": "auto",
        "seed": params["model_seed"],
    }
    return {"engine": "inflate", "wish": wish}


def _describe_speech(order: Order) -> dict[str, Any]:
    return {"engine": "hibari", "wish": _pick(order.params, ("text", "speed", "output_format"))}


def _describe_transcript(order: Order) -> dict[str, Any]:
    return {"engine": "whisper", "wish": _pick(order.params, ("language", "prompt", "response_format"))}


DESCRIBERS: Final[Mapping[str, Callable[[Order], dict[str, Any]]]] = {
    **dict.fromkeys((model.id for model in image_to_model.MODELS), _describe_made_model),
    **dict.fromkeys((model.id for model in text_to_video.MODELS), _describe_made_film),
    **{model.id: _describe_transcript if model.kind == "text" else _describe_speech for model in speech.MODELS},
    **picture_models.DESCRIBERS,
    **solid_models.DESCRIBERS,
}
"""Returns an order of each model as its engine expects it."""


def _pick(params: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: params[name] for name in names if name in params}


def _find_ignored(params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a warning for each param of speech that the one English voice cannot honour."""
    if "text" not in params:
        return ()
    given = {"instructions": None, "voice": "heart", "language": "en"}
    ignored = (name for name, only in given.items() if params.get(name) not in (None, only))
    return tuple(f"`{name}` has no effect: the built-in voice is one English voice." for name in ignored)


def _finish(order: _OrderState, operation: Mapping[str, Any]) -> Done:
    base = f"/orders/{operation['id']}/outputs"
    outputs = tuple(Output(made.kind, made.role, Call("GET", f"{base}/{made.name}")) for made in order.outputs)
    version = operation.get("version")
    mapped = (f"`model_version` {version} is not run here: made by the built-in inflate-1.",) if version else ()
    return Done(outputs, (*mapped, *order.warnings), order.seed)


def _find_error(order: _OrderState) -> JobError:
    """Return the reason for a missing result."""
    reason = order.error or _Reason(order.status, "The built-in engine stopped without a result.")
    upstream = {"code": reason.code, "message": reason.message}
    match reason.code:
        case "unable":
            return FileUnreadable(reason.message, stage="generating", upstream=upstream)
        case "not_installed":
            return UpstreamUnavailable(reason.message, retryable=False, upstream=upstream)
        case _:
            return UpstreamError(reason.message, upstream=upstream)


VENDOR = Embedded
