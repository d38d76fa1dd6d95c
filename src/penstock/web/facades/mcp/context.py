"""The caller behind a message that the official server handles, and refusals as it wants them."""

from typing import Any, Final

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import version as versions

from penstock.domain.api_keys import Scope
from penstock.errors import PenstockError
from penstock.web.auth import Caller, require_scope
from penstock.web.facades.mcp.calls import AgentCall

Context = ServerRequestContext[Any, Any]
PAGE: Final = 50
"""Jobs on a page of a list."""


def call_of(context: Context) -> AgentCall:
    """Return the call that a message is part of."""
    call = context.request
    assert isinstance(call, AgentCall)  # noqa: S101  every exchange has one
    return call


def admitted(context: Context, scope: Scope) -> Caller:
    """Return the caller if its key has this scope."""
    caller = call_of(context).caller
    try:
        require_scope(caller.key, scope)
    except PenstockError as error:
        raise refusal(error) from None
    return caller


def is_modern(context: Context) -> bool:
    """Return whether the message is of a version without a handshake."""
    return context.protocol_version in versions.MODERN_PROTOCOL_VERSIONS


def refusal(error: PenstockError, code: int = mcp_types.INVALID_PARAMS) -> MCPError:
    """Return the JSON-RPC error for one of ours."""
    return MCPError(code, error.message, {"code": error.code, "status": error.status})


def unknown_method(context: Context) -> MCPError:
    """Return the JSON-RPC error for a method that this version does not have."""
    return MCPError(mcp_types.METHOD_NOT_FOUND, "Method not found", context.method)
