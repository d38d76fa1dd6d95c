"""`penstock pipeline`: run pipelines, and look after those of the account."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson
from penstock.cli.printing import draw, fail, make_console, print_json, print_result, print_table
from penstock.cli.remote.connection import complete_pipelines, complete_templates, read_params, speaks_to_server
from penstock.cli.remote.errors import plain
from penstock.cli.remote.file_options import Inputs, read_inputs
from penstock.cli.remote.pipelines import templates
from penstock.cli.remote.pipelines.plan_file import RUN, read_plan
from penstock.cli.remote.pipelines.progress import (
    EveryStep,
    Folder,
    Watch,
    check_folder,
    draw_steps,
    follow_pipeline,
)
from penstock.cli.remote.progress import Seconds

if TYPE_CHECKING:
    from penstock.client import Client, Pipeline, PipelineQuote

app = typer.Typer(help="Run several generations that take each other's outputs.", no_args_is_help=True)
app.add_typer(templates.app, name="templates")

PipelineId = Annotated[str, typer.Argument(metavar="ID", help="The pipeline's id.", autocompletion=complete_pipelines)]
OwnParams = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="A param of the pipeline; a value is parsed as JSON, else it is text. Repeat it for several.",
        show_default=False,
    ),
]
File = Annotated[
    str | None, typer.Argument(metavar="FILE", help="The pipeline in JSON or TOML; - reads JSON from stdin.")
]
TemplateName = Annotated[
    str | None,
    typer.Option(
        "--template", metavar="NAME", help="Run a stored pipeline instead of FILE.", autocompletion=complete_templates
    ),
]
TemplateVersion = Annotated[
    int | None, typer.Option("--template-version", metavar="N", min=1, help="Its version; default: the newest.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check it and show price and time, without running it.")]
ClientRef = Annotated[str | None, typer.Option(metavar="TEXT", help="Your reference, returned in the records.")]
IdempotencyKey = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Repeating a call with one key creates only one pipeline.")
]


@app.command()
@speaks_to_server
def run(
    client: "Client",
    file: File = None,
    *,
    template: TemplateName = None,
    template_version: TemplateVersion = None,
    param: OwnParams = None,
    inputs: Inputs = None,
    output: Folder = None,
    every_step: EveryStep = False,
    dry_run: DryRun = False,
    watch: Watch = True,
    timeout: Seconds = None,
    client_ref: ClientRef = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline and wait for its results."""
    if (file is None) == (template is None):
        fail("Give either FILE or --template NAME.")
    plan = {} if file is None else read_plan(file, RUN)
    plan.pop("description", None)
    params = {**plan.pop("params", {}), **read_params(param or []), **read_inputs(inputs or [])}
    source: dict[str, Any] = {"template": template, "version": template_version, "params": params}
    if dry_run:
        quote = client.pipelines.price(plan.get("steps"), **source)
        _print_quote(quote, as_json=as_json)
        return
    if watch:
        check_folder(output)
    plan["client_ref"] = client_ref or plan.get("client_ref")
    pipeline = client.pipeline(**plan, **source, idempotency_key=idempotency_key)
    follow_pipeline(pipeline, output, timeout, every_step=every_step, watch=watch, as_json=as_json)


def _print_quote(quote: "PipelineQuote", *, as_json: bool) -> None:
    from penstock.client.notebook import format_cost

    if as_json:
        print_json(quote.raw)
        return
    rows = [
        (
            step.name,
            plain(step.model),
            str(step.jobs),
            ", ".join(step.needs),
            format_cost(step.cost) or "unknown",
            "" if step.expected_seconds is None else f"{step.expected_seconds.p50:.1f} s",
        )
        for step in quote.steps
    ]
    print_table(("step", "model", "jobs", "needs", "cost", "usually takes"), rows)
    typer.echo(f"cost: {format_cost(quote.cost) or 'unknown'}")
    if quote.budget_left is not None:
        typer.echo(f"budget left: {quote.budget_left} USD")
    if quote.expected_seconds is not None:
        typer.echo(f"usually takes: {quote.expected_seconds:.1f} s")


@app.command("list")
@speaks_to_server
def list_pipelines(
    client: "Client",
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List pipelines, newest first."""
    found = list(client.pipelines.list(limit))
    if as_json:
        print_json([pipeline.raw for pipeline in found])
        return
    print_table(("id", "status", "steps", "created", "cost"), [_row(pipeline) for pipeline in found])


def _row(pipeline: "Pipeline") -> tuple[str, ...]:
    from penstock.client.notebook import format_cost

    created = "" if pipeline.created_at is None else f"{pipeline.created_at.astimezone():%Y-%m-%d %H:%M}"
    status = pipeline.status if pipeline.done else f"{pipeline.status} {pipeline.progress:.0%}"
    return pipeline.id, status, plain(", ".join(pipeline.steps)), created, format_cost(pipeline.cost)


@app.command()
@speaks_to_server
def show(client: "Client", pipeline_id: PipelineId, *, as_json: AsJson = False) -> None:
    """Show one pipeline with its steps, jobs and results."""
    pipeline = client.pipelines.get(pipeline_id)
    if as_json:
        print_json(pipeline.raw)
        return
    draw(make_console(), draw_steps(pipeline))
    facts = [("reference", pipeline.client_ref), ("template", pipeline.template), ("retry of", pipeline.retry_of)]
    facts += [(f"param {name}", str(value)) for name, value in pipeline.params.items()]
    facts += [("error", pipeline.error.message)] if pipeline.error is not None else []
    facts += [(job.step, job.id) for job in pipeline.jobs]
    facts += [(job.step, output.url) for job in pipeline.jobs for output in job.outputs if output.role != "preview"]
    for name, value in facts:
        if value:
            typer.echo(f"{name}: {plain(value)}")


@app.command()
@speaks_to_server
def watch(
    client: "Client",
    pipeline_id: PipelineId,
    *,
    output: Folder = None,
    every_step: EveryStep = False,
    timeout: Seconds = None,
    as_json: AsJson = False,
) -> None:
    """Watch a pipeline until it is done."""
    check_folder(output)
    pipeline = client.pipelines.get(pipeline_id)
    follow_pipeline(pipeline, output, timeout, every_step=every_step, as_json=as_json)


@app.command()
@speaks_to_server
def cancel(client: "Client", pipeline_id: PipelineId, *, as_json: AsJson = False) -> None:
    """Cancel all open jobs of a pipeline."""
    pipeline = client.pipelines.cancel(pipeline_id)
    print_result(pipeline.raw, f"{pipeline.id} {pipeline.status}", as_json=as_json)


@app.command()
@speaks_to_server
def retry(
    client: "Client",
    pipeline_id: PipelineId,
    *,
    from_step: Annotated[
        str | None,
        typer.Option("--from", metavar="STEP", help="Repeat this step and all that need it, also if it succeeded."),
    ] = None,
    param: OwnParams = None,
    inputs: Inputs = None,
    output: Folder = None,
    every_step: EveryStep = False,
    watch: Watch = True,
    timeout: Seconds = None,
    as_json: AsJson = False,
) -> None:
    """Repeat what did not succeed, as a new pipeline. Outputs of the other steps are used again."""
    if watch:
        check_folder(output)
    params = {**read_params(param or []), **read_inputs(inputs or [])}
    pipeline = client.pipelines.retry(pipeline_id, from_step, params=params or None)
    follow_pipeline(pipeline, output, timeout, every_step=every_step, watch=watch, as_json=as_json)


@app.command()
@speaks_to_server
def delete(client: "Client", pipeline_id: PipelineId, *, as_json: AsJson = False) -> None:
    """Delete an ended pipeline with its jobs and their outputs."""
    client.pipelines.delete(pipeline_id)
    print_result({"id": pipeline_id, "deleted": True}, f"{pipeline_id} deleted", as_json=as_json, err=True)
