"""Limits of accounts, lineages of keys, budgets, ledger, shared limits, usage sums, audit log and nudges."""

from alembic import op
from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, Text

from penstock.store.migrations.portable import Position, Word, after, change, day_of, of_document, where

revision = "0003"
down_revision = "0002"

LIMITS = ("requests_per_minute", "tokens_per_minute", "concurrent_jobs", "concurrent_streams")
SLICES = {
    "usage_days": ("account_id", "day", "model", "vendor", "key_id", "kind"),
    "usage_model_days": ("account_id", "day", "model", "vendor", "kind"),
    "usage_key_days": ("account_id", "day", "key_id", "kind"),
}
SUMS = (
    *("requests", "failed", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    *("estimated", "unpriced", "cost"),
)


def upgrade() -> None:
    """Create the tables. Earlier keys become lineages of their own, and earlier charges enter the ledger."""
    _widen_accounts()
    _widen_keys()
    _widen_jobs()
    _create_budgets()
    _create_ledger()
    _create_limits()
    _create_usage()
    _create_audit()
    _create_nudges()


def _widen_accounts() -> None:
    with change("accounts") as accounts:  # SQLite would write them behind the rest
        accounts.add_column(Column("closed_at", Float))
        for name in LIMITS:
            accounts.add_column(Column(name, Integer))


def _widen_keys() -> None:
    op.add_column("keys", Column("lineage", Word))
    op.execute("UPDATE keys SET lineage = public_id")
    with change("keys") as keys:
        keys.add_column(Column("concurrent_jobs", Integer), **after("tokens_per_minute"))
        keys.add_column(Column("concurrent_streams", Integer), **after("concurrent_jobs"))
        keys.alter_column("lineage", existing_type=Word, nullable=False)
        keys.add_column(Column("replaced_by", Word), **after("lineage"))


def _widen_jobs() -> None:
    op.drop_index("jobs_open", "jobs")
    with change("jobs") as jobs:
        jobs.add_column(Column("lineage", Word), **after("account_id"))
    op.execute(f"UPDATE jobs SET lineage = {of_document('key_id')}")  # noqa: S608  names of our own
    with change("jobs") as jobs:
        jobs.alter_column("lineage", existing_type=Word, nullable=False)
    is_open, is_free = where("done = 0"), where("done = 0 AND owner IS NULL")
    op.create_index("jobs_free", "jobs", ["state", "account_id", "id"], **is_free)
    op.create_index("jobs_free_by_start", "jobs", ["start_by"], **is_free)
    op.create_index("jobs_open_by_account", "jobs", ["account_id", "state"], **is_open)
    op.create_index("jobs_open_by_key", "jobs", ["lineage"], **is_open)


def _create_budgets() -> None:
    op.create_table(
        "budgets",
        Column("owner", Word, primary_key=True),
        Column("period", Word, primary_key=True),
        Column("cap", BigInteger, nullable=False),
        Column("time_zone", Word, nullable=False),
        Column("created_at", Float, nullable=False),
    )
    op.create_table(
        "purses",
        Column("owner", Word, primary_key=True),
        Column("period", Word, primary_key=True),
        Column("start", Float, primary_key=True),
        Column("ends", Float, nullable=False),
        Column("spent", BigInteger, nullable=False),
        Column("held", BigInteger, nullable=False),
        Column("most", BigInteger, nullable=False),
        Column("told", Integer, nullable=False),
    )
    op.create_table(
        "holds",
        Column("subject", Word, primary_key=True),
        Column("owner", Word, primary_key=True),
        Column("period", Word, primary_key=True),
        Column("start", Float, primary_key=True),
        Column("amount", BigInteger, nullable=False),
        Column("is_lease", Integer, nullable=False),
        Column("recalled", Integer, nullable=False),
        Column("expires_at", Float),
    )
    op.create_index("holds_by_purse", "holds", ["owner", "period", "start"])
    op.create_index("holds_expiring", "holds", ["expires_at"], **where("expires_at IS NOT NULL"))


def _create_ledger() -> None:
    op.create_table(
        "ledger",
        Column("subject", Word, primary_key=True),
        Column("kind", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("key_id", Word, nullable=False),
        Column("lineage", Word, nullable=False),
        Column("amount", BigInteger, nullable=False),
        Column("overrun", BigInteger, nullable=False),
        Column("at", Float, nullable=False),
        Column("created_at", Float, nullable=False),
        Column("note", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ledger_by_account", "ledger", ["account_id", "at"])
    _enter_what_was_paid()


def _enter_what_was_paid() -> None:
    """Fill the ledger with existing charges: a budget that is set later counts all of its period."""
    op.execute("""
        INSERT INTO ledger
        SELECT id, 'settle', account_id, key_id, key_id, cost, 0, created_at, created_at + seconds, 'before the ledger'
        FROM completions WHERE cost > 0
    """)
    for kind, amount, at, which in (
        ("hold", "estimated", "created_at", "done = 0 OR charged"),
        ("settle", "final", "finished_at", "done = 1 AND charged"),
    ):
        op.execute(f"""
            INSERT INTO ledger
            SELECT id, '{kind}', account_id, lineage, lineage, {amount}, 0, created_at, {at}, 'before the ledger'
            FROM (SELECT *, {of_document("estimated", "number")} AS estimated,
                         {of_document("final", "number")} AS final,
                         {of_document("charged", "flag")} AS charged FROM jobs) AS known
            WHERE estimated > 0 AND ({which})
        """)  # noqa: S608  names of our own


def _create_limits() -> None:
    op.create_table(
        "buckets",
        Column("owner", Word, primary_key=True),
        Column("kind", Word, primary_key=True),
        Column("level", Float, nullable=False),
        Column("at", Float, nullable=False),
    )
    op.create_table(
        "slots",
        Column("owner", Word, primary_key=True),
        Column("process", Word, primary_key=True),
        Column("amount", Integer, nullable=False),
        Column("expires_at", Float, nullable=False),
    )


def _create_usage() -> None:
    """Fill the usage sums from existing chat requests and finished jobs."""
    for name, key in SLICES.items():
        op.create_table(
            name,
            *(Column(part, Integer if part == "day" else Word, primary_key=True) for part in key),
            *(Column(each, BigInteger, nullable=False) for each in SUMS),
            sqlite_with_rowid=False,
        )
    day = day_of("created_at")
    op.execute(f"""
        INSERT INTO usage_days
        SELECT account_id, {day}, model, vendor, key_id, 'chat', count(*),
               count(*) FILTER (WHERE outcome IN ('failed', 'cut')), sum(prompt_tokens), sum(completion_tokens),
               sum(cached_tokens), sum(reasoning_tokens), sum(estimated), count(*) FILTER (WHERE cost IS NULL),
               coalesce(sum(cost), 0)
        FROM completions GROUP BY 1, 2, 3, 4, 5
    """)  # noqa: S608  names of our own
    op.execute(f"""
        INSERT INTO usage_days
        SELECT account_id, {day}, model, vendor, key_id, 'job', count(*),
               count(*) FILTER (WHERE state != 'succeeded'), 0, 0, 0, 0, 0, count(*) FILTER (WHERE final IS NULL),
               coalesce(sum(final), 0)
        FROM (SELECT *, {of_document("key_id")} AS key_id, {of_document("final", "number")} AS final
              FROM jobs WHERE done = 1) AS known
        GROUP BY 1, 2, 3, 4, 5
    """)  # noqa: S608  names of our own
    for name in ("usage_model_days", "usage_key_days"):
        key, sums = ", ".join(SLICES[name]), ", ".join(f"sum({each})" for each in SUMS)
        op.execute(f"INSERT INTO {name} SELECT {key}, {sums} FROM usage_days GROUP BY {key}")  # noqa: S608


def _create_audit() -> None:
    op.create_table(
        "audit",
        Column("position", Position, primary_key=True, autoincrement=True),
        Column("created_at", Float, nullable=False),
        Column("actor", Word, nullable=False),
        Column("action", Word, nullable=False),
        Column("subject", Word, nullable=False),
        Column("account_id", Word),
        Column("detail", LargeBinary, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("audit_by_account", "audit", ["account_id", "position"])


def _create_nudges() -> None:
    op.create_table(
        "nudges",
        Column("position", Position, primary_key=True, autoincrement=True),
        Column("job_id", Word, nullable=False),
        Column("created_at", Float, nullable=False),
        sqlite_autoincrement=True,
    )
