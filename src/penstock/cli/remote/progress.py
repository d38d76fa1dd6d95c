"""Progress of a job until it is done, with a prompt on Ctrl-C."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from penstock.cli.printing import print_json, print_result
from penstock.cli.remote.connection import is_live
from penstock.cli.remote.errors import Code, plain
from penstock.cli.remote.output_path import hand_over

if TYPE_CHECKING:
    from penstock.client import Client, Job, Pipeline
    from penstock.client.records import Awaited

A = TypeVar("A", bound="Awaited")

Seconds = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Maximum time to wait.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Start the job, print its id and exit.")]


def follow(
    client: "Client",
    job: "Job",
    output: str | None,
    timeout: float | None,
    *,
    no_wait: bool = False,
    as_json: bool,
) -> None:
    """Wait for a job, save its result and print a summary. Ctrl-C asks whether to cancel it."""
    if no_wait:
        print_result(job.raw, job.id, as_json=as_json)
        return
    job = _wait(client, job, timeout, as_json=as_json)
    for warning in job.warnings:
        typer.secho(f"Note: {plain(warning)}", err=True, fg=typer.colors.YELLOW)
    if not as_json:
        typer.echo(f"{job.id} {job.status}{ending(job)}", err=True)
    hand_over(job, output, as_json=as_json)


def _wait(client: "Client", job: "Job", timeout: float | None, *, as_json: bool) -> "Job":
    def note(now: "Job") -> None:
        nonlocal job
        job = now
        show(now)

    while True:
        try:
            with _progress_display() as show:
                return job.wait(timeout, progress=note)
        except KeyboardInterrupt:
            left = leave(job, lambda: client.cancel(job.id), "penstock jobs watch")
            if left is not None:
                if as_json:
                    print_json(left.raw)
                raise typer.Exit(Code.INTERRUPTED) from None


def ending(ended: "Job | Pipeline") -> str:
    """Return time and cost of a job or pipeline as text."""
    from penstock.client.notebook import format_cost

    seconds = ""
    if ended.created_at is not None and ended.finished_at is not None:
        seconds = f" in {(ended.finished_at - ended.created_at).total_seconds():.1f} s"
    cost = format_cost(ended.cost)
    return f"{seconds}{f', {cost}' if cost else ''}"


# -- progress display


@contextmanager
def _progress_display() -> "Generator[Callable[[Job], Any]]":
    """Show a progress bar on a terminal, else a line for each new phase."""
    if not is_live():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        SpinnerColumn("line" if console.options.ascii_only else "dots"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rest]}", style="dim", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        line = progress.add_task("…", total=1.0, rest="")

        def show(job: "Job") -> None:
            progress.update(line, completed=job.progress, description=phase_of(job), rest=_rest_of(job))

        yield show


class _Lines:
    """A line on stderr for each new phase, for logs."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, job: "Job") -> None:
        text = f"{job.id} {phase_of(job)}"
        if text != self._last and not job.done:
            typer.echo(text, err=True)
        self._last = text


def phase_of(job: "Job") -> str:
    """Return status and phase, such as `running: generating`, and the queue position."""
    queue = "" if job.queue_position is None else f", {job.queue_position} before it"
    return plain(job.status if job.phase in ("", "done", job.status) else f"{job.status}: {job.phase}") + queue


def _rest_of(job: "Job") -> str:
    from penstock.client.notebook import format_cost

    eta = "" if job.eta_seconds is None else f"{job.eta_seconds:.0f} s left"
    return "  ".join(filter(None, (eta, format_cost(job.cost))))


# -- Ctrl-C


def leave(running: A, cancel: "Callable[[], A]", watch: str) -> A | None:
    """Ask whether to keep or cancel a job or pipeline, and return it. Return None to continue waiting."""
    answer = "k"
    if sys.stdin is not None and sys.stdin.isatty() and is_live():
        typer.echo(f"\n{running.id} continues on the server.", err=True)
        try:
            answer = (
                typer.prompt("(k)eep it running, (c)ancel it, (w)ait for it", default="k", err=True).strip().lower()
            )
        except (KeyboardInterrupt, typer.Abort):
            typer.echo(err=True)
    if answer.startswith("w"):
        return None
    if answer.startswith("c"):
        running = cancel()
        typer.echo(f"{running.id} {running.status}", err=True)
    else:
        typer.echo(f"{running.id} continues: {watch} {running.id}", err=True)
    return running
