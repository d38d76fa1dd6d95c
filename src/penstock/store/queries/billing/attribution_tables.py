"""Tables of attribution: usage sums by tag, end user and session (docs/decisions/0069)."""

from sqlalchemy import BigInteger, Column, Integer, Table

from penstock.store.people_tables import metadata
from penstock.store.tables import Word, sum_columns

attribution_days = Table(  # usage sums of one dimension: a request with two tags is in two rows
    "attribution_days",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("dimension", Word, primary_key=True),  # tag, end_user or session
    Column("part", Word, primary_key=True),  # value; other: all beyond the limit; any: each request with a tag, once
    Column("day", Integer, primary_key=True),  # since 1970-01-01, UTC
    Column("value", Word, primary_key=True),
    Column("model", Word, primary_key=True),
    Column("vendor", Word, primary_key=True),
    Column("key_id", Word, primary_key=True),
    Column("kind", Word, primary_key=True),
    *sum_columns(),
    sqlite_with_rowid=False,
)

attribution_counts = Table(  # how many values of a dimension have rows of their own; its lock admits new ones
    "attribution_counts",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("dimension", Word, primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("number", Integer, nullable=False),
    sqlite_with_rowid=False,
)

tag_carried = Table(  # what removed ledger entries of a tag come to: part of its `total` budget
    "tag_carried",
    metadata,
    Column("owner", Word, primary_key=True),  # of the tag's budgets
    Column("spent", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
