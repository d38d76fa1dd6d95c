"""The founding schema."""

from alembic import op

from penstock.store.tables import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table; later migrations say what they change in full."""
    metadata.create_all(op.get_bind())
