"""The process that holds MiniLM's weights: an HTTP server on the loopback with OpenAI's embeddings endpoint."""

import base64
import hmac
import select
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock_engines.minilm.encoder import Encoder, TooLong, plan_batches
from penstock_engines.minilm.model_facts import DIMENSIONS
from penstock_engines.minilm.turns import Turns
from penstock_engines.serving.child_side import begin, wait_and_exit

PATH = "/v1/embeddings"
MAX_BODY_BYTES = 64 << 20
MAX_REQUEST_TOKENS = 300_000
"""Tokens of one request, as OpenAI has it: about two minutes of work."""
READ_SECONDS = 60


class Unacceptable(Exception):
    """The request is wrong: `param` names the part of it, such as `input[3]`."""

    def __init__(self, message: str, param: str = "input", code: str = "invalid_value", status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
        self.status = status


class Gone(Exception):
    """The caller has closed its connection."""


class EmbeddingRequest(msgspec.Struct):
    """The fields that are read."""

    model: str
    input: str | list[str]
    encoding_format: str = "float"


class EmbeddingHttpServer(ThreadingHTTPServer):
    """One thread for each request. They take turns of one batch, so that a long request does not block a short one."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, encoder: Encoder, key: str) -> None:
        super().__init__(("127.0.0.1", 0), EmbeddingHandler)
        self.encoder = encoder
        self.authorization = f"Bearer {key}"
        self.turns = Turns()


class EmbeddingHandler(BaseHTTPRequestHandler):
    """Serves one request, and closes the connection."""

    timeout = READ_SECONDS

    @property
    def _server(self) -> EmbeddingHttpServer:
        return cast("EmbeddingHttpServer", self.server)

    def do_POST(self) -> None:
        """Answer with the vectors, or with an error in OpenAI's shape."""
        try:
            status, body = 200, self._answer()
        except Unacceptable as error:
            reason = {"message": str(error), "type": "invalid_request_error", "param": error.param, "code": error.code}
            status, body = error.status, msgspec.json.encode({"error": reason})
        except (Gone, OSError):
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name of the overridden method
        """Log nothing: the gateway does."""

    def _answer(self) -> bytes:
        sent = self.headers.get("authorization", "")
        if not hmac.compare_digest(sent.encode(), self._server.authorization.encode()):
            raise Unacceptable("The key is wrong.", "authorization", "invalid_api_key", 401)
        if self.path != PATH:
            raise Unacceptable(f"Only {PATH} is served here.", "path", "not_found", 404)
        length = int(self.headers.get("content-length", "0"))
        if length > MAX_BODY_BYTES:
            raise Unacceptable(f"The body has more than {MAX_BODY_BYTES} bytes.", status=413)
        try:
            request = msgspec.json.decode(self.rfile.read(length), type=EmbeddingRequest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unacceptable(f"Invalid body: {error}.") from None
        is_list = not isinstance(request.input, str)
        tokens = self._split([request.input] if isinstance(request.input, str) else request.input, is_list=is_list)
        return _write(self._encode(tokens), request, sum(map(len, tokens)))

    def _split(self, texts: list[str], *, is_list: bool) -> list[list[int]]:
        """Return the tokens of each text."""
        rows: list[list[int]] = []
        total = 0
        for index, text in enumerate(texts):
            try:
                rows.append(self._server.encoder.split(text))
            except TooLong as error:
                place = f"input[{index}]" if is_list else "input"
                message = f"Invalid '{place}': {error}. Split it into shorter texts."
                raise Unacceptable(message, place, "string_above_max_length") from None
            total += len(rows[-1])
            if total > MAX_REQUEST_TOKENS:
                message = f"Invalid 'input': all texts together have more than {MAX_REQUEST_TOKENS} tokens."
                raise Unacceptable(f"{message} Send fewer at once.", "input", "max_tokens_per_request")
        return rows

    def _encode(self, rows: list[list[int]]) -> NDArray[np.float32]:
        """Return the vector of each text, batch by batch. Other requests run in between."""
        vectors = np.zeros((len(rows), DIMENSIONS), np.float32)
        for batch in plan_batches([len(row) for row in rows]):
            with self._server.turns:
                if _is_closed(self.connection):
                    raise Gone
                vectors[batch] = self._server.encoder.encode([rows[index] for index in batch])
        return vectors


def _is_closed(connection: socket.socket) -> bool:
    """Return whether the caller has closed the connection; it sends nothing more otherwise."""
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and not connection.recv(1, socket.MSG_PEEK)


def _write(vectors: NDArray[np.float32], request: EmbeddingRequest, tokens: int) -> bytes:
    wide = vectors.astype("<f4")
    as_text = request.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(row.tobytes()).decode() if as_text else row.tolist(),
        }
        for index, row in enumerate(wide)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return msgspec.json.encode({"object": "list", "data": data, "model": request.model, "usage": usage})


def main() -> None:
    """Read the order, load, report the address, and serve until the gateway closes the pipe or dies."""
    order, report_address = begin()
    server = EmbeddingHttpServer(Encoder(Path(order["weights"]), order["threads"]), order["key"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    report_address(f"http://127.0.0.1:{server.server_port}")
    wait_and_exit()


if __name__ == "__main__":
    main()
