"""`penstock worker`: runs jobs and delivers webhooks, beside any number of others on the same PostgreSQL."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from penstock import __version__
from penstock.cli.options import ConfigFile, DataFolder
from penstock.cli.process import run_forever
from penstock.cli.store_access import load_settings, tell_store

if TYPE_CHECKING:
    from penstock.gateway import Gateway

PORT = 8788


def worker(
    *,
    host: Annotated[
        str | None, typer.Option(help="The address for /healthz, /readyz and /metrics; default: 127.0.0.1.")
    ] = None,
    port: Annotated[int, typer.Option(help="The port for these; 0 takes any free one.")] = PORT,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C: then others go on with them at once."""
    run_forever(partial(load_settings, data, config, host=host, port=port), _welcome, is_worker=True)


async def _welcome(gateway: "Gateway", port: int) -> None:
    settings = gateway.settings
    typer.echo(f"Penstock {__version__} runs jobs")
    typer.echo(f"  store  {tell_store(settings)}")
    typer.echo(f"  assets {settings.assets_url}")
    typer.echo(f"  health http://{settings.server.host}:{port}/readyz")
