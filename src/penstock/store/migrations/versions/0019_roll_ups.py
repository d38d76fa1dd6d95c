"""Sums of removed ledger entries."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float

from penstock.store.migrations.portable import Word

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the tables. Older code may run beside, unless entries are removed: it would not count them in a new total."""
    op.create_table(
        "ledger_checkpoints",
        Column("account_id", Word, primary_key=True),
        Column("until", Float, primary_key=True),
        Column("created_at", Float, nullable=False),
        *(Column(name, BigInteger, nullable=False) for name in ("entries", "requests", "spent", "overrun")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "ledger_carried",
        Column("account_id", Word, primary_key=True),
        Column("lineage", Word, primary_key=True),
        *(Column(name, BigInteger, nullable=False) for name in ("entries", "spent", "overrun")),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO schema_support VALUES ('0019', '0005')")
