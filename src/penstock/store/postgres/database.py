"""PostgreSQL from a few threads: every write is a transaction of its own, retried where that is safe."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Concatenate, Final, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.engine.interfaces import IsolationLevel
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError

from penstock.errors import InvalidRequest, StoreUnavailable
from penstock.observability import metrics
from penstock.store import schema, sql
from penstock.store.database import RUNG, Database, P, T
from penstock.store.postgres import notifier
from penstock.store.postgres.connection_watchdog import ConnectionWatchdog
from penstock.store.postgres.event_horizon import CommittedPosition
from penstock.store.postgres.listener import Listener
from penstock.store.postgres.notifier import Notifier
from penstock.store.signals import Signals
from penstock.store.thread_pool import ThreadPool

R = TypeVar("R")

WRITER_THREADS: Final = 4
READER_THREADS: Final = 4
MAX_QUEUED_WRITES: Final = 4096
MAX_QUEUED_READS: Final = 20_000
PATIENCE_SECONDS: Final = 5.0
"""The longest wait for a server that is away: a short restart goes unnoticed."""
URGENT_SECONDS: Final = 1.0
STUCK_SECONDS: Final = 12.0
"""The longest wait for an answer. The server ends a statement before that."""
MAX_TRIES: Final = 20
SESSION: Final = (
    "-c statement_timeout=10000 -c lock_timeout=8000 -c idle_in_transaction_session_timeout=3000 -c timezone=UTC"
)
"""Timeouts that free a frozen process's locks before its lease ends, for which others wait."""
CONNECT: Final = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
VIEW: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
RACES: Final = frozenset(("40001", "40P01", "55P03", "23505"))
"""Lost races that a retry may win: serialization, deadlock, lock timeout, duplicate key."""
READ_ONLY: Final = "25006"
NOT_SUPPORTED: Final = "0A000"
AWAY: Final = ("08", "57P", "53", READ_ONLY)
"""Errors of a server that is away, stopping, out of resources or read-only during a failover."""
REFUSED: Final = "The store is of a newer version than this process, which is to be replaced."
UNSTORABLE: Final = "A text has a NUL character in it, or a number is too large: it cannot be stored."


log = logging.getLogger(__name__)


def make_pool(
    url: str, session: str = SESSION, size: int = WRITER_THREADS + 2, isolation: IsolationLevel | None = None
) -> Engine:
    """Return a connection pool. Connections are opened on demand, and none is assumed to last."""
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        isolation_level=isolation,
        pool_size=size,
        max_overflow=0,
        pool_timeout=PATIENCE_SECONDS,
        pool_use_lifo=True,
        connect_args={**CONNECT, "application_name": "penstock", "options": session},
    )
    event.listen(engine, "handle_error", _leave_readers)
    event.listen(engine, "before_cursor_execute", _replace_nul, retval=True)
    return engine


def _replace_nul(
    _connection: Connection,
    _cursor: Any,
    statement: str,
    values: Any,
    _context: Any,
    is_many: bool,  # noqa: FBT001
) -> tuple[str, Any]:
    """Replace NUL characters, by which PostgreSQL can find nothing. Texts to be stored are checked before."""
    if is_many or not values:
        return statement, values
    named: dict[str, Any] | None = values if hasattr(values, "keys") else None
    given: list[Any] = list(values) if named is None else list(named.values())
    if not any(type(value) is str and "\0" in value for value in given):
        return statement, values
    found = [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in given]
    return statement, found if named is None else dict(zip(named, found, strict=True))


def _leave_readers(context: ExceptionContext) -> None:
    """Treat a read-only server as disconnected: new connections reach the primary."""
    state = getattr(context.original_exception, "sqlstate", None)
    if state == READ_ONLY or (state == NOT_SUPPORTED and "recovery" in str(context.original_exception)):
        context.is_disconnect, context.invalidate_pool_on_disconnect = True, False


class Written(NamedTuple, Generic[T]):
    """The result of a write, and the topics to signal."""

    result: T
    topics: set[str]


class PostgresDatabase(Database):
    """A store on a PostgreSQL server, shared by several machines."""

    is_shared = True

    def __init__(self, url: str) -> None:
        self.signals = Signals()
        self.engine = make_pool(url)
        self.patience = PATIENCE_SECONDS
        self._looking_engine = make_pool(url, size=READER_THREADS, isolation="AUTOCOMMIT")
        self._writers = ThreadPool(WRITER_THREADS, "store-writer")
        self._readers = ThreadPool(READER_THREADS, "store-reader")
        self._urgent = ThreadPool(1, "store-urgent")
        self._waiting = 0
        self._reading = 0
        self._closed = False
        self._watchdog = ConnectionWatchdog(self.engine, self._looking_engine)
        self._notifier = Notifier(self._notify_others)
        self._listener = Listener(self.engine.url, self.signals, self._notifier.sender)
        self._horizon = CommittedPosition(self)

    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a transaction. When this returns, it is committed and on the server's disk."""
        if self._waiting >= MAX_QUEUED_WRITES:
            raise StoreUnavailable("The store has too many writes waiting.", retry_after=1)
        work: Callable[[Connection], T] = lambda connection: function(connection, *args, **kwargs)  # noqa: E731
        writing = self._begin(self._writers, self._write, work, self.patience)
        self._waiting += 1
        metrics.STORE_QUEUE.set(self._waiting)
        writing.add_done_callback(self._end_write)
        return (await self._wait(writing)).result

    async def read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function on a consistent view of the store."""
        return await self._look(self._read, lambda connection: function(connection, *args, **kwargs))

    async def look(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `read`, but for one statement, which needs no transaction."""
        return await self._look(self._read_once, lambda connection: function(connection, *args, **kwargs))

    async def urgent(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write without waiting for other writes, and with a short timeout: for what must not be late."""
        work: Callable[[Connection], T] = lambda connection: function(connection, *args, **kwargs)  # noqa: E731
        writing = self._begin(self._urgent, self._write, work, URGENT_SECONDS)
        writing.add_done_callback(self._announce)
        return (await self._wait(writing)).result

    async def settled(self) -> int | None:
        """Return the position up to which the event log is complete: concurrent writers may commit out of order."""
        return await self._horizon.find()

    async def recheck(self) -> None:
        """Check that this version still supports the schema: a newer version may have changed it."""
        try:
            await self._wait(self._begin(self._readers, self._read, schema.check, self.patience))
        except schema.SchemaTooNew as error:
            if not self.is_refused:
                fields = {"why": str(error)}
                log.error("the store has a newer schema; it is not used any more", extra={"fields": fields})  # noqa: TRY400
            self.is_refused = True
        else:
            self.is_refused = False

    async def watch(self) -> None:
        """Listen for writes of other processes, from now on and through every reconnect."""
        await self._listener.start()

    async def close(self) -> None:
        """Finish waiting work, then close all connections."""
        await self._listener.stop()
        await self._notifier.stop()
        self._closed = True
        pools = (self._writers, self._readers, self._urgent)
        ending = asyncio.gather(*(asyncio.to_thread(each.close) for each in pools))
        done, _ = await asyncio.wait((ending,), timeout=self.patience)
        if not done:
            self._watchdog.cut(0.0)
        await ending
        self.engine.dispose()
        self._looking_engine.dispose()

    async def _look(
        self, how: Callable[[Callable[[Connection], T], float], T], function: Callable[[Connection], T]
    ) -> T:
        if self._reading >= MAX_QUEUED_READS:
            raise StoreUnavailable("The store has too many reads waiting.", retry_after=1)
        reading = self._begin(self._readers, how, function, self.patience)
        self._reading += 1
        reading.add_done_callback(self._end_read)
        return await self._wait(reading)

    async def _notify_others(self, messages: Sequence[str]) -> None:
        send: Callable[[Connection], None] = lambda connection: notifier.notify(connection, messages)  # noqa: E731
        await self._wait(self._begin(self._readers, self._read_once, send, self.patience))

    def _begin(
        self,
        threads: ThreadPool,
        work: Callable[[Callable[[Connection], T], float], R],
        function: Callable[[Connection], T],
        patience: float,
    ) -> "asyncio.Future[R]":
        if self._closed:
            raise StoreUnavailable("The store is closed.", retry_after=1)
        if self.is_refused and function is not schema.check:
            raise StoreUnavailable(REFUSED, retry_after=1)
        working = threads.do(partial(work, function, time.monotonic() + patience))
        working.add_done_callback(_forgive)
        return working

    async def _wait(self, working: "asyncio.Future[T]") -> T:
        """Wait for a result, but not longer than the server may take to answer. The work itself continues."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        working.add_done_callback(partial(_pass_on, answer))
        timer = loop.call_later(self.patience + STUCK_SECONDS, self._give_up, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    def _give_up(self, answer: "asyncio.Future[Any]") -> None:
        self._watchdog.cut(STUCK_SECONDS)
        if not answer.done():
            answer.set_exception(_in_doubt())

    def _end_write(self, writing: "asyncio.Future[Written[Any]]") -> None:
        self._waiting -= 1
        self._announce(writing)

    def _end_read(self, _reading: "asyncio.Future[Any]") -> None:
        self._reading -= 1

    def _announce(self, writing: "asyncio.Future[Written[Any]]") -> None:
        """Signal the topics of a committed write, also if its caller has gone."""
        if not writing.cancelled() and writing.exception() is None:
            topics = writing.result().topics
            self.signals.ring(topics)
            self._notifier.queue(topics)

    # -- in the threads

    def _write(self, function: Callable[[Connection], T], give_up_at: float) -> "Written[T]":
        begun = time.perf_counter()
        topics: set[str] = set()

        def transact() -> T:
            with self._watchdog.connect(self.engine) as connection:
                topics.clear()
                connection.info[RUNG] = topics
                result = function(connection)
                try:
                    connection.commit()
                except DBAPIError as error:  # it may be committed: the caller checks, or asks again
                    raise _in_doubt() from error
                return result

        try:
            return Written(_retry(transact, give_up_at), topics)
        finally:
            metrics.STORE_SECONDS.observe(time.perf_counter() - begun)

    def _read(self, function: Callable[[Connection], T], give_up_at: float) -> T:
        def read(connection: Connection) -> T:
            sql.run(connection, VIEW)  # ended when the connection returns to the pool
            return function(connection)

        return self._read_once(read, give_up_at)

    def _read_once(self, function: Callable[[Connection], T], give_up_at: float) -> T:
        def look() -> T:
            with self._watchdog.connect(self._looking_engine) as connection:
                return function(connection)

        return _retry(look, give_up_at)


def _in_doubt() -> StoreUnavailable:
    """Return the error of a write whose outcome is unknown."""
    error = StoreUnavailable(retry_after=1)
    error.in_doubt = True
    return error


def _forgive(working: "asyncio.Future[Any]") -> None:
    """Mark a failure as retrieved: its caller may be gone."""
    if not working.cancelled():
        working.exception()


def _pass_on(answer: "asyncio.Future[T]", working: "asyncio.Future[T]") -> None:
    """Copy a result to its caller, if the caller still waits."""
    if answer.done() or working.cancelled():
        return
    failure = working.exception()
    if failure is None:
        answer.set_result(working.result())
    else:
        answer.set_exception(failure)


def _retry(attempt: Callable[[], T], give_up_at: float) -> T:
    """Retry until it succeeds, fails for good, or the time is over."""
    last: SQLAlchemyError | None = None
    for number in range(MAX_TRIES):
        try:
            if time.monotonic() > give_up_at:
                break
            return attempt()
        except DataError as error:
            raise InvalidRequest(UNSTORABLE) from error
        except SQLAlchemyError as error:
            wait = _backoff(error, number)
            if wait is None or time.monotonic() + wait > give_up_at:
                raise StoreUnavailable(retry_after=1) from error
            last = error
        time.sleep(wait)
    raise StoreUnavailable(retry_after=1) from last


def _backoff(error: SQLAlchemyError, number: int) -> float | None:
    """Return the backoff in seconds, or None where a retry cannot help."""
    state = str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")
    if state in RACES:
        return random.uniform(0, 0.002) * 2 ** min(number, 6)  # noqa: S311  jitter
    if state.startswith(AWAY) or _is_cut(error):
        return min(0.5, 0.02 * 2**number)
    return None


def _is_cut(error: SQLAlchemyError) -> bool:
    """Return whether the connection was lost, or never made."""
    if not isinstance(error, DBAPIError):
        return False  # such as an exhausted pool, whose timeout is over already
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or (state is None and type(error.orig).__name__ == "OperationalError")
