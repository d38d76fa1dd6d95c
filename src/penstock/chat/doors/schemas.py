"""Paths of chat, embeddings and speech, and the JSON Schemas of their bodies, for model lists and OpenAPI."""

from collections.abc import Mapping
from typing import Any, Final

CHAT_PATH: Final = "/llm/chat/completions"
MESSAGES_PATH: Final = "/v1/messages"
COUNT_PATH: Final = "/v1/messages/count_tokens"
RESPONSES_PATH: Final = "/v1/responses"
CHAT_ENDPOINTS: Final = (CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH)
"""Paths that answer a chat, one for each dialect that this server speaks."""
EMBEDDING_PATH: Final = "/llm/embeddings"
EMBEDDING_ENDPOINTS: Final = (EMBEDDING_PATH,)
SPEECH_PATH: Final = "/llm/audio/speech"
TRANSCRIPTION_PATH: Final = "/llm/audio/transcriptions"


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
SPEECH_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["model", "input", "voice"],
    "additionalProperties": True,
    "description": "OpenAI's request. Other fields are passed on to the vendor.",
    "properties": {
        "model": CHAT_REQUEST["properties"]["model"],
        "input": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "the text to read aloud"},
        "voice": {
            "description": "the name of a voice, or an object with its id",
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "minLength": 1}}},
            ],
        },
        "instructions": _optional(TEXT, "how to say it, for models that take directions"),
        "response_format": _optional(
            {"type": "string", "enum": ["mp3", "opus", "aac", "flac", "wav", "pcm"]},
            "the default is mp3; pcm: 16 bits, little-endian, one channel, 24 kHz",
        ),
        "speed": _optional({"type": "number", "minimum": 0.25, "maximum": 4}),
        "stream_format": _optional({"type": "string", "enum": ["audio", "sse"]}, "sse: events, the last with usage"),
    },
    "example": {"model": "hibari", "input": "A penstock feeds water to a turbine.", "voice": "heart"},
}
TRANSCRIPTION_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["file", "model"],
    "additionalProperties": True,
    "description": "OpenAI's form. Other fields are passed on to the vendor.",
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "a sound or a film, at most 25 MB"},
        "model": CHAT_REQUEST["properties"]["model"],
        "language": {**TEXT, "description": "the code of the language, such as `en`; default: found"},
        "prompt": {**TEXT, "description": "words that may occur, as a hint"},
        "response_format": {
            "type": "string",
            "enum": ["json", "text", "srt", "verbose_json", "vtt", "diarized_json"],
            "description": "the default is json",
        },
        "stream": {"type": "boolean", "description": "true: events, the last with the whole text"},
    },
    "example": {"model": "whisper-base", "response_format": "json"},
}
TEXT_REQUESTS: Final[Mapping[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "chat": (CHAT_REQUEST, CHAT_ENDPOINTS),
    "embedding": (EMBEDDING_REQUEST, EMBEDDING_ENDPOINTS),
    "speech": (SPEECH_REQUEST, (SPEECH_PATH,)),
    "transcription": (TRANSCRIPTION_REQUEST, (TRANSCRIPTION_PATH,)),
}
"""By kind of model: the schema of its requests and the paths that take them."""
