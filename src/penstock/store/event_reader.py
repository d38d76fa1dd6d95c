"""What happened to jobs, for many who watch them: one look at the store answers all who asked meanwhile."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from penstock.domain.events import Event
from penstock.store.database import Database
from penstock.store.queries.jobs import event_rows

BATCH: Final = 256
"""So many questions go into one look."""
MOST: Final = 2_000
"""So many events come of it."""


class JobEvents(NamedTuple):
    """A job's events after a position, oldest first."""

    events: Sequence[Event]
    is_all: bool
    """Whether there were no more at that moment."""


_Question: TypeAlias = tuple[str, int]
"""A job, and the position that its events are wanted after."""


class NewsRoom:
    """One per process: a thousand watchers of running jobs would else be a thousand questions at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asked: dict[_Question, asyncio.Future[JobEvents]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def of_job(self, job_id: str, after: int) -> JobEvents:
        """What there is now."""
        question = job_id, after
        answer = self._asked.get(question)
        if answer is None:
            answer = self._asked[question] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(_forgive)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_until_answered(), name="news")
        return await asyncio.shield(answer)  # others may wait for the same

    async def _look_until_answered(self) -> None:
        while self._asked:
            await asyncio.sleep(0)  # whoever was woken by the same ring asks now, too
            asked = {question: self._asked.pop(question) for question in list(self._asked)[:BATCH]}
            try:
                found = await self._database.look(event_rows.of_jobs, list(asked), MOST)
            except Exception as error:  # noqa: BLE001  told to everyone who waits
                for answer in asked.values():
                    answer.set_exception(error)
                continue
            is_all = sum(map(len, found.values())) < MOST
            for question, answer in asked.items():
                answer.set_result(JobEvents(found.get(question, ()), is_all))
        self._looking = None


def _forgive(answer: "asyncio.Future[JobEvents]") -> None:
    """Nobody may be there any more to hear of a failure."""
    if not answer.cancelled():
        answer.exception()
