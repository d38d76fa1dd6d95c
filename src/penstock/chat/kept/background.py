"""Runs responses in the background: through the relay like any other, and kept under an id of their own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from penstock.chat.answer import Answer
from penstock.chat.doors.responses.errors import describe_failure
from penstock.chat.doors.responses.response import ResponseHead
from penstock.chat.kept.request import Continued, KeepRequest
from penstock.chat.kept.responses import KeptResponses
from penstock.domain.kept.responses import LEASE_SECONDS, KeptResponse
from penstock.errors import (
    BodyTooLarge,
    InternalError,
    Overloaded,
    PenstockError,
    StoreUnavailable,
)

MAX_RUNS: Final = 500
"""Background responses that one process runs at a time."""
RETRY_SECONDS: Final = 1.0
OpenAnswer: TypeAlias = Callable[[], Awaitable[Answer]]
Write: TypeAlias = Callable[[], Awaitable[bool]]

log = logging.getLogger(__name__)


class BackgroundResponses:
    """The responses that this process runs in the background."""

    def __init__(self, kept: KeptResponses, clock: Callable[[], float]) -> None:
        self._kept = kept
        self._clock = clock
        self._runs = 0

    async def begin(
        self,
        account_id: str,
        continued: Continued,
        wanted: KeepRequest,
        open_answer: OpenAnswer,
        on_end: Callable[[], None] = lambda: None,
    ) -> bytes:
        """Begin a response. Return it as it is now: queued. `on_end` is called however it ends."""
        try:
            self._check_room()
            head = ResponseHead(continued.ask, continued.ask.reply_id, int(self._clock()))
            queued = {**head.write("queued", []), **wanted.describe()}
            kept = await self._kept.begin_background(account_id, queued, continued.given, wanted.previous_id)
        except BaseException:
            on_end()
            raise
        task = asyncio.create_task(self._run(kept, wanted, open_answer), name=kept.id)
        self._runs += 1
        task.add_done_callback(self._leave)
        task.add_done_callback(lambda _: on_end())
        self._kept.run(kept, task)
        return kept.body

    def _check_room(self) -> None:
        if self._runs >= MAX_RUNS:
            raise Overloaded("Too many responses run in the background.", retry_after=5)

    def _leave(self, task: asyncio.Task[None]) -> None:
        self._runs -= 1
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background response could not be kept", exc_info=error)

    async def _run(self, kept: KeptResponse, wanted: KeepRequest, open_answer: OpenAnswer) -> None:
        """Run one response. If it is canceled or deleted, the vendor is left at once."""
        if not await _insist(lambda: self._kept.start(kept)):
            return
        end = await self._end(kept, wanted, open_answer)
        try:
            await _insist(end)
        except BodyTooLarge as error:
            failure = describe_failure(error)
            await _insist(lambda: self._kept.fail(kept, failure))

    async def _end(self, kept: KeptResponse, wanted: KeepRequest, open_answer: OpenAnswer) -> Write:
        """Wait for the answer. Return the write that records it, or its failure."""
        try:
            response = await _answer(open_answer)
        except PenstockError as error:
            failure = describe_failure(error)
        except Exception:
            log.exception("a background response failed")
            failure = describe_failure(InternalError())
        else:
            shown = {**response, **wanted.describe(), "id": kept.id}
            return lambda: self._kept.finish(kept, shown)
        return lambda: self._kept.fail(kept, failure)


async def _answer(open_answer: OpenAnswer) -> dict[str, msgspec.Raw]:
    answer = await open_answer()
    try:
        answer.settlement.settle()
        return msgspec.json.decode(answer.body or b"", type=dict[str, msgspec.Raw])
    finally:
        answer.close()


async def _insist(write: Write) -> bool:
    """Repeat a write while the store is away, for as long as others leave the response to this process."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + LEASE_SECONDS
    while True:
        try:
            return await write()
        except StoreUnavailable:
            if loop.time() >= give_up_at:
                raise
        await asyncio.sleep(RETRY_SECONDS)
