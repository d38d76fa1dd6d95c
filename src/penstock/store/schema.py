"""Brings a store to this version's schema, and refuses one that is newer."""

from pathlib import Path

from sqlalchemy import Engine, inspect, text

from penstock.store.tables import SCHEMA_VERSION

MIGRATIONS = Path(__file__).with_name("migrations")


class SchemaTooNew(Exception):
    """The store was made by a newer version."""


def current_version(engine: Engine) -> str | None:
    """The store's schema version; None for an empty store."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def upgrade(engine: Engine, wanted: str = SCHEMA_VERSION) -> None:
    """Run the migrations that are missing. Alembic is loaded only if there are any: it would slow every start."""
    version = current_version(engine)
    if version == SCHEMA_VERSION:
        return
    if version is not None and version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"The store has schema {version}, this version of Penstock knows {SCHEMA_VERSION}: "
            "start the newer version, or point --data at another folder."
        )
    from alembic import command  # noqa: PLC0415  see the docstring
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN EXCLUSIVE")  # two starting processes migrate one after the other
        config.attributes["connection"] = connection
        command.upgrade(config, wanted)
        connection.exec_driver_sql("COMMIT")
