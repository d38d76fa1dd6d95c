"""Export of logged content as events of OpenTelemetry's `gen_ai` conventions; without a collector it does nothing."""

import asyncio
import importlib
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from penstock.domain.content.records import ContentFacts

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

log = logging.getLogger(__name__)


class ContentExporter(Protocol):
    """Sends records to a collector."""

    def emit(self, facts: ContentFacts, document: Mapping[str, Any], trace: str | None) -> None:
        """Queue one record. It is dropped if the collector does not keep up."""
        ...

    def close(self) -> None:
        """Send the remaining records, for some seconds at most."""
        ...


exporter: ContentExporter | None = None
"""The exporter; None without a collector."""


def start(environ: Mapping[str, str]) -> None:
    """Start the export if a collector is configured."""
    global exporter  # noqa: PLW0603  one for the process, as the environment is
    is_wanted = any(environ.get(name) for name in ENDPOINTS) and environ.get("OTEL_SDK_DISABLED", "").lower() != "true"
    if exporter is not None:
        return
    if not is_wanted:
        log.warning("`content_log.export` needs a collector; set OTEL_EXPORTER_OTLP_ENDPOINT")
        return
    try:
        module: Any = importlib.import_module("penstock.observability.opentelemetry_contents")
    except ModuleNotFoundError as error:
        log.warning("the export needs the extra `otel` of this package", extra={"fields": {"missing": error.name}})
        return
    exporter = module.open_exporter(environ)


async def stop() -> None:
    """Stop the export, and send the remaining records."""
    global exporter
    former, exporter = exporter, None
    if former is not None:
        await asyncio.to_thread(former.close)


def emit(facts: ContentFacts, document: Mapping[str, Any], trace: str | None) -> None:
    """Export a record that was stored."""
    if exporter is not None:
        exporter.emit(facts, document, trace)
