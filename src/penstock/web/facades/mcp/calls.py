"""Calls of tools: each answers with a result, and may ask to wait for a job."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from penstock.catalog.params import as_object, unknown_name
from penstock.domain.api_keys import Scope
from penstock.domain.files import FileKind, StoredAsset
from penstock.domain.ids import timestamp
from penstock.domain.job_errors import FileUnreadable
from penstock.domain.jobs import Job
from penstock.errors import (
    ConcurrencyLimited,
    InvalidRequest,
    JobNotFinished,
    ModelNotAllowed,
    Overloaded,
    PenstockError,
)
from penstock.jobs.files.inputs import FILE_KINDS, decode_inline
from penstock.store.queries.files import asset_rows, storage_rows
from penstock.web.api import models
from penstock.web.auth import Caller, count_request, require_scope
from penstock.web.facades import orders
from penstock.web.facades.mcp import arguments, record, task_record, tools
from penstock.web.facades.orders import MediaOrder
from penstock.web.responses import request_id_of

MAX_TEXT_BYTES: Final = 16_384
"""Size up to which an output that is text comes with the result."""
TEXTS: Final = ("text/", "application/json", "application/x-subrip")


class UnknownTool(Exception):
    """There is no tool of this name."""


@dataclass(slots=True)
class AgentCall:
    """One call of a tool by a caller."""

    caller: Caller
    takes_tasks: bool = False
    """Whether the client can take a task of 2026-07-28 for an answer."""
    wants_task: bool = False
    """Whether the answer must be a task of 2025-11-25: for `created`."""
    created: Job | None = None
    wait_seconds: float = 0.0
    """Seconds to wait for `job`."""
    job: Job | None = None
    """The open job that the answer is about."""
    reused: bool = False
    """Whether the answer is about the kept result of an equal request."""

    async def answer(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the result of the tool. Refusals are results, too, so that agents read them."""
        try:
            return await self._dispatch(name, given)
        except PenstockError as error:
            return record.refuse(error, request_id_of(self.caller.request))

    async def _dispatch(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        known = tools.TOOLS.get(name)
        kind = name.removeprefix(tools.GENERATE)
        if known is None and (kind == name or kind not in self._kinds()):
            raise UnknownTool(unknown_name("tool", name[:100], self._names()))
        require_scope(self.caller.key, Scope.GENERATE if known is None else known.scope)
        if known is None:
            return await self._generate(kind, given)
        return await CALLS[name](self, arguments.read_arguments(known.arguments, given))

    def _kinds(self) -> set[str]:
        return {offer.kind for offer in self.caller.gateway.offers.by_model.values()}

    def _names(self) -> list[str]:
        return [*tools.TOOLS, *map(tools.tool_of, self._kinds())]

    # -- models

    async def list_models(self, given: arguments.ListModels) -> dict[str, Any]:
        """List the models that the key may use."""
        gateway = self.caller.gateway
        offers = tools.offers_of(gateway.offers, self.caller.key)
        kinds = sorted({offer.kind for offer in offers})
        if given.kind is not None and given.kind not in kinds:
            there = ", ".join(kinds) or "none that this key may use"
            raise InvalidRequest(f"kind: there is no model of this kind; there are: {there}.", param="kind")
        found = [
            {name: described[name] for name in ("id", "kind", "title", "price", "typical_seconds", "example")}
            | {"tool": tools.tool_of(offer.kind)}
            for offer in offers
            if given.kind in (None, offer.kind)
            for described in (models.describe(offer, gateway),)
        ]
        return record.succeed({"models": _plain(found)})

    async def describe_model(self, given: arguments.DescribeModel) -> dict[str, Any]:
        """Describe one model with the schema of its params."""
        gateway, key = self.caller.gateway, self.caller.key
        offer = gateway.offers.get(given.model, key.allows_model)
        if not key.allows_model(given.model):
            raise ModelNotAllowed(f"This API key may not use `{given.model}`.", param="model")
        return record.succeed(_plain(models.describe(offer, gateway)) | {"tool": tools.tool_of(offer.kind)})

    # -- generations

    async def estimate(self, given: arguments.Wanted) -> dict[str, Any]:
        """Check and price a generation."""
        await count_request(self.caller)
        order = MediaOrder(model=given.model, given=given.params, sent=None, prefix="params.")
        return record.succeed(_plain(record.describe_forecast(await orders.forecast(self.caller, order))))

    async def _generate(self, kind: str, sent: dict[str, Any]) -> dict[str, Any]:
        known = {name: value for name, value in sent.items() if name in arguments.Generate.model_fields}
        more = {name: value for name, value in sent.items() if name not in known}
        given = arguments.read_arguments(arguments.Generate, known)
        self._check_kind(given.model, kind)
        await count_request(self.caller)
        params = {**more, **given.params}
        order = MediaOrder(
            model=given.model,
            given=params,
            sent=[given.model, params],
            fields={} if given.reuse is None else {"reuse": given.reuse},
            prefix="params.",
            idempotency_key=given.idempotency_key,
        )
        receipt = await orders.place(self.caller, order)
        self.reused = receipt.reused
        return await self._report(orders.first(receipt), given.wait_seconds)

    def _check_kind(self, model: str, kind: str) -> None:
        offer = self.caller.gateway.offers.by_model.get(model)
        if offer is not None and offer.kind != kind and self.caller.key.allows_model(model):
            raise InvalidRequest(
                f"model: `{model}` makes {tools.WHAT.get(offer.kind, offer.kind)}: call {tools.tool_of(offer.kind)}.",
                param="model",
            )

    async def _report(self, job: Job, wait_seconds: float) -> dict[str, Any]:
        """Return the result for a job as it is now, and note that it may be waited for."""
        if self.wants_task:
            self.created = job
            return record.succeed({"job_id": job.id})
        if not job.done:
            self.job, self.wait_seconds = job, wait_seconds
            if self.takes_tasks and wait_seconds:
                now = self.caller.gateway.clock()
                return {"resultType": "task", **task_record.describe_task(job, now)}
        return await self.finish(job)

    async def finish(self, job: Job) -> dict[str, Any]:
        """Return the result for a job, with a preview of its first picture."""
        picture = next((asset for asset in job.outputs if asset.content_type.startswith("image/")), None)
        text = next((asset for asset in job.outputs if asset.content_type.startswith(TEXTS)), None)
        shown = [await self._show(asset.id) for asset in (picture, text) if asset is not None]
        previews = [each for each in shown if each is not None]
        return record.finish(job, self.caller.scribe, previews, reused=self.reused)

    # -- jobs

    async def job_status(self, given: arguments.JobStatus) -> dict[str, Any]:
        """Report a job."""
        return await self._report(await orders.find(self.caller, given.job_id), given.wait_seconds)

    async def cancel(self, given: arguments.OfJob) -> dict[str, Any]:
        """Cancel a job and report it."""
        job = await orders.cancel(self.caller, given.job_id)
        return record.succeed(record.describe_job(job, self.caller.scribe.job(job)))

    async def get_asset(self, given: arguments.GetAsset) -> dict[str, Any]:
        """Link an output, with its preview or its text."""
        job = await orders.find(self.caller, given.job_id)
        if not job.done:
            raise JobNotFinished(suggestion="Call job_status with `wait_seconds` first.")
        whole = self.caller.scribe.job(job)
        described = record.describe_job(job, whole)["outputs"]
        if given.output >= len(described):
            there = f"0 to {len(described) - 1}" if described else "none"
            raise InvalidRequest(f"output: the job has no such output; there are: {there}.", param="output")
        asset = job.outputs[given.output]
        output = whole["outputs"][given.output]
        preview = await self._show(asset.id)
        more = [] if preview is None else [preview]
        return record.succeed({"job_id": job.id, **described[given.output]}, record.link(job, output), *more)

    async def _show(self, asset_id: str) -> Mapping[str, Any] | None:
        """Return content that shows an output: a small preview of a picture, or a short text."""
        gateway = self.caller.gateway
        asset = await gateway.database.look(asset_rows.get, asset_id, self.caller.account_id, gateway.clock())
        if asset.content_type.startswith(TEXTS) and asset.bytes <= MAX_TEXT_BYTES:
            return {"type": "text", "text": await self._read_text(asset)}
        if not asset.content_type.startswith("image/"):
            return None
        try:  # its memory counts for the caller, as many calls may want one at once
            hold = await gateway.body_memory.take(self.caller.account_id, asset.bytes)
        except (ConcurrencyLimited, Overloaded):
            return None
        try:
            picture = await gateway.previews.make(asset)
        finally:
            hold.release()
        return None if picture is None else {"type": "image", "data": picture, "mimeType": "image/jpeg"}

    async def _read_text(self, asset: StoredAsset) -> str:
        return (await self.caller.gateway.previews.read(asset)).decode(errors="replace")

    # -- files

    async def upload(self, given: arguments.Upload) -> dict[str, Any]:
        """Store a file that came with the call."""
        caller = self.caller
        gateway = caller.gateway
        await count_request(caller)
        if caller.storage_quota is not None:
            await gateway.database.read(storage_rows.refuse_full, caller.account_id, caller.storage_quota)
        retention = gateway.settings.jobs.file_retention
        kinds: tuple[FileKind, ...] = FILE_KINDS
        try:
            data = decode_inline(given.data, kinds)
            file = await gateway.inputs.upload(_once(data), caller.account_id, retention, lambda: given.name)
        except FileUnreadable as error:
            raise InvalidRequest(f"data: {error.message}", code=error.code, param="data") from None
        return record.succeed(
            {
                "file_token": file.token,
                "kind": file.kind,
                "content_type": file.content_type,
                "bytes": file.bytes,
                "expires_at": timestamp(file.expires_at),
            }
        )


CALLS: Final[Mapping[str, Callable[[AgentCall, Any], Awaitable[dict[str, Any]]]]] = {
    "list_models": AgentCall.list_models,
    "describe_model": AgentCall.describe_model,
    "estimate": AgentCall.estimate,
    "job_status": AgentCall.job_status,
    "cancel": AgentCall.cancel,
    "get_asset": AgentCall.get_asset,
    "upload": AgentCall.upload,
}


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _plain(value: Any) -> Any:
    """Return plain values, with dataclasses as objects."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in as_object(value).items()}
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[Any]", value)]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
