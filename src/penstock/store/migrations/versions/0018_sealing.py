"""Keys that seal secrets."""

from alembic import op
from sqlalchemy import Column, Float, LargeBinary

from penstock.store.migrations.portable import Word

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the table. Older code may run beside: it seals nothing."""
    op.create_table(
        "data_keys",
        Column("id", Word, primary_key=True),
        Column("master", Word, nullable=False),
        Column("sealed", LargeBinary, nullable=False),
        Column("created_at", Float, nullable=False),
    )
    op.execute("INSERT INTO schema_support VALUES ('0018', '0005')")
