"""The settlement of a chat request: tokens are counted and bounded, charged, and recorded exactly once."""

import logging
import time
from collections.abc import Callable, Sequence

from penstock.billing.admission import Ticket
from penstock.billing.usage_writer import UsageWriter
from penstock.chat.answer_lengths import AnswerLengths
from penstock.chat.attempt import RouteAttempt
from penstock.chat.token_bounds import BYTES_PER_CHARACTER, bound_claim, limit_to_evidence
from penstock.domain.api_keys import ApiKey
from penstock.domain.chat import Ask, Usage, estimate
from penstock.domain.guardrails.inquiry import GuardrailFinding, write_findings
from penstock.domain.usage import Begun, ChatOutcome, Completion
from penstock.errors import PenstockError
from penstock.observability import metrics, traces

log = logging.getLogger(__name__)


class Settlement:
    """The billed side of one chat request: the caller's account, the current attempt and its outcome."""

    __slots__ = (
        "_ask",
        "_cost",
        "_first_byte_seconds",
        "_id",
        "_is_settled",
        "_key",
        "_lengths",
        "_seen_bytes",
        "_steady",
        "_usage",
        "_usage_writer",
        "_worked",
        "attempt",
        "began",
        "created_at",
        "error",
        "findings",
        "held",
        "outcome",
        "record",
        "request_id",
        "ticket",
        "vendor_name",
        "waited",
    )

    def __init__(
        self,
        ask: Ask,
        key: ApiKey,
        request_id: str,
        created_at: float,
        usage_writer: UsageWriter,
        lengths: AnswerLengths,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.request_id = request_id
        self.created_at = created_at
        self.began = steady()
        self.ticket: Ticket | None = None
        self.held: int | None = None
        """Money held for it, in 10⁻⁹ USD; None if no budget applies."""
        self.attempt: RouteAttempt | None = None
        """The latest route tried."""
        self.vendor_name = ""
        """The vendor of the latest attempt or of the cached answer."""
        self.waited = 0.0
        """Seconds until the vendor began, or until the end of a whole answer; the rest is our overhead."""
        self.outcome = ChatOutcome.CANCELED
        self.error: PenstockError | None = None
        self.findings: Sequence[GuardrailFinding] = ()
        """Of the guardrails."""
        self.record: Completion | None = None
        """The usage record, once it is settled."""
        self._ask = ask
        self._key = key
        self._id = usage_writer.new_id()
        self._usage_writer = usage_writer
        self._lengths = lengths
        self._steady = steady
        self._first_byte_seconds: float | None = None
        self._worked = False
        """A vendor may have worked for this request."""
        self._usage: Usage | None = None
        self._seen_bytes = 0
        self._cost: int | None = None
        self._is_settled = False

    @property
    def elapsed(self) -> float:
        """Seconds since the request came."""
        return self._steady() - self.began

    # -- while routes are tried

    def take_attempt(self, attempt: RouteAttempt) -> None:
        """Bill this route from now on."""
        self.attempt = attempt
        self.vendor_name = attempt.route.vendor

    def begin_call(self, attempt: RouteAttempt) -> None:
        """Write the call to the journal before it is sent: from here on the vendor may have worked."""
        key, ask, route, price = self._key, self._ask, attempt.route, attempt.price
        begun = Begun(
            id=self._id,
            request_id=self.request_id,
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
            attribution=ask.attribution,
        )
        self._usage_writer.begin(begun, attempt)
        self._worked = True

    def record_refusal(self) -> None:
        """Charge nothing for the call: the vendor refused it or was never reached."""
        self._worked = False

    def record_first_byte(self, called_at: float) -> None:
        """Record the time to the first byte, of a call made at this time."""
        now = self._steady()
        self.waited += now - called_at
        self._first_byte_seconds = now - self.began

    def take_whole(self, body: bytes, usage: Usage | None, characters: int) -> None:
        """Record a whole answer with the vendor's count of tokens, or with an estimate."""
        self._seen_bytes = len(body)
        self._usage = usage or estimate(self._ask, characters)
        self.outcome = ChatOutcome.OK

    def take_cached(self, vendor: str) -> None:
        """Record an answer from the cache: it uses no tokens."""
        self.vendor_name = vendor
        self._usage = Usage()
        self.outcome = ChatOutcome.CACHED

    # -- the end

    def end(self, body: bytes) -> None:
        """Settle, and report the end to metrics and traces; a streamed answer has no body."""
        attempt = self.attempt
        if attempt is not None and attempt.stream is not None and attempt.stream.malformed:
            metrics.CHAT_MALFORMED.labels(attempt.route.vendor).inc(attempt.stream.malformed)
        self.settle()
        if attempt is not None and attempt.span is not None:
            self._end_span(attempt, attempt.span, body)

    def settle(self) -> int | None:
        """Charge and record the usage, once; return its cost if the price is known.

        A whole answer is settled before it is sent.
        """
        if self._is_settled:
            return self._cost
        self._is_settled = True
        claim = self._claim()
        usage = bound_claim(claim, self._ask, self._seen())
        cost, is_capped = self._cost_of(usage)
        self._cost = cost
        if usage is not claim or is_capped:
            self._report_cut(claim, usage)
        if self.ticket is not None:
            self.ticket.settle(cost or 0, usage.prompt + usage.completion)
        if self.outcome is ChatOutcome.OK:
            self._lengths.add(self._key.account_id, self._ask.model, usage.completion)
        self._record(usage, cost)
        return cost

    def settle_failure(self, error: PenstockError) -> None:
        """Settle an answer that breaks off, and note in its error whether something was charged."""
        cost = self.settle()
        error.charged = None if cost is None else cost > 0

    def _record(self, usage: Usage, cost: int | None) -> None:
        self.record = Completion(
            id=self._id,
            request_id=self.request_id,
            account_id=self._key.account_id,
            key_id=self._key.public_id,
            lineage=self._key.lineage,
            model=self._ask.model,
            vendor=self.vendor_name,
            upstream_model="" if self.attempt is None else self.attempt.route.model,
            streamed=self._ask.stream,
            outcome=self.outcome,
            code="" if self.error is None else self.error.code,
            usage=usage,
            cost=cost,
            created_at=self.created_at,
            seconds=self.elapsed,
            first_byte_seconds=self._first_byte_seconds,
            guardrails=write_findings(self.findings) if self.findings else None,
            attribution=self._ask.attribution,
        )
        self._usage_writer.add(self.record)

    def _seen(self) -> int:
        """Return the largest number of bytes that the answer can have had."""
        if self.attempt is None or self.attempt.stream is None:
            return self._seen_bytes
        return self.attempt.stream.characters * BYTES_PER_CHARACTER

    def _claim(self) -> Usage:
        """Return the tokens that the vendor claims, or an estimate."""
        if self._usage is not None:
            return self._usage
        if not self._worked:
            return Usage()
        stream = None if self.attempt is None else self.attempt.stream
        if stream is None:
            return estimate(self._ask, 0)
        if self.outcome is ChatOutcome.OK and stream.usage is not None:
            return stream.usage
        return estimate(self._ask, stream.characters, stream.usage)

    def _cost_of(self, usage: Usage) -> tuple[int | None, bool]:
        """Return the cost at the vendor's price, None if unknown, and whether it was capped."""
        if not self._worked or self.attempt is None:
            return 0, False  # no vendor has worked for it
        price = self.attempt.price
        if price is None:
            return None, False
        cost = price.of(usage)
        if self.held is None or cost <= self.held:
            return cost, False
        # Only tokens that were sent and seen may cost more than what was held: a claim alone does not.
        most = max(self.held, price.of(limit_to_evidence(usage, self._ask, self._seen())))
        return min(cost, most), cost > most

    def _report_cut(self, claim: Usage, usage: Usage) -> None:
        """Report a claim that cannot be true, or that was charged only up to what was held."""
        metrics.CHAT_CLAIMS_CUT.labels(self.vendor_name).inc()
        claimed = {"prompt": claim.prompt, "completion": claim.completion}
        counted = {"prompt": usage.prompt, "completion": usage.completion, "cost": self._cost, "held": self.held}
        fields = {"vendor": self.vendor_name, "model": self._ask.model, "claimed": claimed, "counted": counted}
        log.warning("vendor claimed more tokens than can be true; the claim was cut", extra={"fields": fields})

    def _end_span(self, attempt: RouteAttempt, span: traces.Span, body: bytes) -> None:
        """End the span of a vendor that answered, completely or not."""
        traces.tell_usage(span, bound_claim(self._claim(), self._ask, self._seen()))
        if attempt.stream is None:
            traces.tell_reply(span, body)
        else:
            traces.tell_stream(span, attempt.first, attempt.stream.finished, self.waited)
        if self.outcome is not ChatOutcome.OK:
            span.fail(self.outcome if self.error is None else self.error.code)
        span.end()
