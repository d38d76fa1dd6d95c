"""The HTTP server of a model's process: one path on the loopback, for requests that carry the gateway's key."""

import hmac
import select
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, cast

import msgspec

from penstock_engines.serving.turns import Turns

READ_SECONDS = 60


class Unacceptable(Exception):
    """The request is wrong: `param` names the part of it, such as `input[3]`."""

    def __init__(self, message: str, param: str, code: str = "invalid_value", status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
        self.status = status


class Gone(Exception):
    """The caller has closed its connection."""


class LoopbackServer(ThreadingHTTPServer):
    """One thread for each request. They take turns at the model."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type["LoopbackHandler"], key: str) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.authorization = f"Bearer {key}"
        self.turns = Turns()

    def begin(self) -> str:
        """Serve from a thread, and return the address."""
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server_port}"


class LoopbackHandler(BaseHTTPRequestHandler):
    """Serves one request, and closes the connection."""

    timeout = READ_SECONDS
    path_served: ClassVar[str]
    max_body_bytes: ClassVar[int]

    def answer(self, body: bytes) -> tuple[str, bytes]:
        """Return the content type and the body of the answer, or raise `Unacceptable`."""
        raise NotImplementedError

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait for a turn at the model. Raise `Gone` if the caller has left meanwhile."""
        with cast("LoopbackServer", self.server).turns:
            self._check_caller()
            yield

    def let_others(self, _share: float = 0.0) -> None:
        """Give others that wait a turn in between, within one's own."""
        turns = cast("LoopbackServer", self.server).turns
        turns.hand_on()
        self._check_caller()

    def do_POST(self) -> None:
        """Answer the request, or refuse it in OpenAI's shape."""
        try:
            status, (content_type, body) = 200, self.answer(self._read())
        except Unacceptable as error:
            reason = {"message": str(error), "type": "invalid_request_error", "param": error.param, "code": error.code}
            status, content_type, body = error.status, "application/json", msgspec.json.encode({"error": reason})
        except (Gone, OSError):
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name of the overridden method
        """Log nothing: the gateway does."""

    def _check_caller(self) -> None:
        if _is_closed(self.connection):
            raise Gone

    def _read(self) -> bytes:
        sent = self.headers.get("authorization", "")
        if not hmac.compare_digest(sent.encode(), cast("LoopbackServer", self.server).authorization.encode()):
            raise Unacceptable("The key is wrong.", "authorization", "invalid_api_key", 401)
        if self.path != self.path_served:
            raise Unacceptable(f"Only {self.path_served} is served here.", "path", "not_found", 404)
        length = int(self.headers.get("content-length", "0"))
        if length > self.max_body_bytes:
            raise Unacceptable(f"The body has more than {self.max_body_bytes} bytes.", "input", status=413)
        return self.rfile.read(length)


def _is_closed(connection: socket.socket) -> bool:
    """Return whether the caller has closed the connection; it sends nothing more otherwise."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and not connection.recv(1, socket.MSG_PEEK)
