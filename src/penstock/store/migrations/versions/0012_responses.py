"""Kept responses."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary

from penstock.store.migrations.portable import Word, where

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Create the tables. Older code may run beside: it neither reads nor writes them."""
    op.create_table(
        "responses",
        Column("account_id", Word, primary_key=True),
        Column("id", Word, primary_key=True),
        Column("created_at", Float, nullable=False),
        Column("expires_at", Float, nullable=False),
        Column("status", Word, nullable=False),
        Column("model", Word, nullable=False),
        Column("previous_id", Word),
        Column("is_background", Integer, nullable=False),
        Column("owner", Word),
        Column("lease_until", Float),
        Column("bytes", BigInteger, nullable=False),
        Column("input", LargeBinary, nullable=False),
        Column("body", LargeBinary, nullable=False),
    )
    op.create_index("responses_by_account", "responses", ["account_id", "expires_at", "bytes"])
    op.create_index("responses_expiring", "responses", ["expires_at"])
    op.create_index("responses_running", "responses", ["owner"], **where("owner IS NOT NULL"))
    op.create_table(
        "response_items",
        Column("account_id", Word, primary_key=True),
        Column("id", Word, primary_key=True),
        Column("response_id", Word, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("response_items_by_response", "response_items", ["account_id", "response_id"])
    op.execute("INSERT INTO schema_support VALUES ('0012', '0005')")
