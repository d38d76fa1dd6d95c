"""Tokens that vendors write to their caches, of usage records and in usage sums."""

from alembic import op
from sqlalchemy import BigInteger, Column

from penstock.store.migrations.portable import after, change

revision = "0011"
down_revision = "0010"

SUMS = ("usage_days", "usage_model_days", "usage_key_days")


def upgrade() -> None:
    """Add the columns. Older code leaves them at 0: it charges cache writes like other prompt tokens."""
    with change("completions") as completions:
        completions.add_column(_count("cache_write_tokens"), **after("cached_tokens"))
        completions.add_column(_count("cache_write_1h_tokens"), **after("cache_write_tokens"))
    for name in SUMS:
        with change(name) as sums:
            sums.add_column(_count("cache_write_tokens"), **after("cached_tokens"))
    op.execute("INSERT INTO schema_support VALUES ('0011', '0005')")


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")
