"""Schemas of the answers of admin endpoints, for the OpenAPI document."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from penstock.domain.accounts import Action
from penstock.domain.api_keys import Scope
from penstock.web.openapi.schemas import BudgetShape, Moment, Shape, StorageShape


class LimitsShape(Shape):
    """Limits per minute and on concurrency. Null: no limit."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent_jobs: int | None
    concurrent_streams: int | None


class AccountRecord(Shape):
    """The owner of jobs, results and keys."""

    object: Literal["account"]
    id: str
    name: str
    created_at: Moment
    closed_at: Moment | None = Field(description="when the account was closed; its keys are refused since then")
    limits: LimitsShape = Field(description="of all its keys together")
    budgets: list[BudgetShape]
    tag_budgets: list[BudgetShape] = Field(description="those of its tags, by tag and period")
    keys: int = Field(description="how many of its keys are neither revoked nor expired")
    storage: StorageShape = Field(description="`quota` is null if that of the settings applies")
    content_log: bool = Field(description="true: prompts and answers of its keys are logged, if the settings allow it")


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
    lineage: str = Field(description="the first of the keys that replaced each other; they share limits and budgets")
    replaced_by: str | None
    reuse: Literal["exact"] | None = Field(description="exact: its generations reuse kept results by default")
    tags: list[str] = Field(description="tags of all its requests, which callers cannot remove")
    content_log: bool | None = Field(description="whether its prompts and answers are logged; null: as its account")
    logs_content: bool = Field(description="true: they are logged, by the key or its account, if the settings allow it")
    person_id: str | None = Field(description="the person it belongs to; null for a service key")
    limits: LimitsShape
    budgets: list[BudgetShape] = Field(description="its own; its account may have others")


class IssuedKey(KeyRecord):
    """A new key. Its text is shown only once."""

    key: str


class TagBudgetList(Shape):
    """The budgets of an account's tags, by tag and period."""

    object: Literal["list"]
    data: list[BudgetShape]


class AccountPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[AccountRecord]
    has_more: bool
    next_cursor: str | None


class KeyPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[KeyRecord]
    has_more: bool
    next_cursor: str | None


class AuditRecord(Shape):
    """One change that someone made."""

    object: Literal["audit_entry"]
    id: str
    created_at: Moment
    actor: str = Field(
        description="`admin`: with the administrator's key; `cli`: on the command line; `server`: by itself; or a "
        "person's id"
    )
    action: Action
    subject: str = Field(description="the account, key, person, job or completion")
    account_id: str | None
    detail: dict[str, Any] = Field(description="the values before and after; never a secret")


class AuditPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[AuditRecord]
    has_more: bool
    next_cursor: str | None


class PriceTermShape(Shape):
    """A price, its origin and its period."""

    price: dict[str, Any] | None = Field(description="as the settings write it; null: not known")
    origin: Literal["file", "row", "vendor"] | None = Field(
        description="file: the settings declare it; row: a price of the store; vendor: the vendor's own file"
    )
    since: Moment | None = Field(description="null: it always was")
    until: Moment | None = Field(description="null: it never ends")
    row: int | None = Field(description="the id of the price in the store")


class ComingPrice(PriceTermShape):
    """A price to come."""

    from_: Moment = Field(alias="from")


class PlacePrice(PriceTermShape):
    """The price of a model at a vendor."""

    object: Literal["price"]
    model: str
    kind: str
    vendor: str
    provider: str | None = Field(description="the vendor's name in price lists, by the host of its address")
    coming: list[ComingPrice]


class PriceRowShape(Shape):
    """A dated price of the store."""

    object: Literal["price_row"]
    id: int
    model: str
    vendor: str
    from_: Moment = Field(alias="from")
    until: Moment | None
    status: Literal["in_force", "coming", "ended"] = Field(description="in_force: unless the settings declare another")
    price: dict[str, Any]
    source: str
    actor: str
    created_at: Moment


class PriceBook(Shape):
    """All prices."""

    object: Literal["price_book"]
    version: int = Field(description="every change raises it")
    prices: list[PlacePrice]
    rows: list[PriceRowShape] = Field(description="the newest prices of the store, at most 500")


class PricePart(Shape):
    """The change of one part of a price, in decimal strings of USD."""

    name: str
    old: str | None
    new: str | None
    percent: float | None


class PriceFinding(Shape):
    """One price of a list, or the reason that there is none."""

    model: str
    vendor: str
    verdict: Literal["new", "changed", "same", "declared", "ambiguous", "credits", "unusable", "unlisted", "unmapped"]
    why: str
    entry: str = Field(description="the entry of the list")
    from_: Moment | None = Field(alias="from")
    until: Moment | None
    origin: Literal["file", "row", "vendor"] | None = Field(description="of the old price")
    old: dict[str, Any] | None
    new: dict[str, Any] | None
    parts: list[PricePart]
    left_out: list[str] = Field(description="costs of the list for which a price has no place here")
    source: str


class PricePreview(Shape):
    """The differences between a list and the prices in force."""

    object: Literal["price_preview"]
    version: int = Field(description="send it with the prices that you write")
    form: Literal["litellm", "openrouter", "penstock"]
    source: str
    findings: list[PriceFinding]


class LedgerEntry(Shape):
    """One line of the ledger, which is never changed; amounts are decimal strings of USD."""

    object: Literal["ledger_entry"]
    subject: str = Field(description="the job or the chat request")
    kind: Literal["hold", "settle", "release", "refund"]
    amount: str
    overrun: str = Field(description="cost beyond the budgets, which is not charged")
    currency: Literal["USD"]
    account_id: str
    key: str = Field(description="the public id of the key of the request")
    accepted_at: Moment = Field(description="when the subject was accepted; this decides its budget period")
    created_at: Moment
    note: str
    tags: list[str]


class LedgerPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[LedgerEntry]
    has_more: bool
    next_cursor: str | None


class RouteError(Shape):
    """The last failure of a route since this process started or its settings changed."""

    code: str | None
    message: str


class RouteHealth(Shape):
    """Health of a chat route in the process that answers."""

    state: Literal["open", "resting", "probing"]
    failures: int = Field(description="in a row")
    rests_seconds: float = Field(description="seconds until it is used again")
    last_error: RouteError | None


class RouteShape(Shape):
    """One way to run a model."""

    model: str
    upstream_model: str = Field(description="the vendor's own name of the model")
    order: int
    weight: float
    health: RouteHealth | None = Field(description="null for routes of jobs")


class VendorError(Shape):
    """The error of the vendor's latest failed job."""

    at: Moment
    model: str
    code: str
    message: str


class VendorRecord(Shape):
    """A vendor, which runs models."""

    object: Literal["vendor"]
    name: str
    type: str
    kind: Literal["chat", "media"]
    models: list[str]
    max_concurrent: int
    jobs_queued: int
    jobs_running: int
    routes: list[RouteShape]
    last_error: VendorError | None = Field(description="of jobs that are still stored; for chat see `routes`")


class VendorList(Shape):
    """Every vendor that is configured or serves a model."""

    object: Literal["list"]
    data: list[VendorRecord]


class VendorTypeModel(Shape):
    """A model that vendors of a type run."""

    id: str
    kind: str
    title: str


class VendorType(Shape):
    """A type of vendors, as its own file describes it."""

    object: Literal["vendor_type"]
    type: str
    title: str
    about: str
    kind: Literal["chat", "media"]
    kinds: list[str] = Field(description="kinds of models that it runs")
    built_in: bool = Field(description="true: it runs inside Penstock and needs no account")
    declares: bool = Field(description="true: the settings may declare any other of its models")
    secrets: list[str] = Field(description="options that are write-only")
    models: list[VendorTypeModel] = Field(description="its own models; for chat any name may be used")
    options: dict[str, Any] = Field(description="its options as JSON Schema, without `type`")


class VendorTypeList(Shape):
    """All types of vendors."""

    object: Literal["list"]
    data: list[VendorType]


class SettingsEntry(Shape):
    """A vendor or a model of the settings."""

    name: str
    origin: Literal["file", "run_time"] = Field(description="`file`: it can be changed in the settings file only")
    enabled: bool
    shadowed: bool = Field(description="true: the file has an entry of this name, which is used instead")
    options: dict[str, Any] = Field(description='its table; a secret is `{"$secret": "kept"}`')


class SettingsLimit(Shape):
    """A limit that can be changed while servers run."""

    name: str = Field(description="the dotted name of the setting, such as `jobs.max_waiting`")
    origin: Literal["file", "run_time", "default"]
    value: float | None = Field(description="the value in use, a time in seconds; null: forever")
    default: float | None
    run_time: Any = Field(description="the value of the run-time settings; null if there is none")
    shadowed: bool = Field(description="true: the file sets this limit, so the value of the run-time settings waits")
    description: str


class SettingsProcessRecord(Shape):
    """A server or worker, and the version that it uses."""

    name: str
    version: int
    problem: str | None = Field(description="the reason why it does not use the newest version")
    seen_at: Moment


class RunTimeSettings(Shape):
    """Vendors and models, and where they are set."""

    object: Literal["run_time_settings"]
    version: int = Field(description="the newest version; 0: nothing was changed yet")
    vendors: list[SettingsEntry]
    models: list[SettingsEntry]
    limits: list[SettingsLimit]
    lists_models: bool = Field(description="true: the file lists the models; false: each vendor offers all of its own")
    processes: list[SettingsProcessRecord]


class SettingsDifference(Shape):
    """One changed option. Secrets are shown as `(secret)`."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    path: str
    change: Literal["added", "changed", "removed"]
    before: Any = None
    after: Any = None


class SettingsChange(Shape):
    """A change of the run-time settings."""

    object: Literal["settings_change"]
    version: int = Field(description="the new version; of a dry run the newest")
    dry_run: bool
    changes: list[SettingsDifference]


class SettingsVersionRecord(Shape):
    """A version of the run-time settings."""

    object: Literal["settings_version"]
    version: int
    created_at: Moment
    actor: str
    note: str
    restored: int | None = Field(description="the version that this one brought back")


class SettingsVersionDetail(SettingsVersionRecord):
    """A version with all it holds, and what it changed of the one before."""

    vendors: dict[str, Any]
    models: dict[str, Any]
    limits: dict[str, Any]
    changes: list[SettingsDifference]


class SettingsVersionPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[SettingsVersionRecord]
    has_more: bool
    next_cursor: str | None


class ConnectionTestResult(Shape):
    """The result of a cheap call to a vendor."""

    object: Literal["connection_test"]
    ok: bool
    outcome: Literal["ok", "reachable", "key_refused", "unreachable", "not_allowed", "unexpected", "inside"]
    message: str
    seconds: float
    models: list[str] = Field(description="the models that the vendor lists, where that is known")
