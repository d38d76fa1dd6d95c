"""The paths of chat and embeddings and the JSON Schemas of their bodies, for model lists and the OpenAPI document."""

from typing import Any, Final

CHAT_PATH: Final = "/llm/chat/completions"
CHAT_ENDPOINTS: Final = (CHAT_PATH,)
"""Paths that answer a chat, one for each dialect that this server speaks."""


EMBEDDING_PATH: Final = "/llm/embeddings"
EMBEDDING_ENDPOINTS: Final = (EMBEDDING_PATH,)


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

TOKENS = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}
EMBEDDING_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["model", "input"],
    "additionalProperties": True,
    "description": "OpenAI's embedding request. Fields not listed here are passed to the vendor as they are.",
    "properties": {
        "model": {"type": "string", "minLength": 1, "maxLength": 256, "description": "an id of `GET /llm/models`"},
        "input": {
            "description": "a text, texts, the tokens of a text, or the tokens of texts",
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "maxItems": 2048, "items": {"type": "string", "minLength": 1}},
                TOKENS,
                {"type": "array", "minItems": 1, "maxItems": 2048, "items": TOKENS},
            ],
        },
        "encoding_format": _optional(
            {"type": "string", "enum": ["float", "base64"]}, "base64: little-endian float32; the default is float"
        ),
        "dimensions": _optional({"type": "integer", "minimum": 1}, "of models whose vectors can be shortened"),
        "user": _optional(TEXT),
    },
    "example": {"model": "minilm-l6", "input": ["What is a penstock?"]},
}
