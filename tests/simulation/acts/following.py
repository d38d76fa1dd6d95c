"""Callers that follow the events of a job, are cut off or leave, and resume after the last event they saw."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from simulation.http_caller import CallFailed, HttpAnswer

if TYPE_CHECKING:
    from simulation.callers import Caller

MAX_STREAMS: Final = 40
"""Connections after which a caller gives up following a job."""
ENDINGS: Final = frozenset({"job.succeeded", "job.failed", "job.canceled", "job.expired"})
GONE: Final = frozenset({404, 410})


async def follow(caller: "Caller") -> None:
    """Follow a job to its end through any number of connections. Each event must come once, in order."""
    if (found := caller.some_job()) is None:
        return
    promise, job_id = found
    follower = Follower(caller, job_id)
    for _ in range(MAX_STREAMS):
        if await follower.connect():
            return
        await asyncio.sleep(caller.dice.uniform(0.1, 3.0))
    if not promise.asked_to_delete and not caller.world.has_faults:
        caller.world.violate("a stream of events reaches the end", f"{job_id} after {follower.sequence}")


class Follower:
    """The state of one caller that follows one job."""

    def __init__(self, caller: "Caller", job_id: str) -> None:
        self._caller = caller
        self._job_id = job_id
        self.last_id = ""
        self.sequence = 0

    async def connect(self) -> bool:
        """Read one stream. Return whether the job's last event was seen, or the job is gone."""
        ports = self._caller.ports()
        if not ports:
            return False
        headers = {"accept": "text/event-stream"} | ({"last-event-id": self.last_id} if self.last_id else {})
        path, port = f"/api/v1/jobs/{self._job_id}/events", self._caller.dice.choice(ports)
        try:
            async with aclosing(self._caller.http.stream(port, path, None, headers, method="GET")) as pieces:
                return await self._read(pieces)
        except CallFailed:
            return False

    async def _read(self, pieces: AsyncIterator[bytes | HttpAnswer]) -> bool:
        rest = b""
        async for piece in pieces:
            if isinstance(piece, HttpAnswer):
                if piece.status != 200:
                    return self._judge_status(piece.status)
                continue
            *frames, rest = (rest + piece).split(b"\n\n")
            for frame in frames:
                if self._take(frame):
                    return True
            if self._caller.dice.random() < 0.02:
                return False  # it leaves, and comes back
        return False

    def _judge_status(self, status: int) -> bool:
        if status not in (204, 404, 410, 429, 503):
            self._caller.world.violate("every answer is expected", f"events of {self._job_id}: {status}")
        if status == 204 and not self.last_id:
            self._caller.world.violate("a stream of events begins with the first", self._job_id)
        return status == 204 or status in GONE

    def _take(self, frame: bytes) -> bool:
        """Check one frame. Return whether it is the last one."""
        fields = dict(line.split(": ", 1) for line in frame.decode().split("\n") if ": " in line and line[0] != ":")
        if "data" not in fields:
            return False
        event: dict[str, Any] = json.loads(fields["data"])
        if event["sequence"] != self.sequence + 1:
            what = f"{self._job_id}: {event['sequence']} after {self.sequence}"
            self._caller.world.violate("a caller sees each event once", what)
        if event["data"]["id"] != self._job_id:
            self._caller.world.violate("a stream has the events of its job", f"{event['data']['id']}")
        self.sequence, self.last_id = event["sequence"], fields["id"]
        return event["type"] in ENDINGS
