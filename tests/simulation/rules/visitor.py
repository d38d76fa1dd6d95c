"""A caller of the calm end of a world: its requests are answered, and each takes no longer than it must."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from simulation.callers import Caller
from simulation.http_caller import HttpAnswer, HttpCaller
from simulation.world import World

PATIENCE_SECONDS: Final = 60.0
EXPECTED: Final = frozenset({200, 202, 402, 422, 429})
"""Statuses of submissions: a budget may be used up, a key may have been used, and a limit may be reached."""


class Visitor:
    """Asks in the name of one account, and now and then of a stranger."""

    def __init__(self, world: World, callers: Sequence[Caller]) -> None:
        self.world = world
        self.caller, self.stranger = callers[0], callers[1]
        self.own = HttpCaller(world, self.caller.key)
        self.other = HttpCaller(world, self.stranger.key)
        self.ports: Callable[[], Sequence[int]] = self.caller.ports

    async def ask(
        self, method: str, path: str, body: Any = None, by: HttpCaller | None = None, **headers: str
    ) -> HttpAnswer:
        """Return the answer of the first process."""
        return await (by or self.own).ask(self.ports()[0], method, path, body, headers, seconds=PATIENCE_SECONDS)

    async def submit(
        self, name: str, by: HttpCaller | None = None, *, more: Mapping[str, Any] | None = None, **script: Any
    ) -> HttpAnswer:
        """Submit a job with this script, at the vendor with few seats. `more` has other fields of the request."""
        body = {
            "model": "sim_image_to_model",
            "input": [{"params": {"script": script, "file": {"url": f"https://pictures.example.com/{name}.png"}}}],
            **(more or {}),
        }
        answer = await self.ask("POST", "/model/v1/generation", body, by, **{"idempotency-key": name})
        if answer.status not in EXPECTED:
            self.violate("every answer is expected", f"{name}: {answer.status} {answer.body[:300]!r}")
        return answer

    async def read(self, job_id: str, by: HttpCaller | None = None) -> Any:
        """Return the record of a job."""
        return (await self.ask("GET", f"/api/v1/jobs/{job_id}", by=by)).json

    async def follow(self, job_id: str, seconds: float = PATIENCE_SECONDS, by: HttpCaller | None = None) -> Any:
        """Return the record of a job once it is done, or after these seconds."""
        until = self.world.now + seconds
        while True:
            record = await self.read(job_id, by)
            if record["done"] or self.world.now > until:
                return record
            await asyncio.sleep(0.1)

    def violate(self, rule: str, what: str) -> None:
        """Report a broken rule."""
        self.world.violate(rule, what)
