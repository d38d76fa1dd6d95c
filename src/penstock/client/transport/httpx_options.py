"""Conversion of requests and answers for httpx2, for both drivers."""

import json
import ssl
from functools import cache
from typing import Any

import httpx2

from penstock.client.config import Address
from penstock.client.errors import BadInput, ConnectionFailed
from penstock.client.transport.steps import Reply, Request

NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


@cache
def _trusted() -> ssl.SSLContext:
    """Load the certificate authorities once, which is the slowest part of making a client."""
    return httpx2.create_ssl_context()


def client_options(address: Address) -> dict[str, Any]:
    """Return httpx2's client options: connection limits, timeouts, and no proxy for this machine."""
    limits = httpx2.Limits(
        max_connections=address.connections, max_keepalive_connections=address.connections, keepalive_expiry=30.0
    )
    return {
        "headers": address.headers(),
        "limits": limits,
        "timeout": httpx2.Timeout(address.timeout),
        "trust_env": not address.is_local,
        "verify": _trusted(),
        "follow_redirects": False,
    }


def as_arguments(request: Request, address: Address) -> dict[str, Any]:
    """Return httpx2's arguments for a request."""
    arguments: dict[str, Any] = {
        "method": request.method,
        "url": address.base_url + request.path,
        "headers": dict(request.headers),
        "timeout": httpx2.Timeout(
            address.timeout,
            read=address.timeout if request.read_seconds is None else request.read_seconds,
            connect=min(address.timeout, 10.0),
            pool=None,
        ),
        "follow_redirects": request.follows,
    }
    if request.query:
        arguments["params"] = dict(request.query)
    if request.upload is not None:
        arguments["files"] = {"file": (request.upload.name, request.upload.content)}
        arguments["data"] = dict(request.fields)
    elif request.content is not None:
        arguments["content"] = request.content
    elif request.json is not None:
        arguments["content"] = _encode(request.json)
        arguments["headers"]["content-type"] = "application/json"
    return arguments


def _encode(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise BadInput(f"The arguments cannot be written as JSON: {error}.") from None


def head_of(response: httpx2.Response, body: bytes = b"") -> Reply:
    """Convert an answer of httpx2 for flows."""
    return Reply(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)


def connection_failure(error: Exception, address: Address) -> ConnectionFailed:
    """Convert an exception of httpx2, without the key in the message."""
    if isinstance(error, httpx2.TimeoutException):
        why = "it did not answer in time"
    else:
        why = str(error) or type(error).__name__
    sent = not isinstance(error, NEVER_SENT)
    what = "The connection to" if sent else "No connection to"
    return ConnectionFailed(f"{what} {address.base_url}{' broke' if sent else ''}: {why}.", sent=sent)
