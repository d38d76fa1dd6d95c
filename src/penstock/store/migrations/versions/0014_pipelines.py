"""Pipelines and their templates."""

from alembic import op
from sqlalchemy import Column, Float, Integer, LargeBinary

from penstock.store.migrations.portable import Word, where

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the tables. Older code may run beside: it never claims a waiting job, and a sweep frees what it ends."""
    op.create_table(
        "pipelines",
        Column("id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("done", Integer, nullable=False),
        Column("is_stopping", Integer, nullable=False),
        Column("advanced_at", Float, nullable=False),
        Column("expires_at", Float),
        Column("removed", Word),
        Column("document", LargeBinary, nullable=False),
    )
    op.create_index("pipelines_by_account", "pipelines", ["account_id", "id"])
    op.create_index("pipelines_open", "pipelines", ["advanced_at"], **where("done = 0"))
    expiring = where("removed IS NULL AND expires_at IS NOT NULL")
    op.create_index("pipelines_expiring", "pipelines", ["expires_at"], **expiring)
    op.create_table(
        "pipeline_templates",
        Column("account_id", Word, primary_key=True),
        Column("name", Word, primary_key=True),
        Column("version", Integer, primary_key=True),
        Column("created_at", Float, nullable=False),
        Column("document", LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO schema_support VALUES ('0014', '0005')")
