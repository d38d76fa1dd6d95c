"""Progress of a pipeline: a live table of its steps on a terminal, else a line for each change."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.printing import print_json, print_result
from penstock.cli.remote.connection import is_live
from penstock.cli.remote.errors import Code, plain
from penstock.cli.remote.output_path import check_output, reported_unsaved
from penstock.cli.remote.progress import ending, leave

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.client import Pipeline, StepRecord
    from penstock.client.records import Cost, JobRecord

Folder = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="DIR", help="Save the results of the last steps into this folder."),
]
EveryStep = Annotated[bool, typer.Option("--all", help="The results of all steps.")]
Watch = Annotated[bool, typer.Option("--watch/--no-wait", help="Show its progress, or print its id and exit.")]

COLORS = {"succeeded": "green", "failed": "red", "canceled": "dim", "running": "cyan"}


def check_folder(output: str | None) -> None:
    """Fail if the folder is not writable, before jobs cost money."""
    check_output(None if output is None else os.path.join(output, ""))  # noqa: PTH118  a slash says folder


def follow_pipeline(
    pipeline: "Pipeline",
    output: str | None,
    timeout: float | None,
    *,
    every_step: bool,
    watch: bool = True,
    as_json: bool,
) -> None:
    """Wait for a pipeline, save its results and print a summary. Ctrl-C asks whether to cancel it."""
    if not watch:
        print_result(pipeline.raw, pipeline.id, as_json=as_json)
        return
    pipeline = _wait(pipeline, timeout, as_json=as_json)
    for job in pipeline.jobs:
        for warning in job.warnings:
            typer.secho(f"Note on {job.step}: {plain(warning)}", err=True, fg=typer.colors.YELLOW)
    if not as_json:
        typer.echo(f"{pipeline.id} {pipeline.status}{ending(pipeline)}", err=True)
    _hand_over(pipeline, output, every_step=every_step, as_json=as_json)


def _wait(pipeline: "Pipeline", timeout: float | None, *, as_json: bool) -> "Pipeline":
    def note(now: "Pipeline") -> None:
        nonlocal pipeline
        pipeline = now
        show(now)

    while True:
        try:
            with _display() as show:
                return pipeline.wait(timeout, progress=note)
        except KeyboardInterrupt:
            left = leave(pipeline, pipeline.cancel, "penstock pipeline watch")
            if left is not None:
                if as_json:
                    print_json(left.raw)
                raise typer.Exit(Code.INTERRUPTED) from None


def _hand_over(pipeline: "Pipeline", output: str | None, *, every_step: bool, as_json: bool) -> None:
    from penstock.client.pipelines.sync_pipeline import places

    with reported_unsaved(pipeline, f"penstock pipeline watch {pipeline.id} -o DIR", as_json=as_json):
        found = places(pipeline, output or "", every_step=every_step)
        saved = None if output is None else [str(result.save(place)) for result, place in found]
        if as_json:
            print_json({**pipeline.raw, "saved": saved})
            return
        for line in [result.url for result, _ in found] if saved is None else saved:
            typer.echo(line)


# -- display


@contextmanager
def _display() -> "Generator[Callable[[Pipeline], Any]]":
    if not is_live():
        yield _Lines()
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False) as live:
        yield lambda pipeline: live.update(draw_steps(pipeline), refresh=True)


class _Lines:
    """A line on stderr for each step that changes its status, for logs."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def __call__(self, pipeline: "Pipeline") -> None:
        for step in pipeline.steps.values():
            if step.status not in ("waiting", self._last.get(step.name)):
                typer.echo(f"{pipeline.id} {step.name}: {step.status}", err=True)
            self._last[step.name] = step.status


def draw_steps(pipeline: "Pipeline") -> "Table":
    """Return a table of the steps and of the whole."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from penstock.client.notebook import format_cost

    table = Table("step", "model", "status", "progress", "time", "cost", box=None, pad_edge=False, header_style="bold")
    table.title, table.title_justify, table.title_style = pipeline.id, "left", ""
    rows = [
        (step.name, step.model, step.status, step.progress, _rest(step), _cost(step))
        for step in pipeline.steps.values()
    ]
    rows.append(("all", "", pipeline.status, pipeline.progress, "", format_cost(pipeline.cost)))
    for name, model, status, progress, rest, cost in rows:
        table.add_row(
            Text(plain(name)),
            Text(plain(model)),
            Text(status, style=COLORS.get(status, "")),
            ProgressBar(1.0, progress, width=20),
            Text(rest),
            Text(cost),
        )
    return table


def _rest(step: "StepRecord") -> str:
    """Return how long a step took or will take, and how many of its jobs are done."""
    parts: list[str] = []
    if len(step.job_ids) > 1:
        parts.append(f"{sum(job.done for job in step.jobs)} of {len(step.job_ids)}")
    elif step.jobs and step.jobs[0].eta_seconds is not None and step.status == "running":
        parts.append(f"{step.jobs[0].eta_seconds:.0f} s left")
    times = [seconds for job in step.jobs if (seconds := _seconds(job)) is not None]
    if times and all(job.done for job in step.jobs):
        parts.append(f"{max(times):.1f} s")
    return ", ".join(parts)


def _seconds(job: "JobRecord") -> float | None:
    if job.started_at is None or job.finished_at is None:
        return None
    return (job.finished_at - job.started_at).total_seconds()


def _cost(step: "StepRecord") -> str:
    """Return the cost of all jobs of a step, or the highest while one is not final."""
    costs: list[Cost] = [job.cost for job in step.jobs if job.cost is not None]
    if not costs or len(costs) < len(step.jobs):
        return ""
    final = [cost.final for cost in costs if cost.final is not None]
    if len(final) == len(costs):
        return f"{sum(final)} {costs[0].currency}"
    known = [amount for cost in costs if (amount := cost.estimated if cost.final is None else cost.final) is not None]
    if len(known) < len(costs):
        return ""
    return f"up to {sum(known)} {costs[0].currency}" if sum(known) else "free"
