"""A collector's double: takes spans by OTLP over HTTP, as a real one does, and shows them as plain data."""

import asyncio
import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Seen:
    """One span."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    seconds: float
    is_error: bool
    facts: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class OtlpReceiver:
    """Listens on loopback; `bodies` are the requests as they came."""

    status: int = 200
    path: str = "/v1/traces"
    spans: list[Seen] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == receiver.path:
                    receiver.take(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
                self.send_response(receiver.status if self.path == receiver.path else 404)
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
        if self.status == 200:
            self.spans += read_spans(body)

    async def until(self, condition: Callable[[list[Seen]], Any], seconds: float = 60) -> Any:
        """What the condition finds, once it does."""
        async with asyncio.timeout(seconds):
            while not (found := condition(list(self.spans))):  # noqa: ASYNC110  another thread takes them
                await asyncio.sleep(0.02)
        return found

    async def find(self, name: str, **facts: Any) -> Seen:
        """The first span of this name that has these facts, their names with _ for the dots."""

        def search(spans: list[Seen]) -> Seen | None:
            for span in spans:
                flat = {fact.replace(".", "_"): value for fact, value in span.facts.items()}
                if span.name == name and all(flat.get(fact) == value for fact, value in facts.items()):
                    return span
            return None

        return await self.until(search)


def read_spans(body: bytes) -> list[Seen]:
    """The spans of one export."""
    groups = ExportTraceServiceRequest.FromString(body).resource_spans
    return [
        _see(span, read_attributes(group.resource.attributes))
        for group in groups
        for scope in group.scope_spans
        for span in scope.spans
    ]


def _see(span: Any, resource: dict[str, Any]) -> Seen:
    return Seen(
        name=span.name,
        kind=span.kind,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        is_error=span.status.code == 2,
        facts=read_attributes(span.attributes),
        resource=resource,
    )


def read_attributes(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    match value.WhichOneof("value"):
        case "array_value":
            return [_value(item) for item in value.array_value.values]
        case "kvlist_value":
            return read_attributes(value.kvlist_value.values)
        case None:
            return None
        case kind:
            return getattr(value, kind)
