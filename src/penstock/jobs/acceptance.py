"""Write accepted requests as jobs to the store, each in one transaction. Simple requests share a transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from penstock.catalog.file_input import file_at
from penstock.domain.api_keys import ApiKey
from penstock.domain.attribution.labels import Attribution
from penstock.domain.budgets import Payer
from penstock.domain.jobs import Headroom, Job
from penstock.domain.pipelines.records import Pipeline
from penstock.errors import IdempotencyKeyMismatch, InsufficientBudget
from penstock.jobs.request import Decoded
from penstock.store.database import Connection, Database
from penstock.store.group_commit import GroupCommit
from penstock.store.queries.billing.ledger_rows import Holding
from penstock.store.queries.files import file_rows, lineage_rows, storage_rows
from penstock.store.queries.jobs import advance_rows, job_rows, open_job_rows, pipeline_rows, request_rows
from penstock.store.queries.jobs.request_rows import RETRY_SHIELD_SECONDS, AcceptedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedRequest:
    """One request as it was received."""

    decoded: Decoded
    path_model: str | None
    key: ApiKey
    request_id: str
    idempotency_key: str | None = None
    is_retry: bool = False
    retry_seconds: float = RETRY_SHIELD_SECONDS
    """How long ago the request that a retry repeats may have been accepted."""
    base_url: str = ""
    dialect: str = ""
    """The dialect of its webhook's messages; empty: our own events."""
    attribution: Attribution | None = None
    """Its tags, end user and session; None if it names none."""

    @property
    def payer(self) -> Payer:
        """The owners of the budgets that pay for its jobs."""
        return self.key.payer if self.attribution is None else self.key.pay_for(self.attribution.tags)

    @property
    def is_budgeted(self) -> bool:
        """Return whether a budget applies to its jobs."""
        return bool(self.key.budgets_for(self.payer.tags))

    @property
    def slot(self) -> tuple[str, str | bytes]:
        """The identity that must not be accepted twice at once: an idempotency key, or a body from one API key."""
        if self.idempotency_key is not None:
            return self.key.account_id, self.idempotency_key
        return self.key.public_id, self.decoded.mark

    @property
    def may_repeat(self) -> bool:
        """Return whether an earlier request may have created these jobs."""
        return self.idempotency_key is not None or self.is_retry


@dataclass(frozen=True, slots=True)
class Receipt:
    """The jobs of a request, created now or by an earlier request."""

    id: str
    jobs: Sequence[Job]
    replayed: bool = False
    suppressed: bool = False
    reused: bool = False
    """It is an earlier job with an equal input, as the request allowed."""
    ignored: tuple[str, ...] = ()
    """The fields of the request that a reused job does not follow."""
    headroom: Headroom | None = None
    """The number of jobs that may still be opened, where that is limited."""

    @property
    def is_batch(self) -> bool:
        """Return whether the request had several inputs."""
        return self.id.startswith("batch_")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A request, and the jobs to create for it."""

    submission: SubmittedRequest
    jobs: Sequence[Job]
    storage_quota: int | None = None
    """Bytes that the account may keep, or None for no limit."""
    pipeline: Pipeline | None = None
    """The pipeline that the jobs belong to."""

    @property
    def is_simple(self) -> bool:
        """Return whether it can share a transaction: it needs no lock and writes nothing but jobs and the request."""
        key = self.submission.key
        is_limited = key.limits.concurrent_jobs is not None or key.account_limits.concurrent_jobs is not None
        is_limited = is_limited or self.storage_quota is not None or self.pipeline is not None
        return not (is_limited or self.submission.is_retry) and not any(job.inputs for job in self.jobs)

    @property
    def payer(self) -> Payer:
        """The owners of the budgets that pay for the jobs."""
        return self.submission.payer

    def make_record(self, now: float) -> AcceptedRequest:
        """Return the record by which a repeated request is recognised."""
        submission = self.submission
        job_ids = tuple(job.id for job in self.jobs)
        return AcceptedRequest(
            id=self.pipeline.id if self.pipeline else self.jobs[0].batch_id or self.jobs[0].id,
            account_id=submission.key.account_id,
            key_id=submission.key.public_id,
            idempotency_key=submission.idempotency_key,
            fingerprint=submission.decoded.mark,
            job_ids=job_ids or (self.pipeline.reused if self.pipeline else ()),
            created_at=now,
        )


class AcceptanceWriter:
    """Writes accepted requests, and returns once they are committed."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._group_commit = GroupCommit(database, self._write_group)

    async def accept(self, wanted: Acceptance) -> Receipt:
        """Create the jobs, or return those of the earlier request that this one repeats."""
        receipt = await self._group_commit.write(wanted) if wanted.is_simple else None
        return receipt or await self._database.write(accept, wanted, self._clock())

    def _write_group(self, connection: Connection, wanted: Sequence[Acceptance]) -> list[Receipt | None]:
        return accept_all(connection, wanted, self._clock())


def find_earlier(connection: Connection, submission: SubmittedRequest, now: float) -> Receipt | None:
    """Return the jobs of the request with this idempotency key, or of the one that this request retries."""
    key, mark = submission.key, submission.decoded.mark
    if submission.idempotency_key is not None:
        found = request_rows.by_idempotency_key(connection, key.account_id, submission.idempotency_key)
    elif submission.is_retry:
        found = request_rows.by_body(connection, key.public_id, mark, now - submission.retry_seconds)
    else:
        return None
    known = [] if found is None else job_rows.get_several(connection, found.job_ids)
    jobs = [job for job in known if not job.is_past(now)]  # an idempotency key lives as long as its jobs
    if found is None or not jobs:
        return None
    if found.fingerprint != mark:
        raise IdempotencyKeyMismatch(param="Idempotency-Key", suggestion="Use a new key for a new request.")
    replayed = submission.idempotency_key is not None
    return Receipt(found.id, jobs, replayed=replayed, suppressed=not replayed)


def accept(connection: Connection, wanted: Acceptance, now: float) -> Receipt:
    """Accept one request in one transaction: retry check, files, jobs, events and the request itself."""
    submission = wanted.submission
    request_rows.wait_for_same(connection, *submission.slot, is_retry=submission.is_retry)
    if earlier := find_earlier(connection, submission, now):
        return earlier
    if wanted.storage_quota is not None and wanted.jobs:
        storage_rows.refuse_full(connection, submission.key.account_id, wanted.storage_quota)
    headroom = open_job_rows.admit(connection, submission.key, len(wanted.jobs), now) if wanted.jobs else None
    files = [(file.sha256, job, path, file) for job in wanted.jobs for path, file in job.inputs.items()]
    for _, job, path, file in sorted(files, key=itemgetter(0)):  # in one global order, so that locks cannot deadlock
        token = file_at(job.params, path).get("file_token")
        if token is not None:  # the job's own row keeps the bytes after the upload expires
            file_rows.add(connection, file)
            file_rows.get_usable(connection, job.account_id, token, now)
    lineage_rows.add(connection, wanted.jobs)
    if wanted.pipeline is not None:
        pipeline_rows.add(connection, wanted.pipeline, now)
    request = wanted.make_record(now)
    if request.idempotency_key is not None:
        request_rows.forget_key(connection, request.account_id, request.idempotency_key)
    written = job_rows.insert_all(connection, wanted.jobs, now, request_rows.addition([request]))
    if wanted.pipeline is not None and not written:  # all of its results were there
        advance_rows.resume(connection, wanted.pipeline.id, now)
    return Receipt(request.id, written, headroom=headroom)


def accept_all(connection: Connection, wanted: Sequence[Acceptance], now: float) -> list[Receipt | None]:
    """Accept many simple requests in one transaction.

    Return None for each that another process is accepting or that no budget covers: those are retried alone.
    """
    is_new = request_rows.take_new(connection, [each.submission.slot for each in wanted])
    chosen = [each for each, is_first in zip(wanted, is_new, strict=True) if is_first]
    if not chosen:
        return [None] * len(wanted)
    holding = Holding(connection, [each.payer for each in chosen])
    holding.open((each.payer, each.jobs[0].created_at) for each in chosen if any(map(job_rows.may_cost, each.jobs)))
    funded = [each for each in chosen if _is_funded(holding, each)]
    if not funded:
        return [None] * len(wanted)
    requests = [each.make_record(now) for each in funded]
    statements = *holding.close(), request_rows.addition(requests)
    written = iter(job_rows.write_all(connection, [job for each in funded for job in each.jobs], now, *statements))
    receipts = {
        id(each): Receipt(request.id, [next(written) for _ in each.jobs])
        for each, request in zip(funded, requests, strict=True)
    }
    return [receipts.get(id(each)) for each in wanted]


def _is_funded(holding: Holding, wanted: Acceptance) -> bool:
    try:
        job_rows.hold(holding, wanted.jobs)
    except InsufficientBudget:
        return False
    return True
