"""Reuse of results as a default of keys."""

from alembic import op
from sqlalchemy import Column

from penstock.store.migrations.portable import Word, change

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the column. Older code may run beside: it makes a new job for each request that does not ask for reuse."""
    with change("keys") as keys:
        keys.add_column(Column("reuse", Word))
    op.execute("INSERT INTO schema_support VALUES ('0016', '0005')")
