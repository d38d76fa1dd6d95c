"""Pipelines of the blocking client."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.client import notebook
from penstock.client.calls import GenerationOptions
from penstock.client.decoding import read
from penstock.client.errors import BadInput
from penstock.client.pipelines.calls import PipelineCalls, PipelineRequest, Steps
from penstock.client.records import (
    Bound,
    Event,
    PipelineQuote,
    PipelineRecord,
    StepRecord,
    Template,
    read_steps,
)
from penstock.client.sync_job import Job, Output, bind_job, primary

if TYPE_CHECKING:
    from penstock.client.sync_client import Client
    from penstock.client.transport.sync_driver import SyncDriver


@dataclass(frozen=True, kw_only=True, eq=False)
class PipelineStep(StepRecord):
    """One step of a pipeline with its jobs."""

    jobs: tuple[Job, ...] = ()

    @property
    def output(self) -> Output:
        """The primary output of its only job. Raises JobFailed if there is none, BadInput before the job is done."""
        return primary(only_job(self))

    @property
    def outputs(self) -> tuple[Output, ...]:
        """All outputs of its jobs, in order, with previews."""
        return tuple(output for job in self.jobs for output in job.outputs)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Pipeline(Bound, PipelineRecord):
    """Jobs that were accepted together, as an immutable snapshot. Methods that ask the server return a new one."""

    steps: Mapping[str, PipelineStep] = field(default_factory=dict[str, PipelineStep])
    client: "Client" = field(repr=False, compare=False)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All jobs, in the order of the steps. A pipeline of a list has none: `refresh` it first."""
        return tuple(job for step in self.steps.values() for job in step.jobs)

    @property
    def output(self) -> Output:
        """The primary output of the last step."""
        return last_step(self).output

    def refresh(self) -> "Pipeline":
        """Fetch the pipeline again and return its current state."""
        return self.client.pipelines.get(self.id)

    def wait(
        self,
        timeout: float | None = None,
        *,
        progress: Callable[["Pipeline"], object] | None = None,
        check: bool = True,
    ) -> "Pipeline":
        """Wait until the pipeline is done and return it.

        `timeout` is in seconds, None waits without end. `progress` is called with the pipeline each time it is polled.
        Raises WaitTimeout when the time is up. Raises PipelineFailed if it did not succeed, unless `check` is false.
        """
        return self.client.driver.run(self.client.pipelines.calls.wait(self, timeout, progress, check=check))

    def events(self, after: str | None = None) -> Iterator[Event]:
        """Iterate over the events of the pipeline and of its jobs until its end."""
        return self.client.driver.iterate(self.client.pipelines.calls.events(self.id, after))

    def cancel(self) -> "Pipeline":
        """Request cancellation of all open jobs and return the pipeline."""
        return self.client.pipelines.cancel(self.id)

    def retry(self, from_step: str | None = None, *, params: Mapping[str, Any] | None = None) -> "Pipeline":
        """Repeat a step, all that need it, and all that did not succeed, as a new pipeline."""
        return self.client.pipelines.retry(self.id, from_step, params=params)

    def delete(self) -> None:
        """Delete the ended pipeline with its own jobs and their outputs."""
        self.client.pipelines.delete(self.id)

    def save(self, folder: str | Path, *, every_step: bool = False) -> list[Path]:
        """Download the outputs of the last steps, or of all, into a folder, named by step, and return the paths."""
        return [output.save(place) for output, place in places(self, folder, every_step=every_step)]

    def _repr_html_(self) -> str:
        outputs = [output for step in results(self) for output in step.outputs if output.role == "primary"]
        return notebook.show_pipeline(self) + "".join(notebook.show_output(each, each.bytes) for each in outputs)


class Pipelines:
    """Pipelines of the account, and their templates. `Client.pipeline` runs one."""

    def __init__(self, client: "Client", driver: "SyncDriver") -> None:
        self._driver = driver
        self._calls: PipelineCalls[Pipeline] = PipelineCalls(client.calls, lambda data: bind_pipeline(client, data))
        self.templates = Templates(driver, self._calls)

    @property
    def calls(self) -> PipelineCalls[Pipeline]:
        """The API calls as flows. Used by this client's pipelines."""
        return self._calls

    def list(self, limit: int | None = None) -> Iterator[Pipeline]:
        """Iterate over your pipelines, newest first, without their jobs."""
        return self._driver.iterate(self._calls.list(limit))

    def get(self, pipeline_id: str) -> Pipeline:
        """Return a pipeline with its jobs. Raise NotFoundError if this account has no such pipeline."""
        return self._driver.run(self._calls.get(pipeline_id))

    def price(
        self,
        steps: Steps | None = None,
        *,
        template: str | None = None,
        version: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> PipelineQuote:
        """Return price and time of a pipeline without creating it. Raises InvalidRequestError if it is not valid."""
        request = PipelineRequest(steps=steps, template=template, version=version, params=params)
        return self._driver.run(self._calls.price(request))

    def cancel(self, pipeline_id: str) -> Pipeline:
        """Request cancellation of all open jobs and return the pipeline."""
        return self._driver.run(self._calls.cancel(pipeline_id))

    def retry(
        self,
        pipeline_id: str,
        from_step: str | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Pipeline:
        """Repeat a step, all that need it, and all that did not succeed, as a new pipeline.

        Without `from_step`, repeat what did not succeed. `params` replaces some of the pipeline's own params.
        """
        options = GenerationOptions(idempotency_key=idempotency_key)
        return self._driver.run(self._calls.retry(pipeline_id, from_step, params, options))

    def delete(self, pipeline_id: str) -> None:
        """Delete an ended pipeline with its own jobs and their outputs. Raises ConflictError while it runs."""
        self._driver.run(self._calls.delete(pipeline_id))


class Templates:
    """Stored pipelines with versions."""

    def __init__(self, driver: "SyncDriver", calls: PipelineCalls[Any]) -> None:
        self._driver = driver
        self._calls = calls

    def put(
        self,
        name: str,
        steps: Steps,
        *,
        on_error: str | None = None,
        params: Mapping[str, Any] | None = None,
        description: str | None = None,
    ) -> Template:
        """Store a pipeline under a name, as its next version. `params` are defaults."""
        return self._driver.run(self._calls.put_template(name, steps, on_error, params, description))

    def get(self, name: str, version: int | None = None) -> Template:
        """Return a version of a template, by default the newest."""
        return self._driver.run(self._calls.template(name, version))

    def list(self) -> tuple[Template, ...]:
        """Return the newest version of each template."""
        return self._driver.run(self._calls.templates())

    def delete(self, name: str) -> None:
        """Delete all versions of a template."""
        self._driver.run(self._calls.delete_template(name))


def bind_pipeline(client: "Client", data: Any) -> Pipeline:
    """Return a pipeline bound to this client, from the server's answer."""
    steps = read_steps(PipelineStep, data, lambda job: bind_job(client, job))
    return read(Pipeline, data, client=client, steps=steps)


def only_job(step: StepRecord) -> Any:
    """Return the job of a step that has one."""
    if len(step.jobs) != 1:
        many = f"has {len(step.jobs)} jobs: use `outputs`" if step.jobs else "has no jobs here: `refresh` the pipeline"
        raise BadInput(f"Step `{step.name}` {many}.")
    return step.jobs[0]


def results(pipeline: PipelineRecord) -> list[Any]:
    """Return the steps whose outputs no other step takes."""
    taken = {name for step in pipeline.steps.values() for name in step.needs}
    return [step for step in pipeline.steps.values() if step.name not in taken]


def last_step(pipeline: PipelineRecord) -> Any:
    """Return the last step whose outputs no other step takes."""
    found = results(pipeline)
    if not found:
        raise BadInput(f"{pipeline.id} has no steps.")
    return found[-1]


def places(pipeline: PipelineRecord, folder: str | Path, *, every_step: bool) -> list[tuple[Any, Path]]:
    """Return the outputs of the last steps, or of all, without previews, with their target paths."""
    if not pipeline.done:
        raise BadInput(f"{pipeline.id} is {pipeline.status}: wait for it first.")
    found: list[tuple[Any, Path]] = []
    for step in pipeline.steps.values() if every_step else results(pipeline):
        outputs = [output for job in step.jobs for output in job.outputs if output.role != "preview"]
        for number, output in enumerate(outputs):
            name = step.name if len(outputs) == 1 else f"{step.name}-{number}"
            found.append((output, Path(folder) / f"{name}{Path(output.filename).suffix}"))
    return found
