"""Being there until a job is done: by asking, paced as the server says, and by its events, resumed when cut."""

import json
import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Semaphore
from typing import Any, Final, Generic, TypeVar

from penstock.client.config import path_to
from penstock.client.decoding import decode, read
from penstock.client.errors import ApiError, ConnectionFailed, LimitError, ServerError, UnexpectedAnswer, WaitTimeout
from penstock.client.records import Event, JobRecord
from penstock.client.transport.retries import Policy, attempt, guess_pause, send
from penstock.client.transport.sse import EventLines
from penstock.client.transport.steps import Close, Emit, Flow, Open, Pause, Read, Request, Tell

J = TypeVar("J", bound=JobRecord)

JOBS: Final = "/api/v1/jobs"
LONGEST_HOLD: Final = 30
USUAL_POLL: Final = 1.0
FIRST_POLL_MS: Final = 500
SEATLESS_POLL: Final = 5.0
"""Seconds between two looks at a job whose answers are not held."""
WAY_SECONDS: Final = 0.5
"""How much earlier an answer is let go that is held, so that it comes before the wait's end."""
SILENCE_SECONDS: Final = 45.0
"""A stream has a comment every 15 seconds: what is silent for longer is dead."""


@dataclass(frozen=True, slots=True)
class Waiting(Generic[J]):
    """How one client waits. Seats are the connections that held answers may take: other calls need some, too."""

    bind: Callable[[Any], J]
    policy: Policy
    seats: Semaphore

    def for_one(self, job: J, timeout: float | None, hear: Callable[[J], object] | None) -> Flow[J]:
        """The job once it is done. `hear` is told how it stands, at the pace that the server asks for."""
        end = _end(timeout)
        if hear is not None:
            yield Tell(partial(hear, job))
            job = replace(job, poll_after_ms=FIRST_POLL_MS)  # most begin at once, and that should be seen
        while not job.done:
            is_last = end <= time.monotonic()
            job = yield from self._look(job, end, hurried=hear is not None)
            if hear is not None:
                yield Tell(partial(hear, job))
            if is_last and not job.done:
                raise WaitTimeout(f"{job.id} is not done after {timeout:g} s. It goes on.", job)
        return job

    def for_all(
        self, jobs: Sequence[J], timeout: float | None, hear: Callable[[Sequence[J]], object] | None
    ) -> Flow[tuple[J, ...]]:
        """All of them once they are done. They are looked at in turn; `hear` is told of all."""
        end = _end(timeout)
        standing = {job.id: job for job in jobs}
        while still_open := [job for job in standing.values() if not job.done]:
            if hear is not None:
                yield Tell(partial(hear, tuple(standing.values())))
            is_last = end <= time.monotonic()
            for number, job in enumerate(still_open):
                look = self._ask(job, end) if number else self._look(job, end, hurried=hear is not None)
                standing[job.id] = yield from look
                if is_last and not standing[job.id].done:
                    count = sum(not each.done for each in standing.values())
                    told = f"{count} of {len(standing)} jobs are not done after {timeout:g} s. They go on."
                    raise WaitTimeout(told, standing[job.id])
        done = tuple(standing.values())
        if hear is not None:
            yield Tell(partial(hear, done))
        return done

    def _look(self, job: J, end: float, *, hurried: bool) -> Flow[J]:
        """How it stands after a while: at once when it is done, else when it is time to look again."""
        pace = USUAL_POLL if job.poll_after_ms is None else job.poll_after_ms / 1000
        asked = time.monotonic()
        with self._seat() as seated:
            longest = math.ceil(pace) if hurried else LONGEST_HOLD
            job = yield from self._ask(job, end, longest if seated else 0)
        if not job.done:
            pause = min(pace if seated else max(pace, SEATLESS_POLL), end - asked) - (time.monotonic() - asked)
            yield Pause(max(0.0, pause))
        return job

    @contextmanager
    def _seat(self) -> Generator[bool]:
        seated = self.seats.acquire(blocking=False)
        try:
            yield seated
        finally:
            if seated:
                self.seats.release()

    def _ask(self, job: J, end: float, hold: int = 0) -> Flow[J]:
        """How it stands; a server that says nothing until the wait is over, or wants to be left alone, ends it."""
        left = end - time.monotonic()
        held = max(0, int(min(hold, left - WAY_SECONDS)))
        request = Request(
            method="GET",
            path=path_to(JOBS, job.id),
            query={"wait": held} if held else {},
            read_seconds=held + self.policy.timeout,
        )
        try:
            return self.bind(decode((yield from send(request, replace(self.policy, end=end)))))
        except (ConnectionFailed, LimitError, ServerError) as failure:
            left = end - time.monotonic()
            asked = failure.retry_after if isinstance(failure, ApiError) else None
            if left > (asked or 0.0):
                raise
            yield Pause(max(0.0, left))
            raise WaitTimeout(f"{job.id} goes on, and the server does not tell how it stands.", job) from failure


def _end(timeout: float | None) -> float:
    return math.inf if timeout is None else time.monotonic() + timeout


# -- events


def follow_job(job_id: str, policy: Policy, after: str | None) -> Flow[None]:
    """Emit every event of a job from its first, or after one, until it is done."""
    yield from _follow(path_to(JOBS, job_id, "events"), policy, after, lambda event: bool(event.data.get("done")))


def follow_account(policy: Policy, after: str | None) -> Flow[None]:
    """Emit the account's events from now on, or after one, without an end."""
    yield from _follow("/api/v1/events", policy, after, lambda _event: False)


def _follow(path: str, policy: Policy, after: str | None, is_last: Callable[[Event], bool]) -> Flow[None]:
    last, cuts, first_cut = after, 0, math.inf
    while True:
        headers = {"accept": "text/event-stream"} | ({} if last is None else {"last-event-id": last})
        request = Request(method="GET", path=path, headers=headers, read_seconds=SILENCE_SECONDS)
        reply = yield from attempt(Open(request), policy)
        if reply.status == 204:
            return
        lines = EventLines()
        try:
            while chunk := (yield Read()):
                first_cut = math.inf
                for message in lines.feed(chunk):
                    event = _event(message.data)
                    last, cuts = message.id or event.id, 0
                    yield Emit(event)
                    if is_last(event):
                        yield Close()
                        return
        except ConnectionFailed:
            pass
        first_cut = min(first_cut, time.monotonic())
        if time.monotonic() - first_cut > policy.patience:
            raise ConnectionFailed(f"The stream {path} is cut again and again.", sent=True)
        yield Pause(max(guess_pause(cuts), lines.retry if cuts else 0.0))
        cuts += 1


def _event(data: str) -> Event:
    try:
        return read(Event, json.loads(data))
    except ValueError:
        raise UnexpectedAnswer("An event of the stream is not JSON: is this Penstock's address?") from None
