"""Tags, end users and sessions of requests."""

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text

from penstock.store.migrations.portable import Word, change

revision = "0024"
down_revision = "0023"

SUMS = (
    *("requests", "failed", "prompt_tokens", "completion_tokens", "cached_tokens"),
    *("reasoning_tokens", "estimated", "unpriced", "cost"),
)


def upgrade() -> None:
    """Add columns and tables. Older code may run beside: its requests count as those without tags."""
    with change("keys") as keys:
        keys.add_column(Column("tags", Text))
    with change("completions") as completions:
        completions.add_column(Column("tags", Text))
        completions.add_column(Column("end_user", Text))
        completions.add_column(Column("session", Text))
    with change("ledger") as ledger:
        ledger.add_column(Column("tags", Text))
    op.create_table(
        "attribution_days",
        Column("account_id", Word, primary_key=True),
        *(Column(name, Word, primary_key=True) for name in ("dimension", "part")),
        Column("day", Integer, primary_key=True),
        *(Column(name, Word, primary_key=True) for name in ("value", "model", "vendor", "key_id", "kind")),
        *(Column(name, BigInteger, nullable=False) for name in SUMS[:5]),
        Column("cache_write_tokens", BigInteger, nullable=False, server_default="0"),
        *(Column(name, BigInteger, nullable=False) for name in SUMS[5:]),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "attribution_counts",
        Column("account_id", Word, primary_key=True),
        Column("dimension", Word, primary_key=True),
        Column("day", Integer, primary_key=True),
        Column("number", Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tag_carried",
        Column("owner", Word, primary_key=True),
        Column("spent", BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO schema_support VALUES ('0024', '0005')")
