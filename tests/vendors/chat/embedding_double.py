"""A test double of vendors of embeddings, OpenAI's and Google's: the name of the model says how it behaves.

`plain`, `greedy`, `no-usage`, `bare`, `shuffled`, `always-float`, `always-base64`: how it answers
`few`, `uneven`, `empty-vector`, `garbage`, `not-json`, `wrong-index`, `null`, `huge`, `error-inside`: how it breaks
`status:N`, `retry-after`: how it refuses
"""

import asyncio
import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]

KEY = "sk-embedding-0123456789abcdef"
DIMENSIONS = 8


@dataclass(slots=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Json


def vector_of(text: Any, dimensions: int = DIMENSIONS) -> list[float]:
    """The vector of a text or of tokens: float32 numbers that no short decimal equals."""
    digest = hashlib.shake_256(json.dumps(text).encode()).digest(dimensions)
    return [struct.unpack("<f", struct.pack("<f", (byte - 128) / 300))[0] for byte in digest]


def pack(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


@dataclass
class EmbeddingDouble:
    """Listens on 127.0.0.1 while its block runs; `url` is the base address."""

    requests: list[Seen] = field(default_factory=list[Seen])
    port: int = 0
    hold: asyncio.Event | None = None
    """Replies wait for it."""
    _runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = json.loads(await request.content.read())
        self.requests.append(Seen(request.path_qs, request.headers, body))
        if self.hold is not None:
            await self.hold.wait()
        if request.path.endswith(":batchEmbedContents"):
            model = request.path.rpartition("/")[2].partition(":batch")[0]
            return _reply(model, _as_gemini(model, body))
        assert (request.method, request.path) == ("POST", "/v1/embeddings")
        assert request.headers["authorization"] == f"Bearer {KEY}"
        return _reply(body["model"], _as_openai(body["model"], body))


def _reply(model: str, found: Json) -> web.Response:
    name, _, argument = model.partition(":")
    if name == "status":
        error = {"message": "it will not", "type": "server_error", "code": int(argument), "status": "INTERNAL"}
        return web.json_response({"error": error}, status=int(argument))
    if name == "retry-after":
        return web.json_response({"error": {"message": "slowly"}}, status=429, headers={"retry-after": "7"})
    if name == "error-inside":
        return web.json_response({"error": {"message": "input[0] is bad", "type": "invalid_request_error"}})
    text = "<html>" if name == "not-json" else json.dumps(found)
    return web.Response(text=text, content_type="application/json")


def _as_openai(model: str, body: Json) -> Json:
    given = body["input"]
    texts = [given] if isinstance(given, str) or isinstance(given[0], int) else given
    wants_base64 = body.get("encoding_format") == "base64"
    wants_base64 = {"always-float": False, "always-base64": True}.get(model, wants_base64)
    vectors = [vector_of(text, body.get("dimensions") or DIMENSIONS) for text in texts]
    data = [
        {"object": "embedding", "index": index, "embedding": pack(vector) if wants_base64 else vector}
        for index, vector in enumerate(vectors)
    ]
    _break(model, data)
    tokens = 1_000_000 if model == "greedy" else 5 * len(texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    if model == "bare":
        return {"data": [{"embedding": item["embedding"]} for item in data]}
    found = {"object": "list", "data": data, "model": f"{model}-001", "usage": usage, "extra": "kept"}
    return {name: value for name, value in found.items() if (model, name) != ("no-usage", "usage")}


def _break(model: str, data: list[Json]) -> None:
    first: dict[str, Json] = {
        "uneven": {"embedding": [1.0]},
        "garbage": {"embedding": "§§§"},
        "wrong-index": {"index": 7},
        "null": {"embedding": [None] * DIMENSIONS},
        "huge": {"embedding": [1e300] * DIMENSIONS},
    }
    data[0] |= first.get(model, {})
    if model == "shuffled":
        data.reverse()
    elif model == "few":
        data.pop()
    elif model == "empty-vector":
        for item in data:
            item["embedding"] = []


def _as_gemini(model: str, body: Json) -> Json:
    texts = [(request["content"]["parts"][0]["text"], request) for request in body["requests"]]
    found = [{"values": vector_of(text, asked.get("outputDimensionality") or DIMENSIONS)} for text, asked in texts]
    if model == "few":
        found.pop()
    usage = {"usageMetadata": {"promptTokenCount": 4 * len(texts)}} if model == "counted" else {}
    return {"embeddings": found, **usage}
