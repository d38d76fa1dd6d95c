"""Schemas of the answers of OpenAI Images and Videos, for the OpenAPI document."""

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from penstock.web.openapi.schemas import Shape


class ImageShape(Shape):
    """A picture, in base64 or as a signed link, as `response_format` says."""

    b64_json: str | SkipJsonSchema[None] = None
    url: str | SkipJsonSchema[None] = None

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)


class ImagesAnswer(Shape):
    """The pictures of a request, as OpenAI's clients read them."""

    created: int
    data: list[ImageShape]
    size: str | SkipJsonSchema[None] = None
    quality: str | SkipJsonSchema[None] = None
    background: str | SkipJsonSchema[None] = None
    output_format: str | SkipJsonSchema[None] = None
    usage: dict[str, Any] = Field(description="zeros: pictures are not paid by tokens")

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)


class VideoProblem(Shape):
    """Why a video was not made. A canceled one has the code `job_canceled`."""

    code: str
    message: str


class VideoRecord(Shape):
    """A job that makes a film, as OpenAI's clients read it."""

    id: str
    object: Literal["video"]
    created_at: int
    completed_at: int | None
    expires_at: int | None
    status: Literal["queued", "in_progress", "completed", "failed"]
    model: str
    progress: int
    seconds: str
    size: str
    prompt: str | None
    remixed_from_video_id: str | None
    error: VideoProblem | None


class VideoPage(Shape):
    """One page of the videos. Send `last_id` as `after` to get the next page."""

    object: Literal["list"]
    data: list[VideoRecord]
    first_id: str | None
    last_id: str | None
    has_more: bool


class VideoDeleted(Shape):
    """A video that was deleted."""

    id: str
    object: Literal["video.deleted"]
    deleted: Literal[True]
