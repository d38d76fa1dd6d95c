"""Writes a conversation as the client of each door would."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from doors.neutral import Call, Conversation, Json, Message, Part, Picture, Result, Text, Thought


def _drop_absent(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


# -- chat completions


def write_chat(conversation: Conversation) -> Json:
    """Return the body of a request to `/chat/completions`."""
    system = [{"role": "system", "content": conversation.system}] if conversation.system else []
    named = {"name": "answer", "strict": True, "schema": conversation.schema}
    return _drop_absent(
        {
            "messages": [*system, *(one for message in conversation.messages for one in _write_chat(message))],
            "max_completion_tokens": conversation.max_tokens,
            "temperature": conversation.temperature,
            "top_p": conversation.top_p,
            "stop": list(conversation.stop) or None,
            "user": conversation.user,
            "reasoning_effort": conversation.effort,
            "tools": [
                {"type": "function", "function": _name_tool(tool) | {"parameters": tool.schema}}
                for tool in conversation.tools
            ]
            or None,
            "tool_choice": _choose(conversation.choice, lambda name: {"type": "function", "function": {"name": name}}),
            "parallel_tool_calls": False if conversation.one_call else None,
            "response_format": conversation.schema and {"type": "json_schema", "json_schema": named},
        }
    )


def _name_tool(tool: Any) -> Json:
    return {"name": tool.name, "description": tool.description}


def _choose(choice: str | None, write: Callable[[str], Json]) -> Any:
    return choice if choice in (None, "auto", "none", "required") else write(choice)


def _write_chat(message: Message) -> Iterator[Json]:
    if message.raw is not None:
        yield from message.raw
        return
    for result in (part for part in message.parts if isinstance(part, Result)):
        yield {"role": "tool", "tool_call_id": result.id, "content": _write_chat_content(result.parts)}
    rest = [part for part in message.parts if isinstance(part, Text | Picture)]
    written: Json = {"role": message.role}
    if rest:
        written["content"] = _write_chat_content(rest)
    calls = [part for part in message.parts if isinstance(part, Call)]
    if calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": dump(call.arguments)}}
            for call in calls
        ]
    if thoughts := [part.text for part in message.parts if isinstance(part, Thought)]:
        written["reasoning_content"] = "".join(thoughts)
    if rest or calls or message.role != "user":
        yield {"content": None, **written}


def _write_chat_content(parts: Any) -> Any:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image_url", "image_url": {"url": part.uri}}
        for part in parts
    ]


def dump(value: Any) -> str:
    """Return JSON with all letters as they are."""
    return json.dumps(value, ensure_ascii=False)


# -- Messages


def write_messages(conversation: Conversation) -> Json:
    """Return the body of a request to `/v1/messages`."""
    choice = {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}, None: None}
    chosen = choice.get(conversation.choice, {"type": "tool", "name": conversation.choice})
    if conversation.one_call:
        chosen = {"type": "auto", **(chosen or {}), "disable_parallel_tool_use": True}
    config: Json = {"effort": conversation.effort} if conversation.effort else {}
    if conversation.schema:
        config["format"] = {"type": "json_schema", "schema": conversation.schema}
    return _drop_absent(
        {
            "messages": [_write_message(message) for message in conversation.messages if message.parts or message.raw],
            "system": conversation.system or None,
            "max_tokens": conversation.max_tokens,
            "temperature": conversation.temperature,
            "top_p": conversation.top_p,
            "stop_sequences": list(conversation.stop) or None,
            "metadata": conversation.user and {"user_id": conversation.user},
            "tools": [_name_tool(tool) | {"input_schema": tool.schema} for tool in conversation.tools] or None,
            "tool_choice": chosen,
            "output_config": config or None,
            "thinking": {"type": "adaptive"} if conversation.effort else None,
        }
    )


def _write_message(message: Message) -> Json:
    content = message.raw if message.raw is not None else [_write_block(part) for part in message.parts]
    return {"role": message.role, "content": content}


def _write_block(part: Part) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Picture(url=""):
            source = {"type": "base64", "media_type": part.media_type, "data": part.data}
            return {"type": "image", "source": source}
        case Picture():
            return {"type": "image", "source": {"type": "url", "url": part.url}}
        case Thought():
            return {"type": "thinking", "thinking": part.text, "signature": part.seal or ""}
        case Call():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}
        case Result():
            written: Json = {"type": "tool_result", "tool_use_id": part.id}
            written["content"] = [_write_block(inner) for inner in part.parts]
            return written | ({"is_error": True} if part.is_error else {})


# -- Responses


def write_responses(conversation: Conversation) -> Json:
    """Return the body of a request to `/v1/responses`."""
    reasoning = conversation.effort and {"effort": conversation.effort, "summary": "auto"}
    named = {"type": "json_schema", "name": "answer", "strict": True, "schema": conversation.schema}
    return _drop_absent(
        {
            "input": [item for message in conversation.messages for item in _write_items(message)],
            "instructions": conversation.system or None,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": conversation.max_tokens,
            "temperature": conversation.temperature,
            "top_p": conversation.top_p,
            "safety_identifier": conversation.user,
            "tools": [
                {"type": "function", **_name_tool(tool), "parameters": tool.schema} for tool in conversation.tools
            ]
            or None,
            "tool_choice": _choose(conversation.choice, lambda name: {"type": "function", "name": name}),
            "parallel_tool_calls": False if conversation.one_call else None,
            "reasoning": reasoning,
            "text": {"format": named} if conversation.schema else None,
        }
    )


def _write_items(message: Message) -> Iterator[Json]:
    if message.raw is not None:
        yield from message.raw
        return
    content: list[Json] = []
    for part in message.parts:
        item = _write_item(part)
        if item is None:
            content.append(_write_input(part, message.role))
            continue
        if content:
            yield {"type": "message", "role": message.role, "content": content}
            content = []
        yield item
    if content:
        yield {"type": "message", "role": message.role, "content": content}


def _write_item(part: Part) -> Json | None:
    match part:
        case Call():
            named = {"name": part.name, "arguments": dump(part.arguments)}
            return {"type": "function_call", "call_id": part.id, **named}
        case Result(parts=(Text(text=text),)):
            return {"type": "function_call_output", "call_id": part.id, "output": text}
        case Result():
            output = [_write_input(inner, "user") for inner in part.parts]
            return {"type": "function_call_output", "call_id": part.id, "output": output}
        case Thought():
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
            sealed = {"encrypted_content": part.seal} if part.seal else {}
            return {"type": "reasoning", "id": "rs_1", "summary": summary, **sealed}
        case _:
            return None


def _write_input(part: Any, role: str) -> Json:
    if isinstance(part, Picture):
        return {"type": "input_image", "image_url": part.uri, "detail": "auto"}
    return {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}


WRITERS: Mapping[str, Callable[[Conversation], Json]] = {
    "chat": write_chat,
    "messages": write_messages,
    "responses": write_responses,
}
"""By door."""
