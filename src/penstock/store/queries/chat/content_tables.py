"""The tables of the content log: docs/decisions/0070."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, Table

from penstock.store.queries.billing.attribution_tables import metadata
from penstock.store.tables import Word, where

contents = Table(  # prompts and answers of accounts that have them logged
    "contents",
    metadata,
    Column("id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("key_id", Word, nullable=False),
    Column("request_id", Word, nullable=False),
    Column("kind", Word, nullable=False),
    Column("endpoint", Word, nullable=False),
    Column("model", Word, nullable=False),
    Column("vendor", Word, nullable=False),
    Column("upstream_model", Word, nullable=False),
    Column("streamed", Integer, nullable=False),
    Column("status", Word, nullable=False),
    Column("error", Word),
    Column("job_id", Word),  # set: removed with the job
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("seconds", Float),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("cost", BigInteger),
    Column("bytes", Integer, nullable=False),
    Column("sealed", LargeBinary, nullable=False),  # the messages, redacted and compressed
    Index("contents_by_account", "account_id", "id"),
    Index("contents_by_job", "job_id", **where("job_id IS NOT NULL")),
    Index("contents_expiring", "expires_at"),
    Index("contents_by_age", "created_at"),
)

content_sums = Table(  # bytes of each account in the content log
    "content_sums",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
)
