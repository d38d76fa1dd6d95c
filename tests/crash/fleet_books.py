"""Reads the store when all is quiet, and holds it against what clients, vendors and receivers saw."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import psycopg
from doubles.tripo import TripoDouble
from fleet_clients import ENDINGS, MEDIA, SIM, Crowd, Ordered, Seen

from penstock.domain.events import event_id
from penstock.domain.money import parse_usd

PRICES: Final = {SIM: parse_usd("0.002"), MEDIA: parse_usd("0.30")}
UNKNOWN: Final = "upstream_outcome_unknown"
SUMS: Final = ("usage_days", "usage_model_days", "usage_key_days")


@dataclass(frozen=True, slots=True)
class Books:
    """What is in the store, by job."""

    jobs: dict[str, dict[str, Any]]
    events: dict[str, list[tuple[int, int, str]]]
    """Sequence, position and type."""
    ledger: dict[str, dict[str, tuple[int, int]]]
    """By kind: amount and overrun."""
    purses: dict[str, tuple[int, int, int]]
    """Spent, held, and the highest cap."""
    deliveries: Counter[str]
    sums: dict[str, int]
    epochs: Counter[int]


def read_books(url: str) -> Books:
    """Everything that the verdict needs, in one look."""
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

        def rows(query: str) -> list[tuple[Any, ...]]:
            return connection.execute(query.encode()).fetchall()

        events: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for job_id, *event in rows("SELECT job_id, sequence, position, type FROM events ORDER BY job_id, sequence"):
            events[job_id].append((event[0], event[1], event[2]))
        ledger: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
        for subject, kind, amount, overrun in rows("SELECT subject, kind, amount, overrun FROM ledger"):
            ledger[subject][kind] = (amount, overrun)
        charged = "SELECT sum(CASE kind WHEN 'settle' THEN amount WHEN 'refund' THEN -amount ELSE 0 END) FROM ledger"
        sums = {"ledger": charged} | {table: f"SELECT sum(cost) FROM {table}" for table in SUMS}  # noqa: S608  ours
        return Books(
            jobs={row[0]: msgspec.json.decode(row[1]) for row in rows("SELECT id, document FROM jobs")},
            events=dict(events),
            ledger=dict(ledger),
            purses={row[0]: row[1:4] for row in rows("SELECT owner, spent, held, most FROM purses")},
            deliveries=Counter(dict(rows("SELECT status, count(*) FROM deliveries GROUP BY status"))),
            sums={name: int(rows(query)[0][0] or 0) for name, query in sums.items()},
            epochs=Counter(dict(rows("SELECT epoch, count(*) FROM jobs GROUP BY epoch"))),
        )


# -- the verdict: each yields what is wrong


def judge_jobs(books: Books, orders: Sequence[Ordered], world: Mapping[str, Any]) -> Iterator[str]:
    """Each accepted job is there once and ended as it had to."""
    accepted = [ordered.id for ordered in orders if ordered.id]
    for job_id, times in Counter(accepted).items():
        if times > 1:
            yield f"{job_id}: {times} orders were answered with it"
    refs = Counter(job["client_ref"] for job in books.jobs.values())
    for ordered in orders:
        found = refs.pop(f"ordeal-{ordered.number}", 0)
        if found != bool(ordered.id):
            yield f"order {ordered.number}: {found} jobs, its client was told {ordered.id or 'that it is refused'}"
    yield from (f"{ref}: nobody ordered it" for ref in refs)
    placed: defaultdict[int, list[str]] = defaultdict(list)
    for number, _, ending in world["media"]:
        placed[number].append(ending)
    for ordered in orders:
        if ordered.id in books.jobs:
            yield from _judge_job(ordered, books.jobs[ordered.id], placed[ordered.number])


def _judge_job(ordered: Ordered, job: dict[str, Any], placed: list[str]) -> Iterator[str]:
    state, code = job["state"], (job.get("error") or {}).get("code") or ""
    told = f"{ordered.id}: ended as {state} {code}"
    if ordered.model == SIM:
        if (state, code) != (ordered.state, ordered.code):
            yield f"{told}, which should be {ordered.state} {ordered.code}: {tell_attempts(job)}"
    elif code not in ("", UNKNOWN, "upstream_unavailable") or state == "succeeded":
        ending = placed[0] if placed else None
        verdict = TripoDouble.endings.get(str(ending))
        if ending is None or code != ((verdict and verdict.code) or ""):
            yield f"{told}, its order as {ending}: {tell_attempts(job)}"
    elif state != "failed" or (code == "upstream_unavailable" and placed):
        yield f"{told}, its orders as {placed}: {tell_attempts(job)}"


def tell_attempts(job: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What was tried at the vendor."""
    return [(each["number"], each.get("upstream_id"), each.get("outcome")) for each in job["attempts"]]


def judge_orders(world: Mapping[str, Any]) -> Iterator[str]:
    """No vendor has two orders of one job."""
    yield from (f"{job}: ordered {times} times" for job, times in world["sim"].items() if times > 1)
    for number, times in Counter(number for number, _, _ in world["media"]).items():
        if times > 1:
            yield f"media job {number}: ordered {times} times"
    if world["full"]:
        yield f"{world['full']} orders were refused by a vendor that was full"


ENTRIES: Final = {"succeeded": {"hold", "settle"}, UNKNOWN: {"hold"}}


def judge_money(books: Books, orders: Sequence[Ordered], keep: Mapping[str, int]) -> Iterator[str]:
    """Each job is charged once or not at all, and all the sums agree; `keep` is what owners still hold rightly."""
    for ordered in orders:
        job = books.jobs.get(ordered.id)
        if job is None:
            continue
        code = (job.get("error") or {}).get("code")
        entries, price = books.ledger.get(ordered.id, {}), PRICES[ordered.model]
        if set(entries) != ENTRIES.get(UNKNOWN if code == UNKNOWN else job["state"], {"hold", "release"}):
            yield f"{ordered.id}: ended as {job['state']} {code}, the ledger has {sorted(entries)}"
        if any(entry != (price, 0) for entry in entries.values()):
            yield f"{ordered.id}: {entries}, not {price}"
    yield from _judge_sums(books, keep)


def _judge_sums(books: Books, keep: Mapping[str, int]) -> Iterator[str]:
    if len(set(books.sums.values())) != 1:
        yield f"the sums differ: {books.sums}"
    for owner, (spent, held, most) in books.purses.items():
        if spent + held > most:
            yield f"{owner}: {spent} + {held} of {most}"
        if held != keep.get(owner, 0):
            yield f"{owner}: {held} is held at the end, {keep.get(owner, 0)} for jobs of unknown outcome"


def judge_streams(books: Books, seen: Seen) -> Iterator[str]:
    """Who watched a job saw each of its events once and in order; so did who followed the account."""
    for ordered in seen.orders:
        wanted = [(sequence, kind) for sequence, _, kind in books.events.get(ordered.id, [])]
        if ordered.is_watched and ordered.id and ordered.seen != wanted:
            yield f"{ordered.id}: its stream told {ordered.seen}, the log has {wanted}"
        feed = seen.feeds[ordered.customer.name].get(ordered.id, [])
        if ordered.id and feed != [sequence for sequence, _ in wanted]:
            yield f"{ordered.id}: the account's feed told {feed}, the log has {wanted}"


def judge_logs(books: Books) -> Iterator[str]:
    """The log of a job has no gap, and ends once."""
    for job_id in books.jobs:
        events = books.events.get(job_id, [])
        if [sequence for sequence, _, _ in events] != list(range(1, len(events) + 1)):
            yield f"{job_id}: a gap in its events: {events}"
        if sum(kind in ENDINGS for _, _, kind in events) != 1 or events[-1][2] not in ENDINGS:
            yield f"{job_id}: its events do not end once: {events}"
        if [position for _, position, _ in events] != sorted(position for _, position, _ in events):
            yield f"{job_id}: its events are not in the order of their positions"


def judge_hooks(
    books: Books, crowd: Crowd, world: Mapping[str, Any], wants: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    """Whoever is to be told was told of each event at least once, and signed; `wants` is what by path."""
    for ordered in crowd.seen.orders:
        path = f"/hook/{ordered.customer.name}"
        events = [event for event in books.events.get(ordered.id, []) if event[2] in wants.get(path, ())]
        yield from _judge_told(ordered.id, path, events, world["told"].get(path, {}))
    for path, messages in world["told"].items():
        forged = sum(message[4] for message in messages.values())
        if forged:
            yield f"{path}: {forged} messages with a bad signature"
    if books.deliveries["failed"]:
        yield f"{books.deliveries['failed']} deliveries were given up"


def _judge_told(
    job_id: str, path: str, events: list[tuple[int, int, str]], told: Mapping[str, list[Any]]
) -> Iterator[str]:
    for sequence, position, kind in events:
        message = told.get(event_id(position))
        if message is None or not message[3]:
            yield f"{job_id}: {path} was not told of {kind} {sequence}"
        elif message[:3] != [kind, job_id, sequence]:
            yield f"{job_id}: {path} was told {message} for {kind} {sequence}"


def count_hooks(world: Mapping[str, Any]) -> dict[str, int]:
    """How many messages came, and how many of them more than once."""
    messages = [message for told in world["told"].values() for message in told.values()]
    return {
        "told": len(messages),
        "told more than once": sum(message[3] > 1 for message in messages),
        "messages": sum(message[3] for message in messages),
    }
