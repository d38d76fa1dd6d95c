"""Several machines: seats of vendors, leases of workers, chores, and which code may use the store."""

from alembic import op
from sqlalchemy import Column, Float, Integer

from penstock.store.migrations.portable import Word, after, change, is_postgres, where

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add seats to jobs, and the table of workers. Only PostgreSQL has the indexes by which workers claim."""
    with change("jobs") as jobs:
        jobs.add_column(Column("seated", Integer, nullable=False, server_default="0"), **after("epoch"))
        jobs.add_column(Column("deaths", Integer, nullable=False, server_default="0"), **after("seated"))
    op.create_table(
        "workers",
        Column("id", Word, primary_key=True),
        Column("name", Word, nullable=False),
        Column("started_at", Float, nullable=False),
        Column("renewed_at", Float, nullable=False),
    )
    op.create_table("turns", Column("vendor", Word, primary_key=True), Column("account_id", Word, nullable=False))
    op.create_table("chores", Column("name", Word, primary_key=True), Column("until", Float, nullable=False))
    op.create_table("schema_support", Column("version", Word, primary_key=True), Column("oldest", Word, nullable=False))
    op.execute("INSERT INTO schema_support VALUES ('0004', '0004')")
    if is_postgres():
        _index_claims()


def _index_claims() -> None:
    op.create_index("jobs_by_vendor", "jobs", ["vendor", "finished_at"])
    for name, columns, which in (
        ("jobs_waiting", ["vendor", "account_id", "id"], "done = 0 AND owner IS NULL AND seated = 0"),
        ("jobs_seated", ["vendor", "account_id"], "done = 0 AND seated = 1"),
        ("jobs_orphaned", ["id"], "done = 0 AND owner IS NULL AND seated = 1"),
        ("jobs_owned", ["owner"], "done = 0 AND owner IS NOT NULL"),
    ):
        op.create_index(name, "jobs", columns, **where(which))
