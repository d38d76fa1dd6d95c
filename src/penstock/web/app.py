"""Composition of the web application: the layers around the routes."""

import asyncio
import gc
import importlib
import sys
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Final, TypeAlias

from penstock.gateway import Gateway
from penstock.web.api.chat import Completions
from penstock.web.health import HealthChecks
from penstock.web.server.access_log import Tracing
from penstock.web.server.asgi import Application, Message, Receive, Send
from penstock.web.server.body_limits import BodyLimits
from penstock.web.server.cors import Cors

ROUTES: Final = "penstock.web.routes"
Assemble: TypeAlias = Callable[[ModuleType], Application]


def create_app(gateway: Gateway) -> Application:
    """Return the ASGI application that serves this gateway."""
    off = gateway.settings.facades.off
    routes = LateRoutes(lambda module: module.assemble(gateway, off))
    checked = HealthChecks(routes, gateway, serves_chat=True, has_open_metrics=False)
    max_body_bytes = gateway.settings.server.max_body_mb << 20
    served = Tracing(Cors(BodyLimits(Completions(checked, gateway, max_body_bytes), max_body_bytes)))
    metrics_port = gateway.settings.server.metrics_port
    return served if metrics_port is None else _TwoPorts(served, create_worker_app(gateway), metrics_port)


def create_worker_app(gateway: Gateway) -> Application:
    """Return the ASGI application of a worker: health, readiness, metrics and nothing else."""
    routes = LateRoutes(lambda module: module.assemble_worker(gateway))
    return Tracing(BodyLimits(HealthChecks(routes, gateway, serves_chat=False, has_open_metrics=True), 0))


class LateRoutes:
    """Serves the routes that FastAPI runs. For the first request, they are imported in a thread."""

    def __init__(self, assemble: Assemble) -> None:
        self._assemble = assemble
        self._app: Application | None = None
        self._turn = asyncio.Lock()

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if self._app is None and ROUTES in sys.modules and not self._turn.locked():  # else it waits for the import
            self._app = self._assemble(importlib.import_module(ROUTES))
        return self._serve_first(scope, receive, send) if self._app is None else self._app(scope, receive, send)

    async def _serve_first(self, scope: Message, receive: Receive, send: Send) -> None:
        async with self._turn:
            if self._app is None:
                self._app = self._assemble(await asyncio.to_thread(importlib.import_module, ROUTES))
                gc.freeze()  # loaded modules stay, so that collections skip them
        await self._app(scope, receive, send)


class _TwoPorts:
    """Serves one application on the public port and another on the metrics port."""

    def __init__(self, app: Application, metrics_app: Application, metrics_port: int) -> None:
        self._app = app
        self._metrics_app = metrics_app
        self._metrics_port = metrics_port

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if scope["type"] == "http" and scope["server"] and scope["server"][1] == self._metrics_port:
            return self._metrics_app(scope, receive, send)
        return self._app(scope, receive, send)
