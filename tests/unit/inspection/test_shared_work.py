"""Small files of one account share a process: what one of them does is no other's trouble, and accounts take turns."""

import asyncio
import os

import pytest
import workloads as works

from penstock.domain.job_errors import BadOutput
from penstock.fairness.fair_queue import FairQueue
from penstock.inspection.shared_work import MAX_FILES_TOGETHER, MAX_SMALL_BYTES, SharedWork
from penstock.inspection.worker_pool import LimitReached, WorkFailed

SMALL = MAX_SMALL_BYTES


async def test_small_files_of_an_account_that_wait_together_share_a_process_and_no_others_do(open_process_pool):
    process_pool = open_process_pool(1)
    small = [process_pool.do(account, os.getpid, size=SMALL) for account in "aabab"]
    large = [process_pool.do("a", os.getpid, size=SMALL + 1), process_pool.do("a", os.getpid)]
    found = await asyncio.gather(*small, *large)
    assert found[0] == found[1] == found[3]
    assert found[2] == found[4]
    assert len({found[0], found[2], *found[5:]}) == 4


async def test_each_gets_its_own_file_and_result(open_process_pool, tmp_path):
    paths = [tmp_path / str(number) for number in range(MAX_FILES_TOGETHER + 3)]
    for path in paths:
        path.write_bytes(path.name.encode())
    process_pool = open_process_pool(1)
    found = await asyncio.gather(*(process_pool.do("a", works.read_all, path, path.name, size=1) for path in paths))
    assert found == [[path.name, path.name] for path in paths]


@pytest.mark.parametrize("work", [works.crash, works.answer_much, works.end_well])
async def test_a_file_that_ends_the_process_stops_no_other(open_process_pool, work):
    process_pool = open_process_pool(1)
    good, bad, after = await asyncio.gather(
        process_pool.do("a", pow, None, 2, 10, size=1),
        process_pool.do("a", work, size=1),
        process_pool.do("a", pow, None, 3, 2, size=1),
        return_exceptions=True,
    )
    assert (good, after) == (1024, 9)
    assert isinstance(bad, WorkFailed)


async def test_errors_and_false_answers_stay_with_their_file(open_process_pool):
    process_pool = open_process_pool(1)
    found = await asyncio.gather(
        process_pool.do("a", works.fail, None, "no faces", size=1),
        process_pool.do("a", works.lie, size=1),
        process_pool.do("a", pow, None, 2, 10, size=1),
        return_exceptions=True,
    )
    assert list(map(type, found)) == [BadOutput, WorkFailed, int]


async def test_a_file_that_hangs_is_ended_and_the_others_are_opened(open_process_pool):
    process_pool = open_process_pool(1, seconds=1)
    found = await asyncio.gather(
        process_pool.do("a", works.sleep, None, 600, size=1),
        process_pool.do("a", pow, None, 2, 10, size=1),
        return_exceptions=True,
    )
    assert isinstance(found[0], LimitReached)
    assert found[1] == 1024


async def test_a_file_that_is_gone_stops_no_other(open_process_pool, tmp_path):
    process_pool = open_process_pool(1)
    found = await asyncio.gather(
        process_pool.do("a", works.read_all, tmp_path / "gone", size=1),
        process_pool.do("a", pow, None, 2, 10, size=1),
        return_exceptions=True,
    )
    assert isinstance(found[0], FileNotFoundError)
    assert found[1] == 1024


async def test_work_that_all_callers_have_left_is_stopped(open_process_pool):
    process_pool = open_process_pool(1)
    assert await process_pool.do("a", pow, None, 2, 10, size=1) == 1024
    left = [asyncio.create_task(process_pool.do("a", works.sleep, None, 600, size=1)) for _ in range(2)]
    await asyncio.sleep(0)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert await asyncio.wait_for(process_pool.do("a", pow, None, 3, 2, size=1), 300) == 9


# -- turns


async def test_an_account_with_much_work_waits_for_others_between_its_rounds():
    rounds: list[list[str]] = []

    async def note(work, _callers):
        rounds.append(list(work))
        await asyncio.sleep(0)
        return work

    shared = SharedWork(FairQueue(1), note)
    many = [shared.do("many", "many") for _ in range(3 * MAX_FILES_TOGETHER)]
    assert await asyncio.gather(*many, shared.do("few", "few")) == ["many"] * 3 * MAX_FILES_TOGETHER + ["few"]
    assert [len(each) for each in rounds].count(MAX_FILES_TOGETHER) == 3
    assert rounds.index(["few"]) == 1


async def test_a_lone_caller_waits_for_nobody():
    async def echo(work, _callers):
        return work

    assert await SharedWork(FairQueue(1), echo).do("a", 1) == 1


async def test_closing_leaves_nobody_waiting():
    begun = asyncio.Event()

    async def hang(work, callers):
        ended = asyncio.Event()
        callers.stop = ended.set
        begun.set()
        await ended.wait()
        return [None] * len(work)

    shared = SharedWork(FairQueue(1), hang)
    tasks = [asyncio.create_task(shared.do("a", number)) for number in range(3)]
    await begun.wait()
    late = asyncio.create_task(shared.do("a", 3))
    await asyncio.sleep(0)
    await asyncio.wait_for(shared.close(), 300)
    assert all(
        isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*tasks, late, return_exceptions=True)
    )
