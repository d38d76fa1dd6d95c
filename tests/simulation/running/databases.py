"""PostgreSQL for a run: one server, and one database for each world that runs at a time."""

from collections.abc import Generator
from contextlib import contextmanager

from postgres import PostgresServer
from simulation.running.sources import SeededSources
from simulation.store import prepare_postgres


class Databases:
    """Databases with the gateway's tables. Nothing but the worlds changes the order of their rows."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        server.execute("ALTER SYSTEM SET autovacuum = off")
        server.execute("SELECT pg_reload_conf()")
        self._template = server.create()
        with SeededSources("template", lambda: 0.0):
            prepare_postgres(server.url(self._template))

    def create(self) -> str:
        """Return the URL of a new database."""
        return self._server.url(self._server.create(self._template))

    def tidy(self, url: str) -> None:
        """Vacuum the catalog, which every emptied table makes larger."""
        self._server.execute("VACUUM pg_catalog.pg_class", url.rpartition("/")[2])


@contextmanager
def open_server() -> Generator[Databases]:
    """Run a server until the block ends."""
    server = PostgresServer()
    try:
        server.start()
        yield Databases(server)
    finally:
        server.remove()
