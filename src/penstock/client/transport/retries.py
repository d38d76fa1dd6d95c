"""Sending a request until it is answered: when to try again, and after how long, as the server says."""

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
"""Where nothing better is said."""
LONGEST_PAUSE: Final = 60.0
"""Whoever is told to wait longer is told of the error instead."""
GRACE_SECONDS: Final = 2.0
"""How much later than the end of all tries the last answer may come."""
NOT_TAKEN: Final = frozenset({408, 409, 429, 503})
"""These say that nothing was done, so that even what must not be done twice may be sent again."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How stubborn to be."""

    retries: float = 4
    patience: float = math.inf
    """Seconds since the first failure in a row."""
    end: float = math.inf
    """The moment of the last try, by the clock that only goes on: who is to wait beyond it is told at once."""
    timeout: float = 60.0
    """Seconds for an answer that is not held on purpose."""


def attempt(step: Send | Open, policy: Policy) -> Flow[Reply]:
    """The answer, once it is a success; else what went wrong is raised."""
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
                raise UnexpectedAnswer(f"The server leads on to {reply.headers.get('location')}: is that its address?")
            asked = told_pause(reply.headers)
            trouble = refusal(reply, asked)
            may = _may_repeat(step.request, reply, trouble) and (asked is None or asked <= LONGEST_PAUSE)
        now = time.monotonic()
        begun = now if begun is None else begun
        left = policy.end - now
        pause = min(guess_pause(number), left) if asked is None else asked
        is_over = left <= 0 or pause > left or now + pause - begun > policy.patience
        if not may or is_over or number >= policy.retries:
            raise trouble
        number += 1
        yield Pause(pause)


def _in_time(step: Send | Open, policy: Policy) -> Send | Open:
    """The step, given up when all tries are to end."""
    if math.isinf(policy.end):
        return step
    left = max(policy.end - time.monotonic(), GRACE_SECONDS)
    usual = policy.timeout if step.request.read_seconds is None else step.request.read_seconds
    return replace(step, request=replace(step.request, read_seconds=min(usual, left)))


def send(request: Request, policy: Policy) -> Flow[Reply]:
    """The whole answer to a request."""
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


def guess_pause(number: int) -> float:
    """Seconds before the next try where nobody says: longer each time, and never the same for all."""
    return min(LONGEST_GUESS, FIRST_PAUSE * 2.0 ** min(number, 10)) * random.uniform(0.5, 1.0)  # noqa: S311  no secret


def told_pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks for: `retry-after-ms`, or `Retry-After` as seconds or a date."""
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
