"""Every place that answers an error uses the one renderer, with all headers a client's retry logic reads."""

import json
from types import SimpleNamespace

import pytest

from penstock.errors import BodyTooLarge, InvalidApiKey, Overloaded, StoreUnavailable
from penstock.web.server.asgi import CYCLE
from penstock.web.server.body_limits import BodyLimits
from penstock.web.server.connection_limits import ConnectionBounds, Doorman
from penstock.web.server.error_response import render_error
from penstock.web.server.startup_gate import StartupGate


async def call(app, scope):
    """Return the status, headers and body that an application answers."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message["body"] for message in sent[1:])


def test_both_retry_headers_and_the_errors_own_are_rendered():
    error = Overloaded("Full.", retry_after=1.5, headers={"WWW-Authenticate": "Bearer"})
    status, headers, body = render_error(error, "req_1")
    assert (status, json.loads(body)) == (503, {"error": error.body("req_1")})
    assert dict(headers) == {
        b"content-type": b"application/json",
        b"content-length": b"%d" % len(body),
        b"x-should-retry": b"true",
        b"www-authenticate": b"Bearer",
        b"retry-after": b"2",
        b"retry-after-ms": b"1500",
        b"x-request-id": b"req_1",
    }


def test_an_error_without_a_time_has_no_retry_headers():
    headers = dict(render_error(InvalidApiKey(), None, closes=True).headers)
    assert headers.keys() == {b"content-type", b"content-length", b"x-should-retry", b"connection"}
    assert headers[b"x-should-retry"] == b"false"


@pytest.mark.parametrize(("seconds", "header"), [(0, b"1"), (0.0001, b"1"), (3600, b"3600")])
def test_a_client_waits_at_least_a_moment(seconds, header):
    headers = dict(render_error(Overloaded(retry_after=seconds), "req_1").headers)
    assert headers[b"retry-after"] == header
    assert int(headers[b"retry-after-ms"]) >= 1


async def test_the_startup_gate_says_when_to_come_again():
    gate = StartupGate()
    status, headers, body = await call(gate, {"type": "http", "path": "/api/v1/jobs"})
    assert (status, json.loads(body)["error"]["code"]) == (503, StoreUnavailable.code)
    assert (headers[b"retry-after"], headers[b"retry-after-ms"]) == (b"1", b"1000")
    assert headers[b"x-request-id"].decode() == json.loads(body)["error"]["request_id"]
    status, _, body = await call(gate, {"type": "http", "path": "/healthz"})
    assert (status, json.loads(body)) == (200, {"status": "starting"})


async def test_body_limits_answer_what_the_renderer_makes():
    scope = {
        "type": "http",
        "path": "/api/v1/jobs",
        "extensions": {CYCLE: SimpleNamespace(length=11)},
        "state": {"request_id": "req_1"},
    }
    status, headers, body = await call(BodyLimits(None, 10), scope)
    error = BodyTooLarge(json.loads(body)["error"]["message"], suggestion=json.loads(body)["error"]["suggestion"])
    rendered = render_error(error, "req_1", closes=True)
    assert (status, headers, body) == (rendered.status, dict(rendered.headers), rendered.body)


@pytest.mark.parametrize("bounds", [ConnectionBounds(max_connections=1), ConnectionBounds(max_per_address=0)])
def test_a_refused_connection_says_when_to_come_again(bounds):
    refusal = Doorman(bounds).enter("192.0.2.1")
    headers = dict(render_error(refusal, "req_1").headers)
    assert (headers[b"retry-after"], headers[b"retry-after-ms"]) == (b"5", b"5000")
