"""What a process leaves behind is charged once and whole, however it died, whoever finds it, and whatever is broken."""

import asyncio
import errno
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from admission_steps import ACCOUNT, KEY, NOON, Store, make_record, opened, rows, set_budget, standing, wait_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from penstock.billing.journal import Journal, Remains, find_remains
from penstock.billing.journal_files import DiskFile, DiskJournals
from penstock.billing.usage_writer import UsageWriter
from penstock.domain.chat import CHARACTERS_PER_TOKEN, Usage
from penstock.domain.prices import TokenPrice
from penstock.domain.usage import Begun, Completion, end_begun
from penstock.errors import StoreUnavailable
from penstock.store.queries.billing import balance_rows, completion_rows
from penstock.store.queries.billing.ledger_audit import check

DEAD = "process_dead"
MAX_BYTES = 128 << 10
MILLION = 1_000_000


@pytest.fixture
async def store(store_url) -> AsyncGenerator[Store]:
    async with opened(store_url) as store:
        yield store


@pytest.fixture
def small_journals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred records fill a journal."""
    monkeypatch.setattr("penstock.billing.journal.MAX_BYTES", MAX_BYTES)


@dataclass
class Answer:
    """One that is being given."""

    characters: int = 0


def make_begun(name: str, **fields: Any) -> Begun:
    defaults = {
        "id": name,
        "request_id": "req",
        "account_id": ACCOUNT,
        "key_id": KEY,
        "lineage": KEY,
        "model": "writer",
        "vendor": "upstream",
        "upstream_model": "m",
        "streamed": True,
        "created_at": NOON,
        "prompt": 10,
        "input_per_million": MILLION,
        "output_per_million": 2 * MILLION,
        "per_request": 0,
    }
    return Begun(**(defaults | fields))


def die(folder: Path) -> Path:
    """The files of a process as they are when it is killed: nobody holds its lock any more."""
    remains = folder.with_name(f"{folder.name}-dead")
    shutil.copytree(folder, remains, dirs_exist_ok=True)
    return remains


def only(folder: Path) -> Remains:
    [remains] = find_remains(DiskJournals(folder))
    assert list(folder.iterdir()) == []
    return remains


def write_remains(folder: Path, data: bytes, number: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{DEAD}.lock").touch()
    (folder / f"{DEAD}.{number:06}.journal").write_bytes(data)


def journal_of(folder: Path, ended: Sequence[Completion], under_way: Sequence[tuple[Begun, int]]) -> bytes:
    """What a process writes that began all of these, and ended some."""
    journal = Journal(DiskJournals(folder), DEAD)
    for record in ended:
        journal.begin(make_begun(record.id))
    for begun, seen in under_way:
        journal.begin(begun)
        journal.progress([(begun.id, seen)])
    for record in ended:
        journal.end(record)
    data = next(folder.glob("*.journal")).read_bytes()
    journal.close()
    assert list(folder.iterdir()) == []
    return data


# -- files


def test_what_ended_and_what_was_under_way_is_found(tmp_path):
    ended, under_way = [make_record(5), make_record(7)], [(make_begun("chat_a"), 9), (make_begun("chat_b"), 0)]
    write_remains(tmp_path / "j", journal_of(tmp_path / "k", ended, under_way))
    assert only(tmp_path / "j") == Remains(DEAD, ended, under_way)


def test_counts_of_cache_writes_are_kept_and_those_of_an_older_process_are_0(tmp_path):
    usage = Usage(10, 20, 3, 4, cache_writes=5, cache_writes_1h=2)
    ended = [msgspec.structs.replace(make_record(5), usage=usage)]
    data = journal_of(tmp_path / "k", ended, [])
    write_remains(tmp_path / "j", data)
    assert only(tmp_path / "j").ended == ended
    older = data.replace(b',"cache_writes":5,"cache_writes_1h":2', b"")
    assert older != data
    write_remains(tmp_path / "j", older)
    assert [record.usage for record in only(tmp_path / "j").ended] == [Usage(10, 20, 3, 4)]


def test_a_process_that_lives_is_left_alone_and_one_that_closed_leaves_nothing(tmp_path):
    journal = Journal(DiskJournals(tmp_path), "process_living")
    journal.begin(make_begun("chat_a"))
    assert list(find_remains(DiskJournals(tmp_path))) == []
    journal.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"\n\n", b"B", b"E{}\n", b'P[["chat_a",4]]\n', b"\x00" * 4096, b"B\xff\xfe\n"])
def test_empty_and_senseless_files_are_removed(tmp_path, data):
    write_remains(tmp_path / "j", data)
    assert only(tmp_path / "j") == Remains(DEAD, [], [])


def test_a_lock_without_a_journal_is_removed(tmp_path):
    (tmp_path / f"{DEAD}.lock").touch()
    assert only(tmp_path) == Remains(DEAD, [], [])


def test_wherever_the_last_line_is_cut_the_others_count(tmp_path):
    ended = [make_record(5), make_record(7)]
    data = journal_of(tmp_path / "k", ended, [(make_begun("chat_a"), 3)])
    last = data.rindex(b"\n", 0, -1) + 1
    for cut in range(last, len(data) + 1):
        write_remains(tmp_path / "j", data[:cut])
        found = only(tmp_path / "j")
        whole = cut >= len(data) - 1
        assert found.ended == ended[: 2 if whole else 1]
        assert [begun.id for begun, _ in found.under_way] == ([] if whole else [ended[1].id]) + ["chat_a"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.lists(some.tuples(some.integers(0, 8), some.sampled_from(["", "B", "P", "E"]), some.binary()), max_size=8))
def test_garbage_between_the_lines_hides_none_of_them(tmp_path, garbage):
    ended, under_way = [make_record(5), make_record(7)], [(make_begun("chat_a"), 9), (make_begun("chat_b"), 4)]
    lines = journal_of(tmp_path / "k", ended, under_way).split(b"\n")
    for place, kind, dirt in garbage:
        lines.insert(place, kind.encode() + dirt)
    write_remains(tmp_path / "j", b"\n".join(lines))
    assert only(tmp_path / "j") == Remains(DEAD, ended, under_way)


FULL_DISK = """
import os, resource, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_journal import DEAD, make_begun
from penstock.errors import StoreUnavailable
from penstock.billing.journal import Journal
from penstock.billing.journal_files import DiskFile, DiskJournals
journal, number = Journal(DiskJournals(Path({folder!r})), DEAD), 0
for limit in (1000, 2000, resource.RLIM_INFINITY):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for _ in range(20):
        number += 1
        try:
            journal.begin(make_begun(f"chat_{{number}}"))
        except StoreUnavailable:
            print("refused", flush=True)
            break
        print(f"chat_{{number}}", flush=True)
os._exit(9)
"""


def test_on_a_full_disk_a_line_is_written_or_refused_and_spoils_no_other(tmp_path):
    script = FULL_DISK.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert told.returncode == 9, told.stderr
    names = told.stdout.split()
    assert names.count("refused") == 2
    assert [begun.id for begun, _ in only(tmp_path).under_way] == [name for name in names if name != "refused"]


# -- the tally


class Minutes:
    """Tallies that end with the test."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.opened: list[UsageWriter] = []

    def open(self, process: str, folder: Path | None = None) -> UsageWriter:
        usage_writer = UsageWriter(self.store, process, DiskJournals(folder or self.folder), lambda: NOON + 60)
        self.opened.append(usage_writer)
        return usage_writer


@pytest.fixture
async def tallies(store, tmp_path) -> AsyncGenerator[Minutes]:
    minutes = Minutes(store, tmp_path / "journal")
    yield minutes
    for usage_writer in minutes.opened:
        await usage_writer.stop()


async def costs(store: Store) -> dict[str, int]:
    return {row.id: row.cost for row in await rows(store, "SELECT id, cost FROM completions")}


async def test_progress_that_a_full_disk_refused_is_recorded_later(tallies, tmp_path, monkeypatch):
    usage_writer, write, refused = tallies.open(DEAD), DiskFile.write, list[bytes]()

    def refuse_once(file: DiskFile, data: bytes) -> int:
        if data.startswith(b"P") and not refused:
            refused.append(data)
            raise OSError(errno.ENOSPC, "full")
        return write(file, data)

    monkeypatch.setattr(DiskFile, "write", refuse_once)
    usage_writer.begin(make_begun("chat_1", streamed=True), Answer(400))  # and then it is silent
    file = tmp_path / "journal" / f"{DEAD}.000000.journal"

    async def is_recorded() -> bool:
        return b'P[["chat_1",400]]' in file.read_bytes()

    await wait_for(is_recorded)
    assert len(refused) == 1


async def test_what_the_dead_left_is_charged_and_what_they_held_is_free(store, tallies, tmp_path):
    budget = await set_budget(store, 1000)
    payer = balance_rows.Payer(ACCOUNT, KEY, KEY)
    await store.write(balance_rows.lease, DEAD, payer, budget, 100, 500, NOON)
    ended = [make_record(40), make_record(0)]
    write_remains(tmp_path / "journal", journal_of(tmp_path / "k", ended, [(make_begun("chat_a"), 9)]))
    await tallies.open("process_new").recover()
    seen = -(-9 // CHARACTERS_PER_TOKEN)
    assert await costs(store) == {ended[0].id: 40, ended[1].id: 0, "chat_a": 10 + 2 * seen}
    assert await standing(store) == (40 + 10 + 2 * seen, 0)
    [row] = await rows(store, "SELECT * FROM completions WHERE id = 'chat_a'")
    assert (row.code, row.estimated, row.outcome) == ("process_died", 1, "canceled")
    assert await store.read(check) == []


async def test_what_is_in_the_store_already_is_not_charged_again(store, tallies, tmp_path):
    """Written to the store, then killed before anyone heard of it; also one whose end did not reach the journal."""
    ended = [make_record(cost) for cost in range(1, 30)]
    data = journal_of(tmp_path / "k", ended, [(make_begun("chat_a"), 9)])
    real = [*ended[:20], *(make_record_named("chat_a", 77),)]
    await store.write(completion_rows.add_all, DEAD, real, NOON)
    write_remains(tmp_path / "journal", data)
    await tallies.open("process_new").recover()
    assert await costs(store) == {record.id: record.cost for record in ended} | {"chat_a": 77}
    assert await store.read(check) == []


def make_record_named(name: str, cost: int) -> Completion:
    made = make_record(cost)
    return type(made)(**{field: getattr(made, field) for field in made.__struct_fields__} | {"id": name})


async def test_two_who_find_the_same_remains_charge_them_once(store, tallies, tmp_path):
    ended = [make_record(1) for _ in range(5000)]
    write_remains(tmp_path / "journal", journal_of(tmp_path / "k", ended, [(make_begun("chat_a"), 9)]))
    one, two = tallies.open("process_one"), tallies.open("process_two")
    await asyncio.gather(one.recover(), two.recover(), one.recover(), two.recover())
    assert len(await costs(store)) == 5001
    [total] = await rows(store, "SELECT sum(amount) AS spent FROM ledger")
    assert total.spent == sum((await costs(store)).values())
    assert not list((tmp_path / "journal").glob(f"{DEAD}*"))


async def test_remains_stay_until_they_are_in_the_store(store, tallies, tmp_path):
    ended = [make_record(3)]
    write_remains(tmp_path / "journal", journal_of(tmp_path / "k", ended, []))
    usage_writer = tallies.open("process_new")
    store.broken = True
    with pytest.raises(StoreUnavailable):
        await usage_writer.recover()
    store.broken = False
    await usage_writer.recover()
    assert await costs(store) == {ended[0].id: 3}


async def test_a_record_that_nobody_can_write_holds_up_no_others(store, tallies, tmp_path):
    await set_budget(store, 1000)
    ended = [make_record(3), make_record(1 << 70), make_record(4)]
    write_remains(
        tmp_path / "journal", journal_of(tmp_path / "k", ended, [(make_begun("chat_a", created_at=1e300), 9)])
    )
    usage_writer = tallies.open("process_new")
    await usage_writer.recover()
    assert await costs(store) == {ended[0].id: 3, ended[2].id: 4}
    for record in ended:
        usage_writer.add(make_record(record.cost or 0))
    await usage_writer.flush()
    assert sum((await costs(store)).values()) == 14
    assert await store.read(check) == []


@pytest.mark.usefixtures("small_journals")
async def test_a_large_journal_is_begun_anew_while_requests_are_under_way(store, tallies, tmp_path):
    usage_writer, folder = tallies.open("process_busy"), tmp_path / "journal"
    slow, quick = Answer(), Answer()
    usage_writer.begin(make_begun("chat_slow"), slow)
    slow.characters = 400
    size = 0
    while size < MAX_BYTES:  # never so few that nothing waits
        for _ in range(100):
            record = make_record(1)
            usage_writer.begin(make_begun(record.id, streamed=False), quick)
            usage_writer.add(record)
        size = size_of(folder)
    await wait_for(lambda: shrunk(folder))
    usage_writer.add(make_record(2))
    left = only(die(folder))
    assert [(begun.id, seen) for begun, seen in left.under_way] == [("chat_slow", 400)]
    assert names_in(folder) == ["process_busy.000001.journal"]


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.journal"))


async def shrunk(folder: Path) -> bool:
    return size_of(folder) < MAX_BYTES / 4


@pytest.mark.usefixtures("small_journals")
async def test_a_journal_that_never_rests_is_shortened_too(store, tallies, tmp_path):
    """Records that wait at that moment are in the new file."""
    usage_writer, folder = tallies.open("process_busy"), tmp_path / "journal"
    added: dict[str, int] = {}

    async def keep_adding() -> None:
        while True:
            for _ in range(60):
                record = make_record(1)
                usage_writer.begin(make_begun(record.id, streamed=False), Answer())
                usage_writer.add(record)
                added[record.id] = 1
            await asyncio.sleep(0.01)

    adding = asyncio.create_task(keep_adding())
    try:
        await wait_for(lambda: begun_anew(folder), seconds=100)
        store.broken = True
    finally:  # else, if it never comes, closing would wait for ever
        adding.cancel()
    with suppress(asyncio.CancelledError):
        await adding
    left = only(die(folder))
    assert {record.id for record in left.ended} | set(await costs(store)) == set(added)
    assert left.under_way == []
    store.broken = False
    await usage_writer.flush()
    assert await costs(store) == added
    assert await store.read(check) == []


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.journal"))


async def begun_anew(folder: Path) -> bool:
    """Return whether the first file is gone, however many followed it."""
    names = names_in(folder)
    return bool(names) and "process_busy.000000.journal" not in names


@pytest.mark.usefixtures("small_journals")
async def test_a_journal_that_cannot_be_shortened_stops_nothing(store, tmp_path):
    folder = tmp_path / "journal"
    usage_writer = UsageWriter(store, "process_busy", DiskJournals(folder), lambda: NOON)
    size = 0
    while size < MAX_BYTES:
        record = make_record(1)
        usage_writer.begin(make_begun(record.id, streamed=False), Answer())
        usage_writer.add(record)
        size += 600
    shutil.rmtree(folder)  # there is no place for a new file
    await wait_for(lambda: written(store, record.id))
    last = make_record(5)
    usage_writer.add(last)
    await wait_for(lambda: written(store, last.id))
    await usage_writer.stop()


async def written(store: Store, name: str) -> bool:
    return bool(await rows(store, f"SELECT id FROM completions WHERE id = '{name}'"))  # noqa: S608


async def test_a_store_that_fails_for_a_while_gets_every_record_once(store, tallies):
    usage_writer = tallies.open("process_one")
    store.broken = True
    records = [make_record(2) for _ in range(50)]
    for record in records:
        usage_writer.add(record)
    with pytest.raises(StoreUnavailable):
        await usage_writer.flush()
    store.broken = False
    await asyncio.gather(usage_writer.flush(), usage_writer.flush())
    assert await costs(store) == {record.id: 2 for record in records}
    assert await store.read(check) == []


async def test_who_wants_all_written_waits_only_for_what_there_was(store, tallies):
    """Others go on adding, and must not keep anyone waiting."""
    usage_writer, mine = tallies.open("process_one"), make_record(1)
    usage_writer.add(mine)
    store.fails = lambda: usage_writer.add(make_record(2)) is not None  # every write brings the next record
    await asyncio.wait_for(usage_writer.flush(), 300)
    store.fails = lambda: False
    assert mine.id in await costs(store)


@pytest.mark.parametrize("ticks", range(0, 40, 4))
async def test_stopping_at_any_moment_writes_everything_once(store, tmp_path, ticks):
    usage_writer = UsageWriter(store, "process_one", DiskJournals(tmp_path / "journal"), lambda: NOON)
    records = [make_record(2) for _ in range(20)]
    for record in records:
        usage_writer.add(record)
    flushing = asyncio.create_task(usage_writer.flush())
    for _ in range(ticks):
        await asyncio.sleep(0)
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)
    await usage_writer.stop()
    assert await costs(store) == {record.id: 2 for record in records}
    assert list((tmp_path / "journal").iterdir()) == []
    assert await store.read(check) == []


# -- what is charged


amounts = some.integers(0, 100_000 * MILLION)
prices = some.fixed_dictionaries(dict.fromkeys(("input_per_million", "output_per_million", "per_request"), amounts))


@settings(deadline=None)
@given(prices, some.integers(0, 10_000), some.integers(0, 100_000))
def test_a_request_whose_process_died_costs_what_its_price_says(fields, prompt, characters):
    price = TokenPrice.model_construct(**fields)
    record = end_begun(make_begun("chat_a", prompt=prompt, **fields), characters, NOON + 5)
    assert record.usage == Usage(prompt, -(-characters // CHARACTERS_PER_TOKEN), estimated=True)
    assert record.cost == price.of(record.usage)
    assert record.seconds == 5


def test_without_a_price_it_costs_nothing_that_is_known():
    assert end_begun(make_begun("chat_a", input_per_million=None), 100, NOON).cost is None
