"""Share links."""

from alembic import op
from sqlalchemy import Column, Float, Integer

from penstock.store.migrations.portable import Word

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the table. Older code may run beside: links of a job that it deletes end by the job's own row."""
    op.create_table(
        "shares",
        Column("id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("job_id", Word, nullable=False),
        Column("token_hash", Word, nullable=False, unique=True),
        Column("include_input", Integer, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("expires_at", Float, nullable=False),
        Column("revoked_at", Float),
    )
    op.create_index("shares_by_account", "shares", ["account_id", "id"])
    op.create_index("shares_by_job", "shares", ["job_id"])
    op.create_index("shares_expiring", "shares", ["expires_at"])
    op.execute("INSERT INTO schema_support VALUES ('0010', '0005')")
