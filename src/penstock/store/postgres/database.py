"""PostgreSQL from a few threads: every write is a transaction of its own, tried again where that is safe."""

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

WRITERS: Final = 4
READERS: Final = 4
MAX_WAITING: Final = 4096
MAX_READING: Final = 20_000
PATIENCE_SECONDS: Final = 5.0
"""How long a write waits for a server that is away: a short restart of it is not noticed."""
URGENT_SECONDS: Final = 1.0
STUCK_SECONDS: Final = 12.0
"""How long an answer is waited for; the server ends a statement before that."""
MAX_TRIES: Final = 20
SESSION: Final = (
    "-c statement_timeout=10000 -c lock_timeout=8000 -c idle_in_transaction_session_timeout=3000 -c timezone=UTC"
)
"""A process that stands still lets go of what it has locked before its lease is over: others wait for that."""
CONNECT: Final = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
VIEW: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
RACES: Final = frozenset(("40001", "40P01", "55P03", "23505"))
"""Someone else was faster: serialization, deadlock, lock, and a row of the same key. Looked at anew, it may go well."""
READ_ONLY: Final = "25006"
NOT_SUPPORTED: Final = "0A000"
AWAY: Final = ("08", "57P", "53", READ_ONLY)
"""The server is not there, stops, has no room, or only lets read while another takes over."""
REFUSED: Final = "The store is of a newer version than this process, which is to be replaced."
UNSTORABLE: Final = "A text has a NUL character in it, or a number is too large: it cannot be stored."


log = logging.getLogger(__name__)


def make_pool(
    url: str, session: str = SESSION, size: int = WRITERS + 2, isolation: IsolationLevel | None = None
) -> Engine:
    """Connections that are made when they are needed; none is trusted to last."""
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
    """PostgreSQL knows no NUL in texts, so nothing is found by one; what is to be stored is checked before."""
    if is_many or not values:
        return statement, values
    named: dict[str, Any] | None = values if hasattr(values, "keys") else None
    given: list[Any] = list(values) if named is None else list(named.values())
    if not any(type(value) is str and "\0" in value for value in given):
        return statement, values
    found = [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in given]
    return statement, found if named is None else dict(zip(named, found, strict=True))


def _leave_readers(context: ExceptionContext) -> None:
    """Who only lets read is no longer the one to write to: whoever is, answers new connections."""
    state = getattr(context.original_exception, "sqlstate", None)
    if state == READ_ONLY or (state == NOT_SUPPORTED and "recovery" in str(context.original_exception)):
        context.is_disconnect, context.invalidate_pool_on_disconnect = True, False


class Written(NamedTuple, Generic[T]):
    """What a write has come to, and which topics are to be rung."""

    result: T
    topics: set[str]


class PostgresDatabase(Database):
    """The store of many machines."""

    def __init__(self, url: str) -> None:
        self.signals = Signals()
        self.engine = make_pool(url)
        self.patience = PATIENCE_SECONDS
        self._looking_engine = make_pool(url, size=READERS, isolation="AUTOCOMMIT")
        self._writers = ThreadPool(WRITERS, "store-writer")
        self._readers = ThreadPool(READERS, "store-reader")
        self._hurried = ThreadPool(1, "store-urgent")
        self._waiting = 0
        self._reading = 0
        self._closed = False
        self._watchdog = ConnectionWatchdog(self.engine, self._looking_engine)
        self._notifier = Notifier(self._tell_others)
        self._listener = Listener(self.engine.url, self.signals, self._notifier.sender)
        self._horizon = CommittedPosition(self)

    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a transaction; when this returns, it is committed and on the server's disk."""
        if self._waiting >= MAX_WAITING:
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
        """The same where one statement is all, which needs no transaction."""
        return await self._look(self._read_once, lambda connection: function(connection, *args, **kwargs))

    async def urgent(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A write that waits for no other, and not long for the server: for what must not be late."""
        work: Callable[[Connection], T] = lambda connection: function(connection, *args, **kwargs)  # noqa: E731
        writing = self._begin(self._hurried, self._write, work, URGENT_SECONDS)
        writing.add_done_callback(self._announce)
        return (await self._wait(writing)).result

    async def settled(self) -> int | None:
        """Up to which position the event log is complete: those who write at the same time may be overtaken."""
        return await self._horizon.find()

    async def recheck(self) -> None:
        """Look whether the schema is still one that this version can serve: a newer one may have changed it."""
        try:
            await self._wait(self._begin(self._readers, self._read, schema.check, self.patience))
        except schema.SchemaTooNew as error:
            if not self.is_refused:
                log.error("the store is not used any more", extra={"fields": {"why": str(error)}})  # noqa: TRY400  all is said
            self.is_refused = True
        else:
            self.is_refused = False

    async def watch(self) -> None:
        """Listen for what other processes write, from now on and through every loss of the connection."""
        await self._listener.start()

    async def close(self) -> None:
        """Finish what is waiting, then let go of every connection."""
        await self._listener.stop()
        await self._notifier.stop()
        self._closed = True
        crews = (self._writers, self._readers, self._hurried)
        ending = asyncio.gather(*(asyncio.to_thread(each.close) for each in crews))
        done, _ = await asyncio.wait((ending,), timeout=self.patience)
        if not done:
            self._watchdog.cut(0.0)
        await ending
        self.engine.dispose()
        self._looking_engine.dispose()

    async def _look(
        self, how: Callable[[Callable[[Connection], T], float], T], function: Callable[[Connection], T]
    ) -> T:
        if self._reading >= MAX_READING:
            raise StoreUnavailable("The store has too many reads waiting.", retry_after=1)
        reading = self._begin(self._readers, how, function, self.patience)
        self._reading += 1
        reading.add_done_callback(self._end_read)
        return await self._wait(reading)

    async def _tell_others(self, messages: Sequence[str]) -> None:
        say: Callable[[Connection], None] = lambda connection: notifier.notify(connection, messages)  # noqa: E731
        await self._wait(self._begin(self._readers, self._read_once, say, self.patience))

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
        """Who waits is not kept for longer than the server may take for an answer; what is under way goes on."""
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
        """What is committed is told, also if its caller has gone."""
        if not writing.cancelled() and writing.exception() is None:
            topics = writing.result().topics
            self.signals.ring(topics)
            self._notifier.tell(topics)

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
                except DBAPIError as error:  # nobody knows whether it is committed: the caller looks, or asks again
                    raise _in_doubt() from error
                return result

        try:
            return Written(_persist(transact, give_up_at), topics)
        finally:
            metrics.STORE_SECONDS.observe(time.perf_counter() - begun)

    def _read(self, function: Callable[[Connection], T], give_up_at: float) -> T:
        def read(connection: Connection) -> T:
            sql.run(connection, VIEW)  # ended where the connection is given back
            return function(connection)

        return self._read_once(read, give_up_at)

    def _read_once(self, function: Callable[[Connection], T], give_up_at: float) -> T:
        def look() -> T:
            with self._watchdog.connect(self._looking_engine) as connection:
                return function(connection)

        return _persist(look, give_up_at)


def _in_doubt() -> StoreUnavailable:
    """Make the error of a write whose outcome is not known."""
    error = StoreUnavailable(retry_after=1)
    error.in_doubt = True
    return error


def _forgive(working: "asyncio.Future[Any]") -> None:
    """What went wrong was told to whoever waited, if anyone still did."""
    if not working.cancelled():
        working.exception()


def _pass_on(answer: "asyncio.Future[T]", working: "asyncio.Future[T]") -> None:
    """To whoever still waits."""
    if answer.done() or working.cancelled():
        return
    failure = working.exception()
    if failure is None:
        answer.set_result(working.result())
    else:
        answer.set_exception(failure)


def _persist(attempt: Callable[[], T], give_up_at: float) -> T:
    """Try until it goes well, while there is hope and time."""
    last: SQLAlchemyError | None = None
    for number in range(MAX_TRIES):
        try:
            if time.monotonic() > give_up_at:
                break
            return attempt()
        except DataError as error:
            raise InvalidRequest(UNSTORABLE) from error
        except SQLAlchemyError as error:
            wait = _hopeful_wait(error, number)
            if wait is None or time.monotonic() + wait > give_up_at:
                raise StoreUnavailable(retry_after=1) from error
            last = error
        time.sleep(wait)
    raise StoreUnavailable(retry_after=1) from last


def _hopeful_wait(error: SQLAlchemyError, number: int) -> float | None:
    """How long to wait before trying again; None where that would not help."""
    state = str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")
    if state in RACES:
        return random.uniform(0, 0.002) * 2 ** min(number, 6)  # noqa: S311  so that two do not meet again
    if state.startswith(AWAY) or _is_cut(error):
        return min(0.5, 0.02 * 2**number)
    return None


def _is_cut(error: SQLAlchemyError) -> bool:
    """Whether the connection is gone, or was never made."""
    if not isinstance(error, DBAPIError):
        return False  # such as a pool that has none to give: its time is over already
    state = getattr(error.orig, "sqlstate", None)
    return error.connection_invalidated or (state is None and type(error.orig).__name__ == "OperationalError")
