"""`gemini`: Google's models in their own dialect, generateContent."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec
from pydantic import Field

from penstock.domain import chat
from penstock.domain.chat import Ask, Blame, Fault, Reason
from penstock.domain.ids import new_id
from penstock.errors import InvalidRequest
from penstock.vendor_api.chat import ChatOptions, RemoteChat
from penstock.vendor_api.embeddings import Embeddings
from penstock.vendor_api.generation import Call, Reply, VendorFolders
from penstock.vendor_api.left_out import REASONING, find_left_out
from penstock.vendor_api.lenient_json import read_json, write_json

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]

IDLE: Json = {"function_call": "none", "functions": [], "logit_bias": {}, "logprobs": False, "modalities": ["text"]}
UNSUPPORTED: Final = (*IDLE, "audio", "prediction", "web_search_options")  # unless they ask for nothing
SETTINGS: Final = ("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty")
TAKEN: Final = frozenset({"cachedContent", "extra_body", "google", "max_completion_tokens", "max_tokens"}) | {
    *("n", "parallel_tool_calls", "reasoning_effort", "response_format", "safetySettings", "seed", "stop"),
    *("tool_choice", "tools", *SETTINGS, *UNSUPPORTED),
}
"""Fields that are read or refused. All others are reported as left out."""
DECLARED: Final = {"name": "name", "description": "description", "parameters": "parametersJsonSchema"}
MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
BUDGETS: Final = {"low": 1_024, "medium": 8_192, "high": 24_576}  # models before Gemini 3 know no levels
FILTERED: Final = ("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "RECITATION", "MODEL_ARMOR")
ENDINGS: Final = {"MAX_TOKENS": Reason.LENGTH, **dict.fromkeys(FILTERED, Reason.FILTER)}
MEDIA_TYPES: Final = {"jpg": "image/jpeg"} | {kind: f"image/{kind}" for kind in ("gif", "jpeg", "png", "webp")}
NO_SIGNATURE: Final = "skip_thought_signature_validator"  # for calls that another model made
NOTHING: Final[Json] = {}
EMBEDDED: Final = ("dimensions", "encoding_format", "input", "task_type")  # fields of a request for embeddings
MAX_BATCH_TEXTS: Final = 100  # of one `batchEmbedContents`
REPLY_FIELDS: Final = frozenset({"candidates", "modelVersion", "promptFeedback", "responseId", "usageMetadata"})

_VERSION = re.compile(r"/v\d+(?:alpha|beta)?\d*(?:/|$)")
_OWN_ID = re.compile(r"call_[0-9a-z]{26}(?:_([\w-]+))?")
_DATA_URI = re.compile(r"data:([^;,]+)(?:;[^;,]*)*;base64,(.*)", re.DOTALL | re.IGNORECASE)
_RETRY_DELAY = re.compile(r"'retryDelay': '(\d+(?:\.\d+)?)s'")
_ALLOWED_TOKENS = re.compile(r"allowed \(?(\d+)")


class GeminiOptions(ChatOptions):
    """Settings of `[vendors.NAME]` with type `gemini`."""

    base_url: str = Field("https://generativelanguage.googleapis.com/v1beta", description="`/v1beta` may be left out")


class _Listed(msgspec.Struct):
    name: str


class _ModelList(msgspec.Struct):
    models: list[_Listed]


class Gemini(RemoteChat):
    """Translates both ways. A tool call's id carries the data that Gemini needs back and chat clients would drop."""

    options_type: ClassVar[type[ChatOptions]] = GeminiOptions
    embedding_models: Sequence[str] = ()

    def __init__(self, options: GeminiOptions, folders: VendorFolders) -> None:
        del folders  # nothing is kept
        self.options: ChatOptions = options
        base = options.base_url.rstrip("/")
        self._models = f"{base}/models" if _VERSION.search(base) else f"{base}/v1beta/models"
        key = {"x-goog-api-key": options.api_key} if options.api_key else {}
        self._headers = {"content-type": "application/json"} | key

    def probe(self) -> Call:
        """Return the call that lists the models."""
        return Call("GET", "/models", self._headers)

    def list_models(self, body: bytes) -> Sequence[str]:
        """Return the models that the reply to `probe` names."""
        found = msgspec.json.decode(body, type=_ModelList)
        return [model.name.removeprefix("models/") for model in found.models]

    def complete(self, ask: Ask, model: str) -> Call:
        """Translate the request; Gemini rejects unknown fields, so no others are passed."""
        for name in UNSUPPORTED:
            if ask.has(name, but=IDLE.get(name)):
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                raise InvalidRequest(message, param=name, code="unsupported_parameter")
        extra = _read(ask, "extra_body", dict[str, Json]) or NOTHING
        google = _read(ask, "google", Json) or extra.get("google") or NOTHING
        conversation = _Conversation(_read(ask, "messages", list[_Message]) or [])
        body = {
            **conversation.as_json(),
            **_translate_tools(ask),
            "generationConfig": _configure(ask, model, google.get("thinking_config")),
            "cachedContent": google.get("cached_content") or ask.field("cachedContent"),
            "safetySettings": ask.field("safetySettings"),
        }
        verb = "streamGenerateContent?alt=sse" if ask.stream else "generateContent"
        url = f"{self._models}/{quote(model.removeprefix('models/'), safe='')}:{verb}"
        given = {name: value for name, value in body.items() if value}
        return Call(
            "POST",
            url,
            self._headers,
            body=msgspec.json.encode(given),
            seconds=self.options.total_seconds,
            left_out=find_left_out(ask, TAKEN, [*conversation.left_out, *_find_lost_tools(ask)]),
        )

    def embed(self, ask: Ask, model: str) -> Call:
        """Translate a request for embeddings: each text is a request of one batch."""
        name = model.removeprefix("models/")
        shared = {"outputDimensionality": ask.field("dimensions"), "taskType": ask.field("task_type")}
        given = {"model": f"models/{name}"} | {key: value for key, value in shared.items() if value is not None}
        requests = [given | {"content": {"parts": [{"text": text}]}} for text in _read_texts(ask)]
        url = f"{self._models}/{quote(name, safe='')}:batchEmbedContents"
        body = msgspec.json.encode({"requests": requests})
        left_out = find_left_out(ask, EMBEDDED)
        return Call("POST", url, self._headers, body=body, seconds=self.options.total_seconds, left_out=left_out)

    def read_embeddings(self, body: bytes) -> Embeddings:
        """Return the vectors, and the count of tokens if there is one."""
        reply = msgspec.json.decode(body, type=_BatchReply)
        tokens = (reply.usage or NOTHING).get("promptTokenCount")
        return Embeddings([item.values for item in reply.embeddings], tokens if type(tokens) is int else None)

    def translator(self, ask: Ask) -> "GeminiTranslation":
        """Return a translator for one reply."""
        return GeminiTranslation(one_call=ask.field("parallel_tool_calls") is False)

    def fault(self, reply: Reply) -> Fault:
        """Return the reason in `{"error": {…}}`, which may stand in an array; otherwise the status decides."""
        try:
            error = msgspec.json.decode(reply.body.strip().strip(b"[]"), type=dict[str, Json])["error"]
        except (LookupError, ValueError, RecursionError):
            error = NOTHING
        code = error.get("code")
        status = code if reply.status < 400 and type(code) is int else reply.status
        return _read_fault(error, status, reply.retry_after)


# -- embeddings


class _Values(msgspec.Struct):
    values: list[float]


class _BatchReply(msgspec.Struct):
    embeddings: list[_Values]
    usage: Json | None = msgspec.field(name="usageMetadata", default=None)


def _read_texts(ask: Ask) -> list[str]:
    given = ask.field("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts[0], str):
        raise _invalid("input", "this model takes texts, not tokens", "unsupported_value")
    if len(texts) > MAX_BATCH_TEXTS:
        what = f"array too long, this model takes at most {MAX_BATCH_TEXTS} texts at once and got {len(texts)}"
        raise _invalid("input", what, "array_above_max_length")
    return texts


# -- the request


class _Message(msgspec.Struct):
    """The fields of a message that are read, or reported as left out; others echo our replies."""

    role: str
    content: str | list[Json] | None = None
    refusal: str | None = None
    tool_calls: list[Json] | None = None
    function_call: Any = None
    tool_call_id: str | None = None
    name: str | None = None
    audio: Any = None
    reasoning_content: Any = None
    reasoning: Any = None


def _read(ask: Ask, name: str, shape: type[T]) -> T | None:
    if name not in ask.fields:
        return None
    try:
        return msgspec.json.decode(ask.fields[name], type=shape)
    except (ValueError, RecursionError) as error:
        text, _, place = str(error).partition(" - at `$")
        raise _invalid(name + place.removesuffix("`"), text.replace("`", "'"), "invalid_type") from None


def _invalid(param: str, what: str, code: str = "invalid_value") -> InvalidRequest:
    return InvalidRequest(f"Invalid '{param}': {what}.", param=param, code=code)


def _unsupported(param: str, value: Any) -> InvalidRequest:
    return _invalid(param, f"'{value}' is not supported with this model", "unsupported_value")


def _configure(ask: Ask, model: str, thinking: Any) -> Json:
    config: Json = {_camel(name): ask.field(name) for name in SETTINGS}
    config |= {"candidateCount": ask.field("n"), "maxOutputTokens": ask.max_tokens}
    stop, seed = ask.field("stop"), ask.field("seed")
    config["stopSequences"] = [stop] if isinstance(stop, str) else stop or None
    config["seed"] = None if seed is None else seed & 0x7FFF_FFFF  # Gemini's have 32 bits
    match ask.field("response_format"):
        case None | {"type": "text"}:
            pass
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": schema}
        case {"type": "json_object" | "json_schema"}:
            config["responseMimeType"] = "application/json"
        case other:
            raise _unsupported("response_format.type", other.get("type"))
    match thinking:
        case {**given}:
            config["thinkingConfig"] = {_camel(name): value for name, value in given.items()}
        case _:
            config["thinkingConfig"] = _set_effort(ask.field("reasoning_effort"), model)
    return {name: value for name, value in config.items() if value is not None}


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _set_effort(effort: Any, model: str) -> Json | None:
    if effort in (None, "none"):
        return None if effort is None else {"thinkingBudget": 0}
    if str(effort) not in EFFORTS:
        raise _invalid("reasoning_effort", f"expected one of none, {', '.join(EFFORTS)}")
    level = EFFORTS[effort]
    thinking = {"thinkingBudget": BUDGETS[level]} if "gemini-2." in model else {"thinkingLevel": level}
    return thinking | {"includeThoughts": True}


def _translate_tools(ask: Ask) -> Json:
    tools = _read(ask, "tools", list[Json]) or []
    functions = [_find_function(f"tools[{index}]", tool) for index, tool in enumerate(tools)]
    mode, names = _choose(ask.field("tool_choice"))
    if mode == "ANY" and not functions:
        raise _invalid("tool_choice", "it needs 'tools'")
    if mode == "AUTO" and names:  # Gemini takes names only for calls that must be made
        functions, names = [function for function in functions if function["name"] in names], []
    declarations = [{theirs: tool[ours] for ours, theirs in DECLARED.items() if tool.get(ours)} for tool in functions]
    calling = {"mode": mode} | ({"allowedFunctionNames": names} if names else {})
    given = {"tools": [{"functionDeclarations": declarations}], "toolConfig": {"functionCallingConfig": calling}}
    return given if declarations else {}


def _choose(choice: Any) -> tuple[str, list[str]]:
    match choice or "auto":
        case str(word) if word in MODES:
            return MODES[word], []
        case {"type": "function", "function": {"name": str(name)}}:
            return "ANY", [name]
        case {"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required" as mode, "tools": [*tools]}}:
            return MODES[mode], [_find_function("tool_choice.allowed_tools.tools", tool)["name"] for tool in tools]
        case _:
            raise _invalid("tool_choice", "expected none, auto, required, a function or allowed_tools")


def _find_function(place: str, tool: Any) -> Json:
    """Return the function of a tool, a call or a choice."""
    match tool:
        case {"type": str(kind)} if kind != "function":
            raise _unsupported(f"{place}.type", kind)
        case {"function": {"name": str(name), **rest}}:
            return {"name": name, **rest}
        case _:
            raise _invalid(f"{place}.function.name", "it is missing", "missing_required_parameter")


# -- the conversation


def _make_call_id(vendor_id: str | None, signature: str | None) -> str:
    """Return an id that carries the data of a call that Gemini needs back; chat clients keep ids."""
    if vendor_id is None and signature is None:
        return new_id("call")
    packed = urlsafe_b64encode(msgspec.json.encode((vendor_id, signature))).decode()
    return f"{new_id('call')}_{packed.rstrip('=')}"


def _unpack_call_id(call_id: str) -> tuple[str | None, str | None]:
    found = _OWN_ID.fullmatch(call_id)
    if found and found[1] is None:
        return None, None
    try:
        packed = found[1] if found else ""
        return msgspec.json.decode(urlsafe_b64decode(packed + "=="), type=tuple[str | None, str | None])
    except ValueError:
        return None, NO_SIGNATURE


class _Conversation:
    """Messages, as turns that alternate between user and model."""

    def __init__(self, messages: list[_Message]) -> None:
        self.left_out: list[str] = []
        """Fields of messages that Gemini cannot get."""
        self._system: list[Json] = []
        self._turns: list[Json] = []
        self._calls: dict[str, tuple[int, Json]] = {}
        self._results: list[tuple[int, Json]] = []
        for index, message in enumerate(messages):
            self._add(f"messages[{index}]", message)
            self.left_out += _find_lost(message)
        self._append("user", [])

    def as_json(self) -> Json:
        if not self._turns:  # instructions alone are not taken
            return {"contents": [{"role": "user", "parts": self._system}]}
        return {"contents": self._turns, "systemInstruction": self._system and {"parts": self._system}}

    def _add(self, place: str, message: _Message) -> None:
        match message.role:
            case "system" | "developer":
                self._system += _translate_content(place, message.content)
            case "user":
                self._append("user", _translate_content(place, message.content))
            case "tool":
                self._answer(place, message)
            case "assistant" if message.function_call is None:
                parts = _translate_content(place, message.content) + _translate_content(place, message.refusal)
                self._append("model", parts + self._call(f"{place}.tool_calls", message.tool_calls or []))
            case role:
                raise _unsupported(f"{place}.role" if role == "function" else f"{place}.function_call", "function")

    def _append(self, role: str, parts: list[Json]) -> None:
        """Append a turn, after pending tool results in the order of their calls, which alone distinguishes them."""
        results = [part for _, part in sorted(self._results, key=lambda result: result[0])]
        self._results.clear()
        for speaker, spoken in (("user", results), (role, parts)):
            if spoken and self._turns and self._turns[-1]["role"] == speaker:
                self._turns[-1]["parts"] += spoken
            elif spoken:
                self._turns.append({"role": speaker, "parts": spoken})

    def _call(self, place: str, calls: list[Json]) -> list[Json]:
        parts: list[Json] = []
        for index, call in enumerate(calls):
            function = _find_function(f"{place}[{index}]", call)
            arguments = _parse_object(function.get("arguments") or "{}")
            if arguments is None:
                raise _invalid(f"{place}[{index}].function.arguments", "expected the text of a JSON object")
            vendor_id, signature = _unpack_call_id(str(call.get("id")))
            named = {"name": function["name"]} | ({"id": vendor_id} if vendor_id else {})
            self._calls[str(call.get("id"))] = len(self._calls), named
            parts.append({"functionCall": named | {"args": arguments}})
            if signature and (index == 0 or signature != NO_SIGNATURE):
                parts[-1]["thoughtSignature"] = signature
        return parts

    def _answer(self, place: str, message: _Message) -> None:
        position, named = self._calls.get(message.tool_call_id or "", (0, None))
        if named is None:
            what = f"no earlier message has a tool call with the id '{(message.tool_call_id or '')[:80]}'"
            raise _invalid(f"{place}.tool_call_id", what)
        parts = _translate_content(place, message.content)
        if any("text" not in part for part in parts):
            raise _unsupported(f"{place}.content", "anything but text")
        text = "".join(part["text"] for part in parts)
        response = named | {"response": _parse_object(text) or {"result": text}}
        self._results.append((position, {"functionResponse": response}))


def _find_lost(message: _Message) -> Iterator[str]:
    """Yield the names of fields that have no place in a turn."""
    if message.name:
        yield "messages.name"
    if message.audio:
        yield "messages.audio"
    if message.reasoning_content or message.reasoning:
        yield REASONING
    for piece in message.content if isinstance(message.content, list) else ():
        match piece:
            case {"image_url": {"detail": str(detail)}} if detail != "auto":
                yield "messages.content.image_url.detail"
            case {"file": {"filename": str()}}:
                yield "messages.content.file.filename"
            case {"cache_control": {**_cached}}:
                yield "messages.content.cache_control"
            case _:
                pass


def _find_lost_tools(ask: Ask) -> Iterator[str]:
    for tool in ask.field("tools") or ():
        match tool:
            case {"function": {"strict": True}}:
                yield "tools.strict"
            case _:
                pass


def _parse_object(text: Any) -> msgspec.Raw | None:
    """Return a JSON object unparsed; None for anything else."""
    try:
        msgspec.json.decode(text, type=Json)
    except (TypeError, ValueError, RecursionError):
        return None
    return msgspec.Raw(text)


def _translate_content(place: str, content: str | list[Json] | None) -> list[Json]:
    pieces = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    parts = [_translate_piece(f"{place}.content[{index}]", piece) for index, piece in enumerate(pieces)]
    return [part for part in parts if part != {"text": ""}]  # Gemini refuses empty ones


def _translate_piece(place: str, piece: Json) -> Json:
    match piece:
        case {"type": "text", "text": str(text)} | {"type": "refusal", "refusal": str(text)}:
            return {"text": text}
        case {"type": "image_url", "image_url": str(url) | {"url": str(url)}}:
            return _refer(f"{place}.image_url.url", url)
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(kind)}}:
            return {"inlineData": {"mimeType": f"audio/{kind}", "data": data}}
        case {"type": "file", "file": {"file_data": str(data)}}:
            return _refer(f"{place}.file.file_data", data)
        case {"type": "text" | "refusal" | "image_url" | "input_audio" | "file" as kind}:
            raise _invalid(f"{place}.{kind}", "it does not hold what its type says or this model takes")
        case _:
            raise _unsupported(f"{place}.type", piece.get("type"))


def _refer(param: str, url: str) -> Json:
    """Return inline data for a `data:` URI, or a reference that Google fetches."""
    if found := _DATA_URI.fullmatch(url):
        return {"inlineData": {"mimeType": found[1], "data": found[2]}}
    if not url.lower().startswith(("http://", "https://")):
        raise _invalid(param, "expected a data: URI in base64, or an http(s) URL")
    media_type = MEDIA_TYPES.get(url.partition("?")[0].rpartition(".")[2].lower())
    return {"fileData": {"fileUri": url} | ({"mimeType": media_type} if media_type else {})}


# -- the reply


class GeminiTranslation:
    """Translates one reply; a stream consists of whole replies, each with some of the parts."""

    def __init__(self, *, one_call: bool) -> None:
        self._one_call = one_call
        self._called: set[int] = set()

    def event(self, name: str, data: bytes) -> Iterator[chat.Part]:
        """Yield the parts of one event; there is only one kind of event."""
        del name
        return self.whole(data)

    def whole(self, body: bytes) -> Iterator[chat.Part]:
        """Yield the parts in their order."""
        reply: Json = read_json(body)
        if error := reply.get("error"):
            yield _read_fault(error, error.get("code") or 500, None)
            return
        if not reply.keys() & REPLY_FIELDS:
            raise ValueError("unexpected shape of a reply")
        yield chat.Opening(reply.get("responseId") or "", reply.get("modelVersion") or "")
        candidates: list[Json] = reply.get("candidates") or []
        for position, candidate in enumerate(candidates):
            yield from self._read_candidate(candidate, candidate.get("index", position))
        if (reply.get("promptFeedback") or NOTHING).get("blockReason"):
            yield chat.Finish(Reason.FILTER)
        if usage := reply.get("usageMetadata"):
            yield chat.Used(_count(usage))

    def _read_candidate(self, candidate: Json, choice: int) -> Iterator[chat.Part]:
        parts: list[Json] = (candidate.get("content") or NOTHING).get("parts") or []
        for part in parts:
            if call := part.get("functionCall"):
                if self._one_call and choice in self._called:
                    continue  # Gemini has no setting for one call at a time; it repeats this one later
                self._called.add(choice)
                call_id = _make_call_id(call.get("id"), part.get("thoughtSignature"))
                yield chat.ToolCall(call_id, call["name"], choice)
                yield chat.Arguments(write_json(call.get("args") or NOTHING).decode(), choice)
            elif text := part.get("text"):
                yield chat.Reasoning(text, choice) if part.get("thought") else chat.Text(text, choice)
        if reason := candidate.get("finishReason"):
            ordinary = Reason.TOOL_CALLS if choice in self._called else Reason.STOP
            yield chat.Finish(ENDINGS.get(reason.removeprefix("IMAGE_"), ordinary), choice)


def _count(usage: Json) -> chat.Usage:
    names = ("prompt", "toolUsePrompt", "candidates", "thoughts", "cachedContent")
    prompt, tools, candidates, thoughts, cached = (usage.get(f"{name}TokenCount") or 0 for name in names)
    return chat.Usage(prompt + tools, candidates + thoughts, cached, thoughts)


def _read_fault(error: Json, status: int, retry_after: float | None) -> Fault:
    message, details = str(error.get("message") or ""), str(error.get("details"))
    blame, code, param = chat.blame_status(status), None, None
    if found := _RETRY_DELAY.search(details):
        retry_after = float(found[1])
    if error.get("status") == "FAILED_PRECONDITION" or "API_KEY_INVALID" in details or "API key not valid" in message:
        blame = Blame.CREDENTIAL  # the account's country or billing, or its key
    elif "exceeds the maximum number of tokens" in message:
        known = _ALLOWED_TOKENS.search(message)
        message = f"This model's maximum context length is {known[1] if known else 'less'} tokens. {message}"
        blame, code, param = Blame.CALLER, "context_length_exceeded", "messages"
    return Fault(blame, message, code, param, retry_after, status)


VENDOR = Gemini
