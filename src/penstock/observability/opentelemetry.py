"""Spans by OpenTelemetry, with the names of its conventions; loaded only where a collector waits for them."""

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
"""How long the last spans may take to be sent: a collector that is down delays no stop by more."""
WORK: Final = "generate_content"
"""The operation that jobs are, in the words of the conventions."""
CARRIED: Final = (b"traceparent", b"tracestate")

log = logging.getLogger(__name__)
_propagator = TraceContextTextMapPropagator()


def open_tracer(environ: Mapping[str, str]) -> "OpenTelemetryTracer":
    """A tracer that sends its spans where the environment says, as OpenTelemetry reads it."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # what fails is told below, once
    named = {} if environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "penstock"}
    resource = Resource.create({SERVICE_VERSION: __version__, **named})
    return OpenTelemetryTracer(TracerProvider(resource=resource, shutdown_on_exit=False))


class _Exporter(SpanExporter):
    """OpenTelemetry's, which tells once that nobody answers and once that somebody does again."""

    def __init__(self) -> None:
        self._exporter = OTLPSpanExporter()
        self._is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing is not self._is_failing:
            self._is_failing = is_failing
            if is_failing:
                log.warning("traces cannot be sent and are lost until they can")
            else:
                log.info("traces are sent again")
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
        """A request, which goes on with its caller's trace."""
        carrier = {name.decode(): value.decode("latin-1") for name, value in headers if name in CARRIED}
        facts = {"http.request.method": method, "penstock.request.id": request_id}
        return self._begin(method, SpanKind.SERVER, facts, _propagator.extract(carrier, Context()))

    def chat(self, vendor: str, model: str, asked: str, *, stream: bool) -> "_Span":
        """A call to a chat vendor, for its model; the caller asked for ours."""
        facts = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": vendor,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": stream,
            "penstock.model": asked,
        }
        return self._begin(f"chat {model}", SpanKind.CLIENT, facts)

    def call(self, vendor: str, verb: str) -> "_Span":
        """A verb of a vendor of jobs."""
        facts = {"gen_ai.operation.name": WORK, "gen_ai.provider.name": vendor, "penstock.verb": verb}
        return self._begin(f"{verb} {vendor}", SpanKind.CLIENT, facts)

    def job(self, job: Job, epoch: int) -> "_Span":
        """The work on a job under one claim, which goes on with the trace of its request."""
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
        """The span that this is done in, as a `traceparent`."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent")

    def close(self) -> None:
        """Send what is there, for some seconds at most."""
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
            self.fail(kind.__name__)  # not its words: they may hold anything
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
