"""Jobs, outputs and batches that can be acted on, for the client that waits."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.client import downloads, notebook
from penstock.client.calls import Wishes
from penstock.client.decoding import read
from penstock.client.errors import BadInput, job_failure
from penstock.client.records import Bound, Event, JobRecord, OutputRecord, listed_outputs

if TYPE_CHECKING:
    from penstock.client.sync_client import Client

Content: TypeAlias = bytes
"""Where a method is called `bytes`, from Python 3.14 on that name means the method to its class's annotations."""


@dataclass(frozen=True, kw_only=True)
class Output(Bound, OutputRecord):
    """One result of a job, whose bytes can be had."""

    client: "Client" = field(repr=False, compare=False)

    def bytes(self) -> Content:
        """All of it, checked."""
        stream = io.BytesIO()
        self.client.driver.run(downloads.load(self, stream, self.client.calls.patient))
        return stream.getvalue()

    def save(self, path: str | Path) -> Path:
        """Write it to a path, or under its own name into a folder; checked, all of it or nothing."""
        return self.client.driver.run(downloads.save(self, path, self.client.calls.patient))

    def view(self) -> notebook.View:
        """It, to look at in a notebook, however large it is."""
        return notebook.View(notebook.embed(self, self.bytes()))

    def _repr_html_(self) -> str:
        return notebook.show_output(self, self.bytes)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Job(Bound, JobRecord):
    """One generation, as it stood when the server was asked; its methods ask again and give a new one."""

    outputs: tuple[Output, ...] = ()
    client: "Client" = field(repr=False, compare=False)

    def refresh(self) -> "Job":
        """How it stands now."""
        return self.client.job(self.id)

    def wait(
        self,
        timeout: float | None = None,
        *,
        progress: Callable[["Job"], object] | None = None,
        check: bool = True,
    ) -> "Job":
        """The job once it is done. One without a result raises JobFailed, unless `check` is false."""
        calls = self.client.calls
        return self.client.driver.run(calls.wait(self, timeout, progress, check=check))

    def events(self, after: str | None = None) -> Iterator[Event]:
        """Everything that happens to it, from the first event or after one, until it is done."""
        return self.client.driver.iterate(self.client.calls.job_events(self.id, after))

    def cancel(self) -> "Job":
        """Ask for it to be stopped."""
        return self.client.cancel(self.id)

    def rerun(self, **changes: Any) -> "Job":
        """The same generation again, with some params changed; None takes one away."""
        return self.client.driver.run(self.client.calls.rerun(self, changes, Wishes()))

    def delete(self) -> None:
        """Remove its params, outputs and files."""
        self.client.delete_job(self.id)

    @property
    def output(self) -> Output:
        """The result itself, without previews."""
        return primary(self)

    def save(self, path: str | Path) -> Path:
        """Save the result to a path, or under its own name into a folder."""
        return self.output.save(path)

    def bytes(self) -> Content:
        """The result's bytes."""
        return self.output.bytes()

    def _repr_html_(self) -> str:
        shown = [notebook.show_output(output, output.bytes) for output in self.outputs if output.role == "primary"]
        return notebook.show_jobs([self]) + "".join(shown)


@dataclass(frozen=True)
class Batch(Bound):
    """Several generations, accepted together."""

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
        """All of them once they are done. If one has no result, JobFailed is raised, unless `check` is false."""
        flow = self.client.calls.wait_for_all(self.jobs, timeout, progress, check=check)
        return Batch(self.client, self.client.driver.run(flow))

    def save(self, folder: str | Path) -> list[Path]:
        """Save every result into a folder, named by its job."""
        return [output.save(place) for output, place in places(self.jobs, folder)]

    def _repr_html_(self) -> str:
        return notebook.show_jobs(self.jobs)


def bind_job(client: "Client", told: Any) -> Job:
    """A job of this client."""
    outputs = tuple(read(Output, output, client=client) for output in listed_outputs(told))
    return read(Job, told, client=client, outputs=outputs)


def primary(job: Any) -> Any:
    """The output that was asked for."""
    if job.done and not job.succeeded:
        raise job_failure(job)
    if not job.outputs:
        raise BadInput(f"{job.id} is {job.status} and has no output yet: wait for it first.")
    return next((output for output in job.outputs if output.role == "primary"), job.outputs[0])


def places(jobs: Sequence[JobRecord], folder: str | Path) -> list[tuple[Any, Path]]:
    """The result of each job that has one, and where it goes."""
    results = [(job.id, primary(job)) for job in jobs if job.succeeded or not job.done]
    return [(output, Path(folder) / f"{name}{Path(output.filename).suffix}") for name, output in results]
