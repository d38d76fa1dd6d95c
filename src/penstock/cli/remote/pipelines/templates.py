"""`penstock pipeline templates`: stored pipelines with versions."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AsJson
from penstock.cli.printing import print_json, print_result, print_table
from penstock.cli.remote.connection import complete_templates, speaks_to_server
from penstock.cli.remote.errors import plain
from penstock.cli.remote.pipelines.plan_file import STORED, read_plan

if TYPE_CHECKING:
    from penstock.client import Client

app = typer.Typer(
    help="Store pipelines under names. `penstock pipeline run --template` runs one.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The template's name.", autocompletion=complete_templates)]


@app.command()
@speaks_to_server
def put(
    client: "Client",
    name: Name,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The pipeline in JSON or TOML; - reads JSON from stdin.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Store a pipeline as the next version of a template."""
    template = client.pipelines.templates.put(name, **read_plan(file, STORED))
    print_result(template.raw, f"{template.name} version {template.version}", as_json=as_json)


@app.command("list")
@speaks_to_server
def list_templates(client: "Client", *, as_json: AsJson = False) -> None:
    """List templates by name, each in its newest version."""
    found = client.pipelines.templates.list()
    if as_json:
        print_json([template.raw for template in found])
        return
    rows = [
        (each.name, str(each.version), ", ".join(step["name"] for step in each.steps), plain(each.description or ""))
        for each in found
    ]
    print_table(("name", "version", "steps", "description"), rows)


@app.command()
@speaks_to_server
def show(
    client: "Client",
    name: Name,
    *,
    version: Annotated[
        int | None, typer.Option("--template-version", metavar="N", min=1, help="Its version; default: the newest.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a template as a file that `penstock pipeline run` takes."""
    record = client.pipelines.templates.get(name, version).raw
    print_json(record if as_json else {field: value for field, value in record.items() if field in STORED and value})


@app.command()
@speaks_to_server
def delete(client: "Client", name: Name, *, as_json: AsJson = False) -> None:
    """Delete all versions of a template."""
    client.pipelines.templates.delete(name)
    print_result({"name": name, "deleted": True}, f"{name} deleted", as_json=as_json, err=True)
