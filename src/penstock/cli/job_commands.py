"""`penstock jobs`: the account's jobs on a server: list, show, watch, cancel, run again, delete."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.following_jobs import Output, Seconds, follow, phase_of
from penstock.cli.options import AsJson, ConfigFile, DataFolder, print_json, print_table
from penstock.cli.remote import BaseUrl, complete_jobs, complete_models, plain, read_params, server_of

if TYPE_CHECKING:
    from penstock.client import Job

app = typer.Typer(help="Look after jobs on a server.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.", autocompletion=complete_jobs)]


@app.command("list")
def list_jobs(
    *,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="Only jobs in this state.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="ID", help="Only jobs of this model.", autocompletion=complete_models)
    ] = None,
    client_ref: Annotated[str | None, typer.Option(metavar="TEXT", help="Only jobs with this reference.")] = None,
    batch: Annotated[str | None, typer.Option(metavar="ID", help="Only jobs of this batch.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many at most.")] = 20,
    as_json: AsJson = False,
    base_url: BaseUrl = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """List jobs, newest first."""
    with server_of(base_url, data, config, as_json=as_json) as client:
        jobs = list(client.jobs(status=status, model=model, client_ref=client_ref, batch=batch, limit=limit))
    if as_json:
        print_json([job.raw for job in jobs])
        return
    print_table(("id", "model", "status", "progress", "created", "cost"), [_row(job) for job in jobs])


def _row(job: "Job") -> tuple[str, ...]:
    from penstock.client.notebook import tell_cost

    created = "" if job.created_at is None else job.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return job.id, plain(job.model), phase_of(job), f"{job.progress:.0%}", created, tell_cost(job)


@app.command()
def show(
    job_id: JobId,
    *,
    as_json: AsJson = False,
    base_url: BaseUrl = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show one job."""
    with server_of(base_url, data, config, as_json=as_json) as client:
        _tell(client.job(job_id), as_json=as_json)


@app.command()
def watch(
    job_id: JobId,
    *,
    output: Output = None,
    timeout: Seconds = None,
    as_json: AsJson = False,
    base_url: BaseUrl = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Watch a job until it is done."""
    with server_of(base_url, data, config, as_json=as_json) as client:
        follow(client, client.job(job_id), output, timeout, as_json=as_json)


@app.command()
def cancel(
    job_id: JobId,
    *,
    as_json: AsJson = False,
    base_url: BaseUrl = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Ask for a job to be stopped."""
    with server_of(base_url, data, config, as_json=as_json) as client:
        job = client.cancel(job_id)
    if as_json:
        print_json(job.raw)
    else:
        typer.echo(f"{job.id} {job.status}")


@app.command()
def rerun(
    job_id: JobId,
    params: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Params to change; null takes one away.", show_default=False),
    ] = None,
    *,
    output: Output = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Start it, print its id and end.")] = False,
    timeout: Seconds = None,
    as_json: AsJson = False,
    base_url: BaseUrl = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Run a job again, with some params changed."""
    changes = read_params(params or [])
    with server_of(base_url, data, config, as_json=as_json) as client:
        job = client.rerun(job_id, **changes)
        if not no_wait:
            follow(client, job, output, timeout, as_json=as_json)
        elif as_json:
            print_json(job.raw)
        else:
            typer.echo(job.id)


@app.command()
def delete(
    job_id: JobId,
    *,
    as_json: AsJson = False,
    base_url: BaseUrl = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Remove a finished job's params, outputs and files."""
    with server_of(base_url, data, config, as_json=as_json) as client:
        client.delete_job(job_id)
    if as_json:
        print_json({"id": job_id, "deleted": True})
    else:
        typer.echo(f"{job_id} deleted", err=True)


def _tell(job: "Job", *, as_json: bool) -> None:
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
    told = [(name, plain(str(value))) for name, value in facts if value not in (None, "")]
    width = max(len(name) for name, _ in told)
    for name, value in told:
        typer.echo(f"{name:<{width}}  {value}")
