"""`sim`: a simulated vendor that plays a script, in this process or behind a `base_url`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic import Field

from penstock.catalog import image_to_model, simulated, text_to_video
from penstock.catalog.simulated import Script
from penstock.catalog.text_to_image import picture_size
from penstock.domain.ids import new_id
from penstock.domain.job_errors import ContentFiltered, UpstreamAuth, UpstreamError, UpstreamRejected
from penstock.domain.prices import FREE
from penstock.simulator.upstream import Simulator
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
from penstock.vendor_api.replies import GONE_STATUSES, fail_gone

SERVED = [ServedModel(model, FREE) for family in (image_to_model, text_to_video, simulated) for model in family.MODELS]


class SimOptions(VendorOptions):
    """Settings of `[vendors.NAME]` with type `sim`; a route's `model` may name one of the scripts."""

    poll_seconds: float = Field(default=0.1, gt=0)
    script: Script = Field(default=Script(), description="script that is played by default")
    scripts: Mapping[str, Script] = Field(default={}, description="scripts by upstream model name")
    lookup_seconds: float = Field(
        default=5.0, ge=0, description="with a `base_url`: how long a lost order may still be in transit"
    )


# -- replies of the simulator


@dataclass(frozen=True, slots=True)
class _OrderId:
    id: str


@dataclass(frozen=True, slots=True)
class _Found:
    orders: list[_OrderId]


@dataclass(frozen=True, slots=True)
class _OutputPath:
    kind: Kind
    role: Role
    path: str


@dataclass(frozen=True, slots=True)
class _Standing:
    id: str
    status: str
    progress: float | None
    queue_position: int | None
    eta_seconds: float | None
    outputs: list[_OutputPath]
    seed: int | None


@dataclass(frozen=True, slots=True)
class _Reason:
    code: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    id: str | None = None
    error: _Reason | None = None


def _reason(reply: Reply) -> dict[str, str | None] | None:
    """Return the simulator's reason; None if it gave none."""
    answer = reply.try_decode(_Said)
    if answer is None:
        return None
    reason = answer.error or _Reason()
    return {"code": reason.code, "message": reason.message, "id": answer.id}


class Sim(GenerationDefaults):
    """Calls the simulator like any vendor, so that every path of the gateway can be tested for free."""

    options_type: ClassVar[type[VendorOptions]] = SimOptions
    models: Sequence[ServedModel] = SERVED
    reads_objects = True

    def __init__(self, options: SimOptions, folders: VendorFolders) -> None:
        self.options = options
        self.lookup_seconds = options.lookup_seconds if options.base_url else 0.0
        self.upstream = None if options.base_url else Simulator(folders.own, folders.clocks.now, partial(new_id, "sim"))

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place the order with its script."""
        reply = yield self._call("POST", "/orders", self._describe(order))
        match reply.status:
            case 201:
                return self._accepted(reply.decode(_OrderId), order)
            case 429:
                return Refused(reply.retry_after)
            case 401:
                return Failed(UpstreamAuth(upstream=_reason(reply)))
            case 400:
                return Failed(UpstreamRejected(upstream=_reason(reply)))
            case _:
                raise Unclear(f"HTTP {reply.status}")

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look up the order by our reference."""
        reply = yield self._call("GET", f"/orders?reference={quote(order.reference)}")
        if reply.status == 501:
            return LookupUnsupported()
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        found = reply.decode(_Found).orders
        return self._accepted(found[0], order) if found else Absent()

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the order's state."""
        call = self._call("GET", f"/orders/{operation['id']}")
        reply = yield call
        if reply.status == 404 and "order" in operation:  # it was placed at another machine's simulator
            yield self._call("PUT", call.url, operation["order"])
            reply = yield call
        if reply.status in GONE_STATUSES:
            return fail_gone(reply, None, operation["id"])
        if reply.status != 200:
            raise Unclear(f"HTTP {reply.status}")
        order = reply.decode(_Standing)
        match order.status:
            case "succeeded":
                return self._done(order)
            case "filtered":
                return Failed(ContentFiltered(upstream=_reason(reply)))
            case "failed":
                return Failed(UpstreamError(upstream=_reason(reply)))
            case "canceled":
                return Failed(UpstreamError("The vendor's job was canceled.", upstream=_reason(reply)))
            case _:
                return Running(order.progress, order.queue_position, order.eta_seconds)

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Stop the order, if its script allows it."""
        reply = yield self._call("POST", f"/orders/{operation['id']}/cancel", {})
        if reply.status not in (200, 404, 409):
            raise Unclear(f"HTTP {reply.status}")
        return reply.status == 200

    def _done(self, order: _Standing) -> Done | Failed:
        outputs = tuple(Output(item.kind, item.role, self._call("GET", item.path)) for item in order.outputs)
        if not outputs:
            reason = {"code": None, "message": "finished without an output", "id": order.id}
            return Failed(ContentFiltered("The vendor finished without an output and gave no reason.", upstream=reason))
        return Done(outputs, ("Made by the simulator: a test card, not a generation.",), order.seed)

    def _describe(self, order: Order) -> dict[str, Any]:
        script = order.params.get("script") or self._script(order.model)
        return {"reference": order.reference, "script": script, "result": _result(order.params)}

    def _accepted(self, found: _OrderId, order: Order) -> Accepted:
        """Return the accepted order. It holds all that another machine's simulator needs if this one is gone."""
        if self.upstream is None:
            return Accepted(found.id, {"id": found.id})
        return Accepted(found.id, {"id": found.id, "order": self._describe(order) | {"at": order.placed_at}})

    def _script(self, model: str) -> dict[str, Any]:
        options = self.options
        return options.scripts.get(model, options.script).resolved()

    def _call(self, method: str, path: str, json: Any = None) -> Call:
        headers = {"authorization": f"Bearer {self.options.api_key}"} if self.options.api_key else {}
        return Call(method, path, headers, json, seconds=30)


def _result(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of the result in the simulator's terms."""
    if "output_format" in params:
        width, height = picture_size(params) or (512, 512)
        details = {"width": width, "height": height, "format": params["output_format"], "count": params["n"]}
        return {"kind": "image", "seed": params["seed"], **details}
    if "durationSeconds" in params:
        width, height = text_to_video.frame_size(params)
        return {"kind": "video", "width": width, "height": height, "seconds": params["durationSeconds"]}
    if "prompt" in params:
        return {"kind": "image"}
    return {
        "kind": "model",
        "face_limit": params.get("face_limit"),
        "texture": params.get("texture", True),
        "seed": params.get("model_seed"),
    }


VENDOR = Sim
