"""A test double of Google's generateContent endpoint: the name of the model says how it behaves.

`text`, `thoughts`, `tool`, `parallel`, `steps`, `ids`, `json`, `length`, `safety`, `blocked`, `finish:REASON`:
    what it answers; `candidateCount` counts for all
`slow:S`, `hang`:
    when: seconds between chunks, or never
`cut`, `clean-cut`, `error-mid`, `malformed`, `html`, `empty`:
    how it breaks
`status:N`, `bad-key`, `country`, `retry:S`, `context`, `array`:
    how it refuses
Models whose name begins with `gemini-2.` know budgets for thinking and no levels.
"""

import asyncio
import base64
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]

KEY = "AIzaSyUpstream0123456789abcdef"
ANYTHING: Json = {}
CALL = {"id": None, "name": None, "args": ANYTHING}
RESPONSE = {"id": None, "name": None, "response": ANYTHING}
PART = {
    "text": None,
    "inlineData": {"mimeType": None, "data": None},
    "fileData": {"mimeType": None, "fileUri": None},
    "functionCall": CALL,
    "functionResponse": RESPONSE,
    "thought": None,
    "thoughtSignature": None,
}
CONTENT = {"role": None, "parts": PART}
DECLARATION = {"name": None, "description": None, "parameters": ANYTHING, "parametersJsonSchema": ANYTHING}
THINKING = {"thinkingBudget": None, "thinkingLevel": None, "includeThoughts": None}
CONFIGURATION = {
    **dict.fromkeys(("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "seed")),
    **dict.fromkeys(("presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "responseMimeType")),
    **dict.fromkeys(("responseModalities", "mediaResolution", "speechConfig", "imageConfig")),
    "responseSchema": ANYTHING,
    "responseJsonSchema": ANYTHING,
    "thinkingConfig": THINKING,
}
REQUEST = {
    "contents": CONTENT,
    "systemInstruction": CONTENT,
    "tools": {"functionDeclarations": DECLARATION},
    "toolConfig": {"functionCallingConfig": {"mode": None, "allowedFunctionNames": None}},
    "safetySettings": {"category": None, "threshold": None},
    "cachedContent": None,
    "serviceTier": None,
    "store": None,
    "generationConfig": CONFIGURATION,
}
"""The fields that there are; anything else is refused, as the real one does."""

STATUSES = {
    400: "INVALID_ARGUMENT",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
CALLS = ({"name": "weather", "args": {"city": "Köln", "days": 2}}, {"name": "weather", "args": {"city": "Bonn"}})


class Refused(Exception):
    """The request is not what it should be."""


@dataclass(slots=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Json
    gone: bool = False
    """Whether its client left before the end of the reply."""


@dataclass
class GeminiDouble:
    """Listens on 127.0.0.1 while its block runs; `url` is the base address."""

    key: str = KEY
    requests: list[Seen] = field(default_factory=list)
    issued: dict[str, str] = field(default_factory=dict)
    """Signatures given out, with the name of the function that was called."""
    port: int = 0
    _runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> Json:
        """The latest request's body."""
        return self.requests[-1].body

    async def __aenter__(self) -> Self:
        listener = web.Server(self._answer, handler_cancellation=True)  # so that a client who leaves is noticed
        self._runner = web.ServerRunner(listener, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def until_gone(self) -> None:
        """Wait for the latest request's client to leave."""
        async with asyncio.timeout(300):
            while not self.requests[-1].gone:  # noqa: ASYNC110  what is waited for happens elsewhere
                await asyncio.sleep(0.005)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()
        seen = Seen(request.raw_path, dict(request.headers), json.loads(raw or b"{}"))
        self.requests.append(seen)
        try:
            return await self._serve(request, seen)
        except Refused as refused:
            return _error(400, str(refused))
        except (asyncio.CancelledError, ConnectionError):
            seen.gone = True
            raise

    async def _serve(self, request: web.BaseRequest, seen: Seen) -> web.StreamResponse:
        name, _, verb = request.path.removeprefix("/v1beta/models/").rpartition(":")
        if request.method != "POST" or not request.path.startswith("/v1beta/models/") or not name:
            return web.Response(status=404, text="<html>Not Found</html>", content_type="text/html")
        if request.headers.get("x-goog-api-key") != self.key or "key" in request.query:
            return _bad_key()
        if refusal := _refuse(name):
            return refusal
        _check_fields(seen.body, REQUEST, "")
        _check_meaning(name, seen.body)
        self._check_signatures(seen.body["contents"])
        if name == "hang":
            await asyncio.sleep(60)
        if verb == "generateContent":
            return self._send_whole(name, seen.body)
        assert verb == "streamGenerateContent"
        assert request.query["alt"] == "sse"
        return await self._stream(request, name, seen.body)

    def _check_signatures(self, contents: list[Json]) -> None:
        """Every step's first call must come back with its signature, unless another model made it."""
        for content in contents:
            calls = [part for part in content["parts"] if "functionCall" in part]
            for index, part in enumerate(calls):
                name, signature = part["functionCall"]["name"], part.get("thoughtSignature")
                if signature is None and index == 0:
                    raise Refused(f"Function call `{name}` is missing a thought_signature in functionCall parts.")
                if signature not in (None, "skip_thought_signature_validator") and self.issued.get(signature) != name:
                    raise Refused("Thought signature is not valid.")

    # -- what it says

    def _parts(self, name: str, body: Json) -> list[Json]:
        kind = name.removeprefix("gemini-2.5-").partition(":")[0]
        last = body["contents"][-1]["parts"]
        results = [part["functionResponse"] for part in last if "functionResponse" in part]
        if results and not (kind == "steps" and len(body["contents"]) < 5):
            told = "; ".join(f"{found['name']}: {json.dumps(found['response'])}" for found in results)
            return [{"text": f"They said {told}"}]
        match kind:
            case "tool" | "steps":
                return [self._call(CALLS[0])]
            case "parallel":
                return [{"text": "I look."}, self._call(CALLS[0]), {"functionCall": CALLS[1]}]
            case "ids":
                return [self._call({"id": "fc-1", **CALLS[0]}), {"functionCall": {"id": "fc-2", **CALLS[1]}}]
            case "thoughts":
                return [{"text": "Hm. ", "thought": True}, {"text": "So.", "thought": True}, {"text": "Grüße 🌊"}]
            case "json":
                return [{"text": '{"city": '}, {"text": '"Köln"}'}]
            case _:
                return [{"text": "Hello"}, {"text": ", "}, {"text": "world 🌍"}]

    def _call(self, call: Json) -> Json:
        signature = base64.b64encode(os.urandom(301)).decode()
        self.issued[signature] = call["name"]
        return {"functionCall": call, "thoughtSignature": signature}

    def _chunks(self, name: str, body: Json) -> Iterator[Json]:
        """The reply in pieces, each as whole as the others."""
        head: Json = {"modelVersion": f"{name.partition(':')[0]}-001", "responseId": "resp-42"}
        counted = {"promptTokenCount": 9, "totalTokenCount": 9}
        if name == "blocked":
            yield head | {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": counted}
            return
        for index in range(body.get("generationConfig", {}).get("candidateCount", 1)):
            for part in self._parts(name, body):
                candidate = {"index": index, "content": {"role": "model", "parts": [part]}}
                yield head | {"candidates": [candidate], "usageMetadata": counted}
            content = {} if name == "safety" else {"content": {"role": "model", "parts": [{"text": ""}]}}
            candidate = {"index": index, **content, "finishReason": _reason(name)}
            yield head | {"candidates": [candidate], "usageMetadata": _usage(name)}

    def _send_whole(self, name: str, body: Json) -> web.Response:
        if name == "malformed":
            return web.Response(body=b'{"candidates": [', content_type="application/json")
        if name == "empty":
            return _json(200, {"usageMetadata": USAGE})
        if name == "error-mid":
            return _error(500, "An internal error has occurred.")
        reply: Json = {}
        for chunk in self._chunks(name, body):
            merged = {candidate["index"]: candidate for candidate in reply.get("candidates", [])}
            for candidate in chunk.get("candidates", []):
                known = merged.setdefault(candidate["index"], candidate)
                if known is not candidate:
                    known["content"]["parts"] += candidate.get("content", {}).get("parts", [])
                    known |= {key: value for key, value in candidate.items() if key != "content"}
            reply = chunk | ({"candidates": list(merged.values())} if merged else {})
        return _json(200, reply)

    async def _stream(self, request: web.BaseRequest, name: str, body: Json) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for index, chunk in enumerate(self._chunks(name, body)):
            if index == 2 and name in {"cut", "clean-cut", "error-mid", "malformed"}:
                await self._break(request, response, name)
                break
            await response.write(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n")
            if name.startswith("slow:"):
                await asyncio.sleep(float(name.removeprefix("slow:")))
        return response

    async def _break(self, request: web.BaseRequest, response: web.StreamResponse, name: str) -> None:
        if name == "cut":
            await response.write(b'data: {"candidates": [{"cont')
            assert request.transport is not None
            request.transport.close()
        elif name == "error-mid":
            error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
            await response.write(b"data: " + json.dumps(error).encode() + b"\r\n\r\n")
        elif name == "malformed":
            await response.write(b"data: nonsense\r\n\r\n")


def _reason(name: str) -> str:
    kind, _, argument = name.partition(":")
    return {"length": "MAX_TOKENS", "safety": "SAFETY", "finish": argument}.get(kind, "STOP")


def _usage(name: str) -> Json:
    more = {"thoughtsTokenCount": 7, "cachedContentTokenCount": 4, "toolUsePromptTokenCount": 3}
    return USAGE | (more if name == "thoughts" else {})


# -- what it refuses


def _json(status: int, body: Any) -> web.Response:
    return web.Response(status=status, text=json.dumps(body, indent=2), content_type="application/json")


def _error(status: int, message: str, details: list[Json] | None = None, word: str | None = None) -> web.Response:
    error: Json = {"code": status, "message": message, "status": word or STATUSES[status]}
    return _json(status, {"error": error | ({"details": details} if details else {})})


def _bad_key() -> web.Response:
    detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    return _error(400, "API key not valid. Please pass a valid API key.", [detail])


def _refuse(name: str) -> web.Response | None:
    kind, _, argument = name.partition(":")
    match kind:
        case "status":
            return _error(int(argument), f"Something about {argument}.")
        case "bad-key":
            return _bad_key()
        case "country":
            return _error(400, "User location is not supported for the API use.", word="FAILED_PRECONDITION")
        case "retry":
            detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{argument}s"}
            return _error(429, "You exceeded your current quota.", [{"quotaMetric": "requests"}, detail])
        case "context":
            said = "The input token count (1200001) exceeds the maximum number of tokens allowed (1048576)."
            return _error(400, said)
        case "array":
            error = {"code": 400, "message": "Request contains an invalid argument.", "status": "INVALID_ARGUMENT"}
            return _json(400, [{"error": error}])
        case "html":
            return web.Response(status=502, text="<html>Bad Gateway</html>", content_type="text/html")
        case _:
            return None


def _check_fields(value: Any, known: Json, place: str) -> None:
    for item in value if isinstance(value, list) else [value]:
        for name, inner in item.items():
            if name not in known:
                at = f" at '{place}'" if place else ""
                raise Refused(f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.')
            if known[name]:
                _check_fields(inner, known[name], f"{place}.{name}" if place else name)


def _check_meaning(model: str, body: Json) -> None:
    if not body.get("contents"):
        raise Refused("* GenerateContentRequest.contents: contents is not specified")
    roles = [content["role"] for content in body["contents"]]
    if not set(roles) <= {"user", "model"}:
        raise Refused("Please use a valid role: user, model.")
    assert all(one != other for one, other in pairwise(roles)), "turns must be merged"
    for content in [*body["contents"], body.get("systemInstruction", {"parts": [{"text": "-"}]})]:
        _check_parts(content["parts"])
    _check_pairs(body["contents"])
    _check_configuration(model, body.get("generationConfig", {}))
    _check_tools(body)


def _check_parts(parts: list[Json]) -> None:
    if not parts:
        raise Refused("* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.")
    for part in parts:
        held = [name for name in part if name not in ("thought", "thoughtSignature")]
        if len(held) != 1 or part.get("text") == "":
            raise Refused("Unable to submit request because it has an empty or ambiguous part.")
        if "inlineData" in part and not base64.b64decode(part["inlineData"]["data"], validate=True):
            raise Refused("Provided image is not valid.")


def _check_pairs(contents: list[Json]) -> None:
    """Calls and results go together: as many, of the same names and ids, in the same order."""
    for index, content in enumerate(contents):
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        following = contents[index + 1]["parts"] if index + 1 < len(contents) else []
        results = [part["functionResponse"] for part in following if "functionResponse" in part]
        same = [(call["name"], call.get("id")) for call in calls] == [(r["name"], r.get("id")) for r in results]
        if calls and not same:
            raise Refused(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )


def _check_configuration(model: str, given: Json) -> None:
    thinking = given.get("thinkingConfig", {})
    if {"thinkingBudget", "thinkingLevel"} <= thinking.keys():
        raise Refused("You can only set only one of thinking budget and thinking level.")
    if "thinkingLevel" in thinking and model.startswith("gemini-2."):
        raise Refused("Thinking level is not supported for this model.")
    if thinking.get("thinkingLevel", "low") not in ("low", "medium", "high"):
        raise Refused("Invalid value at 'generation_config.thinking_config.thinking_level'")
    if len(given.get("stopSequences", [])) > 5 or not -(2**31) <= given.get("seed", 0) < 2**31:
        raise Refused("Invalid value at 'generation_config'")
    if "responseJsonSchema" in given and given.get("responseMimeType") != "application/json":
        raise Refused("A response schema needs the response mime type application/json.")


def _check_tools(body: Json) -> None:
    named = [function["name"] for tool in body.get("tools", []) for function in tool["functionDeclarations"]]
    calling = body.get("toolConfig", {}).get("functionCallingConfig", {})
    allowed = calling.get("allowedFunctionNames", [])
    if calling.get("mode", "AUTO") not in ("AUTO", "ANY", "NONE") or (calling and not named):
        raise Refused("Function calling config is set without function_declarations.")
    if allowed and (calling["mode"] != "ANY" or not set(allowed) <= set(named)):
        raise Refused("allowed_function_names should be provided only when mode is ANY, and name declared functions.")
