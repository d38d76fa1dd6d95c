"""The OpenAPI operations of the doors of chat, such as `POST /llm/chat/completions`, which FastAPI does not serve."""

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
from penstock.web.chat_schema import CHAT_PATH, CHAT_REQUEST, COUNT_PATH, MESSAGES_PATH, MESSAGES_REQUEST
from penstock.web.responses import success

TEXT = {"type": "string"}
HEADERS = {
    "x-penstock-vendor": {"description": "the vendor that answered", "schema": TEXT},
    "x-penstock-overhead-ms": {"description": "the gateway's own share of the time", "schema": TEXT},
    "x-penstock-cost": {"description": "USD; of answers that are not streamed, if the price is known", "schema": TEXT},
    "x-penstock-left-out": {"description": "fields that the vendor did not get, separated by commas", "schema": TEXT},
    "x-penstock-cache": {"description": "`hit` or `miss`, where there is a response cache", "schema": TEXT},
}


REFUSALS = (
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


def describe_doors() -> dict[str, Any]:
    """Return the OpenAPI path items of all doors."""
    completion = success("The completion, or with `stream` its chunks.", "ChatCompletion", headers=HEADERS)
    completion["content"]["text/event-stream"] = {"schema": TEXT}
    message = success("The message, or with `stream` its events.", "Message", headers=HEADERS)
    message["content"]["text/event-stream"] = {"schema": TEXT}
    also = "Errors are in Anthropic's shape. Also at `/llm/v1/messages"
    return {
        CHAT_PATH: _describe(
            "complete_chat",
            "Chat",
            "Chat with any OpenAI client. Also at `/v1/chat/completions`.",
            CHAT_REQUEST,
            completion,
        ),
        MESSAGES_PATH: _describe(
            "create_message", "Messages", f"Chat with any client of Anthropic's. {also}`.", MESSAGES_REQUEST, message
        ),
        COUNT_PATH: _describe(
            "count_message_tokens",
            "Count tokens",
            f"Count the tokens of a Messages request. It costs nothing. {also}/count_tokens`.",
            MESSAGES_REQUEST | {"required": ["model", "messages"]},
            success("The number of tokens.", "TokenCount"),
        ),
    }


def _describe(
    name: str, summary: str, description: str, request: dict[str, Any], answered: dict[str, Any]
) -> dict[str, Any]:
    responses = {200: answered} | signed_in(*REFUSALS)
    operation = {
        "tags": ["Chat"],
        "summary": summary,
        "description": description,
        "operationId": name,
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {str(status): response for status, response in responses.items()},
    }
    return {"post": operation}
