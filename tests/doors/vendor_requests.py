"""Reads the requests that vendors get, each in its own dialect, with code that knows nothing of the gateway's."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from doors.neutral import Call, Conversation, Json, Message, Part, Picture, Result, Text, Thought, Tool

DATA_URI = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def read_uri(uri: str) -> Picture:
    """Return the picture at a URL or in a `data:` URI."""
    found = DATA_URI.fullmatch(uri)
    return Picture(found[2], found[1]) if found else Picture(url=uri)


# -- chat completions


def read_chat(body: Json) -> Conversation:
    """Read a request to a chat vendor."""
    messages, system = list[Message](), list[str]()
    for message in body["messages"]:
        match message["role"]:
            case "system" | "developer":
                system += [part.text for part in _read_chat_content(message["content"]) if isinstance(part, Text)]
            case "tool":
                content = tuple(_read_chat_content(message["content"]))
                messages.append(Message("user", (Result(message["tool_call_id"], content),)))
            case role:
                messages.append(Message(role, tuple(_read_chat_turn(message))))
    shape = body.get("response_format") or {}
    return Conversation(
        messages=tuple(messages),
        system="\n".join(system),
        tools=tuple(_read_tool(tool["function"], "parameters") for tool in body.get("tools") or ()),
        choice=_read_choice(body.get("tool_choice"), "function", "name"),
        one_call=body.get("parallel_tool_calls") is False,
        schema=shape.get("json_schema", {}).get("schema"),
        effort=body.get("reasoning_effort"),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        stop=_read_stop(body.get("stop")),
        user=body.get("user") or body.get("safety_identifier"),
    )


def _read_chat_turn(message: Json) -> Iterator[Part]:
    if message.get("reasoning_content"):
        yield Thought(message["reasoning_content"])
    yield from _read_chat_content(message.get("content"))
    for call in message.get("tool_calls") or ():
        yield Call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))


def _read_chat_content(content: Any) -> Iterator[Text | Picture]:
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        yield Text(part["text"]) if part["type"] == "text" else read_uri(part["image_url"]["url"])


def _read_tool(function: Json, schema: str) -> Tool:
    return Tool(function["name"], function.get("description", ""), function.get(schema) or {})


def _read_choice(choice: Any, *path: str) -> str | None:
    for name in path if isinstance(choice, dict) else ():
        choice = choice[name]
    return choice


def _read_stop(stop: Any) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


# -- Responses


def read_responses(body: Json) -> Conversation:
    """Read a request to a vendor that speaks Responses."""
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    system = [body["instructions"]] if body.get("instructions") else []
    messages = list[Message]()
    for item in items:
        role = item.get("role", "user" if item.get("type") == "function_call_output" else "assistant")
        parts = tuple(_read_item(item))
        if role in ("system", "developer"):
            system += [part.text for part in parts if isinstance(part, Text)]
        else:
            messages.append(Message(role, parts))
    return Conversation(
        messages=tuple(messages),
        system="\n".join(system),
        tools=tuple(_read_tool(tool, "parameters") for tool in body.get("tools") or () if tool["type"] == "function"),
        choice=_read_choice(body.get("tool_choice"), "name"),
        one_call=body.get("parallel_tool_calls") is False,
        schema=(body.get("text") or {}).get("format", {}).get("schema"),
        effort=(body.get("reasoning") or {}).get("effort"),
        max_tokens=body.get("max_output_tokens"),
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        user=body.get("safety_identifier") or body.get("user"),
    )


def _read_item(item: Json) -> Iterator[Part]:
    match item.get("type", "message"):
        case "message":
            yield from _read_inputs(item["content"])
        case "function_call":
            yield Call(item["call_id"], item["name"], json.loads(item["arguments"]))
        case "function_call_output":
            yield Result(item["call_id"], tuple(_read_inputs(item["output"])))
        case "reasoning":
            yield Thought("".join(part["text"] for part in item.get("summary", ())), item.get("encrypted_content"))
        case other:
            raise AssertionError(f"unknown item: {other}")


def _read_inputs(content: Any) -> Iterator[Text | Picture]:
    for part in [{"type": "input_text", "text": content}] if isinstance(content, str) else content:
        yield read_uri(part["image_url"]) if part["type"] == "input_image" else Text(part["text"])


# -- Anthropic


def read_anthropic(body: Json) -> Conversation:
    """Read a request to Anthropic."""
    system = body.get("system") or ""
    messages = [message for message in body["messages"] if message["role"] != "system"]
    said = [message for message in body["messages"] if message["role"] == "system"]
    systems = [system] if isinstance(system, str) else [block["text"] for block in system]
    systems += [part.text for message in said for part in _read_blocks(message["content"]) if isinstance(part, Text)]
    choice, config = body.get("tool_choice") or {}, body.get("output_config") or {}
    named = {"auto": "auto", "none": "none", "any": "required", None: None}
    return Conversation(
        messages=tuple(Message(message["role"], tuple(_read_blocks(message["content"]))) for message in messages),
        system="\n".join(text for text in systems if text),
        tools=tuple(_read_tool(tool, "input_schema") for tool in body.get("tools") or ()),
        choice=named.get(choice.get("type"), choice.get("name")),
        one_call=choice.get("disable_parallel_tool_use") is True,
        schema=config.get("format", {}).get("schema"),
        effort=config.get("effort"),
        max_tokens=body["max_tokens"],
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        stop=_read_stop(body.get("stop_sequences")),
        user=(body.get("metadata") or {}).get("user_id"),
    )


def _read_blocks(content: Any) -> Iterator[Any]:
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        match block["type"]:
            case "text":
                yield Text(block["text"])
            case "image":
                source = block["source"]
                is_url = source["type"] == "url"
                yield Picture(url=source["url"]) if is_url else Picture(source["data"], source["media_type"])
            case "thinking":
                yield Thought(block["thinking"], block["signature"] or None)
            case "tool_use":
                yield Call(block["id"], block["name"], block["input"])
            case "tool_result":
                inner = tuple(_read_blocks(block.get("content") or []))
                yield Result(block["tool_use_id"], inner, block.get("is_error", False))
            case other:
                raise AssertionError(f"unknown block: {other}")


# -- Gemini


def read_gemini(body: Json) -> Conversation:
    """Read a request to Gemini, where a result follows its call in the next turn, in order."""
    messages, waiting, calls = list[Message](), list[str](), 0
    for content in body["contents"]:
        parts = list[Part]()
        for part in content["parts"]:
            if "functionCall" in part:
                calls += 1
                waiting.append(f"call-{calls}")
                called = part["functionCall"]
                if seal := part.get("thoughtSignature"):
                    parts.append(Thought("", seal))
                parts.append(Call(waiting[-1], called["name"], called.get("args") or {}))
            elif "functionResponse" in part:
                parts.append(_read_response(waiting.pop(0), part["functionResponse"]["response"]))
            else:
                parts.append(_read_gemini_part(part))
        messages.append(Message("assistant" if content["role"] == "model" else "user", tuple(parts)))
    config = body.get("generationConfig") or {}
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    modes = {"AUTO": "auto", "NONE": "none", "ANY": "required", None: None}
    thinking = config.get("thinkingConfig") or {}
    return Conversation(
        messages=tuple(messages),
        system="\n".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ())),
        tools=tuple(
            _read_tool(function, "parametersJsonSchema")
            for tool in body.get("tools") or ()
            for function in tool["functionDeclarations"]
        ),
        choice=next(iter(calling.get("allowedFunctionNames") or ()), modes[calling.get("mode")]),
        schema=config.get("responseJsonSchema"),
        effort=thinking.get("thinkingLevel"),
        max_tokens=config["maxOutputTokens"],
        temperature=config.get("temperature"),
        top_p=config.get("topP"),
        stop=_read_stop(config.get("stopSequences")),
    )


def _read_gemini_part(part: Json) -> Part:
    match part:
        case {"text": text, "thought": True}:
            return Thought(text, part.get("thoughtSignature"))
        case {"text": text}:
            return Text(text)
        case {"inlineData": {"mimeType": kind, "data": data}}:
            return Picture(data, kind)
        case {"fileData": {"fileUri": url}}:
            return Picture(url=url)
        case _:
            raise AssertionError(f"unknown part: {part}")


def _read_response(call_id: str, response: Json) -> Result:
    match response:
        case {"result": str(text)} if len(response) == 1:
            return Result(call_id, (Text(text),))
        case _:
            return Result(call_id, (Text(json.dumps(response, ensure_ascii=False)),))


READERS: Mapping[str, Callable[[Json], Conversation]] = {
    "chat": read_chat,
    "responses": read_responses,
    "anthropic": read_anthropic,
    "gemini": read_gemini,
}
"""By the vendor's dialect."""
