"""Made-up jobs and what happens to them, for tests that need no gateway."""

from typing import Any

from penstock.domain.ids import new_id
from penstock.domain.jobs import Asset, Attempt, Job

NOW = 1_700_000_000.0


def make_job(**fields: Any) -> Job:
    """A job just accepted; any field can be given."""
    defaults = {
        "id": new_id("job"),
        "account_id": "acct_one",
        "key_id": "key",
        "request_id": "req_1",
        "model": "sim_text_to_video",
        "vendor": "sim",
        "upstream_model": "sim_text_to_video",
        "params": {"prompt": "a mill race", "script": {"latency": 0.1}},
        "seed": None,
        "created_at": NOW,
        "start_by": NOW + 3600,
        "run_seconds": 600.0,
        "retention": 86400.0,
        "estimated": 400_000_000,
    }
    return Job(**(defaults | fields))


def make_attempt(job_id: str, number: int = 1, **fields: Any) -> Attempt:
    """An order about to be placed."""
    defaults = {
        "number": number,
        "vendor": "sim",
        "model": "m",
        "credential": "c",
        "reference": f"{job_id}-{number}",
        "started_at": NOW,
    }
    return Attempt(**(defaults | fields))


def make_asset() -> Asset:
    """A stored output."""
    return Asset(
        id=new_id("asset"),
        kind="video",
        role="primary",
        filename="video.mp4",
        content_type="video/mp4",
        bytes=3,
        sha256="0" * 64,
    )
