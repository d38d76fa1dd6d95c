"""Dated prices."""

from alembic import op
from sqlalchemy import Column, Float, Integer, LargeBinary, Text

from penstock.store.migrations.portable import Position, Word

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Create the table. Older code may run beside: it knows the prices of its settings only."""
    op.create_table(
        "prices",
        Column("position", Position, primary_key=True, autoincrement=True),
        Column("model", Word, nullable=False),
        Column("vendor", Word, nullable=False),
        Column("since", Float, nullable=False),
        Column("until", Float),
        Column("price", LargeBinary),
        Column("ends", Integer),
        Column("source", Text, nullable=False),
        Column("actor", Word, nullable=False),
        Column("created_at", Float, nullable=False),
        sqlite_autoincrement=True,
    )
    op.execute("INSERT INTO schema_support VALUES ('0022', '0005')")
