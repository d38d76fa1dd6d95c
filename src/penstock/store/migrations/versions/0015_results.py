"""Marks of results, for exact reuse."""

from alembic import op
from sqlalchemy import Column, LargeBinary

from penstock.store.migrations.portable import Word

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the table. Older code may run beside: its results are not found, and what it removes is not found either."""
    op.create_table(
        "results",
        Column("job_id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("seed", Word),
        sqlite_with_rowid=False,
    )
    op.create_index("results_by_digest", "results", ["account_id", "digest", "seed"])
    op.execute("INSERT INTO schema_support VALUES ('0015', '0005')")
