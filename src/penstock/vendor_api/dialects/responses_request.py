"""Requests for vendors that speak OpenAI's Responses: those of the chat dialect are translated, its own adapted."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import Raw, structs

from penstock.domain.chat import Ask
from penstock.errors import InvalidRequest
from penstock.vendor_api import seals
from penstock.vendor_api.left_out import REASONING, find_left_out

_Json: TypeAlias = dict[str, Any]

SEAL_NAME: Final = "openai"
"""The name of this dialect in seals."""
_PASSED: Final = (
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "stream",
    "temperature",
    "top_p",
    "user",
)
"""Fields with one name in both dialects."""
_IDLE: Final[Mapping[str, Any]] = (
    dict.fromkeys(("audio", "function_call", "functions", "web_search_options"))
    | dict.fromkeys(("frequency_penalty", "presence_penalty", "top_logprobs"), 0)
    | {"logit_bias": {}, "logprobs": False, "modalities": ["text"], "n": 1, "stop": []}
)
"""Fields that change the meaning of an answer and are not supported, each with the value that has no effect."""
_READ: Final = frozenset(
    {"max_completion_tokens", "max_tokens", "messages", "model", "reasoning", "reasoning_effort", "response_format"}
    | {"tool_choice", "tools", "verbosity"}
)
_SILENT: Final = frozenset({"stream_options"})
"""Fields that the gateway has read."""
_MAX_ID_CHARACTERS: Final = 64
_MARK: Final = seals.PREFIX.encode()


def adapt_request(ask: Ask) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of a Responses request for its vendor, and the names of what the vendor cannot read."""
    fields: dict[str, Any] = {**ask.fields}
    fields.setdefault("store", Raw(b"false"))
    raw = ask.fields.get("input")
    if raw is None or _MARK not in bytes(raw):
        return fields, ()
    given = ask.field("input")
    if not isinstance(given, list):
        return fields, ()
    lost: list[str] = []
    fields["input"] = [each for item in cast("list[Any]", given) for each in _unseal_item(item, lost)]
    return fields, tuple(dict.fromkeys(lost))


def _unseal_item(item: Any, lost: list[str]) -> Iterator[Any]:
    """Yield an item without seals: with what this vendor sealed, and without what others did."""
    match item:
        case {"type": "reasoning", "encrypted_content": str(sealed)} if seals.is_seal(sealed):
            found = _open_seal(sealed)
            yield from found
            if not found:
                lost.append("reasoning.encrypted_content")
        case {"call_id": str(call_id)}:
            bare, sealed = seals.detach(call_id)
            if sealed is not None and not str(item.get("type")).endswith("_output"):
                yield from _open_seal(sealed)
            yield {**item, "call_id": _shorten(bare)}
        case _:
            yield item


def _open_seal(sealed: str) -> list[_Json]:
    """Return the reasoning items in a seal; none if another vendor wrote it."""
    found = seals.unseal(sealed, SEAL_NAME)
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [{"summary": [], **item, "type": "reasoning"} for item in items if isinstance(item, dict)]


def _shorten(call_id: str) -> str:
    """Return the id of a call in at most the number of characters that OpenAI takes."""
    if len(call_id) <= _MAX_ID_CHARACTERS:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:40]}"


# -- from the chat dialect


def translate_request(ask: Ask, *, wants_seals: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of a Responses request for one of the chat dialect, and the names of those it cannot have."""
    for name in ask.fields.keys() & _IDLE.keys():
        if ask.has(name, but=_IDLE[name]):
            raise InvalidRequest(
                f"Unsupported parameter: '{name}' is not supported with this model.",
                param=name,
                code="unsupported_parameter",
            )
    tools = _Tools(ask.field("tools") or [])
    fields: dict[str, Any] = {name: ask.fields[name] for name in _PASSED if name in ask.fields}
    fields["input"] = list(_translate_messages(_read_messages(ask), tools.custom))
    fields["store"] = False
    if wants_seals:
        fields["include"] = ["reasoning.encrypted_content"]
    if ask.max_tokens is not None:
        fields["max_output_tokens"] = ask.max_tokens
    if tools.translated:
        fields["tools"] = tools.translated
        if (choice := ask.field("tool_choice")) is not None:
            fields["tool_choice"] = _translate_choice(choice)
    else:
        fields.pop("parallel_tool_calls", None)
    fields |= _translate_output(ask)
    known = _READ | _SILENT | _IDLE.keys() | set(_PASSED)
    return fields, find_left_out(ask, known, _find_lost(ask.field("messages")))


def _find_lost(messages: Any) -> Iterator[str]:
    """Yield the names of fields of messages that have no place in items."""
    for message in messages:
        if message.get("name"):
            yield "messages.name"
        if message.get("audio"):
            yield "messages.audio"
        if message.get("reasoning_content") or message.get("reasoning"):
            sealed = [*(message.get("sealed_reasoning") or ()), *_find_seals(message)]
            yield from () if any(_open_seal(str(one)) for one in sealed) else (REASONING,)


def _find_seals(message: _Json) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        _, sealed = seals.detach(str(call.get("id")))
        yield sealed or ""


def _translate_output(ask: Ask) -> _Json:
    """Return the effort of reasoning, and the format and verbosity of the text."""
    reasoning: _Json = {}
    given = ask.field("reasoning")
    if isinstance(given, dict):
        reasoning |= cast("_Json", given)
    if (effort := ask.field("reasoning_effort")) is not None:
        reasoning["effort"] = effort
    text: _Json = {}
    if (verbosity := ask.field("verbosity")) is not None:
        text["verbosity"] = verbosity
    match ask.field("response_format"):
        case {"type": "json_schema", "json_schema": {**schema}}:
            text["format"] = {"type": "json_schema", **schema}
        case {"type": "json_object"}:
            text["format"] = {"type": "json_object"}
        case None | {"type": "text"}:
            pass
        case _:
            raise _invalid("response_format", "expected text, json_object or json_schema")
    found = {"reasoning": reasoning, "text": text}
    return {name: value for name, value in found.items() if value}


# -- tools


class _Tools:
    """The tools of a chat request, without the object around each."""

    def __init__(self, tools: list[Any]) -> None:
        self.translated = [_flatten(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
        self.custom = {str(tool.get("name")) for tool in self.translated if tool["type"] == "custom"}


def _flatten(tool: Any, place: str) -> _Json:
    match tool:
        case {"type": "function", "function": {"name": str(), **_rest}}:
            return {"type": "function", "parameters": None, "strict": False, **tool["function"]}
        case {"type": "custom", "custom": {"name": str(), **rest}}:
            return {"type": "custom", **tool["custom"], **_flatten_format(rest.get("format"))}
        case _:
            raise _invalid(place, "expected a function or a custom tool with a name")


def _flatten_format(shape: Any) -> _Json:
    match shape:
        case {"type": "grammar", "grammar": {**grammar}}:
            return {"format": {"type": "grammar", **grammar}}
        case _:
            return {}


def _translate_choice(choice: Any) -> Any:
    match choice:
        case str():
            return choice
        case {"type": "function" | "custom" as kind, **rest} if isinstance(rest.get(kind), dict):
            return {"type": kind, "name": rest[kind].get("name")}
        case {"type": "allowed_tools", "allowed_tools": {"mode": str(mode), "tools": [*tools]}}:
            return {"type": "allowed_tools", "mode": mode, "tools": [_translate_choice(tool) for tool in tools]}
        case _:
            raise _invalid("tool_choice", "expected none, auto, required, a function, a custom tool or allowed_tools")


# -- messages


class _Message(msgspec.Struct):
    """The fields of a chat message that are read."""

    role: str
    content: str | list[_Json] | None = None
    refusal: str | None = None
    tool_calls: list[_Json] | None = None
    function_call: Any = None
    tool_call_id: str | None = None
    sealed_reasoning: list[str] | None = None


def _read_messages(ask: Ask) -> list[_Json]:
    try:
        messages = msgspec.json.decode(ask.fields["messages"], type=list[_Message])
    except (ValueError, RecursionError) as error:
        problem, _, place = str(error).partition(" - at `$")
        raise _invalid("messages" + place.removesuffix("`"), problem.replace("`", "'")) from None
    return [structs.asdict(message) for message in messages]


def _translate_messages(messages: list[_Json], custom: set[str]) -> Iterator[_Json]:
    called: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        match message:
            case {"role": "system" | "developer" | "user" as role}:
                yield {"role": role, "content": _translate_content(message.get("content"), f"{place}.content")}
            case {"role": "assistant"} if not message.get("function_call"):
                yield from _translate_assistant(message, place, custom, called)
            case {"role": "tool", "tool_call_id": str(call_id)}:
                short = _shorten(seals.detach(call_id)[0])
                kind = "custom_tool_call_output" if short in called else "function_call_output"
                output = _translate_content(message.get("content"), f"{place}.content")
                yield {"type": kind, "call_id": short, "output": output}
            case _:
                raise _invalid(place, "expected a system, developer, user, assistant or tool message")


def _translate_assistant(message: _Json, place: str, custom: set[str], called: set[str]) -> Iterator[_Json]:
    for sealed in message.get("sealed_reasoning") or ():
        yield from _open_seal(str(sealed))
    content = [_translate_spoken(piece, f"{place}.content") for piece in _pieces(message.get("content"))]
    if message.get("refusal"):
        content.append({"type": "refusal", "refusal": message["refusal"]})
    if content:
        yield {"role": "assistant", "content": content}
    for index, call in enumerate(message.get("tool_calls") or ()):
        bare, sealed = seals.detach(str(call.get("id")))
        if sealed is not None:
            yield from _open_seal(sealed)
        found = _translate_call(call, f"{place}.tool_calls[{index}]", custom)
        short = _shorten(bare)
        if found["type"] == "custom_tool_call":
            called.add(short)
        yield {**found, "call_id": short}


def _translate_call(call: Any, place: str, custom: set[str]) -> _Json:
    match call:
        case {"function": {"name": str(name), **rest}} if name in custom:
            return {"type": "custom_tool_call", "name": name, "input": _read_input(str(rest.get("arguments") or ""))}
        case {"function": {"name": str(name), **rest}}:
            return {"type": "function_call", "name": name, "arguments": str(rest.get("arguments") or "{}")}
        case {"custom": {"name": str(name), "input": str(text)}}:
            return {"type": "custom_tool_call", "name": name, "input": text}
        case _:
            raise _invalid(place, "expected a call of a function or of a custom tool")


def _read_input(arguments: str) -> str:
    try:
        found = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return arguments
    match found:
        case {"input": str(text)}:
            return text
        case _:
            return arguments


def _pieces(content: Any) -> list[Any]:
    if content is None or content == "":
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[Any]", content)


def _translate_content(content: Any, place: str) -> str | list[_Json]:
    if not isinstance(content, list):
        return str(content or "")
    pieces = cast("list[Any]", content)
    return [_translate_given(piece, f"{place}[{index}]") for index, piece in enumerate(pieces)]


def _translate_given(piece: Any, place: str) -> _Json:
    """Return a part that the vendor is given."""
    match piece:
        case {"type": "text", "text": str(text)}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": str(url), **rest}}:
            return {"type": "input_image", "image_url": url, "detail": rest.get("detail") or "auto"}
        case {"type": "image_url", "image_url": str(url)}:
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case {"type": "file", "file": {**file}}:
            return {"type": "input_file", **file}
        case {"type": str(kind)}:
            raise InvalidRequest(
                f"Unsupported value: '{place}.type' does not support '{kind[:80]}' with this model. "
                "It takes: text, image_url, file.",
                param=f"{place}.type",
                code="unsupported_value",
            )
        case _:
            raise _invalid(place, "expected an object with a 'type'")


def _translate_spoken(piece: Any, place: str) -> _Json:
    """Return a part that the assistant wrote."""
    match piece:
        case {"type": "text", "text": str(text)}:
            return {"type": "output_text", "text": text}
        case {"type": "refusal", "refusal": str(refusal)}:
            return {"type": "refusal", "refusal": refusal}
        case _:
            raise _invalid(place, "an assistant's message has parts of type text or refusal")


def _invalid(name: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid '{name}': {reason}.", param=name, code="invalid_value")
