"""Jobs, outputs and batches that can be acted on, for the client for event loops."""

import io
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.client import downloads, notebook
from penstock.client.calls import Wishes
from penstock.client.decoding import read
from penstock.client.records import Bound, Event, JobRecord, OutputRecord, listed_outputs
from penstock.client.sync_job import Content, places, primary

if TYPE_CHECKING:
    from penstock.client.async_client import AsyncClient


@dataclass(frozen=True, kw_only=True)
class AsyncOutput(Bound, OutputRecord):
    """One result of a job, whose bytes can be had."""

    client: "AsyncClient" = field(repr=False, compare=False)

    async def bytes(self) -> Content:
        """All of it, checked."""
        stream = io.BytesIO()
        await self.client.driver.run(downloads.load(self, stream, self.client.calls.patient))
        return stream.getvalue()

    async def save(self, path: str | Path) -> Path:
        """Write it to a path, or under its own name into a folder; checked, all of it or nothing."""
        return await self.client.driver.run(downloads.save(self, path, self.client.calls.patient))

    async def view(self) -> notebook.View:
        """It, to look at in a notebook."""
        return notebook.View(notebook.embed(self, await self.bytes()))

    def _repr_html_(self) -> str:
        return notebook.describe(self)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AsyncJob(Bound, JobRecord):
    """One generation, as it stood when the server was asked; its methods ask again and give a new one."""

    outputs: tuple[AsyncOutput, ...] = ()
    client: "AsyncClient" = field(repr=False, compare=False)

    async def refresh(self) -> "AsyncJob":
        """How it stands now."""
        return await self.client.job(self.id)

    async def wait(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  as the other client has it
        *,
        progress: Callable[["AsyncJob"], object] | None = None,
        check: bool = True,
    ) -> "AsyncJob":
        """The job once it is done. One without a result raises JobFailed, unless `check` is false."""
        calls = self.client.calls
        return await self.client.driver.run(calls.wait(self, timeout, progress, check=check))

    def events(self, after: str | None = None) -> AsyncIterator[Event]:
        """Everything that happens to it, from the first event or after one, until it is done."""
        return self.client.driver.iterate(self.client.calls.job_events(self.id, after))

    async def cancel(self) -> "AsyncJob":
        """Ask for it to be stopped."""
        return await self.client.cancel(self.id)

    async def rerun(self, **changes: Any) -> "AsyncJob":
        """The same generation again, with some params changed; None takes one away."""
        return await self.client.driver.run(self.client.calls.rerun(self, changes, Wishes()))

    async def delete(self) -> None:
        """Remove its params, outputs and files."""
        await self.client.delete_job(self.id)

    @property
    def output(self) -> AsyncOutput:
        """The result itself, without previews."""
        return primary(self)

    async def save(self, path: str | Path) -> Path:
        """Save the result to a path, or under its own name into a folder."""
        return await self.output.save(path)

    async def bytes(self) -> Content:
        """The result's bytes."""
        return await self.output.bytes()

    def _repr_html_(self) -> str:
        return notebook.show_jobs([self]) + "".join(map(notebook.describe, self.outputs))


@dataclass(frozen=True)
class AsyncBatch(Bound):
    """Several generations, accepted together."""

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
        timeout: float | None = None,  # noqa: ASYNC109  as the other client has it
        *,
        progress: Callable[[Sequence[AsyncJob]], object] | None = None,
        check: bool = True,
    ) -> "AsyncBatch":
        """All of them once they are done. If one has no result, JobFailed is raised, unless `check` is false."""
        flow = self.client.calls.wait_for_all(self.jobs, timeout, progress, check=check)
        return AsyncBatch(self.client, await self.client.driver.run(flow))

    async def save(self, folder: str | Path) -> list[Path]:
        """Save every result into a folder, named by its job."""
        return [await output.save(place) for output, place in places(self.jobs, folder)]

    def _repr_html_(self) -> str:
        return notebook.show_jobs(self.jobs)


def bind_async_job(client: "AsyncClient", told: Any) -> AsyncJob:
    """A job of this client."""
    outputs = tuple(read(AsyncOutput, output, client=client) for output in listed_outputs(told))
    return read(AsyncJob, told, client=client, outputs=outputs)
