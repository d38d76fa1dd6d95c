"""Inputs of any kind, and the lineage of jobs."""

from alembic import op
from sqlalchemy import Column, Float, Integer

from penstock.store.migrations.portable import Word, where

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the columns and the table. Older code may run beside: it takes pictures only."""
    op.add_column("files", Column("kind", Word, nullable=False, server_default="image"))
    op.add_column("files", Column("duration_seconds", Float))
    op.create_table(
        "lineage",
        Column("child_id", Word, primary_key=True),
        Column("path", Word, primary_key=True),
        Column("parent_id", Word, nullable=False),
        Column("asset_id", Word, nullable=False),
        Column("account_id", Word, nullable=False),
        Column("is_open", Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("lineage_by_parent", "lineage", ["parent_id", "child_id"])
    op.create_index("lineage_open", "lineage", ["parent_id"], **where("is_open = 1"))
    op.execute("INSERT INTO schema_support VALUES ('0013', '0005')")
