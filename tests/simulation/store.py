"""The shared store: the real SQL, run one transaction at a time, with faults at every step of a write."""

import asyncio
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, Concatenate, Final

from simulation.virtual_loop import VirtualLoop
from simulation.world import EPOCH, World
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from penstock.errors import InvalidRequest, StoreUnavailable
from penstock.store import connect
from penstock.store.database import RUNG, Database, P, T
from penstock.store.queries.chat import response_rows
from penstock.store.signals import Signals
from penstock.store.sqlite.database import CACHED_STATEMENTS
from penstock.store.tables import metadata

QUERY_SECONDS: Final = 0.001
SLOW_SECONDS: Final = (0.5, 6.0)
BELL_SECONDS: Final = 0.05
"""Delay of a signal to another process."""
CUT_OFF: Final = "store: cut off"
CUT_OFF_SECONDS: Final = (2.0, 15.0)
"""Seconds for which one process cannot reach a server: for less or for more than a lease."""
WRITE_FAULTS: Final = (
    ("store: refused", 0.003),
    ("store: lost before commit", 0.002),
    ("store: outcome unknown, done", 0.004),
    ("store: outcome unknown, not done", 0.002),
    ("store: slow", 0.004),
    ("store: slow answer", 0.004),
    ("death before commit", 0.001),
    ("death after commit", 0.001),
    (CUT_OFF, 0.001),
)
CLAIM_FAULTS: Final = (("store: outcome unknown, done", 0.03), ("store: slow answer", 0.03), (CUT_OFF, 0.005))
"""Faults of a claim on a server, at the worst moment: others may act before its process knows what it has claimed."""
START_FAULTS: Final = (("store: slow", 0.25), ("store: refused", 0.02))
"""Faults of the start of a background response: a cancel may overtake it."""
READ_FAULTS: Final = (("store: refused", 0.002), ("store: slow", 0.003), ("death in a read", 0.0003))
BELL_FAULTS: Final = (("bell lost", 0.02), ("bell late", 0.05))


TABLES: Final = frozenset(metadata.tables)


@cache
def _in_sqlite(statement: str) -> str:
    return statement.replace("%s", "?").replace("%%", "%")


@cache
def _make_engine(url: str) -> Engine:
    """Return the engine of all worlds: it keeps their compiled statements, and a connection for none of them."""
    is_file = url.startswith("sqlite")
    options = {"cached_statements": CACHED_STATEMENTS, "factory": _NotingConnection} if is_file else {}
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=options)


class SharedStore(ABC):
    """One database that all processes of a world use, and what happens to it."""

    has_doubt: bool
    """True if a failed commit may have been done: a server may be lost between doing and answering."""

    def __init__(self, world: World, engine: Engine) -> None:
        self._world = world
        self.engine = engine
        self.connection = engine.connect()
        self.clients: list[VirtualDatabase] = []
        self.away_until = 0.0
        self.slow_until = 0.0
        self.doubt_until = 0.0
        """Until then the outcome of every commit is unknown: the server is failing over."""
        self.oldest_version = 0
        """The oldest version of the code that can use the schema."""
        self.is_read_only = False
        self.on_commit: Callable[[], None] = lambda: None
        self.writer: VirtualDatabase | None = None
        """The process that made the last commit."""
        self.commits = 0

    @property
    def is_away(self) -> bool:
        """Return whether nobody can reach the store now."""
        return self.away_until > self._world.now

    def require(self, version: int) -> None:
        """Upgrade the schema to one that older code cannot use."""
        self.oldest_version = max(self.oldest_version, version)

    @abstractmethod
    def transact(self, function: Callable[[Connection], T], *, commit: bool) -> tuple[T, set[str]]:
        """Run a transaction and commit it or not. Return its result and the topics to signal."""

    @abstractmethod
    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query of the invariants, with a `%s` for each value."""

    def has_changed(self) -> bool:
        """Return whether the last transaction may have changed a row."""
        return True

    def take_written(self) -> AbstractSet[str]:
        """Return the tables that may have been changed since the last call."""
        return TABLES

    @abstractmethod
    def close(self) -> None:
        """Forget the database."""

    def ring(self, sender: "VirtualDatabase", topics: set[str]) -> None:
        """Signal a committed write to all processes: to its own at once, to others after a while or never."""
        if not topics:
            return
        if not sender.loop.is_dead:
            sender.signals.ring(topics)
        for each in self.clients:
            if each is sender or each.loop.is_dead or not each.is_watching:
                continue
            chance = self._world.chance(f"bell to {each.loop.name}")
            fault = chance.draw(BELL_FAULTS)
            if fault != "bell lost":
                seconds = BELL_SECONDS * chance.random() + (2.0 if fault == "bell late" else 0.0)
                each.loop.call_later(seconds, each.signals.ring, topics)


WRITES: Final = re.compile(r"\b(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE|DELETE\s+FROM)\s+(\w+)", re.IGNORECASE)


@cache
def _tables_of(statement: str) -> frozenset[str]:
    """Return the tables that a statement changes."""
    return frozenset(name.lower() for name in WRITES.findall(statement))


class _NotingCursor(sqlite3.Cursor):
    """Notes which tables are changed."""

    connection: "_NotingConnection"

    def execute(self, sql: str, parameters: Any = (), /) -> "_NotingCursor":
        self.connection.written |= _tables_of(sql)
        super().execute(sql, parameters)
        return self

    def executemany(self, sql: str, parameters: Any, /) -> "_NotingCursor":
        self.connection.written |= _tables_of(sql)
        super().executemany(sql, parameters)
        return self


class _NotingConnection(sqlite3.Connection):
    """Notes which tables were changed since someone looked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.written: set[str] = set()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if tables := _tables_of(sql):
            self.written |= tables
        return super().execute(sql, parameters)

    def cursor(self, factory: Any = _NotingCursor) -> Any:
        return super().cursor(factory)


class SqliteStore(SharedStore):
    """A file of SQLite, kept in memory."""

    has_doubt = False

    def __init__(self, world: World, template: bytes) -> None:
        super().__init__(world, _make_engine("sqlite://"))
        self.driver: Any = self.connection.connection.driver_connection
        self.driver.isolation_level = None
        self.driver.deserialize(template)
        self._changes = 0
        self._written: set[str] = set()

    def transact(self, function: Callable[[Connection], T], *, commit: bool) -> tuple[T, set[str]]:
        """Run a transaction."""
        topics: set[str] = set()
        self.connection.info[RUNG] = topics
        written = self.driver.written = set()
        self.driver.execute("BEGIN")
        try:
            result = function(self.connection)
        except BaseException:
            if self.driver.in_transaction:
                self.driver.execute("ROLLBACK")
            raise
        self.driver.execute("COMMIT" if commit else "ROLLBACK")
        if commit:
            self._written |= written
        return result, topics

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.driver.execute(_in_sqlite(statement), values).fetchall()

    def take_written(self) -> AbstractSet[str]:
        """Return the tables that were changed since the last call."""
        written, self._written = self._written, set()
        return written

    def has_changed(self) -> bool:
        """Return whether rows were written since the last call."""
        before, self._changes = self._changes, self.driver.total_changes
        return self._changes != before

    def close(self) -> None:
        """Forget the database."""
        self.connection.close()


CLOCK: Final = """
CREATE SCHEMA IF NOT EXISTS simulation;
CREATE OR REPLACE FUNCTION simulation.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT to_timestamp(current_setting('simulation.now')::double precision) $$;
"""
"""A function that shadows PostgreSQL's own: the server's clock is the world's."""


def prepare_postgres(url: str) -> None:
    """Give an empty database the tables, and a clock on virtual time."""
    engine = connect.make_engine(url)
    connect.prepare(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql(CLOCK)
    engine.dispose()


class PostgresStore(SharedStore):
    """A database on a real PostgreSQL server, emptied for each world."""

    has_doubt = True

    def __init__(self, world: World, url: str) -> None:
        super().__init__(world, _make_engine(url.replace("postgresql:", "postgresql+psycopg:")))
        self.driver: Any = self.connection.connection.driver_connection
        self.driver.execute("SET search_path = simulation, pg_catalog, public")
        self.driver.execute("SET synchronous_commit = off")
        self.driver.execute("SET timezone = 'UTC'")
        kept = ("alembic_version", "schema_support")
        names = [name for name in metadata.tables if name not in kept]
        self.driver.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY")

    def transact(self, function: Callable[[Connection], T], *, commit: bool) -> tuple[T, set[str]]:
        """Run a transaction at the world's time, with as few round trips as possible."""
        topics: set[str] = set()
        self.connection.info[RUNG] = topics
        self.driver.execute(f"BEGIN; SET LOCAL simulation.now = '{EPOCH + self._world.now!r}'")
        try:
            result = function(self.connection)
        except BaseException:
            self.driver.execute("ROLLBACK")
            raise
        self.driver.execute("COMMIT" if commit else "ROLLBACK")
        return result, topics

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.driver.execute(statement, values).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class VirtualDatabase(Database):
    """The store as one process sees it."""

    def __init__(self, store: SharedStore, loop: VirtualLoop, die: Callable[[str], None]) -> None:
        self.signals = Signals()
        self.engine = store.engine
        self.loop = loop
        self.is_watching = False
        self.version = store.oldest_version
        self._is_refused = False
        self._store = store
        self._world = loop.world
        self._die = die
        self._chance = loop.world.chance(f"store of {loop.name}")
        self._claims = loop.world.chance(f"claims of {loop.name}")
        self._starts = loop.world.chance(f"starts of responses of {loop.name}")
        self._closed = False
        self.cut_off_until = 0.0
        """Until then, requests of this process are on their way: they arrive together when the network is back."""
        store.clients.append(self)

    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a transaction; it may fail, be slow, or kill its process at any point."""
        fault = self._chance.draw(WRITE_FAULTS)
        if function.__name__ == "claim" and self._store.has_doubt:
            fault = self._claims.draw(CLAIM_FAULTS) or fault
        if function == response_rows.start:
            fault = self._starts.draw(START_FAULTS) or fault
        if fault == CUT_OFF and self._store.has_doubt:
            self.cut_off_until = self._world.now + self._chance.uniform(*CUT_OFF_SECONDS)
        return await self._ask(lambda connection: function(connection, *args, **kwargs), fault, is_write=True)

    async def urgent(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write like `write`: the simulated store has no queue that it could pass."""
        return await self.write(function, *args, **kwargs)

    async def read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query on committed data."""
        fault = self._chance.draw(READ_FAULTS)
        return await self._ask(lambda connection: function(connection, *args, **kwargs), fault, is_write=False)

    async def recheck(self) -> None:
        """Stop using a store whose schema is too new for this version."""
        self._is_refused = self.version < self._store.oldest_version

    async def watch(self) -> None:
        """Hear the signals of other processes from now on."""
        self.is_watching = True

    async def close(self) -> None:
        """Refuse all further work."""
        self._closed = True
        self.is_watching = False

    def _ask(
        self, function: Callable[[Connection], Any], fault: str | None, *, is_write: bool
    ) -> "asyncio.Future[Any]":
        """Send a request to the store: it is served some time later, also if its caller has stopped waiting."""
        answer = self.loop.create_future()
        if self.loop.is_dead:
            return answer
        if self._closed or self._is_refused:
            answer.set_exception(StoreUnavailable("The store is closed.", retry_after=1))
            return answer
        seconds = QUERY_SECONDS * (0.5 + self._chance.random())
        if fault == "store: slow" or self._store.slow_until > self._world.now:
            seconds += self._chance.uniform(*SLOW_SECONDS)
        seconds += max(0.0, self.cut_off_until - self._world.now)
        # The request is under way: the death of its process does not call it back.
        self._world.later(seconds, self._serve, function, answer, fault, is_write)
        return answer

    def _serve(self, function: Callable[[Connection], Any], answer: Any, fault: str | None, is_write: bool) -> None:
        store = self._store
        self._world.recorder.add(f"{self.loop.name} {'writes' if is_write else 'reads'} {fault}")
        if self.loop.is_dead and not (is_write and store.has_doubt and self._chance.random() < 0.5):
            return
        if is_write and store.doubt_until > self._world.now:
            fault = "store: outcome unknown, " + ("done" if self._chance.random() < 0.5 else "not done")
        elif fault == "store: refused" or store.is_away or (store.is_read_only and is_write):
            self._answer(answer, StoreUnavailable(retry_after=1), failed=True)
            return
        if fault == "death before commit":
            if not self.loop.is_dead:
                self._die(fault)
        else:
            is_done = is_write and fault not in ("store: lost before commit", "store: outcome unknown, not done")
            self._transact(function, answer, fault, is_done=is_done)

    def _transact(
        self, function: Callable[[Connection], Any], answer: Any, fault: str | None, *, is_done: bool
    ) -> None:
        try:
            result, topics = self._store.transact(function, commit=is_done)
        except DataError as error:
            self._answer(answer, InvalidRequest(str(error)), failed=True)
        except SQLAlchemyError as error:
            # A write may come late, when its caller has gone and another has done the work. It is refused.
            if not isinstance(error, IntegrityError) or not (self.loop.is_dead or answer.done()):
                self._world.violate("every statement is valid", repr(error))
        except Exception as error:  # noqa: BLE001  raised to the caller
            self._answer(answer, error, failed=True)
        else:
            if is_done and self._store.has_changed():
                self._store.commits += 1
                self._store.writer = self
                self._store.on_commit()
            self._finish(answer, result, topics if is_done else set(), fault)

    def _finish(self, answer: Any, result: Any, topics: set[str], fault: str | None) -> None:
        if fault in ("death after commit", "death in a read"):
            self._store.ring(self, topics)
            if not self.loop.is_dead:
                self._die(fault)
            return
        if fault is not None and ("lost" in fault or "unknown" in fault):
            error = StoreUnavailable(retry_after=1)
            error.in_doubt = "unknown" in fault and self._store.has_doubt
            if not self._store.has_doubt and "not done" not in fault and "lost" not in fault:
                self._answer(answer, result, topics=topics)  # a file answers for what it has done
                return
            self._answer(answer, error, failed=True, topics=topics)
            return
        seconds = self._chance.uniform(*SLOW_SECONDS) if fault == "store: slow answer" else 0.0
        if self._store.slow_until > self._world.now:
            seconds += self._chance.uniform(0, SLOW_SECONDS[1] / 2)
        self._answer(answer, result, seconds=seconds, topics=topics)

    def _answer(
        self,
        answer: Any,
        value: Any,
        *,
        failed: bool = False,
        seconds: float = 0.0,
        topics: Sequence[str] | set[str] = (),
    ) -> None:
        """Bring an answer to its process."""
        delay = seconds + QUERY_SECONDS * self._chance.random()
        self.loop.call_later(delay, self._settle, answer, value, failed, set(topics))

    def _settle(self, answer: Any, value: Any, failed: bool, topics: set[str]) -> None:
        if not answer.done():
            if failed:
                answer.set_exception(value)
            else:
                answer.set_result(value)
        self._store.ring(self, topics)
