"""Runs flows in the caller's thread."""

import time
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2

from penstock.client.config import Address
from penstock.client.transport.httpx_options import as_arguments, client_options, connection_failure, head_of
from penstock.client.transport.steps import (
    Call,
    Close,
    Emit,
    Ended,
    Flow,
    Notify,
    Open,
    Pause,
    Read,
    Reply,
    Request,
    Send,
    Work,
    advance,
)

T = TypeVar("T")


class SyncDriver:
    """Connection pool that runs flows. Threads may share it."""

    def __init__(self, address: Address) -> None:
        self._http = httpx2.Client(**client_options(address))
        self._address = address
        weakref.finalize(self, self._http.close)  # closes the pool even if the caller forgets

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def run(self, flow: Flow[T]) -> T:
        """Run a flow and return its result."""
        values = self._drive(flow)
        while True:
            try:
                next(values)
            except StopIteration as end:
                return end.value

    def iterate(self, flow: Flow[Any]) -> Iterator[Any]:
        """Run a flow and yield the values that it emits."""
        yield from self._drive(flow)

    def _drive(self, flow: Flow[T]) -> Generator[Any, None, T]:
        line = _Line(self._http, self._address)
        came: Any = None
        error: Exception | None = None
        try:
            while not isinstance(step := advance(flow, came, error), Ended):
                came, error = None, None
                if isinstance(step, Emit):
                    yield step.value
                    continue
                try:
                    came = line.do(step)
                except Exception as problem:  # noqa: BLE001  the flow decides
                    error = problem
            return step.result
        finally:
            flow.close()
            line.close()


class _Line:
    """Steps of one flow, with its open stream."""

    def __init__(self, http: httpx2.Client, address: Address) -> None:
        self._http = http
        self._address = address
        self._open: httpx2.Response | None = None
        self._chunks: Iterator[bytes] = iter(())

    def do(self, step: Call) -> Any:
        match step:
            case Send(request):
                return self._send(request)
            case Open(request):
                return self._begin(request)
            case Read():
                with self._translated_errors():
                    return next(self._chunks, b"")
            case Close():
                self.close()
            case Pause(seconds):
                time.sleep(seconds)
            case Work(work):
                return work()
            case Notify(call):
                call()
        return None

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _send(self, request: Request) -> Reply:
        with self._translated_errors():
            response = self._http.request(**as_arguments(request, self._address))
        return head_of(response, response.content)

    def _begin(self, request: Request) -> Reply:
        self.close()
        arguments = as_arguments(request, self._address)
        follows = arguments.pop("follow_redirects")
        with self._translated_errors():
            response = self._http.send(self._http.build_request(**arguments), stream=True, follow_redirects=follows)
            if not response.is_success:
                return head_of(response, response.read())
        self._open, self._chunks = response, response.iter_bytes()
        return head_of(response)

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        try:
            yield
        except (httpx2.RequestError, httpx2.StreamError) as error:
            raise connection_failure(error, self._address) from error
