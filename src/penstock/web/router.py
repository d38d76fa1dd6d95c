"""A fast path in front of FastAPI: the few hot routes are called directly, FastAPI runs every other request."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from penstock.catalog.params import shorten
from penstock.errors import (
    Detail,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    PenstockError,
    UnsupportedMediaType,
)
from penstock.web.responses import answer_error
from penstock.web.server.asgi import CYCLE, Message, Receive, Send

Endpoint: TypeAlias = Callable[..., Awaitable[Response]]
ReadParams: TypeAlias = Callable[[Request], Mapping[str, Any] | None]
"""Returns the endpoint's query and header parameters; None where FastAPI has to read, or refuse, them."""


class Router:
    """Calls the hot endpoints itself if their parameters are plain, and hands all other requests to FastAPI."""

    def __init__(self, app: FastAPI, routes: Sequence[Route], hot: Mapping[Endpoint, ReadParams]) -> None:
        self._app = app
        self._hot: dict[str, list[_HotRoute]] = {}
        for route in routes:
            if (read_params := hot.get(route.endpoint)) is not None:
                for method in route.methods or ():
                    self._hot.setdefault(method, []).append(_HotRoute(route, route.path_regex.fullmatch, read_params))

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if scope["type"] == "http":
            path: str = scope["path"]
            for hot in self._hot.get(scope["method"], ()):
                if found := hot.match(path):
                    request = Request(scope, receive, send)
                    if (params := hot.read_params(request)) is not None:
                        return self._serve(hot.route, request, {**found.groupdict(), **params}, send)
                    break
            if path.endswith("\n"):  # FastAPI would ignore one newline at the end
                scope["path"] = path + "\n"
        return self._app(scope, receive, send)

    async def _serve(self, route: Route, request: Request, params: Mapping[str, Any], send: Send) -> None:
        """Call the endpoint and send its response. Errors are answered as FastAPI would answer them."""
        scope, receive = request.scope, request.receive
        scope["app"], scope["route"] = self._app, route
        try:
            response: Response = await route.endpoint(request=request, **params)
            await response(scope, receive, send)
        except Exception as error:
            if scope["extensions"][CYCLE].status:  # the response has begun
                raise
            answer = next(HANDLERS[kind] for kind in type(error).__mro__ if kind in HANDLERS)
            await (await answer(request, error))(scope, receive, send)
            if answer is answer_crash:
                raise


class _HotRoute(NamedTuple):
    """A route, the pattern of its path, and the reader of its other parameters."""

    route: Route
    match: Callable[[str], Any]
    read_params: ReadParams


# -- errors


async def answer_http_exception(request: Request, error: Exception) -> Response:
    """Answer an error of the framework, such as an unknown path, in the error shape."""
    assert isinstance(error, HTTPException)  # noqa: S101
    path = shorten(request.url.path)
    match error.status_code:
        case 404:
            ours: PenstockError = NotFound(f"There is nothing at {path}.", suggestion="GET /docs lists every path.")
        case 405:
            allowed = ", ".join(sorted(_methods_at(request)))
            ours = MethodNotAllowed(f"{path} takes {allowed}, not {request.method}.", headers={"allow": allowed})
        case 415:
            ours = UnsupportedMediaType()
        case _:
            ours = InvalidRequest(str(error.detail))
    return await answer_error(request, ours)


def _methods_at(request: Request) -> set[str]:
    """Return the methods of all routes at this path. Starlette would name those of the first route only."""
    routes: list[Route] = request.app.state.routes
    matching = [route for route in routes if route.path_regex.match(request.url.path)]
    return {method for route in matching for method in route.methods or ()}


async def answer_invalid(request: Request, error: Exception) -> Response:
    """Answer invalid query, path and header parameters, all of them together."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    details = [
        Detail(".".join(str(part) for part in item["loc"][1:]), f"{item['msg']}, got {shorten(item.get('input'))}.")
        for item in error.errors()
    ]
    first = details[0]
    return await answer_error(
        request, InvalidRequest(f"{first.loc}: {first.message}", param=first.loc, details=details)
    )


async def answer_crash(request: Request, error: Exception) -> Response:
    """Answer an unexpected exception without any detail. It is logged by the caller."""
    del error
    return await answer_error(request, InternalError())


HANDLERS: Mapping[Any, Any] = {
    Exception: answer_crash,
    PenstockError: answer_error,
    HTTPException: answer_http_exception,
    RequestValidationError: answer_invalid,
}
