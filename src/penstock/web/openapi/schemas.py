"""The shapes of what callers receive, for the OpenAPI document; a test holds real answers against them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.domain.budgets import Period
from penstock.domain.events import EventType
from penstock.jobs.records import Cost, ErrorBody, JobRecord, Moment


class Shape(BaseModel):
    """Every field is always present; new ones may be added."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class Error(Shape):
    """The body of every answer that is not a success."""

    error: ErrorBody


class Batch(Shape):
    """Several jobs, accepted together."""

    object: Literal["generation.batch"]
    id: str
    jobs: list[JobRecord]


class DryRun(Shape):
    """What a request would do; nothing was created."""

    object: Literal["generation.dry_run"]
    model: str
    valid: Literal[True]
    input: list[dict[str, Any]]
    cost: Cost
    budget_left: str | None = Field(description="null: no budget is set")
    expected_seconds: "TypicalSeconds | None"


class TypicalSeconds(Shape):
    """How long such jobs took here: half are faster than `p50`, nine in ten than `p90`."""

    p50: float
    p90: float
    jobs: int


class StorageShape(Shape):
    """What an account keeps in files and assets, in bytes."""

    bytes: int
    quota: int | None


class BudgetShape(Shape):
    """Where a budget stands; decimal strings of USD. `held` is reserved for what is under way."""

    of: Literal["account", "key"]
    period: Period
    time_zone: str
    cap: str
    spent: str
    held: str
    left: str
    resets_at: Moment | None = Field(description="when the next period begins; null for a total")


class BudgetNotice(BudgetShape):
    """A share of a budget is used."""

    share: int = Field(description="percent of the cap: 50, 80 or 100")


class EventRecord(Shape):
    """Something that happened to a job or a budget, with that as it was then."""

    type: EventType | Literal["budget.threshold"]
    id: str
    created_at: Moment
    sequence: int
    data: JobRecord | BudgetNotice


class JobPage(Shape):
    """A part of a list; pass `next_cursor` as `cursor` for the next."""

    object: Literal["list"]
    data: list[JobRecord]
    has_more: bool
    next_cursor: str | None


class ServerSentEvent(Shape):
    """One event of a stream; `data` is the JSON of an EventRecord."""

    id: str
    event: EventType | Literal["budget.threshold"]
    data: str


class Feed(Shape):
    """Events in order; pass `next_after` as `after` for the next."""

    object: Literal["list"]
    data: list[EventRecord]
    has_more: bool
    next_after: str | None


class FileRecord(Shape):
    """An uploaded picture."""

    object: Literal["file"]
    file_token: str
    sha256: str
    bytes: int
    content_type: str
    width: int
    height: int
    created_at: Moment
    expires_at: Moment | None


class PriceShape(Shape):
    """Decimal strings of USD."""

    per_job: str
    per_second: str
    per_image: str
    per_thousand_faces: str
    per_job_if: dict[str, str]
    seconds: int | None = Field(description="what is counted where the params do not tell")
    faces: int | None = Field(description="what is counted where `face_limit` is not given")
    currency: Literal["USD"]


class TokenPriceShape(Shape):
    """Decimal strings of USD."""

    input_per_million: str
    cached_input_per_million: str
    output_per_million: str
    reasoning_per_million: str
    per_request: str
    currency: Literal["USD"]


class PriceTerm(Shape):
    """What one vendor asks, and when."""

    vendor: str
    from_: Moment | None = Field(alias="from", description="null: it always was so")
    until: Moment | None = Field(description="null: until further notice")
    price: PriceShape | TokenPriceShape | None = Field(description="null: not known")


class ModelRecord(Shape):
    """A model on offer."""

    id: str
    object: Literal["model"]
    kind: str
    title: str
    params: dict[str, Any] = Field(description="JSON Schema of `params`")
    defaults: dict[str, Any]
    example: dict[str, Any] = Field(description="a whole request body")
    price: PriceShape | TokenPriceShape | None = Field(
        description="in force now, of several vendors the dearest in each part; null: not known"
    )
    prices: list[PriceTerm] = Field(description="of each vendor, in force now and to come")
    vendors: list[str]
    typical_seconds: TypicalSeconds | None = Field(description="null until it has run here")


class ModelList(Shape):
    """Every model that this key may use."""

    object: Literal["list"]
    data: list[ModelRecord]


class ChatCompletion(Shape):
    """OpenAI's completion; vendors may add fields."""

    model_config = ConfigDict(extra="allow", json_schema_serialization_defaults_required=False)

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any] | None = None


class ChatModel(Shape):
    """A chat model, as OpenAI's clients know it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ChatModelList(Shape):
    """Every chat model that this key may use."""

    object: Literal["list"]
    data: list[ChatModel]


class Health(Shape):
    """The process is alive."""

    status: Literal["ok"]
    version: str


class Outage(Shape):
    """How long the store has not answered, and how much longer chat is served without it."""

    seconds: float
    seconds_left: float


class Readiness(Shape):
    """Whether requests are served, and why not."""

    status: Literal["ready", "degraded", "draining", "unavailable"]
    version: str
    settings: str = Field(description="fingerprint of the settings in use")
    checks: dict[str, str]
    outage: Outage | None = Field(default=None, description="present while the store does not answer")
