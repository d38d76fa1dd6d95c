"""The shapes of what administrators receive, for the OpenAPI document."""

from typing import Any, Literal

from pydantic import Field

from penstock.accounts import Action
from penstock.keys import Scope
from penstock.web.shapes import BudgetShape, Moment, Shape


class LimitsShape(Shape):
    """How much may be done at once or in a minute; null: any number."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent_jobs: int | None
    concurrent_streams: int | None


class AccountRecord(Shape):
    """Whom jobs, results and keys belong to."""

    object: Literal["account"]
    id: str
    name: str
    created_at: Moment
    closed_at: Moment | None = Field(description="since when its keys are refused")
    limits: LimitsShape = Field(description="of all its keys together")
    budgets: list[BudgetShape]
    keys: int = Field(description="how many of its keys are neither revoked nor expired")


class KeyRecord(Shape):
    """A key, without its secret. An empty list of models or endpoints means all."""

    object: Literal["key"]
    public_id: str
    account: str = Field(description="the account's name")
    account_id: str
    name: str
    models: list[str]
    endpoints: list[Scope]
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    status: Literal["active", "expired", "revoked", "closed"] = Field(description="closed: its account is")
    lineage: str = Field(description="the first of the keys that replaced each other; limits and budgets are theirs")
    replaced_by: str | None
    limits: LimitsShape
    budgets: list[BudgetShape] = Field(description="its own; its account may have others")


class IssuedKey(KeyRecord):
    """A new key. Its text is shown this once."""

    key: str


class AccountPage(Shape):
    """A part of a list; pass `next_cursor` as `cursor` for the next."""

    object: Literal["list"]
    data: list[AccountRecord]
    has_more: bool
    next_cursor: str | None


class KeyPage(Shape):
    """A part of a list; pass `next_cursor` as `cursor` for the next."""

    object: Literal["list"]
    data: list[KeyRecord]
    has_more: bool
    next_cursor: str | None


class AuditRecord(Shape):
    """One change that someone made."""

    object: Literal["audit_entry"]
    id: str
    created_at: Moment
    actor: str = Field(description="`admin`: over HTTP; `cli`: on the command line; `server`: at its first start")
    action: Action
    subject: str = Field(description="the account, key, job or completion")
    account_id: str | None
    detail: dict[str, Any] = Field(description="what it was and is; never a secret")


class AuditPage(Shape):
    """A part of a list; pass `next_cursor` as `cursor` for the next."""

    object: Literal["list"]
    data: list[AuditRecord]
    has_more: bool
    next_cursor: str | None
