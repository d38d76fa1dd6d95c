"""The tables of people, their roles in accounts, and the accounts' limits for their keys."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, Table, Text

from penstock.store.tables import Word, metadata

people = Table(
    "people",
    metadata,
    Column("id", Word, primary_key=True),
    Column("email", Word, nullable=False, unique=True),  # in lower case
    Column("name", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("deactivated_at", Float),
    Column("is_operator", Integer, nullable=False),
    Column("signed_in_at", Float),
)

memberships = Table(
    "memberships",
    metadata,
    Column("person_id", Word, primary_key=True),
    Column("account_id", Word, primary_key=True),
    Column("role", Word, nullable=False),
    Column("source", Word, nullable=False),  # "local", or the sign-in provider whose rule gave it
    Column("key_id", Word, nullable=False),  # the key of the person's requests from the console
    Column("created_at", Float, nullable=False),
    Index("memberships_by_account", "account_id", "person_id"),
)

key_policies = Table(  # limits that accounts set for keys of their people
    "key_policies",
    metadata,
    Column("account_id", Word, primary_key=True),
    Column("max_keys", Integer, nullable=False),
    Column("max_budget", BigInteger),  # billionths of a dollar a month
)
