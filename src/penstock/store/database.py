"""The interface to the store: plain functions of a connection, run in transactions."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine

from penstock.store.signals import Signals

__all__ = ["RUNG", "Connection", "Database", "Engine", "P", "T"]  # the first two types are for annotations elsewhere

P = ParamSpec("P")
T = TypeVar("T")

RUNG: Final = "rung"
"""The key in `connection.info` of the topics to signal once the transaction is committed."""


class Database(ABC):
    """Runs plain functions of a connection: `await database.write(job_rows.amend, …)`."""

    signals: Signals
    engine: Engine
    is_shared = False
    """Whether several processes may serve callers with it."""
    is_refused = False
    """True if a newer version has changed the schema beyond what this one supports. Then the store is not used."""

    @abstractmethod
    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a transaction. When this returns, it is committed and on disk.

        The function may run more than once: its effects outside the connection must allow that.
        """

    @abstractmethod
    async def read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function on committed data."""

    async def look(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `read`, for a function that runs one statement only."""
        return await self.read(function, *args, **kwargs)

    async def settled(self) -> int | None:
        """Return the position up to which the event log is complete. None: always, as commits come in order."""
        return None

    async def recheck(self) -> None:  # noqa: B027  doing nothing is the default
        """Check that this version still supports the store's schema. Nothing to do where only one server changes it."""

    @abstractmethod
    async def watch(self) -> None:
        """Signal writes of other processes, too, from now on and with a small delay."""

    @abstractmethod
    async def close(self) -> None:
        """Finish waiting work, then close the store."""
