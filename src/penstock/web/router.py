"""Connects each request to the function that answers it: FastAPI describes the routes, and does not run for each."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.responses import Response

from penstock.web.responses import HANDLERS, answer_crash
from penstock.web.server.asgi import CYCLE, Message, Receive, Send

NOTHING: Final[Mapping[str, Any]] = {}


class Router:
    """Answers what a route takes; whatever none takes is the framework's to refuse."""

    def __init__(self, app: FastAPI, routes: Sequence[APIRoute]) -> None:
        self._app = app
        self._lines: dict[str, list[_Endpoint]] = {}
        for route in routes:
            for method in route.methods or ():
                self._lines.setdefault(method, []).append(_Endpoint(route))

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if scope["type"] == "http":
            path: str = scope["path"]
            for line in self._lines.get(scope["method"], ()):
                if found := line.match(path):
                    return self._serve(line, found.groupdict(), scope, receive, send)
            if path.endswith("\n"):  # the framework would pass over one
                scope["path"] = path + "\n"
        return self._app(scope, receive, send)

    async def _serve(
        self, line: "_Endpoint", given: dict[str, str], scope: Message, receive: Receive, send: Send
    ) -> None:
        scope["app"], scope["route"] = self._app, line.route
        request = Request(scope, receive, send)
        try:
            response = await line.answer(request, given)
            await response(scope, receive, send)
        except Exception as error:
            if scope["extensions"][CYCLE].status:  # too late for another answer
                raise
            answer = next(HANDLERS[kind] for kind in type(error).__mro__ if kind in HANDLERS)
            await (await answer(request, error))(scope, receive, send)
            if answer is answer_crash:
                raise


class _Endpoint:
    """A route as it is called: with the texts in its path, and what it takes from the query and the head."""

    def __init__(self, route: APIRoute) -> None:
        told = route.dependant
        self.route = route
        self.match = route.path_regex.fullmatch
        self._call: Callable[..., Awaitable[Response]] = route.endpoint
        self._takes_request = told.request_param_name is not None
        self._path, self._query, self._head = told.path_params, told.query_params, told.header_params
        self._defaults, missing = request_params_to_args([*self._query, *self._head], NOTHING)
        has_plain_path = all(field.field_info.annotation is str for field in self._path)
        self._is_plain = has_plain_path and not (self._head or missing)

    def answer(self, request: Request, given: dict[str, str]) -> Awaitable[Response]:
        """What the function answers, given what the framework makes of its parameters."""
        values: dict[str, Any] = given
        if not self._is_plain or (self._query and request.scope["query_string"]):
            values = self._read(request, given)
        elif self._query:
            values = self._defaults | given
        return self._call(**values, request=request) if self._takes_request else self._call(**values)

    def _read(self, request: Request, given: Mapping[str, str]) -> dict[str, Any]:
        values = self._defaults.copy()
        errors: list[Any] = []
        places = ((self._path, given), (self._query, request.query_params), (self._head, request.headers))
        for fields, told in places:
            sent = [field for field in fields if field.alias in told or field.field_info.is_required()]
            found, wrong = request_params_to_args(sent, told)
            values |= found
            errors += wrong
        if errors:
            raise RequestValidationError(errors)
        return values
