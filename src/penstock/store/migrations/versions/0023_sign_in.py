"""Identities at sign-in providers, sessions, sign-ins that have begun."""

from alembic import op
from sqlalchemy import Column, Float, Integer, LargeBinary, Text

from penstock.store.migrations.portable import Word

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Create the tables. Older code may run beside: it knows no sessions, and deactivation counts at every lookup."""
    op.create_table(
        "identities",
        Column("id", Word, primary_key=True),
        Column("issuer", Text, nullable=False),
        Column("subject", Text, nullable=False),
        Column("person_id", Word, nullable=False),
        Column("provider", Word, nullable=False),
        Column("is_operator", Integer, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("signed_in_at", Float, nullable=False),
    )
    op.create_index("identities_by_person", "identities", ["person_id"])
    op.create_table(
        "sessions",
        Column("id", Word, primary_key=True),
        Column("token_hash", LargeBinary, nullable=False, unique=True),
        Column("person_id", Word, nullable=False),
        Column("identity_id", Word, nullable=False),
        Column("provider", Word, nullable=False),
        Column("provider_session", Text),
        Column("id_token", LargeBinary),
        Column("created_at", Float, nullable=False),
        Column("seen_at", Float, nullable=False),
        Column("expires_at", Float, nullable=False),
        Column("browser", Text, nullable=False),
        Column("address", Text, nullable=False),
    )
    op.create_index("sessions_by_person", "sessions", ["person_id"])
    op.create_index("sessions_by_identity", "sessions", ["identity_id"])
    op.create_index("sessions_by_end", "sessions", ["expires_at"])
    op.create_table(
        "sign_in_attempts",
        Column("state_hash", LargeBinary, primary_key=True),
        Column("browser_hash", LargeBinary, nullable=False),
        Column("provider", Word, nullable=False),
        Column("return_to", Text, nullable=False),
        Column("redirect_uri", Text, nullable=False),
        Column("expires_at", Float, nullable=False),
    )
    op.create_index("sign_in_attempts_by_end", "sign_in_attempts", ["expires_at"])
    op.create_table(
        "logout_tokens",
        Column("id", LargeBinary, primary_key=True),
        Column("expires_at", Float, nullable=False),
    )
    op.create_index("logout_tokens_by_end", "logout_tokens", ["expires_at"])
    op.execute("INSERT INTO schema_support VALUES ('0023', '0005')")
