"""A crowd at a vendor in a calm world: accounts take turns, and who waits may give up."""

import asyncio
from typing import Any, Final

from simulation.rules.visitor import Visitor

CROWD: Final = 12
"""Jobs of one account at once: several times the seats of their vendor."""
CROWD_SECONDS: Final = 2.0
"""Seconds that the vendor needs for each."""
TURN_SECONDS: Final = 6.0
"""Seconds until a job of another account starts: one of the crowd ends before it, and a poll notices that."""
START_SECONDS: Final = 1.5
LATE_SECONDS: Final = 2.5


async def check_crowd(visitor: Visitor) -> None:
    """Let one account fill a vendor, then check those who wait behind it."""
    job = {"params": {"script": {"latency": CROWD_SECONDS}}}
    crowd = await visitor.submit("crowd", more={"input": [job] * CROWD})
    job_ids = [job["id"] for job in crowd.json["jobs"]]
    await asyncio.gather(
        _check_turn(visitor), _check_start_timeout(visitor), _check_waiting_cancel(visitor, job_ids[-1])
    )
    for job_id in job_ids:
        await visitor.ask("POST", f"/api/v1/jobs/{job_id}/cancel")
    for job_id in job_ids:
        await visitor.follow(job_id)


async def _check_turn(visitor: Visitor) -> None:
    answer = await visitor.submit("guest", by=visitor.other, latency=0.3)
    if answer.status == 402:
        return  # its budget is used up
    record: Any = answer.json
    begun = visitor.world.now
    while record["status"] == "queued" and visitor.world.now - begun < TURN_SECONDS:
        await asyncio.sleep(0.1)
        record = await visitor.read(record["id"], by=visitor.other)
    if record["status"] == "queued":
        visitor.violate("accounts take turns", f"{record['id']} waits for {TURN_SECONDS:g} s")
    await visitor.follow(record["id"], by=visitor.other)


async def _check_start_timeout(visitor: Visitor) -> None:
    answer = await visitor.submit("impatient", more={"start_timeout": START_SECONDS})
    record = await visitor.follow(answer.json["id"], START_SECONDS + LATE_SECONDS)
    if record["status"] != "expired":
        visitor.violate("a start timeout is kept", f"{record['status']} after {START_SECONDS + LATE_SECONDS:g} s")


async def _check_waiting_cancel(visitor: Visitor, job_id: str) -> None:
    await asyncio.sleep(0.5)
    await visitor.ask("POST", f"/api/v1/jobs/{job_id}/cancel")
    record = await visitor.follow(job_id, LATE_SECONDS)
    if record["status"] != "canceled":
        visitor.violate("a cancel is prompt", f"{record['status']} while it waits for a seat")
