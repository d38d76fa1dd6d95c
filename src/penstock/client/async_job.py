"""Jobs, outputs and batches of the asynchronous client."""

import io
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.client import downloads, notebook
from penstock.client.calls import GenerationOptions
from penstock.client.decoding import read
from penstock.client.records import Bound, Event, JobOutput, JobRecord, Lineage, Share, read_outputs
from penstock.client.sync_job import Content, places, primary

if TYPE_CHECKING:
    from penstock.client.async_client import AsyncClient


@dataclass(frozen=True, kw_only=True)
class AsyncOutput(JobOutput):
    """One result of a job, with methods to download it."""

    client: "AsyncClient" = field(repr=False, compare=False)

    async def bytes(self) -> Content:
        """Download and return the content. Raises DownloadFailed if it does not match its sha256."""
        stream = io.BytesIO()
        await self.client.driver.run(downloads.load(self, stream, self.client.calls.patient))
        return stream.getvalue()

    async def save(self, path: str | Path) -> Path:
        """Download to a path, or under its own name into a folder, and return the file's path.

        The file appears only once it is complete. Raises DownloadFailed if it does not match its sha256.
        """
        return await self.client.driver.run(downloads.save(self, path, self.client.calls.patient))

    async def view(self) -> notebook.View:
        """Return the output as HTML for a notebook."""
        return notebook.View(notebook.embed(self, await self.bytes()))

    def _repr_html_(self) -> str:
        return notebook.describe(self)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AsyncJob(Bound, JobRecord):
    """One generation as an immutable snapshot. Methods that ask the server return a new Job."""

    outputs: tuple[AsyncOutput, ...] = ()
    client: "AsyncClient" = field(repr=False, compare=False)

    async def refresh(self) -> "AsyncJob":
        """Fetch the job again and return its current state."""
        return await self.client.job(self.id)

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  like the blocking client
        *,
        progress: Callable[["AsyncJob"], object] | None = None,
        check: bool = True,
    ) -> "AsyncJob":
        """Wait until the job is done and return it.

        `timeout` is in seconds, None waits without end. `progress` is called with the job each time it is polled.
        Raises WaitTimeout when the time is up. Raises JobFailed if there is no result, unless `check` is false.
        """
        calls = self.client.calls
        return await self.client.driver.run(calls.wait(self, timeout, progress, check=check))

    def events(self, after: str | None = None) -> AsyncIterator[Event]:
        """Iterate over the job's events until it is done, from the first or after the event id `after`."""
        return self.client.driver.iterate(self.client.calls.job_events(self.id, after))

    async def cancel(self) -> "AsyncJob":
        """Request cancellation and return the job."""
        return await self.client.cancel(self.id)

    async def rerun(self, **changes: Any) -> "AsyncJob":
        """Run a generation again as a new job. Keywords replace params, None removes one."""
        return await self.client.driver.run(self.client.calls.rerun(self, changes, GenerationOptions()))

    async def share(self, *, expires_in: float | None = None, include_input: bool = False) -> Share:
        """Create a public link to the outputs, which works for `expires_in` seconds, by default for a week."""
        return await self.client.share(self.id, expires_in=expires_in, include_input=include_input)

    async def lineage(self) -> Lineage:
        """Return the jobs whose outputs led to this one, and those that were made from its outputs."""
        return await self.client.lineage(self.id)

    async def delete(self) -> None:
        """Delete the finished job with its params, outputs and files."""
        await self.client.delete_job(self.id)

    @property
    def output(self) -> AsyncOutput:
        """The primary output, without previews. Raises JobFailed if there is none, BadInput before the job is done."""
        return primary(self)

    async def save(self, path: str | Path) -> Path:
        """Download the primary output to a path, or under its own name into a folder."""
        return await self.output.save(path)

    async def bytes(self) -> Content:
        """Download and return the primary output."""
        return await self.output.bytes()

    def _repr_html_(self) -> str:
        return notebook.show_jobs([self]) + "".join(map(notebook.describe, self.outputs))


@dataclass(frozen=True)
class AsyncBatch(Bound):
    """Several generations that were accepted together."""

    client: "AsyncClient" = field(repr=False, compare=False)
    jobs: tuple[AsyncJob, ...]

    def __iter__(self) -> Iterator[AsyncJob]:
        return iter(self.jobs)

    def __getitem__(self, index: int) -> AsyncJob:
        return self.jobs[index]

    def __len__(self) -> int:
        return len(self.jobs)

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  like the blocking client
        *,
        progress: Callable[[Sequence[AsyncJob]], object] | None = None,
        check: bool = True,
    ) -> "AsyncBatch":
        """Wait until all jobs are done and return them as a new batch.

        `timeout` is in seconds for all together. `progress` is called with all jobs after each round of polling.
        Raises WaitTimeout when the time is up. Raises JobFailed if a job has no result, unless `check` is false.
        """
        flow = self.client.calls.wait_for_all(self.jobs, timeout, progress, check=check)
        return AsyncBatch(self.client, await self.client.driver.run(flow))

    async def save(self, folder: str | Path) -> list[Path]:
        """Download every primary output into a folder, named by job id, and return the paths."""
        return [await output.save(place) for output, place in places(self.jobs, folder)]

    def _repr_html_(self) -> str:
        return notebook.show_jobs(self.jobs)


def bind_async_job(client: "AsyncClient", data: Any) -> AsyncJob:
    """Return a job bound to this client, from the server's answer."""
    outputs = read_outputs(AsyncOutput, data, client)
    return read(AsyncJob, data, client=client, outputs=outputs)
