"""The OpenAPI operations of the doors of chat, which FastAPI does not serve."""

from typing import Any

from penstock.chat.doors.messages.errors import STATUSES
from penstock.chat.doors.schemas import (
    CHAT_PATH,
    CHAT_REQUEST,
    COUNT_PATH,
    EMBEDDING_PATH,
    EMBEDDING_REQUEST,
    MESSAGES_PATH,
    MESSAGES_REQUEST,
    RESPONSES_PATH,
    RESPONSES_REQUEST,
    SPEECH_PATH,
    SPEECH_REQUEST,
    TRANSCRIPTION_PATH,
    TRANSCRIPTION_REQUEST,
)
from penstock.errors import (
    BodyTooLarge,
    ChatRateLimited,
    ContentRefused,
    GuardrailUnavailable,
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
from penstock.web.responses import EVENTS, success

TEXT = {"type": "string"}
HEADERS = {
    "x-penstock-vendor": {"description": "the vendor that answered", "schema": TEXT},
    "x-penstock-overhead-ms": {"description": "the gateway's own share of the time", "schema": TEXT},
    "x-penstock-cost": {"description": "USD; of answers that are not streamed, if the price is known", "schema": TEXT},
    "x-penstock-guardrails": {"description": "notes of guardrails on the request, as JSON", "schema": TEXT},
    "x-penstock-left-out": {"description": "fields of the request that the vendor did not get", "schema": TEXT},
    "x-penstock-cache": {"description": "`hit` or `miss`, where there is a response cache", "schema": TEXT},
}


ALSO = "Errors are in Anthropic's shape. Also at `/llm/v1/messages"
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
    ContentRefused,
    GuardrailUnavailable,
)


def describe_doors() -> dict[str, Any]:
    """Return the OpenAPI path items of all doors."""
    described = {
        CHAT_PATH: _describe_chat(),
        MESSAGES_PATH: _describe_messages(),
        COUNT_PATH: _describe_count(),
        RESPONSES_PATH: _describe_responses(),
        EMBEDDING_PATH: _describe_embeddings(),
        SPEECH_PATH: _describe_speech(),
        TRANSCRIPTION_PATH: _describe_transcriptions(),
    }
    return {path: {"post": operation} for path, operation in described.items()}


def _describe_chat() -> dict[str, Any]:
    answered = _stream(success("The completion, or with `stream` its chunks.", "ChatCompletion", headers=HEADERS))
    words = ("Chat", "Chat with any OpenAI client. Also at `/v1/chat/completions`.", "complete_chat")
    return _describe(words, CHAT_REQUEST, answered, TooManyStreams)


def _describe_messages() -> dict[str, Any]:
    answered = _stream(success("The message, or with `stream` its events.", "Message", headers=HEADERS))
    words = ("Messages", f"Chat with any client of Anthropic's. {ALSO}`.", "create_message")
    return _fail_as_messages(_describe(words, MESSAGES_REQUEST, answered, TooManyStreams))


def _describe_count() -> dict[str, Any]:
    text = f"Count the tokens of a Messages request. It costs nothing. {ALSO}/count_tokens`."
    request = MESSAGES_REQUEST | {"required": ["model", "messages"]}
    words = ("Count tokens", text, "count_message_tokens")
    answered = success("The number of tokens.", "TokenCount")
    return _fail_as_messages(_describe(words, request, answered, TooManyStreams))


def _describe_responses() -> dict[str, Any]:
    answered = _stream(success("The response, or with `stream` its events.", "ChatResponse", headers=HEADERS))
    words = ("Responses", "Chat with clients of OpenAI's Responses, such as Codex.", "create_response")
    return _describe(words, RESPONSES_REQUEST, answered, TooManyStreams)


def _describe_embeddings() -> dict[str, Any]:
    answered = success("The vectors, in the order of the texts.", "EmbeddingList", headers=HEADERS)
    words = ("Embeddings", "Get embeddings with any OpenAI client. Also at `/v1/embeddings`.", "create_embeddings")
    return _describe(words, EMBEDDING_REQUEST, answered)


def _describe_speech() -> dict[str, Any]:
    answered = success("The sound, in the format asked for.", "Transcript", headers=HEADERS)
    sound = {"schema": {"type": "string", "format": "binary"}}
    types = ("audio/mpeg", "audio/ogg", "audio/aac", "audio/flac", "audio/wav", "audio/pcm")
    content = dict.fromkeys(types, sound) | EVENTS
    words = ("Speech", "Have a text read aloud with any OpenAI client. Also at `/v1/audio/speech`.", "create_speech")
    return _describe(words, SPEECH_REQUEST, answered | {"content": content})


def _describe_transcriptions() -> dict[str, Any]:
    answered = _stream(success("The transcript, in the format asked for.", "Transcript", headers=HEADERS))
    answered["content"]["text/plain"] = {"schema": TEXT}
    text = "Have speech written down with any OpenAI client. Also at `/v1/audio/transcriptions`."
    operation = _describe(("Transcription", text, "create_transcription"), TRANSCRIPTION_REQUEST, answered)
    request = {key: value for key, value in TRANSCRIPTION_REQUEST.items() if key != "example"}
    return operation | {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": request}}}}


def _fail_as_messages(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the operation with errors in Anthropic's shape, under Anthropic's statuses."""
    responses: dict[str, Any] = {}
    for status, response in operation["responses"].items():
        is_error = int(status) >= 400
        shape = success("", "MessageError")["content"] if is_error else response["content"]
        responses[str(STATUSES.get(int(status), status))] = response | {"content": shape}
    return operation | {"responses": responses}


def _stream(answered: dict[str, Any]) -> dict[str, Any]:
    return answered | {"content": answered["content"] | EVENTS}


def _describe(
    words: tuple[str, str, str], request: dict[str, Any], answered: dict[str, Any], *errors: type[PenstockError]
) -> dict[str, Any]:
    """Return an operation; `words` are its summary, its description and its id."""
    summary, description, name = words
    responses = {200: answered} | signed_in(*ERRORS, *errors)
    return {
        "tags": ["Chat"],
        "summary": summary,
        "description": description,
        "operationId": name,
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {str(status): response for status, response in responses.items()},
    }
