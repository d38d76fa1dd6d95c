"""CORS: pages of any origin may call with a key. None may use a session's cookie: credentials are never allowed."""

from collections.abc import Awaitable

from penstock.web.server.asgi import CYCLE, Application, Message, Receive, Send

METRICS_PATH = "/metrics"
"""Not readable by pages of other origins."""
EXPOSED = (
    "x-request-id, retry-after, retry-after-ms, x-should-retry, x-ratelimit-limit-requests, "
    "x-ratelimit-limit-tokens, x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, "
    "x-ratelimit-reset-requests, x-ratelimit-reset-tokens, x-ratelimit-limit-jobs, x-ratelimit-remaining-jobs, "
    "x-penstock-cost, x-penstock-vendor, "
    "x-penstock-overhead-ms, x-penstock-cache, x-penstock-left-out, x-penstock-guardrails, request-id, "
    "x-fal-request-id, "
    "idempotency-replayed, reused, reused-ignored, etag, content-range, location, "
    "tus-resumable, tus-version, tus-extension, tus-max-size, upload-offset, upload-length, upload-metadata, "
    "upload-expires, x-penstock-file-token"
)
ALLOWED = (
    "authorization, content-type, content-encoding, accept, idempotency-key, prefer, range, if-none-match, "
    "last-event-id, x-request-id, tus-resumable, upload-length, upload-offset, upload-metadata, "
    "openai-organization, openai-project, openai-beta, x-stainless-arch, "
    "x-stainless-async, x-stainless-custom-poll-interval, x-stainless-helper-method, x-stainless-lang, "
    "x-stainless-os, x-stainless-package-version, x-stainless-poll-helper, x-stainless-read-timeout, "
    "x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, x-stainless-timeout"
)
ORIGIN = f"access-control-allow-origin: *\r\naccess-control-expose-headers: {EXPOSED}\r\n".encode()


class Cors:
    """Answers preflight requests, and adds CORS headers to all other responses."""

    def __init__(self, app: Application) -> None:
        self._app = app

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if (
            scope["type"] == "http"
            and (cycle := scope["extensions"][CYCLE]).head.has_origin
            and scope["path"] != METRICS_PATH
        ):
            cycle.extra += ORIGIN
            if scope["method"] == "OPTIONS" and (wanted := _preflight(scope)) is not None:
                return _answer(wanted, send)
        return self._app(scope, receive, send)


def _preflight(scope: Message) -> bytes | None:
    """Return the headers that a preflight asks for, or None if the request is no preflight."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if b"access-control-request-method" not in headers:
        return None
    return headers.get(b"access-control-request-headers", b"")


async def _answer(wanted: bytes, send: Send) -> None:
    known = {name.strip() for name in ALLOWED.split(",")}
    more = {name.strip().lower() for name in wanted.decode("latin-1").split(",")}
    allowed = known | {name for name in more if name.startswith(("x-", "openai-", "anthropic-"))}
    headers = [
        (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        (b"access-control-allow-headers", ", ".join(sorted(allowed)).encode("latin-1")),
        (b"access-control-max-age", b"86400"),
        (b"vary", b"origin, access-control-request-headers"),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
