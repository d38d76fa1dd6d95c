"""`penstock key`: make, list and revoke API keys, also while a server runs."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import (
    AsJson,
    ConfigFile,
    DataFolder,
    expected_errors,
    fail,
    load_settings,
    open_store,
    print_json,
    print_table,
)
from penstock.identifiers import timestamp
from penstock.keys import PREFIX, ApiKey, Limits, Scope, hash_secret, make

if TYPE_CHECKING:  # takes long to load, and `penstock --help` does not need it
    from sqlalchemy import Connection

    from penstock.settings import Settings

app = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a new key is to be. Empty `models` or `scopes` mean all."""

    account: str = "default"
    name: str = ""
    models: frozenset[str] = frozenset()
    scopes: frozenset[Scope] = frozenset()
    seconds: float | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


def issue(connection: "Connection", wish: Wish) -> tuple[str, ApiKey]:
    """Store a new key: the text that is shown once, and what is kept of it."""
    from penstock.store import key_rows

    now = time.time()
    public_id, secret = make(key_rows.signing_secret(connection))
    key = ApiKey(
        public_id=public_id,
        account_id=key_rows.account_id(connection, wish.account, now),
        account=wish.account,
        name=wish.name,
        secret_hash=hash_secret(secret),
        models=wish.models,
        scopes=wish.scopes,
        created_at=now,
        expires_at=None if wish.seconds is None else now + wish.seconds,
        lineage=public_id,
        limits=Limits(requests_per_minute=wish.requests_per_minute, tokens_per_minute=wish.tokens_per_minute),
    )
    key_rows.add(connection, key)
    return f"{PREFIX}{public_id}_{secret}", key


# -- the commands


@app.command()
def create(
    *,
    account: Annotated[str, typer.Option(metavar="NAME", help="The account it belongs to; made if new.")] = "default",
    name: Annotated[str, typer.Option(metavar="TEXT", help="What it is for.")] = "",
    model: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A model it may use; repeatable; default: all.")
    ] = None,
    endpoint: Annotated[
        list[Scope] | None, typer.Option(help="What it may do; repeatable; default: everything.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it works: 3600 (seconds), 12h or 30d; default: always.")
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many chat requests it may make; default: any number.")
    ] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many chat tokens it may use; default: any number.")
    ] = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Make a key and print it, this once."""
    with expected_errors():
        settings = load_settings(data, config)
        wish = Wish(
            account=_check_label("--account", account, least=1),
            name=_check_label("--name", name, least=0),
            models=_check_models(settings, model or []),
            scopes=frozenset(endpoint or ()),
            seconds=_parse_expiry(expires),
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
        )
        with open_store(settings) as engine, engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            text, key = issue(connection, wish)
            connection.exec_driver_sql("COMMIT")
    if as_json:
        print_json({"key": text, **_describe(key)})
        return
    typer.echo(text)
    typer.echo(f"Shown once: keep it. Its id is {key.public_id}, its account {key.account}.", err=True)


@app.command("list")
def list_keys(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """List every key, without its secret."""
    from penstock.store import key_rows

    with expected_errors(), open_store(load_settings(data, config)) as engine, engine.connect() as connection:
        keys = [_describe(key) | _standing(key) for key in key_rows.list_all(connection)]
    if as_json:
        print_json(keys)
    elif not keys:
        typer.echo("There are no keys yet: `penstock key create` makes one.")
    else:
        print_table(
            ("id", "account", "status", "created", "expires", "endpoints", "models", "name"),
            [
                (
                    key["public_id"],
                    key["account"],
                    key["status"],
                    key["created_at"][:10],
                    (key["expires_at"] or "never")[:16],
                    ", ".join(key["endpoints"]) or "all",
                    ", ".join(key["models"]) or "all",
                    key["name"],
                )
                for key in keys
            ],
        )


@app.command()
def revoke(
    public_id: Annotated[str, typer.Argument(help="The key's id; the whole key is taken too.")],
    *,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """End a key; running servers refuse it within a second."""
    from penstock.store import key_rows

    public_id = public_id.removeprefix(PREFIX).partition("_")[0]
    with expected_errors(), open_store(load_settings(data, config)) as engine, engine.connect() as connection:
        if not key_rows.revoke(connection, public_id, time.time()):
            fail(f"There is no key {public_id}.", "`penstock key list` lists them.", code=1)
    typer.echo(f"{public_id} is revoked.")


# -- reading the options


def _check_label(option: str, text: str, least: int) -> str:
    text = text.strip()
    if not least <= len(text) <= 200 or not text.isprintable():
        fail(f"{option}: should be {least} to 200 printable characters.")
    return text


def _check_models(settings: "Settings", wanted: list[str]) -> frozenset[str]:
    if wanted:
        from penstock.settings import nearest
        from penstock.supply import build_offers

        offers = build_offers(settings, None)
        known = {*offers.by_model, *offers.chat}
        for model in wanted:
            if model not in known:
                fail(f"--model: there is no model `{model}`.", nearest(model, known))
    return frozenset(wanted)


def _parse_expiry(text: str | None) -> float | None:
    from penstock.settings import parse_duration

    try:
        seconds = None if text is None else parse_duration(text)
    except ValueError as error:
        fail(f"--expires: {error}.")
    if seconds == 0:
        fail("--expires: should be more than 0.")
    return seconds


# -- telling


def _describe(key: ApiKey) -> dict[str, Any]:
    return {
        "public_id": key.public_id,
        "account": key.account,
        "account_id": key.account_id,
        "name": key.name,
        "models": sorted(key.models),
        "endpoints": sorted(key.scopes),
        "created_at": timestamp(key.created_at),
        "expires_at": timestamp(key.expires_at),
        "requests_per_minute": key.limits.requests_per_minute,
        "tokens_per_minute": key.limits.tokens_per_minute,
    }


def _standing(key: ApiKey) -> dict[str, Any]:
    if key.revoked_at is not None:
        status = "revoked"
    elif key.expires_at is not None and key.expires_at <= time.time():
        status = "expired"
    else:
        status = "active"
    return {"status": status, "revoked_at": timestamp(key.revoked_at)}
