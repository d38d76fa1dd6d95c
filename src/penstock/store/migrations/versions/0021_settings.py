"""Run-time settings: versions, their secrets, and the version that each process uses."""

from alembic import op
from sqlalchemy import Column, Float, Integer, LargeBinary, Text

from penstock.store.migrations.portable import Word

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the tables. Older code may run beside: it uses its file alone."""
    op.create_table(
        "settings_versions",
        Column("version", Integer, primary_key=True, autoincrement=False),
        Column("created_at", Float, nullable=False),
        Column("actor", Word, nullable=False),
        Column("note", Text, nullable=False),
        Column("restored", Integer),
        Column("document", LargeBinary, nullable=False),
    )
    op.create_table(
        "settings_secrets",
        Column("id", Word, primary_key=True),
        Column("sealed", LargeBinary, nullable=False),
        Column("created_at", Float, nullable=False),
    )
    op.create_table(
        "settings_processes",
        Column("process", Word, primary_key=True),
        Column("name", Word, nullable=False),
        Column("version", Integer, nullable=False),
        Column("problem", Text),
        Column("renewed_at", Float, nullable=False),
    )
    op.execute("INSERT INTO schema_support VALUES ('0021', '0005')")
