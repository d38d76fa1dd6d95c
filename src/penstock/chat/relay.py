"""The chat relay: it chooses a route, calls its vendor, and returns the answer with its first byte."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from penstock.billing.admission import Admission, Ticket
from penstock.billing.usage_writer import UsageWriter
from penstock.chat.answer import Answer
from penstock.chat.answer_lengths import AnswerLengths
from penstock.chat.answer_stream import AnswerStream
from penstock.chat.attempt import Leave, RouteAttempt
from penstock.chat.cache import CachedAnswer, CacheRecorder, ChatCache, cache_key
from penstock.chat.doors import DOORS
from penstock.chat.faults import explain_fault
from penstock.chat.recorder import ContentCapture, combine
from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.sse import EventTooLarge
from penstock.chat.route_health import Probe, RouteHealth, Routes
from penstock.chat.settlement import Settlement
from penstock.chat.timers import Deadline
from penstock.content_log.log import ContentLog
from penstock.domain.api_keys import ApiKey
from penstock.domain.chat import Ask, Blame, Dialect, Fault, Usage
from penstock.domain.guardrails.contents import read_chat
from penstock.domain.guardrails.inquiry import GuardrailFinding
from penstock.domain.prices import TokenPrice
from penstock.domain.usage import ChatOutcome
from penstock.errors import (
    ChatRateLimited,
    ContentRefused,
    InsufficientBudget,
    InvalidRequest,
    PenstockError,
    QueueFull,
    RateLimited,
    VendorAnswerLost,
    VendorFailed,
    VendorTimeout,
)
from penstock.guardrails.guardrails import Guardrails, Inspected
from penstock.observability import metrics
from penstock.offers.offer import ChatOffer, Offers, refuse_unpriced
from penstock.offers.route import Route
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.audio import Speaker, Transcriber
from penstock.vendor_api.chat import ChatVendor
from penstock.vendor_api.embeddings import Embedder
from penstock.vendor_api.generation import Call, NotSent, NotStarted, Reply, ReplyLost

if TYPE_CHECKING:
    from penstock.upstream.chat_response import Incoming

MAX_INLINE_BYTES: Final = 1 << 18
"""Larger bodies are processed in a thread, because they would block the event loop."""
MAX_REPLY_BYTES: Final = 128 << 20

log = logging.getLogger(__name__)


class TryNextRoute(Exception):
    """The vendor of this route provably did no work, so the next route may be tried."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """The operator's settings of chat."""

    heartbeat_seconds: float
    cache_bytes: int
    cache_seconds: float


class Relay:
    """Chooses routes, calls vendors and hands out answers; one per process."""

    def __init__(
        self,
        offers: Callable[[], Offers],
        exchange: Exchange,
        usage_writer: UsageWriter,
        admission: Admission,
        guardrails: Guardrails,
        content_log: ContentLog,
        policy: Callable[[], ChatPolicy],
        clock: Callable[[], float],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._offers = offers
        self._exchange = exchange
        self._usage_writer = usage_writer
        self._policy = policy
        self._clock = clock
        self._steady = steady
        self._busy: dict[str, int] = {}
        self._admission = admission
        self._guardrails = guardrails
        self._content_log = content_log
        self._lengths = AnswerLengths()
        self._cache = ChatCache()
        self.routes = Routes(steady)

    async def open(
        self,
        ask: Ask,
        offer: ChatOffer,
        key: ApiKey,
        request_id: str,
        findings: Sequence[GuardrailFinding] | None = None,
    ) -> Answer:
        """Return an answer that has begun. `Answer.close` must be called at its end, however it ends.

        `findings`: those of guardrails, if the request is inspected already.
        """
        self._usage_writer.check()
        offers = self._offers()
        settlement = Settlement(ask, key, request_id, self._clock(), self._usage_writer, self._lengths, self._steady)
        answer = Answer(ask, DOORS[ask.dialect], settlement)
        if key.logs_content:
            answer.capture = ContentCapture.begin(self._content_log, ask, key)
        try:
            if key.is_limited:
                settlement.ticket = await self._admit(ask, key)
            if self._guardrails.of_chat:
                await self._inspect(ask, key, settlement, findings)
            if not (self._policy().cache_bytes and self._find_cached(answer, key)):
                if key.budgets or (key.tag_budgets and key.budgets_for(ask.tags)):
                    await self._hold(ask, settlement, offer, key)
                await self._try_routes(answer, offer, offers, key.account_id)
        except BaseException as error:
            answer.fail(error)
            raise
        return answer

    async def _inspect(
        self, ask: Ask, key: ApiKey, settlement: Settlement, findings: Sequence[GuardrailFinding] | None
    ) -> None:
        """Have the usage record show the findings, also the one that ends the request."""
        try:
            settlement.findings = await self.inspect(ask, key, settlement.request_id) if findings is None else findings
        except ContentRefused as error:
            settlement.findings = [GuardrailFinding(error.guardrail, "refuse", error.reason)]
            raise

    async def inspect(self, ask: Ask, key: ApiKey, request_id: str) -> Sequence[GuardrailFinding]:
        """Return the findings of the guardrails. Raise if one of them ends the request."""
        request = Inspected(
            kind="chat",
            key=key,
            model=ask.model,
            endpoint=ask.dialect,
            request_id=request_id,
            size=ask.size,
            read=partial(read_chat, ask),
        )
        return await self._guardrails.inspect(request)

    async def count(self, ask: Ask, offer: ChatOffer, key: ApiKey, request_id: str) -> bytes:
        """Return the number of a request's tokens as JSON: as its vendor counts them, or else estimated."""
        ticket = await self._admit(structs.replace(ask, prompt=0, max_tokens=0), key) if key.is_limited else None
        try:
            route = next(iter(self.routes.choose(offer.routes, key.account_id)), offer.routes[0])
            vendor = self._offers().chat_vendors[route.vendor]
            call = vendor.count(ask, route.model) if vendor.dialect is ask.dialect else None
            if call is None:
                return msgspec.json.encode({"input_tokens": ask.prompt})
            if self._guardrails.of_chat:
                await self.inspect(ask, key, request_id)
            return await self._count(vendor, call)
        finally:
            if ticket is not None:
                ticket.settle(0, 0)

    async def _count(self, vendor: ChatVendor, call: Call) -> bytes:
        try:
            with Deadline(vendor.options.first_byte_seconds):
                incoming = await self._exchange.open(vendor, call)
                try:
                    body = await incoming.read_all(MAX_REPLY_BYTES)
                finally:
                    incoming.close()
        except (NotSent, ReplyLost) as error:
            raise VendorFailed(retry_after=1) from error
        except TimeoutError as error:
            raise VendorTimeout from error
        if 200 <= incoming.status < 300:
            return body
        refused, redactor = _refuse(vendor, incoming, body), self._offers().redactor
        failure = explain_fault(refused.fault, redactor)
        if refused.reply is not None and refused.is_passable:
            failure.reply = redactor.reply(refused.reply)
        raise failure

    async def _admit(self, ask: Ask, key: ApiKey) -> Ticket:
        """Let the request in as far as its rate limits allow."""
        tokens = self._lengths.longest(key.account_id, ask.model)
        if ask.max_tokens is not None and (tokens is None or tokens > ask.max_tokens):
            tokens = ask.max_tokens
        admission, prompt, stream = self._admission, ask.prompt, ask.stream
        try:
            ticket = admission.try_admit(key, prompt, tokens or 0, stream=stream)
            return ticket or await admission.admit(key, prompt, tokens or 0, stream=stream)
        except RateLimited as error:
            raise _as_chat_error(error) from None

    async def _hold(self, ask: Ask, settlement: Settlement, offer: ChatOffer, key: ApiKey) -> None:
        """Hold the most that the answer may cost: by its token limit, or by the usual length of such answers."""
        now = settlement.created_at
        price = offer.ceiling_price(now)
        if price is None:
            raise refuse_unpriced(ask.model)
        tokens = self._lengths.likely(key.account_id, ask.model) if ask.max_tokens is None else ask.max_tokens
        most = Usage(ask.prompt * 4 // 3 + 16, tokens * ask.choices)
        ticket = settlement.ticket
        assert ticket is not None  # noqa: S101  a key with a budget is admitted first
        cost = price.of_sound(ask.characters, ask.seconds).of(most)
        try:
            if not self._admission.try_hold(ticket, key, cost, now, ask.tags):
                await self._admission.hold(ticket, key, cost, now, ask.tags)
            settlement.held = cost
        except InsufficientBudget as error:
            metrics.BUDGET_REFUSALS.labels(error.facts["of"]).inc()
            raise

    def _find_cached(self, answer: Answer, key: ApiKey) -> bool:
        """Answer from the cache and return True; otherwise have the answer kept in it."""
        policy, cache_place = self._policy(), cache_key(key.account_id, answer.ask)
        found = self._cache.get(cache_place, self._steady())
        if found is not None:
            answer.take_cached(found)
            return True

        def keep(body: bytes) -> None:
            kept = CachedAnswer(body, answer.settlement.vendor_name, self._steady() + policy.cache_seconds)
            self._cache.put(cache_place, kept, policy.cache_bytes)

        answer.cache_recorder = CacheRecorder(keep)
        return False

    async def _try_routes(self, answer: Answer, offer: ChatOffer, offers: Offers, account: str) -> None:
        last: PenstockError | None = None
        for route in self.routes.choose(offer.routes, account):
            vendor = offers.chat_vendors[route.vendor]
            try:
                attempt = await self._try(answer, offer, route, vendor, account)
            except TryNextRoute as next_route:
                last = next_route.error
                continue
            if attempt.stream is not None:
                heartbeat = self._policy().heartbeat_seconds
                recorder = combine(answer.cache_recorder, answer.capture)
                answer.stream = AnswerStream(
                    attempt, attempt.stream, answer.settlement, recorder, offers.redactor, heartbeat
                )
            return
        raise last or VendorFailed()

    async def _try(
        self, answer: Answer, offer: ChatOffer, route: Route, vendor: ChatVendor, account: str
    ) -> RouteAttempt:
        """Call one vendor and wait for its first byte: until then, a failure has its own status."""
        ask, settlement, has_alternatives = answer.ask, answer.settlement, len(offer.routes) > 1
        is_large = ask.size > MAX_INLINE_BYTES
        prepared = await self._prepare_large(answer, vendor, route) if is_large else _prepare(answer, vendor, route)
        self._enter(route, vendor)
        health = self.routes.health(route)
        probe = health.begin(account)
        leave = self._make_leave(route, vendor, health, account, has_alternatives=has_alternatives)
        price = offer.price_for(ask, route.vendor, settlement.created_at)
        attempt = _begin_attempt(answer, prepared, route, vendor, price, leave)
        outcome = "canceled"
        try:
            await self._call(answer, attempt, prepared[1])
            outcome = "ok"
            if True in probe or not ask.stream or not has_alternatives:
                health.succeed(account)  # any other stream is judged by its end
        except _Refused as refused:
            outcome = refused.fault.blame
            settlement.record_refusal()
            raise self._judge(refused, attempt, account, probe) from None
        except NotSent as error:
            outcome = "not_sent"
            settlement.record_refusal()
            unreached = "The vendor could not be reached. Nothing was submitted."
            failure = VendorFailed(str(error) if isinstance(error, NotStarted) else unreached, retry_after=1)
            health.fail(self.routes.now(), account, failure, probe=probe, unprovoked=True)
            raise TryNextRoute(failure) from error
        except (ReplyLost, Malformed, EventTooLarge, TimeoutError) as error:
            # The vendor may have done the work: another call could be charged twice.
            outcome = "timeout" if isinstance(error, TimeoutError) else "lost"
            failure = VendorTimeout() if isinstance(error, TimeoutError) else VendorAnswerLost(_describe(error))
            health.fail(self.routes.now(), account, failure, probe=probe)
            raise failure from error
        finally:
            metrics.CHAT_ATTEMPTS.count(route.vendor, outcome)
            if outcome == "canceled":
                health.abstain(account, probe)
            if outcome != "ok":
                attempt.fail(outcome, settlement.outcome, settlement.error)
        return attempt

    async def _prepare_large(self, answer: Answer, vendor: ChatVendor, route: Route) -> tuple[Ask, Call]:
        return await asyncio.to_thread(_prepare, answer, vendor, route)

    async def _call(self, answer: Answer, attempt: RouteAttempt, call: Call) -> None:
        """Send the call, and read a whole answer or the first piece of a stream."""
        vendor, options, is_streamed = attempt.vendor, attempt.vendor.options, answer.ask.stream
        limit = min(options.first_byte_seconds, options.total_seconds) if is_streamed else options.total_seconds
        try:
            with Deadline(limit):
                answer.settlement.begin_call(attempt)
                attempt.begin_wait(self._steady())
                incoming = attempt.incoming = await self._exchange.open(vendor, call)
                if is_streamed:
                    await _begin_stream(answer, attempt, incoming)
                else:
                    await _read_answer(answer, attempt, incoming)
        except Broken as broken:
            raise _Refused(broken.fault(vendor.fault)) from None
        except ReplyLost:
            # The status alone proves that a vendor refused, even if the rest is lost.
            if attempt.incoming is None or attempt.incoming.status < 300:
                raise
            raise _refuse(vendor, attempt.incoming, b"") from None

    def _judge(
        self, refused: "_Refused", attempt: RouteAttempt, account: str, probe: Probe
    ) -> PenstockError | TryNextRoute:
        """Log a vendor's refusal, record it in the route's health, and return the error to raise."""
        fault, route = refused.fault, attempt.route
        redactor, health = self._offers().redactor, self.routes.health(route)
        level = logging.ERROR if fault.blame is Blame.CREDENTIAL else logging.INFO
        shown = {"code": redactor.code(fault.code), "message": redactor.text(fault.message)}
        fields = {"vendor": route.vendor, "model": route.model, "blame": fault.blame, "status": fault.status, **shown}
        log.log(level, "chat vendor refused a request", extra={"fields": fields})
        error = explain_fault(fault, redactor)
        if refused.is_passable and refused.reply is not None and attempt.is_native:
            error.reply = redactor.reply(refused.reply)
        if fault.blame is Blame.CALLER:
            health.succeed(account)
            return error
        health.fail(self.routes.now(), account, error, fault, probe=probe)
        return TryNextRoute(error)

    def _enter(self, route: Route, vendor: ChatVendor) -> None:
        busy = self._busy.get(route.vendor, 0)
        if busy >= vendor.options.max_concurrent:
            raise TryNextRoute(QueueFull("The vendor is at its limit of concurrent requests.", retry_after=1))
        self._busy[route.vendor] = busy + 1
        if vendor.server is not None:
            vendor.server.enter()

    def _make_leave(
        self, route: Route, vendor: ChatVendor, health: RouteHealth, account: str, *, has_alternatives: bool
    ) -> Leave:
        """Return the callback that frees the vendor's slot and records the end of a stream in its health.

        A vendor whose answers break off is closed only if the model has another route.
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
    """The vendor answered with a fault, in an HTTP error or in a stream."""

    def __init__(self, fault: Fault, reply: Reply | None = None) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.reply = reply

    @property
    def is_passable(self) -> bool:
        """Return whether a caller of the vendor's dialect gets the reply: not of our own faults, nor of a proxy."""
        reply = self.reply
        return (
            reply is not None
            and self.fault.blame is not Blame.CREDENTIAL
            and "json" in reply.headers.get("content-type", "")
        )


def _begin_attempt(
    answer: Answer, prepared: tuple[Ask, Call], route: Route, vendor: ChatVendor, price: TokenPrice | None, leave: Leave
) -> RouteAttempt:
    request, call = prepared
    attempt = RouteAttempt(answer.ask, answer.door, request, route, vendor, price, leave)
    attempt.left_out = request.left_out + call.left_out
    answer.settlement.take_attempt(attempt)
    return attempt


async def _begin_stream(answer: Answer, attempt: RouteAttempt, incoming: "Incoming") -> None:
    settlement = answer.settlement
    await incoming.wait_head()
    if not 200 <= incoming.status < 300:
        raise _refuse(attempt.vendor, incoming, await incoming.read_all(MAX_REPLY_BYTES))
    await attempt.read_first(incoming, answer.ask, _reply_id(answer), int(settlement.created_at))
    settlement.record_first_byte(attempt.called_at)


async def _read_answer(answer: Answer, attempt: RouteAttempt, incoming: "Incoming") -> None:
    settlement = answer.settlement
    body = await incoming.read_all(MAX_REPLY_BYTES)
    if not 200 <= incoming.status < 300:
        raise _refuse(attempt.vendor, incoming, body)
    settlement.record_first_byte(attempt.called_at)
    whole = (body, answer.ask, _reply_id(answer), int(settlement.created_at))
    read_whole = attempt.read_whole
    read = await asyncio.to_thread(read_whole, *whole) if len(body) > MAX_INLINE_BYTES else read_whole(*whole)
    answer.body = read[0]
    settlement.take_whole(*read)


def _reply_id(answer: Answer) -> str:
    """Return an id for a reply without one of its own."""
    return answer.ask.reply_id or f"chatcmpl-{answer.settlement.request_id}"


def _prepare(answer: Answer, vendor: ChatVendor, route: Route) -> tuple[Ask, Call]:
    """Return the request in a dialect that the vendor takes, and the call for it."""
    try:
        if (call := _prepare_one_shot(answer.ask, vendor, route)) is not None:
            return answer.ask, call
        request = answer.ask_for(vendor.dialect)
        return request, vendor.complete(request, route.model)
    except InvalidRequest as error:  # another vendor may support it
        raise TryNextRoute(error) from None


def _prepare_one_shot(ask: Ask, vendor: ChatVendor, route: Route) -> Call | None:
    """Return the call for a request that is no conversation; None if it is one, or the vendor cannot serve it."""
    match ask.dialect:
        case Dialect.EMBEDDINGS if isinstance(vendor, Embedder):
            return vendor.embed(ask, route.model)
        case Dialect.SPEECH if isinstance(vendor, Speaker):
            return vendor.speak(ask, route.model)
        case Dialect.TRANSCRIPTIONS if isinstance(vendor, Transcriber):
            return vendor.transcribe(ask, route.model)
        case _:
            return None


def _refuse(vendor: ChatVendor, incoming: "Incoming", body: bytes) -> _Refused:
    reply = Reply(incoming.status, incoming.headers, body)
    return _Refused(vendor.fault(reply), reply)


def _as_chat_error(error: RateLimited) -> ChatRateLimited:
    chat = ChatRateLimited(
        error.message, suggestion=error.suggestion, retry_after=error.retry_after, headers=error.headers
    )
    chat.retryable = error.retryable
    return chat


def _describe(error: Exception) -> str | None:
    if isinstance(error, Malformed):
        return "The vendor's reply could not be read."
    return None
