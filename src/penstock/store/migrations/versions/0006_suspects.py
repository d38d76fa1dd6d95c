"""Marks of jobs in a step that may kill their process."""

from alembic import op
from sqlalchemy import Column, Integer

from penstock.store.migrations.portable import after, change

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column. Older code leaves it at 0: deaths of its processes are not counted."""
    with change("jobs") as jobs:
        jobs.add_column(Column("at_risk", Integer, nullable=False, server_default="0"), **after("deaths"))
    op.execute("INSERT INTO schema_support VALUES ('0006', '0005')")
