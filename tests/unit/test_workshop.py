"""The workshop against crashes, hangs, bombs and a parent that is killed."""

import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.job_errors import BadOutput
from penstock.workshop import MEMORY_BYTES, WorkFailed, Workshop

# -- work


def fail(message: str) -> None:
    raise BadOutput(message, upstream={"code": "7"}, retryable=False)


def crash() -> None:
    os._exit(3)


def fault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(note: str) -> None:
    Path(note).write_text(str(os.getpid()))
    while True:
        pass


def hoard() -> int:
    return len(bytearray(MEMORY_BYTES))


def chatter(lines: int) -> str:
    for _ in range(lines):
        os.write(1, b"RETURN 3\n" * 100)
        os.write(2, b"noise\n" * 100)
    return "done"


def raise_timeout() -> None:
    raise TimeoutError("the work's own")


def wait_for(path: str) -> int:
    while not Path(path).exists():
        time.sleep(0.01)
    return os.getpid()


def read_once_written(path: Path) -> str:
    for _ in range(3000):
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.01)
    pytest.fail(f"{path.name} was not written")


def end_of(child: int) -> bool:
    """Whether a process, maybe not our own child, ends soon."""
    try:
        handle = os.pidfd_open(child)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 20)[0])
    finally:
        os.close(handle)


def children() -> set[int]:
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z" and int(parent) == os.getpid():
                found.add(int(stat.parent.name))
    return found


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in Linux's own way")

# -- what comes back


async def test_gives_the_result_of_another_process():
    workshop = Workshop()
    assert await workshop.do(pow, 2, 10) == 1024
    assert await workshop.do(os.getpid) != os.getpid()


async def test_keeps_a_child_for_the_next_work():
    workshop = Workshop(workers=1)
    assert await workshop.do(os.getpid) == await workshop.do(os.getpid)


async def test_lets_the_work_s_own_error_through():
    with pytest.raises(BadOutput, match="no faces") as caught:
        await Workshop().do(fail, "no faces")
    assert (caught.value.upstream, caught.value.retryable) == ({"code": "7"}, False)


async def test_tells_the_work_s_own_timeout_from_ours():
    with pytest.raises(TimeoutError, match="the work's own"):
        await Workshop().do(raise_timeout)


async def test_noise_on_the_descriptors_disturbs_neither_result_nor_output(capfd):
    workshop = Workshop(workers=1)
    assert await workshop.do(chatter, 200) == "done"  # more than any pipe holds
    assert await workshop.do(pow, 2, 3) == 8
    assert capfd.readouterr() == ("", "")


# -- what goes wrong


@pytest.mark.parametrize("work", [crash, fault])
async def test_a_crash_is_reported_and_the_next_work_is_done(work):
    workshop = Workshop(workers=1)
    with pytest.raises(WorkFailed, match=f"{work.__name__} crashed"):
        await workshop.do(work)
    assert await workshop.do(pow, 3, 2) == 9


@on_linux
async def test_a_hang_is_killed_in_time_while_the_event_loop_runs_on():
    workshop = Workshop(workers=1, seconds=2)
    child, turns = await workshop.do(os.getpid), 0
    working = asyncio.create_task(workshop.do(exec, "while True: pass"))
    while not working.done():
        await asyncio.sleep(0.005)
        turns += 1
    with pytest.raises(WorkFailed, match="exec took longer than 2 seconds"):
        await working
    assert turns > 20  # whoever waited for the child would have had none in these two seconds
    assert child not in children()
    assert await workshop.do(pow, 3, 2) == 9


@on_linux
async def test_a_cancelled_caller_ends_the_child(tmp_path):
    note = tmp_path / "note"
    working = asyncio.create_task(Workshop().do(hang, str(note)))
    child = int(await asyncio.to_thread(read_once_written, note))
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert await asyncio.to_thread(end_of, child)


@on_linux
async def test_a_caller_cancelled_while_a_child_starts_leaves_nothing_behind(caplog):
    before = children()
    workshop = Workshop(workers=2)
    for number in range(30):
        working = asyncio.create_task(workshop.do(time.sleep, 60))
        await asyncio.sleep(number / 100)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
    kept = {await workshop.do(os.getpid), await workshop.do(os.getpid)}
    assert kept <= children() - before
    async with asyncio.timeout(60):
        while len(children() - before) > 2:  # noqa: ASYNC110  one just killed may still wait to be reaped
            await asyncio.sleep(0.02)
    gc.collect()
    assert not caplog.records


@on_linux
async def test_closing_sees_the_child_started_that_is_about_to():
    before, workshop = children(), Workshop()
    working = asyncio.create_task(workshop.do(time.sleep, 60))
    async with asyncio.timeout(30):
        while not (started := children() - before):  # noqa: ASYNC110  the system tells nobody
            await asyncio.sleep(0.005)
    working.cancel()
    await workshop.close()
    assert {await workshop.do(os.getpid)} == started  # it is known, and will not outlive the event loop


@on_linux
async def test_a_memory_bomb_is_contained():
    workshop = Workshop(workers=1)
    with pytest.raises(WorkFailed, match="hoard needed more than 2048 MB"):
        await workshop.do(hoard)
    assert await workshop.do(pow, 3, 2) == 9


async def test_signals_to_the_whole_group_do_not_reach_the_work(tmp_path):
    workshop = Workshop(workers=1)
    child = await workshop.do(os.getpid)
    go = tmp_path / "go"
    working = asyncio.create_task(workshop.do(wait_for, str(go)))
    os.kill(child, signal.SIGINT)
    os.kill(child, signal.SIGTERM)
    go.touch()
    assert await working == child


async def test_never_more_children_than_workers_and_waiting_is_not_working():
    workshop = Workshop(workers=1, seconds=3)
    await asyncio.gather(*(workshop.do(time.sleep, 0.5) for _ in range(7)))
    assert len(set(await asyncio.gather(*(workshop.do(os.getpid) for _ in range(4))))) == 1


# -- the parent

PARENT = """
import asyncio, os, sys, time
from penstock.workshop import Workshop

def spin(path):
    with open(path, "w") as note:
        note.write(str(os.getpid()))
    while True:
        pass

async def live():
    workshop = Workshop(workers=2, seconds=3)
    if sys.argv[1] == "idle":
        print(await workshop.do(os.getpid), flush=True)
        await asyncio.sleep(60)
    else:
        await workshop.do(spin, sys.argv[2])

if __name__ == "__main__":
    print("started", flush=True)
    if sys.argv[3] == "uvloop":
        import uvloop
        uvloop.run(live())
    asyncio.run(live())
"""


@on_linux
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("state", ["idle", "busy"])
async def test_children_end_when_the_parent_is_killed_and_never_start_the_program_again(tmp_path, state, loop):
    program, note = tmp_path / "program.py", tmp_path / "note"
    program.write_text(textwrap.dedent(PARENT))
    with subprocess.Popen([sys.executable, program, state, note, loop], stdout=subprocess.PIPE, text=True) as parent:  # noqa: ASYNC220, S603 - our own program
        assert parent.stdout
        assert parent.stdout.readline() == "started\n"
        child = int(parent.stdout.readline() if state == "idle" else await asyncio.to_thread(read_once_written, note))
        parent.kill()
        assert await asyncio.to_thread(end_of, child)
        assert parent.stdout.read() == ""
