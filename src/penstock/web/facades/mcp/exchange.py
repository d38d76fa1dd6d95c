"""One JSON-RPC request: the official server's rules for both generations of the protocol, on our own transport.

Only `routes` imports this module, on the first call: the `mcp` package takes most of a second to load.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import mcp_types
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import version as versions

from penstock import __version__
from penstock.catalog.params import as_object
from penstock.web.auth import Caller
from penstock.web.facades.mcp import arguments, record, resources, resuming, tasks
from penstock.web.facades.mcp.calls import AgentCall, UnknownTool
from penstock.web.facades.mcp.context import Context, call_of
from penstock.web.facades.mcp.record import RefusedMessage
from penstock.web.facades.mcp.task_record import create_handshake_task
from penstock.web.facades.mcp.tools import describe_tools

INSTRUCTIONS: Final = (
    "Generates images, videos, sound and 3D models. Call list_models, then the tool that generates with one of them. "
    "Params are described by describe_model, costs by estimate. If a result says that the job goes on, call "
    "job_status with its id and wait_seconds; a job is never lost when a call ends."
)


@dataclass
class _Dispatch:
    """The transport's side of one request, as the official server wants it: no way back to the client."""

    request_id: str | int
    message_metadata: ServerMessageMetadata
    transport: TransportContext = field(default_factory=lambda: TransportContext(kind="http", can_send_request=False))
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = field(default=False, init=False)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse: there is no way back."""
        del params, opts
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send nothing: progress is written by whoever waits for the job."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send nothing, see `notify`."""


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """A request that can be answered, perhaps more than once: now, and when its job is done."""

    id: str | int
    method: str
    params: Mapping[str, Any]
    connection: Connection
    is_modern: bool
    call: AgentCall

    @property
    def progress_token(self) -> str | int | None:
        """Return the client's name for reports of progress."""
        token = as_object(self.params.get("_meta")).get("progressToken")
        return token if isinstance(token, str | int) and not isinstance(token, bool) else None

    async def answer(self) -> tuple[int, dict[str, Any]]:
        """Return the HTTP status and the JSON-RPC answer."""
        status, answer = await self._serve(self.method, self.params)
        found = answer.get("result", {})
        if self.call.created is not None:  # the server's own rules know no such result
            answer["result"] = create_handshake_task(self.call.created, self.call.caller.gateway.clock())
        elif self.method == "initialize" and found.get("protocolVersion") == tasks.HANDSHAKE_VERSION:
            found["capabilities"]["tasks"] = tasks.CAPABILITY
        return status, answer

    async def finish(self, job_id: str) -> dict[str, Any]:
        """Return the JSON-RPC answer with the job as it now is."""
        if self.method == "tasks/result":
            return (await self._serve(self.method, self.params))[1]
        self.call.takes_tasks = False
        params = {**self.params, "name": "job_status", "arguments": {"job_id": job_id}}
        return (await self._serve("tools/call", params))[1]

    def prime(self, job_id: str) -> bytes:
        """Return the event by which a broken stream is taken up again, for clients that know it."""
        if self.connection.protocol_version != tasks.HANDSHAKE_VERSION:
            return b""
        return resuming.prime(resuming.BrokenStream(job_id, self.id, self.method, self.progress_token))

    async def _serve(self, method: str, params: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        dispatch = _Dispatch(self.id, ServerMessageMetadata(request_context=self.call))
        try:
            result = await serve_one(SERVER, dispatch, method, params, connection=self.connection, lifespan_state=None)
        except Exception as error:  # noqa: BLE001  the library's own table, which logs what is unexpected
            refused = modern_error_data(error)
            status = ERROR_CODE_HTTP_STATUS.get(refused.code, 200) if self.is_modern else 200
            return status, write_error(self.id, refused.code, refused.message, refused.data)
        return 200, {"jsonrpc": "2.0", "id": self.id, "result": result}


def open_exchange(caller: Caller, body: Mapping[str, Any]) -> ToolExchange | RefusedMessage:
    """Return the exchange of a request, or its refusal."""
    request_id, params = body.get("id"), body.get("params", {})
    try:
        mcp_types.JSONRPCRequest.model_validate(body)
    except ValueError:
        message = "The body should be one JSON-RPC 2.0 request or notification: `jsonrpc`, `id`, `method`, `params`."
        return RefusedMessage(400, write_error(None, mcp_types.INVALID_REQUEST, message))
    assert isinstance(request_id, str | int)  # noqa: S101  just validated
    headers = caller.request.headers
    version = headers.get("mcp-protocol-version")
    if version is None or version in versions.HANDSHAKE_PROTOCOL_VERSIONS:
        connection = Connection.from_envelope(version or "2025-03-26", None, None)
        return ToolExchange(
            request_id, body["method"], params or {}, connection, is_modern=False, call=AgentCall(caller)
        )
    if (twice := find_duplicated_routing_header(headers.items())) is not None:
        return RefusedMessage(
            400, write_error(request_id, mcp_types.HEADER_MISMATCH, f"{twice} header appears more than once")
        )
    found = classify_inbound_request(body, headers=dict(headers))
    if isinstance(found, InboundLadderRejection):
        status = ERROR_CODE_HTTP_STATUS.get(found.code, 200)
        return RefusedMessage(status, write_error(request_id, found.code, found.message, found.data))
    connection = Connection.from_envelope(found.protocol_version, found.client_info, found.client_capabilities)
    call = AgentCall(caller, takes_tasks=_takes_tasks(found.client_capabilities))
    return ToolExchange(request_id, body["method"], params or {}, connection, is_modern=True, call=call)


def resume_exchange(caller: Caller, event_id: str) -> ToolExchange | None:
    """Return the exchange whose stream broke after this event, or None if there is no such event."""
    stream = resuming.read_event_id(event_id)
    version = caller.request.headers.get("mcp-protocol-version")
    if stream is None or version != tasks.HANDSHAKE_VERSION:
        return None
    given = {"job_id": stream.job_id, "wait_seconds": arguments.USUAL_WAIT_SECONDS}
    params: dict[str, Any] = {"name": "job_status", "arguments": given, "taskId": stream.job_id}
    if stream.progress_token is not None:
        params["_meta"] = {"progressToken": stream.progress_token}
    method = stream.method if stream.method == "tasks/result" else "tools/call"
    connection = Connection.from_envelope(version, None, None)
    return ToolExchange(stream.request_id, method, params, connection, is_modern=False, call=AgentCall(caller))


def write_error(request_id: str | int | None, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return a JSON-RPC error."""
    error = {"code": code, "message": message} | ({} if data in (None, "") else {"data": data})
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def _takes_tasks(capabilities: Any) -> bool:
    return tasks.EXTENSION in as_object(as_object(capabilities).get("extensions"))


# -- methods


async def _list_tools(context: Context, params: mcp_types.PaginatedRequestParams) -> dict[str, Any]:
    del params
    caller = call_of(context).caller
    found = describe_tools(
        caller.gateway.offers, caller.key, has_tasks=context.protocol_version == tasks.HANDSHAKE_VERSION
    )
    return {"resultType": "complete", "tools": found, "ttlMs": 60_000, "cacheScope": "private"}


async def _call_tool(context: Context, params: mcp_types.CallToolRequestParams) -> dict[str, Any]:
    if params.task is not None and context.protocol_version == tasks.HANDSHAKE_VERSION:
        start = tasks.start(context, params)
    else:
        start = call_of(context).answer(params.name, params.arguments or {})
    try:
        result = await start
    except UnknownTool as error:
        raise MCPError(mcp_types.INVALID_PARAMS, str(error)) from None
    return result if result["resultType"] == "task" else record.fit(result, context.protocol_version)


def _make_server() -> Server[Any]:
    server: Server[Any] = Server(
        "penstock",
        version=__version__,
        title="Penstock",
        instructions=INSTRUCTIONS,
    )
    server.middleware.clear()  # its spans: the gateway has its own
    server.add_request_handler("tools/list", mcp_types.PaginatedRequestParams, _list_tools)
    server.add_request_handler("tools/call", mcp_types.CallToolRequestParams, _call_tool)
    tasks.add_handlers(server)
    resources.add_handlers(server)
    return server


SERVER: Final = _make_server()
