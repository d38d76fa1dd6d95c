"""An event loop for which a stalled machine does not let time pass: only a test puts its time forward by much."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from calm_loop import CalmLoop


class StillLoop(CalmLoop):
    """A calm loop whose time a test can put forward."""

    async def put_forward(self, seconds: float) -> None:
        """Let so much time pass, and then happen whatever is due."""
        self._clock.now += seconds
        for _ in range(20):
            await asyncio.sleep(0)


def still_loop() -> StillLoop:
    """Return the loop that runs this test."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StillLoop)
    return loop


def run_still(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a scenario to its end on a loop whose time only the scenario puts forward."""
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        runner.run(scenario)
