"""Arguments of the tools. Their classes are the tools' input schemas, too."""

from typing import Any, Final, TypeVar

from pydantic import Field

from penstock.catalog.params import Integer, Params, Text, read
from penstock.domain.api_keys import Reuse
from penstock.errors import InvalidRequest
from penstock.jobs.request import REUSE, refuse
from penstock.web.api.generations import IDEMPOTENCY_KEY

A = TypeVar("A", bound=Params)

MAX_WAIT_SECONDS: Final = 600
USUAL_WAIT_SECONDS: Final = 50
"""Less than the 60 seconds after which many clients give up."""
WAIT: Final = "seconds to wait for the job to finish; 0 returns at once"
JOB_ID: Final = "`job_…`"


class Nothing(Params):
    """No arguments."""


class ListModels(Params):
    """Arguments of `list_models`."""

    kind: Text | None = Field(default=None, description="only models that make this: image, video, 3d, audio, text")


class DescribeModel(Params):
    """Arguments of `describe_model`."""

    model: Text = Field(min_length=1, max_length=200, description="model id")


class Wanted(Params):
    """A model and its params."""

    model: Text = Field(min_length=1, max_length=200, description="model id")
    params: dict[str, Any] = Field(default={}, description="the model's params; see `describe_model`")


class Generate(Wanted):
    """Arguments of the tools that generate."""

    wait_seconds: Integer = Field(default=USUAL_WAIT_SECONDS, ge=0, le=MAX_WAIT_SECONDS, description=WAIT)
    idempotency_key: Text | None = Field(
        default=None,
        max_length=255,
        pattern=f"^{IDEMPOTENCY_KEY.pattern}$",
        description="a name of yours for this call: a repeated call with it returns the first one's job",
    )
    reuse: Reuse | None = Field(default=None, description=REUSE)


class OfJob(Params):
    """Arguments of `cancel`."""

    job_id: Text = Field(min_length=1, max_length=100, description=JOB_ID)


class JobStatus(OfJob):
    """Arguments of `job_status`."""

    wait_seconds: Integer = Field(default=0, ge=0, le=MAX_WAIT_SECONDS, description=WAIT)


class GetAsset(OfJob):
    """Arguments of `get_asset`."""

    output: Integer = Field(default=0, ge=0, le=1000, description="number of the output, from 0")


class Upload(Params):
    """Arguments of `upload`."""

    data: Text = Field(min_length=1, description="the file as base64 or as a `data:` URI")
    name: Text | None = Field(default=None, max_length=200, description="the file's name")


def read_arguments(kind: type[A], given: dict[str, Any]) -> A:
    """Return the arguments of a tool. Raise with all problems."""
    found, details = read(kind, given, "")
    if found is None:
        raise refuse(details) if details else InvalidRequest("The arguments are not valid.")
    return found
