"""A process pool whose children serve the next gateway too: importing takes each of them half a second of CPU."""

import atexit
from typing import Any

from penstock.inspection.worker_pool import ProcessPool, _Child

_idle: list[_Child] = []


class KeptPool(ProcessPool):
    """Children that have nothing to do are shared by all gateways of this process, and kept until it ends."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._idle = _idle

    async def close(self) -> None:
        """Abandon all work, and end only the children that were at it."""
        self._idle = []
        await super().close()


@atexit.register
def _end_all() -> None:
    for child in _idle:
        child.end()
