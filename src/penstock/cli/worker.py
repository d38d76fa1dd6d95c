"""`penstock worker`: runs jobs and delivers webhooks, together with other processes on one PostgreSQL."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from penstock import __version__
from penstock.cli.options import ConfigFile, DataFolder
from penstock.cli.process import run_forever
from penstock.cli.store_access import describe_store, load_settings

if TYPE_CHECKING:
    from penstock.gateway import Gateway

PORT = 8788


def worker(
    *,
    host: Annotated[
        str | None, typer.Option(help="Address for /healthz, /readyz and /metrics; default: 127.0.0.1.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port for these; 0 takes any free port.")] = PORT,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C. Other workers then continue them at once."""
    run_forever(partial(load_settings, data, config, host=host, port=port), _welcome, is_worker=True)


async def _welcome(gateway: "Gateway", port: int) -> None:
    settings = gateway.settings
    typer.echo(f"Penstock {__version__} runs jobs")
    typer.echo(f"  store  {describe_store(settings)}")
    typer.echo(f"  assets {settings.assets_url}")
    typer.echo(f"  health http://{settings.server.host}:{port}/readyz")
