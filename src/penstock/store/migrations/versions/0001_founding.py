"""The first schema, frozen. Later migrations follow the changes of `tables.py`."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, Text, UniqueConstraint

from penstock.store.migrations.portable import Position, Word, where

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table with its indexes."""
    _create_accounts()
    _create_keys()
    _create_jobs()
    _create_events()
    _create_requests()
    _create_files()
    _create_assets()


def _create_accounts() -> None:
    op.create_table(
        "accounts",
        Column("id", Word, primary_key=True),
        Column("name", Word, nullable=False, unique=True),
        Column("created_at", Float, nullable=False),
    )


def _create_keys() -> None:
    op.create_table(
        "keys",
        Column("public_id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("name", Word, nullable=False),
        Column("secret_hash", LargeBinary, nullable=False),
        Column("models", Text, nullable=False),
        Column("scopes", Text, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("expires_at", Float),
        Column("revoked_at", Float),
    )
    op.create_index("keys_by_account", "keys", ["account_id"])
    op.create_table(
        "secrets",
        Column("name", Word, primary_key=True),
        Column("value", LargeBinary, nullable=False),
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        Column("id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("model", Word, nullable=False),
        Column("vendor", Word, nullable=False),
        Column("state", Word, nullable=False),
        Column("done", Integer, nullable=False),
        Column("client_ref", Word),
        Column("batch_id", Word),
        Column("created_at", Float, nullable=False),
        Column("start_by", Float, nullable=False),
        Column("finished_at", Float),
        Column("expires_at", Float),
        Column("removed", Word),
        Column("owner", Word),
        Column("epoch", Integer, nullable=False),
        Column("document", LargeBinary, nullable=False),
    )
    op.create_index("jobs_by_account", "jobs", ["account_id", "id"])
    op.create_index("jobs_by_state", "jobs", ["account_id", "state", "id"])
    op.create_index("jobs_by_model", "jobs", ["account_id", "model", "id"])
    op.create_index("jobs_finished", "jobs", ["model", "state", "finished_at"])
    partial = {
        "jobs_by_client_ref": (["account_id", "client_ref", "id"], "client_ref IS NOT NULL"),
        "jobs_by_batch": (["account_id", "batch_id", "id"], "batch_id IS NOT NULL"),
        "jobs_open": (["owner", "id"], "done = 0"),
        "jobs_expiring": (["expires_at"], "removed IS NULL AND expires_at IS NOT NULL"),
    }
    for name, (columns, which) in partial.items():
        op.create_index(name, "jobs", columns, **where(which))


def _create_events() -> None:
    op.create_table(
        "events",
        Column("position", Position, primary_key=True, autoincrement=True),
        Column("account_id", Word, nullable=False),
        Column("job_id", Word, nullable=False),
        Column("sequence", Integer, nullable=False),
        Column("type", Word, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("document", LargeBinary, nullable=False),
        UniqueConstraint("job_id", "sequence"),
        sqlite_autoincrement=True,
    )
    op.create_index("events_by_account", "events", ["account_id", "position"])


def _create_requests() -> None:
    op.create_table(
        "requests",
        Column("id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("key_id", Word, nullable=False),
        Column("idempotency_key", Word),
        Column("fingerprint", LargeBinary, nullable=False),
        Column("job_ids", Text, nullable=False),
        Column("created_at", Float, nullable=False),
        UniqueConstraint("account_id", "idempotency_key"),
    )
    op.create_index("requests_by_body", "requests", ["key_id", "fingerprint", "created_at"])


def _create_files() -> None:
    op.create_table(
        "files",
        Column("token", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("sha256", Word, nullable=False),
        Column("bytes", BigInteger, nullable=False),
        Column("content_type", Word, nullable=False),
        Column("width", Integer, nullable=False),
        Column("height", Integer, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("expires_at", Float),
        Column("job_id", Word),
    )
    op.create_index("files_by_content", "files", ["account_id", "sha256"])
    op.create_index("files_by_job", "files", ["job_id"])
    op.create_index("files_expiring", "files", ["expires_at"], **where("expires_at IS NOT NULL"))


def _create_assets() -> None:
    op.create_table(
        "assets",
        Column("id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("job_id", Word, nullable=False),
        Column("filename", Word, nullable=False),
        Column("content_type", Word, nullable=False),
        Column("bytes", BigInteger, nullable=False),
        Column("sha256", Word, nullable=False),
        Column("removed", Word),
        Column("swept", Integer, nullable=False, server_default="0"),
    )
    op.create_index("assets_by_job", "assets", ["job_id"])
    op.create_index("assets_unswept", "assets", ["job_id"], **where("removed IS NOT NULL AND swept = 0"))
