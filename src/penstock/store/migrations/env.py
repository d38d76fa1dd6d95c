"""Alembic's entry point: runs the migrations on the connection given by `schema.upgrade`."""

from alembic import context

from penstock.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
