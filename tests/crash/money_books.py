"""Reads the store beside the servers, with a connection of its own, and holds it against what the clients saw."""

import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from metered_chat import PROMPT_TOKENS
from money_clients import Chat, Ordered, Refusal, Seen

from penstock.domain.money import parse_usd

LOOK_SECONDS: Final = 0.003
PEAKS: Final = """
CREATE TABLE ordeal_peaks (owner TEXT PRIMARY KEY, peak INTEGER NOT NULL);
INSERT INTO ordeal_peaks SELECT owner, spent + held FROM purses;
CREATE TRIGGER ordeal_first AFTER INSERT ON purses BEGIN
    INSERT OR IGNORE INTO ordeal_peaks VALUES (NEW.owner, NEW.spent + NEW.held);
END;
CREATE TRIGGER ordeal_peak AFTER UPDATE ON purses BEGIN
    UPDATE ordeal_peaks SET peak = max(peak, NEW.spent + NEW.held) WHERE owner = NEW.owner;
END;
"""
"""The watcher looks often, but not at everything: these triggers see each single change of a purse."""
SHOWN: Final = 10


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot change anything."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, timeout=10)) as connection:
        yield connection


def note_peaks(path: Path) -> None:
    """Have the store itself remember the most that each purse ever was used."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(PEAKS)


@dataclass(frozen=True, slots=True)
class Look:
    """What the purses said at a moment: what is spent and held of each."""

    at: float
    purses: dict[str, tuple[int, int]]


class Watcher:
    """Looks at the purses every few milliseconds, in a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher")
        self.looks: list[Look] = []
        """Only those that saw something new."""
        self.count = 0
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _watch(self) -> None:
        last: dict[str, tuple[int, int]] = {}
        try:
            with reading(self._path) as connection:
                while not self._ending.wait(LOOK_SECONDS):
                    rows = connection.execute("SELECT owner, spent, held FROM purses").fetchall()
                    found = {owner: (spent, held) for owner, spent, held in rows}
                    self.count += 1
                    if found != last:
                        self.looks.append(Look(time.monotonic(), found))
                        last = found
        except sqlite3.Error as error:
            self.error = error


@dataclass(frozen=True, slots=True)
class Books:
    """What is in the store, by the ids that the clients know."""

    caps: dict[str, int]
    purses: dict[str, tuple[int, int]]
    peaks: dict[str, int]
    completions: dict[str, list[sqlite3.Row]]
    """By the request's id."""
    ledger: dict[str, dict[str, sqlite3.Row]]
    leases: int
    used_up_leases: int
    jobs: dict[str, Any]
    sums: dict[str, int]
    """What the ledger, and what the sums of usage, come to."""


def read_books(path: Path) -> Books:
    """Everything that the verdict needs, in one look."""
    with reading(path) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
        completions: dict[str, list[sqlite3.Row]] = defaultdict(list)
        for row in connection.execute("SELECT * FROM completions"):
            completions[row["request_id"]].append(row)
        ledger: dict[str, dict[str, sqlite3.Row]] = defaultdict(dict)
        for row in connection.execute("SELECT * FROM ledger"):
            ledger[row["subject"]][row["kind"]] = row
        jobs = {row["id"]: msgspec.json.decode(row["document"]) for row in connection.execute("SELECT * FROM jobs")}

        def pairs(query: str) -> dict[str, Any]:
            return {row[0]: row[1] for row in connection.execute(query)}

        def one(query: str) -> int:
            return int(connection.execute(query).fetchone()[0] or 0)

        rows = connection.execute("SELECT owner, spent, held FROM purses")
        return Books(
            caps=pairs("SELECT owner, cap FROM budgets"),
            purses={row["owner"]: (row["spent"], row["held"]) for row in rows},
            peaks=pairs("SELECT owner, peak FROM ordeal_peaks"),
            completions=dict(completions),
            ledger=dict(ledger),
            leases=one("SELECT count(*) FROM holds WHERE is_lease = 1 AND amount > 0"),
            used_up_leases=one("SELECT count(*) FROM holds WHERE is_lease = 1 AND amount = 0"),
            jobs=jobs,
            sums={
                "ledger": one(
                    "SELECT sum(CASE kind WHEN 'settle' THEN amount WHEN 'refund' THEN -amount ELSE 0 END) FROM ledger"
                ),
                **{table: one(f"SELECT sum(cost) FROM {table}") for table in USAGE},  # noqa: S608  names of ours
            },
        )


USAGE: Final = ("usage_days", "usage_model_days", "usage_key_days")


# -- the verdict: each yields what is wrong


def judge_caps(books: Books, watcher: Watcher) -> Iterator[str]:
    """What is spent and held was never more than the cap."""
    if watcher.error is not None:
        yield f"the watcher could not look: {watcher.error}"
    for owner, cap in books.caps.items():
        seen = max((sum(look.purses.get(owner, (0, 0))) for look in watcher.looks), default=0)
        peak = max(seen, books.peaks.get(owner, 0))
        if peak > cap:
            yield f"{owner}: {peak} was spent or held of {cap}"


def judge_refusals(refusals: Sequence[Refusal]) -> Iterator[str]:
    """A refusal tells the truth: nothing beyond the cap, and less left than was needed."""
    for refusal in refusals:
        facts = refusal.facts
        spent, held, cap, needed = (parse_usd(facts[name]) for name in ("spent", "held", "cap", "needed"))
        if spent + held > cap:
            yield f"a refusal told of {spent} + {held} of {cap}"
        if cap - spent - held >= needed:
            yield f"refused {needed} though {cap - spent - held} was left"


def judge_chats(books: Books, seen: Seen, meter: dict[str, Any], price: int, *, is_bounded: bool) -> Iterator[str]:
    """Who received a whole answer pays for it once, and exactly; whoever received some of it, once too.

    `is_bounded`: nothing cost more than was held for it, so that all of it was charged.
    """
    yield from _judge_subjects(books, is_bounded=is_bounded)
    for chat in seen.chats.values():
        rows = books.completions.get(chat.id, [])
        asked = meter["asked"].get(chat.id, 0)
        if asked > 1 or len(rows) > 1:
            yield f"{chat.id}: asked {asked} times, recorded {len(rows)} times"
        elif (asked or chat.begun) and not rows:
            yield f"{chat.id}: asked {asked} times, {_tell(chat)}, but there is no record"
        elif rows:
            yield from _judge_charge(chat, rows[0], books, meter, price)


def _judge_subjects(books: Books, *, is_bounded: bool) -> Iterator[str]:
    known = {each["id"] for rows in books.completions.values() for each in rows}
    for subject, kinds in books.ledger.items():
        if subject.startswith("chat_") and subject not in known:
            yield f"{subject}: charged, but there is no record"
        if is_bounded and "settle" in kinds and kinds["settle"]["overrun"]:
            yield f"{subject}: {kinds['settle']['overrun']} was not charged though it was held"


def _tell(chat: Chat) -> str:
    return f"received {'whole' if chat.whole else 'in part' if chat.begun else 'not at all'} ({chat.status})"


def _judge_charge(chat: Chat, row: sqlite3.Row, books: Books, meter: dict[str, Any], price: int) -> Iterator[str]:
    settled = books.ledger.get(row["id"], {}).get("settle")
    asked = chat.id in meter["asked"]
    told = f"{chat.id}: {_tell(chat)}, recorded as {row['outcome']} {row['code']} at {row['cost']}"
    if row["cost"] and (settled is None or settled["amount"] + settled["overrun"] != row["cost"]):
        yield f"{told}, charged {settled and tuple(settled)}"
    if asked and not row["cost"]:
        yield f"{told}, though the vendor worked for it"
    exact = price * (PROMPT_TOKENS + meter["tokens"].get(chat.id, 0))
    if chat.whole and (row["cost"] != exact or row["estimated"]):
        yield f"{told}, which should be {exact}"
    if row["outcome"] != "ok" and row["cost"] and not (row["estimated"] and settled and settled["note"] == "estimated"):
        yield f"{told}, but not marked as an estimate"


def judge_jobs(books: Books, orders: Sequence[Ordered], price: int, counts: dict[str, Any]) -> Iterator[str]:
    """Each job is settled once if it succeeded, and released if not; its vendor saw it at most once."""
    if counts["duplicates"]:
        yield f"{counts['duplicates']} jobs were ordered more than once"
    accepted = [each.id for each in orders if each.id]
    if len(accepted) != len(set(accepted)) or set(books.jobs) != set(accepted):
        yield f"{len(orders)} ordered, {len(set(accepted))} taken, {len(books.jobs)} in the store"
    for ordered in orders:
        if ordered.id in books.jobs:
            yield from _judge_job(ordered, books.jobs[ordered.id], books.ledger.get(ordered.id, {}), price)


ENTRIES: Final = {"succeeded": {"hold", "settle"}, "unknown": {"hold"}}


def _judge_job(ordered: Ordered, job: dict[str, Any], entries: dict[str, sqlite3.Row], price: int) -> Iterator[str]:
    code = (job.get("error") or {}).get("code")
    ending = "unknown" if code == "upstream_outcome_unknown" else job["state"]
    if ending != ordered.ending and (ending, ordered.ending) != ("unknown", "failed"):
        yield f"{ordered.id}: ended as {ending} {code}, not {ordered.ending}"
    if set(entries) != ENTRIES.get(ending, {"hold", "release"}):
        yield f"{ordered.id}: ended as {ending}, the ledger has {sorted(entries)}"
    for kind, entry in entries.items():
        if entry["amount"] != price or entry["overrun"]:
            yield f"{ordered.id}: its {kind} is {entry['amount']} + {entry['overrun']}, not {price}"


def judge_sums(books: Books, payers: dict[str, set[str]]) -> Iterator[str]:
    """Ledger, sums of usage and purses agree."""
    if len(set(books.sums.values())) != 1:
        yield f"the sums differ: {books.sums}"
    for owner, (spent, _) in books.purses.items():
        entries = [row for kinds in books.ledger.values() if (row := kinds.get("settle")) is not None]
        found = sum(row["amount"] for row in entries if row["key_id"] in payers[owner])
        if found != spent:
            yield f"{owner}: {spent} is spent, the entries come to {found}"


def count_kinds(books: Books, seen: Seen, meter: dict[str, Any]) -> Counter[str]:
    """How many answers were received how, and how they were charged."""
    found: Counter[str] = Counter()
    for chat in seen.chats.values():
        for row in books.completions.get(chat.id, []):
            how = "whole" if chat.whole else "in part" if chat.begun else "not at all"
            charge = "estimated" if row["estimated"] else "exact" if row["cost"] else "nothing"
            found[f"received {how}, charged {charge}"] += 1
            found["died with their process"] += row["code"] == "process_died"
    found["asked of the vendor"] = len(meter["asked"])
    found["overruns"] = sum(bool(kinds["settle"]["overrun"]) for kinds in books.ledger.values() if "settle" in kinds)
    found["overrun, 10⁻⁹ USD"] = sum(kinds["settle"]["overrun"] for kinds in books.ledger.values() if "settle" in kinds)
    return found
