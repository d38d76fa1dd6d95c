"""Gateways and workers on PostgreSQL are killed, frozen and restarted while jobs run, the store too; then the books.

python tests/crash/fleet_ordeal.py --gateways 3 --workers 3 --jobs 5000 --strikes 60 --bounces 8 --seconds 300
"""

import argparse
import asyncio
import json
import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script: the doubles live with the tests

import aiohttp
import psycopg
from fleet_books import (
    PRICES,
    UNKNOWN,
    Books,
    count_hooks,
    judge_hooks,
    judge_jobs,
    judge_logs,
    judge_money,
    judge_orders,
    judge_streams,
    read_books,
)
from fleet_clients import ENDINGS, MEDIA, SIM, Crowd, Customer
from fleet_machines import Machines, World
from fleet_troubles import Troubles
from sqlalchemy import Connection

from penstock.accounts.administration import create_account, issue_key
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.budgets import Period
from penstock.domain.events import EventType
from penstock.domain.money import format_usd, parse_usd
from penstock.store.connect import make_engine, transact

SHOWN: Final = 10
SHOW_SECONDS: Final = 10.0
QUIET_SECONDS: Final = 240.0
SETTINGS: Final = """
[server]
log_format = "json"
log_level = "warning"
[fetch]
allow_networks = ["127.0.0.0/8"]
[vendors.sim]
type = "sim"
base_url = "{sim}"
max_concurrent = 200
{media}
[[models]]
id = "{sim_model}"
vendor = "sim"
price = {{per_job = "{sim_price}"}}
[[models]]
id = "{media_model}"
vendor = "tripo"
price = {{per_job = "{media_price}"}}
"""
OPEN: Final = """
SELECT state, phase, owner, count(*)
FROM (SELECT state, owner, convert_from(document, 'UTF8')::json ->> 'phase' AS phase FROM jobs WHERE done = 0) AS open
GROUP BY 1, 2, 3
"""
ALL: Final = frozenset(kind.value for kind in EventType)
CUSTOMERS: Final = {
    "plain": ("", "", frozenset[str]()),
    "endings": ("account", "1000000", ENDINGS),
    "everything": ("key", "1000000", ALL),
    "own": ("", "", ENDINGS),
    "poor": ("account", "5", frozenset[str]()),
}
"""By name: whose budget there is, how much, and what webhooks tell them."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How hard it is to be."""

    gateways: int = 3
    workers: int = 3
    jobs: int = 5000
    strikes: int = 60
    """How often a process is killed, frozen or restarted."""
    bounces: int = 8
    """How often the store is."""
    seconds: float = 300.0
    """How long jobs are ordered."""
    watched: float = 0.3
    """Which part of the jobs is watched."""
    media: float = 0.1
    """Which part goes to the vendor's double."""
    seed: int = 0


@dataclass(slots=True)
class Report:
    """What the ordeal found; it was passed if `wrong` is empty."""

    wrong: list[str] = field(default_factory=list[str])
    figures: dict[str, Any] = field(default_factory=dict[str, Any])

    def blame(self, what: str, problems: Iterable[str]) -> None:
        """Add what is wrong, though not a thousand times the same, and count it."""
        found = list(problems)
        self.figures[f"wrong: {what}"] = len(found)
        self.wrong += found[:SHOWN]
        if len(found) > SHOWN:
            self.wrong.append(f"… and {len(found) - SHOWN} more like this")


class FleetOrdeal:
    """One store, many machines."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.report = Report()
        self._chance = random.Random(plan.seed)  # noqa: S311  moments, no secrets
        self._world = World(folder, plan.seed)

    async def run(self) -> Report:
        """Order, strike; then a quiet end, and the verdict."""
        try:
            said = await self._world.start()
            settings = SETTINGS.format(
                sim=said["sim"], media=said["media"], sim_model=SIM, media_model=MEDIA,
                sim_price=format_usd(PRICES[SIM]), media_price=format_usd(PRICES[MEDIA]),
            )  # fmt: skip
            self.machines = Machines(self.folder, self.plan.gateways, self.plan.workers, settings)
            try:
                await self._prepare()
                await self._suffer()
                await self._judge()
            finally:
                await self.machines.end()
        finally:
            await self._world.end()
        return self.report

    async def _prepare(self) -> None:
        await self.machines.start()
        keys = await asyncio.to_thread(_make_keys, self.machines.postgres.url())
        customers = [
            Customer(name, account_id, key, f"{self._world.url}/hook/own" if name == "own" else "")
            for name, (account_id, _, key) in keys.items()
        ]
        self._owners = {name: (account_id, lineage) for name, (account_id, lineage, _) in keys.items()}
        await self._make_hooks(customers)
        self.crowd = Crowd([gateway.url for gateway in self.machines.gateways], customers, self._chance)
        self.troubles = Troubles(self.machines, self._chance)

    async def _make_hooks(self, customers: Sequence[Customer]) -> None:
        secrets: dict[str, str] = {}
        async with aiohttp.ClientSession(self.machines.gateways[0].url, raise_for_status=True) as session:
            for customer in customers:
                wanted, headers = CUSTOMERS[customer.name][2], {"authorization": f"Bearer {customer.key}"}
                path = f"/hook/{customer.name}"
                if customer.hook:
                    async with session.get("/api/v1/webhooks/secret", headers=headers) as response:
                        secrets[path] = (await response.json())["secret"]
                elif wanted:
                    body = {"url": self._world.url + path, "events": sorted(wanted)}
                    async with session.post("/api/v1/webhooks", json=body, headers=headers) as response:
                        secrets[path] = (await response.json())["secret"]
        await self._world.trust(secrets)

    async def _suffer(self) -> None:
        plan, figures, begun = self.plan, self.report.figures, time.monotonic()
        crowd = asyncio.create_task(self.crowd.run(plan.jobs, plan.seconds, plan.watched, plan.media))
        try:
            await asyncio.sleep(min(2.0, plan.seconds / 10))
            await self.troubles.run(plan.strikes, plan.bounces, plan.seconds)
            figures["seconds of trouble"] = round(time.monotonic() - begun, 1)
            await self._await_quiet()
            self.crowd.over.set()
            await asyncio.wait((crowd,), timeout=300)
            if not crowd.done():
                self.report.wrong.append(f"clients still wait, though all is quiet: {self.crowd.waiting()}")
        finally:
            crowd.cancel()
            (ended,) = await asyncio.gather(crowd, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended
        figures["seconds in all"] = round(time.monotonic() - begun, 1)
        figures["stopped at the end in, s"] = round(await self.machines.stop(), 2)

    async def _await_quiet(self) -> None:
        """Every order is answered, all jobs are done, and webhooks are told."""
        begun, left, shown_at = time.monotonic(), "", time.monotonic()
        while time.monotonic() - begun < QUIET_SECONDS + self.plan.seconds:
            left = await asyncio.to_thread(self._look)
            if not left:
                self.report.figures["quiet after, s"] = round(time.monotonic() - begun, 1)
                return
            if time.monotonic() - shown_at > SHOW_SECONDS:
                shown_at = time.monotonic()
                log.info("after %.0f s there are still %s", shown_at - begun, left)
            await asyncio.sleep(0.5)
        self.report.wrong.append(f"not quiet after {time.monotonic() - begun:.0f} s: {left}")

    def _look(self) -> str:
        asking = sum(not ordered.id and not ordered.refused for ordered in self.crowd.seen.orders)
        asking += self.plan.jobs - len(self.crowd.seen.orders)
        with psycopg.connect(self.machines.postgres.url()) as connection:
            jobs = connection.execute(OPEN).fetchall()
            pending = connection.execute("SELECT count(*) FROM deliveries WHERE status = 'pending'").fetchall()[0][0]
        return f"{asking} orders, {jobs}, {pending} deliveries" if asking or jobs or pending else ""

    # -- the verdict

    async def _judge(self) -> None:
        report, crowd, world = self.report, self.crowd, await self._world.books()
        books = await asyncio.to_thread(read_books, self.machines.postgres.url())
        orders = crowd.seen.orders
        code, said = await self.machines.command("ledger", "check")
        report.blame("jobs lost, doubled or ended otherwise", judge_jobs(books, orders, world))
        report.blame("orders doubled at vendors", judge_orders(world))
        report.blame("money", judge_money(books, orders, self._kept(books)))
        report.blame("ledger check", [said] if code else [])
        report.blame("event logs", judge_logs(books))
        report.blame("streams and feeds", judge_streams(books, crowd.seen))
        wants = {f"/hook/{name}": wanted for name, (_, _, wanted) in CUSTOMERS.items() if wanted}
        report.blame("webhooks", judge_hooks(books, crowd, world, wants))
        report.blame("answers to clients", crowd.seen.wrong)
        report.blame("processes", self.machines.wrong)
        report.blame("in the logs", [f"{times} times: {line}" for line, times in self.machines.errors().most_common()])
        report.blame("never taken over", self.troubles.takeovers.left)
        self._tell(books, world, said)

    def _kept(self, books: Books) -> dict[str, int]:
        """What is still held for jobs of unknown outcome."""
        kept: Counter[str] = Counter()
        for ordered in self.crowd.seen.orders:
            job = books.jobs.get(ordered.id)
            if job and (job.get("error") or {}).get("code") == UNKNOWN:
                kept.update(dict.fromkeys(self._owners[ordered.customer.name], PRICES[ordered.model]))
        return kept

    def _tell(self, books: Books, world: dict[str, Any], said: str) -> None:
        figures, seen, takeovers = self.report.figures, self.crowd.seen, self.troubles.takeovers
        figures["troubles"] = dict(sorted(self.troubles.counts.items()))
        figures["store away for, s"] = _tell_seconds(self.troubles.outages)
        figures["takeover after kill -9, s"] = _tell_seconds(takeovers.killed)
        figures["takeover after SIGSTOP, s"] = _tell_seconds(takeovers.frozen)
        figures["takeover without store or workers, s"] = _tell_seconds(takeovers.disturbed)
        figures["drained in, s"] = _tell_seconds(self.troubles.drains)
        starts = [each for machine in self.machines.all for each in machine.starts]
        figures["starts, s"] = _tell_seconds(starts)
        figures["answers"] = dict(sorted(seen.statuses.items()))
        figures["accepted after, s"] = _tell_seconds(seen.accepted)
        ends = [(job["state"], (job.get("error") or {}).get("code") or "") for job in books.jobs.values()]
        figures["jobs"] = {" ".join(end).strip(): times for end, times in sorted(Counter(ends).items())}
        figures["refused with 402"] = sum(ordered.refused for ordered in seen.orders)
        figures["claims of a job, and how many"] = dict(sorted(books.epochs.items()))
        figures["orders at the simulator"] = sum(world["sim"].values())
        figures["orders at the double"] = len(world["media"])
        figures["most orders at the double at once"] = world["most"]
        watched = [ordered for ordered in seen.orders if ordered.is_watched]
        figures["streams watched"] = len(watched)
        figures["reconnects of streams"] = sum(ordered.reconnects for ordered in watched)
        figures["events"] = sum(map(len, books.events.values()))
        figures["webhooks"] = count_hooks(world) | dict(books.deliveries)
        figures["ledger check"] = said.strip().splitlines()[-1] if said.strip() else ""


def _make_keys(url: str) -> dict[str, tuple[str, str, str]]:
    """By customer: the account's id, the key's lineage, and the key."""
    engine = make_engine(url)
    try:
        with transact(engine) as connection:
            return {name: _make_key(connection, name) for name in CUSTOMERS}
    finally:
        engine.dispose()


def _make_key(connection: Connection, name: str) -> tuple[str, str, str]:
    whose, amount, _ = CUSTOMERS[name]
    now = time.time()
    allowances = (Allowance(period=Period.TOTAL, cap=parse_usd(amount)),) if amount else ()
    account = create_account(connection, Actor.CLI, name, now, allowances=allowances if whose == "account" else ())
    text, key = issue_key(
        connection, Actor.CLI, account.id, KeyWish(allowances=allowances if whose == "key" else ()), now
    )
    return account.id, key.lineage, text


def _tell_seconds(found: Sequence[float]) -> dict[str, float]:
    """Of how many, and how long."""
    if not found:
        return {"count": 0}
    ordered = sorted(found)
    at = {f"p{part}": ordered[min(len(ordered) - 1, len(ordered) * part // 100)] for part in (50, 99)}
    return {"count": len(found)} | {name: round(value, 2) for name, value in (at | {"max": ordered[-1]}).items()}


def _print(plan: Plan, report: Report) -> None:
    lines = [f"{name:>42}  {value}" for name, value in report.figures.items()]
    print(plan, *lines, *(f"WRONG: {problem}" for problem in report.wrong), sep="\n")  # noqa: T201
    print(json.dumps({"figures": report.figures, "wrong": report.wrong}))  # noqa: T201


def main() -> None:
    """Exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("gateways", 3), ("workers", 3), ("jobs", 5000), ("strikes", 60), ("bounces", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, value in (("seconds", 300.0), ("watched", 0.3), ("media", 0.1)):
        parser.add_argument(f"--{name}", type=float, default=value)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2)))
    parser.add_argument("--keep", type=Path, help="a folder that logs are kept in")
    options = vars(parser.parse_args())
    keep = options.pop("keep")
    plan = Plan(**options)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(FleetOrdeal(folder, plan).run())
    _print(plan, report)
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
