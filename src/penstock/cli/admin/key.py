"""`penstock key`: create, list, change, rotate and revoke API keys, also while a server runs."""

import time
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.admin.limit_options import (
    Amount,
    BudgetAmount,
    BudgetPeriod,
    BudgetZone,
    ConcurrentJobs,
    ConcurrentStreams,
    OfPeriod,
    Remove,
    RequestsPerMinute,
    TimeZone,
    TokensPerMinute,
    check_label,
    check_tags,
    describe_keys,
    make_limits,
    print_record,
    read_allowance,
    read_allowances,
    word_budgets,
)
from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, fail, print_json, print_result, print_table
from penstock.cli.store_access import change_store, load_settings, read_store
from penstock.domain.accounts import OVERLAP_SECONDS, Actor, KeyWish, read_account_name
from penstock.domain.api_keys import NO_LIMITS, PREFIX, ApiKey, Reuse, Scope, make_admin_key
from penstock.domain.budgets import ACCOUNT_PREFIX, Period

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need it
    from penstock.settings.tables import Settings


class KeyLog(StrEnum):
    """The state of a key's content log."""

    ON = "on"
    OFF = "off"
    ACCOUNT = "account"


_LOGGED: Mapping[KeyLog | None, bool | None] = {KeyLog.ON: True, KeyLog.OFF: False}
app = typer.Typer(help="Create, list, change, rotate and revoke API keys.", no_args_is_help=True)

PublicId = Annotated[str, typer.Argument(help="The key's id, or the whole key.")]
Name = Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for.")]
Models = Annotated[list[str] | None, typer.Option("--model", metavar="ID", help="A model it may use; repeatable.")]
Endpoints = Annotated[list[Scope] | None, typer.Option("--endpoint", help="What it may do; repeatable.")]
Reuses = Annotated[
    Reuse | None,
    typer.Option("--reuse", help="exact: its generations get kept results of equal requests; off: new ones."),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag of all its requests, which callers cannot remove; repeatable."),
]
ContentLogs = Annotated[
    KeyLog | None,
    typer.Option("--content-log", help="on or off: whether prompts and answers are logged; account: as its account."),
]
Expires = Annotated[str | None, typer.Option(metavar="TIME", help="How long it works: 3600 (seconds), 12h or 30d.")]


@app.command()
def create(
    *,
    account: Annotated[
        str, typer.Option(metavar="NAME", help="The account it belongs to; created if new.")
    ] = "default",
    name: Name = None,
    model: Models = None,
    endpoint: Endpoints = None,
    expires: Expires = None,
    reuse: Reuses = None,
    tag: Tags = None,
    content_log: ContentLogs = None,
    budget: BudgetAmount = None,
    budget_period: BudgetPeriod = Period.TOTAL,
    budget_time_zone: BudgetZone = "UTC",
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    concurrent_jobs: ConcurrentJobs = None,
    concurrent_streams: ConcurrentStreams = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Create a key and print it once. By default it never expires and may use every model and endpoint."""
    with expected_errors():
        settings, now = load_settings(data, config), time.time()
        seconds = _read_time("--expires", expires)
        wish = KeyWish(
            name=check_label("--name", name or ""),
            models=_check_models(settings, model or []),
            scopes=frozenset(endpoint or ()),
            expires_at=None if seconds is None else now + seconds,
            limits=make_limits(
                NO_LIMITS,
                requests_per_minute=requests_per_minute,
                tokens_per_minute=tokens_per_minute,
                concurrent_jobs=concurrent_jobs,
                concurrent_streams=concurrent_streams,
            ),
            allowances=read_allowances(budget, budget_period, budget_time_zone),
            reuse="exact" if reuse is Reuse.EXACT else None,
            tags=check_tags(tag),
            content_log=_LOGGED.get(content_log),
        )
        text, record = _issue(settings, _check_account(account), wish, now)
    _print_issued(text, record, f"Its id is {record['public_id']}, its account {record['account']}.", as_json=as_json)


@app.command()
def admin(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Create an administrator's key, which replaces the one before. A key in the settings comes first."""
    from penstock.store.queries.accounts import key_rows

    settings, text = load_settings(data, config), make_admin_key()
    if settings.server.admin_key is not None:
        fail("The settings have an administrator's key: `server.admin_key`, or PENSTOCK_ADMIN_KEY. Change it there.")
    with expected_errors(), change_store(settings) as connection:
        key_rows.keep_admin_key(connection, text)
    print_result({"key": text}, text, as_json=as_json)


@app.command("list")
def list_keys(
    *,
    account: Annotated[str | None, typer.Option(metavar="NAME", help="Only this account's, by name or id.")] = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """List all keys, without their secrets."""
    from penstock.accounts import administration
    from penstock.store.queries.accounts import key_rows

    now = time.time()
    with expected_errors(), read_store(load_settings(data, config)) as connection:
        only = None if account is None else administration.get_account(connection, account, now).id
        found = [key for key in key_rows.list_all(connection) if only in (None, key.account_id)]
        keys = describe_keys(connection, found, now)
    if as_json:
        print_json(keys)
    elif not keys:
        typer.echo("There are no keys yet. Create one with `penstock key create`.")
    else:
        print_table(
            ("id", "account", "status", "created", "expires", "endpoints", "models", "spent", "name"),
            [
                (
                    key["public_id"],
                    key["account"],
                    key["status"],
                    key["created_at"][:10],
                    (key["expires_at"] or "never")[:16],
                    ", ".join(key["endpoints"]) or "all",
                    ", ".join(key["models"]) or "all",
                    word_budgets(key["budgets"]),
                    key["name"],
                )
                for key in keys
            ],
        )


@app.command()
def show(public_id: PublicId, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Show one key, without its secret."""
    from penstock.accounts import administration

    with expected_errors(), read_store(load_settings(data, config)) as connection:
        key = administration.get_key(connection, _read_id(public_id))
        [record] = describe_keys(connection, [key], time.time())
    print_json(record) if as_json else print_record(record)


@app.command()
def change(
    public_id: PublicId,
    *,
    name: Name = None,
    model: Models = None,
    endpoint: Endpoints = None,
    expires: Expires = None,
    reuse: Reuses = None,
    tag: Tags = None,
    content_log: ContentLogs = None,
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    concurrent_jobs: ConcurrentJobs = None,
    concurrent_streams: ConcurrentStreams = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Change a key; omitted options stay. `all` allows every model, `never` removes the expiry, `none` the tags."""
    from penstock.accounts import administration

    with expected_errors():
        settings, now = load_settings(data, config), time.time()
        changes: dict[str, Any] = {} if name is None else {"name": check_label("--name", name)}
        if model:
            changes["models"] = frozenset[str]() if model == ["all"] else _check_models(settings, model)
        if endpoint:
            changes["scopes"] = frozenset(endpoint)
        if expires is not None:
            seconds = None if expires == "never" else _read_time("--expires", expires)
            changes["expires_at"] = None if seconds is None else now + seconds
        changes |= _read_changes(reuse, tag, content_log)

        def amend(key: ApiKey) -> ApiKey:
            limits = make_limits(
                key.limits,
                requests_per_minute=requests_per_minute,
                tokens_per_minute=tokens_per_minute,
                concurrent_jobs=concurrent_jobs,
                concurrent_streams=concurrent_streams,
            )
            return replace(key, **changes, limits=limits)

        with change_store(settings) as connection:
            key = administration.change_key(connection, Actor.CLI, _read_id(public_id), amend, now)
            [record] = describe_keys(connection, [key], now)
    print_json(record) if as_json else print_record(record)


def _read_changes(reuse: Reuse | None, tags: list[str] | None, content_log: KeyLog | None) -> dict[str, Any]:
    """Return the changes of what happens with a key's requests. Omitted options change nothing."""
    changes: dict[str, Any] = {}
    if reuse is not None:
        changes["reuse"] = "exact" if reuse is Reuse.EXACT else None
    if tags:
        changes["tags"] = () if tags == ["none"] else check_tags(tags)
    if content_log is not None:
        logged = _LOGGED.get(content_log)
        changes["content_log"] = None if logged is None else int(logged)
    return changes


@app.command()
def revoke(public_id: PublicId, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Revoke a key. Running servers refuse it within a second."""
    from penstock.accounts import administration

    now = time.time()
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        key = administration.revoke_key(connection, Actor.CLI, _read_id(public_id), now)
        [record] = describe_keys(connection, [key], now)
    print_json(record) if as_json else typer.echo(f"{key.public_id} is revoked.")


@app.command()
def rotate(
    public_id: PublicId,
    *,
    overlap: Annotated[
        str, typer.Option(metavar="TIME", help="How long the old key still works; 0 ends it at once.")
    ] = f"{OVERLAP_SECONDS / 3600:g}h",
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Replace a key by a new one that shares its limits and budgets, and print it once."""
    from penstock.accounts import administration

    now = time.time()
    with expected_errors():
        seconds = _read_time("--overlap", overlap, least=0) or 0.0
        with change_store(load_settings(data, config)) as connection:
            text, new, old = administration.rotate_key(connection, Actor.CLI, _read_id(public_id), seconds, now)
            [record, former] = describe_keys(connection, [new, old], now)
    ends = "has ended" if former["status"] == "expired" else f"works until {former['expires_at']}"
    _print_issued(text, record, f"Its id is {new.public_id}; {old.public_id} {ends}.", as_json=as_json)


@app.command()
def budget(
    public_id: PublicId,
    *,
    amount: Amount = None,
    period: OfPeriod = Period.TOTAL,
    time_zone: TimeZone = "UTC",
    remove: Remove = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Set or remove a key's budget for a period. Rotated keys share it."""
    from penstock.accounts import administration

    now = time.time()
    if (amount is None) is not remove:
        fail("Give --amount, or --remove.")
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        key = administration.get_key(connection, _read_id(public_id))
        if amount is None:
            administration.remove_budget(connection, Actor.CLI, key, period, now)
        else:
            allowance = read_allowance("--amount", amount, period, "--time-zone", time_zone)
            administration.set_budget(connection, Actor.CLI, key, allowance, now)
        [record] = describe_keys(connection, [key], now)
    print_json(record) if as_json else print_record(record)


# -- shared by the commands


def _issue(settings: "Settings", account: str, wish: KeyWish, now: float) -> tuple[str, dict[str, Any]]:
    from penstock.accounts import administration

    with change_store(settings) as connection:
        owner = administration.ensure_account(connection, Actor.CLI, account, now)
        text, key = administration.issue_key(connection, Actor.CLI, owner.id, wish, now)
        return text, describe_keys(connection, [key], now)[0]


def _print_issued(text: str, record: dict[str, Any], note: str, *, as_json: bool) -> None:
    """Print only the key to stdout, for scripts. The rest goes to stderr."""
    if as_json:
        print_json({"key": text, **record})
        return
    typer.echo(text)
    typer.echo(f"Shown once: keep it. {note}", err=True)


def _read_id(text: str) -> str:
    return text.removeprefix(PREFIX).partition("_")[0]


def _check_account(text: str) -> str:
    if text.startswith(ACCOUNT_PREFIX):
        return text
    try:
        return read_account_name(text)
    except ValueError as error:
        fail(f"--account: {error}.")


def _check_models(settings: "Settings", wanted: list[str]) -> frozenset[str]:
    if wanted:
        from penstock.offers.build import build_offers
        from penstock.settings.tables import nearest

        offers = build_offers(settings, None)
        known = {*offers.by_model, *offers.chat}
        for model in wanted:
            if model not in known:
                fail(f"--model: there is no model `{model}`.", nearest(model, known))
    return frozenset(wanted)


def _read_time(option: str, text: str | None, *, least: float | None = None) -> float | None:
    from penstock.settings.values import parse_duration

    try:
        seconds = None if text is None else parse_duration(text)
    except ValueError as error:
        fail(f"{option}: {error}.")
    if seconds == 0 and least is None:
        fail(f"{option}: should be more than 0.")
    return seconds
