"""Callers of the simulation: they submit, retry, double-click, watch, cancel, delete, leave, and pry."""

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.http_caller import CallFailed, HttpAnswer, HttpCaller
from simulation.world import Chance, World

EXPECTED: Final = frozenset({200, 202, 204, 402, 404, 409, 410, 429, 503})
"""Statuses that a correct request may get. 404 and 410 are checked where they come."""
ACTIONS: Final = (
    ("submit", 0.55),
    ("submit twice", 0.1),
    ("read", 0.12),
    ("wait", 0.05),
    ("cancel", 0.07),
    ("delete", 0.04),
    ("list", 0.03),
    ("pry", 0.04),
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
    ({"ending": "failed"}, 0.02),
    ({"ending": "filtered"}, 0.01),
    ({"ending": "no_output"}, 0.01),
    ({"ending": "corrupt"}, 0.01),
)


@dataclass
class Promise:
    """A request that was accepted, as its caller knows it."""

    key: str
    job_ids: list[str]
    account: str
    asked_to_cancel: bool = False
    asked_to_delete: bool = False


@dataclass
class Caller:
    """One account's application."""

    world: World
    account: str
    key: str
    ports: Callable[[], Sequence[int]]
    others: "list[Caller]" = field(default_factory=list["Caller"])
    webhook: str | None = None
    promises: dict[str, Promise] = field(default_factory=dict[str, Promise])
    """By idempotency key."""
    answered: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Job ids by idempotency key, as first answered."""
    submitted: int = 0

    def __post_init__(self) -> None:
        self._http = HttpCaller(self.world, self.key)
        self._dice = self.world.chance(f"caller {self.account}")
        self._number = 0

    async def live(self, jobs: int, seconds: float) -> None:
        """Act until so many requests are submitted, about evenly over the time."""
        tasks: list[asyncio.Task[None]] = []
        while self.submitted < jobs:
            await asyncio.sleep(self._dice.random() * 2 * seconds / jobs)
            action = self._draw(ACTIONS)
            self._number += 1
            if action.startswith("submit"):
                self.submitted += 1
            if self._allows(action):
                tasks.append(asyncio.create_task(self._with_dice()._act(action, self._number)))
        await asyncio.gather(*tasks)

    def _allows(self, action: str) -> bool:
        name = f"caller {self.account}#{self._number}"
        return self.world.only is None or name in self.world.only or action in ("read", "wait", "list")

    def _with_dice(self) -> "Caller":
        """Return this caller with dice for one action: they do not change if another action is left out."""
        acting = copy.copy(self)
        acting._dice = self.world.chance(f"caller {self.account}#{self._number}")
        return acting

    def _draw(self, kinds: Sequence[tuple[Any, float]]) -> Any:
        thrown = self._dice.random() * sum(weight for _, weight in kinds)
        for kind, weight in kinds:
            thrown -= weight
            if thrown < 0:
                return kind
        return kinds[0][0]

    async def _act(self, action: str, number: int) -> None:
        if action not in ("read", "wait", "list"):
            self.world.note(f"{self.account} {action}", f"caller {self.account}#{number}")
        match action:
            case "submit":
                await self._submit(number, clicks=1)
            case "submit twice":
                await self._submit(number, clicks=2)
            case "cancel" | "delete":
                await self._end(action)
            case "pry":
                await self._pry()
            case "list":
                await self._ask("GET", "/api/v1/jobs?limit=20")
            case _:
                await self._read(wait=action == "wait")

    # -- requests

    async def _ask(self, method: str, path: str, body: Any = None, **headers: str) -> HttpAnswer | None:
        """Return the answer, or None if none came."""
        ports = self.ports()
        if not ports:
            await asyncio.sleep(1)
            return None
        try:
            answer = await self._http.ask(self._dice.choice(ports), method, path, body, headers)
        except CallFailed:
            self.world.counts["calls that failed"] += 1
            return None
        self.world.recorder.add(f"{self.account} {method} {path} {answer.status} {answer.body!r}")
        if answer.status not in EXPECTED:
            self.world.violate("every answer is expected", f"{method} {path}: {answer.status} {answer.body[:400]!r}")
        return answer

    async def _submit(self, number: int, clicks: int) -> None:
        self.world.counts["jobs submitted"] += 1
        key = f"{self.account}-{number}"
        script = {"latency": round(self._dice.uniform(0.2, 2.0), 2), **self._draw(SCRIPTS)}
        is_film = self._dice.random() < 0.7
        model = "sim_text_to_video" if is_film else "sim_image_to_model"
        params: dict[str, Any] = {"script": script} | ({"prompt": key} if is_film else {})
        if not is_film and self._dice.random() < 0.3:
            params["file"] = {"url": f"https://pictures.example.com/{key}.png"}
        body: dict[str, Any] = {
            "model": model,
            "input": [{"params": params}] * (3 if self._dice.random() < 0.05 else 1),
        }
        if self.webhook is not None and self._dice.random() < 0.3:
            body["webhook"] = {
                "url": self.webhook,
                "events": ["job.queued", "job.started", "job.succeeded", "job.failed"],
            }
        await asyncio.gather(*(self._insist(key, body) for _ in range(clicks)))

    async def _insist(self, key: str, body: dict[str, Any]) -> None:
        """Repeat a request until it is answered: the gateway must make one job of all of them."""
        for _ in range(60):
            answer = await self._ask("POST", "/model/v1/generation", body, **{"idempotency-key": key})
            if answer is not None and answer.status == 202:
                self._hear(key, answer.json)
                return
            if answer is not None and answer.status in (402, 429):
                self.world.counts["jobs refused"] += 1
                return
            await asyncio.sleep(self._dice.uniform(0.2, 3.0))

    def _hear(self, key: str, answer: Any) -> None:
        job_ids = [job["id"] for job in answer["jobs"]] if "jobs" in answer else [answer["id"]]
        known = self.answered.setdefault(key, job_ids)
        if known != job_ids and not self.promises[key].asked_to_delete:  # deleting a job forgets its request
            self.world.violate("one request makes one job", f"{key}: {known} and {job_ids}")
        if key not in self.promises:
            self.promises[key] = Promise(key, job_ids, self.account)
            self.world.counts["jobs accepted"] += len(job_ids)

    def _some_job(self, dice: Chance) -> tuple[Promise, str] | None:
        if not self.promises:
            return None
        promise = dice.choice(list(self.promises.values())[-20:])
        return promise, dice.choice(promise.job_ids)

    async def _read(self, *, wait: bool) -> None:
        if (found := self._some_job(self._dice)) is None:
            return
        promise, job_id = found
        answer = await self._ask("GET", f"/api/v1/jobs/{job_id}" + ("?wait=20" if wait else ""))
        if answer is not None and answer.status == 404:
            self.world.violate("an accepted job is never lost", f"{job_id} of {promise.key}")

    async def _end(self, action: str) -> None:
        if (found := self._some_job(self._dice)) is None:
            return
        promise, job_id = found
        if action == "cancel":
            promise.asked_to_cancel = True
            await self._ask("POST", f"/api/v1/jobs/{job_id}/cancel")
        else:
            promise.asked_to_delete = True
            await self._ask("DELETE", f"/api/v1/jobs/{job_id}")

    async def _pry(self) -> None:
        """Ask for another account's job: it must look like one that does not exist."""
        strangers = [other for other in self.others if other.account != self.account and other.promises]
        if not strangers:
            return
        found = self._dice.choice(strangers)._some_job(self._dice)
        if found is None:
            return
        answer = await self._ask("GET", f"/api/v1/jobs/{found[1]}")
        if answer is not None and answer.status not in (404, 429, 503):
            self.world.violate("nothing of an account is visible to another", f"{answer.status} {answer.body[:200]!r}")
