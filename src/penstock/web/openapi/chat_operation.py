"""What the OpenAPI document says of `POST /llm/chat/completions`, which the framework never sees."""

from typing import Any

from penstock.errors import (
    BodyTooLarge,
    ChatRateLimited,
    InsufficientBudget,
    InvalidRequest,
    ModelNotAllowed,
    ModelNotFound,
    RequestTimeout,
    TooManyStreams,
    UnsupportedMediaType,
    VendorFailed,
    VendorRefusedUs,
    VendorTimeout,
)
from penstock.web.auth import signed_in
from penstock.web.responses import success


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
REQUEST: dict[str, Any] = {
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
HEADERS = {
    "x-penstock-vendor": {"description": "the vendor that answered", "schema": TEXT},
    "x-penstock-overhead-ms": {"description": "the gateway's own share of the time", "schema": TEXT},
    "x-penstock-cost": {"description": "USD; of answers that are not streamed, if the price is known", "schema": TEXT},
    "x-penstock-cache": {"description": "`hit` or `miss`, where there is a response cache", "schema": TEXT},
}


def describe_chat() -> dict[str, Any]:
    """The operation, as the document holds it."""
    answered = success("The completion, or with `stream` its chunks.", "ChatCompletion", headers=HEADERS)
    answered["content"]["text/event-stream"] = {"schema": TEXT}
    responses = signed_in(
        InvalidRequest,
        ModelNotAllowed,
        ModelNotFound,
        RequestTimeout,
        BodyTooLarge,
        UnsupportedMediaType,
        ChatRateLimited,
        TooManyStreams,
        InsufficientBudget,
        VendorFailed,
        VendorRefusedUs,
        VendorTimeout,
    )
    return {
        "tags": ["Chat"],
        "summary": "Chat",
        "description": "Chat as any OpenAI client speaks it; also at `/v1/chat/completions`.",
        "operationId": "complete_chat",
        "requestBody": {"required": True, "content": {"application/json": {"schema": REQUEST}}},
        "responses": {str(status): said for status, said in ({200: answered} | responses).items()},
    }
