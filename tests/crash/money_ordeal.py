"""Several servers, one budget, a crowd that spends it, and servers that are killed meanwhile; then the books.

python tests/crash/money_ordeal.py --servers 4 --clients 250 --kills 20 --stops 1 --form key
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

import aiohttp
import metered_chat
from money_books import (
    SHOWN,
    Books,
    Watcher,
    count_kinds,
    judge_caps,
    judge_chats,
    judge_jobs,
    judge_refusals,
    judge_sums,
    note_peaks,
    read_books,
    reading,
)
from money_clients import MODEL, Crowd, Refusal
from money_fleet import Fleet

from penstock.domain.money import format_usd, parse_usd

CAP: Final = "1.000000000"
PARTS: Final = 64
"""A process takes about this part of a budget at once."""
JOB_PRICE: Final = "0.002"
QUIET_SECONDS: Final = 90.0
PROBES: Final = 3_000
SETTINGS: Final = """
[server]
log_format = "json"
log_level = "warning"
[vendors.sim]
type = "sim"
[vendors.metered]
type = "openai_compatible"
api_key = "{key}"
base_url = "{url}/v1"
[[models]]
id = "{model}"
vendor = "sim"
price = {{per_job = "{job_price}"}}
[[models]]
id = "metered"
kind = "chat"
vendor = "metered"
model = "metered"
price = {{input_per_million = "{price}", output_per_million = "{price}"}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How hard it is to be."""

    form: str = "key"
    """Whose the budget is: `key`, `account`, or `both`."""
    servers: int = 4
    clients: int = 250
    """For each server."""
    jobs: int = 120
    kills: int = 0
    gap: float = 1.0
    """Seconds from one kill to the next, on the average."""
    stops: int = 0
    """How often all servers are stopped by SIGTERM while everyone works."""
    price: str = "1"
    """USD for a million tokens."""
    after: float = 3.0
    """How many seconds to go on once requests are refused."""
    long: float = 0.0
    """Which part of the answers without `max_tokens` is far longer than the others: more than was held for it."""
    freeze: float = 0.0
    """For how many seconds one server is frozen; after 90 the others have what it held."""
    seed: int = 0

    @property
    def is_bounded(self) -> bool:
        """Whether nothing costs more than what is held for it."""
        return not self.long and not self.freeze


@dataclass(slots=True)
class Report:
    """What the ordeal found; it was passed if `wrong` is empty."""

    wrong: list[str] = field(default_factory=list[str])
    figures: dict[str, Any] = field(default_factory=dict[str, Any])

    def blame(self, problems: Sequence[str]) -> None:
        """Add what is wrong, though not a thousand times the same."""
        self.wrong += problems[:SHOWN]
        if len(problems) > SHOWN:
            self.wrong.append(f"… and {len(problems) - SHOWN} more like this")


class MoneyOrdeal:
    """One data folder, one budget."""

    def __init__(self, data: Path, plan: Plan) -> None:
        self.data = data
        self.plan = plan
        self.report = Report()
        self.fleet = Fleet(data, plan.servers)
        self._store = data / "penstock.db"
        self._random = random.Random(plan.seed)  # noqa: S311  moments, no secrets
        self._token_price = parse_usd(plan.price) // 1_000_000
        self._job_price = parse_usd(JOB_PRICE)
        self._vendor: asyncio.subprocess.Process | None = None
        self._vendor_url = ""

    async def run(self) -> Report:
        """Spend, kill, stop; then a quiet end, and the verdict."""
        try:
            await self._prepare()
            with Watcher(self._store) as watcher:
                await self._spend(watcher)
            await self._judge(watcher)
        finally:
            await self.fleet.end()
            if self._vendor is not None:
                self._vendor.kill()
                await self._vendor.wait()
        return self.report

    async def _prepare(self) -> None:
        self._vendor = await asyncio.create_subprocess_exec(
            sys.executable, metered_chat.__file__, stdout=asyncio.subprocess.PIPE
        )
        assert self._vendor.stdout is not None
        self._vendor_url = f"http://127.0.0.1:{int(await self._vendor.stdout.readline())}"
        settings = SETTINGS.format(
            key=metered_chat.KEY, url=self._vendor_url, model=MODEL, job_price=JOB_PRICE, price=self.plan.price
        )
        (self.data / "config.toml").write_text(settings)
        keys, self._payers = await self.fleet.make_keys(self.plan.form, CAP)
        note_peaks(self._store)
        plan = self.plan
        self.crowd = Crowd(self.fleet.urls, keys, plan.jobs, plan.seed, long=plan.long, patience=plan.freeze + 60)
        self.seen = self.crowd.seen
        await self.fleet.start_all()
        self.report.figures["first start of all, s"] = [round(each, 2) for each in self.fleet.start_seconds]
        self.fleet.start_seconds.clear()

    # -- spending

    async def _spend(self, watcher: Watcher) -> None:
        plan, figures = self.plan, self.report.figures
        begun = time.monotonic()
        crowd = asyncio.create_task(self.crowd.run(plan.clients, ramp=min(3.0, plan.clients / 50)))
        try:
            await self._trouble(crowd)
            await self._await_refusals(crowd)
        finally:
            self.crowd.over.set()
        await crowd
        figures["seconds of load"] = round(time.monotonic() - begun, 1)
        figures["requests per second"] = round(sum(self.seen.statuses.values()) / (time.monotonic() - begun))
        self._tell_refusals(watcher)
        await self._await_quiet("quiet after, s")
        async with self.crowd.open():
            for key in range(len(self.crowd.keys)):
                await self._probe(key)
        await self._await_quiet("quiet after the last requests, s")
        figures["stopped at the end in, s"] = round(await self.fleet.stop_all(), 2)

    async def _trouble(self, crowd: asyncio.Task[None]) -> None:
        """Kills and stops, spread over the time that the budget lasts."""
        plan = self.plan
        kills = [plan.kills // (plan.stops + 1)] * (plan.stops + 1)
        kills[0] += plan.kills - sum(kills)
        if plan.freeze:
            await self.fleet.freeze_one(plan.freeze, self._random)
        for turn, each in enumerate(kills):
            if each:
                await self.fleet.kill_some(each, plan.gap, self._random)
            if turn < plan.stops:
                await asyncio.sleep(self._random.uniform(0.5, 1.5))
                await self._stop_under_load(turn)
            assert not crowd.done()
        self.report.figures["refused before the trouble was over"] = len(self.seen.refusals)

    async def _stop_under_load(self, turn: int) -> None:
        """What was delivered by then is in the store, and nothing is held for chat."""
        seconds = await self.fleet.stop_all()
        delivered = [chat.id for chat in self.seen.chats.values() if chat.whole]
        books = read_books(self._store)
        missing = [each for each in delivered if each not in books.completions]
        self.report.blame([f"{each}: delivered, but lost by SIGTERM" for each in missing])
        if books.leases or books.used_up_leases:
            self.report.wrong.append(f"{books.leases} + {books.used_up_leases} leases are left after SIGTERM")
        left = [path.name for path in (self.data / "journal").glob("*.journal")]
        if left:
            self.report.wrong.append(f"journals are left after SIGTERM: {left}")
        told = {"seconds": round(seconds, 2), "delivered until then": len(delivered), "missing": len(missing)}
        self.report.figures[f"stop {turn + 1} under load"] = told
        await self.fleet.start_all()

    async def _await_refusals(self, crowd: asyncio.Task[None]) -> None:
        """Go on until well after every key was refused for good."""
        while not self.seen.refusals:
            assert not crowd.done()
            await asyncio.sleep(0.02)
        least = self._least_chat()
        while self._left() >= least:
            assert not crowd.done()
            await asyncio.sleep(0.05)
        await asyncio.sleep(self.plan.after)

    def _least_chat(self) -> int:
        return self._token_price * 100

    def _left(self) -> int:
        """What chat has not spent yet, of the one budget that bounds all."""
        owner = max(self._payers, key=lambda owner: len(self._payers[owner]))
        with reading(self._store) as connection:
            [spent] = connection.execute("SELECT spent FROM purses WHERE owner = ?", (owner,)).fetchone()
            query = "SELECT sum(amount) FROM holds WHERE owner = ? AND is_lease = 0"
            [held] = connection.execute(query, (owner,)).fetchone()
        return parse_usd(CAP) - spent - (held or 0)

    def _tell_refusals(self, watcher: Watcher) -> None:
        """How the first refusals came, and how long they took."""
        refusals, figures = self.seen.refusals, self.report.figures
        if not refusals:
            self.report.wrong.append("nobody was refused")
            return
        first = min(refusals, key=lambda refusal: refusal.at)
        facts = {name: first.facts[name] for name in ("spent", "held", "cap", "needed", "of")}
        cap, needed = parse_usd(facts["cap"]), parse_usd(facts["needed"])
        left = cap - parse_usd(facts["spent"]) - parse_usd(facts["held"])
        figures["first refusal"] = facts | {"neither spent nor held": format_usd(left)}
        if left > cap // PARTS + needed:
            self.report.wrong.append(f"the first refusal left {format_usd(left)}")
        look = max((look for look in watcher.looks if look.at <= first.at), key=lambda look: look.at)
        figures["purses then, spent and held"] = {
            owner: tuple(format_usd(amount) for amount in amounts) for owner, amounts in look.purses.items()
        }
        for name, some in (("chat", False), ("jobs", True)):
            figures[f"402 of {name}"] = _tell_times([each for each in refusals if each.of_job is some])

    async def _probe(self, key: int) -> None:
        """The smallest request, one after the other, until it is refused: then less is left than it needs."""
        before = len(self.seen.refusals)
        for number in range(PROBES):
            await self.crowd.ask(number % self.plan.servers, 1, 1, key=key)
            if len(self.seen.refusals) > before:
                facts = self.seen.refusals[-1].facts
                left = parse_usd(facts["cap"]) - parse_usd(facts["spent"]) - parse_usd(facts["held"])
                told = {"asked": number, "left": format_usd(left), "needed": facts["needed"], "of": facts["of"]}
                self.report.figures[f"smallest requests of key {key + 1} until refused"] = told
                return
        self.report.wrong.append(f"key {key + 1} is not refused")

    async def _await_quiet(self, name: str) -> None:
        """All jobs are done, and nothing is held but for those of which nobody knows what became of them."""
        begun = time.monotonic()
        while time.monotonic() - begun < QUIET_SECONDS:
            with reading(self._store) as connection:
                busy = connection.execute("SELECT count(*) FROM jobs WHERE done = 0").fetchone()[0]
                leases = connection.execute("SELECT sum(amount) FROM holds WHERE is_lease = 1").fetchone()[0]
            if not busy and not leases:
                self.report.figures[name] = round(time.monotonic() - begun, 2)
                return
            await asyncio.sleep(0.05)
        self.report.wrong.append(f"not quiet after {QUIET_SECONDS:g} s: {busy} jobs, {leases} leased")

    # -- the verdict

    async def _judge(self, watcher: Watcher) -> None:
        report, seen = self.report, self.seen
        async with aiohttp.ClientSession() as session, session.get(f"{self._vendor_url}/meter") as response:
            meter = await response.json()
        books = read_books(self._store)
        counts = next(iter(json.loads(await self.fleet.command("sim", "--json")).values()))
        code, said = await self.fleet.try_command("ledger", "check")
        if code:
            report.wrong.append(f"ledger check: {said}")
        for problems in (
            judge_caps(books, watcher),
            judge_refusals(seen.refusals),
            judge_chats(books, seen, meter, self._token_price, is_bounded=self.plan.is_bounded),
            judge_jobs(books, seen.orders, self._job_price, counts),
            judge_sums(books, self._payers),
            seen.wrong,
            self.fleet.wrong,
            [] if self.plan.freeze else [f"in the log: {line}" for line in self.fleet.read_logs()],
        ):  # frozen in the middle of a write, a server keeps the others from writing, and they tell so
            report.blame(list(problems))
        self._judge_end(books)
        self._tell(books, watcher, meter, counts, said)

    def _judge_end(self, books: Books) -> None:
        """At the end nothing is held but for jobs of unknown outcome."""
        unknown = [name for name, kinds in books.ledger.items() if set(kinds) == {"hold"}]
        for owner, (_, held) in books.purses.items():
            payers = self._payers[owner]
            kept = sum(books.ledger[name]["hold"]["key_id"] in payers for name in unknown) * self._job_price
            if held != kept:
                self.report.wrong.append(f"{owner}: {held} is held at the end, {kept} for jobs of unknown outcome")
        if books.leases:
            self.report.wrong.append(f"{books.leases} leases at the end")

    def _tell(
        self, books: Books, watcher: Watcher, meter: dict[str, Any], counts: dict[str, Any], said: str
    ) -> None:  # fmt: skip
        figures, fleet, seen = self.report.figures, self.fleet, self.seen
        if fleet.start_seconds:
            figures["starts after kills and stops, s"] = _tell_seconds(fleet.start_seconds)
            figures["kills of the server that ran the jobs"] = fleet.runner_kills
        if fleet.recovery_seconds:
            figures["books of the dead taken over after, s"] = _tell_seconds(fleet.recovery_seconds)
        figures["answers"] = dict(sorted(seen.statuses.items()))
        figures["errors"] = dict(sorted(seen.codes.items()))
        figures["connections that broke"] = seen.breaks
        figures["chat"] = dict(sorted(count_kinds(books, seen, meter).items()))
        endings = [entries.keys() for name, entries in books.ledger.items() if name.startswith("job_")]
        figures["jobs"] = {
            "taken": len(books.jobs),
            "settled": sum("settle" in each for each in endings),
            "released": sum("release" in each for each in endings),
            "unknown": sum(each == {"hold"} for each in endings),
            "orders at the vendor": counts["orders"],
            "doubled": counts["duplicates"],
        }
        figures["looks of the watcher"] = f"{watcher.count}, {len(watcher.looks)} with news"
        for owner, (spent, held) in books.purses.items():
            peak, cap = format_usd(books.peaks[owner]), format_usd(books.caps[owner])
            figures[f"purse {owner}"] = {"cap": cap, "most ever spent and held": peak} | {
                "spent": format_usd(spent),
                "held": format_usd(held),
                "left": format_usd(books.caps[owner] - spent - held),
            }
        figures["sums"] = {name: format_usd(amount) for name, amount in books.sums.items()}
        figures["ledger check"] = said.strip()


def _tell_seconds(seconds: Sequence[float]) -> str:
    middle = statistics.median(seconds)
    return f"{len(seconds)} times, median {middle:.2f}, longest {max(seconds):.2f}"


def _tell_times(refusals: Sequence[Refusal]) -> str:
    if not refusals:
        return "none"
    seconds = sorted(refusal.seconds for refusal in refusals)
    p50, p99 = (seconds[min(len(seconds) - 1, int(len(seconds) * part))] for part in (0.5, 0.99))
    return f"{len(seconds)}, p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, longest {seconds[-1] * 1000:.0f} ms"


def main() -> None:
    """Run it as told, print what was found, and exit with 1 if something is wrong."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server is left behind
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    plan = Plan()
    parser.add_argument("--form", choices=("key", "account", "both", "tag"), default=plan.form)
    for name in ("servers", "clients", "jobs", "kills", "stops"):
        parser.add_argument(f"--{name}", type=int, default=getattr(plan, name))
    for name in ("gap", "after", "long", "freeze"):
        parser.add_argument(f"--{name}", type=float, default=getattr(plan, name))
    parser.add_argument("--price", default=plan.price, help="USD for a million tokens")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2)))
    parser.add_argument("--keep", type=Path, help="a new folder for the data, which is kept")
    arguments = vars(parser.parse_args())
    keep = arguments.pop("keep")
    plan = Plan(**arguments)
    with tempfile.TemporaryDirectory() as folder:
        data = keep or Path(folder)
        data.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(MoneyOrdeal(data, plan).run())
    lines = [str(plan), *(f"{name:<48} {found}" for name, found in report.figures.items())]
    lines += [f"WRONG: {problem}" for problem in report.wrong] or ["Nothing is wrong."]
    print("\n".join(lines))  # noqa: T201
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
