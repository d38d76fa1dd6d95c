"""The content log, and the accounts and keys that use it."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary

from penstock.store.migrations.portable import Word, change, where

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the tables and columns. Older code may run beside: it logs no content."""
    with change("accounts") as accounts:
        accounts.add_column(Column("content_log", Integer))
    with change("keys") as keys:
        keys.add_column(Column("content_log", Integer))
    op.create_table(
        "contents",
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
        Column("job_id", Word),
        Column("created_at", Float, nullable=False),
        Column("expires_at", Float, nullable=False),
        Column("seconds", Float),
        Column("prompt_tokens", BigInteger),
        Column("completion_tokens", BigInteger),
        Column("cost", BigInteger),
        Column("bytes", Integer, nullable=False),
        Column("sealed", LargeBinary, nullable=False),
    )
    op.create_index("contents_by_account", "contents", ["account_id", "id"])
    op.create_index("contents_by_job", "contents", ["job_id"], **where("job_id IS NOT NULL"))
    op.create_index("contents_expiring", "contents", ["expires_at"])
    op.create_index("contents_by_age", "contents", ["created_at"])
    op.create_table(
        "content_sums",
        Column("account_id", Word, primary_key=True),
        Column("bytes", BigInteger, nullable=False),
    )
    op.execute("INSERT INTO schema_support VALUES ('0025', '0005')")
