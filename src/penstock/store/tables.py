"""The tables: columns for what SQL asks for, one `document` for the rest of a job (docs/decisions/0004)."""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

SCHEMA_VERSION = "0003"
"""The newest migration; a test holds it equal to the newest file in migrations/versions."""

metadata = MetaData()
Position = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts only INTEGER keys up by itself

accounts = Table(
    "accounts",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("created_at", Float, nullable=False),
    Column("closed_at", Float),
    Column("requests_per_minute", Integer),
    Column("tokens_per_minute", Integer),
    Column("concurrent_jobs", Integer),
    Column("concurrent_streams", Integer),
)

keys = Table(
    "keys",
    metadata,
    Column("public_id", String, primary_key=True),
    Column("account_id", String, nullable=False),
    Column("name", String, nullable=False),
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
    Column("lineage", String, nullable=False),  # the first of the keys that replaced each other: they share one budget
    Column("replaced_by", String),
    Index("keys_by_account", "account_id"),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", String, nullable=False),
    Column("lineage", String, nullable=False),  # of the key that asked for it
    Column("model", String, nullable=False),
    Column("vendor", String, nullable=False),
    Column("state", String, nullable=False),
    Column("done", Integer, nullable=False),
    Column("client_ref", String),
    Column("batch_id", String),
    Column("created_at", Float, nullable=False),
    Column("start_by", Float, nullable=False),
    Column("finished_at", Float),
    Column("expires_at", Float),
    Column("removed", String),  # None, "deleted" or "expired": then the document holds only what is left
    Column("owner", String),
    Column("epoch", Integer, nullable=False, default=0),
    Column("document", LargeBinary, nullable=False),
    Index("jobs_by_account", "account_id", "id"),
    Index("jobs_by_state", "account_id", "state", "id"),
    Index("jobs_by_model", "account_id", "model", "id"),
    Index("jobs_by_client_ref", "account_id", "client_ref", "id", sqlite_where=text("client_ref IS NOT NULL")),
    Index("jobs_by_batch", "account_id", "batch_id", "id", sqlite_where=text("batch_id IS NOT NULL")),
    Index("jobs_free", "state", "account_id", "id", sqlite_where=text("done = 0 AND owner IS NULL")),
    Index("jobs_free_by_start", "start_by", sqlite_where=text("done = 0 AND owner IS NULL")),
    Index("jobs_open_by_account", "account_id", "state", sqlite_where=text("done = 0")),
    Index("jobs_open_by_key", "lineage", sqlite_where=text("done = 0")),
    Index("jobs_expiring", "expires_at", sqlite_where=text("removed IS NULL AND expires_at IS NOT NULL")),
    Index("jobs_finished", "model", "state", "finished_at"),
)

events = Table(
    "events",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("account_id", String, nullable=False),
    Column("job_id", String, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("type", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("document", LargeBinary, nullable=False),  # the job as it was then
    UniqueConstraint("job_id", "sequence"),
    Index("events_by_account", "account_id", "position"),
    sqlite_autoincrement=True,
)

nudges = Table(  # vendors' calls back that reached a server which does not run the job
    "nudges",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("job_id", String, nullable=False),
    Column("created_at", Float, nullable=False),
    sqlite_autoincrement=True,
)

requests = Table(
    "requests",
    metadata,
    Column("id", String, primary_key=True),  # the batch's or the only job's id
    Column("account_id", String, nullable=False),
    Column("key_id", String, nullable=False),
    Column("idempotency_key", String),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("job_ids", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    UniqueConstraint("account_id", "idempotency_key"),
    Index("requests_by_body", "key_id", "fingerprint", "created_at"),
)

files = Table(
    "files",
    metadata,
    Column("token", String, primary_key=True),
    Column("account_id", String, nullable=False),
    Column("sha256", String, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("content_type", String, nullable=False),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("job_id", String),  # set: a job's own snapshot, removed with the job
    Index("files_by_content", "account_id", "sha256"),
    Index("files_by_job", "job_id"),
    Index("files_expiring", "expires_at", sqlite_where=text("expires_at IS NOT NULL")),
)

assets = Table(
    "assets",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", String, nullable=False),
    Column("job_id", String, nullable=False),
    Column("filename", String, nullable=False),
    Column("content_type", String, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", String, nullable=False),
    Column("removed", String),  # set: out of sight
    Column("swept", Integer, nullable=False, server_default="0"),  # 1: the bytes are gone too
    Index("assets_by_job", "job_id"),
    Index("assets_unswept", "job_id", sqlite_where=text("removed IS NOT NULL AND swept = 0")),
)

completions = Table(
    "completions",
    metadata,
    Column("id", String, primary_key=True),
    Column("request_id", String, nullable=False),
    Column("account_id", String, nullable=False),
    Column("key_id", String, nullable=False),
    Column("model", String, nullable=False),
    Column("vendor", String, nullable=False),
    Column("upstream_model", String, nullable=False),
    Column("streamed", Integer, nullable=False),
    Column("outcome", String, nullable=False),
    Column("code", String, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("estimated", Integer, nullable=False),  # 1: the vendor did not tell the tokens
    Column("cost", BigInteger),  # 10⁻⁹ USD
    Column("created_at", Float, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("first_byte_seconds", Float),
    Index("completions_by_account", "account_id", "id"),
)

# -- money: docs/decisions/0017

budgets = Table(
    "budgets",
    metadata,
    Column("owner", String, primary_key=True),  # an account, or a lineage of keys
    Column("period", String, primary_key=True),
    Column("cap", BigInteger, nullable=False),  # 10⁻⁹ USD, as every amount here
    Column("time_zone", String, nullable=False),
    Column("created_at", Float, nullable=False),
)

purses = Table(  # one period of one budget; what it says follows from the ledger and the holds
    "purses",
    metadata,
    Column("owner", String, primary_key=True),
    Column("period", String, primary_key=True),
    Column("start", Float, primary_key=True),
    Column("ends", Float, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("held", BigInteger, nullable=False),
    Column("most", BigInteger, nullable=False),  # the highest cap that it was ever held to
    Column("told", Integer, nullable=False),  # the highest share, in percent, that was announced
)

holds = Table(  # what is reserved in a purse: by a job, or by a process for the chat requests it serves
    "holds",
    metadata,
    Column("subject", String, primary_key=True),  # the job, or the process
    Column("owner", String, primary_key=True),
    Column("period", String, primary_key=True),
    Column("start", Float, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("is_lease", Integer, nullable=False),
    Column("recalled", Integer, nullable=False),  # 1: another process needs what is not used
    Column("expires_at", Float),
    Index("holds_by_purse", "owner", "period", "start"),
    Index("holds_expiring", "expires_at", sqlite_where=text("expires_at IS NOT NULL")),
)

ledger = Table(  # append-only: nothing in it is ever changed
    "ledger",
    metadata,
    Column("subject", String, primary_key=True),  # a job or a completion
    Column("kind", String, primary_key=True),  # hold, settle, release or refund: each once
    Column("account_id", String, nullable=False),
    Column("key_id", String, nullable=False),
    Column("lineage", String, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("overrun", BigInteger, nullable=False),  # what it cost beyond what the budget could bear: not charged
    Column("at", Float, nullable=False),  # when the subject was accepted: whose period it belongs to
    Column("created_at", Float, nullable=False),
    Column("note", Text, nullable=False),
    Index("ledger_by_account", "account_id", "at"),
    sqlite_with_rowid=False,
)

buckets = Table(  # rate limits: what is left of this minute's, as of a moment
    "buckets",
    metadata,
    Column("owner", String, primary_key=True),
    Column("kind", String, primary_key=True),  # requests or tokens
    Column("level", Float, nullable=False),
    Column("at", Float, nullable=False),
)

slots = Table(  # how many of an owner's parallel streams a process may have open
    "slots",
    metadata,
    Column("owner", String, primary_key=True),
    Column("process", String, primary_key=True),
    Column("amount", Integer, nullable=False),
    Column("expires_at", Float, nullable=False),
)


def _sums() -> list[Column[int]]:
    """What is counted of what was used."""
    return [
        Column("requests", BigInteger, nullable=False),
        Column("failed", BigInteger, nullable=False),
        Column("prompt_tokens", BigInteger, nullable=False),
        Column("completion_tokens", BigInteger, nullable=False),
        Column("cached_tokens", BigInteger, nullable=False),
        Column("reasoning_tokens", BigInteger, nullable=False),
        Column("estimated", BigInteger, nullable=False),  # how many whose tokens were estimated
        Column("unpriced", BigInteger, nullable=False),  # how many whose price is not known
        Column("cost", BigInteger, nullable=False),
    ]


usage_days = Table(  # sums of what was used, kept up to date with every record
    "usage_days",
    metadata,
    Column("account_id", String, primary_key=True),
    Column("day", Integer, primary_key=True),  # since 1970-01-01, UTC
    Column("model", String, primary_key=True),
    Column("vendor", String, primary_key=True),
    Column("key_id", String, primary_key=True),
    Column("kind", String, primary_key=True),  # chat or job
    *_sums(),
    sqlite_with_rowid=False,
)

usage_model_days = Table(  # the same without keys, and below without models: far fewer rows for a year
    "usage_model_days",
    metadata,
    Column("account_id", String, primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("model", String, primary_key=True),
    Column("vendor", String, primary_key=True),
    Column("kind", String, primary_key=True),
    *_sums(),
    sqlite_with_rowid=False,
)

usage_key_days = Table(
    "usage_key_days",
    metadata,
    Column("account_id", String, primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("key_id", String, primary_key=True),
    Column("kind", String, primary_key=True),
    *_sums(),
    sqlite_with_rowid=False,
)

audit = Table(  # append-only: every change of an account, a key, a budget or the ledger that someone made
    "audit",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("created_at", Float, nullable=False),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("account_id", String),
    Column("detail", LargeBinary, nullable=False),
    Index("audit_by_account", "account_id", "position"),
    sqlite_autoincrement=True,
)
