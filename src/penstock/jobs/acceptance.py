"""Where requests become jobs in the store: each in one transaction, which those that are simple share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.catalog.file_input import given_file
from penstock.domain.api_keys import ApiKey
from penstock.domain.budgets import Payer
from penstock.domain.jobs import Headroom, Job
from penstock.errors import IdempotencyKeyMismatch, InsufficientBudget
from penstock.jobs.request import Decoded
from penstock.store.database import Connection, Database
from penstock.store.group_commit import GroupCommit
from penstock.store.queries.billing.ledger_rows import Holding
from penstock.store.queries.files import file_rows, storage_rows
from penstock.store.queries.jobs import job_rows, open_job_rows, request_rows
from penstock.store.queries.jobs.request_rows import AcceptedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedRequest:
    """One request as it came in."""

    decoded: Decoded
    path_model: str | None
    key: ApiKey
    request_id: str
    idempotency_key: str | None = None
    is_retry: bool = False
    base_url: str = ""

    @property
    def slot(self) -> tuple[str, str | bytes]:
        """What must not be accepted twice at the same time: a key, or a body that the same API key sends again."""
        if self.idempotency_key is not None:
            return self.key.account_id, self.idempotency_key
        return self.key.public_id, self.decoded.mark

    @property
    def may_repeat(self) -> bool:
        """Whether an earlier request may have made its jobs."""
        return self.idempotency_key is not None or self.is_retry


@dataclass(frozen=True, slots=True)
class Receipt:
    """The jobs of a request, new or found again."""

    id: str
    jobs: Sequence[Job]
    replayed: bool = False
    suppressed: bool = False
    headroom: Headroom | None = None
    """How many more jobs may be open, where that is limited."""

    @property
    def is_batch(self) -> bool:
        """Whether the request had several inputs."""
        return self.id.startswith("batch_")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A request, and the jobs that are to be made of it."""

    submission: SubmittedRequest
    jobs: Sequence[Job]
    storage_quota: int | None = None
    """Bytes that the account may keep; None: any number."""

    @property
    def is_simple(self) -> bool:
        """Whether it may go with others: nobody has to be waited for, and nothing else is to be written with it."""
        key = self.submission.key
        is_limited = key.limits.concurrent_jobs is not None or key.account_limits.concurrent_jobs is not None
        is_limited = is_limited or self.storage_quota is not None
        return not (is_limited or self.submission.is_retry) and all(job.file is None for job in self.jobs)

    @property
    def payer(self) -> Payer:
        """Whose money it costs."""
        return self.submission.key.payer

    def remember(self, now: float) -> AcceptedRequest:
        """What a repetition of it is known by."""
        submission, first = self.submission, self.jobs[0]
        return AcceptedRequest(
            id=first.batch_id or first.id,
            account_id=submission.key.account_id,
            key_id=submission.key.public_id,
            idempotency_key=submission.idempotency_key,
            fingerprint=submission.decoded.mark,
            job_ids=tuple(job.id for job in self.jobs),
            created_at=now,
        )


class AcceptanceWriter:
    """Writes what is accepted; when it answers, that is committed."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._together = GroupCommit(database, self._write_together)

    async def accept(self, wanted: Acceptance) -> Receipt:
        """The jobs, or those that an earlier request like it has made."""
        receipt = await self._together.write(wanted) if wanted.is_simple else None
        return receipt or await self._database.write(accept, wanted, self._clock())

    def _write_together(self, connection: Connection, wanted: Sequence[Acceptance]) -> list[Receipt | None]:
        return accept_all(connection, wanted, self._clock())


def find_earlier(connection: Connection, submission: SubmittedRequest, now: float) -> Receipt | None:
    """What an earlier request under the same key, or the one that this is a retry of, has made."""
    key, mark = submission.key, submission.decoded.mark
    if submission.idempotency_key is not None:
        found = request_rows.by_idempotency_key(connection, key.account_id, submission.idempotency_key)
    elif submission.is_retry:
        found = request_rows.by_body(connection, key.public_id, mark, now)
    else:
        return None
    known = [] if found is None else job_rows.get_several(connection, found.job_ids)
    jobs = [job for job in known if not job.is_past(now)]  # a key lives as long as its jobs
    if found is None or not jobs:
        return None
    if found.fingerprint != mark:
        raise IdempotencyKeyMismatch(param="Idempotency-Key", suggestion="Use a new key for a new request.")
    replayed = submission.idempotency_key is not None
    return Receipt(found.id, jobs, replayed=replayed, suppressed=not replayed)


def accept(connection: Connection, wanted: Acceptance, now: float) -> Receipt:
    """The one transaction: retry check, files, jobs, events and the request itself."""
    submission = wanted.submission
    request_rows.wait_for_same(connection, *submission.slot, is_retry=submission.is_retry)
    if earlier := find_earlier(connection, submission, now):
        return earlier
    if wanted.storage_quota is not None:
        storage_rows.refuse_full(connection, submission.key.account_id, wanted.storage_quota)
    headroom = open_job_rows.admit(connection, submission.key, len(wanted.jobs), now)
    for job in sorted(wanted.jobs, key=_digest):  # their rows are locked, by everyone in the same order
        token = given_file(job.params).get("file_token")
        if token is not None and job.file is not None:  # the job's own row keeps the bytes when the upload expires
            file_rows.add(connection, job.file)
            file_rows.get_usable(connection, job.account_id, token, now)
    request = wanted.remember(now)
    if request.idempotency_key is not None:
        request_rows.forget_key(connection, request.account_id, request.idempotency_key)
    written = job_rows.insert_all(connection, wanted.jobs, now, request_rows.addition([request]))
    return Receipt(request.id, written, headroom=headroom)


def _digest(job: Job) -> str:
    return "" if job.file is None else job.file.sha256


def accept_all(connection: Connection, wanted: Sequence[Acceptance], now: float) -> list[Receipt | None]:
    """The same for many simple ones at once; None for those that others are at, or no budget bears: they go alone."""
    is_new = request_rows.take_new(connection, [each.submission.slot for each in wanted])
    chosen = [each for each, its_turn in zip(wanted, is_new, strict=True) if its_turn]
    if not chosen:
        return [None] * len(wanted)
    holding = Holding(connection, [each.payer for each in chosen])
    holding.open((each.payer, each.jobs[0].created_at) for each in chosen if any(map(job_rows.may_cost, each.jobs)))
    borne = [each for each in chosen if _is_borne(holding, each)]
    if not borne:
        return [None] * len(wanted)
    requests = [each.remember(now) for each in borne]
    deeds = *holding.close(), request_rows.addition(requests)
    written = iter(job_rows.write_all(connection, [job for each in borne for job in each.jobs], now, *deeds))
    receipts = {
        id(each): Receipt(request.id, [next(written) for _ in each.jobs])
        for each, request in zip(borne, requests, strict=True)
    }
    return [receipts.get(id(each)) for each in wanted]


def _is_borne(holding: Holding, wanted: Acceptance) -> bool:
    try:
        job_rows.hold(holding, wanted.jobs)
    except InsufficientBudget:
        return False
    return True
