"""Schemas of the bodies of fal's API."""

from typing import Any, Final

from penstock.web.facades.describe import ANYTHING, INTEGER, OBJECT, TEXT, TEXT_OR_NULL, array, fields

TAG: Final = "fal"
INPUT: Final = {
    "type": "object",
    "description": "the model's own params, or neutral ones such as `prompt`",
    "properties": {"prompt": {"type": "string"}},
    "example": {"prompt": "a red fox in the snow"},
}
URLS: Final = {"response_url": TEXT, "status_url": TEXT, "cancel_url": TEXT}
SUBMITTED: Final = fields({"status": TEXT, "request_id": TEXT, "queue_position": INTEGER, **URLS})
STATUS: Final = fields(
    {"status": {"type": "string", "enum": ["IN_QUEUE", "IN_PROGRESS", "COMPLETED"]}, "request_id": TEXT, **URLS},
    {
        "queue_position": INTEGER,
        "logs": array(fields({"message": TEXT, "level": TEXT, "source": TEXT, "timestamp": TEXT_OR_NULL})),
        "metrics": OBJECT,
        "error": TEXT,
        "error_type": TEXT,
    },
)
RESULT: Final = {
    **OBJECT,
    "description": "`video`, `images`, `model_mesh`, `audio` or `transcript`, by the kind of the model",
}
CANCELED: Final = fields({"status": {"type": "string", "enum": ["CANCELLATION_REQUESTED", "ALREADY_COMPLETED"]}})
UPLOADED: Final = fields({"file_url": TEXT})
UPLOAD: Final = fields({"upload_url": TEXT, "file_url": TEXT})
PROBLEM: Final = fields({"detail": ANYTHING}, {"message": TEXT, "error_type": TEXT, "error": OBJECT, "status": TEXT})


def header(name: str, description: str) -> dict[str, Any]:
    """Return the OpenAPI description of a request header."""
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": description}


HEADERS: Final = [
    header("X-Fal-Request-Timeout", "seconds until it must have started"),
    header("X-Fal-Object-Lifecycle-Preference", '`{"expiration_duration_seconds": 3600}`: how long the job is kept'),
    header("Idempotency-Key", "requests with this key and an equal body are one"),
]
