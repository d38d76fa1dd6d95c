"""Storage usage and quotas of accounts."""

from alembic import op
from sqlalchemy import BigInteger, Column

from penstock.store.migrations.portable import Word, where

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the table and count. Older code may run beside: the hourly recount finds what it does not count."""
    op.create_table(
        "storage",
        Column("account_id", Word, primary_key=True),
        Column("files", BigInteger, nullable=False),
        Column("assets", BigInteger, nullable=False),
        Column("quota", BigInteger),
    )
    op.create_index("assets_kept", "assets", ["account_id"], **where("swept = 0"))
    contents = "SELECT account_id, sha256, MAX(bytes) AS bytes FROM files GROUP BY account_id, sha256"
    kept = (
        f"SELECT account_id, bytes AS files, 0 AS assets FROM ({contents}) AS contents "  # noqa: S608
        "UNION ALL SELECT account_id, 0 AS files, bytes AS assets FROM assets WHERE swept = 0"
    )
    op.execute(
        "INSERT INTO storage (account_id, files, assets) "  # noqa: S608
        f"SELECT account_id, SUM(files), SUM(assets) FROM ({kept}) AS kept GROUP BY account_id"
    )
    op.execute("INSERT INTO schema_support VALUES ('0008', '0005')")
