"""A front before a real server that does what networks and proxies do: lose answers, cut them, refuse for a while."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """Said by the front itself; the server never sees the request."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"<html>a proxy's page</html>"


@dataclass(frozen=True)
class Lose:
    """The server does it, and its answer is lost."""


@dataclass(frozen=True)
class Cut:
    """The answer is cut after so many bytes of its body."""

    after: int


@dataclass(frozen=True)
class Spoil:
    """Another body of the same length."""


Fault = Answer | Lose | Cut | Spoil


@dataclass(frozen=True)
class Seen:
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Front:
    """What came, and what goes wrong next for paths that hold a word."""

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.url = ""
        self.seen: list[Seen] = []
        self.faults: list[tuple[str, Fault]] = []

    def upset(self, word: str, *faults: Fault) -> None:
        """The next requests whose method and path hold the word meet these, in turn."""
        self.faults += [(word, fault) for fault in faults]

    def take(self, request: str) -> Fault | None:
        for number, (word, fault) in enumerate(self.faults):
            if word in request:
                del self.faults[number]
                return fault
        return None

    def of(self, word: str) -> list[Seen]:
        """The requests whose method and path hold the word."""
        return [seen for seen in self.seen if word in f"{seen.method} {seen.path}"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    front: Front

    def handle_one(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.front.seen.append(Seen(self.command, self.path, headers, body))
        fault = self.front.take(f"{self.command} {self.path}")
        self.close_connection = True
        if isinstance(fault, Answer):
            self.send_response(fault.status)
            for name, value in {**fault.headers, "content-length": str(len(fault.body)), "connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(fault.body)
            return
        upstream = http.client.HTTPConnection(self.front.upstream, timeout=300)
        try:
            upstream.request(self.command, self.path, body or None, headers)
            self.pass_on(upstream.getresponse(), fault)
        except OSError:
            pass  # one side is gone, and so is the other
        finally:
            upstream.close()

    def pass_on(self, response: http.client.HTTPResponse, fault: Fault | None) -> None:
        if isinstance(fault, Lose):
            response.read()
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()
        left = fault.after if isinstance(fault, Cut) else None
        while chunk := response.read1(65536):
            told = chunk if left is None else chunk[:left]
            self.wfile.write(told[::-1] if isinstance(fault, Spoil) else told)
            self.wfile.flush()
            if left is not None and (left := left - len(told)) <= 0:
                self.connection.shutdown(socket.SHUT_RDWR)
                return

    do_GET = do_HEAD = do_POST = do_DELETE = do_PATCH = handle_one  # noqa: N815  as the library wants them

    def log_message(self, *_: object) -> None:
        pass


class Door(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass  # a client that hung up


@contextmanager
def fronting(upstream: str) -> Iterator[Front]:
    """A front that serves until the block ends."""
    front = Front(upstream)
    with Door(("127.0.0.1", 0), type("Bound", (Handler,), {"front": front})) as door:
        front.url = f"http://127.0.0.1:{door.server_address[1]}"
        thread = threading.Thread(target=door.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield front
        finally:
            door.shutdown()
            thread.join()
