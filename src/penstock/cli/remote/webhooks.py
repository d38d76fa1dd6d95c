"""`penstock webhooks`: the account's webhooks on a server, and their deliveries."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson
from penstock.cli.printing import print_json, print_result, print_table
from penstock.cli.remote.connection import speaks_to_server
from penstock.cli.remote.errors import plain

if TYPE_CHECKING:
    from penstock.client import Client, Delivery, Webhook

app = typer.Typer(help="Register URLs that receive events, and list deliveries.", no_args_is_help=True)

HookId = Annotated[str, typer.Argument(metavar="ID", help="The webhook's id.")]


@app.command()
@speaks_to_server
def create(
    client: "Client",
    url: Annotated[str, typer.Argument(metavar="URL", help="The URL that receives events.")],
    *,
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="An event to send; repeatable; default: those that end a job."),
    ] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for.")] = None,
    as_json: AsJson = False,
) -> None:
    """Register a webhook and print its secret once."""
    _print_secret(client.webhooks.create(url, events=event, description=description), as_json=as_json)


@app.command("list")
@speaks_to_server
def list_webhooks(client: "Client", *, as_json: AsJson = False) -> None:
    """List all webhooks."""
    hooks = list(client.webhooks.list())
    if as_json:
        print_json([hook.raw for hook in hooks])
        return
    rows = [
        (
            hook.id,
            plain(hook.url),
            ", ".join(hook.events),
            hook.disabled_reason or "active",
            plain(hook.description or ""),
        )
        for hook in hooks
    ]
    print_table(("id", "url", "events", "state", "description"), rows)


@app.command()
@speaks_to_server
def delete(client: "Client", webhook_id: HookId, *, as_json: AsJson = False) -> None:
    """Delete a webhook and its deliveries."""
    client.webhooks.delete(webhook_id)
    print_result({"id": webhook_id, "deleted": True}, f"{webhook_id} deleted", as_json=as_json, err=True)


@app.command()
@speaks_to_server
def ping(client: "Client", webhook_id: HookId, *, as_json: AsJson = False) -> None:
    """Send a test event. The exit code is 1 if the receiver did not accept it."""
    delivery = client.webhooks.ping(webhook_id)
    _print_deliveries([delivery], as_json=as_json)
    if delivery.status != "delivered":
        raise typer.Exit(1)


@app.command()
@speaks_to_server
def rotate(
    client: "Client",
    webhook_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The webhook's id; none: the secret for webhooks of single generations."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Replace a webhook's secret and print the new one. The old one also signs for a day."""
    _print_secret(client.webhooks.rotate(webhook_id), as_json=as_json)


@app.command()
@speaks_to_server
def deliveries(
    client: "Client",
    webhook_id: Annotated[str | None, typer.Argument(metavar="ID", help="Of this webhook only.")] = None,
    *,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Of this job only.")] = None,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="pending, delivered or failed.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List deliveries, newest first."""
    found = list(client.webhooks.deliveries(webhook_id, job_id=job, status=status, limit=limit))
    if as_json:
        print_json([delivery.raw for delivery in found])
    else:
        _print_deliveries(found, as_json=False)


@app.command()
@speaks_to_server
def redeliver(
    client: "Client",
    delivery_id: Annotated[str, typer.Argument(metavar="ID", help="The delivery's id.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Send a delivery again now."""
    _print_deliveries([client.webhooks.redeliver(delivery_id)], as_json=as_json)


def _print_secret(hook: "Webhook", *, as_json: bool) -> None:
    if as_json:
        print_json(hook.raw)
        return
    typer.echo(hook.secret)
    typer.echo(
        f"{hook.id}: its secret is shown once: keep it."
        if hook.id
        else "This secret signs the webhooks of single generations.",
        err=True,
    )


def _print_deliveries(found: "list[Delivery]", *, as_json: bool) -> None:
    if as_json:
        print_json(found[0].raw)
        return
    rows: list[tuple[str, ...]] = []
    for delivery in found:
        last: Mapping[str, Any] = delivery.attempts[-1] if delivery.attempts else {}
        answer = last.get("error") or last.get("status_code") or ""
        rows.append((delivery.id, delivery.type, delivery.status, delivery.job_id or "", plain(str(answer))))
    print_table(("id", "event", "status", "job", "last answer"), rows)
