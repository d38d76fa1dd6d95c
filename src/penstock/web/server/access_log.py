"""The outermost layer: request ids, access log, metrics, spans, and the answer to an unexpected exception."""

import asyncio
import logging
import time

from starlette.requests import ClientDisconnect

from penstock.domain.ids import Serial
from penstock.errors import InternalError
from penstock.observability import logs, metrics, traces
from penstock.web.server.asgi import CYCLE, Application, Message, Receive, Send
from penstock.web.server.error_response import render_error
from penstock.web.server.error_shapes import find_shape
from penstock.web.server.request_cycle import Cycle

CLIENT_CLOSED_REQUEST = 499
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})
SHARE = "/share/"
"""Beginning of the paths of share links."""

log = logging.getLogger("penstock.access")
_ids = Serial("req")


class Tracing:
    """Gives each request an id, and records its outcome."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request and record its outcome."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        cycle: Cycle = scope["extensions"][CYCLE]
        request_id = cycle.head.given_id or _ids.next()
        cycle.request_id = scope["state"]["request_id"] = request_id
        cycle.extra = b"x-request-id: %b\r\n" % request_id.encode()
        logs.belong(request_id=request_id)
        begun = time.perf_counter()
        span = None if traces.tracer is None else _begin_span(traces.tracer, scope, request_id)
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            cycle.status = cycle.status or CLIENT_CLOSED_REQUEST  # the client disconnected, or the drain timeout passed
            raise
        except ClientDisconnect:
            cycle.status = cycle.status or CLIENT_CLOSED_REQUEST
        except Exception:
            log.exception("request failed with an unexpected exception")
            if cycle.status:
                raise
            await render_error(InternalError(), request_id, closes=True, shape=find_shape(scope["path"])).send(send)
        finally:
            _record(scope, request_id, cycle.status, time.perf_counter() - begun)
            if span is not None:
                _end_span(span, scope, cycle.status)


def _begin_span(tracer: traces.Tracer, scope: Message, request_id: str) -> traces.Span | None:
    """Return an entered span, or None for probes."""
    if scope["path"] in UNTRACED:
        return None
    return tracer.request(scope["method"], scope["headers"], request_id).__enter__()  # exited in `_end_span`


def _end_span(span: traces.Span, scope: Message, status: int) -> None:
    """Record the route instead of the path, which may contain the signature of a link."""
    route = getattr(scope.get("route"), "path", None)
    facts: dict[str, traces.Fact] = {"http.response.status_code": status, "url.scheme": scope["scheme"]}
    if route is not None:
        facts["http.route"] = route
    span.tell(facts, None if route is None else f"{scope['method']} {route}")
    if status >= 500 or status == CLIENT_CLOSED_REQUEST:
        span.fail(str(status))
    span.__exit__(None, None, None)


def _record(scope: Message, request_id: str, status: int, seconds: float) -> None:
    route, method = getattr(scope.get("route"), "path", None), scope["method"]
    metrics.count_request(method, route, status, seconds)
    path = scope["path"]
    if path.startswith(SHARE):  # its token opens the link
        path = route or f"{SHARE}…"
    logs.tell_request(request_id, method, path, status, seconds, scope["state"].get("account"))
