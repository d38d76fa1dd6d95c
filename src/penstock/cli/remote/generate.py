"""`penstock generate`: runs a generation and waits until it is done."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson
from penstock.cli.printing import fail, print_json
from penstock.cli.remote.connection import complete_models, read_params, speaks_to_server
from penstock.cli.remote.file_options import Inputs, read_inputs
from penstock.cli.remote.output_path import Output, check_output
from penstock.cli.remote.progress import NoWait, Seconds, follow

if TYPE_CHECKING:
    from typing import BinaryIO

    from penstock.client import Client


@speaks_to_server
def generate(
    client: "Client",
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model's id.", autocompletion=complete_models)],
    params: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Params; a value is parsed as JSON, else it is text.", show_default=False
        ),
    ] = None,
    *,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="PATH", help="The picture: a path, a URL or a file token; - reads it from stdin."
        ),
    ] = None,
    inputs: Inputs = None,
    output: Output = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Validate it and show the price, without running it.")
    ] = False,
    no_wait: NoWait = False,
    timeout: Seconds = None,
    client_ref: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Your reference, returned in the record.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Repeating a call with one key creates only one job.")
    ] = None,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Take the kept result of an equal request, free of charge, if there is one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a generation and wait for the result."""
    given = read_params(params or []) | read_inputs(inputs or [])
    if file is not None:
        given["file"] = _stdin() if file == "-" else file
    if dry_run:
        _quote(client, model, given, as_json=as_json)
        return
    if not no_wait:
        check_output(output)
    allowed = "exact" if reuse else None
    job = client.generate(model, given, client_ref=client_ref, idempotency_key=idempotency_key, reuse=allowed)
    follow(client, job, output, timeout, no_wait=no_wait, as_json=as_json)


def _stdin() -> "BinaryIO":
    if sys.stdin is None:
        fail("--file: stdin is closed.")
    return sys.stdin.buffer


def _quote(client: "Client", model: str, given: dict[str, Any], *, as_json: bool) -> None:
    from penstock.client.notebook import format_cost

    quote = client.price(model, given)
    if as_json:
        print_json(quote.raw)
        return
    typer.echo(f"cost: {format_cost(quote.cost) or 'unknown'}")
    if quote.budget_left is not None:
        typer.echo(f"budget left: {quote.budget_left} USD")
    if quote.expected_seconds is not None:
        typer.echo(
            f"usually takes: {quote.expected_seconds.p50:.1f} s, nine in ten at most {quote.expected_seconds.p90:.1f} s"
        )
    for name, value in quote.input[0].items():
        typer.echo(f"  {name} = {value}")
