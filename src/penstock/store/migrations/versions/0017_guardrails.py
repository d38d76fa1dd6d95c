"""Findings of guardrails in usage records of chat."""

from alembic import op
from sqlalchemy import Column, Text

from penstock.store.migrations.portable import change

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the column. Older code may run beside: it has no guardrails, and leaves the column empty."""
    with change("completions") as completions:
        completions.add_column(Column("guardrails", Text))
    op.execute("INSERT INTO schema_support VALUES ('0017', '0005')")
