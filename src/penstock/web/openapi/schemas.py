"""Schemas of the answers, for the OpenAPI document. A test checks real answers against them."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.domain.api_keys import Scope
from penstock.domain.budgets import Period
from penstock.domain.events import EventType, PipelineEventType
from penstock.domain.files import FileKind
from penstock.domain.people.roles import PersonRole
from penstock.domain.webhooks import DisabledReason, Status
from penstock.jobs.records import Cost, ErrorBody, GuardrailShape, JobRecord, Moment, PipelineRecord
from penstock.vendor_api.generation import Kind, Role


class Shape(BaseModel):
    """All fields are always present. New fields may be added."""

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
    """The effect that a request would have. Nothing was created."""

    object: Literal["generation.dry_run"]
    model: str
    valid: Literal[True]
    input: list[dict[str, Any]]
    cost: Cost
    budget_left: str | None = Field(description="null: no budget is set")
    expected_seconds: "TypicalSeconds | None"
    guardrails: list[GuardrailShape] = Field(description="findings of the guardrails that inspected the inputs")


class TypicalSeconds(Shape):
    """Durations of such jobs on this server: half are faster than `p50`, nine in ten than `p90`."""

    p50: float
    p90: float
    jobs: int


class StorageShape(Shape):
    """Bytes of files and assets that an account stores."""

    bytes: int
    quota: int | None


class BudgetShape(Shape):
    """State of a budget in decimal strings of USD. `held` is reserved for open jobs and requests."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    of: Literal["account", "key", "tag"]
    tag: str | None = Field(default=None, description="present if it is of a tag")
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
    """A change of a job, a pipeline or a budget, with its state at that time."""

    type: EventType | PipelineEventType | Literal["budget.threshold"]
    id: str
    created_at: Moment
    sequence: int
    data: JobRecord | PipelineRecord | BudgetNotice


class JobPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[JobRecord]
    has_more: bool
    next_cursor: str | None


class PipelinePage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[PipelineRecord]
    has_more: bool
    next_cursor: str | None


class PipelineDryRunStep(Shape):
    """One step, with the highest cost of its jobs together."""

    name: str
    model: str
    jobs: int
    needs: list[str]
    cost: Cost
    expected_seconds: "TypicalSeconds | None"


class PipelineDryRun(Shape):
    """The effect that a pipeline would have. Nothing was created."""

    object: Literal["pipeline.dry_run"]
    valid: Literal[True]
    jobs: int
    steps: list[PipelineDryRunStep]
    cost: Cost
    budget_left: str | None = Field(description="null: no budget is set")
    expected_seconds: float | None = Field(
        description="of the slowest chain of steps; null while one of the models has not run here"
    )


class PipelineTemplateRecord(Shape):
    """A version of a stored pipeline."""

    object: Literal["pipeline.template"]
    name: str
    version: int
    created_at: Moment
    description: str | None
    steps: list[dict[str, Any]]
    on_error: Literal["stop", "continue"]
    params: dict[str, Any]


class PipelineTemplateList(Shape):
    """The newest version of each of your templates, by name."""

    object: Literal["list"]
    data: list[PipelineTemplateRecord]
    has_more: Literal[False]


class LineageLinkShape(Shape):
    """An output of one job that is an input of another."""

    parent: str
    child: str
    param: str = Field(description="path of the file among the child's params")
    output: str | None = Field(description="id of the output; null while the parent is at work")
    distance: int = Field(description="steps from the job that was asked for, from 1")


class LineageJob(Shape):
    """A job of the lineage, in short."""

    id: str
    model: str
    status: str
    step: str | None
    pipeline_id: str | None


class LineageRecord(Shape):
    """The jobs that led to a job, and those that were made from its outputs."""

    object: Literal["lineage"]
    job: str
    parents: list[LineageLinkShape]
    children: list[LineageLinkShape]
    jobs: list[LineageJob]
    truncated: bool = Field(description="whether there are more")


class ServerSentEvent(Shape):
    """One event of a stream; `data` is the JSON of an EventRecord."""

    id: str
    event: EventType | PipelineEventType | Literal["budget.threshold"]
    data: str


class Feed(Shape):
    """Events in order. Send `next_after` as `after` to get the next page."""

    object: Literal["list"]
    data: list[EventRecord]
    has_more: bool
    next_after: str | None


class FileRecord(Shape):
    """An uploaded file; `width` and `height` are 0 for kinds that have none."""

    object: Literal["file"]
    file_token: str
    kind: FileKind
    sha256: str
    bytes: int
    content_type: str
    width: int
    height: int
    duration_seconds: float | None
    name: str | None
    created_at: Moment
    expires_at: Moment | None


class UploadRecord(Shape):
    """An upload in several requests."""

    object: Literal["upload"]
    id: str
    bytes: int = Field(description="of the whole file")
    offset: int = Field(description="bytes received")
    done: bool
    file_token: str | None = Field(description="of the file, once it is stored")
    name: str | None
    created_at: Moment
    expires_at: Moment


class PriceShape(Shape):
    """Decimal strings of USD."""

    per_job: str
    per_second: str
    per_image: str
    per_thousand_faces: str
    per_job_if: dict[str, str]
    per_second_if: dict[str, str]
    per_image_if: dict[str, str]
    seconds: int | None = Field(description="seconds that are charged if the params give none")
    faces: int | None = Field(description="faces that are charged if `face_limit` is not given")
    currency: Literal["USD"]


class TokenPriceShape(Shape):
    """Decimal strings of USD."""

    input_per_million: str
    cached_input_per_million: str
    cache_write_per_million: str = Field(description="of prompt tokens that the vendor writes to its cache")
    cache_write_1h_per_million: str = Field(description="of those that it keeps for an hour")
    output_per_million: str
    reasoning_per_million: str
    per_request: str
    per_million_characters: str = Field(description="of text that is read aloud")
    per_minute: str = Field(description="of sound that is written down")
    currency: Literal["USD"]


class PriceTerm(Shape):
    """The price of one vendor and when it applies."""

    vendor: str
    from_: Moment | None = Field(alias="from", description="null: from the beginning")
    until: Moment | None = Field(description="null: until further notice")
    price: PriceShape | TokenPriceShape | None = Field(description="null: not known")


class OwnKey(Shape):
    """The key of the request. Empty lists mean all. The administrator's key belongs to no account."""

    object: Literal["key"]
    kind: Literal["account", "admin"]
    public_id: str | None
    name: str | None
    account: str | None = Field(description="the account's name")
    expires_at: Moment | None
    models: list[str]
    endpoints: list[Scope]
    role: PersonRole | None = Field(description="the role of the key's person in the account; null: it is no person's")
    content_log: bool = Field(description="true: prompts and answers of its requests are logged")


class ModelRecord(Shape):
    """A model on offer."""

    id: str
    object: Literal["model"]
    kind: str
    title: str
    description: str | None = Field(description="a sentence about the model; null: there is none")
    params: dict[str, Any] = Field(description="JSON Schema of `params`")
    defaults: dict[str, Any]
    example: dict[str, Any] = Field(description="a whole request body")
    price: PriceShape | TokenPriceShape | None = Field(
        description="the price now, with several vendors the highest of each part; null: not known"
    )
    prices: list[PriceTerm] = Field(description="current and future prices of each vendor")
    vendors: list[str]
    typical_seconds: TypicalSeconds | None = Field(description="null until it has run here")
    endpoints: list[str] = Field(description="paths that take requests for it, the preferred first")


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


class ChatResponse(Shape):
    """OpenAI's response object; vendors may add fields."""

    model_config = ConfigDict(extra="allow", json_schema_serialization_defaults_required=False)

    id: str
    object: Literal["response"]
    created_at: float
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class DeletedResponse(Shape):
    """The id of a response that was deleted."""

    id: str
    object: Literal["response"]
    deleted: Literal[True]


class ResponseItemPage(Shape):
    """One page of input items. Send `last_id` as `after` to get the next page."""

    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str
    last_id: str
    has_more: bool


class Embedding(Shape):
    """The vector of one text."""

    object: Literal["embedding"]
    index: int = Field(description="the place of the text in `input`")
    embedding: list[float] | str = Field(description="numbers, or base64 of little-endian float32")


class EmbeddingList(Shape):
    """OpenAI's list of embeddings; vendors may add fields."""

    model_config = ConfigDict(extra="allow", json_schema_serialization_defaults_required=False)

    object: Literal["list"]
    model: str
    data: list[Embedding]
    usage: dict[str, Any]


class Transcript(Shape):
    """OpenAI's transcript; vendors may add fields."""

    model_config = ConfigDict(extra="allow", json_schema_serialization_defaults_required=False)

    text: str


class MessageFault(Shape):
    """The kind of an error by Anthropic's names, with our code."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    type: str
    message: str
    code: str | None = None
    param: str | None = None
    suggestion: str | None = None


class MessageError(Shape):
    """The body of every answer of Messages that is not a success, in Anthropic's shape."""

    type: Literal["error"]
    error: MessageFault
    request_id: str | None


class Message(Shape):
    """Anthropic's message; vendors may add fields."""

    model_config = ConfigDict(extra="allow", json_schema_serialization_defaults_required=False)

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, Any]]
    stop_reason: str
    stop_sequence: str | None = None
    usage: dict[str, Any]


class TokenCount(Shape):
    """The tokens of a request: as its vendor counts them, or else estimated."""

    input_tokens: int


class ChatModel(Shape):
    """A model, as the clients of OpenAI and of Anthropic know it."""

    id: str
    object: Literal["model"]
    type: Literal["model"]
    display_name: str
    created: int
    created_at: str
    lifecycle: Literal["active"]
    owned_by: str
    description: str | None = Field(description="a sentence about the model; null: there is none")
    kind: Literal["chat", "embedding", "speech", "transcription", "image", "video"] = Field(
        description="`embedding`: it is served by `/llm/embeddings`; `speech`: by `/llm/audio/speech`; "
        "`transcription`: by `/llm/audio/transcriptions`; `image` and `video`, only below `/v1`: by "
        "`/v1/images/generations` and `/v1/videos`"
    )


class ChatModelList(Shape):
    """Every such model that this key may use."""

    object: Literal["list"]
    data: list[ChatModel]
    has_more: Literal[False] = Field(description="all of them are in this list")
    first_id: str | None
    last_id: str | None


class Health(Shape):
    """The process is alive."""

    status: Literal["ok"]
    version: str


class Outage(Shape):
    """Seconds since the store answered, and seconds for which chat is still served without it."""

    seconds: float
    seconds_left: float


class Readiness(Shape):
    """Readiness to serve requests, with the checks behind it."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    status: Literal["ready", "degraded", "draining", "unavailable"]
    version: str
    settings: str = Field(description="fingerprint of the settings in use")
    settings_version: int = Field(description="version of the run-time settings in use; 0: none was made")
    checks: dict[str, str]
    outage: Outage | None = Field(default=None, description="present while the store does not answer")


# -- webhooks


class Reason(StrEnum):
    """The reason why a webhook is disabled."""

    ASKED = DisabledReason.ASKED.value
    GONE = DisabledReason.GONE.value
    FAILING = DisabledReason.FAILING.value


class WebhookRecord(Shape):
    """An address that receives events."""

    id: str
    object: Literal["webhook"]
    url: str
    events: list[str]
    description: str
    disabled: bool
    disabled_at: Moment | None
    disabled_reason: Reason | None = Field(description="asked for, answered 410, or failing for days")
    failing_since: Moment | None = Field(
        description="when its current failures began; null: the last attempt succeeded"
    )
    former_secret_until: Moment | None = Field(description="the former secret also signs until then")
    created_at: Moment


class WebhookWithSecret(WebhookRecord):
    """A webhook with its secret, which is shown only once."""

    secret: str = Field(description="`whsec_…`, for Standard Webhooks libraries")


class WebhookSecret(Shape):
    """The secret that signs deliveries to the `webhook` of generation requests."""

    object: Literal["webhook.secret"]
    secret: str
    former_secret_until: Moment | None


class WebhookPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[WebhookRecord]
    has_more: bool
    next_cursor: str | None


class DeliveryAttempt(Shape):
    """One attempt to send a delivery."""

    at: Moment
    status_code: int | None = Field(description="null: no answer")
    latency_ms: int
    error: str | None = Field(description="null: success")
    response: str = Field(description="the beginning of the answer, up to 1024 bytes")


class DeliveryRecord(Shape):
    """One event on its way to one address."""

    id: str
    object: Literal["webhook.delivery"]
    webhook_id: str | None = Field(description="null: the job's own webhook")
    url: str
    type: str
    event_id: str = Field(description="the `webhook-id` of every attempt")
    job_id: str | None
    sequence: int
    status: Status
    created_at: Moment
    next_attempt_at: Moment | None
    finished_at: Moment | None
    attempts: list[DeliveryAttempt] = Field(description="the last 20")


class DeliveryMessage(Shape):
    """The request that an attempt sends."""

    object: Literal["webhook.message"]
    url: str
    headers: dict[str, str]
    body: str = Field(description="JSON, byte for byte as it is signed")


class DeliveryPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[DeliveryRecord]
    has_more: bool
    next_cursor: str | None


# -- share links


class ShareRecord(Shape):
    """A public link to the outputs of one job."""

    id: str
    object: Literal["share"]
    job_id: str
    include_input: bool = Field(description="whether its page shows the prompt, or the input picture")
    created_at: Moment
    expires_at: Moment = Field(description="when the link ends, at the latest with its job")


class ShareWithUrl(ShareRecord):
    """A share link with its address, which is shown only once."""

    url: str = Field(description="opens without a key until `expires_at`, or until the link is revoked")


class SharePage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[ShareRecord]
    has_more: bool
    next_cursor: str | None


class SharedOutput(Shape):
    """One output behind a share link."""

    kind: Kind
    role: Role
    content_type: str
    bytes: int
    width: int | None
    height: int | None
    duration_seconds: float | None
    fps: float | None
    faces: int | None
    vertices: int | None
    url: str
    sidecar_url: str | None = Field(description="the signed sidecar of a 3D model")


class SharedOutputs(Shape):
    """The outputs that a share link shows."""

    object: Literal["share.outputs"]
    model: str
    created_at: Moment
    expires_at: Moment
    prompt: str | None = Field(description="null unless the link includes the input")
    input_url: str | None = Field(description="the input picture; null unless the link includes the input")
    outputs: list[SharedOutput]
