"""Indexes that find due deliveries past those of endpoints that hang."""

from alembic import op

from penstock.store.migrations.portable import where

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the indexes. Older code still works: it reads `host` as before, which only groups deliveries."""
    pending = "status = 'pending'"
    op.create_index("deliveries_by_lane", "deliveries", ["host", "due_at", "position"], **where(pending))
    columns = ["subject", "webhook_id", "sequence"]
    op.create_index("deliveries_untried", "deliveries", columns, **where(f"{pending} AND tries = 0"))
    op.execute("INSERT INTO schema_support VALUES ('0007', '0005')")
