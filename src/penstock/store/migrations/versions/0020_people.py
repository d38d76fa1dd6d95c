"""People, their roles in accounts, and keys of their own."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, Text

from penstock.store.migrations.portable import Word, change, where

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Create the tables. Older code may run beside: keys of people who leave are also revoked."""
    with change("keys") as keys:
        keys.add_column(Column("person_id", Word))
        keys.add_column(Column("is_console", Integer))
    op.create_index("keys_by_person", "keys", ["person_id", "account_id"], **where("person_id IS NOT NULL"))
    op.create_table(
        "people",
        Column("id", Word, primary_key=True),
        Column("email", Word, nullable=False, unique=True),
        Column("name", Text, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("deactivated_at", Float),
        Column("is_operator", Integer, nullable=False),
        Column("signed_in_at", Float),
    )
    op.create_table(
        "memberships",
        Column("person_id", Word, primary_key=True),
        Column("account_id", Word, primary_key=True),
        Column("role", Word, nullable=False),
        Column("source", Word, nullable=False),
        Column("key_id", Word, nullable=False),
        Column("created_at", Float, nullable=False),
    )
    op.create_index("memberships_by_account", "memberships", ["account_id", "person_id"])
    op.create_table(
        "key_policies",
        Column("account_id", Word, primary_key=True),
        Column("max_keys", Integer, nullable=False),
        Column("max_budget", BigInteger),
    )
    op.execute("INSERT INTO schema_support VALUES ('0020', '0005')")
