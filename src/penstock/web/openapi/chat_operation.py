"""The OpenAPI operations of `POST /llm/chat/completions` and `/llm/embeddings`, which FastAPI does not serve."""

from typing import Any

from penstock.errors import (
    BodyTooLarge,
    ChatRateLimited,
    InsufficientBudget,
    InvalidRequest,
    ModelNotAllowed,
    ModelNotFound,
    PenstockError,
    RequestTimeout,
    TooManyStreams,
    UnsupportedMediaType,
    VendorFailed,
    VendorRefusedUs,
    VendorTimeout,
)
from penstock.web.auth import signed_in
from penstock.web.chat_schema import CHAT_REQUEST, EMBEDDING_REQUEST
from penstock.web.responses import success

TEXT = {"type": "string"}
HEADERS = {
    "x-penstock-vendor": {"description": "the vendor that answered", "schema": TEXT},
    "x-penstock-overhead-ms": {"description": "the gateway's own share of the time", "schema": TEXT},
    "x-penstock-cost": {"description": "USD; of answers that are not streamed, if the price is known", "schema": TEXT},
    "x-penstock-cache": {"description": "`hit` or `miss`, where there is a response cache", "schema": TEXT},
}


ERRORS: tuple[type[PenstockError], ...] = (
    InvalidRequest,
    ModelNotAllowed,
    ModelNotFound,
    RequestTimeout,
    BodyTooLarge,
    UnsupportedMediaType,
    ChatRateLimited,
    InsufficientBudget,
    VendorFailed,
    VendorRefusedUs,
    VendorTimeout,
)


def describe_chat() -> dict[str, Any]:
    """Return the OpenAPI operation."""
    answered = success("The completion, or with `stream` its chunks.", "ChatCompletion", headers=HEADERS)
    answered["content"]["text/event-stream"] = {"schema": TEXT}
    responses = signed_in(*ERRORS, TooManyStreams)
    return {
        "tags": ["Chat"],
        "summary": "Chat",
        "description": "Chat with any OpenAI client. Also at `/v1/chat/completions`.",
        "operationId": "complete_chat",
        "requestBody": {"required": True, "content": {"application/json": {"schema": CHAT_REQUEST}}},
        "responses": {str(status): response for status, response in ({200: answered} | responses).items()},
    }


def describe_embeddings() -> dict[str, Any]:
    """Return the OpenAPI operation of embeddings."""
    answered = success("The vectors, in the order of the texts.", "EmbeddingList", headers=HEADERS)
    return {
        "tags": ["Chat"],
        "summary": "Embeddings",
        "description": "Get embeddings with any OpenAI client. Also at `/v1/embeddings`.",
        "operationId": "create_embeddings",
        "requestBody": {"required": True, "content": {"application/json": {"schema": EMBEDDING_REQUEST}}},
        "responses": {str(status): response for status, response in ({200: answered} | signed_in(*ERRORS)).items()},
    }
