"""fal's direct runs: the connection is held until the job is done."""

from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.domain.api_keys import Scope
from penstock.errors import Overloaded
from penstock.web.api.generations import ORDER_ERRORS
from penstock.web.auth import Caller, admit, count_request
from penstock.web.facades.describe import answer, body, errors
from penstock.web.facades.fal.ordering import AppOrder, place
from penstock.web.facades.fal.queue import AppId, named, write_answer
from penstock.web.facades.fal.shapes import HEADERS, INPUT, PROBLEM, RESULT, TAG
from penstock.web.facades.holding import CallerLeft, HoldRule, hold
from penstock.web.responses import Json

router = APIRouter(tags=[TAG])

MAX_SECONDS: Final = 600.0
"""How long a connection is held."""
NO_RETRY: Final = {"x-fal-request-timeout-type": "user"}
"""Tells clients not to repeat the order."""
LATE: dict[int | str, Any] = {504: answer("It is not done after ten minutes: ask the queue for it.", PROBLEM)}


@router.post(
    "/fal/run/{app_id:path}",
    responses={200: answer("The result.", RESULT), **errors(PROBLEM, *ORDER_ERRORS), **LATE},
    openapi_extra={"parameters": HEADERS, **body(INPUT)},
)
async def run(app_id: AppId, request: Request) -> Response:
    """Run the model that the app id names, and wait for the result. It is 422 if it has failed."""
    return await answer_run(await admit(request, Scope.GENERATE), app_id)


async def answer_run(caller: Caller, app_id: str) -> Response:
    """Answer with the result of an order."""
    limits = await count_request(caller)
    rule = HoldRule(MAX_SECONDS)
    receipt, headers = await place(caller, AppOrder(app_id, held=rule))
    try:
        (job,) = await hold(caller, receipt.jobs, rule)
    except CallerLeft:
        return Response(status_code=499)  # nobody reads it
    if not job.done:
        if caller.gateway.draining:
            raise Overloaded("The gateway is shutting down. The same order finds the job.", retry_after=2)
        detail = f"The request {job.id} is not done yet. Ask for it below /fal/queue."
        problem = {"detail": detail, "message": detail, "error_type": "request_timeout"}
        return Json(problem, 504, {**named(job), **NO_RETRY})
    response = await write_answer(caller, job)
    response.headers.update({**limits, **headers})
    return response
