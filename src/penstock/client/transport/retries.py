"""Retries of requests: whether to repeat one, and after which pause, as the server asks."""

import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from penstock.client.errors import ApiError, ConnectionFailed, UnexpectedAnswer, refusal
from penstock.client.transport.steps import Flow, Open, Pause, Reply, Request, Send

FIRST_PAUSE: Final = 0.25
LONGEST_GUESS: Final = 8.0
WORTH_ANOTHER_TRY: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses worth a retry unless the answer says otherwise."""
LONGEST_PAUSE: Final = 60.0
"""Seconds. If the server asks for a longer pause, the error is raised instead."""
GRACE_SECONDS: Final = 2.0
"""Seconds after `Policy.end` within which the last answer may still arrive."""
NOT_TAKEN: Final = frozenset({408, 409, 429, 503})
"""Statuses of requests that were not processed, so that even a non-idempotent one may be retried."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of retries."""

    retries: float = 4
    patience: float = math.inf
    """Maximum seconds since the first failure in a row."""
    end: float = math.inf
    """Deadline by the monotonic clock. A longer pause than is left raises the error at once."""
    timeout: float = 60.0
    """Seconds for an answer, apart from long polling."""


def attempt(step: Send | Open, policy: Policy) -> Flow[Reply]:
    """Retry a request until it succeeds and return the answer. Raise the last error when the policy gives up."""
    begun: float | None = None
    number = 0
    while True:
        try:
            reply: Reply = yield _in_time(step, policy)
        except ConnectionFailed as failure:
            trouble, asked, may = failure, None, step.request.is_repeatable or not failure.sent
        else:
            if reply.is_success:
                return reply
            if reply.is_redirect:
                raise UnexpectedAnswer(f"The server redirects to {reply.headers.get('location')}: is that its address?")
            asked = requested_pause(reply.headers)
            trouble = refusal(reply, asked)
            may = _may_repeat(step.request, reply, trouble) and (asked is None or asked <= LONGEST_PAUSE)
        now = time.monotonic()
        begun = now if begun is None else begun
        left = policy.end - now
        pause = min(backoff_seconds(number), left) if asked is None else asked
        is_over = left <= 0 or pause > left or now + pause - begun > policy.patience
        if not may or is_over or number >= policy.retries:
            raise trouble
        number += 1
        yield Pause(pause)


def _in_time(step: Send | Open, policy: Policy) -> Send | Open:
    """Return the step with a read timeout that ends at the policy's deadline."""
    if math.isinf(policy.end):
        return step
    left = max(policy.end - time.monotonic(), GRACE_SECONDS)
    usual = policy.timeout if step.request.read_seconds is None else step.request.read_seconds
    return replace(step, request=replace(step.request, read_seconds=min(usual, left)))


def send(request: Request, policy: Policy) -> Flow[Reply]:
    """Send a request with retries and return the whole answer."""
    return (yield from attempt(Send(request), policy))


def _may_repeat(request: Request, reply: Reply, trouble: ApiError) -> bool:
    if not request.is_repeatable and reply.status not in NOT_TAKEN:
        return False
    said = reply.headers.get("x-should-retry")
    if said in ("true", "false"):
        return said == "true"
    if trouble.retryable is not None:
        return trouble.retryable
    return reply.status in WORTH_ANOTHER_TRY


def backoff_seconds(number: int) -> float:
    """Return the seconds before the next retry: exponential backoff with jitter."""
    return min(LONGEST_GUESS, FIRST_PAUSE * 2.0 ** min(number, 10)) * random.uniform(0.5, 1.0)  # noqa: S311  no secret


def requested_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in `retry-after-ms` or `Retry-After`, which may be a date, or None."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        moment = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds()) if moment.tzinfo else None
