"""Several real servers on one data folder, that are killed, stopped and started again."""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import aiohttp
from ports import free_port
from sqlalchemy import Connection

from penstock.accounts.administration import AccountTag, ensure_account, issue_key, set_budget
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.budgets import Period, own_tag
from penstock.domain.money import parse_usd
from penstock.settings.tables import load
from penstock.store.connect import open_database, prepare

PENSTOCK = Path(sys.executable).with_name("penstock")
READY_SECONDS = 60.0


class Fleet:
    """`penstock serve`, so many times, each on its own port for as long as the ordeal lasts."""

    def __init__(self, data: Path, servers: int) -> None:
        self.data = data
        self._ports = [free_port() for _ in range(servers)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self._ports]
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self.start_seconds: list[float] = []
        self.recovery_seconds: list[float] = []
        self.runner_kills = 0
        self.wrong: list[str] = []

    # -- commands

    async def command(self, *words: str) -> str:
        """Run a command on the data folder; what it printed."""
        code, output = await self.try_command(*words)
        assert code == 0, output
        return output

    async def try_command(self, *words: str) -> tuple[int, str]:
        """The same; its exit code too."""
        process = await asyncio.create_subprocess_exec(
            PENSTOCK, *words, "--data", self.data, stdout=asyncio.subprocess.PIPE, env=_environment()
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()

    async def make_keys(self, form: str, cap: str) -> tuple[list[str], dict[str, set[str]]]:
        """Keys whose spending one budget bounds, and for each owner of a budget the keys that it is for."""
        database = open_database(load(None, {}, {"data": self.data}).database_url)
        await asyncio.to_thread(prepare, database.engine)
        try:
            return await database.write(_make_keys, form, cap)
        finally:
            await database.close()

    # -- servers

    async def start_all(self) -> None:
        """Start whatever does not run."""
        await asyncio.gather(*(self.start(each) for each in range(len(self.urls)) if each not in self._processes))

    async def start(self, number: int) -> None:
        """Start a server and wait until it answers."""
        begun = time.monotonic()
        with (self.data / f"server-{number}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                PENSTOCK, "serve", "--port", str(self._ports[number]), "--data", self.data,
                stdout=log, stderr=log, env=_environment(),
            )  # fmt: skip
        try:
            await self._await_ready(number, process)
        except BaseException:
            if process.returncode is None:
                process.kill()
                await process.wait()
            raise
        self._processes[number] = process
        self.start_seconds.append(time.monotonic() - begun)

    async def _await_ready(self, number: int, process: asyncio.subprocess.Process) -> None:
        async with asyncio.timeout(READY_SECONDS), aiohttp.ClientSession() as session:
            while True:
                assert process.returncode is None, (self.data / f"server-{number}.log").read_text()[-3000:]
                try:
                    async with session.get(f"{self.urls[number]}/readyz") as response:
                        if response.status == 200:
                            return
                except (aiohttp.ClientError, ConnectionError):
                    pass
                await asyncio.sleep(0.02)

    async def kill_some(self, kills: int, gap: float, chance: random.Random) -> None:
        """Kill servers at random moments, every third time the one that runs the jobs; each is started again."""
        async with asyncio.TaskGroup() as errands:
            for turn in range(kills):
                await asyncio.sleep(chance.uniform(0, 2 * gap))
                while not self._processes:  # noqa: ASYNC110  all are being started
                    await asyncio.sleep(0.05)
                number = self._find_runner() if turn % 3 == 0 else None
                self.runner_kills += number is not None
                number = chance.choice(list(self._processes)) if number is None else number
                journal = _journal_of(self._processes[number].pid)
                await self._kill(number)
                errands.create_task(self._revive(number, chance.uniform(0.1, 1.0)))
                if journal is not None:
                    errands.create_task(self._await_recovery(journal))

    async def _kill(self, number: int) -> None:
        process = self._processes[number]
        process.kill()
        await process.wait()
        del self._processes[number]

    async def freeze_one(self, seconds: float, chance: random.Random) -> None:
        """Stop a server in its tracks and let it go on when what it held has long been given to others."""
        await asyncio.sleep(chance.uniform(0.5, 2.0))
        process = self._processes[chance.choice(list(self._processes))]
        process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            process.send_signal(signal.SIGCONT)

    async def _revive(self, number: int, pause: float) -> None:
        await asyncio.sleep(pause)
        await self.start(number)

    async def _await_recovery(self, journal: Path) -> None:
        """How long it takes until another has charged what the dead one left, and let go of what it held."""
        begun = time.monotonic()
        while await asyncio.to_thread(journal.exists):  # another process removes it
            if time.monotonic() - begun > READY_SECONDS:
                self.wrong.append(f"nobody took over {journal.name}")
                return
            await asyncio.sleep(0.01)
        self.recovery_seconds.append(time.monotonic() - begun)

    def _find_runner(self) -> int | None:
        """The server that holds the folder's lock."""
        holder = (self.data / "penstock.lock").read_text().strip()
        found = [number for number, process in self._processes.items() if str(process.pid) == holder]
        return found[0] if found else None

    async def stop_all(self) -> float:
        """SIGTERM to all of them at once; how long the last took to end."""
        begun = time.monotonic()
        processes, self._processes = dict(self._processes), {}
        for process in processes.values():
            process.send_signal(signal.SIGTERM)
        for number, process in processes.items():
            code = await process.wait()
            if code != 0:
                self.wrong.append(f"server {number} ended with {code} on SIGTERM")
        return time.monotonic() - begun

    async def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
                await process.wait()

    def read_logs(self) -> list[str]:
        """Every line in which a server tells of an error."""
        lines: Sequence[str] = [
            line for path in sorted(self.data.glob("server-*.log")) for line in path.read_text().splitlines()
        ]
        return [line for line in lines if '"level":"error"' in line or "Traceback" in line]


def _make_keys(connection: Connection, form: str, cap: str) -> tuple[list[str], dict[str, set[str]]]:
    now, whole = time.time(), Allowance(period=Period.TOTAL, cap=parse_usd(cap))
    account = ensure_account(connection, Actor.CLI, "ordeal", now)
    of_keys = {"key": [cap], "account": [None] * 3, "both": [cap, "0.4", "0.2"], "tag": [None] * 2}[form]
    tags = ("crowd", "unlimited") if form == "tag" else ()
    texts: list[str] = []
    payers: dict[str, set[str]] = {}
    for amount in of_keys:
        allowances = () if amount is None else (replace(whole, cap=parse_usd(amount)),)
        text, key = issue_key(connection, Actor.CLI, account.id, KeyWish(allowances=allowances, tags=tags), now)
        texts.append(text)
        payers[key.public_id] = {key.public_id}
    if form == "key":
        return texts, payers
    if form == "tag":
        set_budget(connection, Actor.CLI, AccountTag(account.id, account.name, "crowd"), whole, now)
        return texts, {own_tag(account.id, "crowd"): set(payers)}
    set_budget(connection, Actor.CLI, account, whole, now)
    of_account = {account.id: set(payers)}
    return texts, of_account if form == "account" else payers | of_account


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}


def _journal_of(pid: int) -> Path | None:
    """The lock of the journal that a process writes, where the system tells."""
    folder = Path(f"/proc/{pid}/fd")
    if not folder.is_dir():
        return None
    for link in folder.iterdir():
        with suppress(FileNotFoundError):  # closed in this moment
            path = link.readlink()
            if path.parent.name == "journal" and path.suffix == ".lock":
                return path
    return None
