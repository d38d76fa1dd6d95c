"""The workshop against crashes, hangs, bombs, callers that leave and a parent that is killed."""

import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import workloads as works

from penstock.domain.job_errors import BadOutput
from penstock.inspection.worker_pool import LimitReached, WorkFailed, WorkInterrupted

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in Linux's own way")


def processes_below(ancestor: int) -> set[int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(stat.parent.name)] = int(parent)
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in {ancestor, *found}} - found:
        found |= more
    return found


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(300):
        while not happened():  # noqa: ASYNC110  the system tells nobody
            await asyncio.sleep(0.02)


async def at_work(before: set[int]) -> None:
    """Wait until a child has forked."""
    await until(lambda: any(processes_below(child) for child in processes_below(os.getpid()) - before))


# -- what comes back


async def test_gives_the_result_of_another_process(open_process_pool):
    process_pool = open_process_pool()
    assert await process_pool.do("a", pow, None, 2, 10) == 1024
    assert await process_pool.do("a", os.getpid) != os.getpid()


async def test_gives_an_open_file_by_path_or_bytes(open_process_pool, tmp_path):
    process_pool, path = open_process_pool(), tmp_path / "file"
    path.write_bytes(b"by path")
    assert await process_pool.do("a", works.read_all, path, 1, None) == ["by path", 1, None]
    assert await process_pool.do("a", works.read_all, b"by bytes", "x") == ["by bytes", "x"]


@on_linux
async def test_keeps_a_child_for_the_next_file_but_no_memory_of_it(open_process_pool):
    process_pool, before = open_process_pool(1), processes_below(os.getpid())
    assert await process_pool.do("a", works.keep_in_memory, None, "first") == ["first"]
    child = processes_below(os.getpid()) - before
    assert await process_pool.do("b", works.keep_in_memory, None, "second") == ["second"]
    assert processes_below(os.getpid()) - before == child
    assert len(child) == 1


async def test_lets_a_job_s_error_through(open_process_pool):
    with pytest.raises(BadOutput, match="no faces"):
        await open_process_pool().do("a", works.fail, None, "no faces")


@pytest.mark.parametrize(
    ("work", "args", "message"),
    [
        (works.raise_timeout, (), "raise_timeout raised TimeoutError"),
        (works.fail_otherwise, ("?",), "fail_otherwise raised UrlNotAllowed"),
        (works.lie, (), "lie gave an answer"),
        (works.answer_much, (), "crashed"),
        (works.end_well, (), "crashed"),
    ],
)
async def test_any_other_error_or_answer_is_a_failure_of_the_work(open_process_pool, work, args, message):
    process_pool = open_process_pool(1)
    with pytest.raises(WorkFailed, match=message):
        await process_pool.do("a", work, None, *args)
    assert await process_pool.do("a", pow, None, 3, 2) == 9


async def test_noise_on_the_descriptors_disturbs_neither_result_nor_output(open_process_pool, capfd):
    process_pool = open_process_pool(1)
    assert await process_pool.do("a", works.chatter, None, 200) == "done"  # more than any pipe holds
    assert capfd.readouterr() == ("", "")


# -- what goes wrong


@pytest.mark.parametrize("work", [works.crash, works.fault])
async def test_a_crash_is_reported_and_the_next_work_is_done(open_process_pool, work):
    process_pool = open_process_pool(1)
    with pytest.raises(WorkFailed, match=f"{work.__name__} crashed"):
        await process_pool.do("a", work)
    assert await process_pool.do("a", pow, None, 3, 2) == 9


async def test_a_hang_is_killed_while_the_event_loop_runs_on(open_process_pool):
    process_pool, turns = open_process_pool(1, seconds=1), 0
    working = asyncio.create_task(process_pool.do("a", works.sleep, None, 600))
    while not working.done():
        await asyncio.sleep(0.005)
        turns += 1
    with pytest.raises(LimitReached, match="sleep took longer than 1 seconds"):
        await working
    assert turns > 20  # whoever waited for the child would have had none
    assert await process_pool.do("a", pow, None, 3, 2) == 9


async def test_too_much_computing_is_ended_and_not_tried_again(open_process_pool):
    process_pool = open_process_pool(1, cpu_seconds=1)
    with pytest.raises(LimitReached, match="spin took more than 1 seconds of computing time"):
        await process_pool.insist("a", works.spin)
    assert await process_pool.do("b", pow, None, 3, 2) == 9


@on_linux
async def test_a_memory_bomb_is_contained(open_process_pool):
    process_pool = open_process_pool(1)
    with pytest.raises(LimitReached, match="hoard needed more than 2048 MB"):
        await process_pool.do("a", works.hoard)
    assert await process_pool.do("a", pow, None, 3, 2) == 9


@on_linux
async def test_a_kill_is_not_blamed_on_the_file(open_process_pool):
    process_pool, before = open_process_pool(1), processes_below(os.getpid())
    assert await process_pool.do("a", pow, None, 2, 2) == 4
    (child,) = processes_below(os.getpid()) - before
    working = asyncio.create_task(process_pool.do("a", works.sleep, None, 600))
    await until(lambda: processes_below(child))
    for forked in processes_below(child):  # as the kernel does when memory runs out
        os.kill(forked, signal.SIGKILL)
    with pytest.raises(WorkInterrupted, match="sleep was ended by the machine"):
        await working
    assert await process_pool.do("a", pow, None, 3, 2) == 9


@on_linux
async def test_a_child_that_is_killed_is_replaced(open_process_pool):
    process_pool, before = open_process_pool(1), processes_below(os.getpid())
    assert await process_pool.do("a", pow, None, 2, 2) == 4
    for child in processes_below(os.getpid()) - before:
        os.kill(child, 9)
        await until(lambda child=child: child not in processes_below(os.getpid()))
    assert await process_pool.insist("a", pow, None, 3, 2) == 9


@on_linux
async def test_signals_to_the_whole_group_do_not_reach_the_work(open_process_pool):
    before = processes_below(os.getpid())
    working = asyncio.create_task(open_process_pool(1).do("a", works.sleep, None, 1.0))
    await at_work(before)
    for process in processes_below(os.getpid()) - before:
        os.kill(process, signal.SIGINT)
        os.kill(process, signal.SIGTERM)
    assert await working == 1.0


# -- callers that leave


@on_linux
async def test_a_cancelled_caller_ends_the_work_and_gives_the_place_back(open_process_pool):
    before, process_pool = processes_below(os.getpid()), open_process_pool(1)
    for _ in range(3):
        working = asyncio.create_task(process_pool.do("a", works.spin))
        await at_work(before)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await process_pool.do("b", pow, None, 3, 2) == 9
    assert len(processes_below(os.getpid()) - before) == 1  # the same child all along
    assert (process_pool.queue.held, process_pool.queue.waiting) == (0, 0)


@on_linux
async def test_callers_cancelled_at_any_moment_leave_nothing_behind(open_process_pool, caplog):
    before = processes_below(os.getpid())
    process_pool = open_process_pool(2)
    for number in range(30):
        working = [asyncio.create_task(process_pool.do(account, works.spin)) for account in "aab"]
        await asyncio.sleep(number / 200)
        for each in working:
            each.cancel()
        assert {type(each) for each in await asyncio.gather(*working, return_exceptions=True)} == {
            asyncio.CancelledError
        }
    assert await process_pool.do("a", pow, None, 3, 2) == 9
    await until(lambda: len(processes_below(os.getpid()) - before) <= 2)
    await until(lambda: process_pool.queue.held == 0)  # a child that was told to stop may take its time
    assert process_pool.queue.waiting == 0
    gc.collect()
    assert not caplog.records


@on_linux
async def test_closing_ends_everything_also_what_is_about_to_start(open_process_pool):
    before, process_pool = processes_below(os.getpid()), open_process_pool(2)
    working = [asyncio.create_task(process_pool.do(str(number), works.spin)) for number in range(5)]
    await asyncio.sleep(0)
    await process_pool.close()
    await asyncio.gather(*working, return_exceptions=True)
    assert processes_below(os.getpid()) == before


# -- turns


async def test_never_more_children_than_places_and_waiting_is_not_working(open_process_pool):
    process_pool = open_process_pool(1, seconds=3)
    assert await asyncio.gather(*(process_pool.do("a", works.sleep, None, 0.5) for _ in range(7))) == [0.5] * 7


async def test_one_account_never_holds_all_places(open_process_pool):
    process_pool = open_process_pool(2)
    greedy = [asyncio.create_task(process_pool.do("a", works.spin)) for _ in range(5)]
    await asyncio.sleep(0)
    for _ in range(3):
        assert await process_pool.do("b", pow, None, 2, 3) == 8  # though none of the others ends
    assert not any(each.done() for each in greedy)
    for each in greedy:
        each.cancel()
    await asyncio.gather(*greedy, return_exceptions=True)


# -- the parent

PARENT = """
import asyncio, os, sys
import workloads
from penstock.inspection.worker_pool import ProcessPool

async def live():
    workshop = ProcessPool(2, seconds=600, cpu_seconds=600)
    await workshop.do("a", pow, None, 2, 2)
    print("started", flush=True)
    if sys.argv[1] == "idle":
        await asyncio.sleep(600)
    else:
        await workshop.do("a", workloads.spin)

if __name__ == "__main__":
    if sys.argv[2] == "uvloop":
        import uvloop
        uvloop.run(live())
    asyncio.run(live())
"""


@on_linux
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("state", ["idle", "busy"])
async def test_children_end_when_the_parent_is_killed(tmp_path, state, loop):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PARENT))
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, program, state, loop]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as parent:  # noqa: ASYNC220, S603 - ours
        assert parent.stdout
        assert parent.stdout.readline() == "started\n"
        await until(lambda: len(processes_below(parent.pid)) == (1 if state == "idle" else 2))
        handles = [os.pidfd_open(process) for process in processes_below(parent.pid)]
        parent.kill()
        for handle in handles:
            assert await asyncio.to_thread(select.select, [handle], [], [], 60) == ([handle], [], [])
            os.close(handle)


def test_nothing_is_loaded_that_only_children_need():
    code = "import sys, penstock.inspection.worker_pool; print({'PIL', 'av', 'numpy'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert answer.stdout == "set()\n"
