"""Gateways and workers are killed again and again while pipelines run; then the books are read.

python tests/crash/pipeline_ordeal.py --store postgresql --pipelines 500 --kills 30 --seconds 120
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

import aiohttp
from fleet_machines import Machine, World
from money_fleet import PENSTOCK
from pipeline_books import PRICES, Ordered, judge, read_books
from ports import free_port
from postgres import PostgresServer

from penstock.accounts.administration import create_account, issue_key
from penstock.domain.accounts import Actor, Allowance, KeyWish
from penstock.domain.budgets import Period
from penstock.domain.money import format_usd, parse_usd
from penstock.store.connect import make_engine, transact

SETTINGS: Final = """
[server]
log_format = "json"
log_level = "warning"
[jobs]
max_waiting = 100000
[vendors.sim]
type = "sim"
base_url = "{sim}"
max_concurrent = 200
poll_seconds = 0.2
"""
LOST: Final = (aiohttp.ClientError, ConnectionError, TimeoutError)
AGAIN: Final = (409, 429, 503)
PATIENCE: Final = aiohttp.ClientTimeout(total=40, sock_connect=3)
WATCHED: Final = 0.2
"""The part of the pipelines whose events are followed."""
END_SECONDS: Final = 600.0
GOOD: Final = ("succeeded",)
EITHER: Final = ("succeeded", "canceled")
STEPS: Final = ("picture", "model", "other", "film", "last")
TROUBLES: Final = (
    {},
    {"submission": "reply_lost"},
    {"submission": "never_arrived"},
    {"submission": "busy"},
    {"poll_errors": 2},
    {"download_errors": 1},
)
"""Scripts after which a job succeeds."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Report:
    """The findings; the ordeal was passed if `wrong` is empty."""

    wrong: list[str] = field(default_factory=list[str])
    figures: dict[str, Any] = field(default_factory=dict[str, Any])


def make_order(number: int, chance: random.Random) -> Ordered:
    """Return a pipeline of five steps, with the states in which it may end."""
    scripts = {name: {"latency": chance.uniform(0.0, 0.6)} for name in STEPS}
    scripts[chance.choice(STEPS)] |= chance.choice(TROUBLES)
    play = chance.choices(("fine", "late failure", "continue", "first", "cancel"), (12, 2, 2, 1, 3))[0]
    states: dict[str, Any] = dict.fromkeys(STEPS, GOOD)
    ends: tuple[str, ...] = GOOD
    if play in ("late failure", "continue"):
        scripts["model"] = {"latency": 0.1, "ending": "failed"}
        states |= {"model": ("failed",), "film": ("failed",), "last": ("failed",)}
        states |= {"other": EITHER} if play == "late failure" else {}
        ends = ("failed",)
    elif play == "first":
        scripts["picture"] = {"latency": 0.1, "submission": "rejected", "submission_times": 1000}
        states, ends = dict.fromkeys(STEPS, ("failed",)), ("failed",)
    elif play == "cancel":
        scripts["film"] |= {"latency": 3600.0}
        states = dict.fromkeys(STEPS, ("succeeded", "canceled", "failed")) | {"film": ("canceled", "failed")}
        ends = ("canceled",)
    body = {
        "steps": _make_steps(scripts),
        "client_ref": f"ordeal-{number}",
        "on_error": "continue" if play == "continue" else "stop",
    }
    is_watched = chance.random() < WATCHED
    return Ordered(number, body, states, ends, is_canceled=play == "cancel", is_watched=is_watched)


def _make_steps(scripts: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    preview = {"step": "model", "output": "preview"}
    planned: dict[str, tuple[str, dict[str, Any]]] = {
        "last": ("sim_text_to_image", {"prompt": "both", "references": [{"step": "other"}, preview]}),
        "film": ("sim_model_to_video", {"mesh": {"step": "model"}}),
        "other": ("sim_text_to_image", {"prompt": "an owl", "references": {"step": "picture"}}),
        "model": ("sim_image_to_model", {"file": {"step": "picture"}, "texture": False, "face_limit": 200}),
        "picture": ("sim_text_to_image", {"prompt": "a fox"}),
    }
    return [
        {"name": name, "model": model, "params": {**params, "script": scripts[name]}}
        for name, (model, params) in planned.items()
    ]


class Fleet:
    """Servers on one SQLite file, or gateways and workers on PostgreSQL."""

    def __init__(self, folder: Path, store: str, sim: str) -> None:
        self._folder = folder
        self._postgres = PostgresServer() if store == "postgresql" else None
        self._config = folder / "penstock.toml"
        prices = (f'[[models]]\nid = "{name}"\nvendor = "sim"\nprice = {{per_job = "{format_usd(price)}"}}\n'
                  for name, price in PRICES.items())  # fmt: skip
        self._config.write_text(SETTINGS.format(sim=sim) + "".join(prices))
        names = ("serve", "serve", "worker", "worker") if self._postgres else ("serve", "serve")
        self.all = [self._make(verb, number) for number, verb in enumerate(names)]
        self.gateways = [machine for machine in self.all if not machine.is_worker]

    def _make(self, verb: str, number: int) -> Machine:
        folder = self._folder / (f"machine-{number}" if self._postgres else "data")
        return Machine(f"{verb}-{number}", (verb, "--config", str(self._config)), folder, free_port(), self._environ())

    @property
    def url(self) -> str:
        """Return the store."""
        return self._postgres.url() if self._postgres else f"sqlite:///{self._folder / 'data' / 'penstock.db'}"

    def _environ(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        if self._postgres is None:
            return own
        assets = (self._folder / "assets").as_uri()
        return own | {"PENSTOCK_DATABASE_URL": self.url, "PENSTOCK_ASSETS_URL": assets, "PENSTOCK_JOBS_RUN": "workers"}

    async def start(self) -> None:
        """Start the store, then one gateway, then all others."""
        if self._postgres:
            await asyncio.to_thread(self._postgres.start)
        await self.all[0].start()
        await asyncio.gather(*(machine.start() for machine in self.all[1:]))

    async def check_ledger(self) -> tuple[int, str]:
        """Run `penstock admin ledger check`."""
        folder = self._folder / ("operator" if self._postgres else "data")
        process = await asyncio.create_subprocess_exec(
            PENSTOCK, "ledger", "check", "--data", folder, "--config", self._config,
            stdout=asyncio.subprocess.PIPE, env=self._environ(),
        )  # fmt: skip
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode()

    async def end(self) -> None:
        """Leave nothing behind."""
        for machine in self.all:
            await machine.kill()
        if self._postgres:
            await asyncio.to_thread(self._postgres.remove)


class PipelineOrdeal:
    """Pipelines of careful clients, on machines that are killed."""

    def __init__(self, folder: Path, store: str, pipelines: int, kills: int, seconds: float, seed: int) -> None:
        self._folder, self._kills, self._seconds = folder, kills, seconds
        self._store = store
        self._chance = random.Random(seed)  # noqa: S311  moments, no secrets
        self._world = World(folder, seed)
        self.orders = [make_order(number, self._chance) for number in range(pipelines)]
        self.report = Report()
        self._errands: set[asyncio.Task[None]] = set()
        self._killed: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()

    async def run(self) -> Report:
        """Order and kill at the same time; wait for all ends; judge."""
        said = await self._world.start()
        self._fleet = Fleet(self._folder, self._store, said["sim"])
        try:
            await self._fleet.start()
            self._key = await asyncio.to_thread(_make_key, self._fleet.url)
            begun = time.monotonic()
            async with aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers={"authorization": f"Bearer {self._key}"}
            ) as self._session:
                clients = asyncio.gather(*(self._live(ordered) for ordered in self.orders))
                await self._kill_repeatedly()
                self.report.figures["seconds of kills"] = round(time.monotonic() - begun, 1)
                await asyncio.wait_for(clients, END_SECONDS)
            self.report.figures["seconds in all"] = round(time.monotonic() - begun, 1)
            await self._judge()
        finally:
            await self._fleet.end()
            await self._world.end()
        return self.report

    async def _kill_repeatedly(self) -> None:
        gap = self._seconds / max(1, self._kills)
        for _ in range(self._kills):
            await asyncio.sleep(gap * self._chance.uniform(0.5, 1.5))
            running = [machine for machine in self._fleet.all if machine.steady_since is not None]
            while not running:
                await asyncio.sleep(0.05)
                running = [machine for machine in self._fleet.all if machine.steady_since is not None]
            machine = self._chance.choice(running)
            self._killed["worker" if machine.is_worker else "gateway"] += 1
            await machine.kill()
            errand = asyncio.create_task(self._revive(machine, self._chance.uniform(0.1, 1.5)))
            self._errands.add(errand)
        await asyncio.gather(*self._errands)

    async def _revive(self, machine: Machine, pause: float) -> None:
        await asyncio.sleep(pause)
        await machine.start()

    # -- the clients

    async def _live(self, ordered: Ordered) -> None:
        await asyncio.sleep(self._chance.uniform(0, self._seconds))
        accepted = await self._insist("POST", "", ordered.body, f"ordeal-{ordered.number}")
        ordered.id = accepted["id"]
        watching = asyncio.create_task(self._watch(ordered)) if ordered.is_watched else None
        if ordered.is_canceled:
            await asyncio.sleep(self._chance.uniform(0.0, 3.0))
            await self._insist("POST", f"/{ordered.id}/cancel")
        while not ordered.record.get("done"):
            ordered.record = await self._insist("GET", f"/{ordered.id}?wait=20")
        if watching is not None:
            await watching

    async def _insist(
        self, method: str, path: str, body: dict[str, Any] | None = None, key: str | None = None
    ) -> dict[str, Any]:
        while True:
            url = f"{self._chance.choice(self._fleet.gateways).url}/api/v1/pipelines{path}"
            headers = {"idempotency-key": key} if key else {}
            try:
                async with self._session.request(method, url, json=body, headers=headers, timeout=PATIENCE) as response:
                    said = await response.read()
                    replayed = " again" if "Idempotency-Replayed" in response.headers else ""
                    self._answers[f"{method} {response.status}{replayed}"] += 1
                    if response.status in (200, 202):
                        return json.loads(said)
                    assert response.status in AGAIN, f"{method} {path}: {response.status} {said[:500]!r}"
            except LOST as error:
                self._answers[type(error).__name__] += 1
            await asyncio.sleep(self._chance.uniform(0.05, 0.4))

    async def _watch(self, ordered: Ordered) -> None:
        last, is_over = "", False
        while not is_over:
            headers = {"last-event-id": last} if last else {}
            url = f"{self._chance.choice(self._fleet.gateways).url}/api/v1/pipelines/{ordered.id}/events"
            try:
                timeout = aiohttp.ClientTimeout(total=None, sock_connect=3, sock_read=20)
                async with self._session.get(url, headers=headers, timeout=timeout) as response:
                    is_over = response.status == 204
                    async for line in response.content:
                        if line.startswith(b"data:"):
                            event = json.loads(line[5:])
                            ordered.seen.append((event["data"]["id"], event["sequence"]))
                            last = event["id"]
                            is_over = is_over or event["type"] in _ENDINGS
            except LOST:
                pass
            if not is_over:
                ordered.reconnects += 1
                await asyncio.sleep(self._chance.uniform(0.05, 0.3))

    # -- the verdict

    async def _judge(self) -> None:
        report, figures = self.report, self.report.figures
        code, said = await self._fleet.check_ledger()
        placed = (await self._world.books())["sim"]
        books = await asyncio.to_thread(read_books, self._fleet.url)
        found = judge(books, self.orders, placed) | {"ledger check": [said] if code else []}
        errors = sum((machine.errors() for machine in self._fleet.all), Counter[str]())
        found["errors in the logs"] = [f"{times} times: {line}" for line, times in errors.most_common()]
        for name, problems in found.items():
            figures[f"wrong: {name}"] = len(problems)
            report.wrong += problems[:10]
        figures["killed"] = dict(self._killed)
        figures["pipelines"] = dict(Counter(each["state"] for each in books.pipelines.values()))
        figures["jobs"] = dict(Counter(each["state"] for each in books.jobs.values()))
        figures["orders at the vendor"] = sum(placed.values())
        figures["answers"] = dict(sorted(self._answers.items()))
        figures["streams watched, reconnects"] = [
            sum(each.is_watched for each in self.orders),
            sum(each.reconnects for each in self.orders),
        ]
        figures["ledger check"] = said.strip().splitlines()[-1] if said.strip() else ""


_ENDINGS: Final = ("pipeline.succeeded", "pipeline.failed", "pipeline.canceled")


def _make_key(url: str) -> str:
    """Return the key of an account with a budget."""
    engine, now = make_engine(url), time.time()
    with transact(engine) as connection:
        allowances = (Allowance(period=Period.TOTAL, cap=parse_usd("1000000")),)
        account = create_account(connection, Actor.CLI, "ordeal", now, allowances=allowances)
        key, _ = issue_key(connection, Actor.CLI, account.id, KeyWish(), now)
    engine.dispose()
    return key


def main() -> None:
    """Exit with 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--pipelines", type=int, default=500)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(2)))
    options = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(PipelineOrdeal(Path(folder), **options).run())
    lines = [f"{name:>30}  {value}" for name, value in report.figures.items()]
    print(options, *lines, *(f"WRONG: {problem}" for problem in report.wrong), sep="\n")  # noqa: T201
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
