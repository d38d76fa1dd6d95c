"""Deadlines and lost orders in a calm world: a job ends at its timeout, and a canceled order is looked up."""

import asyncio
from dataclasses import dataclass
from typing import Final

from simulation.rules.visitor import Visitor

RUN_SECONDS: Final = 3.0
LONG_SECONDS: Final = 8.0
"""The run timeout of a job that outlives the process that runs it."""
LATE_SECONDS: Final = 2.0
"""Seconds that a job may end after its deadline."""
PLACED_SECONDS: Final = 0.4
"""Seconds after which a new job has placed its order, whose reply has not come yet."""


async def check_lost_order(visitor: Visitor) -> None:
    """Cancel a job while its order's reply is lost. The rule of canceled orders sees whether the order is stopped."""
    job_id = (await visitor.submit("regretted", latency=600, submission="reply_lost")).json["id"]
    await asyncio.sleep(PLACED_SECONDS)
    await visitor.ask("POST", f"/api/v1/jobs/{job_id}/cancel")
    record = await visitor.follow(job_id, 10.0)
    if record["status"] != "canceled":
        visitor.violate("a cancel is prompt", f"{record['status']} after its reply was lost")


async def check_run_timeout(visitor: Visitor) -> None:
    """Check that a job whose vendor never ends is over at its run timeout."""
    begun = visitor.world.now
    answer = await visitor.submit("endless", more={"run_timeout": RUN_SECONDS}, ending="never", latency=1)
    record = await visitor.follow(answer.json["id"], RUN_SECONDS + LATE_SECONDS)
    seconds = visitor.world.now - begun
    if record["status"] != "expired" or seconds < RUN_SECONDS:
        visitor.violate("a run timeout is kept", f"{record['status']} after {seconds:.1f} s")


@dataclass(frozen=True)
class Endless:
    """A job that another process takes over before its run timeout."""

    visitor: Visitor
    job_id: str
    deadline: float

    @classmethod
    async def begin(cls, visitor: Visitor) -> "Endless":
        """Submit it, and let most of its time pass."""
        answer = await visitor.submit("outlived", more={"run_timeout": LONG_SECONDS}, ending="never", latency=1)
        deadline = visitor.world.now + LONG_SECONDS
        await asyncio.sleep(LONG_SECONDS * 0.6)
        return cls(visitor, answer.json["id"], deadline)

    async def check(self) -> None:
        """Check that it is over at its timeout, which counts from its first start."""
        record = await self.visitor.follow(self.job_id, max(0.0, self.deadline - self.visitor.world.now) + LATE_SECONDS)
        if record["status"] != "expired":
            late = self.visitor.world.now - self.deadline
            self.visitor.violate("a run timeout is kept", f"{record['status']} {late:.1f} s after it")
