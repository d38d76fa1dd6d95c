"""Being there until a job is done: by asking, paced as the server says, and by its events, resumed when cut."""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from penstock.client.attempts import Policy, attempt, guess_pause, send
from penstock.client.event_lines import EventLines
from penstock.client.failures import ConnectionFailed, UnexpectedAnswer, WaitTimeout
from penstock.client.job_record import JobRecord
from penstock.client.record_reading import decode, read
from penstock.client.steps import READ_SECONDS, Close, Emit, Flow, Open, Pause, Read, Request
from penstock.client.told_records import Event

J = TypeVar("J", bound=JobRecord)

LONGEST_HOLD: Final = 30
USUAL_POLL: Final = 1.0
FIRST_POLL_MS: Final = 500
SILENCE_SECONDS: Final = 45.0
"""A stream has a comment every 15 seconds: what is silent for longer is dead."""


def job_request(job_id: str, hold: int = 0) -> Request:
    """The record, held back by the server until the job is done or the seconds are over."""
    query = {"wait": hold} if hold else {}
    return Request(method="GET", path=f"/api/v1/jobs/{job_id}", query=query, read_seconds=hold + READ_SECONDS)


def wait_until_done(
    job: J, bind: Callable[[Any], J], policy: Policy, timeout: float | None, hear: Callable[[J], object] | None
) -> Flow[J]:
    """The job once it is done. `hear` is told how it stands, at the pace that the server asks for."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    if hear is not None:
        hear(job)
        job = replace(job, poll_after_ms=FIRST_POLL_MS)  # most begin at once, and that should be seen
    while not job.done:
        left = end - time.monotonic()
        if left <= 0:
            raise WaitTimeout(f"{job.id} is not done after {timeout:g} s. It goes on.", job)
        job = yield from _look(job, bind, policy, left, hurried=hear is not None)
        if hear is not None:
            hear(job)
    return job


def _look(job: J, bind: Callable[[Any], J], policy: Policy, left: float, *, hurried: bool) -> Flow[J]:
    """How it stands after a while: at once when it is done, else when it is time to look again."""
    pace = USUAL_POLL if job.poll_after_ms is None else job.poll_after_ms / 1000
    hold = int(min(max(1, math.ceil(pace)) if hurried else LONGEST_HOLD, left))
    asked = time.monotonic()
    stubborn = replace(policy, retries=math.inf, patience=min(policy.patience, left + READ_SECONDS))
    job = bind(decode((yield from send(job_request(job.id, hold), stubborn))))
    held = time.monotonic() - asked
    if not job.done and held < min(pace, left):
        yield Pause(min(pace, left) - held)
    return job


def wait_for_all(
    jobs: Sequence[J],
    bind: Callable[[Any], J],
    policy: Policy,
    timeout: float | None,
    hear: Callable[[Sequence[J]], object] | None,
) -> Flow[tuple[J, ...]]:
    """All of them once they are done. They are looked at in turn; `hear` is told of all."""
    end = math.inf if timeout is None else time.monotonic() + timeout
    standing = {job.id: job for job in jobs}
    while still_open := [job for job in standing.values() if not job.done]:
        if hear is not None:
            hear(tuple(standing.values()))
        left = end - time.monotonic()
        if left <= 0:
            count = f"{len(still_open)} of {len(standing)} jobs are"
            raise WaitTimeout(f"{count} not done after {timeout:g} s. They go on.", still_open[0])
        first, *others = still_open
        standing[first.id] = yield from _look(first, bind, policy, left, hurried=hear is not None)
        for other in others:
            stubborn = replace(policy, retries=math.inf)
            standing[other.id] = bind(decode((yield from send(job_request(other.id), stubborn))))
    done = tuple(standing.values())
    if hear is not None:
        hear(done)
    return done


# -- events


def follow_job(job_id: str, policy: Policy, after: str | None) -> Flow[None]:
    """Emit every event of a job from its first, or after one, until it is done."""
    yield from _follow(f"/api/v1/jobs/{job_id}/events", policy, after, lambda event: bool(event.data.get("done")))


def follow_account(policy: Policy, after: str | None) -> Flow[None]:
    """Emit the account's events from now on, or after one, without an end."""
    yield from _follow("/api/v1/events", policy, after, lambda _event: False)


def _follow(path: str, policy: Policy, after: str | None, is_last: Callable[[Event], bool]) -> Flow[None]:
    last, cuts, heard_at = after, 0, time.monotonic()
    stubborn = replace(policy, retries=math.inf)
    while True:
        headers = {"accept": "text/event-stream"} | ({} if last is None else {"last-event-id": last})
        request = Request(method="GET", path=path, headers=headers, read_seconds=SILENCE_SECONDS)
        reply = yield from attempt(Open(request), stubborn)
        if reply.status == 204:
            return
        lines, retry = EventLines(), guess_pause(cuts)
        try:
            while chunk := (yield Read()):
                heard_at = time.monotonic()
                for message in lines.feed(chunk):
                    event = _event(message.data)
                    last, cuts = message.id or event.id, 0
                    yield Emit(event)
                    if is_last(event):
                        yield Close()
                        return
        except ConnectionFailed:
            pass
        if time.monotonic() - heard_at > policy.patience:
            raise ConnectionFailed(f"The stream {path} is cut again and again.", sent=True)
        cuts += 1
        yield Pause(retry)


def _event(data: str) -> Event:
    try:
        return read(Event, json.loads(data))
    except ValueError:
        raise UnexpectedAnswer("An event of the stream is not JSON: is this Penstock's address?") from None
