"""Reads pipelines, jobs and money from the store when all is quiet, and judges them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sqlalchemy import text

from penstock.domain.money import parse_usd
from penstock.store.connect import make_engine

PRICES: Final = {
    "sim_text_to_image": parse_usd("0.01"),
    "sim_image_to_model": parse_usd("0.02"),
    "sim_model_to_video": parse_usd("0.03"),
}
ENDINGS: Final = ("succeeded", "failed", "canceled", "expired")
ENTRIES: Final = {"succeeded": {"hold", "settle"}}


@dataclass(slots=True)
class Ordered:
    """One pipeline, as its client ordered and saw it."""

    number: int
    body: dict[str, Any]
    states: Mapping[str, Sequence[str]]
    """The states in which each step may end."""
    ends: Sequence[str]
    """Those in which the pipeline may."""
    is_canceled: bool = False
    is_watched: bool = False
    id: str = ""
    record: dict[str, Any] = field(default_factory=dict[str, Any])
    seen: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """The subject and the sequence of each event of its stream."""
    reconnects: int = 0


@dataclass(frozen=True, slots=True)
class Books:
    """The contents of the store."""

    pipelines: dict[str, dict[str, Any]]
    jobs: dict[str, dict[str, Any]]
    events: dict[str, list[tuple[int, str]]]
    ledger: dict[str, dict[str, int]]
    purses: list[tuple[str, int, int]]
    """Owner, spent and held."""
    open_links: int


def read_books(url: str) -> Books:
    """Return everything that the verdict needs."""
    engine = make_engine(url)
    with engine.connect() as connection:

        def rows(query: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in connection.execute(text(query))]

        events: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for subject, sequence, kind in rows("SELECT job_id, sequence, type FROM events ORDER BY position"):
            events[subject].append((sequence, kind))
        ledger: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for subject, kind, amount in rows("SELECT subject, kind, amount FROM ledger"):
            ledger[subject][kind] = amount
        books = Books(
            pipelines=_documents(rows("SELECT id, document FROM pipelines")),
            jobs=_documents(rows("SELECT id, document FROM jobs")),
            events=dict(events),
            ledger=dict(ledger),
            purses=[(row[0], row[1], row[2]) for row in rows("SELECT owner, spent, held FROM purses")],
            open_links=rows("SELECT count(*) FROM lineage WHERE is_open = 1")[0][0],
        )
    engine.dispose()
    return books


def _documents(rows: Sequence[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    return {row[0]: msgspec.json.decode(row[1]) for row in rows}


def judge(books: Books, orders: Sequence[Ordered], placed: Mapping[str, int]) -> dict[str, list[str]]:
    """Return all problems by kind. `placed` has the number of orders of each job at the vendor."""
    return {
        "lost or doubled": [*_judge_count(books, orders)],
        "ended wrongly": [problem for each in orders for problem in _judge_pipeline(books, each)],
        "run twice": [f"{job_id}: ordered {times} times" for job_id, times in placed.items() if times > 1],
        "run without inputs": [*_judge_inputs(books, placed)],
        "charged wrongly": [*_judge_money(books)],
        "held": [f"{owner}: {held} is held" for owner, _, held in books.purses if held]
        + ([f"{books.open_links} links are open"] if books.open_links else []),
        "events": [*_judge_events(books, orders)],
    }


def _judge_count(books: Books, orders: Sequence[Ordered]) -> Iterator[str]:
    refs = Counter(pipeline["client_ref"] for pipeline in books.pipelines.values())
    for ordered in orders:
        if (found := refs.pop(f"ordeal-{ordered.number}", 0)) != 1 or ordered.id not in books.pipelines:
            yield f"pipeline {ordered.number} ({ordered.id}): {found} in the store"
    yield from (f"{ref}: nobody ordered it" for ref in refs)
    owned = Counter(job["pipeline_id"] for job in books.jobs.values())
    for pipeline_id, pipeline in books.pipelines.items():
        job_ids = [job_id for step in pipeline["steps"] for job_id in step["job_ids"]]
        if owned[pipeline_id] != len(job_ids) or not set(job_ids) <= books.jobs.keys():
            yield f"{pipeline_id}: {owned[pipeline_id]} of {len(job_ids)} jobs are in the store"


def _judge_pipeline(books: Books, ordered: Ordered) -> Iterator[str]:
    pipeline = books.pipelines.get(ordered.id)
    if pipeline is None:
        return
    if pipeline["state"] not in ordered.ends:
        yield f"{ordered.id}: {pipeline['state']}, should be one of {ordered.ends}: {pipeline['error']}"
    if ordered.record.get("status") != pipeline["state"] or not ordered.record.get("done"):
        yield f"{ordered.id}: its client saw {ordered.record.get('status')}, the store has {pipeline['state']}"
    jobs = [(step["name"], books.jobs[job_id]) for step in pipeline["steps"] for job_id in step["job_ids"]]
    for name, job in jobs:
        if job["state"] not in ordered.states[name]:
            yield f"{ordered.id}: {name} is {job['state']} {job['error']} {_attempts(job)}"
    if pipeline["states"] != {job["id"]: job["state"] for _, job in jobs}:
        yield f"{ordered.id}: its record says {pipeline['states']}"
    if pipeline["final"] != sum(job["final"] or 0 for _, job in jobs):
        yield f"{ordered.id}: costs {pipeline['final']}, not what its jobs do"


def _attempts(job: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(each["number"], each.get("upstream_id"), each.get("outcome")) for each in job["attempts"]]


def _judge_inputs(books: Books, placed: Mapping[str, int]) -> Iterator[str]:
    """No job ran before its inputs were made, and each took the bytes that its parent made."""
    for job_id, job in books.jobs.items():
        if job["state"] == "succeeded" and placed.get(job_id, 0) != 1:
            yield f"{job_id}: succeeded with {placed.get(job_id, 0)} orders"
        if (job["error"] or {}).get("code") == "parent_failed" and placed.get(job_id):
            yield f"{job_id}: ordered, though its parent failed"
        files = {**job["files"], "file": job["file"]}
        for parent in job["parents"] if placed.get(job_id) else ():
            made = {output["id"]: output["sha256"] for output in books.jobs[parent["job_id"]]["outputs"]}
            taken = files.get(parent["path"]) or {}
            if made.get(parent["asset_id"]) is None or made[parent["asset_id"]] != taken.get("sha256"):
                yield f"{job_id}: {parent['path']} is not the output {parent['asset_id']} of {parent['job_id']}"


def _judge_money(books: Books) -> Iterator[str]:
    charged = 0
    for job_id, job in books.jobs.items():
        entries, price = books.ledger.get(job_id, {}), PRICES[job["model"]]
        if set(entries) != ENTRIES.get(job["state"], {"hold", "release"}):
            yield f"{job_id}: {job['state']}, the ledger has {sorted(entries)}"
        if set(entries.values()) != {price}:
            yield f"{job_id}: {entries}, its price is {price}"
        charged += entries.get("settle", 0)
    yield from (f"{owner}: {spent} spent, {charged} charged" for owner, spent, _ in books.purses if spent != charged)


def _judge_events(books: Books, orders: Sequence[Ordered]) -> Iterator[str]:
    for subject in (*books.pipelines, *books.jobs):
        events = books.events.get(subject, [])
        if [sequence for sequence, _ in events] != list(range(1, len(events) + 1)):
            yield f"{subject}: a gap in its events: {events}"
        ends = [kind.partition(".")[2] in ENDINGS for _, kind in events]
        if sum(ends) != 1 or not ends[-1]:
            yield f"{subject}: its events do not end once: {events}"
    for ordered in orders:
        job_ids = [job_id for step in books.pipelines[ordered.id]["steps"] for job_id in step["job_ids"]]
        for subject in (ordered.id, *job_ids) if ordered.is_watched else ():
            told = [sequence for name, sequence in ordered.seen if name == subject]
            if told != [sequence for sequence, _ in books.events.get(subject, [])]:
                yield f"{subject}: its stream told {told}, the log has {books.events.get(subject)}"
