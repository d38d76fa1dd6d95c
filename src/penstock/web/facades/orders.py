"""Orders of façades: jobs are accepted, found, awaited and canceled as everywhere, under their own ids."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
from fastapi import Request

from penstock.catalog.file_input import with_file
from penstock.catalog.model import GenerationModel
from penstock.domain import jobs
from penstock.domain.jobs import Job
from penstock.errors import (
    AssetExpired,
    AssetNotFound,
    Detail,
    Gone,
    InvalidRequest,
    ModelNotAllowed,
    Overloaded,
    PenstockError,
)
from penstock.jobs.acceptance import Receipt, SubmittedRequest
from penstock.jobs.intake import Forecast
from penstock.jobs.request import Decoded, refuse
from penstock.store.queries.files import asset_rows
from penstock.store.queries.jobs import job_rows
from penstock.store.queries.jobs.request_rows import RETRY_SHIELD_SECONDS
from penstock.web.api.generations import idempotency_key, retry_count
from penstock.web.attribution.sources import attribute
from penstock.web.auth import Caller, base_url
from penstock.web.facades.neutral import Given, in_callers_terms, param_names, to_params
from penstock.web.responses import request_id_of
from penstock.web.server.asgi import CYCLE

OWNER: Final = "penstock/"
"""The owner of every model, where a protocol wants one: `penstock/<model_id>`."""
_OWN_FILE: Final = re.compile(
    r"/(?:api/v1/files/(file_\w+)/content|replicate/v1/files/(file_\w+)|fal/files/(file_\w+)(?:/.*)?)"
)
_OWN_ASSET: Final = re.compile(r"/api/v1/assets/([^/]+)/[^/]+")
OUTPUT_URI: Final = re.compile(r"penstock://jobs/(job_\w{1,60})/outputs/(\d{1,4})", re.ASCII)
"""An output as agents name it, see `resources/list` of MCP."""
COUNT: Final = "n"
REUSE: Final = "x-penstock-reuse"
"""The header that has the field `reuse` of a generation request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaOrder:
    """An order of a façade's caller."""

    model: str
    given: Mapping[str, Any]
    """The model's own params, or neutral ones."""
    sent: Any
    """What was sent, as plain values: two orders with equal ones are the same, if the second is a retry."""
    number: int = 1
    """How many results: the model's `n`, as far as its vendors make several at once, else as many jobs."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of the generation request, such as `webhook`."""
    prefix: str = ""
    """Where the inputs stand in the caller's body, such as `input.`."""
    outer: Mapping[str, str] = field(default_factory=dict[str, str])
    """The caller's names of `fields`, where they differ: `{"webhook.url": "webhook"}`."""
    dialect: str = ""
    """The dialect of the messages to the webhook."""
    idempotency_key: str | None = None
    """The key that the body names, before that of the header."""
    is_retry: bool = False
    """Whether the client says, or its habits tell, that this repeats a request."""
    retry_seconds: float = RETRY_SHIELD_SECONDS
    """How long ago the request that it repeats may have been accepted."""
    user: Any = None
    """The end user that the body names."""


def model_id(name: str) -> str:
    """Return our id of a model that a protocol names with its owner."""
    return name.removeprefix(OWNER)


async def place(caller: Caller, order: MediaOrder) -> Receipt:
    """Accept the jobs of an order, or return those of the order that it repeats."""
    if caller.gateway.draining:
        raise Overloaded("The gateway is shutting down.", retry_after=2)
    receipt = await _accept(caller, order)
    assert isinstance(receipt, Receipt)  # noqa: S101  it is no dry run
    caller.request.scope["extensions"][CYCLE].release()
    return receipt


async def forecast(caller: Caller, order: MediaOrder) -> Forecast:
    """Check and price an order without accepting it."""
    found = await _accept(caller, replace(order, fields={**order.fields, "dry_run": True}))
    assert isinstance(found, Forecast)  # noqa: S101  it is a dry run
    return found


async def _accept(caller: Caller, order: MediaOrder) -> Receipt | Forecast:
    gateway = caller.gateway
    if not caller.key.allows_model(order.model) and order.model in gateway.offers.by_model:
        raise ModelNotAllowed(f"This API key may not use `{order.model}`.", param="model")
    offer = gateway.offers.get(order.model, caller.key.allows_model)
    model = offer.model
    given = _read_inputs(model, order)
    params = await _name_own_files(caller, model, given.params)
    most = gateway.offers.most_results(offer) if order.number > 1 else None
    inputs = [{"params": each} for each in _spread(model, params, order.number, most)]
    body: dict[str, Any] = {"model": model.id, "input": inputs, **order.fields}
    if reuse := caller.request.headers.get(REUSE):
        body.setdefault("reuse", reuse)
    try:
        return await gateway.intake.accept(_submit(caller, body, order))
    except PenstockError as error:
        raise in_callers_terms(error, given.names, order.prefix, {"reuse": REUSE, **order.outer}) from None


def _spread(model: GenerationModel, params: dict[str, Any], number: int, most: int | None) -> list[dict[str, Any]]:
    """Return the params of each job that together make so many results, if one makes at most `most`."""
    if number == 1 or COUNT not in param_names(model):
        return [params] * number
    full, rest = divmod(number, most or number)
    counts = [most or number] * full + [rest] * bool(rest)
    return [{**params, COUNT: count} for count in counts]


def _read_inputs(model: GenerationModel, order: MediaOrder) -> Given:
    """Return the model's params. Raise with the place of a wrong input, where the protocol tells places."""
    try:
        return to_params(model, order.given)
    except InvalidRequest as error:
        if not order.dialect or error.param is None:
            raise
        raise refuse([Detail(f"{order.prefix}{error.param}", error.message, error.code)]) from None


def mark_of(caller: Caller, sent: Any) -> bytes:
    """Return the digest by which a repetition of what was sent is recognised."""
    return hashlib.sha256(msgspec.json.encode([caller.request.url.path, sent], order="sorted")).digest()


def _submit(caller: Caller, body: dict[str, Any], order: MediaOrder) -> SubmittedRequest:
    request = caller.request
    return SubmittedRequest(
        decoded=Decoded(body, mark_of(caller, order.sent)),
        path_model=None,
        key=caller.key,
        request_id=request_id_of(request),
        idempotency_key=order.idempotency_key or idempotency_key(request),
        is_retry=order.is_retry or retry_count(request) >= 1,
        retry_seconds=max(order.retry_seconds, RETRY_SHIELD_SECONDS if retry_count(request) else 0),
        base_url=base_url(request),
        dialect=order.dialect,
        attribution=attribute(request, caller.key, user=order.user),
    )


async def _name_own_files(caller: Caller, model: GenerationModel, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params, with our own URLs as the uploads or outputs that they lead to: they need not be fetched."""
    found = dict(params)
    for slot in model.files:
        for path, entry in slot.entries(params):
            own = await _own_file(caller, entry.get("url"))
            if own is not None:
                rest = {name: value for name, value in entry.items() if name != "url"}
                found = with_file(found, path, {**rest, **own})
    return found


async def _own_file(caller: Caller, url: Any) -> Mapping[str, Any] | None:
    own = base_url(caller.request)
    if isinstance(url, str) and (named := OUTPUT_URI.fullmatch(url)):
        return {"job": named[1], "output": int(named[2])}
    if not isinstance(url, str) or not url.startswith(f"{own}/"):
        return None
    address = url[len(own) :].partition("?")[0]
    if file := _OWN_FILE.fullmatch(address):
        return {"file_token": next(filter(None, file.groups()))}
    try:
        found = await find_output(caller, address)
    except (AssetNotFound, AssetExpired):
        return None  # fetching it says what is wrong
    return None if found is None else {"job": found[0].id, "output": found[1]}


async def find_output(caller: Caller, address: str) -> tuple[Job, int] | None:
    """Return the caller's job and the number of its output at this path of ours, or None for another path."""
    if (asset := _OWN_ASSET.fullmatch(address.partition("?")[0])) is None:
        return None
    gateway = caller.gateway
    row = await gateway.database.read(asset_rows.get, asset[1], caller.account_id, gateway.clock())
    job = await gateway.database.read(job_rows.get, caller.account_id, row.job_id)
    number = next((place for place, output in enumerate(job.outputs) if output.id == row.id), None)
    return None if number is None else (job, number)


async def find(caller: Caller, job_id: str) -> Job:
    """Return one of the caller's jobs."""
    job = await caller.gateway.database.look(job_rows.get, caller.account_id, job_id)
    if job.is_past(caller.gateway.clock()):
        raise Gone
    return job


async def cancel(caller: Caller, job_id: str) -> Job:
    """Cancel one of the caller's jobs. Canceling again, or too late, changes nothing."""
    now = caller.gateway.clock()
    return await caller.gateway.database.write(
        job_rows.amend_own, caller.account_id, job_id, lambda job: jobs.request_cancel(job, now), now
    )


def first(receipt: Receipt) -> Job:
    """Return the job of an order for one."""
    only: Sequence[Job] = receipt.jobs
    return only[0]


def facade_url(request: Request, path: str) -> str:
    """Return a link under the address that the caller used."""
    return f"{base_url(request)}{path}"
