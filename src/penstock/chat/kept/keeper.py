"""Prepares requests of the Responses dialect: continues conversations, and has the responses kept."""

from collections.abc import Callable
from typing import NamedTuple

from penstock.chat.kept.background import BackgroundResponses, OpenAnswer
from penstock.chat.kept.keeping import Keeping
from penstock.chat.kept.request import Continued, KeepRequest, continue_conversation, has_references, read_keep_request
from penstock.chat.kept.responses import KeptResponses
from penstock.domain.chat import Ask
from penstock.errors import BodyTooLarge
from penstock.fairness.body_memory import SMALL_BODY_BYTES, BodyMemory, Hold


class KeptAsk(NamedTuple):
    """A request for the relay, and what becomes of its response."""

    ask: Ask
    keeping: Keeping | None = None
    """None: the response goes to the caller and nowhere else."""
    hold: Hold | None = None
    """The memory of the items that were added."""
    background: tuple[Continued, KeepRequest] | None = None
    """Set: the response is to run in the background."""

    def release(self) -> None:
        """Return the memory of the items that were added."""
        if self.hold is not None:
            self.hold.release()


class ResponseKeeper:
    """The one entrance to kept conversations for requests; one per process."""

    def __init__(self, kept: KeptResponses, memory: BodyMemory, clock: Callable[[], float]) -> None:
        self._kept = kept
        self._memory = memory
        self._background = BackgroundResponses(kept, clock)

    async def take(self, account_id: str, ask: Ask) -> KeptAsk:
        """Return a request as the relay is to get it. Raise `InvalidRequest` for wishes that cannot be fulfilled."""
        wanted = read_keep_request(ask, is_on=self._kept.is_on)
        if not self._kept.is_on:
            return KeptAsk(ask)
        if not wanted.store and wanted.previous_id is None and not has_references(ask):
            return KeptAsk(ask)
        continued = await continue_conversation(self._kept, account_id, ask, wanted)
        if wanted.is_explicit or wanted.is_background:
            self._check_size(continued)
        size = continued.ask.size if wanted.is_background else continued.added_bytes
        hold = await self._memory.take(account_id, size) if size > SMALL_BODY_BYTES else None
        background = (continued, wanted) if wanted.is_background else None
        keeping = Keeping(self._kept, account_id, continued.response_id, continued.given, wanted)
        return KeptAsk(continued.ask, keeping, hold, background)

    async def run_in_background(self, account_id: str, kept_ask: KeptAsk, open_answer: OpenAnswer) -> bytes:
        """Begin a response in the background. Return it as it is now: queued."""
        assert kept_ask.background is not None  # noqa: S101  the caller has looked
        continued, wanted = kept_ask.background
        return await self._background.begin(account_id, continued, wanted, open_answer, kept_ask.release)

    def _check_size(self, continued: Continued) -> None:
        """Refuse a request that is too large to be kept before a vendor works for it."""
        quota = self._kept.quota_bytes
        if len(continued.given) > quota:
            raise BodyTooLarge(
                f"The request is too large to be kept: an account keeps at most {quota >> 20} MiB. Send `store: false`."
            )
