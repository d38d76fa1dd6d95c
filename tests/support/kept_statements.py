"""A store whose compiled statements serve the next gateway too: compiling them anew is a tenth of a test's CPU."""

from collections.abc import Hashable
from typing import Any

from penstock import ports
from penstock.store.database import Database


class Statements(dict[Hashable, Any]):
    """Compiled statements by all of SQLAlchemy's key but the dialect, of which each engine has its own."""

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the compiled statement, for whichever engine it was compiled."""
        return super().get(key[1:], default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        """Keep a compiled statement."""
        super().__setitem__(key[1:], compiled)


_statements: dict[str, Statements] = {}


async def open_database(url: str) -> Database:
    """Open the store as a gateway does, with the statements of every store of its kind."""
    database = await ports.open_database(url)
    engine = database.engine
    engine.update_execution_options(compiled_cache=_statements.setdefault(engine.name, Statements()))
    return database
