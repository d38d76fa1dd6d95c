"""Composition of the web application: the pages and the layers around them."""

from collections.abc import Awaitable, Mapping, Sequence
from types import ModuleType

from fastapi import FastAPI

from penstock import __version__
from penstock.gateway import Gateway
from penstock.web import console, own_key
from penstock.web.admin import accounts, audit, keys, ledger, prices, reports, settings, tag_budgets
from penstock.web.api import (
    assets,
    chat_models,
    deliveries,
    events,
    files,
    generations,
    jobs,
    models,
    operations,
    usage,
    vendor_callbacks,
    webhooks,
)
from penstock.web.api.chat import Completions
from penstock.web.api.kept import responses as kept_responses
from penstock.web.api.pipelines import lineage, runs, templates
from penstock.web.api.uploads import tus, verification
from penstock.web.facades import fal, replicate
from penstock.web.facades.mcp import routes as mcp_routes
from penstock.web.facades.openai import images, videos
from penstock.web.openapi import document, reference_page
from penstock.web.people import content, directory, members, sessions, sign_in
from penstock.web.people import keys as person_keys
from penstock.web.responses import HANDLERS
from penstock.web.router import Endpoint, ReadParams, Router
from penstock.web.server.access_log import Tracing
from penstock.web.server.asgi import Application, Message, Receive, Send
from penstock.web.server.body_limits import BodyLimits
from penstock.web.server.cors import Cors
from penstock.web.server.method_override import MethodOverride
from penstock.web.sharing import public, shares

PAGES = (
    generations,
    jobs,
    events,
    tus,
    files,
    assets,
    verification,
    shares,
    public,
    deliveries,
    webhooks,
    templates,
    runs,
    lineage,
    models,
    chat_models,
    kept_responses,
    usage,
    own_key,
    members,
    person_keys,
    content,
    directory,
    sign_in,
    sessions,
    accounts,
    tag_budgets,
    keys,
    ledger,
    prices,
    reports,
    audit,
    settings,
    operations,
    document,
    reference_page,
    console,
    vendor_callbacks,
)

FACADES: Mapping[str, Sequence[ModuleType]] = {
    "images": (images,),
    "videos": (videos,),
    "replicate": replicate.PAGES,
    "fal": fal.PAGES,
    "mcp": (mcp_routes,),
}
"""The pages of each façade, by the name that `facades.off` has for it."""

HOT: Mapping[Endpoint, ReadParams] = {
    generations.generate_with_model: generations.read_no_params,
    generations.generate: generations.read_no_params,
    jobs.get_job: jobs.read_wait,
    events.stream_job: events.read_last_event_id,
    events.feed: events.read_last_event_id,
    images.generate: generations.read_no_params,
    videos.create: generations.read_no_params,
    videos.retrieve: generations.read_no_params,
    **replicate.HOT,
    **fal.HOT,
    mcp_routes.serve: generations.read_no_params,
}
"""The routes that carry nearly all traffic beside chat, which is served in front of them."""


def create_app(gateway: Gateway) -> Application:
    """Return the ASGI application that serves this gateway."""
    off = gateway.settings.facades.off
    open_facades = [page for name, pages in FACADES.items() if name not in off for page in pages]
    app = MethodOverride(_assemble(gateway, (*PAGES, *open_facades)), tus.PATH)
    max_body_bytes = gateway.settings.server.max_body_mb << 20
    served = Tracing(Cors(BodyLimits(Completions(app, gateway, max_body_bytes), max_body_bytes)))
    metrics_port = gateway.settings.server.metrics_port
    return served if metrics_port is None else _TwoPorts(served, create_worker_app(gateway), metrics_port)


def create_worker_app(gateway: Gateway) -> Application:
    """Return the ASGI application of a worker: health, readiness, metrics and nothing else."""
    return Tracing(BodyLimits(_assemble(gateway, (operations, document), has_open_metrics=True), 0))


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


def _assemble(gateway: Gateway, pages: Sequence[ModuleType], *, has_open_metrics: bool = False) -> Application:
    app = FastAPI(
        title="Penstock",
        version=__version__,
        summary="One key, one body shape and one bill for 3D, video and chat models.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
        },  # else FastAPI reads the environment at every request
        exception_handlers=dict(HANDLERS),
    )
    app.state.gateway = gateway
    app.state.serves_chat = chat_models in pages
    app.state.has_open_metrics = has_open_metrics
    app.state.routes = [route for page in pages for route in page.router.routes]
    app.router.routes += app.state.routes  # an included router would match every request again
    app.openapi = lambda: document.document(app, gateway.offers)  # type: ignore[method-assign]
    return Router(app, app.state.routes, HOT)
