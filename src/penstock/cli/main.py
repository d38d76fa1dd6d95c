"""The `penstock` command, put together from one file per command."""

import os
from typing import Annotated

import typer

from penstock import __version__
from penstock.cli import account, job_commands, key, ledger, models, webhook_commands
from penstock.cli.audit import audit
from penstock.cli.doctor import doctor
from penstock.cli.generate import generate
from penstock.cli.serve import serve
from penstock.cli.simulator import sim
from penstock.cli.talk import chat
from penstock.cli.usage import usage
from penstock.cli.worker import worker

app = typer.Typer(name="penstock", no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(serve)
app.command()(worker)
app.command()(generate)
app.command()(chat)
app.add_typer(job_commands.app, name="jobs")
app.add_typer(webhook_commands.app, name="webhooks")
app.add_typer(key.app, name="key")
app.add_typer(account.app, name="account")
app.command()(audit)
app.add_typer(models.app, name="models")
app.command()(usage)
app.add_typer(ledger.app, name="ledger")
app.command()(doctor)
app.command()(sim)


def _tell_version(wanted: bool) -> None:  # noqa: FBT001  Typer passes it so
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Tell the version and exit.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """One key, one body shape and one bill for 3D, video and chat models."""
    del version  # told already
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False
