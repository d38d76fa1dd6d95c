"""What callers send about their webhooks."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from penstock.catalog.params import Boolean, Line, Params, Text
from penstock.domain.events import EventType

Url = Annotated[Text, Field(min_length=1, max_length=2048)]
Description = Annotated[Line, Field(max_length=500)]
Tellable = EventType | Literal["budget.threshold"]
Events = Annotated[list[Tellable], Field(min_length=1, max_length=20)]


def _example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"additionalProperties": False, "example": fields})


class WebhookBody(Params):
    """A new webhook."""

    model_config = _example(url="https://example.com/penstock", events=["job.succeeded", "job.failed"])

    url: Url = Field(description="http or https, into the public internet; redirects are not followed")
    events: Events | None = Field(default=None, description="default: the four that end a job")
    description: Description | None = Field(default=None, description="yours")


class WebhookPatch(Params):
    """What is to be changed of a webhook."""

    model_config = _example(disabled=False)

    url: Url | None = Field(default=None, description="where it is from now on, also for what is on its way")
    events: Events | None = Field(default=None, description="what it is told from now on")
    description: Description | None = Field(default=None, description="yours")
    disabled: Boolean | None = Field(default=None, description="true: it is told nothing; false: it is told again")
