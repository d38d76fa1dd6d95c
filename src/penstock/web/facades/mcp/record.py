"""Jobs as agents read them: results of tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from penstock.domain.jobs import Job, State
from penstock.domain.money import format_usd
from penstock.errors import PenstockError
from penstock.jobs.intake import Forecast
from penstock.jobs.records import JobRecord, OutputShape, RecordBuilder

LINKED_SINCE: Final = "2025-06-18"
"""The first version with links to resources and with structured content."""
OPEN: Final = ("model", "status", "done", "progress", "queue_position", "eta_seconds", "poll_after_ms", "cost")
"""Fields of a job that goes on."""
COPIED: Final = (
    "model", "status", "done", "progress", "seed", "warnings", "cost",
    "created_at", "finished_at", "expires_at",
)  # fmt: skip
FACTS: Final = (
    "kind", "role", "content_type", "bytes", "width", "height", "duration_seconds", "faces", "vertices", "url",
    "url_expires_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A message that is not taken: the HTTP status and the JSON-RPC error."""

    status: int
    body: dict[str, Any]


def describe_job(job: Job, record: JobRecord) -> dict[str, Any]:
    """Return what an agent needs to know of a job, out of its record."""
    found: dict[str, Any] = {"job_id": job.id} | {name: record[name] for name in (COPIED if job.done else OPEN)}
    if not job.done:
        found["next"] = f"The job goes on. Call job_status with job_id {job.id} and wait_seconds to get its result."
        return {name: value for name, value in found.items() if value is not None}
    found["outputs"] = [
        {"output": number} | {name: output[name] for name in FACTS if output[name] is not None}
        for number, output in enumerate(record["outputs"])
    ]
    if record["error"] is not None:
        found["error"] = record["error"]
    return {name: value for name, value in found.items() if value is not None}


def succeed(structured: Mapping[str, Any], *more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's result: structured, as text for clients that read only that, and further content."""
    text = msgspec.json.encode(structured).decode()
    content = [{"type": "text", "text": text}, *more]
    return {"resultType": "complete", "content": content, "structuredContent": dict(structured), "isError": False}


def fail(text: str, structured: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's result that is an error, in words that an agent can act upon."""
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        "structuredContent": dict(structured),
        "isError": True,
    }


def refuse(error: PenstockError, request_id: str) -> dict[str, Any]:
    """Return the result of a call that was refused."""
    retry = "" if error.retry_after is None else f" Try again in {error.retry_after:g} seconds."
    advice = f" {error.suggestion}" if error.suggestion else ""
    more = "".join(f" {d.loc}: {d.message}" for d in error.details[1:20])
    place = f"{error.param}: " if error.param and error.param not in error.message else ""
    text = f"{place}{error.message}{more}{advice}{retry} (code: {error.code}, HTTP status: {error.status})"
    body = error.body(request_id) | {"status": error.status, "retry_after": error.retry_after}
    return fail(text, {"error": body})


def finish(
    job: Job, scribe: RecordBuilder, previews: list[Mapping[str, Any]], *, reused: bool = False
) -> dict[str, Any]:
    """Return the result of a tool that generates: an error if the job did not succeed."""
    record = scribe.job(job)
    structured = describe_job(job, record) | ({"reused": True} if reused else {})
    if not job.done or job.state is State.SUCCEEDED:
        return succeed(structured, *(link(job, output) for output in record["outputs"]), *previews)
    error = job.error or {"message": "The job was canceled. Nothing is charged.", "code": "canceled"}
    advice = f" {error['suggestion']}" if error.get("suggestion") else ""
    text = f"{error['message']}{advice} (job: {job.id}, status: {job.state}, code: {error.get('code')})"
    return fail(text, structured | {"error": dict(error)})


def link(job: Job, output: OutputShape) -> dict[str, Any]:
    """Return a link to an output, which needs no key until it expires."""
    asset = next(asset for asset in job.outputs if asset.id == output["id"])
    return {
        "type": "resource_link",
        "uri": output["url"],
        "name": asset.filename,
        "description": f"{asset.kind} of {job.id} ({asset.role}); the link works until {output['url_expires_at']}",
        "mimeType": asset.content_type,
        "size": asset.bytes,
    }


def fit(result: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a result without the content that this version of the protocol does not know."""
    if version >= LINKED_SINCE:
        return result
    return {**result, "content": [each for each in result["content"] if each["type"] != "resource_link"]}


def describe_forecast(found: Forecast) -> dict[str, Any]:
    """Return the answer of `estimate`."""
    left = None if found.budget_left is None else format_usd(found.budget_left)
    return {
        "model": found.model,
        "valid": True,
        "params": found.inputs[0],
        "cost": {
            "estimated": None if found.estimated is None else format_usd(found.estimated),
            "final": None,
            "currency": "USD",
        },
        "budget_left": left,
        "expected_seconds": found.duration,
    }
