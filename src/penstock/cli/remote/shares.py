"""`penstock shares`: the account's public links to outputs on a server."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AsJson
from penstock.cli.printing import print_json, print_result, print_table
from penstock.cli.remote.connection import complete_jobs, complete_shares, speaks_to_server

if TYPE_CHECKING:
    from penstock.client import Client

app = typer.Typer(help="List and revoke share links. `penstock jobs share` makes one.", no_args_is_help=True)


@app.command("list")
@speaks_to_server
def list_shares(
    client: "Client",
    *,
    job: Annotated[
        str | None, typer.Option(metavar="ID", help="Only links to this job.", autocompletion=complete_jobs)
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the share links that work, newest first."""
    found = list(client.shares(job, limit=limit))
    if as_json:
        print_json([link.raw for link in found])
        return
    rows = [
        (link.id, link.job_id, "shown" if link.include_input else "hidden", _moment(link.expires_at)) for link in found
    ]
    print_table(("id", "job", "input", "expires"), rows)


@app.command()
@speaks_to_server
def revoke(
    client: "Client",
    share_id: Annotated[str, typer.Argument(metavar="ID", help="The link's id.", autocompletion=complete_shares)],
    *,
    as_json: AsJson = False,
) -> None:
    """End a share link at once."""
    client.revoke_share(share_id)
    print_result({"id": share_id, "revoked": True}, f"{share_id} revoked", as_json=as_json, err=True)


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M}"
