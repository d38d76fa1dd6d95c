"""`anthropic`: chat models of Anthropic's Messages API, translated both ways."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

import msgspec
from pydantic import Field

from penstock.domain import chat
from penstock.domain.chat import Ask, Blame, Dialect, Fault, Reason
from penstock.errors import InvalidRequest
from penstock.vendor_api import seals
from penstock.vendor_api.chat import ChatOptions, RemoteChat
from penstock.vendor_api.dialects.messages_usage import MessagesCounts
from penstock.vendor_api.generation import Call, Reply, VendorFolders
from penstock.vendor_api.left_out import REASONING, find_left_out
from penstock.vendor_api.lenient_json import read_json, write_json

Json: TypeAlias = dict[str, Any]

SAMPLED: Final = "2023-06-01"
SAMPLING: Final = ("temperature", "top_p", "top_k")  # what the API takes up to that version, and refuses since
EXTRAS: Final = ("cache_control", "container", "diagnostics", "inference_geo", "speed", "thinking")
"""The vendor's own fields, passed unchanged. It rejects unknown fields, so no others are passed."""
IDLE: Final[Mapping[str, Any]] = (
    dict.fromkeys(("audio", "function_call", "functions", "moderation", "prediction", "web_search_options"))
    | dict.fromkeys(("frequency_penalty", "presence_penalty", "top_logprobs"), 0)
    | {"logit_bias": {}, "logprobs": False, "modalities": ["text"], "n": 1}
)
"""Fields that change the meaning of an answer and are not supported, each with the value that has no effect."""
TAKEN: Final = frozenset({"max_completion_tokens", "max_tokens", "output_config", "parallel_tool_calls"}) | {
    *("reasoning_effort", "response_format", "safety_identifier", "stop", "tool_choice", "tools", "user"),
    *(*SAMPLING, *EXTRAS, *IDLE),
}
"""Fields that are read or refused. All others are reported as left out."""
CHOICES: Final = {"auto": "auto", "none": "none", "required": "any"}
EFFORTS: Final = {"minimal": "low", **{effort: effort for effort in ("low", "medium", "high", "xhigh", "max")}}
NO_ID: Final = re.compile(r"[^\w-]", re.ASCII)  # other vendors have dots and colons in their ids of tool calls
SEAL: Final = "anthropic"
"""The name in seals of this vendor's reasoning."""
THOUGHTS: Final = ("thinking", "redacted_thinking")
IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")


class AnthropicOptions(ChatOptions):
    """Settings of `[vendors.NAME]` with type `anthropic`."""

    base_url: str = "https://api.anthropic.com"
    version: Literal["2023-06-01", "2026-10-21"] = Field(SAMPLED, description="the newer one drops sampling settings")
    max_tokens: int = Field(16_384, ge=1, description="token limit of a reply whose request sets none")


class Anthropic(RemoteChat):
    """Speaks the Messages API."""

    options_type: ClassVar[type[ChatOptions]] = AnthropicOptions
    dialect = Dialect.MESSAGES

    def __init__(self, options: AnthropicOptions, folders: VendorFolders) -> None:
        del folders  # nothing is kept
        self.options = options
        self._headers = {"content-type": "application/json", "anthropic-version": options.version}
        self._headers |= {"x-api-key": options.api_key} if options.api_key else {}
        self._path = "/messages" if options.base_url.rstrip("/").endswith("/v1") else "/v1/messages"

    def probe(self) -> Call:
        """Return the call that lists the models."""
        return Call("GET", self._path.replace("messages", "models"), self._headers)

    def complete(self, ask: Ask, model: str) -> Call:
        """Translate the request into the vendor's dialect; one that is in it already passes unchanged."""
        if ask.dialect is Dialect.MESSAGES:
            return self._pass(ask, model, self._path)
        _refuse_unsupported(ask)
        options = self.options
        body: Json = {"model": model, "max_tokens": ask.max_tokens or options.max_tokens, "stream": ask.stream}
        body |= _translate_turns(ask) | _translate_tools(ask) | _translate_output(ask) | _translate_rest(ask)
        body |= {name: ask.fields[name] for name in EXTRAS if name in ask.fields}
        left_out = [*body.pop("left_out"), *_find_lost(ask, is_sampled=options.version == SAMPLED)]
        body |= {} if options.version == SAMPLED else dict.fromkeys(SAMPLING)
        given = {name: value for name, value in body.items() if value not in (None, "", [], {})}
        return Call(
            "POST",
            self._path,
            self._headers,
            body=msgspec.json.encode(given),
            seconds=options.total_seconds,
            left_out=find_left_out(ask, TAKEN, left_out),
        )

    def count(self, ask: Ask, model: str) -> Call | None:
        """Return the call that counts the tokens of a request in the vendor's dialect."""
        return self._pass(ask, model, f"{self._path}/count_tokens")

    def _pass(self, ask: Ask, model: str, path: str) -> Call:
        fields = {**ask.fields, "model": msgspec.Raw(msgspec.json.encode(model))}
        if "messages" in fields and seals.PREFIX.encode() in bytes(fields["messages"]):
            fields["messages"] = _without_seals(fields["messages"])
        headers = {**self._headers, **ask.headers}
        return Call("POST", path, headers, body=msgspec.json.encode(fields), seconds=self.options.total_seconds)

    def translator(self, ask: Ask) -> "AnthropicTranslation | None":
        """Return a translator for one reply; None for a caller of the vendor's dialect."""
        return None if ask.dialect is Dialect.MESSAGES else AnthropicTranslation()

    def fault(self, reply: Reply) -> Fault:
        """Return the vendor's reason, or else what the status alone implies."""
        try:
            body = msgspec.json.decode(reply.body)
        except (ValueError, RecursionError):
            body = None
        return _blame(body, reply.status, reply.retry_after)


# -- the fields of a request that are read, or reported as left out; others echo our replies


class _Piece(msgspec.Struct):
    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: Json | str | None = None
    cache_control: Any = None


class _Function(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: Json | None = None
    arguments: str | None = None
    strict: bool | None = None


class _Tool(msgspec.Struct):  # or a call of one, or a choice among them
    type: str = "function"
    id: str = ""
    function: _Function | None = None
    allowed_tools: "_Tool | None" = None
    mode: Literal["auto", "required"] = "auto"
    tools: "list[_Tool]" = []


class _Turn(msgspec.Struct):
    role: str
    content: str | list[_Piece] | None = None
    tool_calls: list[_Tool] | None = None
    tool_call_id: str | None = None
    function_call: Any = None
    sealed_reasoning: list[str] = []
    refusal: str | None = None
    name: str | None = None
    audio: Any = None
    reasoning_content: Any = None
    reasoning: Any = None


def _read(ask: Ask, name: str, shape: Any = Any) -> Any:
    """Return a field's value in this shape; None if it is absent."""
    raw = ask.fields.get(name)
    try:
        return None if raw is None else msgspec.json.decode(raw, type=shape)
    except (ValueError, RecursionError) as error:
        reason, _, place = str(error).partition(" - at ")  # "Expected `str`, got `int` - at `$[0].content`"
        raise _invalid(name + place.strip("`").removeprefix("$"), reason) from None


def _invalid(name: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid '{name}': {reason}.", param=name, code="invalid_value")


def _unsupported(name: str, value: str, allowed: Iterable[str]) -> InvalidRequest:
    message = f"Unsupported value: '{name}' does not support '{value[:80]}' with this model. It takes: "
    return InvalidRequest(f"{message}{', '.join(allowed)}.", param=name, code="unsupported_value")


def _refuse_unsupported(ask: Ask) -> None:
    instead = {"functions": " Use 'tools' instead.", "function_call": " Use 'tool_choice' instead."}
    for name in ask.fields.keys() & IDLE.keys():
        if _read(ask, name) != IDLE[name]:
            message = f"Unsupported parameter: '{name}' is not supported with this model.{instead.get(name, '')}"
            raise InvalidRequest(message, param=name, code="unsupported_parameter")


def _translate_turns(ask: Ask) -> Json:
    """Return the system prompt and alternating turns of user and assistant, with tool results first in their turn."""
    system: list[Json] = []
    turns: list[Json] = []
    lost: list[str] = []
    for index, turn in enumerate(_read(ask, "messages", list[_Turn])):
        role, blocks = _translate_turn(turn, f"messages[{index}]")
        lost += _find_lost_parts(turn, blocks)
        if role == "system":
            system += blocks
        elif turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    for turn in turns:
        content: list[Json] = turn["content"]
        content.sort(key=lambda block: block["type"] != "tool_result")
    if not turns:
        raise _invalid("messages", "this model needs a user message that is not empty")
    return {"messages": turns, "system": "\n".join(block["text"] for block in system), "left_out": lost}


def _translate_turn(turn: _Turn, place: str) -> tuple[str, list[Json]]:
    """Return the role and the content blocks of one turn."""
    match turn.role:
        case "system" | "developer":
            return "system", _translate_content(turn, place, "text")
        case "user":
            return "user", _translate_content(turn, place, "text", "image_url")
        case "assistant":
            blocks = _translate_content(turn, place, "text", "refusal")
            blocks += [{"type": "text", "text": turn.refusal}] if turn.refusal and turn.refusal.strip() else []
            return "assistant", _order(turn, blocks, list(_translate_calls(turn, place)))
        case "tool":
            return "user", [_translate_result(turn, place)]
        case _:
            raise _unsupported(f"{place}.role", turn.role, ("system", "developer", "user", "assistant", "tool"))


def _find_lost_parts(turn: _Turn, blocks: list[Json]) -> Iterator[str]:
    """Yield the names of fields of a turn that have no place in these blocks."""
    if turn.name:
        yield "messages.name"
    if turn.audio:
        yield "messages.audio"
    if (turn.reasoning_content or turn.reasoning) and not any(block["type"] == "thinking" for block in blocks):
        yield REASONING
    for piece in turn.content if isinstance(turn.content, list) else ():
        if piece.cache_control:
            yield "messages.content.cache_control"
        match piece.image_url:
            case {"detail": str(detail)} if detail != "auto":
                yield "messages.content.image_url.detail"
            case _:
                pass


def _find_lost(ask: Ask, *, is_sampled: bool) -> Iterator[str]:
    """Yield the names of settings that are changed on the way, or in a part of which something is lost."""
    if not is_sampled:
        yield from (name for name in SAMPLING if name in ask.fields)
    elif "temperature" in ask.fields and _read(ask, "temperature", float) > 1:
        yield "temperature"
    if "stop" in ask.fields and not all(text.strip() for text in _read_stops(ask)):
        yield "stop"
    if any(tool.function and tool.function.strict for tool in _read(ask, "tools", list[_Tool]) or ()):
        yield "tools.strict"


def _translate_content(turn: _Turn, place: str, *allowed: str) -> list[Json]:
    """Return the blocks of a turn, without blank texts, which the vendor rejects."""
    pieces = [_Piece("text", turn.content)] if isinstance(turn.content, str) else turn.content or []
    blocks: list[Json] = []
    for index, piece in enumerate(pieces):
        where = f"{place}.content[{index}]"
        if piece.type not in allowed:
            raise _unsupported(f"{where}.type", piece.type, allowed)
        if piece.type == "image_url":
            blocks.append({"type": "image", "source": _translate_image(piece.image_url, f"{where}.image_url")})
        elif (text := piece.refusal or piece.text or "").strip():
            blocks.append({"type": "text", "text": text})
    return blocks


def _translate_image(image: Json | str | None, place: str) -> Json:
    url = str(image.get("url") if isinstance(image, dict) else image)
    if url[:8].lower().startswith(("http://", "https://")):
        return {"type": "url", "url": url}
    head, _, data = url.partition(",")
    kind, *parameters = head.lower().split(";")
    if not kind.startswith("data:") or parameters[-1:] != ["base64"]:
        raise _invalid(f"{place}.url", "expected an http(s) URL or a data: URI in base64")
    kind = kind.removeprefix("data:").replace("image/jpg", "image/jpeg")
    if kind not in IMAGES:
        raise _unsupported(f"{place}.url", kind, IMAGES)
    return {"type": "base64", "media_type": kind, "data": data}


def _translate_calls(turn: _Turn, place: str) -> Iterator[Json]:
    if turn.function_call is not None:
        raise _unsupported(f"{place}.function_call", "an object", ("null, and calls in `tool_calls`",))
    calls = turn.tool_calls or []
    for index, (call, function) in enumerate(zip(calls, _functions(calls, f"{place}.tool_calls"), strict=True)):
        try:
            taken = msgspec.json.decode((function.arguments or "").strip() or "{}", type=Json)
        except (ValueError, RecursionError) as error:
            where = f"{place}.tool_calls[{index}].function.arguments"
            raise _invalid(where, f"expected the JSON text of an object ({error})") from None
        call_id, sealed = seals.detach(call.id)
        yield from _unseal(sealed or "")
        yield {"type": "tool_use", "id": _clean_id(call_id), "name": function.name, "input": taken}


def _clean_id(call_id: str) -> str:
    """Return an id of letters that the vendor takes; ids that differ stay different."""
    return NO_ID.sub(lambda found: f"_{ord(found[0]):x}_", call_id)


def _unseal(sealed: str) -> list[Json]:
    """Return the blocks of reasoning in a seal of this vendor."""
    found = seals.unseal(sealed, SEAL)
    blocks = cast("list[Any]", found) if isinstance(found, list) else []
    objects = [cast("Json", block) for block in blocks if isinstance(block, dict)]
    return [block for block in objects if block.get("type") in THOUGHTS]


def _order(turn: _Turn, blocks: list[Json], calls: list[Json]) -> list[Json]:
    """Return the blocks of a turn, which must begin with its reasoning; later reasoning stays before its call."""
    thoughts = [block for sealed in turn.sealed_reasoning for block in _unseal(sealed)]
    first = next((index for index, block in enumerate(calls) if block["type"] == "tool_use"), 0)
    return [*thoughts, *calls[:first], *blocks, *calls[first:]]


def _translate_result(turn: _Turn, place: str) -> Json:
    if not turn.tool_call_id:
        raise _invalid(f"{place}.tool_call_id", "expected the id of the tool call that this answers")
    content = _translate_content(turn, place, "text", "image_url")
    result = {"type": "tool_result", "tool_use_id": _clean_id(seals.detach(turn.tool_call_id)[0])}
    return result | ({"content": content} if content else {})


def _translate_tools(ask: Ask) -> Json:
    tools = {function.name: function for function in _functions(_read(ask, "tools", list[_Tool]) or (), "tools")}
    choice: str | _Tool = _read(ask, "tool_choice", str | _Tool) or "auto"
    if not tools and choice in ("auto", "none"):
        return {}
    chosen, names = _translate_choice(choice, tools)
    if chosen["type"] != "none" and _read(ask, "parallel_tool_calls") is False:
        chosen["disable_parallel_tool_use"] = True
    return {"tools": [_translate_tool(tools[name]) for name in names], "tool_choice": chosen}


def _functions(tools: Sequence[_Tool], place: str) -> Iterator[_Function]:
    for index, tool in enumerate(tools):
        if tool.type != "function" or tool.function is None:
            raise _unsupported(f"{place}[{index}].type", tool.type, ("function, with an object `function`",))
        yield tool.function


def _translate_tool(function: _Function) -> Json:
    described = {"description": function.description} if function.description else {}
    return {"name": function.name, **described, "input_schema": {"type": "object", **(function.parameters or {})}}


def _translate_choice(choice: str | _Tool, tools: Mapping[str, _Function]) -> tuple[Json, Iterable[str]]:
    """Return the choice in the vendor's dialect, and the names of the tools that it allows."""
    if isinstance(choice, str):
        if choice in CHOICES and tools:
            return {"type": CHOICES[choice]}, tools
    elif choice.allowed_tools:
        names = {tool.name for tool in _functions(choice.allowed_tools.tools, "tool_choice.allowed_tools.tools")}
        if names and names <= tools.keys():
            return {"type": CHOICES[choice.allowed_tools.mode]}, [name for name in tools if name in names]
    elif choice.type == "function" and choice.function and choice.function.name in tools:
        return {"type": "tool", "name": choice.function.name}, tools
    raise _invalid("tool_choice", f"expected one of {', '.join(CHOICES)}, or functions that are in 'tools'")


def _translate_output(ask: Ask) -> Json:
    """Return the output format and the reasoning effort."""
    config: Json = _read(ask, "output_config", Json) or {}
    effort: str | None = _read(ask, "reasoning_effort", str)
    if effort in EFFORTS:
        config["effort"] = EFFORTS[effort]
    elif effort not in (None, "none"):
        raise _unsupported("reasoning_effort", effort, ("none", *EFFORTS))
    match shape := _read(ask, "response_format", Json):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            config["format"] = {"type": "json_schema", "schema": schema}
        case None | {"type": "text"}:
            pass
        case _:
            raise _unsupported("response_format.type", str(shape.get("type")), ("text", "json_schema with a schema"))
    return {"output_config": config, "thinking": {"type": "disabled"} if effort == "none" else None}


def _translate_rest(ask: Ask) -> Json:
    user: str | None = _read(ask, "user", str) or _read(ask, "safety_identifier", str)
    temperature, top_p = _read(ask, "temperature", float), _read(ask, "top_p", float)
    return {
        "stop_sequences": [text for text in _read_stops(ask) if text.strip()],
        "metadata": {"user_id": user} if user else None,
        "temperature": None if temperature is None else min(temperature, 1.0),
        "top_p": None if top_p == 1 else top_p,  # asks for nothing, and some models refuse it beside a temperature
        "top_k": ask.fields.get("top_k"),
    }


def _read_stops(ask: Ask) -> list[str]:
    stop: str | list[str] = _read(ask, "stop") or []
    return [stop] if isinstance(stop, str) else stop


def _without_seals(messages: msgspec.Raw) -> msgspec.Raw:
    """Return a conversation in the vendor's dialect without reasoning that came from another vendor."""
    turns = cast("list[Json]", msgspec.json.decode(messages))
    for turn in turns:
        content = turn.get("content")
        if isinstance(content, list):
            turn["content"] = [block for block in cast("list[Any]", content) if not _is_sealed(block)]
    return msgspec.Raw(msgspec.json.encode([turn for turn in turns if turn.get("content") != []]))


def _is_sealed(block: Any) -> bool:
    match block:
        case {"type": "thinking", "signature": str(text)} | {"type": "redacted_thinking", "data": str(text)}:
            return seals.is_seal(text)
        case _:
            return False


# -- replies
LENGTHS: Final = dict.fromkeys(("max_tokens", "model_context_window_exceeded"), Reason.LENGTH)
REASONS: Final = {**LENGTHS, "tool_use": Reason.TOOL_CALLS, "refusal": Reason.FILTER}
BLAMES: Final = (
    dict.fromkeys(("invalid_request_error", "request_too_large"), Blame.CALLER)
    | dict.fromkeys(("authentication_error", "billing_error", "permission_error"), Blame.CREDENTIAL)
    | {"rate_limit_error": Blame.LIMIT, "overloaded_error": Blame.BUSY}
)
TOO_LONG: Final = re.compile(r"(prompt|input) is too long|context (limit|window|length)", re.IGNORECASE)
NO_CREDIT: Final = re.compile(r"credit balance is too low|reached your specified .*usage limit", re.IGNORECASE)


def _decode(data: bytes) -> Json:
    record = read_json(data)
    if not isinstance(record, dict):
        raise ValueError("Expected an object")
    return cast("Json", record)


class AnthropicTranslation:
    """Translates one reply."""

    __slots__ = ("_counts", "_thoughts", "_tool")

    def __init__(self) -> None:
        self._counts = MessagesCounts()
        self._thoughts: dict[int, Json] = {}  # blocks of reasoning that no call has taken yet
        self._tool: int | None = None  # the block that calls a tool; the vendor's own tools take arguments too

    def event(self, name: str, data: bytes) -> Iterator[chat.Part]:
        """Yield the parts of one event of a stream."""
        del name  # the data has it, too
        match record := _decode(data):
            case {"type": "content_block_delta" | "content_block_start", "index": int(index)}:
                yield from self._read_block(index, record.get("content_block", record.get("delta")))
            case {"type": "message_start"}:
                yield from self._open(record.get("message"))
            case {"type": "message_delta", "delta": {"stop_reason": str(reason)}}:
                yield from self._count(record.get("usage"))
                yield chat.Finish(REASONS.get(reason, Reason.STOP))
            case {"type": "message_stop"}:
                yield chat.End()
            case {"type": "error"}:
                yield _blame(record)
            case {"type": str()}:
                pass  # `ping`, the end of a block, and future events
            case _:
                raise ValueError("unexpected shape of an event")

    def whole(self, body: bytes) -> Iterator[chat.Part]:
        """Yield the parts of a reply that was not streamed."""
        record = _decode(body)
        if record.get("type") == "error":
            yield _blame(record)
        else:
            yield from self._open(record)
            yield chat.Finish(REASONS.get(record["stop_reason"], Reason.STOP))
            yield chat.End()

    def _open(self, message: Any) -> Iterator[chat.Part]:
        match message:
            case {"id": str(reply_id), "model": str(model), "content": [*blocks]}:
                yield chat.Opening(reply_id, model)
                yield from self._count(message.get("usage"))
                for index, block in enumerate(blocks):
                    yield from self._read_block(index, block)
            case _:
                raise ValueError("unexpected shape of a message")

    def _read_block(self, index: int, block: Any) -> Iterator[chat.Part]:
        """Yield the parts of a block when it begins, or of a change to it."""
        self._think(index, block)
        match block:
            case {"type": "text_delta" | "text", "text": str(text)} if text:
                yield chat.Text(text)
            case {"type": "thinking_delta" | "thinking", "thinking": str(text)} if text:
                yield chat.Reasoning(text)
            case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": {**taken}}:
                self._tool = index
                yield from self._seal()
                yield chat.ToolCall(call_id, name)
                if taken:  # in a stream they come later, piece by piece
                    yield chat.Arguments(write_json(taken).decode())
            case {"type": "input_json_delta", "partial_json": str(json)} if json and index == self._tool:
                yield chat.Arguments(json)
            case {"text": ""} | {"thinking": ""}:
                pass  # as a stream begins a block
            case {"type": str(kind)} if kind not in ("text", "text_delta", "thinking", "thinking_delta", "tool_use"):
                pass  # what chat has no place for: citations, searches of the vendor's own
            case _:
                raise ValueError("unexpected shape of a block")

    def _count(self, usage: Any) -> Iterator[chat.Part]:
        """Yield the counts so far; without any the gateway estimates."""
        if isinstance(usage, dict):
            yield chat.Used(self._counts.add(cast("Json", usage)))

    def _seal(self) -> Iterator[chat.Part]:
        """Yield the reasoning before a call in the form in which the vendor needs it back."""
        whole = [block for block in self._thoughts.values() if block.get("signature") or block.get("data")]
        self._thoughts.clear()
        if whole:
            yield chat.Seal(seals.seal(SEAL, whole))

    def _think(self, index: int, block: Any) -> None:
        """Keep a block of reasoning as it begins, or a change to it."""
        match block:
            case {"type": "thinking" | "redacted_thinking"}:
                self._thoughts[index] = dict(block)
            case {"type": "thinking_delta", "thinking": str(text)} if index in self._thoughts:
                self._thoughts[index]["thinking"] = self._thoughts[index].get("thinking", "") + text
            case {"type": "signature_delta", "signature": str(text)} if index in self._thoughts:
                self._thoughts[index]["signature"] = self._thoughts[index].get("signature", "") + text
            case _:
                pass


def _blame(body: Any, status: int = 0, retry_after: float | None = None) -> Fault:
    match body:
        case {"error": {"type": str(kind), "message": str(message)}}:
            refuses_us = status in (401, 403) or NO_CREDIT.search(message)
            blame = Blame.CREDENTIAL if refuses_us else BLAMES.get(kind) or chat.blame_status(status)
        case _:
            return Fault(chat.blame_status(status), retry_after=retry_after, status=status)
    if blame is Blame.CALLER and TOO_LONG.search(message):
        message = f"This model's maximum context length is exceeded: {message}"
        return Fault(blame, message, "context_length_exceeded", "messages", status=status)
    return Fault(blame, message, None if kind == "invalid_request_error" else kind, None, retry_after, status)


VENDOR = Anthropic
