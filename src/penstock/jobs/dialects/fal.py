"""A job as a request of fal."""

from collections.abc import Mapping
from typing import Any

from penstock.domain.jobs import Job
from penstock.jobs.records import RecordBuilder


def write_message(job: Job, scribe: RecordBuilder) -> Mapping[str, Any]:
    """Return the message to a webhook."""
    raise NotImplementedError(job, scribe)
