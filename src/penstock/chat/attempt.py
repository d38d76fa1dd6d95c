"""One route tried for a chat request: its vendor, the incoming reply and the wait for the first byte."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.chat.doors.door import Door
from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.chunks.parts import ChunkTranslation
from penstock.chat.replies.flat_errors import read_error
from penstock.chat.replies.stream import Stream
from penstock.chat.replies.translated import TranslatedStream, render_whole
from penstock.chat.replies.vectors import read_vectors
from penstock.domain.chat import ONE_SHOT, Ask, Dialect, Usage
from penstock.domain.prices import TokenPrice
from penstock.domain.usage import ChatOutcome
from penstock.errors import PenstockError
from penstock.observability import traces
from penstock.offers.route import Route
from penstock.vendor_api.chat import ChatVendor, Translator

if TYPE_CHECKING:
    from penstock.upstream.chat_response import Incoming

Leave: TypeAlias = Callable[[ChatOutcome, PenstockError | None], None]

PEEKED_BYTES: Final = 64
JSON_STARTS: Final = (b"{", b"[")
MAX_PLAIN_BYTES: Final = 1 << 20
"""Bytes kept of a reply that is not an event stream, because it may be the JSON of an error."""


class RouteAttempt:
    """One route tried, from the call until its vendor is released. The relay owns it."""

    __slots__ = (
        "_door",
        "_leave",
        "_request",
        "called_at",
        "first",
        "incoming",
        "left_out",
        "price",
        "route",
        "span",
        "stream",
        "vendor",
    )

    def __init__(
        self,
        ask: Ask,
        door: Door,
        request: Ask,
        route: Route,
        vendor: ChatVendor,
        price: TokenPrice | None,
        leave: Leave,
    ) -> None:
        self._door = door
        self._request = request
        self.route = route
        self.vendor = vendor
        self.price = price
        self.incoming: Incoming | None = None
        self.stream: Stream | None = None
        self.first = b""
        """First bytes for the caller; empty if the vendor began with a comment."""
        self.called_at = 0.0
        self.left_out: tuple[str, ...] = ()
        """Fields of the request that the vendor cannot get."""
        self.span: traces.Span | None = None
        self._leave: Leave | None = leave
        if traces.tracer is not None:
            operation = ask.dialect.value if ask.dialect in ONE_SHOT else "chat"
            self.span = traces.tracer.chat(route.vendor, route.model, ask.model, stream=ask.stream, operation=operation)

    @property
    def characters(self) -> int:
        """Number of characters of the answer so far."""
        return 0 if self.stream is None else self.stream.characters

    @property
    def is_native(self) -> bool:
        """Return whether the vendor speaks the caller's dialect, which is not the common one."""
        return self._request.dialect is not Dialect.CHAT and self._request.dialect not in ONE_SHOT

    def begin_wait(self, now: float) -> None:
        """Measure the vendor's time to the first byte from now on."""
        self.called_at = now

    def read_whole(self, body: bytes, ask: Ask, reply_id: str, created: int) -> tuple[bytes, Usage | None, int]:
        """Return a whole reply for the caller, its usage and its number of characters."""
        if ask.dialect is Dialect.EMBEDDINGS:
            return read_vectors(self.vendor, body, ask)
        if ask.dialect in ONE_SHOT:
            return self._door.pass_whole(body, ask, reply_id, created)
        translator = self._translator(ask, reply_id, created)
        if translator is None:
            return self._door.pass_whole(body, ask, reply_id, created)
        return render_whole(translator.whole(body), ask, self._door.make_writer(ask, reply_id, created))

    def _translator(self, ask: Ask, reply_id: str, created: int) -> Translator | None:
        """Return a translator for the reply; None if it is in the caller's dialect already."""
        translator = self.vendor.translator(self._request)
        if translator is None and self._request.dialect is not ask.dialect:
            return ChunkTranslation(ask, reply_id, created)
        return translator

    async def read_first(self, incoming: "Incoming", ask: Ask, reply_id: str, created: int) -> None:
        """Wait for the first piece of a stream: until it comes, an error can still be an HTTP status."""
        translator = self._translator(ask, reply_id, created)
        stream = self.stream = (
            self._door.pass_stream(ask, reply_id, created)
            if translator is None
            else TranslatedStream(ask, translator, self._door.make_writer(ask, reply_id, created))
        )
        plain = b""  # of a reply that is not an event stream
        while not self.first and not stream.comments:
            data = await incoming.read_some()
            if (plain or data[:PEEKED_BYTES].lstrip()[:1] in JSON_STARTS) and len(plain) < MAX_PLAIN_BYTES:
                plain += data
            self.first = _feed(stream, data)
            if stream.broken is not None and not self.first:
                raise stream.broken
            if not data and not stream.complete:
                if plain and (error := read_error(plain)):
                    raise Broken(error)
                raise Malformed("the stream ended before it began")

    def fail(self, failure: str, outcome: ChatOutcome, error: PenstockError | None) -> None:
        """Release the vendor and end the span: this route gave no answer."""
        self.release(outcome, error)
        if self.span is not None:
            self.span.fail(failure)
            self.span.end()
            self.span = None

    def release(self, outcome: ChatOutcome, error: PenstockError | None) -> None:
        """Close the vendor's reply and free its slot, once."""
        if self.incoming is not None:
            self.incoming.close()
            self.incoming = None
        if self._leave is not None:
            self._leave(outcome, error)
            self._leave = None


def _feed(stream: Stream, data: bytes) -> bytes:
    """Return the caller's bytes for these bytes of the vendor; no bytes mean the end of its stream."""
    if not data:
        return stream.end()
    out = stream.feed(data)
    return out + stream.end() if stream.ended else out
