"""Who works on an accepted job. `runner.run` is handed in: this package knows no runner."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from penstock.domain.jobs import Claim, Job

Run: TypeAlias = Callable[[Claim, Job, asyncio.Event], Coroutine[Any, Any, None]]
"""Works on a claimed job to its end; the event is set once the vendor has a seat for it."""


class Dispatch(Protocol):
    """The port."""

    async def start(self, run: Run) -> None:
        """Take up every unfinished job, and from then on every new one."""
        ...

    def position(self, job_id: str) -> int | None:
        """How many jobs wait for the same vendor before this one; None if it does not wait."""
        ...

    def is_sure(self, claim: Claim | None = None) -> bool:
        """Whether this claim, or any made now, is ours beyond doubt: asked right before anything is paid for."""
        ...

    def reseat(self) -> None:
        """The settings may allow more seats now."""
        ...

    async def stop(self) -> None:
        """Stop working at once; unfinished jobs are given back as they are."""
        ...
