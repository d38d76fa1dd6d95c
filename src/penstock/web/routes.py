"""All routes that FastAPI runs. They are slow to load: `LateRoutes` imports this module."""

from collections.abc import Collection, Mapping, Sequence
from types import ModuleType

from fastapi import FastAPI

from penstock import __version__
from penstock.gateway import Gateway
from penstock.web import console
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
from penstock.web.api.kept import responses as kept_responses
from penstock.web.api.pipelines import lineage, runs, templates
from penstock.web.api.uploads import tus, verification
from penstock.web.facades import fal, replicate
from penstock.web.facades.mcp import routes as mcp_routes
from penstock.web.facades.openai import images, videos
from penstock.web.openapi import document, reference_page
from penstock.web.people import content, directory, members, own_key, sessions, sign_in
from penstock.web.people import keys as person_keys
from penstock.web.router import HANDLERS, Endpoint, ReadParams, Router
from penstock.web.server.asgi import Application
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


def assemble(gateway: Gateway, off: Collection[str]) -> Application:
    """Return a server's routes, without the façades that are off."""
    open_facades = [page for name, pages in FACADES.items() if name not in off for page in pages]
    return MethodOverride(_assemble(gateway, (*PAGES, *open_facades)), tus.PATH)


def assemble_worker(gateway: Gateway) -> Application:
    """Return a worker's routes."""
    return _assemble(gateway, (operations, document))


def _assemble(gateway: Gateway, pages: Sequence[ModuleType]) -> Application:
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
    app.state.routes = [route for page in pages for route in page.router.routes]
    app.router.routes += app.state.routes  # an included router would match every request again
    app.openapi = lambda: document.document(app, gateway.offers)  # type: ignore[method-assign]
    return Router(app, app.state.routes, HOT)
