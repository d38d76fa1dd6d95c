"""The `penstock` command, put together from one file per command."""

import contextlib
import os
from collections.abc import Mapping
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from penstock import __version__
from penstock.cli import models
from penstock.cli.admin import account, config, key, ledger, people, prices, secrets
from penstock.cli.admin.audit import audit
from penstock.cli.admin.usage import usage
from penstock.cli.doctor import doctor
from penstock.cli.printing import CommandFailed, print_json, release_stdout, shape_error
from penstock.cli.remote import jobs, shares, webhooks
from penstock.cli.remote.chat import chat
from penstock.cli.remote.generate import generate
from penstock.cli.remote.mcp import mcp
from penstock.cli.remote.pipelines import commands as pipeline
from penstock.cli.remote.verify import verify
from penstock.cli.serve import serve
from penstock.cli.sim import sim
from penstock.cli.worker import worker


class _Commands(TyperGroup):
    """All commands. With `--json`, usage errors are printed as JSON too. A closed pipe ends a command quietly."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember `--json` before a command parses its arguments, which may fail."""
        ctx.obj = "--json" in takewhile(lambda word: word != "--", args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command and report its failure."""
        try:
            return super().invoke(ctx)
        except CommandFailed as failure:
            _print_error(failure.error, as_json=ctx.obj)
            raise
        except typer.TyperException as refused:  # Typer's own, such as an unknown option
            _print_error(shape_error(refused.format_message()), as_json=ctx.obj)
            raise
        except BrokenPipeError:  # the reader of the output closed the pipe
            release_stdout()
            raise typer.Exit(0) from None


def _print_error(error: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        with contextlib.suppress(OSError):  # stdout itself may be broken
            print_json({"error": error})


app = typer.Typer(name="penstock", cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(serve)
app.command()(worker)
app.command()(generate)
app.command()(chat)
app.command()(mcp)
app.add_typer(jobs.app, name="jobs")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(shares.app, name="shares")
app.command()(verify)
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(key.app, name="key")
app.add_typer(account.app, name="account")
app.add_typer(people.app, name="people")
app.command()(audit)
app.add_typer(models.app, name="models")
app.add_typer(prices.app, name="prices")
app.command()(usage)
app.add_typer(ledger.app, name="ledger")
app.add_typer(config.app, name="config")
app.add_typer(secrets.app, name="secrets")
app.command()(doctor)
app.command()(sim)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  Typer passes it so
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """One key, one body shape and one bill for 3D, video and chat models."""
    del version  # handled by the callback
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False
