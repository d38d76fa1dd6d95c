"""Records of jobs as other services write them, for façades and for webhooks."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from penstock.domain.jobs import Job
from penstock.jobs.dialects import fal, replicate
from penstock.jobs.records import RecordBuilder

DIALECTS: Final[Mapping[str, Callable[[Job, RecordBuilder], Mapping[str, Any]]]] = MappingProxyType(
    {"replicate": replicate.write_prediction, "fal": fal.write_message}
)
"""By the name that a job's webhook keeps: what writes the body of its messages."""
