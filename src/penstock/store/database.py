"""The store as the rest of Penstock sees it: plain functions of a connection, run in transactions."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine

from penstock.store.signals import Signals

__all__ = ["RUNG", "Connection", "Database", "Engine", "P", "T"]  # the first two types are for annotations elsewhere

P = ParamSpec("P")
T = TypeVar("T")

RUNG: Final = "rung"
"""Where a transaction notes, in `connection.info`, which topics to ring once it is committed."""


class Database(ABC):
    """Runs plain functions of a connection: `await database.write(job_rows.amend, …)`."""

    signals: Signals
    engine: Engine
    is_refused = False
    """Whether a newer version has made the store into what this one cannot serve: then nothing is read or written."""

    @abstractmethod
    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a transaction; when this returns, it is committed and on disk.

        The function may be run more than once: what it does to anything but the connection must bear that.
        """

    @abstractmethod
    async def read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function on what is committed."""

    async def look(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for a function that says one statement only."""
        return await self.read(function, *args, **kwargs)

    async def settled(self) -> int | None:
        """Up to which position the event log is complete; None where it always is, as commits come in order."""
        return None

    async def recheck(self) -> None:  # noqa: B027  nothing to do is an answer
        """Look whether the store is still one that this version can serve; where one server alone changes it, it is."""

    @abstractmethod
    async def watch(self) -> None:
        """From now on the bell rings, a little later, for what other processes write too."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what is waiting, then let go of the store."""
