"""Google's generateContent, from the vendor's side."""

import json
from collections.abc import Iterator
from itertools import pairwise

from doubles.scripted.turns import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    REASONING_TOKENS,
    Json,
    Reply,
    Request,
    Result,
    Tool,
    demand,
    pieces,
    texts_of,
)

ANOTHER_MODELS_CALL = "skip_thought_signature_validator"


def read(body: Json) -> Request:
    """Read a request, to which the path's model and verb were added; refuse what the API refuses."""
    contents, configured = body["contents"], body.get("generationConfig") or {}
    roles = [content["role"] for content in contents]
    demand(set(roles) <= {"user", "model"}, "Please use a valid role: user, model.")
    demand(all(one != other for one, other in pairwise(roles)), "Turns of one role must be merged.")
    demand(all(content["parts"] for content in contents), "contents.parts must not be empty.")
    _check_calls(contents)
    spoken = [part for content in contents for part in content["parts"]]
    results = [part["functionResponse"] for part in spoken if "functionResponse" in part]
    return Request(
        model=body["model"],
        stream=body["stream"],
        system=texts_of(body.get("systemInstruction", {}).get("parts")),
        texts=tuple(texts_of(content["parts"]) for content in contents if content["role"] == "user"),
        tools={tool.name: tool for tool in _tools(body)},
        results=tuple(Result(found["name"], json.dumps(found["response"], ensure_ascii=False)) for found in results),
        seals=tuple(part["thoughtSignature"] for part in spoken if "thoughtSignature" in part),
        schema=configured.get("responseJsonSchema") or configured.get("responseSchema"),
    )


def _tools(body: Json) -> Iterator[Tool]:
    for declared in body.get("tools", ()):
        for function in declared.get("functionDeclarations", ()):
            yield Tool(function["name"], function.get("parametersJsonSchema") or function.get("parameters") or {})


def _check_calls(contents: list[Json]) -> None:
    """Calls are answered in the next turn, in order; the first of a turn carries a signature."""
    for content, following in pairwise([*contents, {"parts": []}]):
        called = [part for part in content["parts"] if "functionCall" in part]
        results = [part["functionResponse"]["name"] for part in following["parts"] if "functionResponse" in part]
        names = [part["functionCall"]["name"] for part in called]
        demand(names == results, f"Function responses {results} do not match the function calls {names}.")
        seals = [part.get("thoughtSignature") for part in called]
        demand(not seals or seals[0], f"Function call `{names[:1]}` is missing a thought_signature.")
        valid = all(seal in (None, ANOTHER_MODELS_CALL) or seal.startswith("SEAL+") for seal in seals)
        demand(valid, "Thought signature is not valid.")


def whole(reply: Reply) -> Json:
    """The answer in one piece."""
    return _chunk(reply, list(_parts(reply)), finished=True)


def stream(reply: Reply) -> Iterator[bytes]:
    """The answer in chunks; a call always comes whole."""
    for part in _parts(reply):
        text = part.get("text")
        split = [part] if text is None else [part | {"text": piece} for piece in pieces(text)]
        for one in split:
            yield _data(_chunk(reply, [one], finished=False))
    yield _data(_chunk(reply, [{"text": ""}], finished=True))


def _parts(reply: Reply) -> Iterator[Json]:
    if reply.turn.reasoning:
        yield {"text": reply.turn.reasoning, "thought": True}
    if reply.turn.text:
        yield {"text": reply.turn.text}
    for index, call in enumerate(reply.turn.calls):
        sealed = {} if index else {"thoughtSignature": reply.seal}
        yield {"functionCall": {"name": call.name, "args": call.arguments}, **sealed}


def _chunk(reply: Reply, parts: list[Json], *, finished: bool) -> Json:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finished:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": usage(),
        "modelVersion": reply.request.model,
        "responseId": f"resp-{reply.number:08}",
    }


def usage() -> Json:
    """Tokens of every answer; thoughts are counted apart."""
    return {
        "promptTokenCount": INPUT_TOKENS,
        "cachedContentTokenCount": CACHED_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS - REASONING_TOKENS,
        "thoughtsTokenCount": REASONING_TOKENS,
        "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
    }


def error(message: str, status: int) -> tuple[int, Json]:
    """An error's status and body."""
    word = {401: "UNAUTHENTICATED", 503: "UNAVAILABLE"}.get(status, "INVALID_ARGUMENT")
    return status, {"error": {"code": status, "message": message, "status": word}}


def _data(chunk: Json) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n".encode()
