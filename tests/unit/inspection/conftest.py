"""Pools of confined processes, closed after each test."""

from collections.abc import AsyncGenerator, Callable

import pytest

from penstock.inspection.worker_pool import ProcessPool


@pytest.fixture
async def open_process_pool() -> AsyncGenerator[Callable[..., ProcessPool]]:
    opened: list[ProcessPool] = []

    def make(*args: int, **options: float) -> ProcessPool:
        opened.append(ProcessPool(*args, **options))  # pyright: ignore[reportArgumentType]  as the tests give them
        return opened[-1]

    yield make
    for process_pool in opened:
        await process_pool.close()
