"""One chat answer on its way to the caller: what is sent, how long the vendor may be silent, what it used."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from penstock.billing.admission import Ticket
from penstock.billing.usage_writer import UsageWriter
from penstock.chat.answer_lengths import Lengths
from penstock.chat.cache import CachedAnswer, Keeper
from penstock.chat.faults import tell_fault
from penstock.chat.replies.flat_errors import read_error
from penstock.chat.replies.passthrough import Broken, Malformed, PassedStream
from penstock.chat.replies.sse import COMMENT, EventTooLarge
from penstock.chat.replies.stream import ResponseWriter, Stream
from penstock.chat.replies.translated import RenderedStream
from penstock.chat.timers import IdleTimer
from penstock.chat.token_bounds import BYTES_PER_CHARACTER, borne_out, bound_claim
from penstock.domain.api_keys import ApiKey
from penstock.domain.chat import Ask, Usage, estimate
from penstock.domain.prices import TokenPrice
from penstock.domain.usage import Begun, ChatOutcome, Completion
from penstock.errors import PenstockError, VendorFailed, VendorTimeout
from penstock.observability import metrics, traces
from penstock.offers.offer import ChatOffer, Route
from penstock.upstream.redaction import Redactor
from penstock.vendor_api.chat import ChatVendor
from penstock.vendor_api.generation import ReplyLost

if TYPE_CHECKING:
    from penstock.upstream.chat_response import Incoming

Leave: TypeAlias = Callable[[ChatOutcome, PenstockError | None], None]

PEEK = 64
OBJECTS = (b"{", b"[")
MAX_PLAIN = 1 << 20
"""Bytes that are kept of a reply that is no stream: it may be the JSON of an error."""
LINGER_SECONDS = 0.5
"""How long the end of a finished reply is waited for, so that its connection can be used again."""
LINGER_BYTES = 64 << 10
"""Bytes that may come until then; a vendor that goes on is not listened to."""


log = logging.getLogger(__name__)


class Interrupted(Exception):
    """The vendor's reply ended without its end; `error` is what the caller is told."""

    def __init__(self, error: PenstockError, *, was_told: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.was_told = was_told
        """The vendor itself told of the error; otherwise its reply just broke off."""


class Answer:
    """Opened by the relay; `body` holds a whole answer, else `pour` sends it as it comes. Ends with `close`."""

    vendor: ChatVendor
    route: Route | None = None
    incoming: "Incoming | None" = None
    stream: Stream | None = None
    body: bytes | None = None
    waited = 0.0
    """How long the vendor took to begin, or for a whole answer to end: the rest is ours."""
    ticket: Ticket | None = None
    held: int | None = None
    """Money that was held for it, in 10⁻⁹ USD; None where no budget bears on it."""
    keeper: Keeper | None = None
    _first_byte: float | None = None
    _waiting_since = 0.0
    _worked = False
    _usage: Usage | None = None
    _outcome = ChatOutcome.CANCELED
    _code = ""
    _leave: Leave | None = None
    _error: PenstockError | None = None
    _closed = False
    _settled = False
    _is_capped = False
    _price: TokenPrice | None = None
    _cost: int | None = None
    _first = b""
    _cached_vendor = ""
    _heartbeat = 0.0
    _span: traces.Span | None = None

    def __init__(
        self,
        ask: Ask,
        offer: ChatOffer,
        key: ApiKey,
        request_id: str,
        created_at: float,
        usage_writer: UsageWriter,
        lengths: Lengths,
        redactor: Redactor,
    ) -> None:
        self.ask = ask
        self._id = usage_writer.new_id()
        self.created_at = created_at
        self._offer = offer
        self._key = key
        self._request_id = request_id
        self._usage_writer = usage_writer
        self._lengths = lengths
        self._redactor = redactor
        self._began = time.perf_counter()

    @property
    def reply_id(self) -> str:
        """For a reply without an id of its own."""
        return f"chatcmpl-{self._request_id}"

    @property
    def account_id(self) -> str:
        """Whose request it is."""
        return self._key.account_id

    @property
    def has_alternatives(self) -> bool:
        """Whether the model has more than one route."""
        return len(self._offer.routes) > 1

    # -- before the first byte

    def take_route(self, route: Route, vendor: ChatVendor, leave: Leave) -> None:
        """This vendor is tried now; `leave` is called when it is let go."""
        self.route, self.vendor, self._leave = route, vendor, leave
        self._price = self._offer.price_of(route.vendor, self.created_at)
        self.incoming = self.stream = None
        if traces.tracer is not None:
            self._span = traces.tracer.chat(route.vendor, route.model, self.ask.model, stream=self.ask.stream)

    def begin_waiting(self) -> None:
        """The call goes out: from here on the vendor may have worked, unless it says otherwise."""
        self._usage_writer.begin(self._write_down(), self)
        self._worked = True
        self._waiting_since = time.perf_counter()

    def _write_down(self) -> Begun:
        """What to charge if this process dies before the answer is over."""
        assert self.route is not None  # noqa: S101  taken before anyone is called
        key, ask, route = self._key, self.ask, self.route
        price = self._price
        return Begun(
            id=self._id,
            request_id=self._request_id,
            account_id=key.account_id,
            key_id=key.public_id,
            lineage=key.lineage,
            model=ask.model,
            vendor=route.vendor,
            upstream_model=route.model,
            streamed=ask.stream,
            created_at=self.created_at,
            prompt=ask.prompt,
            input_per_million=None if price is None else price.input_per_million,
            output_per_million=0 if price is None else price.output_per_million,
            per_request=0 if price is None else price.per_request,
        )

    @property
    def characters(self) -> int:
        """How much of the answer there is."""
        return 0 if self.stream is None else self.stream.characters

    def refused(self) -> None:
        """The vendor did nothing: it said so, or it was never reached."""
        self._worked = False

    def end_waiting(self) -> None:
        """The vendor has begun."""
        now = time.perf_counter()
        self.waited += now - self._waiting_since
        self._first_byte = now - self._began

    def take_whole(self, body: bytes, usage: Usage | None, characters: int) -> None:
        """The whole answer is here."""
        self.body = body
        self._usage = usage or estimate(self.ask, characters)
        self._outcome = ChatOutcome.OK

    @property
    def vendor_name(self) -> str:
        """Who answers, or did when the answer was kept; empty before a route is taken."""
        return self.route.vendor if self.route is not None else self._cached_vendor

    def take_cached(self, cached: CachedAnswer) -> None:
        """The answer was given before: nobody works for it."""
        self.body, self._cached_vendor = cached.body, cached.vendor
        self._usage = Usage()
        self._outcome = ChatOutcome.CACHED

    @property
    def is_cached(self) -> bool:
        """Whether the answer comes from the cache."""
        return self._outcome is ChatOutcome.CACHED

    async def hear_first(self, heartbeat_seconds: float) -> None:
        """Wait for the first thing to pass on: an error until then can still be an HTTP status."""
        assert self.incoming is not None  # noqa: S101  set when the head came
        self._heartbeat = heartbeat_seconds
        translator = self.vendor.translator(self.ask)
        created = int(self.created_at)
        stream = self.stream = (
            PassedStream(self.ask, self.reply_id, created)
            if translator is None
            else RenderedStream(self.ask, translator, self.reply_id, created)
        )
        plain = b""  # of a reply that is no stream of events
        while not self._first and not stream.comments:
            data = await self.incoming.read_some()
            if (plain or data[:PEEK].lstrip()[:1] in OBJECTS) and len(plain) < MAX_PLAIN:
                plain += data
            self._first = _feed(stream, data)
            if stream.broken is not None and not self._first:
                raise stream.broken
            if not data and not stream.complete:
                if plain and (error := read_error(plain)):
                    raise Broken(error)
                raise Malformed("the stream ended before it began")
        self.end_waiting()

    def fail(self, error: BaseException) -> None:
        """There will be no answer."""
        if isinstance(error, PenstockError):
            self._outcome, self._code = ChatOutcome.FAILED, error.code
        self.close()

    # -- the stream

    async def pour(self, outlet: ResponseWriter) -> None:
        """Send the answer as it comes, with comments in silences. Ends with `Interrupted` if cut."""
        stream, incoming = self.stream, self.incoming
        assert stream is not None  # noqa: S101  both were heard of before
        assert incoming is not None  # noqa: S101
        idle_timer = self._watch(incoming, outlet)
        try:
            if self._first:
                self._pass(self._first, stream, outlet)
            else:
                outlet.write(COMMENT)
            while not (stream.ended or stream.broken or incoming.is_over):
                if outlet.is_full:
                    idle_timer.waiting_since = None
                    await outlet.drain()
                idle_timer.begin_wait()
                await incoming.pour(partial(self._take, stream, outlet, idle_timer))
            if not (stream.ended or stream.broken):
                self._pass(_feed(stream, b""), stream, outlet, is_over=True)
        except EventTooLarge as error:
            raise self._interrupt(VendorFailed(f"The vendor's reply broke off: {error}.")) from error
        except ReplyLost as error:
            raise self._interrupt(_explain_cut(idle_timer)) from error
        finally:
            idle_timer.stop()
        self._conclude(stream)

    def _take(self, stream: Stream, outlet: ResponseWriter, idle_timer: IdleTimer, data: bytes) -> bool:
        """Some of the vendor's reply, as it comes; whether more is wanted."""
        quick = stream.quick
        if quick is not None and self.keeper is None and (out := quick(data)) is not None:
            idle_timer.waiting_since = idle_timer.sent_at = idle_timer.now()
            return outlet.write(out)  # as nearly always
        out = stream.feed(data)
        (idle_timer.record_output if out else idle_timer.begin_wait)()
        if stream.ended or stream.broken is not None or self.keeper is not None:
            self._pass(out + stream.end() if stream.ended else out, stream, outlet)
            return not (stream.ended or outlet.is_full or stream.broken)
        return outlet.write(out)

    def _conclude(self, stream: Stream) -> None:
        """Nothing more comes; see whether that was all."""
        if isinstance(stream.broken, Malformed):
            raise self._interrupt(VendorFailed(f"The vendor's reply broke off: {stream.broken}."))
        if stream.broken is not None:
            error = tell_fault(stream.broken.fault(self.vendor.fault), self._redactor)
            raise self._interrupt(error, was_told=True)
        if not stream.complete:
            raise self._interrupt(VendorFailed("The vendor's reply broke off."))
        self._outcome = ChatOutcome.OK
        self.settle()
        if self.keeper is not None:
            self.keeper.finish()

    def _pass(self, piece: bytes, stream: Stream, outlet: ResponseWriter, *, is_over: bool = False) -> None:
        """Send a piece; before the last one, what was delivered is charged, whatever happens then."""
        if (is_over or stream.ended) and stream.complete and stream.broken is None:
            self._outcome = ChatOutcome.OK
            self.settle()
        if self.keeper is not None:
            self.keeper.add(piece)
        outlet.write(piece)

    def _watch(self, incoming: "Incoming", outlet: ResponseWriter) -> IdleTimer:
        options, left = self.vendor.options, self.vendor.options.total_seconds - (time.perf_counter() - self._began)
        beat = partial(_beat, outlet)
        return IdleTimer(
            incoming.close,
            beat,
            idle_seconds=options.idle_seconds,
            total_seconds=left,
            heartbeat_seconds=self._heartbeat,
        )

    def _interrupt(self, error: PenstockError, *, was_told: bool = False) -> Interrupted:
        self._outcome, self._code, self._error = ChatOutcome.CUT, error.code, error
        return Interrupted(error, was_told=was_told)

    # -- the end

    async def linger(self) -> None:
        """After a whole answer: let the vendor end its side, so that the connection is kept."""
        if self._outcome is ChatOutcome.OK and self.incoming is not None and not self.incoming.is_whole:
            try:
                async with asyncio.timeout(LINGER_SECONDS):
                    left = LINGER_BYTES
                    while left > 0 and (more := await self.incoming.read_some()):
                        left -= len(more)
            except (ReplyLost, TimeoutError):
                pass

    def hang_up(self, failure: str | None = None) -> None:
        """Let go of the vendor, which may have failed before it answered."""
        if self.incoming is not None:
            self.incoming.close()
            self.incoming = None
        if self._leave is not None:
            self._leave(self._outcome, self._error)
            self._leave = None
        if failure is not None and self._span is not None:
            self._span.fail(failure)
            self._span.end()
            self._span = None

    def close(self) -> None:
        """Let go of the vendor and record what was used: exactly once, however the request ended."""
        if self._closed:
            return
        self._closed = True
        self.hang_up()
        if self.stream is not None and self.stream.malformed and self.route is not None:
            metrics.CHAT_MALFORMED.labels(self.route.vendor).inc(self.stream.malformed)
        if self.keeper is not None and self.body is not None and self._outcome is ChatOutcome.OK:
            self.keeper.add(self.body)
            self.keeper.finish()
        self.settle()
        if self._span is not None:
            self._end_span(self._span)

    def _end_span(self, span: traces.Span) -> None:
        """The vendor has answered, wholly or not."""
        traces.tell_usage(span, self._count())
        if self.stream is None:
            traces.tell_reply(span, self.body or b"")
        else:
            traces.tell_stream(span, self._first, self.stream.finished, self.waited)
        if self._outcome is not ChatOutcome.OK:
            span.fail(self._code or self._outcome)
        span.end()

    def settle(self) -> int | None:
        """Charge and record what was used: once, and for a whole answer before it is sent. What it cost, if known."""
        if self._settled:
            return self._cost
        self._settled = True
        claim = self._claim()
        usage = bound_claim(claim, self.ask, self._seen())
        cost = self._cost = self._cost_of(usage)
        if usage is not claim or self._is_capped:
            self._report_cut(claim, usage)
        if self.ticket is not None:
            self.ticket.settle(cost or 0, usage.prompt + usage.completion)
        if self._outcome is ChatOutcome.OK:
            self._lengths.add(self._key.account_id, self.ask.model, usage.completion)
        self._usage_writer.add(
            Completion(
                id=self._id,
                request_id=self._request_id,
                account_id=self._key.account_id,
                key_id=self._key.public_id,
                lineage=self._key.lineage,
                model=self.ask.model,
                vendor=self.vendor_name,
                upstream_model="" if self.route is None else self.route.model,
                streamed=self.ask.stream,
                outcome=self._outcome,
                code=self._code,
                usage=usage,
                cost=cost,
                created_at=self.created_at,
                seconds=time.perf_counter() - self._began,
                first_byte_seconds=self._first_byte,
            )
        )
        return cost

    def _count(self) -> Usage:
        """Return what was used, as far as a vendor's claim can be true."""
        return bound_claim(self._claim(), self.ask, self._seen())

    def _seen(self) -> int:
        """Return how many bytes of the answer were seen, at most."""
        if self.stream is None:
            return len(self.body or b"")
        return self.stream.characters * BYTES_PER_CHARACTER

    def _claim(self) -> Usage:
        if self._usage is not None:
            return self._usage
        if not self._worked:
            return Usage()
        if self.stream is None:
            return estimate(self.ask, 0)
        if self._outcome is ChatOutcome.OK and self.stream.usage is not None:
            return self.stream.usage
        return estimate(self.ask, self.stream.characters, self.stream.usage)

    def _cost_of(self, usage: Usage) -> int | None:
        """What so much costs at the vendor that gives it; None where that one's price is not known."""
        if not self._worked or self.route is None:
            return 0  # nobody has done anything, or it was kept from before
        if self._price is None:
            return None
        cost = self._price.of(usage)
        if self.held is None or cost <= self.held:
            return cost
        # Only what was sent and seen may cost more than what was held: a claim alone does not.
        most = max(self.held, self._price.of(borne_out(usage, self.ask, self._seen())))
        self._is_capped = cost > most
        return min(cost, most)

    def _report_cut(self, claim: Usage, usage: Usage) -> None:
        """Report a claim that cannot be true, or that was charged only up to what was held."""
        metrics.CHAT_CLAIMS_CUT.labels(self.vendor_name).inc()
        claimed = {"prompt": claim.prompt, "completion": claim.completion}
        counted = {"prompt": usage.prompt, "completion": usage.completion, "cost": self._cost, "held": self.held}
        fields = {"vendor": self.vendor_name, "model": self.ask.model, "claimed": claimed, "counted": counted}
        log.warning("vendor claimed more tokens than can be true; the claim was cut", extra={"fields": fields})


def _explain_cut(idle_timer: IdleTimer) -> PenstockError:
    if idle_timer.expiry:
        return VendorTimeout(f"The vendor's reply broke off: {idle_timer.expiry}.")
    return VendorFailed("The vendor's reply broke off.")


def _beat(outlet: ResponseWriter) -> None:
    """Keep the caller's connection warm; one that reads nothing needs no more to read."""
    if not outlet.is_full:
        outlet.write(COMMENT)


def _feed(stream: Stream, data: bytes) -> bytes:
    """What the caller gets of these bytes; nothing is the end."""
    if not data:
        return stream.end()
    out = stream.feed(data)
    return out + stream.end() if stream.ended else out
