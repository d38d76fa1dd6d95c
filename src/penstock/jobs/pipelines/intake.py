"""Accept pipelines: plan the jobs, read all their params, and write them in one transaction or not at all."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.billing.admission import Admission
from penstock.catalog.params import read
from penstock.domain.api_keys import ApiKey, Reuse
from penstock.domain.attribution.labels import Attribution
from penstock.domain.ids import new_id
from penstock.domain.jobs import Job, State
from penstock.domain.pipelines.records import OnError, Pipeline, PipelineStep
from penstock.errors import Detail, Gone, InvalidRequest, ModelNotAllowed, PenstockError, PipelineNotFinished
from penstock.jobs.acceptance import SubmittedRequest
from penstock.jobs.durations import Duration, History
from penstock.jobs.intake import Intake, JobPolicy, JobTerms, ReadInput, raise_all
from penstock.jobs.pipelines.body import PipelineBody, PipelineRetryBody, PipelineStepBody, find_excess
from penstock.jobs.pipelines.plan import PlannedStep, find_jobs, make_plan
from penstock.jobs.request import Decoded, refuse
from penstock.offers.offer import Offer, Offers, refuse_unpriced
from penstock.store.database import Database
from penstock.store.queries.billing import balance_rows
from penstock.store.queries.jobs import pipeline_rows

TERMS: Final = {"start_timeout", "run_timeout", "webhook"}
"""Fields that a repeated pipeline keeps."""


@dataclass(frozen=True, slots=True)
class PipelineReceipt:
    """An accepted pipeline with its jobs, new or of an earlier request."""

    pipeline: Pipeline
    jobs: Mapping[str, Job]
    replayed: bool = False
    suppressed: bool = False


@dataclass(frozen=True, slots=True)
class StepForecast:
    """The price and the usual time of one step."""

    name: str
    model: str
    jobs: int
    needs: Sequence[str]
    estimated: int | None
    duration: Duration | None


@dataclass(frozen=True, slots=True)
class PipelineForecast:
    """The answer to a dry run, which creates nothing."""

    steps: Sequence[StepForecast]
    budget_left: int | None

    @property
    def estimated(self) -> int | None:
        """Return the highest possible cost of all jobs; None if one is unknown."""
        costs = [step.estimated for step in self.steps]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def seconds(self) -> float | None:
        """Return the usual seconds of the slowest chain of steps; None if a model has not run here."""
        ends: dict[str, float] = {}
        for step in self.steps:
            if step.jobs and step.duration is None:
                return None
            own = 0.0 if step.duration is None or not step.jobs else step.duration.p50
            ends[step.name] = own + max((ends[need] for need in step.needs), default=0.0)
        return round(max(ends.values()), 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A pipeline as it was asked for, with its template or the pipeline that it repeats resolved."""

    body: PipelineBody
    steps: Sequence[PipelineStepBody]
    params: Mapping[str, Any]
    on_error: OnError
    given: Mapping[str, Any]
    template: str | None = None
    version: int | None = None
    retry_of: str | None = None
    reused: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


@dataclass(frozen=True, slots=True)
class _ReadJob:
    """A job of the plan whose params are valid."""

    id: str
    step: str
    offer: Offer
    item: ReadInput


class PipelineIntake:
    """Accepts pipelines by way of the intake of jobs."""

    def __init__(
        self,
        database: Database,
        intake: Intake,
        offers: Callable[[], Offers],
        policy: Callable[[], JobPolicy],
        history: History,
        admission: Admission,
        clock: Callable[[], float],
    ) -> None:
        self._database = database
        self._intake = intake
        self._offers = offers
        self._policy = policy
        self._history = history
        self._admission = admission
        self._clock = clock

    async def accept(self, submission: SubmittedRequest) -> PipelineReceipt | PipelineForecast:
        """Create a pipeline with all its jobs, or return that of the earlier request that this one repeats."""
        body, details = read(PipelineBody, submission.decoded.body, "")
        if body is None:
            raise refuse(details)
        if body.dry_run:
            return await self._forecast(submission, await self._resolve(submission, body))
        with self._intake.alone(submission):
            if found := await self._find_earlier(submission):
                return found
            return await self._accept(submission, await self._resolve(submission, body))

    async def retry(self, submission: SubmittedRequest, pipeline_id: str) -> PipelineReceipt:
        """Create a pipeline that repeats an earlier one from a step on, and uses its other outputs again."""
        body, details = read(PipelineRetryBody, submission.decoded.body, "")
        if body is None:
            raise refuse(details)
        mark = hashlib.sha256(pipeline_id.encode() + submission.decoded.mark).digest()
        submission = replace(submission, decoded=Decoded(submission.decoded.body, mark))
        with self._intake.alone(submission):
            if found := await self._find_earlier(submission):
                return found
            get = pipeline_rows.get_whole
            earlier, jobs = await self._database.read(get, submission.key.account_id, pipeline_id)
            if earlier.is_past(self._clock()):
                raise Gone("The pipeline has been removed.")
            own = [job.attribution for job in jobs.values() if job.pipeline_id == earlier.id and job.attribution]
            submission = _inherit(submission, own[0]) if own else submission
            return await self._accept(submission, self._repeat(earlier, jobs, body))

    async def _find_earlier(self, submission: SubmittedRequest) -> PipelineReceipt | None:
        receipt = await self._intake.find_earlier_request(submission)
        if receipt is None:
            return None
        return await self._answer(submission, receipt.id, replayed=receipt.replayed, suppressed=receipt.suppressed)

    async def _answer(self, submission: SubmittedRequest, pipeline_id: str, **how: bool) -> PipelineReceipt:
        account_id = submission.key.account_id
        pipeline, jobs = await self._database.read(pipeline_rows.get_whole, account_id, pipeline_id)
        return PipelineReceipt(pipeline, jobs, **how)

    # -- what is asked for

    async def _resolve(self, submission: SubmittedRequest, body: PipelineBody) -> _Wanted:
        """Return the steps of the request, or of the template that it names."""
        if (body.steps is None) is (body.template is None):
            raise InvalidRequest("Give exactly one of `steps` and `template`.", param="steps")
        if body.steps is not None:
            params, on_error = body.params or {}, OnError(body.on_error or OnError.STOP)
            return _Wanted(
                body=body,
                steps=body.steps,
                params=params,
                on_error=on_error,
                given=_given(body.steps, params, on_error),
            )
        account_id, name = submission.key.account_id, body.template or ""
        template = await self._database.read(pipeline_rows.get_template, account_id, name, body.version)
        stored = template.body
        on_error = OnError(body.on_error or stored.get("on_error") or OnError.STOP)
        steps = [PipelineStepBody.model_validate(step) for step in stored["steps"]]
        params: dict[str, Any] = {**(stored.get("params") or {}), **(body.params or {})}
        return _Wanted(
            body=body,
            steps=steps,
            params=params,
            on_error=on_error,
            given=_given(steps, params, on_error),
            template=template.name,
            version=template.version,
        )

    def _repeat(self, earlier: Pipeline, jobs: Mapping[str, Job], body: PipelineRetryBody) -> _Wanted:
        """Return an ended pipeline as a new one that repeats a step, all that need it, and what did not succeed."""
        if not earlier.done:
            raise PipelineNotFinished
        names = [step.name for step in earlier.steps]
        if body.from_ is not None and body.from_ not in names:
            known = ", ".join(f"`{name}`" for name in names)
            raise InvalidRequest(f"There is no step `{body.from_}`; the steps are {known}.", param="from")
        now, repeated = self._clock(), set[str]()
        for step in earlier.steps:  # in their order, so that those that it needs are known
            whole = all(job_id in jobs and _is_usable(jobs[job_id], now) for job_id in step.job_ids)
            if not whole or step.name == body.from_ or repeated.intersection(step.needs):
                repeated.add(step.name)
        if not repeated:
            raise InvalidRequest("Every step has succeeded: name the step to repeat in `from`.", param="from")
        steps = [PipelineStepBody.model_validate(step) for step in earlier.given["steps"]]
        params = {**earlier.params, **(body.params or {})}
        return _Wanted(
            body=PipelineBody.model_validate(
                {
                    "client_ref": earlier.client_ref,
                    "metadata": earlier.metadata and dict(earlier.metadata),
                    "retention": "forever" if earlier.retention is None else earlier.retention,
                    **earlier.terms,
                    "reuse": Reuse.OFF,
                }
            ),
            steps=steps,
            params=params,
            on_error=earlier.on_error,
            given=_given(steps, params, earlier.on_error),
            template=earlier.template,
            version=earlier.version,
            retry_of=earlier.id,
            reused={step.name: step.job_ids for step in earlier.steps if step.name not in repeated},
        )

    # -- reading the jobs

    async def _read_jobs(
        self, submission: SubmittedRequest, wanted: _Wanted, plan: Sequence[PlannedStep], *, store: bool
    ) -> list[_ReadJob]:
        """Return the jobs of the plan with their params read. Raise with the problems of all."""
        offers = {step.body.name: self._offer(submission, step) for step in plan}
        awaited = {job.id: offers[step.body.name].kind for step in plan for job in step.jobs}
        details: list[Detail] = self._intake.check_outer(wanted.body)
        found: list[_ReadJob] = []
        for step in plan:
            offer, place = offers[step.body.name], f"{step.place}.params"
            for job in step.jobs:
                params, problems = offer.model.read(job.params, place)
                if params is not None:
                    problems = [*_find_misplaced(offer, params, awaited, place)]
                if params is not None and not problems:
                    key = submission.key
                    item, problems = await self._intake.open_files(
                        params, offer, key, place, store=store, awaited=awaited
                    )
                    found.append(_ReadJob(job.id, step.body.name, offer, item))
                name = step.body.name
                details += [replace(each, message=f"Step `{name}`: {each.message}") for each in problems]
                if problems:
                    break  # those of its other jobs would repeat them
        raise_all(details)
        return await self._inspect(submission, found)

    async def _inspect(self, submission: SubmittedRequest, found: Sequence[_ReadJob]) -> list[_ReadJob]:
        """Return the jobs with the findings of guardrails. Raise if a guardrail ends the request."""
        if not self._intake.is_guarded:
            return list(found)
        items = await self._intake.inspect_all(submission, [(each.offer, each.item) for each in found], "pipeline")
        return [replace(each, item=item) for each, item in zip(found, items, strict=True)]

    def _offer(self, submission: SubmittedRequest, step: PlannedStep) -> Offer:
        key, model = submission.key, step.body.model
        try:
            offer = self._offers().get(model, key.allows_model)
            if not key.allows_model(model):
                raise ModelNotAllowed(f"This API key may not use `{model}`.")
            if submission.is_budgeted and not offer.is_priced(self._clock()):
                raise refuse_unpriced(model)
        except PenstockError as error:
            error.param, error.message = f"{step.place}.model", f"Step `{step.body.name}`: {error.message}"
            error.details = (Detail(error.param, error.message, error.code),)
            raise
        return offer

    # -- writing

    async def _accept(self, submission: SubmittedRequest, wanted: _Wanted) -> PipelineReceipt:
        plan = await self._plan(submission, wanted)
        if number := sum(len(step.jobs) for step in plan):
            self._intake.refuse_overflow(submission.key.account_id, number)
        read_jobs = await self._read_jobs(submission, wanted, plan, store=True)
        pipeline_id, now = new_id("pipe"), self._clock()
        terms = self._terms(submission, wanted, pipeline_id)
        jobs: list[Job] = []
        for each in read_jobs:
            job = self._intake.make_job(submission, terms, each.offer, each.item, now, each.id, each.step)
            await self._intake.store_files(job, each.item)
            jobs.append(job)
        pipeline = self._make(submission, wanted, plan, jobs, pipeline_id, now)
        receipt = await self._intake.commit(submission, jobs, pipeline)
        return await self._answer(submission, receipt.id, replayed=receipt.replayed, suppressed=receipt.suppressed)

    async def _plan(self, submission: SubmittedRequest, wanted: _Wanted) -> list[PlannedStep]:
        """Return the steps with their jobs. Those whose results are kept have these, if they may be reused.

        A step can be looked up once all that it needs is there, so this goes on until nothing more is found.
        """
        reused = dict(wanted.reused)
        plan = make_plan(wanted.steps, wanted.params, reused)
        if not _may_reuse(wanted.body, submission.key):
            return plan
        tried = set[str]()
        while ready := [
            step
            for step in plan
            if not step.reused and step.body.name not in tried and all(need in reused for need in step.needs)
        ]:
            for step in ready:
                tried.add(step.body.name)
                if found := await self._find_results(
                    submission, step, {job_id for ids in reused.values() for job_id in ids}
                ):
                    reused[step.body.name] = found
            plan = make_plan(wanted.steps, wanted.params, reused)
        return plan

    async def _find_results(
        self, submission: SubmittedRequest, step: PlannedStep, taken: Collection[str]
    ) -> Sequence[str]:
        """Return kept jobs for all jobs of a step, each another one, or none of them."""
        key, found = submission.key, list[str]()
        offer = self._offers().by_model.get(step.body.model)
        for job in step.jobs:
            if offer is None or not key.allows_model(offer.id):
                return ()
            params, problems = offer.model.read(job.params, step.place)
            if params is None or problems:
                return ()
            item, problems = await self._intake.open_files(params, offer, key, step.place, store=False)
            if problems:
                return ()
            [item] = await self._intake.inspect(submission, offer, [item])
            result = await self._intake.find_result(offer, item, key.account_id, {*taken, *found})
            if result is None:
                return ()
            if self._intake.is_guarded:  # as the job would be
                await self._intake.inspect_all(submission, [(offer, item)], "pipeline")
            found.append(result.id)
        return found

    def _terms(self, submission: SubmittedRequest, wanted: _Wanted, pipeline_id: str) -> JobTerms:
        body = wanted.body
        webhook = self._webhook(submission, wanted)
        job_events = body.webhook.job_events if body.webhook else []
        return JobTerms(
            start_timeout=body.start_timeout,
            run_timeout=body.run_timeout,
            retention=body.retention,
            client_ref=body.client_ref,
            metadata=body.metadata,
            webhook={**webhook, "events": job_events} if webhook and job_events else None,
            pipeline_id=pipeline_id,
        )

    def _webhook(self, submission: SubmittedRequest, wanted: _Wanted) -> dict[str, Any] | None:
        given = wanted.body.webhook
        if given is None:
            return None
        url = self._policy().check_url(given.url)
        return {"url": url, "base_url": submission.base_url, "events": given.pipeline_events}

    def _make(
        self,
        submission: SubmittedRequest,
        wanted: _Wanted,
        plan: Sequence[PlannedStep],
        jobs: Sequence[Job],
        pipeline_id: str,
        now: float,
    ) -> Pipeline:
        costs = [job.estimated for job in jobs]
        return Pipeline(
            id=pipeline_id,
            account_id=submission.key.account_id,
            key_id=submission.key.public_id,
            request_id=submission.request_id,
            created_at=now,
            steps=tuple(_make_step(step, wanted.on_error) for step in plan),
            given=wanted.given,
            params=wanted.params,
            on_error=wanted.on_error,
            retention=self._intake.retention_of(wanted.body.retention),
            client_ref=wanted.body.client_ref,
            metadata=wanted.body.metadata,
            webhook=self._webhook(submission, wanted),
            terms=wanted.body.model_dump(mode="json", include=TERMS, exclude_none=True),
            template=wanted.template,
            version=wanted.version,
            retry_of=wanted.retry_of,
            reused=tuple(job_id for step in plan for job_id in step.reused),
            estimated=None if None in costs else sum(cost for cost in costs if cost is not None),
            states={job_id: State.SUCCEEDED.value for step in plan for job_id in step.reused},
        )

    # -- dry runs

    async def _forecast(self, submission: SubmittedRequest, wanted: _Wanted) -> PipelineForecast:
        plan, payer, now = make_plan(wanted.steps, wanted.params), submission.payer, self._clock()
        read_jobs = await self._read_jobs(submission, wanted, plan, store=False)
        is_budgeted = submission.is_budgeted
        if is_budgeted:
            await self._admission.give_back(payer.owners)
        standings = await self._database.read(balance_rows.standings, payer, now) if is_budgeted else []
        left = min((standing.left for standing in standings), default=None)
        return PipelineForecast([self._forecast_step(step, read_jobs, now) for step in plan], left)

    def _forecast_step(self, step: PlannedStep, jobs: Sequence[_ReadJob], now: float) -> StepForecast:
        own = [job for job in jobs if job.step == step.body.name]
        costs = [job.offer.ceiling(job.item.params, now) for job in own]
        estimated = None if None in costs else sum(cost for cost in costs if cost is not None)
        duration = self._history.typical(step.body.model)
        return StepForecast(step.body.name, step.body.model, len(own), step.needs, estimated, duration)


def _given(steps: Sequence[PipelineStepBody], params: Mapping[str, Any], on_error: OnError) -> dict[str, Any]:
    """Return the request's own form of the steps, from which it can be run again. Raise if that is too much."""
    raise_all([*find_excess(steps, params)])
    return {"steps": [step.model_dump(exclude_none=True) for step in steps], "on_error": on_error.value}


def _is_usable(job: Job, now: float) -> bool:
    return job.state is State.SUCCEEDED and not job.is_past(now)


def _make_step(step: PlannedStep, on_error: OnError) -> PipelineStep:
    return PipelineStep(
        name=step.body.name,
        model=step.body.model,
        job_ids=step.job_ids,
        is_fan_out=step.body.for_each is not None,
        on_error=OnError(step.body.on_error or on_error),
        needs=step.needs,
    )


def _find_misplaced(
    offer: Offer, params: Mapping[str, Any], awaited: Mapping[str, str], place: str
) -> Sequence[Detail]:
    """Return the references to outputs where the model takes no file."""
    allowed = {path for slot in offer.model.files for path, _ in slot.entries(params)}
    names = ", ".join(f"`{slot.name}`" for slot in offer.model.files) or "no param"
    message = f"An output cannot be given here: of `{offer.id}`, {names} takes files."
    return [Detail(f"{place}.{path}", message) for path in find_jobs(params, awaited) if path not in allowed]


def _may_reuse(body: PipelineBody, key: ApiKey) -> bool:
    """Return whether kept results may be used. A key's default leaves pipelines alone that wait for events of jobs."""
    if body.reuse is not None:
        return body.reuse is Reuse.EXACT
    return key.reuse == Reuse.EXACT and not (body.webhook and body.webhook.job_events)


def _inherit(submission: SubmittedRequest, earlier: Attribution) -> SubmittedRequest:
    """Return a retry with the attribution of what it repeats, unless it names one of its own."""
    fixed = submission.key.tags
    if submission.attribution not in (None, Attribution(fixed)):
        return submission
    return replace(submission, attribution=earlier.with_tags(fixed))
