"""The shapes of statements of usage, for the OpenAPI document."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from penstock.store.queries.billing.usage_rows import Group, Kind
from penstock.web.openapi.schemas import BudgetShape, Shape, StorageShape

Day = Annotated[str, Field(json_schema_extra={"format": "date"})]


class UsageSums(Shape):
    """What was used. `requests` are those of chat."""

    requests: int
    jobs: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = Field(description="among `prompt_tokens`")
    reasoning_tokens: int = Field(description="among `completion_tokens`")
    total_tokens: int
    cost: str = Field(description="decimal string of USD: what was charged")
    estimated: int = Field(description="how many requests' tokens are estimated, as the vendor did not tell them")
    unpriced: int = Field(description="how many requests and jobs are not in `cost`, as their price is not known")


class UsageLine(UsageSums):
    """What was used of one group; only the groups of `by` are present."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    day: Day | None = None
    month: str | None = Field(default=None, description="such as 2026-01")
    model: str | None = None
    key: str | None = Field(default=None, description="the key's public id")
    key_name: str | None = None
    vendor: str | None = None
    kind: Kind | None = None
    account: str | None = Field(default=None, description="the account's name; for administrators")
    account_id: str | None = None


class UsageStatement(Shape):
    """What was used from the first to the last day, and where the budgets stand now."""

    object: Literal["usage"]
    from_: Day = Field(alias="from", description="the first day, UTC")
    to: Day = Field(description="the last day, UTC")
    by: list[Group]
    currency: Literal["USD"]
    data: list[UsageLine]
    total: UsageSums
    budgets: list[BudgetShape]
    storage: StorageShape | None = Field(description="what is kept now; null for all accounts together")
