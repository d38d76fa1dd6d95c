"""Callers of the simulation: they submit, retry, double-click, watch, cancel, delete, leave, and pry."""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.acts.following import follow
from simulation.acts.prying import list_all, pry, use_stolen_file
from simulation.acts.transfers import download, drop, upload
from simulation.http_caller import CallFailed, HttpAnswer, HttpCaller
from simulation.world import Chance, World

RUN_SECONDS: Final = 60.0
"""The run timeout of a job whose vendor never ends."""
EXPECTED: Final = frozenset({200, 201, 202, 204, 206, 402, 404, 409, 410, 429, 503})
"""Statuses that a correct request may get. 404 and 410 are checked where they come."""
ACTIONS: Final = (
    ("submit", 0.5),
    ("submit twice", 0.1),
    ("submit without key", 0.05),
    ("submit and cancel", 0.06),
    ("read", 0.12),
    ("wait", 0.05),
    ("cancel", 0.07),
    ("delete", 0.04),
    ("list", 0.03),
    ("pry", 0.04),
    ("steal", 0.01),
    ("follow", 0.08),
    ("upload", 0.06),
    ("drop", 0.02),
    ("download", 0.06),
    ("leave", 0.02),
)
SCRIPTS: Final[Sequence[tuple[dict[str, Any], float]]] = (
    ({}, 0.5),
    ({"latency": 5}, 0.1),
    ({"latency": 20}, 0.04),
    ({"submission": "reply_lost"}, 0.05),
    ({"submission": "reply_lost", "findable": False}, 0.02),
    ({"submission": "never_arrived", "submission_times": 2}, 0.04),
    ({"submission": "unreachable", "submission_times": 2}, 0.04),
    ({"submission": "busy", "submission_times": 3}, 0.04),
    ({"submission": "rejected"}, 0.02),
    ({"submission": "unauthorized"}, 0.02),
    ({"poll_errors": 3}, 0.04),
    ({"download_errors": 2}, 0.04),
    ({"cancelable": False, "latency": 3}, 0.02),
    ({"ending": "never"}, 0.02),
    ({"ending": "failed"}, 0.02),
    ({"ending": "filtered"}, 0.01),
    ({"ending": "no_output"}, 0.01),
    ({"ending": "corrupt"}, 0.03),
)


@dataclass
class Promise:
    """A request that was accepted, as its caller knows it."""

    key: str
    job_ids: list[str]
    account: str
    has_key: bool = True
    asked_to_cancel: bool = False
    asked_to_delete: bool = False
    deleted_ids: set[str] = field(default_factory=set[str])


@dataclass
class Caller:
    """One account's application."""

    world: World
    account: str
    key: str
    ports: Callable[[], Sequence[int]]
    account_id: str = ""
    others: "list[Caller]" = field(default_factory=list["Caller"])
    webhook: str | None = None
    promises: dict[str, Promise] = field(default_factory=dict[str, Promise])
    """By idempotency key."""
    answered: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Job ids by idempotency key, as first answered."""
    files: list[str] = field(default_factory=list[str])
    """Tokens of uploads that were not deleted."""
    submitted: int = 0

    def __post_init__(self) -> None:
        self.http = HttpCaller(self.world, self.key)
        self.dice = self.world.chance(f"caller {self.account}")
        self._number = 0
        self._preferences: dict[str, dict[str, str]] = {}

    async def live(self, jobs: int, seconds: float) -> None:
        """Act until so many requests are submitted, about evenly over the time."""
        tasks: list[asyncio.Task[None]] = []
        while self.submitted < jobs:
            await asyncio.sleep(self.dice.random() * 2 * seconds / jobs)
            action = self.draw(ACTIONS)
            self._number += 1
            if action.startswith("submit"):
                self.submitted += 1
            if self._allows(action):
                acting = self.acting(f"caller {self.account}#{self._number}")
                tasks.append(asyncio.create_task(acting._act(action, self._number)))
        await asyncio.gather(*tasks)

    def _allows(self, action: str) -> bool:
        name = f"caller {self.account}#{self._number}"
        return self.world.only is None or name in self.world.only or action in ("read", "wait", "list")

    def acting(self, name: str) -> "Caller":
        """Return this caller with dice for one action: they do not change if another action is left out."""
        acting = copy.copy(self)
        acting.dice = self.world.chance(name)
        return acting

    def draw(self, kinds: Sequence[tuple[Any, float]]) -> Any:
        thrown = self.dice.random() * sum(weight for _, weight in kinds)
        for kind, weight in kinds:
            thrown -= weight
            if thrown < 0:
                return kind
        return kinds[0][0]

    async def _act(self, action: str, number: int) -> None:
        if action not in ("read", "wait", "list"):
            self.world.note(f"{self.account} {action}", f"caller {self.account}#{number}")
        match action:
            case "submit" | "submit twice" | "submit without key" | "submit and cancel":
                await self._submit(number, action)
            case "cancel" | "delete":
                await self._end(action)
            case "read" | "wait":
                await self._read(wait=action == "wait")
            case "upload":
                await upload(self, number)
            case _:
                await ACTS[action](self)

    # -- requests

    async def ask(
        self, method: str, path: str, body: Any = None, *, allowed: Sequence[int] = (), **headers: str
    ) -> HttpAnswer | None:
        """Return the answer, or None if none came."""
        ports = self.ports()
        if not ports:
            await asyncio.sleep(1)
            return None
        try:
            answer = await self.http.ask(self.dice.choice(ports), method, path, body, headers)
        except CallFailed:
            self.world.counts["calls that failed"] += 1
            return None
        self.world.recorder.add(f"{self.account} {method} {path} {answer.status} {answer.body!r}")
        if answer.status not in EXPECTED and answer.status not in allowed:
            self.world.violate("every answer is expected", f"{method} {path}: {answer.status} {answer.body[:400]!r}")
        return answer

    async def _submit(self, number: int, action: str) -> None:
        self.world.counts["jobs submitted"] += 1
        key = f"{self.account}-{number}"
        script = {"latency": round(self.dice.uniform(0.2, 2.0), 2), **self.draw(SCRIPTS)}
        is_film = self.dice.random() < 0.7
        model = "sim_text_to_video" if is_film else "sim_image_to_model"
        params: dict[str, Any] = {"script": script} | ({"prompt": key} if is_film else {})
        if not is_film and self.files and self.dice.random() < 0.4:
            params["file"] = {"file_token": self.dice.choice(self.files)}
        elif not is_film and self.dice.random() < 0.3:
            params["file"] = {"url": f"https://pictures.example.com/{key}.png"}
        body: dict[str, Any] = {
            "model": model,
            "input": [{"params": params}] * (3 if self.dice.random() < 0.05 else 1),
        }
        if script.get("ending") == "never":
            body["run_timeout"] = RUN_SECONDS
        if self.webhook is not None and self.dice.random() < 0.3:
            body["webhook"] = {
                "url": self.webhook,
                "events": ["job.queued", "job.started", "job.succeeded", "job.failed"],
            }
        if self.dice.random() < 0.1:
            self._preferences[key] = {"prefer": "wait=5"}
        has_key = action != "submit without key"
        clicks = 2 if action == "submit twice" else 1
        await asyncio.gather(*(self._insist(key, body, has_key=has_key) for _ in range(clicks)))
        if action == "submit and cancel" and key in self.promises:  # a change of mind, while the order is placed
            self.promises[key].asked_to_cancel = True
            await asyncio.sleep(0.3 * self.dice.random())
            await self.ask("POST", f"/api/v1/jobs/{self.promises[key].job_ids[0]}/cancel")

    async def _insist(self, key: str, body: dict[str, Any], *, has_key: bool) -> None:
        """Repeat a request until it is answered: the gateway must make one job of all of them."""
        for tries in range(60):
            mark = {"idempotency-key": key} if has_key else {"x-stainless-retry-count": str(tries)}
            headers = mark | self._preferences.get(key, {})
            answer = await self.ask("POST", "/model/v1/generation", body, **headers)
            if answer is not None and answer.status in (200, 202):
                self._hear(key, answer.json, has_key=has_key)
                return
            if answer is not None and answer.status in (402, 404, 429):  # 404: its file was deleted
                self.world.counts["jobs refused"] += 1
                return
            await asyncio.sleep(self.dice.uniform(0.2, 3.0))

    def _hear(self, key: str, answer: Any, *, has_key: bool) -> None:
        job_ids = [job["id"] for job in answer["jobs"]] if "jobs" in answer else [answer["id"]]
        known = self.answered.setdefault(key, job_ids)
        is_forgotten = self.world.had_jump or (key in self.promises and self.promises[key].asked_to_delete)
        if known != job_ids and not is_forgotten:  # who deletes a job forgets its request
            self.world.violate("one request makes one job", f"{key}: {known} and {job_ids}")
        if key not in self.promises:
            self.promises[key] = Promise(key, job_ids, self.account, has_key)
            self.world.counts["jobs accepted"] += len(job_ids)

    def some_job(self, dice: Chance | None = None) -> tuple[Promise, str] | None:
        if not self.promises:
            return None
        dice = dice or self.dice
        promise = dice.choice(list(self.promises.values())[-20:])
        return promise, dice.choice(promise.job_ids)

    async def _read(self, *, wait: bool) -> None:
        if (found := self.some_job()) is None:
            return
        promise, job_id = found
        is_deleted = job_id in promise.deleted_ids
        answer = await self.ask("GET", f"/api/v1/jobs/{job_id}" + ("?wait=20" if wait else ""))
        if answer is not None and answer.status == 404:
            self.world.violate("an accepted job is never lost", f"{job_id} of {promise.key}")
        if answer is not None and answer.status == 200 and is_deleted:
            self.world.violate("deleted jobs are gone", job_id)

    async def _end(self, action: str) -> None:
        if (found := self.some_job()) is None:
            return
        promise, job_id = found
        if action == "cancel":
            promise.asked_to_cancel = True
            await self.ask("POST", f"/api/v1/jobs/{job_id}/cancel")
        else:
            promise.asked_to_delete = True
            answer = await self.ask("DELETE", f"/api/v1/jobs/{job_id}")
            if answer is not None and answer.status == 204:
                promise.deleted_ids.add(job_id)

    async def leave(self) -> None:
        """Send a request and hang up before its answer: there may or may not be a job."""
        ports = self.ports()
        if ports:
            body = {"model": "sim_text_to_video", "input": [{"params": {"prompt": "never read"}}]}
            with suppress(CallFailed):
                seconds = 0.02 * self.dice.random()
                await self.http.ask(self.dice.choice(ports), "POST", "/model/v1/generation", body, seconds=seconds)


ACTS: Final[dict[str, Callable[[Caller], Awaitable[None]]]] = {
    "pry": pry,
    "steal": use_stolen_file,
    "list": list_all,
    "follow": follow,
    "drop": drop,
    "download": download,
    "leave": Caller.leave,
}
