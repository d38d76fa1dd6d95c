"""Bodies of Replicate's API: those that are read, and the schemas of those that are written."""

from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from penstock.catalog.params import Boolean, Params, Text
from penstock.web.facades.describe import ANYTHING, INTEGER, OBJECT, TEXT, TEXT_OR_NULL, array, fields

TAG: Final = "Replicate"
PREFIX: Final = "/replicate/v1"
WebhookEvent = Literal["start", "output", "logs", "completed"]


class PredictionBody(Params):
    """An order of one prediction."""

    nested: ClassVar = {}

    input: dict[str, Any] = Field(description="the model's own params, or neutral ones such as `prompt` and `image`")
    version: Text | None = Field(default=None, max_length=300, description="version id, or `owner/name`")
    webhook: Text | None = Field(default=None, min_length=1, max_length=2048, description="URL for the prediction")
    webhook_events_filter: list[WebhookEvent] | None = Field(default=None, max_length=4, description="default: the end")
    stream: Boolean | None = Field(default=None, description="whether `urls.stream` is wanted")


BODY: Final = {
    "type": "object",
    "properties": {
        "input": {"type": "object", "description": PredictionBody.model_fields["input"].description},
        "version": {"type": "string", "maxLength": 300},
        "webhook": {"type": "string", "minLength": 1, "maxLength": 2048},
        "webhook_events_filter": {
            "type": "array",
            "maxItems": 4,
            "items": {"type": "string", "enum": ["start", "output", "logs", "completed"]},
        },
        "stream": {"type": "boolean"},
    },
    "required": ["input"],
    "additionalProperties": False,
    "example": {"input": {"prompt": "a red fox in the snow"}},
}
VERSIONED_BODY: Final = {
    **BODY,
    "required": ["input", "version"],
    "example": {"version": "penstock/text_to_image", "input": {"prompt": "a red fox in the snow"}},
}
FORM: Final = fields({"content": {"type": "string", "format": "binary"}}, {"metadata": TEXT})

PROBLEM: Final = fields(
    {
        "type": TEXT,
        "title": TEXT,
        "status": INTEGER,
        "detail": TEXT,
        "instance": TEXT_OR_NULL,
        "code": TEXT,
        "param": TEXT_OR_NULL,
        "details": array(fields({"loc": TEXT, "message": TEXT, "code": TEXT})),
        "suggestion": TEXT_OR_NULL,
    }
)
"""RFC 7807 with our own fields."""
PREDICTION: Final = fields(
    {
        "id": TEXT,
        "model": TEXT,
        "version": TEXT,
        "status": {"type": "string", "enum": ["starting", "processing", "succeeded", "failed", "canceled"]},
        "input": OBJECT,
        "output": ANYTHING,
        "logs": TEXT,
        "error": TEXT_OR_NULL,
        "metrics": OBJECT,
        "created_at": TEXT,
        "started_at": TEXT_OR_NULL,
        "completed_at": TEXT_OR_NULL,
        "urls": fields({"get": TEXT, "cancel": TEXT}, {"stream": TEXT}),
    }
)
FILE: Final = fields(
    {
        "id": TEXT,
        "name": TEXT,
        "content_type": TEXT,
        "size": INTEGER,
        "etag": TEXT,
        "checksums": OBJECT,
        "metadata": OBJECT,
        "created_at": TEXT,
        "expires_at": TEXT_OR_NULL,
        "urls": fields({"get": TEXT}),
    }
)
VERSION: Final = fields({"id": TEXT, "created_at": TEXT, "cog_version": TEXT, "openapi_schema": OBJECT})
MODEL: Final = fields(
    {
        "url": TEXT,
        "owner": TEXT,
        "name": TEXT,
        "description": TEXT_OR_NULL,
        "visibility": TEXT,
        "run_count": INTEGER,
        "latest_version": VERSION,
    }
)


def page(items: Any) -> dict[str, Any]:
    """Return the schema of a page."""
    return fields({"next": TEXT_OR_NULL, "previous": TEXT_OR_NULL, "results": array(items)})
