"""Usage records of chat requests, and rate limits of keys."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer

from penstock.store.migrations.portable import Word, change

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table with its index, and add limits to keys."""
    with change("keys") as keys:  # SQLite would write the columns behind the rest
        keys.add_column(Column("requests_per_minute", Integer))
        keys.add_column(Column("tokens_per_minute", Integer))
    op.create_table(
        "completions",
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
        Column("reasoning_tokens", BigInteger, nullable=False),
        Column("estimated", Integer, nullable=False),
        Column("cost", BigInteger),
        Column("created_at", Float, nullable=False),
        Column("seconds", Float, nullable=False),
        Column("first_byte_seconds", Float),
    )
    op.create_index("completions_by_account", "completions", ["account_id", "id"])
