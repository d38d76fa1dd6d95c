"""A deadline does as `asyncio.timeout` does: TimeoutError for who is late, and a cancel stays a cancel."""

import asyncio

import pytest
from still_loop import run_still, still_loop

from penstock.chat.timers import Deadline


def test_who_is_in_time_notices_nothing():
    async def scenario() -> None:
        with Deadline(100):
            await still_loop().put_forward(80)
        await still_loop().put_forward(100)  # the timer is gone
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run_still(scenario())


async def test_who_is_late_is_told_so():
    with pytest.raises(TimeoutError), Deadline(0.01):
        await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "and may go on"
    await asyncio.sleep(0)


async def test_errors_pass_as_they_are():
    with pytest.raises(ValueError, match="own"), Deadline(1):
        raise ValueError("own")


@pytest.mark.parametrize("seconds", [60, 0])
async def test_who_is_cancelled_by_others_stays_cancelled(seconds):
    begun = asyncio.Event()

    async def work() -> None:
        with Deadline(seconds):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    if not seconds:
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_nearest_of_two_decides():
    with pytest.raises(TimeoutError), Deadline(60), Deadline(0.01):
        await asyncio.Event().wait()
    with Deadline(60):
        with pytest.raises(TimeoutError), Deadline(0.01):
            await asyncio.Event().wait()
        await asyncio.sleep(0)
