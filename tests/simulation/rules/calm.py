"""A calm end of a world: without faults, a gateway must be prompt, hand over its work, and keep accounts apart."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from simulation.callers import Caller
from simulation.http_caller import HttpAnswer, HttpCaller
from simulation.machine import ObjectStore
from simulation.rules import calm_crowd, calm_deadlines, calm_limits, calm_reuse
from simulation.rules.calm_limits import Administer
from simulation.rules.visitor import PATIENCE_SECONDS, Visitor
from simulation.store import SLOW_SECONDS
from simulation.world import World

START_SECONDS: Final = 1.5
"""Seconds from the acceptance of a job to its start."""
CANCEL_SECONDS: Final = 2.0
"""Seconds from a cancel to the end of the job."""
TAKE_OVER_SECONDS: Final = 10.0
"""Seconds in which a job ends although the process that ran the jobs has just been stopped."""
SETTLE_SECONDS: Final = SLOW_SECONDS[1] + 1.0
"""Seconds after the last fault in which late answers of the store still arrive."""
MORE_PART: Final = 0.5
"""The part of the worlds in which each further promise is checked."""
EVENTS: Final = ["job.queued", "job.started", "job.succeeded"]


class Leader(Protocol):
    """A process that was asked to stop."""

    has_stopped: bool


class Calm:
    """Makes some requests in a world that has healed, and checks their answers and how long they take."""

    def __init__(self, world: World, callers: Sequence[Caller], objects: ObjectStore, administer: Administer) -> None:
        self._world = world
        self._administer = administer
        self._dice = random.Random(f"{world.seed}/calm")
        self._visitor = Visitor(world, callers)
        self._objects = objects

    def run(self, retire_leader: Callable[[], Leader | None]) -> None:
        """Let all of it happen."""
        self._world.run(self._world.now + SETTLE_SECONDS)
        self._world.is_calm = True
        self._world.prompt_since = self._world.wall()
        task = self._world.spawn(self._live(retire_leader))
        self._world.run(self._world.now + 6 * PATIENCE_SECONDS, task.done)
        if not task.done():
            self._world.violate("every call is answered", "in a calm world")
        elif task.exception() is not None:
            raise task.exception()  # type: ignore[misc]  # it has one
        self._world.is_calm = False

    async def _live(self, retire_leader: Callable[[], Leader | None]) -> None:
        await self._check_prompt_cancel()
        await calm_deadlines.check_lost_order(self._visitor)
        await calm_deadlines.check_run_timeout(self._visitor)
        record = await self._check_prompt_job()
        await self._check_strangers(record)
        await self._check_repeats()
        await self._check_deletion(record)
        await self._check_more()
        endless = await calm_deadlines.Endless.begin(self._visitor)
        if (leader := retire_leader()) is not None:
            await self._check_hand_over(leader)
            await endless.check()

    async def _check_more(self) -> None:
        """Check some of the promises whose check takes its time."""
        visitor, administer = self._visitor, self._administer
        checks = (
            lambda: calm_crowd.check_crowd(visitor),
            lambda: calm_limits.check_keys(visitor, administer),
            lambda: calm_limits.check_open_jobs(visitor, administer),
            lambda: calm_limits.check_quota(visitor, administer),
            lambda: calm_limits.check_lists(visitor),
            lambda: calm_limits.check_wait(visitor),
            lambda: calm_reuse.check_reuse(visitor),
        )
        for check in checks:
            if self._dice.random() < MORE_PART:
                await check()

    # -- requests

    async def _ask(self, method: str, path: str, body: Any = None, by: HttpCaller | None = None) -> HttpAnswer:
        return await self._visitor.ask(method, path, body, by)

    async def _submit(self, name: str, **script: Any) -> HttpAnswer:
        webhook = {"url": self._visitor.caller.webhook, "events": EVENTS}
        return await self._visitor.submit(name, more={"webhook": webhook}, **script)

    async def _follow(self, job_id: str, seconds: float = PATIENCE_SECONDS) -> Any:
        return await self._visitor.follow(job_id, seconds)

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
            answer = await self._ask("GET", path, by=self._visitor.other)
            if answer.status != 404:
                self._world.violate("nothing of an account is visible to another", f"{path}: {answer.status}")
        await self._check_refused_deletion(record)
        listed = (await self._ask("GET", "/api/v1/jobs?limit=50", by=self._visitor.other)).body
        if record["id"].encode() in listed:
            self._world.violate("nothing of an account is visible to another", "in a list")
        token = record["input"]["file"]["copy_token"]
        body = {"model": "sim_image_to_model", "input": [{"params": {"file": {"file_token": token}}}], "dry_run": True}
        if (await self._ask("POST", "/model/v1/generation", body)).status != 200:
            self._world.violate("a job's copy of a file can be used again", token)
        answer = await self._ask("POST", "/model/v1/generation", body, by=self._visitor.other)
        if answer.status == 200:
            self._world.violate("nothing of an account is visible to another", f"{token}: {answer.status}")

    async def _check_refused_deletion(self, record: Any) -> None:
        """Check that a deletion that is refused removes nothing."""
        answer = await self._ask("DELETE", f"/api/v1/jobs/{record['id']}", by=self._visitor.other)
        if answer.status != 404:
            self._world.violate("nothing of an account is visible to another", f"deleted: {answer.status}")
        left = [key for key in self._objects.objects if key.startswith(f"assets/{record['id']}/")]
        if len(left) != len(record["outputs"]):
            self._world.violate("a refused deletion removes nothing", f"{record['id']}: {left}")

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
