"""Jobs, outputs and batches of the blocking client."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.client import downloads, notebook
from penstock.client.calls import GenerationOptions
from penstock.client.decoding import read
from penstock.client.errors import BadInput, job_failure
from penstock.client.records import Bound, Event, JobOutput, JobRecord, Lineage, Share, read_outputs

if TYPE_CHECKING:
    from penstock.client.sync_client import Client

Content: TypeAlias = bytes
"""Alias of `bytes`. From Python 3.14 on, annotations in a class with a method `bytes` mean that method."""


@dataclass(frozen=True, kw_only=True)
class Output(JobOutput):
    """One result of a job, with methods to download it."""

    client: "Client" = field(repr=False, compare=False)

    def bytes(self) -> Content:
        """Download and return the content. Raises DownloadFailed if it does not match its sha256."""
        stream = io.BytesIO()
        self.client.driver.run(downloads.load(self, stream, self.client.calls.patient))
        return stream.getvalue()

    def save(self, path: str | Path) -> Path:
        """Download to a path, or under its own name into a folder, and return the file's path.

        The file appears only once it is complete. Raises DownloadFailed if it does not match its sha256.
        """
        return self.client.driver.run(downloads.save(self, path, self.client.calls.patient))

    def view(self) -> notebook.View:
        """Return the output as HTML for a notebook, of any size."""
        return notebook.View(notebook.embed(self, self.bytes()))

    def _repr_html_(self) -> str:
        return notebook.show_output(self, self.bytes)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Job(Bound, JobRecord):
    """One generation as an immutable snapshot. Methods that ask the server return a new Job."""

    outputs: tuple[Output, ...] = ()
    client: "Client" = field(repr=False, compare=False)

    def refresh(self) -> "Job":
        """Fetch the job again and return its current state."""
        return self.client.job(self.id)

    def wait(
        self,
        timeout: float | None = None,
        *,
        progress: Callable[["Job"], object] | None = None,
        check: bool = True,
    ) -> "Job":
        """Wait until the job is done and return it.

        `timeout` is in seconds, None waits without end. `progress` is called with the job each time it is polled.
        Raises WaitTimeout when the time is up. Raises JobFailed if there is no result, unless `check` is false.
        """
        calls = self.client.calls
        return self.client.driver.run(calls.wait(self, timeout, progress, check=check))

    def events(self, after: str | None = None) -> Iterator[Event]:
        """Iterate over the job's events until it is done, from the first or after the event id `after`."""
        return self.client.driver.iterate(self.client.calls.job_events(self.id, after))

    def cancel(self) -> "Job":
        """Request cancellation and return the job."""
        return self.client.cancel(self.id)

    def rerun(self, **changes: Any) -> "Job":
        """Run a generation again as a new job. Keywords replace params, None removes one."""
        return self.client.driver.run(self.client.calls.rerun(self, changes, GenerationOptions()))

    def share(self, *, expires_in: float | None = None, include_input: bool = False) -> Share:
        """Create a public link to the outputs, which works for `expires_in` seconds, by default for a week."""
        return self.client.share(self.id, expires_in=expires_in, include_input=include_input)

    def lineage(self) -> Lineage:
        """Return the jobs whose outputs led to this one, and those that were made from its outputs."""
        return self.client.lineage(self.id)

    def delete(self) -> None:
        """Delete the finished job with its params, outputs and files."""
        self.client.delete_job(self.id)

    @property
    def output(self) -> Output:
        """The primary output, without previews. Raises JobFailed if there is none, BadInput before the job is done."""
        return primary(self)

    def save(self, path: str | Path) -> Path:
        """Download the primary output to a path, or under its own name into a folder."""
        return self.output.save(path)

    def bytes(self) -> Content:
        """Download and return the primary output."""
        return self.output.bytes()

    def _repr_html_(self) -> str:
        shown = [notebook.show_output(output, output.bytes) for output in self.outputs if output.role == "primary"]
        return notebook.show_jobs([self]) + "".join(shown)


@dataclass(frozen=True)
class Batch(Bound):
    """Several generations that were accepted together."""

    client: "Client" = field(repr=False, compare=False)
    jobs: tuple[Job, ...]

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __getitem__(self, index: int) -> Job:
        return self.jobs[index]

    def __len__(self) -> int:
        return len(self.jobs)

    def wait(
        self,
        timeout: float | None = None,
        *,
        progress: Callable[[Sequence[Job]], object] | None = None,
        check: bool = True,
    ) -> "Batch":
        """Wait until all jobs are done and return them as a new batch.

        `timeout` is in seconds for all together. `progress` is called with all jobs after each round of polling.
        Raises WaitTimeout when the time is up. Raises JobFailed if a job has no result, unless `check` is false.
        """
        flow = self.client.calls.wait_for_all(self.jobs, timeout, progress, check=check)
        return Batch(self.client, self.client.driver.run(flow))

    def save(self, folder: str | Path) -> list[Path]:
        """Download every primary output into a folder, named by job id, and return the paths."""
        return [output.save(place) for output, place in places(self.jobs, folder)]

    def _repr_html_(self) -> str:
        return notebook.show_jobs(self.jobs)


def bind_job(client: "Client", data: Any) -> Job:
    """Return a job bound to this client, from the server's answer."""
    outputs = read_outputs(Output, data, client)
    return read(Job, data, client=client, outputs=outputs)


def primary(job: Any) -> Any:
    """Return the primary output of a job."""
    if job.done and not job.succeeded:
        raise job_failure(job)
    if not job.outputs:
        raise BadInput(f"{job.id} is {job.status} and has no output yet: wait for it first.")
    return next((output for output in job.outputs if output.role == "primary"), job.outputs[0])


def places(jobs: Sequence[JobRecord], folder: str | Path) -> list[tuple[Any, Path]]:
    """Return the primary output of each job that has one, with its target path."""
    results = [(job.id, primary(job)) for job in jobs if job.succeeded or not job.done]
    return [(output, Path(folder) / f"{name}{Path(output.filename).suffix}") for name, output in results]
