"""`/api/v1/webhooks`: create, list, change and delete webhooks, and rotate their secrets."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from penstock.catalog.params import Boolean, Line, Params, Text
from penstock.domain.api_keys import Scope
from penstock.domain.events import EventType, PipelineEventType
from penstock.domain.ids import new_id, timestamp
from penstock.domain.job_errors import UrlNotAllowed
from penstock.domain.webhooks import USUAL, DisabledReason, Endpoint, new_secret
from penstock.errors import (
    BodyTooLarge,
    Detail,
    InvalidRequest,
    RequestTimeout,
    TooManyWebhooks,
    UnsupportedMediaType,
    WebhookNotFound,
)
from penstock.jobs.request import refuse
from penstock.store.database import Connection
from penstock.store.queries.webhooks import webhook_rows
from penstock.web.auth import Caller, admit, base_url, signed_in
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.pages import NEXT_CURSOR, Limit, answer_page
from penstock.web.responses import Json, success

router = APIRouter(tags=["Webhooks"])

WebhookId = Annotated[str, Path(description="`hook_…`")]
Cursor = Annotated[str | None, Query(pattern="^hook_[0-9a-z]{1,40}$", description=NEXT_CURSOR)]
BODY = (InvalidRequest, RequestTimeout, BodyTooLarge, UnsupportedMediaType)
NO_STORE = {"cache-control": "no-store"}
RECORD = success("The webhook.", "WebhookRecord")
SHOWN = success("The webhook with its secret, which is shown only once.", "WebhookWithSecret")
SECRET = success("The secret.", "WebhookSecret")
Url = Annotated[Text, Field(min_length=1, max_length=2048)]
Description = Annotated[Line, Field(max_length=500)]
DeliveredEvent = EventType | PipelineEventType | Literal["budget.threshold"]
Events = Annotated[list[DeliveredEvent], Field(min_length=1, max_length=20)]


def _example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"additionalProperties": False, "example": fields})


class WebhookBody(Params):
    """A new webhook."""

    model_config = _example(url="https://example.com/penstock", events=["job.succeeded", "job.failed"])

    url: Url = Field(description="http or https, public addresses only; redirects are not followed")
    events: Events | None = Field(default=None, description="default: the four events that end a job")
    description: Description | None = Field(default=None, description="your note")


class WebhookPatch(Params):
    """Changes to a webhook."""

    model_config = _example(disabled=False)

    url: Url | None = Field(default=None, description="the new address, also for deliveries that are pending")
    events: Events | None = Field(default=None, description="the events to send from now on")
    description: Description | None = Field(default=None, description="your note")
    disabled: Boolean | None = Field(default=None, description="true: send nothing; false: send again")


@router.post(
    "/api/v1/webhooks",
    status_code=201,
    responses={201: SHOWN, **signed_in(*BODY, TooManyWebhooks)},
    openapi_extra=describe_body("WebhookBody"),
)
async def create_webhook(request: Request) -> Response:
    """Create a webhook for your account's events. The secret is only in this answer."""
    caller = await admit(request, Scope.GENERATE)
    body, _ = await read_params(request, WebhookBody)
    endpoint = Endpoint(
        id=new_id("hook"),
        account_id=caller.account_id,
        url=await _check_url(caller, body.url),
        events=tuple(dict.fromkeys(body.events or USUAL)),
        description=body.description or "",
        base_url=base_url(request),
        secret=new_secret(),
        created_at=caller.gateway.clock(),
    )
    await caller.gateway.database.write(webhook_rows.add, endpoint)
    return Json({**describe(endpoint, endpoint.created_at), "secret": endpoint.secret}, 201, NO_STORE)


@router.get("/api/v1/webhooks", responses={200: success("A page.", "WebhookPage"), **signed_in(InvalidRequest)})
async def list_webhooks(request: Request, *, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """List your account's webhooks, newest first."""
    caller = await admit(request, Scope.READ)
    found = await caller.gateway.database.read(webhook_rows.page, caller.account_id, cursor, limit + 1)
    now = caller.gateway.clock()
    return answer_page([describe(endpoint, now) for endpoint in found], limit, "id")


@router.get("/api/v1/webhooks/secret", responses={200: SECRET, **signed_in()})
async def get_secret(request: Request) -> Response:
    """Get the secret that signs deliveries to the `webhook` of a generation request."""
    caller = await admit(request, Scope.GENERATE)
    now = caller.gateway.clock()
    own = await caller.gateway.database.write(webhook_rows.get_own, caller.account_id, now)
    return _answer_secret(own, now)


@router.post("/api/v1/webhooks/secret/rotate", responses={200: SECRET, **signed_in()})
async def rotate_secret(request: Request) -> Response:
    """Replace the secret of webhooks in generation requests. The former secret also signs for 24 hours."""
    caller = await admit(request, Scope.GENERATE)
    now = caller.gateway.clock()

    def rotate(connection: Connection) -> Endpoint:
        own = webhook_rows.get_own(connection, caller.account_id, now, lock=True)
        return webhook_rows.rotate(connection, own, now)

    return _answer_secret(await caller.gateway.database.write(rotate), now)


@router.get("/api/v1/webhooks/{webhook_id}", responses={200: RECORD, **signed_in(WebhookNotFound)})
async def get_webhook(webhook_id: WebhookId, request: Request) -> Response:
    """Get one webhook."""
    caller = await admit(request, Scope.READ)
    found = await caller.gateway.database.read(webhook_rows.get, caller.account_id, webhook_id)
    return Json(describe(found, caller.gateway.clock()))


@router.patch(
    "/api/v1/webhooks/{webhook_id}",
    responses={200: RECORD, **signed_in(*BODY, WebhookNotFound)},
    openapi_extra=describe_body("WebhookPatch"),
)
async def change_webhook(webhook_id: WebhookId, request: Request) -> Response:
    """Change, disable or enable a webhook."""
    caller = await admit(request, Scope.GENERATE)
    body, _ = await read_params(request, WebhookPatch)
    url = None if body.url is None else await _check_url(caller, body.url)
    now = caller.gateway.clock()

    def change(connection: Connection) -> Endpoint:
        former = webhook_rows.get(connection, caller.account_id, webhook_id, lock=True)
        wanted = replace(
            former,
            url=url or former.url,
            events=former.events if body.events is None else tuple(dict.fromkeys(body.events)),
            description=former.description if body.description is None else body.description,
        )
        if body.disabled is True and former.disabled_at is None:
            wanted = replace(wanted, disabled_at=now, disabled_reason=DisabledReason.ASKED)
        elif body.disabled is False:
            wanted = replace(wanted, disabled_at=None, disabled_reason=None, failing_since=None)
        webhook_rows.change(connection, wanted, now)
        return wanted

    return Json(describe(await caller.gateway.database.write(change), now))


@router.delete(
    "/api/v1/webhooks/{webhook_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Deleted."}, **signed_in(WebhookNotFound)},
)
async def delete_webhook(webhook_id: WebhookId, request: Request) -> Response:
    """Delete a webhook and its deliveries."""
    caller = await admit(request, Scope.GENERATE)
    await caller.gateway.database.write(webhook_rows.remove, caller.account_id, webhook_id)
    return Response(status_code=204)


@router.post("/api/v1/webhooks/{webhook_id}/rotate", responses={200: SHOWN, **signed_in(WebhookNotFound)})
async def rotate_webhook(webhook_id: WebhookId, request: Request) -> Response:
    """Replace the secret of a webhook. The former secret also signs for 24 hours."""
    caller = await admit(request, Scope.GENERATE)
    now = caller.gateway.clock()

    def rotate(connection: Connection) -> Endpoint:
        endpoint = webhook_rows.get(connection, caller.account_id, webhook_id, lock=True)
        return webhook_rows.rotate(connection, endpoint, now)

    rotated = await caller.gateway.database.write(rotate)
    return Json({**describe(rotated, now), "secret": rotated.secret}, headers=NO_STORE)


def describe(endpoint: Endpoint, now: float) -> dict[str, Any]:
    """Return the record of a webhook, without its secret."""
    former = endpoint.former_until if len(endpoint.secrets_at(now)) > 1 else None
    return {
        "id": endpoint.id,
        "object": "webhook",
        "url": endpoint.url,
        "events": endpoint.events,
        "description": endpoint.description,
        "disabled": endpoint.disabled_at is not None,
        "disabled_at": timestamp(endpoint.disabled_at),
        "disabled_reason": endpoint.disabled_reason,
        "failing_since": timestamp(endpoint.failing_since),
        "former_secret_until": timestamp(former),
        "created_at": timestamp(endpoint.created_at),
    }


def _answer_secret(own: Endpoint, now: float) -> Response:
    until = describe(own, now)["former_secret_until"]
    body = {"object": "webhook.secret", "secret": own.secret, "former_secret_until": until}
    return Json(body, headers=NO_STORE)


async def _check_url(caller: Caller, url: str) -> str:
    """Return the normalised URL. Its host is resolved now, and again at every delivery."""
    try:
        return await caller.gateway.check_webhook(url)
    except UrlNotAllowed as error:
        raise refuse([Detail("url", error.message, error.code)]) from error
