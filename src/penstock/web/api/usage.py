"""`GET /api/v1/usage`: the usage and cost of the caller's account."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.errors import InvalidRequest
from penstock.web.auth import admit, signed_in
from penstock.web.usage_statement import answer_usage, describe_answer, describe_parameters

router = APIRouter(tags=["Usage"])


@router.get(
    "/api/v1/usage",
    openapi_extra=describe_parameters(),
    responses={200: describe_answer(), **signed_in(InvalidRequest)},
)
async def get_usage(request: Request) -> Response:
    """Get the usage and cost of your account, and the state of the budgets of this key and its account."""
    caller = await admit(request, Scope.READ)
    return await answer_usage(caller.gateway, request, caller.key.payer)
