"""A calm end of a world: without faults, a gateway must be prompt, hand over its work, and keep accounts apart."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from simulation.callers import Caller
from simulation.http_caller import HttpAnswer, HttpCaller
from simulation.machine import ObjectStore
from simulation.world import World

START_SECONDS: Final = 1.5
"""Seconds from the acceptance of a job to its start."""
CANCEL_SECONDS: Final = 2.0
"""Seconds from a cancel to the end of the job."""
TAKE_OVER_SECONDS: Final = 10.0
"""Seconds in which a job ends although the process that ran the jobs has just been stopped."""
PATIENCE_SECONDS: Final = 60.0
SETTLE_SECONDS: Final = 3.0


class Leader(Protocol):
    """A process that was asked to stop."""

    has_stopped: bool


class Calm:
    """Makes some requests in a world that has healed, and checks their answers and how long they take."""

    def __init__(self, world: World, callers: Sequence[Caller], objects: ObjectStore) -> None:
        self._world = world
        self._caller, self._stranger = callers[0], callers[1]
        self._objects = objects
        self._own = HttpCaller(world, self._caller.key)
        self._other = HttpCaller(world, self._stranger.key)
        self._ports = self._caller.ports

    def run(self, retire_leader: Callable[[], Leader | None]) -> None:
        """Let all of it happen."""
        self._world.run(self._world.now + SETTLE_SECONDS)
        self._world.is_calm = True
        task = self._world.spawn(self._live(retire_leader))
        self._world.run(self._world.now + 6 * PATIENCE_SECONDS, task.done)
        if not task.done():
            self._world.violate("every call is answered", "in a calm world")
        elif task.exception() is not None:
            raise task.exception()  # type: ignore[misc]  # it has one
        self._world.is_calm = False

    async def _live(self, retire_leader: Callable[[], Leader | None]) -> None:
        await self._check_prompt_cancel()
        record = await self._check_prompt_job()
        await self._check_strangers(record)
        await self._check_repeats()
        await self._check_deletion(record)
        if (leader := retire_leader()) is not None:
            await self._check_hand_over(leader)

    # -- requests

    async def _ask(self, method: str, path: str, body: Any = None, by: HttpCaller | None = None, **more: str) -> Any:
        return await (by or self._own).ask(self._ports()[0], method, path, body, more, seconds=PATIENCE_SECONDS)

    async def _submit(self, name: str, by: HttpCaller | None = None, **script: Any) -> HttpAnswer:
        body = {
            "model": "sim_image_to_model",
            "input": [{"params": {"script": script, "file": {"url": f"https://pictures.example.com/{name}.png"}}}],
            "webhook": {"url": self._caller.webhook, "events": ["job.queued", "job.started", "job.succeeded"]},
        }
        return await self._ask("POST", "/model/v1/generation", body, by, **{"idempotency-key": name})

    async def _follow(self, job_id: str, seconds: float = PATIENCE_SECONDS) -> Any:
        """Return the record of a job once it is done, or after these seconds."""
        until = self._world.now + seconds
        while True:
            record = (await self._ask("GET", f"/api/v1/jobs/{job_id}")).json
            if record["done"] or self._world.now > until:
                return record
            await asyncio.sleep(0.1)

    # -- rules

    async def _check_prompt_job(self) -> Any:
        begun = self._world.now
        accepted = (await self._submit("calm", latency=0.3)).json
        while (record := (await self._ask("GET", f"/api/v1/jobs/{accepted['id']}")).json)["status"] == "queued":
            await asyncio.sleep(0.05)
            if self._world.now - begun > PATIENCE_SECONDS:
                break
        if self._world.now - begun > START_SECONDS:
            self._world.violate("a new job starts promptly", f"after {self._world.now - begun:.1f} s")
        record = await self._follow(accepted["id"])
        if record["status"] != "succeeded" or not record["charged"]:
            self._world.violate("a job without faults succeeds", f"{record['status']}: {record['error']}")
        return record

    async def _check_prompt_cancel(self) -> None:
        job_id = (await self._submit("unwanted", latency=600)).json["id"]
        await asyncio.sleep(3)
        await self._ask("POST", f"/api/v1/jobs/{job_id}/cancel")
        record = await self._follow(job_id, CANCEL_SECONDS)
        if record["status"] != "canceled":
            self._world.violate("a cancel is prompt", f"{record['status']} after {CANCEL_SECONDS} s")

    async def _check_strangers(self, record: Any) -> None:
        """Check that another account finds neither job, nor output, nor file."""
        paths = [f"/api/v1/jobs/{record['id']}", f"/api/v1/jobs/{record['id']}/events"]
        paths += [output["url"].partition("?")[0].replace("http://gateway", "") for output in record["outputs"]]
        for path in paths:
            answer = await self._ask("GET", path, by=self._other)
            if answer.status != 404:
                self._world.violate("nothing of an account is visible to another", f"{path}: {answer.status}")
        listed = (await self._ask("GET", "/api/v1/jobs?limit=50", by=self._other)).body
        if record["id"].encode() in listed:
            self._world.violate("nothing of an account is visible to another", "in a list")
        token = record["input"]["file"]["copy_token"]
        body = {"model": "sim_image_to_model", "input": [{"params": {"file": {"file_token": token}}}], "dry_run": True}
        if (await self._ask("POST", "/model/v1/generation", body)).status != 200:
            self._world.violate("a job's copy of a file can be used again", token)
        answer = await self._ask("POST", "/model/v1/generation", body, by=self._other)
        if answer.status == 200:
            self._world.violate("nothing of an account is visible to another", f"{token}: {answer.status}")

    async def _check_repeats(self) -> None:
        """Check that a used Idempotency-Key is refused for another request."""
        answer = await self._submit("calm", latency=0.4)
        if answer.status != 422:
            self._world.violate("an Idempotency-Key stands for one request", f"{answer.status}")

    async def _check_deletion(self, record: Any) -> None:
        path = f"/api/v1/jobs/{record['id']}"
        deleted = await self._ask("DELETE", path)
        shown = await self._ask("GET", path)
        left = [key for key in self._objects.objects if key.startswith(f"assets/{record['id']}/")]
        if (deleted.status, shown.status) != (204, 410) or left:
            self._world.violate("deleted jobs are gone", f"{deleted.status}, {shown.status}, {left}")

    async def _check_hand_over(self, leader: Leader) -> None:
        """Check that another process runs the jobs when the one that did has stopped."""
        until = self._world.now + PATIENCE_SECONDS
        while not leader.has_stopped:
            await asyncio.sleep(0.1)
            if self._world.now > until:
                self._world.violate("a process stops when it is asked to", "after a minute")
                return
        job_id = (await self._submit("inherited", latency=0.3)).json["id"]
        record = await self._follow(job_id, TAKE_OVER_SECONDS)
        if not record["done"]:
            self._world.violate("another process takes over", f"{record['status']} after {TAKE_OVER_SECONDS} s")
