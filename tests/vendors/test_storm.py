"""Jobs over all doubles at once in bad weather: each ends as its order did, and none is ordered twice."""

from contextlib import AsyncExitStack

import pytest
from doubles.media import listening
from vendors.storm import Odds, find_doubles, judge, rage, settings_of

JOBS = 2
"""How many each vendor gets; bench/jobs/media_vendors.py sends hundreds."""


@pytest.mark.long
async def test_every_job_ends_as_its_order_did(start):
    async with AsyncExitStack() as stack:
        doubles = [await stack.enter_async_context(listening(kind())) for kind in find_doubles()]
        server = await start(settings_of(doubles))
        asked = await rage(server.url, await server.new_key(), doubles, JOBS * len(doubles), Odds(), seed=1)
        problems = [f"{job.double.title} {job.id}: {problem}" for job in asked if (problem := judge(job))]
        assert problems == []
        assert sum(job.record["status"] == "succeeded" for job in asked) > len(asked) / 2
        assert all(len(job.orders) <= 1 for job in asked)
