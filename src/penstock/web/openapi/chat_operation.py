"""The OpenAPI operations of chat, which FastAPI does not serve: completions and responses."""

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
from penstock.web.chat_schema import CHAT_REQUEST, RESPONSES_REQUEST
from penstock.web.responses import success

TEXT = {"type": "string"}
HEADERS = {
    "x-penstock-vendor": {"description": "the vendor that answered", "schema": TEXT},
    "x-penstock-overhead-ms": {"description": "the gateway's own share of the time", "schema": TEXT},
    "x-penstock-cost": {"description": "USD; of answers that are not streamed, if the price is known", "schema": TEXT},
    "x-penstock-left-out": {"description": "fields of the request that the vendor did not get", "schema": TEXT},
    "x-penstock-cache": {"description": "`hit` or `miss`, where there is a response cache", "schema": TEXT},
}


def describe_chat() -> dict[str, Any]:
    """Return the OpenAPI operation of completions."""
    answered = success("The completion, or with `stream` its chunks.", "ChatCompletion", headers=HEADERS)
    return {
        "tags": ["Chat"],
        "summary": "Chat",
        "description": "Chat with any OpenAI client. Also at `/v1/chat/completions`.",
        "operationId": "complete_chat",
        "requestBody": {"required": True, "content": {"application/json": {"schema": CHAT_REQUEST}}},
        "responses": _describe_answers(answered),
    }


def describe_responses() -> dict[str, Any]:
    """Return the OpenAPI operation of responses."""
    answered = success("The response, or with `stream` its events.", "ModelResponse", headers=HEADERS)
    return {
        "tags": ["Chat"],
        "summary": "Responses",
        "description": "Chat with clients of OpenAI's Responses, such as Codex. Also at `/v1/responses`.",
        "operationId": "create_response",
        "requestBody": {"required": True, "content": {"application/json": {"schema": RESPONSES_REQUEST}}},
        "responses": _describe_answers(answered),
    }


def _describe_answers(answered: dict[str, Any]) -> dict[str, Any]:
    answered["content"]["text/event-stream"] = {"schema": TEXT}
    refused = signed_in(
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
    return {str(status): response for status, response in ({200: answered} | refused).items()}
