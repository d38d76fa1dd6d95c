"""Hands the params of accepted generations to the content log."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from penstock.catalog.file_input import FileSlot
from penstock.content_log.log import ContentLog
from penstock.domain.content.messages import LoggedConversation
from penstock.domain.content.records import ID_PREFIX, ContentEntry, ContentFacts
from penstock.domain.content.requests import read_generation
from penstock.domain.ids import new_id
from penstock.domain.jobs import Job
from penstock.observability import traces

ENTRY_BYTES: Final = 4_096
"""Bytes that a job counts besides its params."""


def log_generations(log: ContentLog, jobs: Sequence[Job], files_of: Callable[[str], Sequence[FileSlot]]) -> None:
    """Log the params of jobs that were just accepted. `files_of` returns the params of a model that take files."""
    if not log.is_on:
        return
    trace = traces.current()
    for job in jobs:
        held = len(msgspec.json.encode(job.params)) + ENTRY_BYTES
        if log.try_hold(job.account_id, held):
            log.add(ContentEntry(_write_facts(job), partial(_read, job, files_of(job.model)), held, trace))
        else:
            log.drop("memory")


def _read(job: Job, slots: Sequence[FileSlot]) -> LoggedConversation:
    """Return the content. It runs in the log's thread."""
    files = dict(job.files) if job.file is None else {**job.files, "file": job.file}
    entries = {id(entry) for slot in slots for _, entry in slot.entries(job.params)}
    return LoggedConversation(input=read_generation(job.params, files, entries, [*job.to_fetch, *job.awaits]))


def _write_facts(job: Job) -> ContentFacts:
    return ContentFacts(
        id=new_id(ID_PREFIX),
        account_id=job.account_id,
        key_id=job.key_id,
        request_id=job.request_id,
        kind="generation",
        endpoint="generation",
        model=job.model,
        vendor=job.vendor,
        upstream_model=job.upstream_model,
        status="accepted",
        job_id=job.id,
        created_at=job.created_at,
    )
