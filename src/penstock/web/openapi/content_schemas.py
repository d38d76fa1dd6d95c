"""Schemas of answers about logged content, for the OpenAPI document."""

from typing import Literal

from pydantic import ConfigDict, Field

from penstock.web.openapi.schemas import Moment, Shape


class ContentSummary(Shape):
    """A logged request, without its content."""

    object: Literal["content"]
    id: str
    created_at: Moment
    kind: Literal["chat", "generation"]
    endpoint: str = Field(description="the dialect of a chat request, or `generation`")
    model: str
    vendor: str
    key_id: str
    request_id: str
    job_id: str | None = Field(description="the job of a generation; the record is deleted with it")
    status: str = Field(description="ok, cached, failed, cut or canceled; of a generation: accepted")
    error: str | None = Field(description="the code of its error")
    streamed: bool
    seconds: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: str | None = Field(description="USD; null: not known, or a generation's, whose job has it")
    bytes: int = Field(description="what it counts against the quota")


class ContentPart(Shape):
    """A part of a message, with the fields of its type only. Texts have marks such as `[redacted:email]`."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    type: Literal["text", "reasoning", "tool_call", "tool_call_response", "file"]
    content: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    response: str | None = None
    kind: str | None = Field(default=None, description="of a file, whose bytes are not kept")
    content_type: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    param: str | None = None


class ContentMessage(Shape):
    """A message of a request or of an answer."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    role: str = Field(description="of the message, or the name of the field or param that the text stood in")
    parts: list[ContentPart]
    finish_reason: str | None = None


class ContentRecord(ContentSummary):
    """A logged request with its content."""

    instructions: list[ContentPart]
    input: list[ContentMessage]
    output: list[ContentMessage]
    redactions: dict[str, int] = Field(description="how often each kind was redacted")
    truncated: bool = Field(description="true: some of it was too long and is not kept")


class ContentPage(Shape):
    """One page of a list. Send `next_cursor` as `cursor` to get the next page."""

    object: Literal["list"]
    data: list[ContentSummary]
    has_more: bool
    next_cursor: str | None


class ContentDeletion(Shape):
    """The result of deleting many records."""

    object: Literal["content_deletion"]
    deleted: int
