"""Search of jobs by their words, and names of files."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text

from penstock.store.migrations.portable import Word, after, change

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the tables. Housekeeping fills them from the event log, also for jobs that older code accepts beside."""
    with change("files") as files:
        files.add_column(Column("name", Text), **after("job_id"))
    op.create_table(
        "search_words",
        Column("account_id", Word, primary_key=True),
        Column("word", Word, primary_key=True),
        Column("job_id", Word, primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "search_jobs",
        Column("job_id", Word, primary_key=True),
        Column("account_id", Word, nullable=False),
        Column("words", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "search_progress", Column("name", Word, primary_key=True), Column("position", BigInteger, nullable=False)
    )
    op.execute("INSERT INTO schema_support VALUES ('0009', '0005')")
