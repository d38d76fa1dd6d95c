"""Account, hardware and webhook secret of Replicate's API."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.store.queries.webhooks import webhook_rows
from penstock.web.auth import admit
from penstock.web.facades.describe import TEXT, TEXT_OR_NULL, answer, array, errors, fields
from penstock.web.facades.replicate.shapes import PREFIX, PROBLEM, TAG
from penstock.web.responses import Json

router = APIRouter(tags=[TAG])

ACCOUNT = fields({"type": TEXT, "username": TEXT, "name": TEXT, "github_url": TEXT_OR_NULL})


@router.get(f"{PREFIX}/account", responses={200: answer("The account.", ACCOUNT), **errors(PROBLEM)})
async def get_account(request: Request) -> Response:
    """Get the account of the key."""
    caller = await admit(request, Scope.READ)
    name = caller.key.account
    return Json({"type": "organization", "username": name, "name": name, "github_url": None})


@router.get(
    f"{PREFIX}/hardware",
    responses={200: answer("The hardware.", array(fields({"name": TEXT, "sku": TEXT}))), **errors(PROBLEM)},
)
async def list_hardware(request: Request) -> Response:
    """List the hardware: the vendors choose it."""
    await admit(request, Scope.READ)
    return Json([{"name": "Chosen by the vendor", "sku": "any"}])


@router.get(
    f"{PREFIX}/webhooks/default/secret",
    responses={200: answer("The secret.", fields({"key": TEXT})), **errors(PROBLEM)},
)
async def get_webhook_secret(request: Request) -> Response:
    """Get the secret that signs webhooks. It is that of `GET /api/v1/webhooks/secret`."""
    caller = await admit(request, Scope.GENERATE)
    own = await caller.gateway.database.write(webhook_rows.get_own, caller.account_id, caller.gateway.clock())
    return Json({"key": own.secret}, headers={"cache-control": "no-store"})
