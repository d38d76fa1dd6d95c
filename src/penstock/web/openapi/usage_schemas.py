"""Schemas of usage statements, for the OpenAPI document."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from penstock.store.queries.billing.attribution_rows import Kind as UsageKind
from penstock.store.queries.billing.usage_rows import Group
from penstock.web.openapi.schemas import BudgetShape, Shape, StorageShape

Day = Annotated[str, Field(json_schema_extra={"format": "date"})]
PartOfUsage = Annotated[
    Literal["value", "other", "none"],
    Field(description="value: one value; other: all other values together; none: requests without one"),
]


class UsageSums(Shape):
    """Sums of usage. `requests` counts chat requests."""

    requests: int
    jobs: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = Field(description="among `prompt_tokens`: read from the vendor's cache")
    cache_write_tokens: int = Field(description="among `prompt_tokens`: written to the vendor's cache")
    reasoning_tokens: int = Field(description="among `completion_tokens`")
    total_tokens: int
    cost: str = Field(description="decimal string of USD: what was charged")
    estimated: int = Field(
        description="number of requests whose tokens are estimated because the vendor did not report them"
    )
    unpriced: int = Field(
        description="number of requests and jobs that are not in `cost` because their price is not known"
    )


class UsageLine(UsageSums):
    """Usage of one group. Only the groups of `by` are present."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    day: Day | None = None
    month: str | None = Field(default=None, description="such as 2026-01")
    model: str | None = None
    key: str | None = Field(default=None, description="the key's public id")
    key_name: str | None = None
    vendor: str | None = None
    kind: UsageKind | None = None
    account: str | None = Field(default=None, description="the account's name; for administrators")
    account_id: str | None = None
    tag: str | None = Field(default=None, description="the tag; `other` or empty by `tag_part`")
    tag_part: PartOfUsage | None = None
    end_user: str | None = Field(default=None, description="the end user; `other` or empty by `end_user_part`")
    end_user_part: PartOfUsage | None = None
    session: str | None = Field(default=None, description="the session; `other` or empty by `session_part`")
    session_part: PartOfUsage | None = None


class UsageStatement(Shape):
    """Usage from the first to the last day, and the current state of the budgets."""

    object: Literal["usage"]
    from_: Day = Field(alias="from", description="the first day, UTC")
    to: Day = Field(description="the last day, UTC")
    by: list[Group]
    currency: Literal["USD"]
    data: list[UsageLine]
    total: UsageSums = Field(description="each request once, also where the lines of tags overlap")
    budgets: list[BudgetShape]
    storage: StorageShape | None = Field(description="bytes stored now; null for all accounts together")
