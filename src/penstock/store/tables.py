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

SCHEMA_VERSION = "0002"
"""The newest migration; a test holds it equal to the newest file in migrations/versions."""

metadata = MetaData()
Position = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts only INTEGER keys up by itself

accounts = Table(
    "accounts",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("created_at", Float, nullable=False),
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
    Index("jobs_open", "owner", "id", sqlite_where=text("done = 0")),
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
