"""Assignment of accepted jobs to processes. The function that runs a job is passed in."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias

from penstock.domain.jobs import Claim, Job

Run: TypeAlias = Callable[[Claim, Job, asyncio.Event], Coroutine[Any, Any, None]]
"""Runs a claimed job to its end. The event is set once the vendor has a seat for it."""


class Dispatch(Protocol):
    """The port that each kind of dispatch implements."""

    async def start(self, run: Run) -> None:
        """Run every unfinished job, and from then on every new one."""
        ...

    def position(self, job_id: str) -> int | None:
        """Return the number of jobs before this one in its vendor's queue, or None if it does not wait."""
        ...

    def is_sure(self, claim: Claim | None = None) -> bool:
        """Return whether this claim, or any made now, is certainly ours. It is checked right before each payment."""
        ...

    def reseat(self) -> None:
        """Grant seats by the limits of the new settings."""
        ...

    async def stop(self) -> None:
        """Stop immediately, and release the claims of unfinished jobs."""
        ...
