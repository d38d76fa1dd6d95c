"""How long the client waits for jobs, played by a clock and a server that are none: no second passes."""

import json
import math
from collections.abc import Callable
from threading import Semaphore
from typing import Any

import pytest

from penstock.client import ConnectionFailed, LimitError, ServerError, WaitTimeout
from penstock.client.decoding import read
from penstock.client.records import JobRecord
from penstock.client.transport.retries import Policy
from penstock.client.transport.steps import Flow, Notify, Pause, Reply, Request, Send
from penstock.client.waiting import Waiting

OPEN = {"id": "job_1", "status": "running", "done": False, "poll_after_ms": 1000}
WAITING = Waiting(lambda told: read(JobRecord, told), Policy(math.inf, patience=120.0), Semaphore(1))
Say = Callable[[Request, float], tuple[float, Reply | Exception]]


class Play:
    """A clock that goes on by what the flow waits for; `say` tells how long an answer takes, and what it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, say: Say) -> None:
        self.now = 0.0
        self.asked: list[float] = []
        self._say = say
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def run(self, flow: Flow[Any]) -> Any:
        came: Any = None
        trouble: Exception | None = None
        while True:
            try:
                step = flow.throw(trouble) if trouble else flow.send(came)
            except StopIteration as end:
                return end.value
            came, trouble = None, None
            match step:
                case Send(request):
                    self.asked.append(self.now)
                    seconds, said = self._say(request, self.now)
                    self.now += seconds
                    came, trouble = (None, said) if isinstance(said, Exception) else (said, None)
                case Pause(seconds):
                    self.now += seconds
                case Notify(call):
                    call()
                case _:
                    raise AssertionError(step)


def job(job_id: str = "job_1") -> JobRecord:
    return read(JobRecord, OPEN | {"id": job_id})


def done_at(moment: float) -> Say:
    """A server that holds its answer as long as it is asked to, unless the job is done before."""

    def say(request: Request, now: float) -> tuple[float, Reply]:
        seconds = min(float(request.query.get("wait", 0)), max(0.0, moment - now))
        told = OPEN | {"id": request.path.rpartition("/")[2], "done": now + seconds >= moment}
        return seconds + 0.01, Reply(200, {}, json.dumps(told).encode())

    return say


def silent(request: Request, _now: float) -> tuple[float, ConnectionFailed]:
    assert request.read_seconds is not None
    return request.read_seconds, ConnectionFailed("No answer.", sent=True)


def refused(_request: Request, _now: float) -> tuple[float, ConnectionFailed]:
    return 0.0, ConnectionFailed("No connection.", sent=False)


@pytest.mark.parametrize("with_progress", [False, True])
@pytest.mark.parametrize(("timeout", "moment"), [(0.0, 0.0), (0.9, 0.54), (1.9, 1.67), (3.0, 2.99), (31.0, 30.9)])
def test_a_job_that_is_done_in_time_is_never_late(monkeypatch, timeout, moment, with_progress):
    play = Play(monkeypatch, done_at(moment))
    hear = (lambda _told: None) if with_progress else None
    assert play.run(WAITING.for_one(job(), timeout, hear)).done
    assert play.now <= timeout + 0.1
    play = Play(monkeypatch, done_at(moment))
    told = play.run(WAITING.for_all([job("job_1"), job("job_2")], timeout, hear))
    assert [each.done for each in told] == [True, True]


@pytest.mark.parametrize("timeout", [0.0, 0.3, 3.0, 70.0])
@pytest.mark.parametrize("say", [done_at(math.inf), silent, refused])
def test_a_wait_ends_when_it_should_whatever_the_server_does(monkeypatch, timeout, say):
    for flow in (
        WAITING.for_one(job(), timeout, None),
        WAITING.for_one(job(), timeout, lambda _told: None),
        WAITING.for_all([job("job_1"), job("job_2")], timeout, None),
    ):
        play = Play(monkeypatch, say)
        with pytest.raises(WaitTimeout):
            play.run(flow)
        assert timeout <= play.now <= timeout + 2.1  # seconds that the last answer may take


@pytest.mark.parametrize("status", [429, 503])
def test_who_asks_to_be_left_alone_beyond_the_end_is_not_asked_again(monkeypatch, status):
    play = Play(monkeypatch, lambda _request, _now: (0.0, Reply(status, {"retry-after": "10"})))
    with pytest.raises(WaitTimeout):
        play.run(WAITING.for_one(job(), 3.0, None))
    assert (play.asked, play.now) == ([0.0], 3.0)
    play = Play(monkeypatch, lambda _request, _now: (0.0, Reply(status, {"retry-after": "10"})))
    with pytest.raises(WaitTimeout):
        play.run(WAITING.for_one(job(), 35.0, None))
    assert (play.asked, play.now) == ([0.0, 10.0, 20.0, 30.0], 35.0)


@pytest.mark.parametrize(("status", "error"), [(429, LimitError), (503, ServerError)])
@pytest.mark.parametrize("timeout", [None, 3.0])
def test_what_is_no_use_to_wait_for_is_told_at_once(monkeypatch, status, error, timeout):
    play = Play(monkeypatch, lambda _request, _now: (0.0, Reply(status, {"x-should-retry": "false"})))
    with pytest.raises(error):
        play.run(WAITING.for_one(job(), timeout, None))
    assert play.now == 0.0


def test_without_an_end_a_server_that_stays_away_is_told_after_its_patience(monkeypatch):
    play = Play(monkeypatch, refused)
    with pytest.raises(ConnectionFailed):
        play.run(WAITING.for_one(job(), None, None))
    assert 100 < play.now <= 121
