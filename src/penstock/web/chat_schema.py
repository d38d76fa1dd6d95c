"""The path of chat and the JSON Schema of its body, for the endpoint, the model list and the OpenAPI document."""

from typing import Any, Final

CHAT_PATH: Final = "/llm/chat/completions"
RESPONSES_PATH: Final = "/llm/responses"
CHAT_ENDPOINTS: Final = (CHAT_PATH, RESPONSES_PATH)
"""Paths that answer a chat, one for each dialect that this server speaks."""


def _optional(schema: dict[str, Any], description: str = "") -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}], "description": description}


TEXT = {"type": "string"}
MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"type": "string", "enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": {"description": "a text, a list of parts (text, image_url, input_audio, file), or null"},
    },
}
CHAT_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["model", "messages"],
    "additionalProperties": True,
    "description": "OpenAI's chat completion request. Fields not listed here are passed to the vendor as they are.",
    "properties": {
        "model": {"type": "string", "minLength": 1, "maxLength": 256, "description": "an id of `GET /llm/models`"},
        "messages": {"type": "array", "minItems": 1, "items": MESSAGE},
        "stream": _optional({"type": "boolean"}),
        "stream_options": _optional(
            {"type": "object", "properties": {"include_usage": _optional({"type": "boolean"})}}, "only with `stream`"
        ),
        "max_completion_tokens": _optional({"type": "integer", "minimum": 1}),
        "max_tokens": _optional({"type": "integer", "minimum": 1}),
        "temperature": _optional({"type": "number", "minimum": 0, "maximum": 2}),
        "top_p": _optional({"type": "number", "minimum": 0, "maximum": 1}),
        "n": _optional({"type": "integer", "minimum": 1, "maximum": 128}),
        "stop": {"anyOf": [TEXT, {"type": "array", "maxItems": 4, "items": TEXT}, {"type": "null"}]},
        "tools": _optional({"type": "array"}),
        "response_format": _optional({"type": "object"}),
    },
    "example": {"model": "fast-chat", "messages": [{"role": "user", "content": "What is a penstock?"}]},
}
RESPONSES_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["model", "input"],
    "additionalProperties": True,
    "description": "OpenAI's Responses request. Other fields are passed on or translated where that is possible.",
    "properties": {
        "model": CHAT_REQUEST["properties"]["model"],
        "input": {"anyOf": [TEXT, {"type": "array", "minItems": 1, "items": {"type": "object"}}]},
        "instructions": _optional(TEXT),
        "stream": _optional({"type": "boolean"}),
        "max_output_tokens": _optional({"type": "integer", "minimum": 1}),
        "temperature": _optional({"type": "number", "minimum": 0, "maximum": 2}),
        "top_p": _optional({"type": "number", "minimum": 0, "maximum": 1}),
        "tools": _optional({"type": "array"}),
        "reasoning": _optional({"type": "object"}),
        "text": _optional({"type": "object"}),
    },
    "example": {"model": "fast-chat", "input": "What is a penstock?"},
}
