"""Spans by OpenTelemetry, with the names of its conventions; loaded only if a collector is configured."""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextvars import Token
from typing import Final, Self

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from penstock import __version__
from penstock.domain.jobs import Job
from penstock.observability.traces import Fact

CLOSE_SECONDS: Final = 3.0
"""Timeout for sending the last spans: a collector that is down delays a stop by no more."""
WORK: Final = "generate_content"
"""The conventions' name for the operation of a job."""
CARRIED: Final = (b"traceparent", b"tracestate")

log = logging.getLogger(__name__)
_propagator = TraceContextTextMapPropagator()


def open_tracer(environ: Mapping[str, str]) -> "OpenTelemetryTracer":
    """Return a tracer that exports spans as configured by OpenTelemetry's environment variables."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # failures are logged below, once
    named = {} if environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "penstock"}
    resource = Resource.create({SERVICE_VERSION: __version__, **named})
    return OpenTelemetryTracer(TracerProvider(resource=resource, shutdown_on_exit=False))


class _Exporter(SpanExporter):
    """OpenTelemetry's exporter, which logs once when the collector is down and once when it is back."""

    def __init__(self) -> None:
        self._exporter = OTLPSpanExporter()
        self._is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing is not self._is_failing:
            self._is_failing = is_failing
            if is_failing:
                log.warning("the trace collector does not answer; spans are dropped until it does")
            else:
                log.info("the trace collector answers again")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class OpenTelemetryTracer:
    """See `traces.Tracer`."""

    def __init__(self, provider: TracerProvider) -> None:
        provider.add_span_processor(BatchSpanProcessor(_Exporter()))  # in a thread of its own, of a bounded queue
        self._provider = provider
        self._tracer = provider.get_tracer("penstock", __version__)

    def request(self, method: str, headers: Iterable[tuple[bytes, bytes]], request_id: str) -> "_Span":
        """Begin the span of a request, which continues its caller's trace."""
        carrier = {name.decode(): value.decode("latin-1") for name, value in headers if name in CARRIED}
        facts = {"http.request.method": method, "penstock.request.id": request_id}
        return self._begin(method, SpanKind.SERVER, facts, _propagator.extract(carrier, Context()))

    def chat(self, vendor: str, model: str, asked: str, *, stream: bool, operation: str = "chat") -> "_Span":
        """Begin the span of a call to a chat vendor, with the vendor's and the caller's name of the model."""
        facts = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": vendor,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": stream,
            "penstock.model": asked,
        }
        return self._begin(f"{operation} {model}", SpanKind.CLIENT, facts)

    def call(self, vendor: str, verb: str) -> "_Span":
        """Begin the span of a generation vendor's verb."""
        facts = {"gen_ai.operation.name": WORK, "gen_ai.provider.name": vendor, "penstock.verb": verb}
        return self._begin(f"{verb} {vendor}", SpanKind.CLIENT, facts)

    def job(self, job: Job, epoch: int) -> "_Span":
        """Begin the span of the work on a job under one claim, which continues the trace of its request."""
        facts = {
            "gen_ai.operation.name": WORK,
            "gen_ai.provider.name": job.vendor,
            "gen_ai.request.model": job.upstream_model,
            "penstock.model": job.model,
            "penstock.job.id": job.id,
            "penstock.job.epoch": epoch,
            "penstock.request.id": job.request_id,
        }
        carrier = {} if job.trace is None else {"traceparent": job.trace}
        return self._begin(
            f"{WORK} {job.upstream_model}", SpanKind.CONSUMER, facts, _propagator.extract(carrier, Context())
        )

    def current(self) -> str | None:
        """Return the current span as a `traceparent`."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent")

    def close(self) -> None:
        """Send the remaining spans, for some seconds at most."""
        closing = threading.Thread(target=self._provider.shutdown, name="last traces", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)

    def _begin(self, name: str, kind: SpanKind, facts: Mapping[str, Fact], within: Context | None = None) -> "_Span":
        return _Span(self._tracer.start_span(name, within, kind, facts))


class _Span:
    """See `traces.Span`."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._token: Token[Context] | None = None

    def __enter__(self) -> Self:
        self._token = contexts.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._token is not None:
            contexts.detach(self._token)
        if kind is not None:
            self.fail(kind.__name__)  # without its message, which may contain anything
        self.end()

    def tell(self, facts: Mapping[str, Fact], name: str | None = None) -> None:
        self._span.set_attributes(facts)
        if name is not None:
            self._span.update_name(name)

    def fail(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(StatusCode.ERROR)

    def end(self) -> None:
        self._span.end()
