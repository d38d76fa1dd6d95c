"""Webhooks and their deliveries."""

from alembic import op
from sqlalchemy import Column, Float, Integer, LargeBinary, Text

from penstock.store.migrations.portable import Position, Word, where

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the tables. Older code cannot use this store, as it would send nothing."""
    _create_webhooks()
    _create_deliveries()
    op.execute("INSERT INTO schema_support VALUES ('0005', '0005')")


def _create_webhooks() -> None:
    op.create_table(
        "webhooks",
        Column("id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("url", Text),
        Column("host", Word, nullable=False),
        Column("events", Text, nullable=False),
        Column("description", Text, nullable=False),
        Column("base_url", Text, nullable=False),
        Column("secret", Text, nullable=False),
        Column("former_secret", Text),
        Column("former_until", Float),
        Column("created_at", Float, nullable=False),
        Column("disabled_at", Float),
        Column("disabled_reason", Word),
        Column("failing_since", Float),
    )
    op.create_index("webhooks_by_account", "webhooks", ["account_id", "id"])


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        Column("position", Position, primary_key=True, autoincrement=True),
        Column("webhook_id", Word, nullable=False),
        Column("account_id", Word, nullable=False),
        Column("subject", Word, nullable=False),
        Column("sequence", Integer, nullable=False),
        Column("type", Word, nullable=False),
        Column("url", Text),
        Column("host", Word, nullable=False),
        Column("status", Word, nullable=False),
        Column("tries", Integer, nullable=False),
        Column("due_at", Float),
        Column("lease", Word),
        Column("created_at", Float, nullable=False),
        Column("finished_at", Float),
        Column("attempts", LargeBinary, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("deliveries_due", "deliveries", ["due_at"], **where("status = 'pending'"))
    op.create_index("deliveries_by_webhook", "deliveries", ["webhook_id", "position"])
    op.create_index("deliveries_by_account", "deliveries", ["account_id", "position"])
    op.create_index("deliveries_by_status", "deliveries", ["account_id", "status", "position"])
    op.create_index("deliveries_by_subject", "deliveries", ["subject", "webhook_id", "sequence"])
    op.create_index("deliveries_finished", "deliveries", ["finished_at"], **where("finished_at IS NOT NULL"))
