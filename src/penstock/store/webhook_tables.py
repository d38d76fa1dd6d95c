"""The tables of webhooks: who is told, and what is on its way to whom."""

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, Table, Text

from penstock.store.tables import Position, Word, metadata, where

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Word, primary_key=True),
    Column("account_id", Word, nullable=False),
    Column("url", Text),  # none: the account's secret for its jobs' own webhooks
    Column("host", Word, nullable=False),
    Column("events", Text, nullable=False),  # with a space before and after each
    Column("description", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("former_secret", Text),
    Column("former_until", Float),
    Column("created_at", Float, nullable=False),
    Column("disabled_at", Float),
    Column("disabled_reason", Word),
    Column("failing_since", Float),
    Index("webhooks_by_account", "account_id", "id"),
)

deliveries = Table(  # the outbox: written with the event
    "deliveries",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=True),
    Column("webhook_id", Word, nullable=False),
    Column("account_id", Word, nullable=False),
    Column("subject", Word, nullable=False),  # with the sequence: which event; of a ping its own id
    Column("sequence", Integer, nullable=False),
    Column("type", Word, nullable=False),
    Column("url", Text),  # none: the webhook's
    Column("host", Word, nullable=False, key="lane"),  # older code wrote the host there, as places were shared by it
    Column("status", Word, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due_at", Float),  # pending: when it is sent, or taken up again from whoever took it and died
    Column("lease", Word),  # set: someone is sending it
    Column("created_at", Float, nullable=False),
    Column("finished_at", Float),
    Column("attempts", LargeBinary, nullable=False),
    Index("deliveries_due", "due_at", **where("status = 'pending'")),
    Index("deliveries_by_lane", "lane", "due_at", "position", **where("status = 'pending'")),
    Index("deliveries_untried", "subject", "webhook_id", "sequence", **where("status = 'pending' AND tries = 0")),
    Index("deliveries_by_webhook", "webhook_id", "position"),
    Index("deliveries_by_account", "account_id", "position"),
    Index("deliveries_by_status", "account_id", "status", "position"),
    Index("deliveries_by_subject", "subject", "webhook_id", "sequence"),
    Index("deliveries_finished", "finished_at", **where("finished_at IS NOT NULL")),
    sqlite_autoincrement=True,
)
