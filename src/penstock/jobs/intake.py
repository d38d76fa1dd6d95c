"""Accept a generation request: validate it, recognise a retry, and write the jobs in one transaction."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar

from penstock.billing.admission import Admission
from penstock.billing.leases import RECALL_SECONDS, RECALLS
from penstock.catalog.file_input import FileSlot, file_at, with_file
from penstock.content_log.generations import log_generations
from penstock.content_log.log import ContentLog
from penstock.domain.api_keys import ApiKey, Reuse
from penstock.domain.files import FileKind, StoredFile
from penstock.domain.guardrails.contents import read_params
from penstock.domain.guardrails.inquiry import GuardrailFinding
from penstock.domain.ids import new_id
from penstock.domain.job_errors import UrlNotAllowed
from penstock.domain.jobs import Job, Parent
from penstock.domain.pipelines.records import Pipeline
from penstock.errors import (
    Detail,
    FileNotFound,
    IdempotencyInProgress,
    InsufficientBudget,
    JobNotFound,
    ModelNotAllowed,
    PenstockError,
)
from penstock.guardrails.guardrails import Guardrails, Inspected
from penstock.jobs.acceptance import Acceptance, AcceptanceWriter, Receipt, SubmittedRequest, find_earlier
from penstock.jobs.backlog import Backlog
from penstock.jobs.durations import Duration, History
from penstock.jobs.files.given_files import FileOpener, FileProblem, WantedFile
from penstock.jobs.files.inputs import Inputs
from penstock.jobs.files.reuse import mark_result
from penstock.jobs.pipelines.body import PipelineBody
from penstock.jobs.request import GenerationBody, read_body, read_raw_params, refuse
from penstock.observability import metrics, traces
from penstock.offers.offer import Offer, Offers, refuse_unpriced
from penstock.store.database import Database
from penstock.store.queries.billing import balance_rows
from penstock.store.queries.files import result_rows

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """The operator's limits and defaults for jobs."""

    start_seconds: float
    run_seconds: float
    max_seconds: float
    retention: float | None
    max_waiting: int
    max_waiting_total: int
    check_url: Callable[[str], str]
    storage_quota: int | None = None
    """Bytes that an account without a quota of its own may keep."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The answer to a dry run, which creates nothing."""

    model: str
    inputs: Sequence[dict[str, Any]]
    estimated: int | None
    duration: Duration | None
    budget_left: int | None
    findings: Sequence[GuardrailFinding] = ()
    """Of the guardrails, for each input in turn."""


@dataclass(frozen=True, slots=True)
class ReadInput:
    """One validated input: resolved params and, once known, its files by path with the bytes to store."""

    params: dict[str, Any]
    seed: int | None
    has_random_seed: bool = False
    """Whether neither the request nor its model names a seed."""
    files: Mapping[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    data: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    to_fetch: Mapping[str, tuple[FileKind, ...]] = field(default_factory=dict[str, tuple[FileKind, ...]])
    parents: tuple[Parent, ...] = ()
    awaits: Mapping[str, tuple[FileKind, ...]] = field(default_factory=dict[str, tuple[FileKind, ...]])
    findings: tuple[GuardrailFinding, ...] = ()
    """Of the guardrails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """The fields of a request that hold for each of its jobs."""

    start_timeout: float | None
    run_timeout: float | None
    retention: float | str | None
    client_ref: str | None
    metadata: Mapping[str, str] | None
    webhook: Mapping[str, Any] | None
    batch_id: str | None = None
    pipeline_id: str | None = None


class Intake:
    """Accepts all paid generation work. There is no other way in."""

    def __init__(
        self,
        database: Database,
        inputs: Inputs,
        offers: Callable[[], Offers],
        policy: Callable[[], JobPolicy],
        history: History,
        backlog: Backlog,
        admission: Admission,
        guardrails: Guardrails,
        content_log: ContentLog,
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._inputs = inputs
        self._offers = offers
        self._policy = policy
        self._history = history
        self._backlog = backlog
        self._admission = admission
        self._guardrails = guardrails
        self._content_log = content_log
        self._clock = clock
        self._writer = AcceptanceWriter(database, clock)
        self._file_opener = FileOpener(database, inputs, lambda url: policy().check_url(url), clock)
        self._in_flight: Counter[tuple[str, str | bytes]] = Counter()

    async def accept(self, submission: SubmittedRequest) -> Receipt | Forecast:
        """Create all jobs of a request or none, or return the jobs of the earlier request that it repeats."""
        request, offer = self._read_request(submission)
        if request.dry_run:
            self._refuse_unpriced(offer, submission)
            return await self._forecast(submission, request, offer)
        with self.alone(submission):
            return await self._accept(submission, request, offer)

    @contextmanager
    def alone(self, submission: SubmittedRequest) -> Generator[None]:
        """Raise IdempotencyInProgress while the request that this one repeats is still being accepted."""
        slot = submission.slot
        keyless_retry = submission.is_retry and submission.idempotency_key is None
        if self._in_flight[slot] and (keyless_retry or submission.idempotency_key is not None):
            raise IdempotencyInProgress(retry_after=1)
        if keyless_retry:  # retries find each other in the store
            yield
            return
        self._in_flight[slot] += 1
        try:
            yield
        finally:
            self._in_flight[slot] -= 1
            if not self._in_flight[slot]:
                del self._in_flight[slot]

    def _read_request(self, submission: SubmittedRequest) -> tuple[GenerationBody, Offer]:
        """Return the validated request and its offer. Raise with all problems, those of the params included."""
        body, offers = submission.decoded.body, self._offers()
        request, details = read_body(body, submission.path_model)
        if request is None:
            model = body.get("model")
            known = offers.by_model.get(model) if isinstance(model, str) else None
            offer = known if known is not None and submission.key.allows_model(known.model.id) else None
            raise refuse([*details, *(read_raw_params(body, offer.model) if offer else ())])
        offer = offers.get(request.model, submission.key.allows_model)
        if not submission.key.allows_model(request.model):
            raise ModelNotAllowed(f"This API key may not use `{request.model}`.", param="model")
        return request, offer

    def _refuse_unpriced(self, offer: Offer, submission: SubmittedRequest) -> None:
        if submission.is_budgeted and not offer.is_priced(self._clock()):
            raise refuse_unpriced(offer.id)

    async def _accept(self, submission: SubmittedRequest, request: GenerationBody, offer: Offer) -> Receipt:
        slots = offer.model.files
        has_files = any(any(slot.entries(item.params)) for item in request.input for slot in slots)
        may_reuse = _may_reuse(request, submission.key)
        is_looked_up = has_files or may_reuse or self.is_guarded
        if is_looked_up and (found := await self.find_earlier_request(submission)):
            return found  # without opening any file
        try:
            if not may_reuse:
                self._refuse_job(submission, request, offer)
            inputs = await self._read_inputs(request, offer, submission.key)
            inputs = await self.inspect(submission, offer, inputs)
            if may_reuse:
                if result := await self.find_result(offer, inputs[0], submission.key.account_id):
                    return Receipt(result.id, [result], reused=True, ignored=_list_ignored(request, result))
                self._refuse_job(submission, request, offer)
        except PenstockError:
            if not is_looked_up and (found := await self.find_earlier_request(submission)):
                return found  # a request that was accepted before is not refused now
            raise
        accepted = self._make_jobs(submission, request, offer, inputs)
        for job, item in zip(accepted, inputs, strict=True):
            await self.store_files(job, item)
        return await self.commit(submission, accepted)

    def _refuse_job(self, submission: SubmittedRequest, request: GenerationBody, offer: Offer) -> None:
        """Raise if new jobs cannot be taken or paid for. A reused result is returned all the same."""
        self._refuse_unpriced(offer, submission)
        self.refuse_overflow(submission.key.account_id, len(request.input))

    async def find_result(
        self, offer: Offer, item: ReadInput, account_id: str, taken: Collection[str] = ()
    ) -> Job | None:
        """Return a kept job whose result a request would give again, by a route of today. It is none of `taken`."""
        routes = [(route.vendor, route.model) for route in sorted(offer.routes, key=attrgetter("order"))]
        marks = [mark_result(offer.model, route, item.params, item.files) for route in routes]
        wanted = [replace(mark, seed=None) if item.has_random_seed else mark for mark in marks if mark is not None]
        if not wanted:
            return None
        return await self._database.read(result_rows.find, account_id, wanted, self._clock(), taken)

    async def store_files(self, job: Job, item: ReadInput) -> None:
        """Store the bytes that came with the request, before the job that takes them is written."""
        for path, data in item.data.items():
            await self._inputs.store(job.inputs[path], data)

    async def find_earlier_request(self, submission: SubmittedRequest) -> Receipt | None:
        """Return the earlier request's jobs. On the normal path, the accepting transaction checks this itself."""
        return await self._database.read(find_earlier, submission, self._clock()) if submission.may_repeat else None

    async def commit(
        self, submission: SubmittedRequest, accepted: Sequence[Job], pipeline: Pipeline | None = None
    ) -> Receipt:
        """Write the jobs with their holds and count them."""
        receipt = await self._write(submission, accepted, pipeline)
        if not (receipt.replayed or receipt.suppressed):
            if submission.key.logs_content:
                log_generations(self._content_log, accepted, self._files_of)
            self._backlog.add(submission.key.account_id, len(accepted))
            for model, number in Counter(job.model for job in accepted).items():
                metrics.JOBS_ACCEPTED.count(model, number=number)
            for job in accepted:
                if not any((job.prices or {}).values()):
                    metrics.UNPRICED_REQUESTS.count(job.model)
        return receipt

    def _files_of(self, model: str) -> Sequence[FileSlot]:
        offer = self._offers().by_model.get(model)
        return () if offer is None else offer.model.files

    async def _write(self, submission: SubmittedRequest, accepted: Sequence[Job], pipeline: Pipeline | None) -> Receipt:
        """Write the jobs. Before a refusal, recall the unused budget leases of chat processes."""
        payer, quota = submission.payer, submission.key.storage_quota
        quota = self._policy().storage_quota if quota is None else quota
        for recalls_left in reversed(range(RECALLS + 1)):
            try:
                return await self._writer.accept(Acceptance(submission, accepted, quota, pipeline))
            except InsufficientBudget as error:
                if not recalls_left or not await self._database.read(balance_rows.leased_of, payer.owners):
                    await self._database.write(balance_rows.announce_refusal, payer, self._clock())
                    metrics.BUDGET_REFUSALS.labels(error.facts["of"]).inc()
                    raise
            await self._admission.recall(payer.owners)
            if recalls_left < RECALLS:  # our own leases are back immediately
                await asyncio.sleep(RECALL_SECONDS)
        raise AssertionError  # the last attempt returns or raises

    def refuse_overflow(self, account_id: str, more: int) -> None:
        """Raise if the account, or all of them, would have too many open jobs."""
        policy = self._policy()
        self._backlog.refuse(account_id, more, of_account=policy.max_waiting, of_all=policy.max_waiting_total)

    async def _forecast(self, submission: SubmittedRequest, request: GenerationBody, offer: Offer) -> Forecast:
        key = submission.key
        inputs = await self._read_inputs(request, offer, key, store=False)
        inputs = await self.inspect(submission, offer, inputs)
        params = [item.params for item in inputs]
        now = self._clock()
        ceilings = [ceiling for each in params if (ceiling := offer.ceiling(each, now)) is not None]
        estimated = sum(ceilings) if len(ceilings) == len(params) else None
        payer, is_budgeted = submission.payer, submission.is_budgeted
        if is_budgeted:
            await self._admission.give_back(payer.owners)
        standings = await self._database.read(balance_rows.standings, payer, now) if is_budgeted else []
        left = min((standing.left for standing in standings), default=None)
        findings = [finding for item in inputs for finding in item.findings]
        return Forecast(request.model, params, estimated, self._history.typical(request.model), left, findings)

    # -- reading the inputs

    async def _read_inputs(
        self, request: GenerationBody, offer: Offer, key: ApiKey, *, store: bool = True
    ) -> list[ReadInput]:
        """Return all inputs with their files opened. Raise with the problems of all inputs."""
        details = self.check_outer(request)
        inputs: list[ReadInput] = []
        for number, item in enumerate(request.input):
            place = f"input.{number}.params"
            params, problems = offer.model.read(item.params, place)
            details += problems
            if params is None:
                continue
            found, problems = await self.open_files(params, offer, key, place, store=store)
            details += problems
            inputs.append(found)
        raise_all(details)
        return inputs

    def check_outer(self, request: GenerationBody | PipelineBody) -> list[Detail]:
        """Return where the fields beside `input` break the operator's limits."""
        details: list[Detail] = []
        most = self._policy().max_seconds
        for name in ("start_timeout", "run_timeout"):
            value = getattr(request, name)
            if value is not None and value > most:
                details.append(Detail(name, f"`{name}` is at most {most:g} seconds on this server, got {value:g}."))
        if request.webhook is not None:
            try:
                self._policy().check_url(request.webhook.url)
            except UrlNotAllowed as error:
                details.append(Detail("webhook.url", error.message, error.code))
        if isinstance(request, GenerationBody) and request.reuse is Reuse.EXACT and len(request.input) > 1:
            message = f"`reuse` is for a single input, got {len(request.input)}: send a request for each."
            details.append(Detail("reuse", message))
        return details

    async def open_files(
        self,
        params: dict[str, Any],
        offer: Offer,
        key: ApiKey,
        place: str,
        *,
        store: bool,
        awaited: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[ReadInput, list[Detail]]:
        """Return the input with its files, and the problems with them.

        `awaited` has the jobs whose outputs are yet to be made, with the kind of their model.
        """
        item, details = _add_seed(params, offer), list[Detail]()
        for slot in offer.model.files:
            for path, _ in slot.entries(item.params):
                wanted = WantedFile(path, slot.kinds, key.account_id, store=store)
                try:
                    given = file_at(item.params, path)
                    if given.get("job") in awaited:
                        item = _wait_for(item, wanted, given, awaited[given["job"]])
                    else:
                        item = await self._open_file(item, wanted, offer)
                except FileProblem as problem:
                    details.append(Detail(f"{place}.{path}.{problem.field}", problem.message, problem.code))
        return item, details

    async def _open_file(self, item: ReadInput, wanted: WantedFile, offer: Offer) -> ReadInput:
        """Open one file, or note that it is fetched later."""
        given = file_at(item.params, wanted.path)
        if "object" in given and not offer.reads_objects:
            raise FileProblem(
                "object", "The vendor of this model cannot read stored objects. Use `url` or `file_token`."
            )
        opened = await self._file_opener.open(given, wanted)
        params = with_file(item.params, wanted.path, opened.kept)
        if opened.file is None:
            to_fetch = {**item.to_fetch, wanted.path: wanted.kinds} if opened.is_remote else item.to_fetch
            return replace(item, params=params, to_fetch=to_fetch)
        data = item.data if opened.data is None else {**item.data, wanted.path: opened.data}
        parents = item.parents if opened.parent is None else (*item.parents, replace(opened.parent, path=wanted.path))
        files = {**item.files, wanted.path: opened.file}
        return replace(item, params=params, files=files, data=data, parents=parents)

    @property
    def is_guarded(self) -> bool:
        """Return whether any guardrail inspects generations."""
        return self._guardrails.of_generation

    async def inspect(self, submission: SubmittedRequest, offer: Offer, inputs: Sequence[ReadInput]) -> list[ReadInput]:
        """Return the inputs with the findings of guardrails. Raise if a guardrail ends the request."""
        if not self.is_guarded:
            return list(inputs)
        return await self.inspect_all(submission, [(offer, item) for item in inputs], "generation")

    async def inspect_all(
        self, submission: SubmittedRequest, inputs: Sequence[tuple[Offer, ReadInput]], endpoint: str
    ) -> list[ReadInput]:
        """Return the inputs of any models with the findings of guardrails."""
        wanted = [_inspected(submission, offer, item, endpoint) for offer, item in inputs]
        found = await self._guardrails.inspect_all(wanted)
        return [replace(item, findings=findings) for (_, item), findings in zip(inputs, found, strict=True)]

    # -- writing the jobs

    def _make_jobs(
        self, submission: SubmittedRequest, request: GenerationBody, offer: Offer, inputs: Sequence[ReadInput]
    ) -> list[Job]:
        check_url = self._policy().check_url
        terms = JobTerms(
            start_timeout=request.start_timeout,
            run_timeout=request.run_timeout,
            retention=request.retention,
            client_ref=request.client_ref,
            metadata=request.metadata,
            webhook=request.webhook and request.webhook.keep(check_url, submission.base_url, submission.dialect),
            batch_id=new_id("batch") if len(inputs) > 1 else None,
        )
        now = self._clock()
        return [self.make_job(submission, terms, offer, item, now, new_id("job")) for item in inputs]

    def make_job(
        self,
        submission: SubmittedRequest,
        terms: JobTerms,
        offer: Offer,
        item: ReadInput,
        now: float,
        job_id: str,
        step: str | None = None,
    ) -> Job:
        """Return a new job, priced and with a route."""
        policy, key = self._policy(), submission.key
        route, quote = offer.choose(), offer.quote(item.params, now)
        files = {path: _own_copy(file, job_id) for path, file in item.files.items()}
        return Job(
            id=job_id,
            account_id=key.account_id,
            key_id=key.public_id,
            lineage=key.lineage,
            request_id=submission.request_id,
            model=offer.id,
            vendor=route.vendor,
            upstream_model=route.model,
            params=item.params,
            seed=item.seed,
            created_at=now,
            start_by=now + (terms.start_timeout or policy.start_seconds),
            run_seconds=terms.run_timeout or policy.run_seconds,
            retention=self.retention_of(terms.retention),
            eta_at=self._history.usual_end(offer.id, now),
            estimated=quote.ceiling,
            prices=quote.formulas,
            client_ref=terms.client_ref,
            metadata=terms.metadata,
            batch_id=terms.batch_id,
            webhook=terms.webhook,
            warnings=quote.warnings,
            file=files.pop("file", None),
            files=files,
            to_fetch={path: kinds for path, kinds in item.to_fetch.items() if path != "file"},
            parents=item.parents,
            pipeline_id=terms.pipeline_id,
            step=step,
            awaits=item.awaits,
            guardrails=tuple(finding.describe() for finding in item.findings),
            attribution=submission.attribution,
            trace=traces.current(),
            sequence=1,
        )

    def retention_of(self, wanted: float | str | None) -> float | None:
        """Return the seconds for which a finished job is kept; None: forever."""
        retention = self._policy().retention if wanted is None else wanted
        return None if retention == "forever" or retention is None else float(retention)


def _inspected(submission: SubmittedRequest, offer: Offer, item: ReadInput, endpoint: str) -> Inspected:
    """Return an input as guardrails see it."""
    entries = {id(entry) for slot in offer.model.files for _, entry in slot.entries(item.params)}
    content = read_params(item.params, item.files, entries, [*item.to_fetch, *item.awaits])
    return Inspected(
        kind="generation",
        key=submission.key,
        model=offer.id,
        endpoint=endpoint,
        request_id=submission.request_id,
        size=content.characters,
        read=lambda: content,
    )


def raise_all(details: list[Detail]) -> None:
    """Raise one error for all problems of a request, if there are any."""
    if details and all(detail.code == FileNotFound.code for detail in details):
        raise FileNotFound(param=details[0].loc, details=details, suggestion="Upload it with POST /api/v1/files.")
    if details and all(detail.code == JobNotFound.code for detail in details):
        raise JobNotFound(details[0].message, param=details[0].loc, details=details)
    if details:
        raise refuse(details)


def _may_reuse(request: GenerationBody, key: ApiKey) -> bool:
    """Return whether a kept result may be the answer.

    A key's default leaves batches alone, as they want several results, and requests that wait for a webhook.
    """
    if request.reuse is not None:
        return request.reuse is Reuse.EXACT
    return key.reuse == Reuse.EXACT and len(request.input) == 1 and request.webhook is None


def _list_ignored(request: GenerationBody, result: Job) -> tuple[str, ...]:
    """Return the fields that would hold for a new job, and that the reused one does not follow."""
    known = {"client_ref": result.client_ref, "metadata": result.metadata, "retention": result.retention or "forever"}
    given = {name: getattr(request, name) for name in (*known, "webhook")}
    return tuple(name for name, value in given.items() if value is not None and value != known.get(name))


def _wait_for(item: ReadInput, wanted: WantedFile, given: Mapping[str, Any], kind: str) -> ReadInput:
    """Note that a file is yet to be made, by a job of a model of this kind. Raise `FileProblem` if it cannot fit."""
    output = given.get("output", "primary")
    made = "image" if output == "preview" else kind
    if output in ("primary", "preview", 0) and made not in wanted.kinds:
        allowed = " or ".join(wanted.kinds)
        raise FileProblem("output", f"The step makes an output of kind {made}; allowed here: {allowed}.")
    parents = (*item.parents, Parent(wanted.path, given["job"], "", output, given.get("type")))
    return replace(item, parents=parents, awaits={**item.awaits, wanted.path: wanted.kinds})


def _own_copy(file: StoredFile, job_id: str) -> StoredFile:
    """Return the job's own record of a file. An earlier job's output stays where it is."""
    return file if file.key else replace(file, token=new_id("file"), job_id=job_id, expires_at=None)


def _add_seed(params: dict[str, Any], offer: Offer) -> ReadInput:
    """Return the input with a seed if its model takes one: the given seed, or a random one that is echoed."""
    name = offer.model.seed_param
    if name is None:
        return ReadInput(params, None)
    seed = params.get(name, random.randrange(2**31))  # noqa: S311  a seed is no secret
    return ReadInput({**params, name: seed}, seed, has_random_seed=name not in params)
