"""A chat answer that has begun, as the relay hands it out: a whole body, or a stream to pour."""

from msgspec import structs

from penstock.chat.answer_stream import AnswerStream
from penstock.chat.cache import CachedAnswer, CacheRecorder
from penstock.chat.doors.door import Door
from penstock.chat.recorder import ContentCapture
from penstock.chat.replies.sound import sound_type
from penstock.chat.replies.transcripts import transcript_type
from penstock.chat.settlement import Settlement
from penstock.domain.chat import Ask, Dialect
from penstock.domain.usage import ChatOutcome
from penstock.errors import PenstockError


class Answer:
    """Either `body` or `stream` is set once it has begun. It ends with `close`."""

    __slots__ = ("_in_chat", "_is_closed", "ask", "body", "cache_recorder", "capture", "door", "settlement", "stream")

    def __init__(self, ask: Ask, door: Door, settlement: Settlement) -> None:
        self.ask = ask
        self.door = door
        self.settlement = settlement
        self.body: bytes | None = None
        self.stream: AnswerStream | None = None
        self.cache_recorder: CacheRecorder | None = None
        self.capture: ContentCapture | None = None
        """Set: its content is logged."""
        self._in_chat: Ask | None = None
        self._is_closed = False

    @property
    def is_cached(self) -> bool:
        """Return whether the answer comes from the cache."""
        return self.settlement.outcome is ChatOutcome.CACHED

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return the fields of the request that the vendor did not get."""
        attempt = self.settlement.attempt
        return () if attempt is None else attempt.left_out

    @property
    def content_type(self) -> bytes:
        """Return the content type of the whole body."""
        match self.ask.dialect:
            case Dialect.SPEECH:
                return sound_type(self.ask, self.body or b"")
            case Dialect.TRANSCRIPTIONS:
                return transcript_type(self.ask)
            case _:
                return b"application/json"

    def ask_for(self, dialect: Dialect) -> Ask:
        """Return the request for a vendor of this dialect: as it came, or translated into the chat dialect, once."""
        if self.ask.dialect in (dialect, Dialect.CHAT):
            return self.ask
        if self._in_chat is None:
            self._in_chat = structs.replace(self.door.to_chat(self.ask), is_translated=True)
        return self._in_chat

    def forget_messages(self) -> None:
        """Free the memory of a large body once a vendor answers."""
        self.ask.forget_messages()
        self._in_chat = None

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
        if self.capture is not None and settlement.record is not None:
            self.capture.hand_over(self, settlement.record)
