"""`penstock jobs`: list, show, watch, cancel, rerun, share, trace and delete jobs on a server."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from penstock.cli.options import AsJson
from penstock.cli.printing import fail, print_json, print_result, print_table
from penstock.cli.remote.connection import (
    complete_jobs,
    complete_models,
    complete_pipelines,
    read_params,
    speaks_to_server,
)
from penstock.cli.remote.errors import plain
from penstock.cli.remote.lineage import print_lineage
from penstock.cli.remote.output_path import Output, check_output
from penstock.cli.remote.progress import NoWait, Seconds, follow, phase_of

if TYPE_CHECKING:
    from penstock.client import Client, Job

app = typer.Typer(help="List, show, watch, cancel, rerun, share and delete jobs.", no_args_is_help=True)

MODEL_COLUMNS: Final = 24

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.", autocompletion=complete_jobs)]


@app.command("list")
@speaks_to_server
def list_jobs(
    client: "Client",
    *,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Only jobs with these words in prompt, file name or reference, or with this id."
        ),
    ] = None,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="Only jobs in this state.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="ID", help="Only jobs of this model.", autocompletion=complete_models)
    ] = None,
    client_ref: Annotated[str | None, typer.Option(metavar="TEXT", help="Only jobs with this reference.")] = None,
    batch: Annotated[str | None, typer.Option(metavar="ID", help="Only jobs of this batch.")] = None,
    pipeline: Annotated[
        str | None, typer.Option(metavar="ID", help="Only jobs of this pipeline.", autocompletion=complete_pipelines)
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    filters = {"search": search, "status": status, "model": model, "client_ref": client_ref}
    jobs = list(client.jobs(**filters, batch=batch, pipeline=pipeline, limit=limit))
    if as_json:
        print_json([job.raw for job in jobs])
        return
    print_table(("id", "model", "status", "created", "cost"), [_line(job) for job in jobs])


def _line(job: "Job") -> tuple[str, ...]:
    """Return a row that fits 100 columns."""
    job_id, model, _, progress, created, cost = _row(job)
    model = model if len(model) <= MODEL_COLUMNS else f"{model[: MODEL_COLUMNS - 1]}…"
    status = job.status if job.done or not job.progress else f"{job.status} {progress}"
    return job_id, model, plain(status), created[:-3], cost


def _row(job: "Job") -> tuple[str, ...]:
    from penstock.client.notebook import format_cost

    created = "" if job.created_at is None else job.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return job.id, plain(job.model), phase_of(job), f"{job.progress:.0%}", created, format_cost(job.cost)


@app.command()
@speaks_to_server
def show(client: "Client", job_id: JobId, *, as_json: AsJson = False) -> None:
    """Show one job."""
    _print_job(client.job(job_id), as_json=as_json)


@app.command()
@speaks_to_server
def watch(
    client: "Client",
    job_id: JobId,
    *,
    output: Output = None,
    timeout: Seconds = None,
    as_json: AsJson = False,
) -> None:
    """Watch a job until it is done."""
    check_output(output)
    follow(client, client.job(job_id), output, timeout, as_json=as_json)


@app.command()
@speaks_to_server
def cancel(client: "Client", job_id: JobId, *, as_json: AsJson = False) -> None:
    """Cancel a job."""
    job = client.cancel(job_id)
    print_result(job.raw, f"{job.id} {job.status}", as_json=as_json)


@app.command()
@speaks_to_server
def rerun(
    client: "Client",
    job_id: JobId,
    params: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Params to change; null removes one.", show_default=False),
    ] = None,
    *,
    output: Output = None,
    no_wait: NoWait = False,
    timeout: Seconds = None,
    as_json: AsJson = False,
) -> None:
    """Run a job again with changed params."""
    from penstock.client.records import given_params

    changes = read_params(params or [])
    if not no_wait:
        check_output(output)
    former = client.job(job_id)
    job = client.generate(former.model, given_params(former, changes))  # a param may have the name of an option
    follow(client, job, output, timeout, no_wait=no_wait, as_json=as_json)


@app.command()
@speaks_to_server
def share(
    client: "Client",
    job_id: JobId,
    *,
    life: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long the link works, such as 1h, 7d or 30d; at most 90d.")
    ] = "7d",
    include_input: Annotated[
        bool, typer.Option("--include-input", help="Also show the prompt, or the input picture.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a public link to a job's outputs, for people without a key."""
    link = client.share(job_id, expires_in=_read_life(life), include_input=include_input)
    if as_json:
        print_json(link.raw)
        return
    typer.echo(link.url)
    ends = "" if link.expires_at is None else f" It works until {link.expires_at.astimezone():%Y-%m-%d %H:%M}."
    typer.echo(f"{link.id}: the link is shown once.{ends} End it with: penstock shares revoke {link.id}", err=True)


def _read_life(text: str) -> float:
    from penstock.domain.sharing.links import MAX_LIFE_SECONDS, MIN_LIFE_SECONDS
    from penstock.settings.values import parse_duration

    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if not MIN_LIFE_SECONDS <= seconds <= MAX_LIFE_SECONDS:
        fail("--for: write a time such as 90m, 12h or 7d, at least 1m and at most 90d.")
    return seconds


@app.command()
@speaks_to_server
def lineage(client: "Client", job_id: JobId, *, as_json: AsJson = False) -> None:
    """Show the jobs that led to a job, and those made from its outputs."""
    found = client.lineage(job_id)
    if as_json:
        print_json(found.raw)
    else:
        print_lineage(found)


@app.command()
@speaks_to_server
def delete(client: "Client", job_id: JobId, *, as_json: AsJson = False) -> None:
    """Delete a finished job with its params, outputs and files."""
    client.delete_job(job_id)
    print_result({"id": job_id, "deleted": True}, f"{job_id} deleted", as_json=as_json, err=True)


def _print_job(job: "Job", *, as_json: bool) -> None:
    if as_json:
        print_json(job.raw)
        return
    _, model, status, progress, created, cost = _row(job)
    facts: list[tuple[str, Any]] = [("id", job.id), ("model", model), ("status", status), ("progress", progress)]
    facts += [("created", created), ("vendor", job.vendor), ("cost", cost), ("reference", job.client_ref)]
    facts += [(f"input.{name}", value) for name, value in job.input.items()]
    facts += [("warning", warning) for warning in job.warnings]
    if job.error is not None:
        facts += [("error", f"{job.error.code}: {job.error.message}"), ("suggestion", job.error.suggestion)]
    facts += [("output", each.url) for each in job.outputs]
    shown = [(name, plain(str(value))) for name, value in facts if value not in (None, "")]
    width = max(len(name) for name, _ in shown)
    for name, value in shown:
        typer.echo(f"{name:<{width}}  {value}")
