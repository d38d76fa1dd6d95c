"""Events of jobs for many watchers: one query answers all who asked meanwhile."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from penstock.domain.events import Event
from penstock.store.database import Database
from penstock.store.queries.jobs import event_rows

MAX_QUESTIONS: Final = 256
"""The number of questions answered by one query."""
MAX_EVENTS: Final = 2_000
"""The number of events that one query returns."""


class JobEvents(NamedTuple):
    """A job's events after a position, oldest first."""

    events: Sequence[Event]
    is_all: bool
    """True if there were no more events at that moment."""


_Question: TypeAlias = tuple[str, int]
"""A job, and the position after which its events are wanted."""


class EventReader:
    """Combines the queries of all watchers in this process, of whom there may be thousands."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asked: dict[_Question, asyncio.Future[JobEvents]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def of_job(self, job_id: str, after: int) -> JobEvents:
        """Return the events that a job has after a position."""
        question = job_id, after
        answer = self._asked.get(question)
        if answer is None:
            answer = self._asked[question] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(_forgive)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_until_answered(), name="event reader")
        return await asyncio.shield(answer)  # others may wait for this answer

    async def stop(self) -> None:
        """Cancel the query under way, and all who wait for it: the store is closed next."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for answer in self._asked.values():
            answer.cancel()

    async def _look_until_answered(self) -> None:
        while self._asked:
            await asyncio.sleep(0)  # let watchers woken by this signal ask, too
            asked = {question: self._asked.pop(question) for question in list(self._asked)[:MAX_QUESTIONS]}
            try:
                found = await self._database.look(event_rows.of_jobs, list(asked), MAX_EVENTS)
            except asyncio.CancelledError:
                for answer in asked.values():
                    answer.cancel()
                raise
            except Exception as error:  # noqa: BLE001  raised to every caller
                for answer in asked.values():
                    answer.set_exception(error)
                continue
            is_all = sum(map(len, found.values())) < MAX_EVENTS
            for question, answer in asked.items():
                answer.set_result(JobEvents(found.get(question, ()), is_all))
        self._looking = None


def _forgive(answer: "asyncio.Future[JobEvents]") -> None:
    """Mark a failure as retrieved: its caller may be gone."""
    if not answer.cancelled():
        answer.exception()
