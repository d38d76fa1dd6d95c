"""Waiting for jobs by long polling at the server's pace, and following event streams across reconnects."""

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
from penstock.client.records import Awaited, Event
from penstock.client.transport.retries import Policy, attempt, backoff_seconds, send
from penstock.client.transport.sse import EventLines
from penstock.client.transport.steps import Close, Emit, Flow, Notify, Open, Pause, Read, Request

A = TypeVar("A", bound=Awaited)

JOBS: Final = "/api/v1/jobs"
PIPELINES: Final = "/api/v1/pipelines"
PIPELINE_ENDINGS: Final = frozenset({"pipeline.succeeded", "pipeline.failed", "pipeline.canceled"})
LONGEST_HOLD: Final = 30
USUAL_POLL: Final = 1.0
FIRST_POLL_MS: Final = 500
SEATLESS_POLL: Final = 5.0
"""Minimum seconds between polls without long polling, when no seat is free."""
WAY_SECONDS: Final = 0.5
"""Seconds by which long polling ends before the wait's deadline, for the answer's way back."""
IDLE_TIMEOUT_SECONDS: Final = 45.0
"""Idle timeout of an event stream. The server sends a heartbeat every 15 seconds."""


@dataclass(frozen=True, slots=True)
class Waiting(Generic[A]):
    """Waiting for the jobs or pipelines of one client. `seats` limits the connections used by long polling."""

    bind: Callable[[Any], A]
    policy: Policy
    seats: Semaphore
    path: str = JOBS

    def for_one(self, job: A, timeout: float | None, notify: Callable[[A], object] | None) -> Flow[A]:
        """Return the job once it is done. `notify` gets each record, at the server's polling pace."""
        end = _end(timeout)
        if notify is not None:
            yield Notify(partial(notify, job))
            job = replace(job, poll_after_ms=FIRST_POLL_MS)  # most start at once, and progress should show it
        while not job.done:
            is_last = end <= time.monotonic()
            job = yield from self._look(job, end, hurried=notify is not None)
            if notify is not None:
                yield Notify(partial(notify, job))
            if is_last and not job.done:
                raise WaitTimeout(f"{job.id} is not done after {timeout:g} s. It continues on the server.", job)
        return job

    def for_all(
        self, jobs: Sequence[A], timeout: float | None, notify: Callable[[Sequence[A]], object] | None
    ) -> Flow[tuple[A, ...]]:
        """Return all jobs once they are done. `notify` gets all records after each round."""
        end = _end(timeout)
        latest = {job.id: job for job in jobs}
        while still_open := [job for job in latest.values() if not job.done]:
            if notify is not None:
                yield Notify(partial(notify, tuple(latest.values())))
            is_last = end <= time.monotonic()
            for number, job in enumerate(still_open):
                look = self._ask(job, end) if number else self._look(job, end, hurried=notify is not None)
                latest[job.id] = yield from look
                if is_last and not latest[job.id].done:
                    count = sum(not each.done for each in latest.values())
                    open_jobs = f"{count} of {len(latest)} jobs are"
                    message = f"{open_jobs} not done after {timeout:g} s. They continue on the server."
                    raise WaitTimeout(message, latest[job.id])
        done = tuple(latest.values())
        if notify is not None:
            yield Notify(partial(notify, done))
        return done

    def _look(self, job: A, end: float, *, hurried: bool) -> Flow[A]:
        """Poll once. Return at once if the job is done, else after the polling interval."""
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

    def _ask(self, job: A, end: float, hold: int = 0) -> Flow[A]:
        """Fetch the job. Raise WaitTimeout if the server is unavailable or throttles until the deadline."""
        left = end - time.monotonic()
        held = max(0, int(min(hold, left - WAY_SECONDS)))
        request = Request(
            method="GET",
            path=path_to(self.path, job.id),
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
            raise WaitTimeout(f"{job.id} continues, but the server did not report its state in time.", job) from failure


def _end(timeout: float | None) -> float:
    return math.inf if timeout is None else time.monotonic() + timeout


# -- events


def follow_job(job_id: str, policy: Policy, after: str | None) -> Flow[None]:
    """Emit a job's events until it is done, from the first or after an event id."""
    yield from _follow(path_to(JOBS, job_id, "events"), policy, after, lambda event: bool(event.data.get("done")))


def follow_pipeline(pipeline_id: str, policy: Policy, after: str | None) -> Flow[None]:
    """Emit the events of a pipeline and of its jobs until its end, from the first or after an event id."""
    path = path_to(PIPELINES, pipeline_id, "events")
    yield from _follow(path, policy, after, lambda event: event.type in PIPELINE_ENDINGS)


def follow_account(policy: Policy, after: str | None) -> Flow[None]:
    """Emit the account's events without end, from now or after an event id."""
    yield from _follow("/api/v1/events", policy, after, lambda _event: False)


def _follow(path: str, policy: Policy, after: str | None, is_last: Callable[[Event], bool]) -> Flow[None]:
    last, cuts, first_cut = after, 0, math.inf
    while True:
        headers = {"accept": "text/event-stream"} | ({} if last is None else {"last-event-id": last})
        request = Request(method="GET", path=path, headers=headers, read_seconds=IDLE_TIMEOUT_SECONDS)
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
            raise ConnectionFailed(f"The event stream {path} keeps breaking off.", sent=True)
        yield Pause(max(backoff_seconds(cuts), lines.retry if cuts else 0.0))
        cuts += 1


def _event(data: str) -> Event:
    try:
        return read(Event, json.loads(data))
    except ValueError:
        raise UnexpectedAnswer("An event of the stream is not JSON: is this Penstock's address?") from None
