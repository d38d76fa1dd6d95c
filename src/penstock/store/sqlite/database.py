"""SQLite in threads of its own: one writer that commits waiting transactions together, and a few readers."""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from penstock.errors import StoreUnavailable
from penstock.observability import metrics
from penstock.store.database import RUNG, Database, P, T
from penstock.store.signals import Signals
from penstock.store.sqlite.change_watcher import Watcher
from penstock.store.sqlite.writer_queue import WriterQueue
from penstock.store.thread_pool import ThreadPool

MAX_QUEUED_WRITES: Final = 4096
MAX_QUEUED_READS: Final = 20_000
MAX_BATCH: Final = 128
READERS: Final = 3
CACHED_STATEMENTS: Final = 512
"""Compiled statements that a connection keeps: more than there are. To compile one takes longer than to run it."""
PATIENCE_SECONDS: Final = 5.0
"""The longest wait for writers of other processes."""
WATCH_SECONDS: Final = 0.05
WATCH_ALONE_SECONDS: Final = 0.25
"""Polling intervals for writes of other processes, if some wrote lately and if none did."""

log = logging.getLogger(__name__)


class _Work:
    """A transaction that waits for the writer."""

    __slots__ = ("error", "function", "future", "loop", "result", "topics")

    def __init__(self, function: Callable[[Connection], Any]) -> None:
        self.function = function
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: Exception | None = None
        self.topics: set[str] = set()


def _settle(batch: list[_Work], signals: Signals) -> None:
    """Answer the callers on the event loop, then signal listeners."""
    for work in batch:
        if not work.future.done():
            if work.error is None:
                work.future.set_result(work.result)
            else:
                work.future.set_exception(work.error)
        signals.ring(work.topics)


def _prepare(connection: Any, _record: Any) -> None:
    """Set up a new connection: write-ahead log, every commit on disk before it is answered."""
    connection.isolation_level = None  # transactions are begun by us, not guessed by the driver
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {PATIENCE_SECONDS * 1000:.0f}")
    _use_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA cache_size = -16000")
    cursor.close()


def _use_write_ahead_log(cursor: sqlite3.Cursor) -> None:
    """Turn on the write-ahead log. SQLite's busy timeout does not cover two processes that open a new file."""
    give_up_at = time.monotonic() + 5
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.02)
        else:
            return


def open_file(path: Path) -> Engine:
    """Return an engine for the file. Connections may move between threads, one at a time."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=READERS + 1,
        connect_args={"check_same_thread": False, "cached_statements": CACHED_STATEMENTS},
        isolation_level="AUTOCOMMIT",
    )
    event.listen(engine, "connect", _prepare)
    return engine


def _driver(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection: SQLAlchemy would slow the statements that begin and end a transaction."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)  # noqa: S101  the engine makes no other
    return driver


def _unavailable(cause: Exception) -> StoreUnavailable:
    error = StoreUnavailable(retry_after=1)
    error.__cause__ = cause
    return error


def _nothing(_connection: Connection) -> None:
    """Do nothing: the write only wakes the writer."""


def _drop(connection: Connection | None) -> None:
    """Close a connection for good and roll back its transaction: the next one starts afresh."""
    if connection is not None:
        connection.invalidate()
        connection.close()


class SqliteDatabase(Database):
    """A store in a file, written to by several processes of one machine."""

    def __init__(self, path: Path) -> None:
        self.signals = Signals()
        self.engine = open_file(path)
        self.patience = PATIENCE_SECONDS
        self._writer_queue = WriterQueue(path.with_name(f"{path.name}-turn"))
        self._watcher: Watcher | None = None
        self._is_failing = False
        self._waiting: queue.Queue[_Work | None] = queue.Queue(MAX_QUEUED_WRITES)
        self._reading = 0
        self._closed = False
        self._readers = ThreadPool(READERS, "store-reader")
        self._writer = threading.Thread(target=self._write_forever, name="store-writer", daemon=True)
        self._writer.start()

    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a transaction. When this returns, it is committed and on disk."""
        self._refuse_if_closed()
        work = _Work(lambda connection: function(connection, *args, **kwargs))
        try:
            self._waiting.put_nowait(work)
        except queue.Full:
            raise StoreUnavailable("The store has too many writes waiting.", retry_after=1) from None
        return await work.future

    async def read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function on a consistent view of the store."""
        self._refuse_if_closed()

        def look() -> T:
            with self.engine.connect() as connection:
                control = _driver(connection).execute
                control("BEGIN")
                try:
                    return function(connection, *args, **kwargs)
                finally:
                    if _driver(connection).in_transaction:  # SQLite itself ends it where the disk fails
                        control("ROLLBACK")

        if self._reading >= MAX_QUEUED_READS:
            raise StoreUnavailable("The store has too many reads waiting.", retry_after=1)
        self._reading += 1
        try:
            return await self._readers.do(look)
        except (DBAPIError, sqlite3.Error) as error:
            raise StoreUnavailable(retry_after=1) from error
        finally:
            self._reading -= 1

    async def watch(self) -> None:
        """Signal writes of other processes, too, from now on and with a small delay."""
        self._watcher = Watcher(self.signals)
        await self.write(_nothing)

    async def close(self) -> None:
        """Finish waiting work, then close the file."""
        self._closed = True  # nothing may be queued after the None that ends the writer
        await asyncio.to_thread(self._waiting.put, None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.close)
        self._writer_queue.close()
        self.engine.dispose()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable("The store is closed.", retry_after=1)

    # -- the writer's thread

    def _write_forever(self) -> None:
        connection: Connection | None = None
        while (batch := self._next_batch()) is not None:
            if batch:
                connection = self._process(connection, batch)
            if self._watcher is not None:
                connection = self._signal_others(connection, self._watcher, looked=bool(batch))
        _drop(connection)

    def _process(self, connection: Connection | None, batch: list[_Work]) -> Connection | None:
        begun = time.perf_counter()
        try:
            connection = connection or self._connect()
            self._commit(connection, batch)
        except Exception as error:  # noqa: BLE001  the writer must outlive any failure
            self._give_up(batch, error)
            connection = _drop(connection)
        metrics.STORE_BATCH.observe(len(batch))
        metrics.STORE_SECONDS.observe(time.perf_counter() - begun)
        metrics.STORE_QUEUE.set(self._waiting.qsize())
        self._answer(batch)
        return connection

    def _connect(self) -> Connection:
        connection = self.engine.connect()
        _driver(connection).execute("PRAGMA busy_timeout = 0")  # the writer queue has its own polling
        return connection

    def _signal_others(self, connection: Connection | None, watcher: Watcher, *, looked: bool) -> Connection | None:
        """Signal writes of other processes. A batch of our own has looked for them already (`looked`)."""
        try:
            connection = connection or self._connect()
            driver = _driver(connection)
            if not looked:
                watcher.look(driver)
            if watcher.is_behind:
                watcher.signal(driver)
            self._is_failing = False
        except Exception:
            if not self._is_failing:  # logged once: it is retried many times a second
                log.exception("reading the writes of other processes failed; it is retried")
            self._is_failing = True
            connection = _drop(connection)
        return connection

    def _next_batch(self) -> list[_Work] | None:
        """Wait for work and return a batch. It is empty when it is time to poll, None at the end."""
        try:
            first = self._waiting.get(timeout=self._pause())
        except queue.Empty:
            return []
        if first is None:
            return None
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                work = self._waiting.get_nowait()
            except queue.Empty:
                break
            if work is None:
                self._waiting.put(None)  # the last batch first, then the end
                break
            batch.append(work)
        return batch

    def _pause(self) -> float | None:
        """Return the seconds until the next poll is due."""
        if self._watcher is None:
            return None
        if self._watcher.is_behind:
            return 0.0
        return WATCH_SECONDS if self._watcher.has_recent else WATCH_ALONE_SECONDS

    def _commit(self, connection: Connection, batch: list[_Work]) -> None:
        """Commit a whole batch at once. A failing transaction rolls back only itself."""
        driver, watcher = _driver(connection), self._watcher
        control = driver.execute
        self._writer_queue.begin(driver, self.patience)
        if watcher is not None:
            watcher.look(driver)
        for work in batch:
            connection.info[RUNG] = work.topics
            control("SAVEPOINT work")
            try:
                work.result = work.function(connection)
            except Exception as error:  # handed to the caller
                if not driver.in_transaction:
                    raise  # SQLite itself has undone the whole batch, as it does on a full disk
                control("ROLLBACK TO work")
                work.error = _unavailable(error) if isinstance(error, SQLAlchemyError) else error
                work.topics.clear()
            control("RELEASE work")
        tops = None if watcher is None else watcher.count(driver)
        control("COMMIT")
        if watcher is not None and tops is not None:
            watcher.pass_over(tops)

    def _give_up(self, batch: list[_Work], error: Exception) -> None:
        """Fail the whole batch: the commit failed (disk full, locked), and nothing is stored."""
        for work in batch:
            work.error = _unavailable(error)
            work.topics.clear()

    def _answer(self, batch: list[_Work]) -> None:
        loop = batch[0].loop
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, batch, self.signals)
