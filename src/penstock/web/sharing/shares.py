"""`/api/v1/shares`: create, list and revoke public links to the outputs of jobs."""

import logging
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, Path, Query, Request
from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from penstock.catalog.params import Boolean, Number, Params
from penstock.domain.api_keys import Scope
from penstock.domain.ids import new_id, timestamp
from penstock.domain.sharing.links import (
    DEFAULT_LIFE_SECONDS,
    MAX_LIFE_SECONDS,
    MIN_LIFE_SECONDS,
    ShareLink,
    hash_token,
)
from penstock.errors import (
    BodyTooLarge,
    Detail,
    Gone,
    InvalidRequest,
    JobDeleted,
    JobNotFound,
    JobNotShareable,
    RateLimited,
    RequestTimeout,
    ShareNotFound,
    TooManyShares,
    UnsupportedMediaType,
)
from penstock.store.queries.files import share_rows
from penstock.web.auth import admit, base_url, count_request, signed_in
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.pages import NEXT_CURSOR, Limit, answer_page
from penstock.web.responses import Json, success

router = APIRouter(tags=["Shares"])

RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
REFUSED = (
    InvalidRequest,
    RequestTimeout,
    BodyTooLarge,
    UnsupportedMediaType,
    JobNotFound,
    Gone,
    JobDeleted,
    JobNotShareable,
    TooManyShares,
    RateLimited,
)
CREATED = success("The link. Its `url` is shown only once.", "ShareWithUrl")
PAGE = success("A page.", "SharePage")
Cursor = Annotated[str | None, Query(pattern="^share_[0-9a-z]{1,40}$", description=NEXT_CURSOR)]
OfJob = Annotated[str | None, Query(pattern="^job_[0-9a-z]{1,40}$", description="only links to this job")]

log = logging.getLogger(__name__)


def _read_moment(value: Any, info: ValidationInfo) -> float:
    """Return a time that lies as far ahead as a link may live."""
    now: float = cast("Mapping[str, Any]", info.context)["now"]
    if not isinstance(value, str) or not RFC_3339.fullmatch(value):
        raise PydanticCustomError("rfc_3339", "Should be RFC 3339 with a zone, such as 2027-01-31T09:30:00Z")
    try:
        moment = datetime.fromisoformat(value.upper()).timestamp()
    except (ValueError, OverflowError):
        raise PydanticCustomError("rfc_3339", "Should be a date and time that exist") from None
    if not MIN_LIFE_SECONDS <= moment - now <= MAX_LIFE_SECONDS:
        raise PydanticCustomError("life", "Should be at least a minute and at most 90 days from now")
    return moment


Moment = Annotated[float, BeforeValidator(_read_moment, json_schema_input_type=datetime)]


class ShareBody(Params):
    """The life of a new share link, and what its page shows."""

    model_config = ConfigDict(
        json_schema_extra={"additionalProperties": False, "example": {"expires_in": 604800, "include_input": False}}
    )

    expires_in: Number | None = Field(
        default=None,
        ge=MIN_LIFE_SECONDS,
        le=MAX_LIFE_SECONDS,
        description="seconds for which the link works, up to 90 days; default: 7 days",
    )
    expires_at: Moment | None = Field(default=None, description="when the link ends, instead of `expires_in`")
    include_input: Boolean | None = Field(
        default=None, description="true: the page also shows the prompt, or the input picture; default: false"
    )

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Detail]:
        """Yield a problem if the end is given twice."""
        if "expires_at" in given and "expires_in" in given:
            yield Detail("expires_in", "Send `expires_at` or `expires_in`, not both.")

    def ending(self, now: float) -> float:
        """Return the time when the link ends."""
        if self.expires_at is not None:
            return self.expires_at
        return now + (DEFAULT_LIFE_SECONDS if self.expires_in is None else self.expires_in)


@router.post(
    "/api/v1/jobs/{job_id}/shares",
    status_code=201,
    responses={201: CREATED, **signed_in(*REFUSED)},
    openapi_extra=describe_body("ShareBody", required=False),
)
async def create_share(job_id: Annotated[str, Path(description="`job_…`")], request: Request) -> Response:
    """Create a public link to a job's outputs. It ends when its time is over, or with the job if that is earlier."""
    caller = await admit(request, Scope.GENERATE)
    limits = await count_request(caller)
    body, _ = await read_params(request, ShareBody)
    gateway, now = caller.gateway, caller.gateway.clock()
    wanted = ShareLink(
        id=new_id("share"),
        account_id=caller.account_id,
        job_id=job_id,
        include_input=bool(body.include_input),
        created_at=now,
        expires_at=body.ending(now),
    )
    token = gateway.share_tokens.make()
    link = await gateway.database.write(share_rows.add, wanted, hash_token(token))
    fields = {"share": link.id, "job": job_id, "account": caller.account_id, "key": caller.key.public_id}
    log.info("share link created", extra={"fields": fields})
    record = {**describe(link), "url": f"{base_url(request)}/share/{token}"}
    return Json(record, 201, {"cache-control": "no-store", **limits})


@router.get("/api/v1/shares", responses={200: PAGE, **signed_in(InvalidRequest)})
async def list_shares(request: Request, *, job: OfJob = None, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """List your account's share links that work, newest first. Their addresses are not stored."""
    caller = await admit(request, Scope.READ)
    gateway = caller.gateway
    found = await gateway.database.look(share_rows.page, caller.account_id, job, gateway.clock(), cursor, limit + 1)
    return answer_page([describe(link) for link in found], limit, "id")


@router.delete(
    "/api/v1/shares/{share_id}",
    status_code=204,
    response_class=Response,
    responses={204: {"description": "Revoked."}, **signed_in(ShareNotFound)},
)
async def revoke_share(share_id: Annotated[str, Path(description="`share_…`")], request: Request) -> Response:
    """Revoke a share link at once. Revoking it again changes nothing."""
    caller = await admit(request, Scope.GENERATE)
    await caller.gateway.database.write(share_rows.revoke, caller.account_id, share_id, caller.gateway.clock())
    fields = {"share": share_id, "account": caller.account_id, "key": caller.key.public_id}
    log.info("share link revoked", extra={"fields": fields})
    return Response(status_code=204)


def describe(link: ShareLink) -> dict[str, Any]:
    """Return the record of a link, without its address."""
    return {
        "id": link.id,
        "object": "share",
        "job_id": link.job_id,
        "include_input": link.include_input,
        "created_at": timestamp(link.created_at),
        "expires_at": timestamp(link.expires_at),
    }
