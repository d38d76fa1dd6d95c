"""Chat: finds a vendor that answers, holds the reply until its first byte, and records what was used."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.billing.admission import Admission, Ticket
from penstock.billing.usage_writer import UsageWriter
from penstock.chat.answer_lengths import Lengths
from penstock.chat.cache import CachedAnswer, ChatCache, Keeper, place_of
from penstock.chat.faults import tell_fault
from penstock.chat.replies.passthrough import Broken, Malformed, pass_whole
from penstock.chat.replies.sse import EventTooLarge
from penstock.chat.replies.translated import render_whole
from penstock.chat.route_health import Probe, RouteHealth, Routes
from penstock.chat.settlement import Answer, Leave
from penstock.chat.timers import Deadline
from penstock.domain.api_keys import ApiKey
from penstock.domain.chat import Ask, Blame, Fault, Usage
from penstock.domain.usage import ChatOutcome
from penstock.errors import (
    ChatRateLimited,
    InsufficientBudget,
    InvalidRequest,
    PenstockError,
    QueueFull,
    RateLimited,
    VendorAnswerLost,
    VendorFailed,
    VendorTimeout,
)
from penstock.observability import metrics
from penstock.offers.offer import ChatOffer, Offers, Route, refuse_unpriced
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.chat import ChatVendor
from penstock.vendor_api.generation import Call, NotSent, NotStarted, Reply, ReplyLost

if TYPE_CHECKING:
    from penstock.upstream.chat_response import Incoming

BIG = 1 << 18
"""Bodies beyond this are worked on in a thread: everyone else on the event loop would feel it."""
MAX_REPLY_BYTES = 128 << 20

log = logging.getLogger(__name__)


class TryNextRoute(Exception):
    """This route did not answer and provably did not work for it: another may be tried."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """What the operator set."""

    heartbeat_seconds: float
    cache_bytes: int
    cache_seconds: float


class Relay:
    """One per process."""

    def __init__(
        self,
        offers: Callable[[], Offers],
        exchange: Exchange,
        usage_writer: UsageWriter,
        admission: Admission,
        manner: Callable[[], ChatPolicy],
        clock: Callable[[], float],
    ) -> None:
        self._offers = offers
        self._exchange = exchange
        self._usage_writer = usage_writer
        self._manner = manner
        self._clock = clock
        self._busy: dict[str, int] = {}
        self._admission = admission
        self._lengths = Lengths()
        self._cache = ChatCache()
        self.routes = Routes()

    async def open(self, ask: Ask, offer: ChatOffer, key: ApiKey, request_id: str) -> Answer:
        """An answer that has begun; whatever becomes of it, `Answer.close` must be called once it is over."""
        self._usage_writer.check()
        offers = self._offers()
        now = self._clock()
        answer = Answer(ask, offer, key, request_id, now, self._usage_writer, self._lengths, offers.redactor)
        try:
            if key.is_limited:
                answer.ticket = await self._admit(ask, key)
            if not (self._manner().cache_bytes and self._find_cached(answer, key)):
                if key.budgets:
                    await self._hold(answer, offer, key)
                await self._try_routes(answer, offer, offers.chat_vendors)
        except BaseException as error:
            answer.fail(error)
            raise
        return answer

    async def _admit(self, ask: Ask, key: ApiKey) -> Ticket:
        """Let the request in as far as its limits go."""
        says = self._lengths.longest(key.account_id, ask.model)
        if ask.max_tokens is not None and (says is None or says > ask.max_tokens):
            says = ask.max_tokens
        admission, prompt, stream = self._admission, ask.prompt, ask.stream
        try:
            ticket = admission.try_admit(key, prompt, says or 0, stream=stream)
            return ticket or await admission.admit(key, prompt, says or 0, stream=stream)
        except RateLimited as error:
            raise _in_words_of_chat(error) from None

    async def _hold(self, answer: Answer, offer: ChatOffer, key: ApiKey) -> None:
        """Hold what the answer may cost: all that it may say, or what such answers usually do."""
        ask, price = answer.ask, offer.ceiling_price(answer.created_at)
        if price is None:
            raise refuse_unpriced(ask.model)
        says = self._lengths.likely(key.account_id, ask.model) if ask.max_tokens is None else ask.max_tokens
        most = Usage(ask.prompt * 4 // 3 + 16, says * (ask.field("n") if "n" in ask.fields else 1))
        assert answer.ticket is not None  # noqa: S101  whoever has a budget is admitted first
        cost = price.of(most)
        try:
            if not self._admission.try_hold(answer.ticket, key, cost, answer.created_at):
                await self._admission.hold(answer.ticket, key, cost, answer.created_at)
            answer.held = cost
        except InsufficientBudget as error:
            metrics.BUDGET_REFUSALS.labels(error.facts["of"]).inc()
            raise

    def _find_cached(self, answer: Answer, key: ApiKey) -> bool:
        """Answer from the cache; else have the answer kept in it."""
        manner, place = self._manner(), place_of(key.account_id, answer.ask)
        found = self._cache.get(place, time.monotonic())
        if found is not None:
            answer.take_cached(found)
            return True

        def keep(body: bytes) -> None:
            kept = CachedAnswer(body, answer.vendor_name, time.monotonic() + manner.cache_seconds)
            self._cache.put(place, kept, manner.cache_bytes)

        answer.keeper = Keeper(keep)
        return False

    async def _try_routes(self, answer: Answer, offer: ChatOffer, vendors: Mapping[str, ChatVendor]) -> None:
        last: PenstockError | None = None
        for route in self.routes.choose(offer.routes, answer.account_id):
            try:
                await self._try(answer, route, vendors[route.vendor])
            except TryNextRoute as trouble:
                last = trouble.error
            else:
                return
        raise last or VendorFailed()

    async def _try(self, answer: Answer, route: Route, vendor: ChatVendor) -> None:
        """Have one vendor answer, up to its first byte: until then a failure has its own status."""
        ask = answer.ask
        call = await self._prepare_long(ask, vendor, route) if ask.size > BIG else _prepare(ask, vendor, route)
        self._enter(route, vendor)
        health = self.routes.health(route)
        account = answer.account_id
        probe = health.begin(account)
        farewell = self._make_farewell(route, vendor, health, account, has_alternatives=answer.has_alternatives)
        answer.take_route(route, vendor, farewell)
        outcome = "canceled"
        try:
            await self._hear(answer, vendor, call)
            outcome = "ok"
            if True in probe or not ask.stream or not answer.has_alternatives:
                health.succeed(account)  # of any other stream the end will tell
        except _Refused as refused:
            outcome = refused.fault.blame
            answer.refused()
            raise self._judge(refused.fault, route, account, probe) from None
        except NotSent as error:
            outcome = "not_sent"
            answer.refused()
            unreached = "The vendor could not be reached. Nothing was submitted."
            failure = VendorFailed(str(error) if isinstance(error, NotStarted) else unreached, retry_after=1)
            health.fail(self.routes.now(), account, failure, probe=probe, unprovoked=True)
            raise TryNextRoute(failure) from error
        except (ReplyLost, Malformed, EventTooLarge, TimeoutError) as error:
            # The vendor may have done the work: asking again, or another, could mean to pay twice.
            outcome = "timeout" if isinstance(error, TimeoutError) else "lost"
            failure = VendorTimeout() if isinstance(error, TimeoutError) else VendorAnswerLost(_describe(error))
            health.fail(self.routes.now(), account, failure, probe=probe)
            raise failure from error
        finally:
            metrics.CHAT_ATTEMPTS.count(route.vendor, outcome)
            if outcome == "canceled":
                health.abstain(account, probe)
            if outcome != "ok":
                answer.hang_up(outcome)

    async def _prepare_long(self, ask: Ask, vendor: ChatVendor, route: Route) -> Call:
        return await asyncio.to_thread(_prepare, ask, vendor, route)

    async def _hear(self, answer: Answer, vendor: ChatVendor, call: Call) -> None:
        options, is_streamed = vendor.options, answer.ask.stream
        limit = min(options.first_byte_seconds, options.total_seconds) if is_streamed else options.total_seconds
        try:
            with Deadline(limit):
                answer.begin_waiting()
                incoming = answer.incoming = await self._exchange.open(vendor, call)
                if is_streamed:
                    await incoming.wait_head()
                    if not 200 <= incoming.status < 300:
                        raise _refuse(vendor, incoming, await incoming.read_all(MAX_REPLY_BYTES))
                    await answer.hear_first(self._manner().heartbeat_seconds)
                else:
                    body = await incoming.read_all(MAX_REPLY_BYTES)
                    if not 200 <= incoming.status < 300:
                        raise _refuse(vendor, incoming, body)
                    answer.end_waiting()
                    whole = (body, vendor, answer.ask, answer.reply_id, int(answer.created_at))
                    read = await asyncio.to_thread(_read_whole, *whole) if len(body) > BIG else _read_whole(*whole)
                    answer.take_whole(*read)
        except Broken as broken:
            raise _Refused(broken.fault(vendor.fault)) from None
        except ReplyLost:
            # That a vendor refused is certain by its status, also where the rest is lost.
            if answer.incoming is None or answer.incoming.status < 300:
                raise
            raise _refuse(vendor, answer.incoming, b"") from None

    def _judge(self, fault: Fault, route: Route, account: str, probe: Probe) -> PenstockError | TryNextRoute:
        """What a vendor's refusal means, for the caller and for the route; the operator reads of it in the log."""
        redactor, health = self._offers().redactor, self.routes.health(route)
        level = logging.ERROR if fault.blame is Blame.CREDENTIAL else logging.INFO
        said = {"code": redactor.code(fault.code), "message": redactor.text(fault.message)}
        fields = {"vendor": route.vendor, "model": route.model, "blame": fault.blame, "status": fault.status, **said}
        log.log(level, "a chat vendor refused", extra={"fields": fields})
        error = tell_fault(fault, redactor)
        if fault.blame is Blame.CALLER:
            health.succeed(account)
            return error
        health.fail(self.routes.now(), account, error, fault, probe=probe)
        return TryNextRoute(error)

    def _enter(self, route: Route, vendor: ChatVendor) -> None:
        busy = self._busy.get(route.vendor, 0)
        if busy >= vendor.options.max_concurrent:
            raise TryNextRoute(QueueFull("The vendor has all the requests that it may have at once.", retry_after=1))
        self._busy[route.vendor] = busy + 1
        if vendor.server is not None:
            vendor.server.enter()

    def _make_farewell(
        self, route: Route, vendor: ChatVendor, health: RouteHealth, account: str, *, has_alternatives: bool
    ) -> Leave:
        """What to do when the vendor is let go: give its place free, and remember how a stream ended.

        A vendor that begins its answers and breaks off is left alone only where another can be asked instead.
        """

        def leave(outcome: ChatOutcome, error: PenstockError | None) -> None:
            self._busy[route.vendor] -= 1
            if vendor.server is not None:
                vendor.server.leave()
            if outcome is ChatOutcome.OK:
                health.succeed(account)
            elif outcome is ChatOutcome.CUT and error is not None and has_alternatives:
                health.fail(self.routes.now(), account, error)

        return leave


class _Refused(Exception):
    """The vendor answered with a failure."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def _read_whole(
    body: bytes, vendor: ChatVendor, ask: Ask, reply_id: str, created: int
) -> tuple[bytes, Usage | None, int]:
    translator = vendor.translator(ask)
    if translator is None:
        return pass_whole(body, ask, reply_id, created)
    return render_whole(translator.whole(body), ask, reply_id, created)


def _prepare(ask: Ask, vendor: ChatVendor, route: Route) -> Call:
    try:
        return vendor.complete(ask, route.model)
    except InvalidRequest as error:  # another vendor may be able to do it
        raise TryNextRoute(error) from None


def _refuse(vendor: ChatVendor, incoming: "Incoming", said: bytes) -> _Refused:
    return _Refused(vendor.fault(Reply(incoming.status, incoming.headers, said)))


def _in_words_of_chat(error: RateLimited) -> ChatRateLimited:
    chat = ChatRateLimited(
        error.message, suggestion=error.suggestion, retry_after=error.retry_after, headers=error.headers
    )
    chat.retryable = error.retryable
    return chat


def _describe(error: Exception) -> str | None:
    if isinstance(error, Malformed):
        return "The vendor's reply could not be read."
    return None
