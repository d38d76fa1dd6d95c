"""A chat answer that has begun, as the relay hands it out: a whole body, or a stream to pour."""

from penstock.chat.answer_stream import AnswerStream
from penstock.chat.cache import CachedAnswer, CacheRecorder
from penstock.chat.settlement import Settlement
from penstock.domain.chat import Ask
from penstock.domain.usage import ChatOutcome
from penstock.errors import PenstockError


class Answer:
    """Either `body` or `stream` is set once it has begun. It ends with `close`."""

    __slots__ = ("_is_closed", "ask", "body", "cache_recorder", "settlement", "stream")

    def __init__(self, ask: Ask, settlement: Settlement) -> None:
        self.ask = ask
        self.settlement = settlement
        self.body: bytes | None = None
        self.stream: AnswerStream | None = None
        self.cache_recorder: CacheRecorder | None = None
        self._is_closed = False

    @property
    def is_cached(self) -> bool:
        """Return whether the answer comes from the cache."""
        return self.settlement.outcome is ChatOutcome.CACHED

    def take_cached(self, cached: CachedAnswer) -> None:
        """Answer from the cache: no vendor works for it."""
        self.body = cached.body
        self.settlement.take_cached(cached.vendor)

    def fail(self, error: BaseException) -> None:
        """Close without an answer."""
        if isinstance(error, PenstockError):
            self.settlement.outcome, self.settlement.error = ChatOutcome.FAILED, error
        self.close()

    def close(self) -> None:
        """Release the vendor and settle: exactly once, however the request ended."""
        if self._is_closed:
            return
        self._is_closed = True
        settlement = self.settlement
        if settlement.attempt is not None:
            settlement.attempt.release(settlement.outcome, settlement.error)
        if self.cache_recorder is not None and self.body is not None and settlement.outcome is ChatOutcome.OK:
            self.cache_recorder.add(self.body)
            self.cache_recorder.finish()
        settlement.end(self.body or b"")
