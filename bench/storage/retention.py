"""Size of a store before and after old records are removed: ten million chat requests of a year, by default.

python -m bench.storage.retention [--completions 10000000] [--keep-days 30] [--data DIR]

Writing ten million requests takes some minutes and 8 GB. The store is then rolled up as a server does it, in its small
transactions, and the books are checked before and after.
"""

import argparse
import asyncio
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.harness import tables
from bench.storage.usage import fill
from penstock.billing import record_retention
from penstock.billing.record_retention import RecordAges, RecordRetention
from penstock.store.connect import make_engine, open_database, snapshot
from penstock.store.queries.billing import ledger_audit
from penstock.store.sqlite.database import open_file

COUNTED = ("completions", "ledger", "ledger_checkpoints", "usage_days")


def describe(path: Path, what: str) -> dict[str, Any]:
    """Return rows and sizes, and check the books."""
    with closing(open_file(path).raw_connection()) as connection:
        cursor = connection.cursor()
        rows = {name: cursor.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in COUNTED}  # noqa: S608
        pages, free, size = (
            cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    begun = time.perf_counter()
    engine = make_engine(f"sqlite:///{path}")
    with snapshot(engine) as connection:
        problems = ledger_audit.check(connection)
    engine.dispose()
    return {
        "store": what,
        **rows,
        "file MB": round(pages * size / 1e6),
        "in use MB": round((pages - free) * size / 1e6),
        "ledger check": "right" if not problems else f"{len(problems)} problems",
        "its seconds": round(time.perf_counter() - begun, 1),
    }


async def roll_up(path: Path, days: float) -> dict[str, float]:
    """Remove what is older, as a server does, and time each transaction."""
    database = open_database(f"sqlite:///{path}")
    took: list[float] = []
    write = database.write

    async def timed(function: Any, *args: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        found = await write(function, *args, **options)
        took.append(time.perf_counter() - begun)
        return found

    database.write = timed
    begun, cpu = time.perf_counter(), time.process_time()
    await RecordRetention(database, lambda: RecordAges(requests=days * 86_400), time.time).run()
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    await database.close()
    took.sort()
    return {
        "transactions": len(took),
        "p50 ms": round(took[len(took) // 2] * 1e3, 1),
        "p99 ms": round(took[len(took) * 99 // 100] * 1e3, 1),
        "max ms": round(took[-1] * 1e3, 1),
        "seconds": round(seconds, 1),
        "CPU seconds": round(cpu, 1),
        "pauses": round(len(took) * record_retention.PAUSE_SECONDS, 1),
    }


def main() -> None:
    """Fill a store, roll it up, and print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--completions", type=int, default=10_000_000)
    parser.add_argument("--keep-days", type=float, default=30)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = (arguments.data or Path(temporary)) / "penstock.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            fill(path, arguments.completions)
        before = describe(path, "before")
        cost = asyncio.run(roll_up(path, arguments.keep_days))
        after = describe(path, "after")
        with closing(open_file(path).raw_connection()) as connection:
            connection.cursor().execute("VACUUM")
        vacuumed = after | {"store": "after VACUUM", "file MB": round(path.stat().st_size / 1e6)}
    title = f"{arguments.completions:,} chat requests of a year, {arguments.keep_days:g} days kept"
    tables.show(title, [before, after, vacuumed])
    tables.show("the roll-up", [cost])


if __name__ == "__main__":
    main()
