"""Pipelines: their rows and events, and the versions of stored templates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, delete, func, insert, select, tuple_, update

from penstock.domain.events import PipelineEventType
from penstock.domain.jobs import Job
from penstock.domain.pipelines.records import Pipeline, PipelineTemplate
from penstock.errors import Gone, PipelineNotFinished, PipelineNotFound, TemplateNotFound, TooManyTemplates
from penstock.store import locks, sql
from penstock.store.queries.jobs import event_rows
from penstock.store.queries.jobs.change_rows import WAITING
from penstock.store.tables import pipeline_templates, pipelines

MAX_TEMPLATES: Final = 200
"""Templates of one account."""
MAX_VERSIONS: Final = 100
"""Versions of one template: a further one replaces the oldest."""
_LOCK: Final = "SELECT document FROM pipelines WHERE id = ? AND removed IS NULL FOR UPDATE"
_STOPPING: Final = "SELECT is_stopping FROM pipelines WHERE id = ?"
_WAITING: Final = f"SELECT document FROM jobs WHERE state = '{WAITING}' AND id IN"  # noqa: S608  constant text
_ALL_JOBS: Final = "SELECT id, document FROM jobs WHERE id IN"
_JOBS: Final = _ALL_JOBS.replace("WHERE", "WHERE removed IS NULL AND")
_UPDATE: Final = (
    "UPDATE pipelines SET done = ?, is_stopping = ?, advanced_at = ?, expires_at = ?, document = ? WHERE id = ?"
)
_decode = event_rows.decode_pipeline


def add(connection: Connection, pipeline: Pipeline, now: float) -> Pipeline:
    """Write a newly accepted pipeline with its first event. Its jobs are written in the same transaction."""
    pipeline = replace(pipeline, sequence=1)
    values = {
        "id": pipeline.id,
        "account_id": pipeline.account_id,
        "done": 0,
        "is_stopping": 0,
        "advanced_at": now,
        "document": msgspec.json.encode(pipeline),
    }
    connection.execute(insert(pipelines), values)
    _tell(connection, pipeline, PipelineEventType.QUEUED, now)
    return pipeline


def get(connection: Connection, account_id: str, pipeline_id: str) -> Pipeline:
    """Return an account's pipeline. Another account's is not found."""
    query = select(pipelines.c.document, pipelines.c.removed)
    found = connection.execute(
        query.where(pipelines.c.id == pipeline_id, pipelines.c.account_id == account_id)
    ).one_or_none()
    if found is None:
        raise PipelineNotFound
    if found.removed is not None:
        raise Gone("The pipeline has been removed.")
    return _decode(found.document)


def job_ids_of(connection: Connection, account_id: str, pipeline_id: str) -> Sequence[str]:
    """Return the jobs of an account's pipeline, with those that it uses again. None if there is no such pipeline."""
    query = select(pipelines.c.document).where(pipelines.c.id == pipeline_id, pipelines.c.account_id == account_id)
    found = connection.execute(query).scalar()
    return () if found is None else _decode(found).job_ids


def page(connection: Connection, account_id: str, before: str | None, limit: int, now: float) -> list[Pipeline]:
    """Return a page of an account's pipelines, newest first."""
    query = select(pipelines.c.document).where(pipelines.c.account_id == account_id, pipelines.c.removed.is_(None))
    query = query.where(pipelines.c.expires_at.is_(None) | (pipelines.c.expires_at > now))
    if before is not None:
        query = query.where(pipelines.c.id < before)
    return [_decode(row.document) for row in connection.execute(query.order_by(pipelines.c.id.desc()).limit(limit))]


def lock(connection: Connection, pipeline_id: str) -> Pipeline | None:
    """Return a pipeline, locked until the transaction ends. Lock it after the row of a job that ends."""
    found = sql.run(connection, _LOCK, pipeline_id)
    return _decode(found[0][0]) if found else None


def lock_waiting(connection: Connection, job_ids: Sequence[str]) -> dict[str, Job]:
    """Return those of these jobs that wait for others, locked until the transaction ends."""
    statement, *values = sql.among(_WAITING, job_ids)
    found = map(event_rows.decode_job, (row[0] for row in sql.run(connection, statement + sql.LOCKING, *values)))
    return {job.id: job for job in found}


def jobs_of(connection: Connection, job_ids: Sequence[str], *, removed: bool = False) -> dict[str, Job]:
    """Return jobs by id, also `removed` ones if asked."""
    rows = sql.run(connection, *sql.among(_ALL_JOBS if removed else _JOBS, job_ids))
    found = {job_id: event_rows.decode_job(raw) for job_id, raw in rows}
    return {job_id: found[job_id] for job_id in job_ids if job_id in found}


def get_whole(connection: Connection, account_id: str, pipeline_id: str) -> tuple[Pipeline, dict[str, Job]]:
    """Return an account's pipeline and those of its jobs that are not removed."""
    pipeline = get(connection, account_id, pipeline_id)
    return pipeline, jobs_of(connection, pipeline.job_ids)


def states_of(connection: Connection, job_ids: Sequence[str]) -> dict[str, str]:
    """Return the states of jobs by id, without reading their documents."""
    statement, *values = sql.among("SELECT id, state FROM jobs WHERE id IN", job_ids)
    return dict(sql.run(connection, statement, *values))


def is_stopping(connection: Connection, pipeline_id: str) -> bool:
    """Return whether the jobs of a pipeline may not be ordered any more."""
    found = sql.run(connection, _STOPPING, pipeline_id)
    return bool(found and found[0][0])


def write(connection: Connection, before: Pipeline, after: Pipeline, now: float) -> Pipeline:
    """Write a changed pipeline, whose row is locked, and the event of its end."""
    if ends := after.done and not before.done:
        after = replace(after, sequence=before.sequence + 1)
    document = msgspec.json.encode(after)
    values = int(after.done), int(after.is_stopping), now, after.expires_at, document, after.id
    sql.run(connection, _UPDATE, *values)
    if ends:
        _tell(connection, after, PipelineEventType(f"pipeline.{after.state}"), now)
    return after


def _tell(connection: Connection, pipeline: Pipeline, kind: PipelineEventType, now: float) -> None:
    document = msgspec.json.encode(pipeline)
    whose = pipeline.account_id, pipeline.id, pipeline.sequence
    event_rows.append_other(connection, *whose, kind.value, document, pipeline.webhook, now)


def stalled(connection: Connection, before: float, limit: int) -> list[str]:
    """Return open pipelines that no end of a job has advanced since `before`."""
    query = select(pipelines.c.id).where(pipelines.c.done == 0, pipelines.c.advanced_at < before)
    return list(connection.execute(query.order_by(pipelines.c.advanced_at).limit(limit)).scalars())


def expired(connection: Connection, now: float, limit: int) -> list[tuple[str, str]]:
    """Return account and id of pipelines past their retention."""
    query = select(pipelines.c.account_id, pipelines.c.id)
    query = query.where(pipelines.c.removed.is_(None), pipelines.c.expires_at <= now)
    return [(row.account_id, row.id) for row in connection.execute(query.order_by(pipelines.c.expires_at).limit(limit))]


def remove(connection: Connection, account_id: str, pipeline_id: str, reason: str) -> Pipeline:
    """Replace an ended pipeline by a tombstone: its params go, its existence and cost stay."""
    pipeline = get(connection, account_id, pipeline_id)
    if not pipeline.done:
        raise PipelineNotFinished
    bare = replace(pipeline, given={}, params={}, metadata=None, client_ref=None, webhook=None, error=None)
    values: Mapping[str, Any] = {"removed": reason, "expires_at": None, "document": msgspec.json.encode(bare)}
    connection.execute(update(pipelines).where(pipelines.c.id == pipeline_id).values(values))
    event_rows.remove(connection, pipeline_id)
    return pipeline


# -- templates


def put_template(
    connection: Connection, account_id: str, name: str, body: Mapping[str, Any], now: float
) -> PipelineTemplate:
    """Store the next version of a template."""
    locks.hold(connection, "pipeline templates", account_id)
    known = _versions(connection, account_id)
    if name not in known and len(known) >= MAX_TEMPLATES:
        raise TooManyTemplates(
            f"The account has {MAX_TEMPLATES} pipeline templates, as many as it may have.",
            suggestion="Delete one first.",
        )
    template = PipelineTemplate(
        account_id=account_id, name=name, version=known.get(name, 0) + 1, created_at=now, body=body
    )
    values = {"account_id": account_id, "name": name, "version": template.version, "created_at": now}
    table = pipeline_templates
    connection.execute(insert(table), values | {"document": msgspec.json.encode(template)})
    old = table.c.version <= template.version - MAX_VERSIONS
    connection.execute(delete(table).where(table.c.account_id == account_id, table.c.name == name, old))
    return template


def get_template(connection: Connection, account_id: str, name: str, version: int | None) -> PipelineTemplate:
    """Return a version of a template, by default the newest."""
    table = pipeline_templates
    query = select(table.c.document).where(table.c.account_id == account_id, table.c.name == name)
    if version is not None:
        query = query.where(table.c.version == version)
    found = connection.execute(query.order_by(table.c.version.desc()).limit(1)).scalar()
    if found is None:
        of = "" if version is None else f" with version {version}"
        raise TemplateNotFound(f"You have no pipeline template `{name[:100]}`{of}.")
    return msgspec.json.decode(found, type=PipelineTemplate)


def list_templates(connection: Connection, account_id: str) -> list[PipelineTemplate]:
    """Return the newest version of each template, by name."""
    table = pipeline_templates
    newest = select(table.c.name, func.max(table.c.version)).where(table.c.account_id == account_id)
    query = select(table.c.document).where(table.c.account_id == account_id)
    query = query.where(tuple_(table.c.name, table.c.version).in_(newest.group_by(table.c.name)))
    found = connection.execute(query.order_by(table.c.name)).scalars()
    return [msgspec.json.decode(document, type=PipelineTemplate) for document in found]


def remove_template(connection: Connection, account_id: str, name: str) -> None:
    """Remove all versions of a template. Pipelines that it made stay."""
    table = pipeline_templates
    removed = connection.execute(delete(table).where(table.c.account_id == account_id, table.c.name == name))
    if not removed.rowcount:
        raise TemplateNotFound(f"You have no pipeline template `{name[:100]}`.")


def _versions(connection: Connection, account_id: str) -> dict[str, int]:
    table = pipeline_templates
    query = select(table.c.name, func.max(table.c.version)).where(table.c.account_id == account_id)
    return {row[0]: row[1] for row in connection.execute(query.group_by(table.c.name))}
