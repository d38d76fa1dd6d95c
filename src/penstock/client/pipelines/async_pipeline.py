"""Pipelines of the asynchronous client."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.client import notebook
from penstock.client.async_job import AsyncJob, AsyncOutput, bind_async_job
from penstock.client.calls import GenerationOptions
from penstock.client.decoding import read
from penstock.client.pipelines.calls import PipelineCalls, PipelineRequest, Steps
from penstock.client.pipelines.sync_pipeline import last_step, only_job, places, results
from penstock.client.records import (
    Bound,
    Event,
    PipelineQuote,
    PipelineRecord,
    StepRecord,
    Template,
    read_steps,
)
from penstock.client.sync_job import primary

if TYPE_CHECKING:
    from penstock.client.async_client import AsyncClient
    from penstock.client.transport.async_driver import AsyncDriver


@dataclass(frozen=True, kw_only=True, eq=False)
class AsyncPipelineStep(StepRecord):
    """One step of a pipeline with its jobs."""

    jobs: tuple[AsyncJob, ...] = ()

    @property
    def output(self) -> AsyncOutput:
        """The primary output of its only job. Raises JobFailed if there is none, BadInput before the job is done."""
        return primary(only_job(self))

    @property
    def outputs(self) -> tuple[AsyncOutput, ...]:
        """All outputs of its jobs, in order, with previews."""
        return tuple(output for job in self.jobs for output in job.outputs)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AsyncPipeline(Bound, PipelineRecord):
    """Jobs that were accepted together, as an immutable snapshot. Methods that ask the server return a new one."""

    steps: Mapping[str, AsyncPipelineStep] = field(default_factory=dict[str, AsyncPipelineStep])
    client: "AsyncClient" = field(repr=False, compare=False)

    @property
    def jobs(self) -> tuple[AsyncJob, ...]:
        """All jobs, in the order of the steps. A pipeline of a list has none: `refresh` it first."""
        return tuple(job for step in self.steps.values() for job in step.jobs)

    @property
    def output(self) -> AsyncOutput:
        """The primary output of the last step."""
        return last_step(self).output

    async def refresh(self) -> "AsyncPipeline":
        """Fetch the pipeline again and return its current state."""
        return await self.client.pipelines.get(self.id)

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  like the blocking client
        *,
        progress: Callable[["AsyncPipeline"], object] | None = None,
        check: bool = True,
    ) -> "AsyncPipeline":
        """Wait until the pipeline is done and return it.

        `timeout` is in seconds, None waits without end. `progress` is called with the pipeline each time it is polled.
        Raises WaitTimeout when the time is up. Raises PipelineFailed if it did not succeed, unless `check` is false.
        """
        return await self.client.driver.run(self.client.pipelines.calls.wait(self, timeout, progress, check=check))

    def events(self, after: str | None = None) -> AsyncIterator[Event]:
        """Iterate over the events of the pipeline and of its jobs until its end."""
        return self.client.driver.iterate(self.client.pipelines.calls.events(self.id, after))

    async def cancel(self) -> "AsyncPipeline":
        """Request cancellation of all open jobs and return the pipeline."""
        return await self.client.pipelines.cancel(self.id)

    async def retry(self, from_step: str | None = None, *, params: Mapping[str, Any] | None = None) -> "AsyncPipeline":
        """Repeat a step, all that need it, and all that did not succeed, as a new pipeline."""
        return await self.client.pipelines.retry(self.id, from_step, params=params)

    async def delete(self) -> None:
        """Delete the ended pipeline with its own jobs and their outputs."""
        await self.client.pipelines.delete(self.id)

    async def save(self, folder: str | Path, *, every_step: bool = False) -> list[Path]:
        """Download the outputs of the last steps, or of all, into a folder, named by step, and return the paths."""
        return [await output.save(place) for output, place in places(self, folder, every_step=every_step)]

    def _repr_html_(self) -> str:
        outputs = [output for step in results(self) for output in step.outputs]
        return notebook.show_pipeline(self) + "".join(map(notebook.describe, outputs))


class AsyncPipelines:
    """Pipelines of the account, and their templates. `Client.pipeline` runs one."""

    def __init__(self, client: "AsyncClient", driver: "AsyncDriver") -> None:
        self._driver = driver
        self._calls: PipelineCalls[AsyncPipeline] = PipelineCalls(
            client.calls, lambda data: bind_async_pipeline(client, data)
        )
        self.templates = AsyncTemplates(driver, self._calls)

    @property
    def calls(self) -> PipelineCalls[AsyncPipeline]:
        """The API calls as flows. Used by this client's pipelines."""
        return self._calls

    def list(self, limit: int | None = None) -> AsyncIterator[AsyncPipeline]:
        """Iterate over your pipelines, newest first, without their jobs."""
        return self._driver.iterate(self._calls.list(limit))

    async def get(self, pipeline_id: str) -> AsyncPipeline:
        """Return a pipeline with its jobs. Raise NotFoundError if this account has no such pipeline."""
        return await self._driver.run(self._calls.get(pipeline_id))

    async def price(
        self,
        steps: Steps | None = None,
        *,
        template: str | None = None,
        version: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> PipelineQuote:
        """Return price and time of a pipeline without creating it. Raises InvalidRequestError if it is not valid."""
        request = PipelineRequest(steps=steps, template=template, version=version, params=params)
        return await self._driver.run(self._calls.price(request))

    async def cancel(self, pipeline_id: str) -> AsyncPipeline:
        """Request cancellation of all open jobs and return the pipeline."""
        return await self._driver.run(self._calls.cancel(pipeline_id))

    async def retry(
        self,
        pipeline_id: str,
        from_step: str | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncPipeline:
        """Repeat a step, all that need it, and all that did not succeed, as a new pipeline.

        Without `from_step`, repeat what did not succeed. `params` replaces some of the pipeline's own params.
        """
        options = GenerationOptions(idempotency_key=idempotency_key)
        return await self._driver.run(self._calls.retry(pipeline_id, from_step, params, options))

    async def delete(self, pipeline_id: str) -> None:
        """Delete an ended pipeline with its own jobs and their outputs. Raises ConflictError while it runs."""
        await self._driver.run(self._calls.delete(pipeline_id))


class AsyncTemplates:
    """Stored pipelines with versions."""

    def __init__(self, driver: "AsyncDriver", calls: PipelineCalls[Any]) -> None:
        self._driver = driver
        self._calls = calls

    async def put(
        self,
        name: str,
        steps: Steps,
        *,
        on_error: str | None = None,
        params: Mapping[str, Any] | None = None,
        description: str | None = None,
    ) -> Template:
        """Store a pipeline under a name, as its next version. `params` are defaults."""
        return await self._driver.run(self._calls.put_template(name, steps, on_error, params, description))

    async def get(self, name: str, version: int | None = None) -> Template:
        """Return a version of a template, by default the newest."""
        return await self._driver.run(self._calls.template(name, version))

    async def list(self) -> tuple[Template, ...]:
        """Return the newest version of each template."""
        return await self._driver.run(self._calls.templates())

    async def delete(self, name: str) -> None:
        """Delete all versions of a template."""
        await self._driver.run(self._calls.delete_template(name))


def bind_async_pipeline(client: "AsyncClient", data: Any) -> AsyncPipeline:
    """Return a pipeline bound to this client, from the server's answer."""
    steps = read_steps(AsyncPipelineStep, data, lambda job: bind_async_job(client, job))
    return read(AsyncPipeline, data, client=client, steps=steps)
