"""The paths of chat and the JSON Schemas of its bodies, for the endpoint, the model list and the OpenAPI document."""

from typing import Any, Final

CHAT_PATH: Final = "/llm/chat/completions"
MESSAGES_PATH: Final = "/v1/messages"
COUNT_PATH: Final = "/v1/messages/count_tokens"
CHAT_ENDPOINTS: Final = (CHAT_PATH, MESSAGES_PATH)
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
MESSAGES_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["model", "max_tokens", "messages"],
    "additionalProperties": True,
    "description": "Anthropic's request. An `anthropic` vendor gets every field as it is; for others it is translated.",
    "properties": {
        "model": {"type": "string", "minLength": 1, "maxLength": 256, "description": "an id of `GET /llm/models`"},
        "max_tokens": {"type": "integer", "minimum": 1},
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["role"],
                "properties": {
                    "role": {"type": "string", "enum": ["user", "assistant", "system"]},
                    "content": {"description": "a text, or a list of blocks"},
                },
            },
        },
        "system": {"description": "a text, or a list of text blocks"},
        "stream": _optional({"type": "boolean"}),
        "tools": _optional({"type": "array"}),
        "tool_choice": _optional({"type": "object"}),
        "thinking": _optional({"type": "object"}),
        "output_config": _optional({"type": "object"}),
        "stop_sequences": _optional({"type": "array", "items": TEXT}),
        "temperature": _optional({"type": "number"}),
        "metadata": _optional({"type": "object"}),
    },
    "example": {
        "model": "fast-chat",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "What is a penstock?"}],
    },
}
