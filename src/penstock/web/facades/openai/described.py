"""OpenAI Images and Videos in the OpenAPI document: request bodies, answers and errors."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.errors import (
    AssetNotFound,
    Gone,
    InternalError,
    InvalidRequest,
    JobDeleted,
    JobNotFinished,
    JobNotFound,
    NotFound,
    RangeNotSatisfiable,
    StillRunning,
    TooManyStreams,
    VendorFailed,
    VendorTimeout,
)
from penstock.web.api.generations import ORDER_ERRORS
from penstock.web.auth import signed_in
from penstock.web.responses import EVENTS, REQUEST_ID, success

BINARY: Final = {"type": "string", "format": "binary"}
IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "description": "requests with this key and an equal body return one job, however often you send them",
}
CREATING: Final = (*ORDER_ERRORS, JobNotFound, JobDeleted, Gone)
FIELDS: Final[Mapping[str, Any]] = {
    "prompt": {"type": "string", "minLength": 1, "maxLength": 32000},
    "model": {"type": "string", "description": "default: the first model that can"},
    "n": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
    "size": {"type": "string", "description": '"1024x1024", or "auto"'},
    "quality": {"type": "string", "description": "as the model has it; `standard` and `hd` are medium and high"},
    "background": {"type": "string", "enum": ["auto", "opaque", "transparent"]},
    "output_format": {"type": "string", "enum": ["png", "jpeg", "webp"]},
    "response_format": {"type": "string", "enum": ["b64_json", "url"], "default": "b64_json"},
    "stream": {"type": "boolean", "default": False},
    "partial_images": {"type": "integer", "minimum": 0, "maximum": 3, "description": "none are sent"},
}
PICTURE: Final = {
    "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": True}],
    "description": "a URL, a `data:` URI, `file_…`, `job_…`, or an object with `image_url` or `file_id`",
}
VIDEO_FIELDS: Final[Mapping[str, Any]] = {
    "prompt": {"type": "string", "maxLength": 6000},
    "model": {"type": "string", "description": "default: the first model that can"},
    "seconds": {"type": "string", "pattern": "^[1-9][0-9]?$", "description": 'such as "4"'},
    "size": {"type": "string", "description": '"1280x720"'},
}


def _body(required: tuple[str, ...], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": dict(fields), "additionalProperties": True}


def _request(example: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    described = {kind: {"schema": schema} for kind, schema in content.items()}
    described["application/json"]["schema"]["example"] = example
    return {"parameters": [IDEMPOTENCY_KEY], "requestBody": {"required": True, "content": described}}


GENERATION: Final = _request(
    {"prompt": "A red fox in the snow", "size": "1024x1024"}, {"application/json": _body(("prompt",), FIELDS)}
)
EDIT: Final = _request(
    {"prompt": "Give the fox a blue scarf", "images": [{"image_url": "https://example.com/fox.png"}]},
    {
        "multipart/form-data": _body(
            ("prompt", "image"), {**FIELDS, "image": {"type": "array", "items": BINARY, "maxItems": 16}, "mask": BINARY}
        ),
        "application/json": _body(
            ("prompt", "images"),
            {**FIELDS, "images": {"type": "array", "items": PICTURE, "maxItems": 16}, "mask": PICTURE},
        ),
    },
)
IMAGES: Final[dict[int | str, dict[str, Any]]] = {
    200: success("The pictures, or with `stream` events.", "ImagesAnswer"),
    **signed_in(*CREATING, TooManyStreams, VendorFailed, VendorTimeout, StillRunning, InternalError),
}
IMAGES[200]["content"].update(EVENTS)
NO_VARIATIONS: Final = signed_in(NotFound)

VIDEO: Final = success("The video.", "VideoRecord")
CREATED: Final[dict[int | str, dict[str, Any]]] = {200: VIDEO, **signed_in(*CREATING)}
CREATE: Final = _request(
    {"prompt": "A paper boat drifts down a rainy street", "seconds": "4", "size": "1280x720"},
    {
        "multipart/form-data": _body(("prompt",), {**VIDEO_FIELDS, "input_reference": BINARY}),
        "application/json": _body(("prompt",), {**VIDEO_FIELDS, "input_reference": PICTURE}),
    },
)
FILM: Final = {
    "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": True}],
    "description": "a URL, `file_…`, `job_…`, or an object with the `id` of a video",
}
CHANGE: Final = _request(
    {"prompt": "The boat sails on into the night", "video": {"id": "job_000sg9k1yf8fef3hyv977vvqj6"}},
    {
        "multipart/form-data": _body(("prompt", "video"), {**VIDEO_FIELDS, "video": BINARY}),
        "application/json": _body(("prompt", "video"), {**VIDEO_FIELDS, "video": FILM}),
    },
)
REMIX: Final = _request({"prompt": "The same street at night"}, {"application/json": _body(("prompt",), VIDEO_FIELDS)})
MISSING: Final = (InvalidRequest, JobNotFound, Gone, JobDeleted)
RETRIEVED: Final[dict[int | str, dict[str, Any]]] = {200: VIDEO, **signed_in(*MISSING)}
LISTED: Final[dict[int | str, dict[str, Any]]] = {
    200: success("A page.", "VideoPage"),
    **signed_in(InvalidRequest),
}
DELETED: Final[dict[int | str, dict[str, Any]]] = {
    200: success("Deleted.", "VideoDeleted"),
    **signed_in(*MISSING, JobNotFinished),
}
_FILM: Final = {"content": {"video/mp4": {"schema": BINARY}, "image/png": {"schema": BINARY}}, "headers": REQUEST_ID}
CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {**_FILM, "description": "The whole file."},
    206: {**_FILM, "description": "The requested range."},
    304: {"description": "Not modified."},
    307: {"description": "Download from this address within a few minutes (`assets.downloads`)."},
    **signed_in(*MISSING, AssetNotFound, JobNotFinished, RangeNotSatisfiable),
}
