"""Search of jobs: its time in a store with many jobs beside one with a few, and the cost of its index.

python -m bench.jobs.search [--jobs 1000000] [--store sqlite:////tmp/search.db | postgresql://…]

The store must be new. Half of the jobs are one account's, the other half nine others'. Every prompt has a frequent
word, a few have a rare one. The others follow Zipf's law, as words do.
"""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from bench.harness import tables
from penstock.domain.ids import new_id
from penstock.domain.jobs import Job
from penstock.domain.searching.query import read_query
from penstock.store.connect import make_engine, open_database, prepare
from penstock.store.database import Database
from penstock.store.queries.jobs import job_rows, search_rows
from penstock.store.search_indexer import SearchIndexer

FEW = 400
"""Jobs of the store that counts as empty: enough to fill a page."""
BATCH = 200
WORDS = 20_000
RARE_EVERY = 25
"""Of the few, every so many jobs have the rare word. There are no more of them among the many."""
PAGE = 20
ROUNDS = 60
MINE = "acct_mine"
QUERIES = {
    "no search": None,
    "frequent word": "boat",
    "rare word": "zeppelin",
    "beginning of a word": "zepp",
    "common beginning": "wo",
    "frequent and rare": "boat zeppelin",
    "nothing": "unheard",
}
Filled = Mapping[str, float]


def make_jobs(count: int, chance: random.Random, weights: list[float]) -> list[Job]:
    """Jobs with prompts of some twelve words."""
    now, jobs = time.time(), list[Job]()
    for number in range(count):
        words = [f"word{place}" for place in chance.choices(range(WORDS), cum_weights=weights, k=12)]
        extra = ["zeppelin"] if number % RARE_EVERY == 0 and count == FEW else []
        account = MINE if number % 2 == 0 else f"acct_{chance.randrange(9)}"
        jobs.append(
            Job(
                id=new_id("job"), account_id=account, key_id="key", request_id="req", model="sim_text_to_video",
                vendor="sim", upstream_model="sim", params={"prompt": " ".join(["A boat", *words, *extra])}, seed=None,
                created_at=now, start_by=now + 3600, run_seconds=600.0, retention=None, estimated=0,
            )
        )  # fmt: skip
    return jobs


async def fill(database: Database, count: int) -> Filled:
    """Add so many jobs and index them. Return the CPU time of both for each, in µs."""
    chance = random.Random(20261118)  # noqa: S311  equal at every run
    weights = [0.0]
    for place in range(1, WORDS):
        weights.append(weights[-1] + 1 / place)
    indexer, spent = SearchIndexer(database), {"accept": 0.0, "index": 0.0}
    sizes = [FEW] if count == FEW else [BATCH] * (count // BATCH)
    for number, size in enumerate(sizes):
        made = make_jobs(size, chance, weights)
        begun = time.process_time()
        await database.write(job_rows.write_all, made, time.time())
        middle = time.process_time()
        spent["accept"] += middle - begun
        if number % 10 == 9 or size == FEW:
            await indexer.catch_up()
            spent["index"] += time.process_time() - middle
    await indexer.catch_up()
    return {name: seconds / count * 1e6 for name, seconds in spent.items()}


async def ask(database: Database, text: str | None) -> float:
    """Return the middle time of a query, in ms."""
    query = None if text is None else read_query(text)
    taken = list[float]()
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        if query is None:
            await database.read(job_rows.page, MINE, {"kept_at": time.time()}, None, PAGE)
        else:
            await database.read(search_rows.search, MINE, query, {"kept_at": time.time()}, None, PAGE)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1e3


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Database]:
    engine = make_engine(url)
    prepare(engine)
    engine.dispose()
    database = open_database(url)
    try:
        yield database
    finally:
        await database.close()


async def measure(url: str, count: int) -> tuple[list[dict[str, Any]], Filled]:
    async with opened(url) as database:
        await fill(database, FEW)
        few = {name: await ask(database, text) for name, text in QUERIES.items()}
        filled = await fill(database, count)
        many = {name: await ask(database, text) for name, text in QUERIES.items()}
    rows = [
        {"": name, f"{FEW} jobs, ms": few[name], f"{count:,} jobs, ms": many[name], "times": many[name] / few[name]}
        for name in QUERIES
    ]
    return rows, filled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--store", required=True)
    asked = parser.parse_args()
    rows, filled = asyncio.run(measure(asked.store, asked.jobs))
    tables.show("A page of a search", rows)
    tables.show("CPU of this process for each job, µs", [{"": name, "µs": value} for name, value in filled.items()])
    tables.save("search", {"rows": rows, "filled": filled})


if __name__ == "__main__":
    main()
