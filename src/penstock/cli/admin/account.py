"""`penstock account`: create, list, limit, close and reopen accounts, also while a server runs."""

import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

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
    StorageQuota,
    TimeZone,
    TokensPerMinute,
    check_tag,
    describe_accounts,
    make_limits,
    print_record,
    read_allowance,
    read_allowances,
    read_quota,
    word_budgets,
    word_limits,
)
from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, fail, print_json, print_table
from penstock.cli.store_access import change_store, load_settings, read_store
from penstock.domain.accounts import Account, Actor, read_account_name
from penstock.domain.api_keys import NO_LIMITS
from penstock.domain.budgets import Period


class Switch(StrEnum):
    """The state of an account's content log."""

    ON = "on"
    OFF = "off"


app = typer.Typer(help="Create, list, limit, close and reopen accounts.", no_args_is_help=True)

AccountName = Annotated[str, typer.Argument(metavar="NAME", help="The account's name, or its id.")]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="A name that no other account has.")]


@app.command()
def create(
    name: NewName,
    *,
    budget: BudgetAmount = None,
    budget_period: BudgetPeriod = Period.TOTAL,
    budget_time_zone: BudgetZone = "UTC",
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    concurrent_jobs: ConcurrentJobs = None,
    concurrent_streams: ConcurrentStreams = None,
    storage_quota: StorageQuota = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Create an account and print its id."""
    from penstock.accounts import administration

    now = time.time()
    limits = make_limits(
        NO_LIMITS,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        concurrent_jobs=concurrent_jobs,
        concurrent_streams=concurrent_streams,
    )
    quota = read_quota(storage_quota)
    with expected_errors():
        name, allowances = _check_name(name), read_allowances(budget, budget_period, budget_time_zone)
        with change_store(load_settings(data, config)) as connection:
            made = administration.create_account(connection, Actor.CLI, name, now, limits, allowances, quota)
            [record] = describe_accounts(connection, [made], now)
    print_json(record) if as_json else typer.echo(record["id"])


@app.command("list")
def list_accounts(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """List all accounts, newest first."""
    from penstock.store.queries.accounts import account_rows

    now = time.time()
    with expected_errors(), read_store(load_settings(data, config)) as connection:
        accounts = describe_accounts(connection, account_rows.page(connection, None, None, now), now)
    if as_json:
        print_json(accounts)
    elif not accounts:
        typer.echo("There are no accounts yet. Create one with `penstock account create`.")
    else:
        columns = ("id", "name", "status", "created", "keys", "limits", "spent")
        print_table(columns, [_row(account) for account in accounts])


def _row(account: dict[str, Any]) -> tuple[str, ...]:
    return (
        account["id"],
        account["name"],
        "closed" if account["closed_at"] else "open",
        account["created_at"][:10],
        str(account["keys"]),
        word_limits(account["limits"]),
        word_budgets(account["budgets"]),
    )


@app.command()
def show(name: AccountName, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Show an account with its limits and budgets."""
    from penstock.accounts import administration

    now = time.time()
    with expected_errors(), read_store(load_settings(data, config)) as connection:
        [record] = describe_accounts(connection, [administration.get_account(connection, name, now)], now)
    print_json(record) if as_json else print_record(record)


@app.command()
def rename(
    name: AccountName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="A name that no other account has.")],
    *,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Rename an account. Its id stays."""
    new = _check_name(new)
    _change(name, lambda account: replace(account, name=new), data, config, as_json=as_json)


@app.command()
def limits(
    name: AccountName,
    *,
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    concurrent_jobs: ConcurrentJobs = None,
    concurrent_streams: ConcurrentStreams = None,
    storage_quota: StorageQuota = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Set limits that all keys of an account share. Options that you omit stay unchanged."""

    def amend(account: Account) -> Account:
        wanted = make_limits(
            account.limits,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            concurrent_jobs=concurrent_jobs,
            concurrent_streams=concurrent_streams,
        )
        return replace(account, limits=wanted, storage_quota=read_quota(storage_quota, account.storage_quota))

    _change(name, amend, data, config, as_json=as_json)


@app.command("content-log")
def content_log(
    name: AccountName,
    state: Annotated[Switch, typer.Argument(help="on: prompts and answers of its keys are logged.")],
    *,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Switch the content log of an account on or off. It needs `content_log.retention` in the settings."""
    _change(name, lambda account: replace(account, content_log=state is Switch.ON), data, config, as_json=as_json)


@app.command()
def close(name: AccountName, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Close an account. Its keys are refused within a second, its jobs and results stay."""
    now = time.time()
    _change(name, lambda account: replace(account, closed_at=account.closed_at or now), data, config, as_json=as_json)


@app.command()
def reopen(name: AccountName, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Reopen a closed account, so that its keys work again."""
    _change(name, lambda account: replace(account, closed_at=None), data, config, as_json=as_json)


@app.command()
def budget(
    name: AccountName,
    *,
    amount: Amount = None,
    period: OfPeriod = Period.TOTAL,
    time_zone: TimeZone = "UTC",
    tag: Annotated[
        str | None, typer.Option(metavar="TAG", help="Only for requests with this tag; default: all requests.")
    ] = None,
    remove: Remove = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Set or remove an account's budget for a period, or that of one of its tags."""
    from penstock.accounts import administration
    from penstock.accounts.administration import AccountTag

    now = time.time()
    if (amount is None) is not remove:
        fail("Give --amount, or --remove.")
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        account = administration.get_account(connection, name, now)
        of = account if tag is None else AccountTag(account.id, account.name, check_tag("--tag", tag))
        if amount is None:
            administration.remove_budget(connection, Actor.CLI, of, period, now)
        else:
            allowance = read_allowance("--amount", amount, period, "--time-zone", time_zone)
            administration.set_budget(connection, Actor.CLI, of, allowance, now)
        [record] = describe_accounts(connection, [account], now)
    print_json(record) if as_json else print_record(record)


def _change(
    name: str, amend: Callable[[Account], Account], data: Path | None, config: Path | None, *, as_json: bool
) -> None:
    from penstock.accounts import administration

    now = time.time()
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        changed = administration.change_account(connection, Actor.CLI, name, amend, now)
        [record] = describe_accounts(connection, [changed], now)
    print_json(record) if as_json else print_record(record)


def _check_name(name: str) -> str:
    try:
        return read_account_name(name)
    except ValueError as error:
        fail(f"NAME: {error}.")
