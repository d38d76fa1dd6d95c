"""Many jobs over all doubles at once while everything fails now and then; then each job is held against the books."""

import asyncio
import importlib
import json
import random
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from doubles.media import MediaDouble, Placed, Plan
from vendors.double import Act, HttpDouble, drop_after, reply

from penstock.simulator.samples import make_preview

PICTURE = make_preview(7)
PLACES = ("prompt", "promptText", "face_limit", "target_polycount")
"""Params that can tell one job from all others."""
FIRST, STEP = 60, 20
"""The least number of faces asked for, and how far they are apart, in twenties."""


@dataclass(frozen=True)
class Odds:
    """How often what goes wrong."""

    errors: float = 0.10  # 5xx: half of them before, half after the request was carried out
    lost: float = 0.05  # carried out, and the answer lost
    corrupt: float = 0.02  # downloads that hold other bytes
    link_seconds: float = 0.5  # how long links to results work
    unlucky: float = 0.15  # jobs that the vendor itself ends badly


@dataclass
class Sky:
    """The weather over one double."""

    double: MediaDouble
    odds: Odds
    rng: random.Random
    spoiled: Counter[str] = field(default_factory=Counter)

    def spread(self) -> None:
        self.double.weather = self.over_calls
        self.double.host.weather = self.over_files
        self.double.host.seconds = self.odds.link_seconds

    def over_calls(self, request: web.BaseRequest) -> Act | None:
        del request
        luck = self.rng.random()
        if luck < self.odds.errors / 2:
            return reply(503, b"<html>busy</html>")
        if luck < self.odds.errors:
            return done_then(reply(500, b"{}"))
        return drop_after if luck < self.odds.errors + self.odds.lost else None

    def over_files(self, request: web.BaseRequest) -> Act | None:
        luck = self.rng.random()
        if luck < self.odds.corrupt:
            self.spoiled[request.path.split("/")[1]] += 1
            return reply(200, b"not what it should be" * 50)
        return self.over_calls(request) if luck < 0.5 else None


def done_then(act: Act) -> Act:
    async def answer(double: HttpDouble, request: Any) -> Any:
        await double.play(request)
        return await act(double, request)

    return answer


@dataclass
class Asked:
    """One job: what was asked of whom, and what became of it."""

    number: int
    double: MediaDouble
    id: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    orders: list[Placed] = field(default_factory=list)


def params_of(double: MediaDouble, number: int) -> tuple[str, dict[str, Any], bool]:
    """A request that no other job makes."""
    able = [case for case in double.cases if any(place in case.params for place in PLACES)]
    case = able[number % len(able)]
    params = dict(case.params)
    place = next(place for place in PLACES if place in params)
    params[place] = f"storm #{number}" if isinstance(params[place], str) else (FIRST + number) * STEP
    return case.model, params, case.takes_file


def number_of(body: Any) -> int | None:
    """Which job an order was placed for."""
    text = json.dumps(body)
    if found := re.search(r"storm #(\d+)", text):
        return int(found[1])
    found = re.search(r'"(?:face_limit|target_polycount)": (\d+)', text)
    return int(found[1]) // STEP - FIRST if found else None


def find_doubles() -> list[type[MediaDouble]]:
    """One of each vendor."""
    names = sorted(
        path.stem for path in Path(__file__).parents[1].joinpath("doubles").glob("*.py") if path.stem != "media"
    )
    found = [kind for name in names for kind in importlib.import_module(f"doubles.{name}").DOUBLES]
    return list({kind.vendor: kind for kind in reversed(found)}.values())


def settings_of(doubles: Sequence[MediaDouble]) -> str:
    """One file for all of them: each model goes to the one that alone will be asked for it."""
    owners = share_models(doubles)
    tables: list[str] = []
    written: set[str] = set()
    for double in doubles:
        table, *entries = double.settings().split("[[models]]")
        tables.append(table)
        for entry in entries:
            model = str(tomllib.loads(entry)["id"])
            if owners.get(model, double.vendor) == double.vendor:
                tables.append(f"[[models]]{entry}")
                written.add(model)
    others = [model for model in owners if model not in written]
    return "\n".join([*tables, *(f'[[models]]\nid = "{model}"\nvendor = "{owners[model]}"\n' for model in others)])


def share_models(doubles: Sequence[MediaDouble]) -> dict[str, str]:
    """Who is asked for which model: first come those with few; what another has is no case of a double any more."""
    owners: dict[str, str] = {}
    for double in sorted(doubles, key=lambda double: len({case.model for case in double.cases})):
        mine = [case for case in double.cases if owners.setdefault(case.model, double.vendor) == double.vendor]
        double.cases = mine  # type: ignore[misc]
    return owners


async def rage(url: str, key: str, doubles: Sequence[MediaDouble], count: int, odds: Odds, seed: int) -> list[Asked]:
    """Ask for `count` jobs, wait for all of them, and look every one up in the books."""
    rng = random.Random(seed)  # noqa: S311  no secret
    doubles = [double for double in doubles if double.cases]
    skies = [Sky(double, odds, rng) for double in doubles]
    asked = [Asked(number, doubles[number % len(doubles)]) for number in range(count)]
    for sky in skies:
        sky.spread()
        endings = list(sky.double.endings)
        share = count // len(doubles) + 1
        for _ in range(share):
            ending = rng.choice(endings) if endings and rng.random() < odds.unlucky else "ok"
            sky.double.plans.append(Plan(ending, polls=1, seconds=sky.double.longest * rng.uniform(0.1, 1)))
    headers = {"authorization": f"Bearer {key}"}
    patient, few = aiohttp.ClientTimeout(total=None), aiohttp.TCPConnector(limit=32)
    async with aiohttp.ClientSession(url, headers=headers, connector=few, timeout=patient) as session:
        await asyncio.gather(*(submit(session, job) for job in asked))
        await asyncio.gather(*(finish(session, job) for job in asked))
    by_number: defaultdict[tuple[str, int | None], list[Placed]] = defaultdict(list)
    for double in doubles:
        double.weather = double.host.weather = None
        for order in double.orders.values():
            by_number[double.title, number_of(order.body)].append(order)
    for job in asked:
        job.orders = by_number[job.double.title, job.number]
    return asked


async def submit(session: aiohttp.ClientSession, job: Asked) -> None:
    model, params, takes_file = params_of(job.double, job.number)
    if takes_file:
        form = aiohttp.FormData()
        form.add_field("file", PICTURE, filename="cat.png", content_type="image/png")
        async with session.post("/api/v1/files", data=form) as response:
            params["file"] = {"file_token": (await response.json())["file_token"]}
    body = {"model": model, "input": [{"params": params}]}
    async with session.post("/model/v1/generation", json=body) as response:
        record = await response.json()
        assert response.status == 202, record
        job.id = record["id"]


async def finish(session: aiohttp.ClientSession, job: Asked) -> None:
    while not job.record.get("done"):
        async with session.get(f"/api/v1/jobs/{job.id}", params={"wait": "20"}) as response:
            job.record = await response.json()


def judge(job: Asked) -> str | None:
    """What is wrong with how a job ended; None if all is right."""
    record, orders = job.record, job.orders
    code = (record["error"] or {}).get("code")
    if len(orders) > 1:
        return f"was ordered {len(orders)} times"
    ending = orders[0].plan.ending if orders else None
    wanted = job.double.endings[ending].code if ending in job.double.endings else None
    if code is None:
        return None if orders and wanted is None else f"succeeded, but its order ended as {ending}"
    if code == "upstream_outcome_unknown":
        # An answer was lost, and the vendor has no way to tell, or had none in time.
        return None if record["attempts"][-1]["upstream_id"] is None else "unknown, although its order was known"
    if code == "upstream_unavailable":
        return None if not orders else "said to be unsent, and was ordered"
    if code == "bad_output":
        return None if ending in ("ok", "corrupt") else f"bad output of an order that ended as {ending}"
    if ending is None:
        return f"{code} without an order"
    return None if wanted == code else f"{code} for {ending}"


def lags(asked: Sequence[Asked]) -> list[float]:
    """How long after its end each order was first seen to be over."""
    found = [
        order.noticed_at - (order.created_at + order.plan.seconds)
        for job in asked
        for order in job.orders
        if order.noticed_at is not None and order.plan.seconds is not None
    ]
    return sorted(found)
