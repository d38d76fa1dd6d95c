"""Events `gen_ai.client.inference.operation.details` over OTLP/HTTP; loaded only if the export is on."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from penstock import __version__
from penstock.domain.chat import ONE_SHOT
from penstock.domain.content.records import ContentFacts

EVENT: Final = "gen_ai.client.inference.operation.details"
QUEUED_RECORDS: Final = 128
BATCH_RECORDS: Final = 16
CLOSE_SECONDS: Final = 3.0
NANOSECONDS: Final = 1_000_000_000

log = logging.getLogger(__name__)
_propagator = TraceContextTextMapPropagator()


def open_exporter(environ: Mapping[str, str]) -> "OpenTelemetryContents":
    """Return an exporter as configured by OpenTelemetry's environment variables."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # failures are logged below, once
    named = {} if environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "penstock"}
    resource = Resource.create({SERVICE_VERSION: __version__, **named})
    return OpenTelemetryContents(LoggerProvider(resource=resource, shutdown_on_exit=False))


class _Exporter(LogRecordExporter):
    """OpenTelemetry's exporter, which logs once when the collector is down and once when it is back."""

    def __init__(self) -> None:
        self._exporter = OTLPLogExporter()
        self._is_failing = False

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        result = self._exporter.export(batch)
        is_failing = result is not LogRecordExportResult.SUCCESS
        if is_failing is not self._is_failing:
            self._is_failing = is_failing
            if is_failing:
                log.warning("the collector does not take content records; they are not exported until it does")
            else:
                log.info("the collector takes content records again")
        return result

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self) -> None:
        self._exporter.shutdown()


class OpenTelemetryContents:
    """See `contents.ContentExporter`."""

    def __init__(self, provider: LoggerProvider) -> None:
        processor = BatchLogRecordProcessor(
            _Exporter(), max_export_batch_size=BATCH_RECORDS, max_queue_size=QUEUED_RECORDS
        )
        provider.add_log_record_processor(processor)  # in a thread of its own, of a bounded queue
        self._provider = provider
        self._logger = provider.get_logger("penstock", __version__)

    def emit(self, facts: ContentFacts, document: Mapping[str, Any], trace: str | None) -> None:
        """See `contents.ContentExporter`."""
        carrier = {} if trace is None else {"traceparent": trace}
        moment = facts.created_at + (facts.seconds or 0.0)
        self._logger.emit(
            LogRecord(
                timestamp=int(moment * NANOSECONDS),
                context=_propagator.extract(carrier, Context()),
                severity_number=SeverityNumber.DEBUG,
                event_name=EVENT,
                attributes=_describe(facts, document),
            )
        )

    def close(self) -> None:
        """See `contents.ContentExporter`."""
        closing = threading.Thread(target=self._provider.shutdown, name="last contents", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)


def _describe(facts: ContentFacts, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a record, by the names of the conventions."""
    output = document.get("output", [])
    found: dict[str, Any] = {
        "gen_ai.operation.name": _operation_of(facts),
        "gen_ai.provider.name": facts.vendor,
        "gen_ai.request.model": facts.upstream_model or facts.model,
        "gen_ai.request.stream": facts.streamed,
        "gen_ai.system_instructions": document.get("instructions", []),
        "gen_ai.input.messages": document.get("input", []),
        "gen_ai.output.messages": output,
        "gen_ai.response.finish_reasons": [each["finish_reason"] for each in output if "finish_reason" in each],
        "gen_ai.usage.input_tokens": facts.prompt_tokens,
        "gen_ai.usage.output_tokens": facts.completion_tokens,
        "error.type": facts.error,
        "penstock.model": facts.model,
        "penstock.content.id": facts.id,
        "penstock.request.id": facts.request_id,
        "penstock.account.id": facts.account_id,
        "penstock.key.id": facts.key_id,
        "penstock.job.id": facts.job_id,
        "penstock.content.truncated": bool(document.get("truncated")),
    }
    return {name: value for name, value in found.items() if value is not None and value != []}


def _operation_of(facts: ContentFacts) -> str:
    if facts.kind == "generation":
        return "generate_content"
    return facts.endpoint if facts.endpoint in ONE_SHOT else "chat"
