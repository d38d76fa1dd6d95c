"""An event loop for which a stalled machine does not let time pass: only a test puts its time forward by much."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final

LONGEST_STEP_SECONDS: Final = 0.05


class StillLoop(asyncio.SelectorEventLoop):
    """Timers run on, but however long the process is held up between two looks at the clock, it counts as a moment."""

    def __init__(self) -> None:
        super().__init__()
        self._looked_at = time.monotonic()
        self._now = self._looked_at

    def time(self) -> float:
        looked_at = time.monotonic()
        self._now += min(looked_at - self._looked_at, LONGEST_STEP_SECONDS)
        self._looked_at = looked_at
        return self._now

    async def put_forward(self, seconds: float) -> None:
        """Let so much time pass, and then happen whatever is due."""
        self._now += seconds
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
