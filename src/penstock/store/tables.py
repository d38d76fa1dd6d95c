"""The tables: columns for what SQL asks for, one `document` for the rest of a job (docs/decisions/0004)."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

SCHEMA_VERSION = "0025"
"""The newest migration; a test holds it equal to the newest file in migrations/versions."""

metadata = MetaData()
Position: Final = BigInteger().with_variant(Integer, "sqlite")  # SQLite increments only INTEGER keys
Word: Final = String().with_variant(String(collation="C"), "postgresql")  # sorted by bytes, as in SQLite


def where(condition: str) -> dict[str, Any]:
    """Return the options of a partial index with this condition."""
    return {"sqlite_where": text(condition)}


@event.listens_for(metadata, "before_create")
def _add_postgresql_conditions(_: MetaData, connection: Connection, **_options: Any) -> None:
    """Give PostgreSQL the conditions of partial indexes. Earlier, this would load its whole dialect at every start."""
    if connection.dialect.name == "postgresql":
        for index in (index for table in metadata.tables.values() for index in table.indexes):
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]


accounts = Table(
    "accounts",
    metadata,
    Column("id", Word, primary_key=True),
    Column("name", Word, nullable=False, unique=True),
    Column("created_at", Float, nullable=False),
    Column("closed_at", Float),
    Column("requests_per_minute", Integer),
    Column("tokens_per_minute", Integer),
    Column("concurrent_jobs", Integer),
    Column("concurrent_streams", Integer),
    Column("content_log", Integer),  # 1: the content of its requests is logged
)

keys = Table(
    "keys",
    metadata,
    Column("public_id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("name", Word, nullable=False),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("models", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("revoked_at", Float),
    Column("requests_per_minute", Integer),
    Column("tokens_per_minute", Integer),
    Column("concurrent_jobs", Integer),
    Column("concurrent_streams", Integer),
    Column("lineage", Word, nullable=False),  # the first of the keys that replaced each other: they have common budgets
    Column("replaced_by", Word),
    Column("reuse", Word),  # "exact": its generations reuse kept results
    Column("person_id", Word),  # set: it belongs to a person, whose role in the account bounds it
    Column("is_console", Integer),  # 1: it counts what the person does in the console; nobody has its text
    Column("tags", Text),  # of all its requests, with line feeds between them
    Column("content_log", Integer),  # 1 or 0: whatever its account has
    Index("keys_by_account", "account_id"),
    Index("keys_by_person", "person_id", "account_id", **where("person_id IS NOT NULL")),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", Word, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

data_keys = Table(  # they seal secrets, and are sealed by a master key outside the store
    "data_keys",
    metadata,
    Column("id", Word, primary_key=True),
    Column("master", Word, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", Float, nullable=False),
)

settings_versions = Table(  # vendors and models that are not in the file: each change adds a row with all of them
    "settings_versions",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("created_at", Float, nullable=False),
    Column("actor", Word, nullable=False),
    Column("note", Text, nullable=False),
    Column("restored", Integer),  # the version that this one brought back
    Column("document", LargeBinary, nullable=False),
)

settings_secrets = Table(  # sealed values that documents refer to
    "settings_secrets",
    metadata,
    Column("id", Word, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at", Float, nullable=False),
)

settings_processes = Table(  # the version that each process uses
    "settings_processes",
    metadata,
    Column("process", Word, primary_key=True),
    Column("name", Word, nullable=False),  # the machine and the process, for display
    Column("version", Integer, nullable=False),
    Column("problem", Text),  # the reason why it does not use the newest version
    Column("renewed_at", Float, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("lineage", Word, nullable=False),  # of the key that requested it
    Column("model", Word, nullable=False),
    Column("vendor", Word, nullable=False),
    Column("state", Word, nullable=False),
    Column("done", Integer, nullable=False),
    Column("client_ref", Word),
    Column("batch_id", Word),
    Column("created_at", Float, nullable=False),
    Column("start_by", Float, nullable=False),
    Column("finished_at", Float),
    Column("expires_at", Float),
    Column("removed", Word),  # None, "deleted" or "expired": then the document is a tombstone
    Column("owner", Word),
    Column("epoch", Integer, nullable=False, default=0),
    Column("seated", Integer, nullable=False, server_default="0"),  # 1: it has one of its vendor's seats (PostgreSQL)
    Column(
        "deaths", Integer, nullable=False, server_default="0"
    ),  # of processes in a risky step of it (jobs/quarantine.py)
    Column("at_risk", Integer, nullable=False, server_default="0"),  # 1: in a risky step, 2: as the only one
    Column("document", LargeBinary, nullable=False),
    Index("jobs_by_account", "account_id", "id"),
    Index("jobs_by_state", "account_id", "state", "id"),
    Index("jobs_by_model", "account_id", "model", "id"),
    Index("jobs_by_client_ref", "account_id", "client_ref", "id", **where("client_ref IS NOT NULL")),
    Index("jobs_by_batch", "account_id", "batch_id", "id", **where("batch_id IS NOT NULL")),
    Index("jobs_free", "state", "account_id", "id", **where("done = 0 AND owner IS NULL")),
    Index("jobs_free_by_start", "start_by", **where("done = 0 AND owner IS NULL")),
    Index("jobs_open_by_account", "account_id", "state", **where("done = 0")),
    Index("jobs_open_by_key", "lineage", **where("done = 0")),
    Index("jobs_expiring", "expires_at", **where("removed IS NULL AND expires_at IS NOT NULL")),
    Index("jobs_finished", "model", "state", "finished_at"),
    # For claims: only on PostgreSQL several processes run jobs.
    Index("jobs_by_vendor", "vendor", "finished_at").ddl_if("postgresql"),
    Index("jobs_waiting", "vendor", "account_id", "id", **where("done = 0 AND owner IS NULL AND seated = 0")).ddl_if(
        "postgresql"
    ),
    Index("jobs_seated", "vendor", "account_id", **where("done = 0 AND seated = 1")).ddl_if("postgresql"),
    Index("jobs_orphaned", "id", **where("done = 0 AND owner IS NULL AND seated = 1")).ddl_if("postgresql"),
    Index("jobs_owned", "owner", **where("done = 0 AND owner IS NOT NULL")).ddl_if("postgresql"),
)

workers = Table(  # processes that run jobs: each has a lease of its own (PostgreSQL)
    "workers",
    metadata,
    Column("id", Word, primary_key=True),
    Column("name", Word, nullable=False),  # the machine and the process, for display
    Column("started_at", Float, nullable=False),  # by the database's clock, like the next
    Column("renewed_at", Float, nullable=False),
)

turns = Table(  # the account that last got a seat of a vendor: among equals, the next one follows (PostgreSQL)
    "turns",
    metadata,
    Column("vendor", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
)

chores = Table(  # periodic work that one process does for all, and until when it is taken
    "chores",
    metadata,
    Column("name", Word, primary_key=True),
    Column("until", Float, nullable=False),
)

schema_support = Table(  # which older code can use a store of a newer schema
    "schema_support",
    metadata,
    Column("version", Word, primary_key=True),
    Column("oldest", Word, nullable=False),  # the oldest schema whose code can use it
)

events = Table(
    "events",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("account_id", Word, nullable=False),
    Column("job_id", Word, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("type", Word, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("document", LargeBinary, nullable=False),  # the job as it was then
    UniqueConstraint("job_id", "sequence"),
    Index("events_by_account", "account_id", "position"),
    sqlite_autoincrement=True,
)

nudges = Table(  # vendors' callbacks that reached a server which does not run the job
    "nudges",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("job_id", Word, nullable=False),
    Column("created_at", Float, nullable=False),
    sqlite_autoincrement=True,
)

requests = Table(
    "requests",
    metadata,
    Column("id", Word, primary_key=True),  # the batch's or the only job's id
    Column("account_id", Word, nullable=False),
    Column("key_id", Word, nullable=False),
    Column("idempotency_key", Word),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("job_ids", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    UniqueConstraint("account_id", "idempotency_key"),
    Index("requests_by_body", "key_id", "fingerprint", "created_at"),
)

files = Table(
    "files",
    metadata,
    Column("token", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("sha256", Word, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("content_type", Word, nullable=False),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("job_id", Word),  # set: a job's own copy, removed with the job
    Column("name", Text),  # as the caller gave it
    Column("kind", Word, nullable=False, server_default="image"),
    Column("duration_seconds", Float),
    Index("files_by_content", "account_id", "sha256"),
    Index("files_by_job", "job_id"),
    Index("files_expiring", "expires_at", **where("expires_at IS NOT NULL")),
)

assets = Table(
    "assets",
    metadata,
    Column("id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("job_id", Word, nullable=False),
    Column("filename", Word, nullable=False),
    Column("content_type", Word, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", Word, nullable=False),
    Column("removed", Word),  # set: hidden
    Column("swept", Integer, nullable=False, server_default="0"),  # 1: the bytes are removed, too
    Index("assets_by_job", "job_id"),
    Index("assets_kept", "account_id", **where("swept = 0")),
    Index("assets_unswept", "job_id", **where("removed IS NOT NULL AND swept = 0")),
)

results = Table(  # what identifies a succeeded job's result, for exact reuse: docs/decisions/0060
    "results",
    metadata,
    Column("job_id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("digest", LargeBinary, nullable=False),  # of the route and the params without the seed
    Column("seed", Word),
    Index("results_by_digest", "account_id", "digest", "seed"),
    sqlite_with_rowid=False,
)

lineage = Table(  # outputs of earlier jobs that a job takes as inputs: docs/decisions/0047
    "lineage",
    metadata,
    Column("child_id", Word, primary_key=True),
    Column("path", Word, primary_key=True),  # of the param
    Column("parent_id", Word, nullable=False),
    Column("asset_id", Word, nullable=False),
    Column("account_id", Word, nullable=False),
    Column("is_open", Integer, nullable=False),  # 1: the child is not done, so that the bytes must stay
    Index("lineage_by_parent", "parent_id", "child_id"),
    Index("lineage_open", "parent_id", **where("is_open = 1")),
    sqlite_with_rowid=False,
)

pipelines = Table(  # jobs accepted together, which take each other's outputs: docs/decisions/0051
    "pipelines",
    metadata,
    Column("id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("done", Integer, nullable=False),
    Column("is_stopping", Integer, nullable=False),  # 1: none of its jobs may be ordered any more
    Column("advanced_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("removed", Word),  # None, "deleted" or "expired": then the document is a tombstone
    Column("document", LargeBinary, nullable=False),
    Index("pipelines_by_account", "account_id", "id"),
    Index("pipelines_open", "advanced_at", **where("done = 0")),
    Index("pipelines_expiring", "expires_at", **where("removed IS NULL AND expires_at IS NOT NULL")),
)

pipeline_templates = Table(
    "pipeline_templates",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("name", Word, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("created_at", Float, nullable=False),
    Column("document", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

storage = Table(  # bytes that each account keeps; a file's content counts once
    "storage",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("files", BigInteger, nullable=False),  # in bytes, like the next two
    Column("assets", BigInteger, nullable=False),
    Column("quota", BigInteger),  # None: the quota of the settings
)

shares = Table(  # public links to the outputs of jobs: docs/decisions/0043
    "shares",
    metadata,
    Column("id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("job_id", Word, nullable=False),
    Column("token_hash", Word, nullable=False, unique=True),  # the token itself is only in the link
    Column("include_input", Integer, nullable=False),  # 1: the page shows the prompt or the input picture
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("revoked_at", Float),
    Index("shares_by_account", "account_id", "id"),
    Index("shares_by_job", "job_id"),
    Index("shares_expiring", "expires_at"),
)

# -- search: docs/decisions/0041

search_words = Table(  # the words of each job, in the order in which a search reads them
    "search_words",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("word", Word, primary_key=True),
    Column("job_id", Word, primary_key=True),
    sqlite_with_rowid=False,
)

search_jobs = Table(  # all words of a job together, to remove them with it
    "search_jobs",
    metadata,
    Column("job_id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("words", Text, nullable=False),  # with a space between
    sqlite_with_rowid=False,
)

search_progress = Table(  # how far the event log is read: the jobs of later events have no words yet
    "search_progress",
    metadata,
    Column("name", Word, primary_key=True),
    Column("position", BigInteger, nullable=False),
)

completions = Table(
    "completions",
    metadata,
    Column("id", Word, primary_key=True),
    Column("request_id", Word, nullable=False),
    Column("account_id", Word, nullable=False),
    Column("key_id", Word, nullable=False),
    Column("model", Word, nullable=False),
    Column("vendor", Word, nullable=False),
    Column("upstream_model", Word, nullable=False),
    Column("streamed", Integer, nullable=False),
    Column("outcome", Word, nullable=False),
    Column("code", Word, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("cache_write_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cache_write_1h_tokens", BigInteger, nullable=False, server_default="0"),  # among the former
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("estimated", Integer, nullable=False),  # 1: the vendor did not report the tokens
    Column("cost", BigInteger),  # 10⁻⁹ USD
    Column("created_at", Float, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("first_byte_seconds", Float),
    Column("guardrails", Text),  # findings in JSON; null: none inspected it
    Column("tags", Text),  # as in the ledger
    Column("end_user", Text),
    Column("session", Text),
    Index("completions_by_account", "account_id", "id"),
)

# -- kept conversations: docs/decisions/0046

responses = Table(
    "responses",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("id", Word, primary_key=True),  # unique within the account only: it may be a vendor's
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),  # not before that of a response that continues it
    Column("status", Word, nullable=False),
    Column("model", Word, nullable=False),
    Column("previous_id", Word),
    Column("is_background", Integer, nullable=False),
    Column("owner", Word),  # set while it runs in the background: the process
    Column("lease_until", Float),  # the process has died if it did not renew it
    Column("bytes", BigInteger, nullable=False),  # of the next two
    Column("input", LargeBinary, nullable=False),  # the input items of its own request
    Column("body", LargeBinary, nullable=False),  # the response object
    Index("responses_by_account", "account_id", "expires_at", "bytes"),
    Index("responses_expiring", "expires_at"),
    Index("responses_running", "owner", **where("owner IS NOT NULL")),
)

response_items = Table(  # the output items of responses, for requests that refer to one by its id
    "response_items",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("id", Word, primary_key=True),
    Column("response_id", Word, nullable=False),
    Index("response_items_by_response", "account_id", "response_id"),
    sqlite_with_rowid=False,
)

# -- money: docs/decisions/0017

budgets = Table(
    "budgets",
    metadata,
    Column("owner", Word, primary_key=True),  # an account, or a lineage of keys
    Column("period", Word, primary_key=True),
    Column("cap", BigInteger, nullable=False),  # 10⁻⁹ USD, like every amount here
    Column("time_zone", Word, nullable=False),
    Column("created_at", Float, nullable=False),
)

purses = Table(  # the balance of a budget in one of its periods: follows from the ledger and the holds
    "purses",
    metadata,
    Column("owner", Word, primary_key=True),
    Column("period", Word, primary_key=True),
    Column("start", Float, primary_key=True),
    Column("ends", Float, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("most", BigInteger, nullable=False),  # the highest cap that it ever had
    Column("told", Integer, nullable=False),  # the highest percentage that was announced
)

holds = Table(  # amounts reserved in a balance: by a job, or leased by a process for the chat requests it serves
    "holds",
    metadata,
    Column("subject", Word, primary_key=True),  # the job, or the process
    Column("owner", Word, primary_key=True),
    Column("period", Word, primary_key=True),
    Column("start", Float, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("is_lease", Integer, nullable=False),
    Column("recalled", Integer, nullable=False),  # 1: another process needs the unused part
    Column("expires_at", Float),
    Index("holds_by_purse", "owner", "period", "start"),
    Index("holds_expiring", "expires_at", **where("expires_at IS NOT NULL")),
)

ledger = Table(  # append-only, until a roll-up removes the entries of ended subjects
    "ledger",
    metadata,
    Column("subject", Word, primary_key=True),  # a job or a completion
    Column("kind", Word, primary_key=True),  # hold, settle, release or refund: each once
    Column("account_id", Word, nullable=False),
    Column("key_id", Word, nullable=False),
    Column("lineage", Word, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("overrun", BigInteger, nullable=False),  # the cost beyond the budget, not charged
    Column("at", Float, nullable=False),  # when the subject was accepted: decides the period
    Column("created_at", Float, nullable=False),
    Column("note", Text, nullable=False),
    Column("tags", Text),  # with a line feed before and after each
    Index("ledger_by_account", "account_id", "at"),
    sqlite_with_rowid=False,
)

ledger_checkpoints = Table(  # removed entries of an account, summed up: docs/decisions/0066
    "ledger_checkpoints",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("until", Float, primary_key=True),  # the subjects were accepted before
    Column("created_at", Float, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("requests", BigInteger, nullable=False),  # usage records removed with them, also those without a cost
    Column("spent", BigInteger, nullable=False),  # settled less refunded
    Column("overrun", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

ledger_carried = Table(  # what all removed entries of a lineage come to: part of its `total` budgets
    "ledger_carried",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("lineage", Word, primary_key=True),
    Column("entries", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("overrun", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

buckets = Table(  # rate limits: the level at a moment
    "buckets",
    metadata,
    Column("owner", Word, primary_key=True),
    Column("kind", Word, primary_key=True),  # requests or tokens
    Column("level", Float, nullable=False),
    Column("at", Float, nullable=False),
)

slots = Table(  # an owner's parallel streams that a process may have open
    "slots",
    metadata,
    Column("owner", Word, primary_key=True),
    Column("process", Word, primary_key=True),
    Column("amount", Integer, nullable=False),
    Column("expires_at", Float, nullable=False),
)


def sum_columns() -> list[Column[int]]:
    """Return the columns of a usage sum."""
    return [
        Column("requests", BigInteger, nullable=False),
        Column("failed", BigInteger, nullable=False),
        Column("prompt_tokens", BigInteger, nullable=False),
        Column("completion_tokens", BigInteger, nullable=False),
        Column("cached_tokens", BigInteger, nullable=False),
        Column("cache_write_tokens", BigInteger, nullable=False, server_default="0"),
        Column("reasoning_tokens", BigInteger, nullable=False),
        Column("estimated", BigInteger, nullable=False),  # requests whose tokens were estimated
        Column("unpriced", BigInteger, nullable=False),  # requests of unknown price
        Column("cost", BigInteger, nullable=False),
    ]


usage_days = Table(  # usage sums, updated with every record
    "usage_days",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("day", Integer, primary_key=True),  # since 1970-01-01, UTC
    Column("model", Word, primary_key=True),
    Column("vendor", Word, primary_key=True),
    Column("key_id", Word, primary_key=True),
    Column("kind", Word, primary_key=True),  # chat or job
    *sum_columns(),
    sqlite_with_rowid=False,
)

usage_model_days = Table(  # usage sums without keys; the next has no models: far fewer rows for a year
    "usage_model_days",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("model", Word, primary_key=True),
    Column("vendor", Word, primary_key=True),
    Column("kind", Word, primary_key=True),
    *sum_columns(),
    sqlite_with_rowid=False,
)

usage_key_days = Table(
    "usage_key_days",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("key_id", Word, primary_key=True),
    Column("kind", Word, primary_key=True),
    *sum_columns(),
    sqlite_with_rowid=False,
)

audit = Table(  # append-only: administrative changes of accounts, keys, budgets and the ledger
    "audit",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("created_at", Float, nullable=False),
    Column("actor", Word, nullable=False),
    Column("action", Word, nullable=False),
    Column("subject", Word, nullable=False),
    Column("account_id", Word),
    Column("detail", LargeBinary, nullable=False),
    Index("audit_by_account", "account_id", "position"),
    sqlite_autoincrement=True,
)

prices = Table(  # rows are only added: the greatest position is their version
    "prices",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("model", Word, nullable=False),
    Column("vendor", Word, nullable=False),
    Column("since", Float, nullable=False),
    Column("until", Float),
    Column("price", LargeBinary),  # NULL: the row ends another
    Column("ends", Integer),  # the position of the row that ends at `since`
    Column("source", Text, nullable=False),
    Column("actor", Word, nullable=False),
    Column("created_at", Float, nullable=False),
    sqlite_autoincrement=True,
)

# -- webhooks: endpoints, and the outbox of what is sent to them

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("url", Text),  # NULL: the account's secret for its jobs' own webhooks
    Column("host", Word, nullable=False),
    Column("events", Text, nullable=False),  # with a space before and after each
    Column("description", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("former_secret", Text),
    Column("former_until", Float),
    Column("created_at", Float, nullable=False),
    Column("disabled_at", Float),
    Column("disabled_reason", Word),
    Column("failing_since", Float),
    Index("webhooks_by_account", "account_id", "id"),
)

deliveries = Table(  # the outbox: written with the event
    "deliveries",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("webhook_id", Word, nullable=False),
    Column("account_id", Word, nullable=False),
    Column("subject", Word, nullable=False),  # with the sequence, the event; a ping has an id of its own
    Column("sequence", Integer, nullable=False),
    Column("type", Word, nullable=False),
    Column("url", Text),  # NULL: the webhook's
    Column("host", Word, nullable=False, key="lane"),  # older code wrote the host there
    Column("status", Word, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due_at", Float),  # pending: when it is sent, or released from a dead process
    Column("lease", Word),  # set: a process is sending it
    Column("created_at", Float, nullable=False),
    Column("finished_at", Float),
    Column("attempts", LargeBinary, nullable=False),
    Index("deliveries_due", "due_at", **where("status = 'pending'")),
    Index("deliveries_by_lane", "lane", "due_at", "position", **where("status = 'pending'")),
    Index("deliveries_untried", "subject", "webhook_id", "sequence", **where("status = 'pending' AND tries = 0")),
    Index("deliveries_by_webhook", "webhook_id", "position"),
    Index("deliveries_by_account", "account_id", "position"),
    Index("deliveries_by_status", "account_id", "status", "position"),
    Index("deliveries_by_subject", "subject", "webhook_id", "sequence"),
    Index("deliveries_finished", "finished_at", **where("finished_at IS NOT NULL")),
    sqlite_autoincrement=True,
)
