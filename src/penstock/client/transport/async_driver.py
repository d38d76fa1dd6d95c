"""Runs flows in an event loop of asyncio or trio."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
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


class AsyncDriver:
    """Connection pool that runs flows."""

    def __init__(self, address: Address) -> None:
        self._http = httpx2.AsyncClient(**client_options(address))
        self._address = address

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow and return its result."""
        ended = Ended(None)
        async for value in self._drive(flow):
            if isinstance(value, Ended):
                ended = value
        return ended.result

    async def iterate(self, flow: Flow[Any]) -> AsyncGenerator[Any]:
        """Run a flow and yield the values that it emits."""
        driven = self._drive(flow)
        try:
            async for value in driven:
                if not isinstance(value, Ended):
                    yield value
        finally:
            await driven.aclose()

    async def _drive(self, flow: Flow[Any]) -> AsyncGenerator[Any]:
        """Yield the emitted values, and finally an Ended."""
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
                    came = await line.do(step)
                except Exception as problem:  # noqa: BLE001  the flow decides
                    error = problem
            yield step
        finally:
            flow.close()
            with anyio.CancelScope(shield=True):
                await line.close()


class _Line:
    """Steps of one flow, with its open stream."""

    def __init__(self, http: httpx2.AsyncClient, address: Address) -> None:
        self._http = http
        self._address = address
        self._open: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def do(self, step: Call) -> Any:
        match step:
            case Send(request):
                return await self._send(request)
            case Open(request):
                return await self._begin(request)
            case Read():
                with self._translated_errors():
                    return b"" if self._chunks is None else await anext(self._chunks, b"")
            case Close():
                await self.close()
            case Pause(seconds):
                await anyio.sleep(seconds)
            case Work(work):
                return await anyio.to_thread.run_sync(work)
            case Notify(call):
                await _await_if_needed(call())
        return None

    async def close(self) -> None:
        if self._open is not None:
            await self._open.aclose()
            self._open = None

    async def _send(self, request: Request) -> Reply:
        with self._translated_errors():
            response = await self._http.request(**as_arguments(request, self._address))
        return head_of(response, response.content)

    async def _begin(self, request: Request) -> Reply:
        await self.close()
        arguments = as_arguments(request, self._address)
        follows = arguments.pop("follow_redirects")
        with self._translated_errors():
            response = await self._http.send(
                self._http.build_request(**arguments), stream=True, follow_redirects=follows
            )
            if not response.is_success:
                return head_of(response, await response.aread())
        self._open, self._chunks = response, response.aiter_bytes()
        return head_of(response)

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        try:
            yield
        except (httpx2.RequestError, httpx2.StreamError) as error:
            raise connection_failure(error, self._address) from error


async def _await_if_needed(result: object) -> None:
    if isawaitable(result):
        await result
