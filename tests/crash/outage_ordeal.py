"""Gateways serve a steady chat load while PostgreSQL is frozen or killed; then the answers and the books are counted.

python tests/crash/outage_ordeal.py --seconds 15 --cap 10 --rate 10
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

import aiohttp
import metered_chat
from fleet_machines import Machine, Machines
from sqlalchemy import Connection

from penstock.accounts.administration import ensure_account, issue_key
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.api_keys import Limits
from penstock.domain.budgets import Period
from penstock.domain.money import format_usd, parse_usd
from penstock.store.connect import open_database

TOKENS: Final = 10
PRICE: Final = 100_000
"""Of a token, in 10⁻⁹ USD."""
ANSWER: Final = (metered_chat.PROMPT_TOKENS + TOKENS) * PRICE
READY_SECONDS: Final = 60.0
SETTINGS: Final = """
[server]
log_format = "json"
log_level = "warning"
{chat}
[vendors.metered]
type = "openai_compatible"
api_key = "{key}"
base_url = "{url}/v1"
[[models]]
id = "metered"
kind = "chat"
vendor = "metered"
model = "metered"
price = {{input_per_million = "100", output_per_million = "100"}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Describe the outage and the load."""

    seconds: float = 15.0
    how: str = "freeze"
    """`freeze` or `kill`."""
    rate: float = 10.0
    """Requests per second at each gateway."""
    cap: str = "10"
    """The budget of the key in USD; empty for a key without one."""
    per_minute: int | None = None
    """The limit of requests per minute; None for a key without one."""
    outage_seconds: float | None = None
    """The setting; None leaves the default."""
    gateways: int = 2
    warm: float = 4.0
    after: float = 5.0
    kills: int = 0
    """Number of gateways killed in the middle of the outage, and started again when it is over."""


@dataclass(slots=True)
class Sent:
    """One request."""

    name: str
    gateway: int
    at: float
    status: int = 0
    code: str = ""
    ended_at: float = 0.0


@dataclass(slots=True)
class Report:
    """Hold the figures; the ordeal was passed if `wrong` is empty."""

    wrong: list[str] = field(default_factory=list[str])
    figures: dict[str, Any] = field(default_factory=dict[str, Any])


class OutageOrdeal:
    """One store, its gateways and one key."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._plan = plan
        self._sent: list[Sent] = []
        self._over = asyncio.Event()
        self._text = ""
        self._ready: list[tuple[float, int, str]] = []

    async def run(self) -> Report:
        """Run the whole ordeal."""
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(_metered())
            machines = Machines(self._folder, self._plan.gateways, 1, self._write_settings(url))
            stack.push_async_callback(machines.end)
            await machines.start()
            self._text = await _make_key(machines.postgres.url(), self._plan)
            begun, ended = await self._serve(machines)
            return await self._judge(machines, url, begun, ended)

    def _write_settings(self, url: str) -> str:
        seconds = self._plan.outage_seconds
        chat = "" if seconds is None else f"[chat]\noutage_seconds = {seconds}"
        return SETTINGS.format(chat=chat, key=metered_chat.KEY, url=url)

    async def _serve(self, machines: Machines) -> tuple[float, float]:
        """Send the load before, in and after the outage; return when it began and ended."""
        plan = self._plan
        timeout = aiohttp.ClientTimeout(total=plan.seconds + 60)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session, asyncio.TaskGroup() as tasks:
            for number, machine in enumerate(machines.gateways):
                tasks.create_task(self._load(session, number, machine))
            watching = tasks.create_task(self._watch_readiness(session, machines.gateways[0]))
            await asyncio.sleep(plan.warm)
            begun = time.monotonic()
            await self._take_store_away(machines)
            ended = time.monotonic()
            await asyncio.gather(*(each.start() for each in machines.gateways if each.process is None))
            await asyncio.sleep(plan.after)
            self._over.set()
            watching.cancel()
        return begun, ended

    async def _take_store_away(self, machines: Machines) -> None:
        store, plan = machines.postgres, self._plan
        if plan.how == "freeze":
            with store.frozen():
                await self._pass_outage(machines)
        else:
            store.stop()
            await self._pass_outage(machines)
            await asyncio.to_thread(store.start)

    async def _pass_outage(self, machines: Machines) -> None:
        await asyncio.sleep(self._plan.seconds / 2)
        for machine in machines.gateways[: self._plan.kills]:
            await machine.kill()
        await asyncio.sleep(self._plan.seconds / 2)

    async def _load(self, session: aiohttp.ClientSession, number: int, machine: Machine) -> None:
        async with asyncio.TaskGroup() as tasks:
            begun, count = time.monotonic(), 0
            while not self._over.is_set():
                sent = Sent(f"{number}-{count}", number, time.monotonic())
                self._sent.append(sent)
                tasks.create_task(self._ask(session, machine.url, sent, stream=count % 2 == 1))
                count += 1
                await asyncio.sleep(max(0.0, begun + count / self._plan.rate - time.monotonic()))

    async def _ask(self, session: aiohttp.ClientSession, url: str, sent: Sent, *, stream: bool) -> None:
        message = {"role": "user", "content": f"{sent.name} {TOKENS} 0.001"}
        body = {"model": "metered", "messages": [message], "max_tokens": TOKENS, "stream": stream}
        headers = {"authorization": f"Bearer {self._text}"}
        with suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
            async with session.post(f"{url}/llm/chat/completions", json=body, headers=headers) as response:
                said = await response.read()
                sent.status = response.status
                if response.status != 200:
                    sent.code = json.loads(said)["error"]["code"]
                elif stream and not said.rstrip().endswith(b"data: [DONE]"):
                    sent.status, sent.code = 0, "cut"
        sent.ended_at = time.monotonic()

    async def _watch_readiness(self, session: aiohttp.ClientSession, machine: Machine) -> None:
        while True:
            with suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
                async with session.get(f"{machine.url}/readyz", timeout=aiohttp.ClientTimeout(3)) as response:
                    self._ready.append((time.monotonic(), response.status, (await response.json()).get("status", "")))
            await asyncio.sleep(0.5)

    # -- the verdict

    async def _judge(self, machines: Machines, url: str, begun: float, ended: float) -> Report:
        report = Report()
        within = [sent for sent in self._sent if begun <= sent.at < ended]
        answered = [sent for sent in within if sent.status == 200 and sent.ended_at < ended]
        waits = sorted(sent.ended_at - sent.at for sent in answered)
        after = [sent.ended_at - ended for sent in self._sent if sent.status == 200 and sent.ended_at >= ended]
        report.figures = {
            "seconds away": round(ended - begun, 1),
            "due": len(within),
            "answered while it was away": len(answered),
            "seconds an answer took, median and longest": [round(waits[len(waits) // 2], 3), round(waits[-1], 3)]
            if waits
            else None,
            "last answer after seconds": round(max((sent.ended_at for sent in answered), default=begun) - begun, 1),
            "others": dict(Counter(f"{sent.status} {sent.code}" for sent in within if sent.status != 200)),
            "answered later": sum(sent.status == 200 and sent.ended_at >= ended for sent in within),
            "first answer after it was back, seconds": round(min(after), 2) if after else None,
            "outside the outage": dict(
                Counter(f"{sent.status} {sent.code}" for sent in self._sent if not begun <= sent.at < ended)
            ),
            "readyz while it was away": dict(
                Counter(f"{status} {said}" for at, status, said in self._ready if begun + 1 <= at < ended)
            ),
        }
        await machines.stop()
        await self._judge_books(report, machines, url)
        return report

    async def _judge_books(self, report: Report, machines: Machines, url: str) -> None:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/meter") as response:
            meter = await response.json()
        code, said = await machines.command("ledger", "check")
        rows = machines.postgres.execute("SELECT coalesce(sum(amount), 0), coalesce(sum(overrun), 0) FROM ledger")
        charged, overrun = (int(each) for each in rows[0])
        records = int(machines.postgres.execute("SELECT count(*) FROM completions WHERE completion_tokens > 0")[0][0])
        whole = sum(sent.status == 200 for sent in self._sent)
        asked = len(meter["asked"])
        report.figures |= {
            "asked of the vendor": asked,
            "recorded": records,
            "charged, USD": format_usd(charged),
            "cap, USD": self._plan.cap,
            "overrun": overrun,
            "ledger check": said.strip(),
        }
        cap = parse_usd(self._plan.cap) if self._plan.cap else None
        wrong = {
            "the ledger is wrong": bool(code),
            "an answer was not recorded": records < whole,
            "a request was recorded twice": records > asked,
            "the vendor was asked twice": any(times > 1 for times in meter["asked"].values()),
            "more was charged than the cap": cap is not None and charged > cap,
            "answers cost more than the cap": cap is not None and asked * ANSWER > cap,
            "something was not charged": bool(overrun),
        }
        report.wrong += [name for name, is_so in wrong.items() if is_so]
        report.wrong += list(machines.errors())


@asynccontextmanager
async def _metered() -> AsyncGenerator[str]:
    """Run the chat vendor in a process of its own; yield its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, Path(metered_chat.__file__), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()


async def _make_key(url: str, plan: Plan) -> str:
    database = open_database(url)
    try:
        return await database.write(_issue, plan)
    finally:
        await database.close()


def _issue(connection: Connection, plan: Plan) -> str:
    now = time.time()
    account = ensure_account(connection, Actor.CLI, "ordeal", now)
    wish = KeyWish(limits=Limits(requests_per_minute=plan.per_minute))
    if plan.cap:
        wish = replace(wish, allowances=(Allowance(period=Period.TOTAL, cap=parse_usd(plan.cap)),))
    return issue_key(connection, Actor.CLI, account.id, wish, now)[0]


def _read_plan() -> Plan:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind in (
        ("seconds", float),
        ("how", str),
        ("rate", float),
        ("cap", str),
        ("per_minute", int),
        ("outage_seconds", float),
        ("gateways", int),
        ("warm", float),
        ("after", float),
        ("kills", int),
    ):
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=argparse.SUPPRESS)
    return Plan(**vars(parser.parse_args()))


def main() -> None:
    """Print the figures and the faults found; exit with 1 if there are any."""
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(OutageOrdeal(Path(folder), _read_plan()).run())
    print(json.dumps(report.figures, indent=2))  # noqa: T201
    for wrong in report.wrong:
        print(f"WRONG: {wrong}")  # noqa: T201
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
