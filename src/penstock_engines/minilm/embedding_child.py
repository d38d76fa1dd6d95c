"""The process that holds MiniLM's weights: an HTTP server on the loopback with OpenAI's embeddings endpoint."""

import base64
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock_engines.minilm.encoder import Encoder, TooLong, plan_batches
from penstock_engines.minilm.model_facts import DIMENSIONS
from penstock_engines.serving.child_side import begin, wait_and_exit
from penstock_engines.serving.loopback_http import LoopbackHandler, LoopbackServer, Unacceptable

PATH = "/v1/embeddings"
MAX_BODY_BYTES = 64 << 20
MAX_REQUEST_TOKENS = 300_000
"""Tokens of one request, as OpenAI has it: about two minutes of work."""


class EmbeddingRequest(msgspec.Struct):
    """The fields that are read."""

    model: str
    input: str | list[str]
    encoding_format: str = "float"


class EmbeddingHttpServer(LoopbackServer):
    """Takes turns of one batch, so that a long request does not block a short one."""

    def __init__(self, encoder: Encoder, key: str) -> None:
        super().__init__(EmbeddingHandler, key)
        self.encoder = encoder


class EmbeddingHandler(LoopbackHandler):
    """Serves one request for embeddings."""

    path_served = PATH
    max_body_bytes = MAX_BODY_BYTES

    @property
    def _server(self) -> EmbeddingHttpServer:
        return cast("EmbeddingHttpServer", self.server)

    def answer(self, body: bytes) -> tuple[str, bytes]:
        """Return the vectors."""
        try:
            request = msgspec.json.decode(body, type=EmbeddingRequest)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unacceptable(f"Invalid body: {error}.", "input") from None
        is_list = not isinstance(request.input, str)
        tokens = self._split([request.input] if isinstance(request.input, str) else request.input, is_list=is_list)
        return "application/json", _write(self._encode(tokens), request, sum(map(len, tokens)))

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
            with self.turn():
                vectors[batch] = self._server.encoder.encode([rows[index] for index in batch])
        return vectors


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
    report_address(EmbeddingHttpServer(Encoder(Path(order["weights"]), order["threads"]), order["key"]).begin())
    wait_and_exit()


if __name__ == "__main__":
    main()
