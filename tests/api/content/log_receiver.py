"""A collector's double: takes log records by OTLP over HTTP, and decodes them with the protocol's own classes."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from otlp_receiver import OtlpReceiver, read_attributes


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """One event."""

    name: str
    severity: int
    trace: str
    facts: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class LogReceiver(OtlpReceiver):
    """Listens on loopback; `bodies` are the requests as they came."""

    path: str = "/v1/logs"
    events: list[SeenEvent] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        for group in ExportLogsServiceRequest.FromString(body).resource_logs:
            resource = read_attributes(group.resource.attributes)
            for scope in group.scope_logs:
                for found in scope.log_records:
                    trace, facts = found.trace_id.hex(), read_attributes(found.attributes)
                    self.events.append(SeenEvent(found.event_name, found.severity_number, trace, facts, resource))

    async def collect(self, count: int) -> list[SeenEvent]:
        """The events, once there are so many."""
        async with asyncio.timeout(60):
            while len(self.events) < count:  # noqa: ASYNC110  another thread takes them
                await asyncio.sleep(0.02)
        return list(self.events)
