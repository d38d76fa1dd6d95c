"""A collector's double: takes log records by OTLP over HTTP, and decodes them with the protocol's own classes."""

import asyncio
import gzip
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """One event."""

    name: str
    severity: int
    trace: str
    facts: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class LogReceiver:
    """Listens on loopback; `bodies` are the requests as they came."""

    events: list[SeenEvent] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/v1/logs":
                    is_packed = self.headers.get("content-encoding") == "gzip"
                    receiver.take(gzip.decompress(body) if is_packed else body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        for group in ExportLogsServiceRequest.FromString(body).resource_logs:
            resource = _read(group.resource.attributes)
            for scope in group.scope_logs:
                for found in scope.log_records:
                    trace, facts = found.trace_id.hex(), _read(found.attributes)
                    self.events.append(SeenEvent(found.event_name, found.severity_number, trace, facts, resource))

    async def until(self, count: int) -> list[SeenEvent]:
        """The events, once there are so many."""
        async with asyncio.timeout(60):
            while len(self.events) < count:  # noqa: ASYNC110  another thread takes them
                await asyncio.sleep(0.02)
        return list(self.events)


def _read(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    match value.WhichOneof("value"):
        case "array_value":
            return [_value(item) for item in value.array_value.values]
        case "kvlist_value":
            return _read(value.kvlist_value.values)
        case None:
            return None
        case kind:
            return getattr(value, kind)
