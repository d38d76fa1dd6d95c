"""The fast path calls the hot endpoints with what FastAPI would have read, and leaves everything else to it."""

import functools
import inspect
import json
from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from penstock.web.responses import Json
from penstock.web.router import HANDLERS, Router
from penstock.web.routes import HOT, PAGES
from penstock.web.server.asgi import CYCLE

ROUTES = [route for page in PAGES for route in page.router.routes if route.endpoint in HOT]
JOB, MODEL = "job_0123456789", "sim/text:2"
GOOD = ["", "wait=1", "wait=60", "limit=3", "after=evt_0000000000000", "wait=05", "other=1", "wait=7&other=1"]
BAD = ["wait=0", "wait=61", "wait=", "wait=x", "limit=0", "after=x"]


@functools.cache
def build(hot):
    """Return a router whose endpoints have the signatures of the real ones, and only report their arguments."""
    app, readers = FastAPI(redirect_slashes=False, openapi_url=None, exception_handlers=dict(HANDLERS)), {}
    app.state.routes = app.router.routes
    for route in ROUTES:

        @functools.wraps(route.endpoint)
        async def report(request, **params: object):
            return Json(params)

        app.router.routes.append(APIRoute(route.path, report, methods=route.methods))
        readers[report] = HOT[route.endpoint]
    return Router(app, app.router.routes, readers if hot else {})


async def call(router, method, path, query="", headers=()):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": list(headers),
        "extensions": {CYCLE: SimpleNamespace(status=0)},
        "state": {"request_id": "req_1"},
        "root_path": "",
        "server": ("localhost", 80),
        "client": ("localhost", 1),
        "scheme": "http",
        "http_version": "1.1",
    }
    await router(scope, receive, send)
    return (
        sent[0]["status"],
        b"".join(message["body"] for message in sent[1:]),
        getattr(scope.get("route"), "path", None),
    )


def path_of(route):
    return route.path.replace("{job_id}", JOB).replace("{model_id:path}", MODEL)


def test_the_hot_routes_are_those_that_carry_the_traffic():
    assert {(method, route.path) for route in ROUTES for method in route.methods} == {
        ("POST", "/api/v1/{model_id:path}/generate"),
        ("POST", "/model/v1/generation"),
        ("GET", "/api/v1/jobs/{job_id}"),
        ("GET", "/model/v1/generation/{job_id}"),
        ("GET", "/api/v1/jobs/{job_id}/events"),
        ("GET", "/api/v1/events"),
    }


def test_a_hot_endpoint_can_be_called_without_what_the_fast_path_leaves_out():
    for route in ROUTES:
        in_path = {"request", *route.param_convertors}
        others = [each for name, each in inspect.signature(route.endpoint).parameters.items() if name not in in_path]
        assert all(each.default is None or isinstance(each.default, int) for each in others)


@pytest.mark.parametrize("headers", [(), [(b"last-event-id", b"evt_1")]])
@pytest.mark.parametrize("query", [*GOOD, *BAD])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
async def test_both_ways_give_the_same_answer(route, query, headers):
    method, path = min(route.methods), path_of(route)
    fast = await call(build(True), method, path, query, headers)
    slow = await call(build(False), method, path, query, headers)
    assert (fast[0], fast[2]) == (slow[0], slow[2])
    if fast[0] != 200:
        assert fast[1] == slow[1]
        return
    defaults = {
        name: each.default
        for name, each in inspect.signature(route.endpoint).parameters.items()
        if each.default is not inspect.Parameter.empty
    }
    assert defaults | json.loads(fast[1]) == defaults | json.loads(slow[1])


async def test_a_newline_at_the_end_of_a_path_is_not_ignored():
    for hot in (True, False):
        status, _, route = await call(build(hot), "GET", "/api/v1/events\n")
        assert (status, route) == (404, None)
