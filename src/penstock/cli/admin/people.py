"""`penstock people`: people, their roles in accounts, and their keys, also while a server runs."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.admin.limit_options import check_label, describe_keys
from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, fail, print_json, print_result, print_table
from penstock.cli.store_access import change_store, load_settings, read_store
from penstock.domain.accounts import Actor, KeyWish, read_cap
from penstock.domain.people.roles import MAX_PERSON_KEYS, KeyPolicy, PersonRole, read_email

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need it
    from penstock.store.database import Connection

app = typer.Typer(help="Add people, give them roles in accounts, and remove them.", no_args_is_help=True)

PersonText = Annotated[str, typer.Argument(metavar="PERSON", help="An e-mail address or a person's id.")]
AccountText = Annotated[str, typer.Option("--account", metavar="NAME", help="The account, by name or id.")]


@app.command("list")
def list_people(
    *,
    account: Annotated[str | None, typer.Option(metavar="NAME", help="Only this account's, by name or id.")] = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """List all people with their roles, newest first."""
    from penstock.accounts import administration
    from penstock.accounts.records import describe_person
    from penstock.store.queries.accounts import people_rows

    with expected_errors(), read_store(load_settings(data, config)) as connection:
        only = None if account is None else administration.get_account(connection, account, time.time()).id
        found = people_rows.page(connection, only, None, None)
        every = people_rows.memberships_of_all(connection, [person.id for person in found])
        records = [describe_person(person, every[person.id]) for person in found]
    if as_json:
        print_json(records)
    elif not records:
        typer.echo("There are no people yet. Add one with `penstock people add`.")
    else:
        print_table(("email", "id", "status", "roles", "name"), [_row(record) for record in records])


@app.command()
def add(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="The address by which the person is known.")],
    *,
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="An account for the person, created if new.")
    ] = None,
    role: Annotated[PersonRole, typer.Option(help="The role in the account.")] = PersonRole.MEMBER,
    name: Annotated[str, typer.Option(metavar="TEXT", help="The person's name.")] = "",
    operator: Annotated[bool, typer.Option("--operator", help="The person administers the whole server.")] = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Add a person, or give one that exists a role in another account. Print the person's id."""
    from penstock.accounts import administration, people

    now = time.time()
    address, name = _check_email(email), check_label("--name", name)
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        person = people.ensure_person(connection, Actor.CLI, address, name, now)
        if operator:
            people.set_operator(connection, Actor.CLI, person.id, now, is_operator=True)
        if account is not None:
            place = administration.ensure_account(connection, Actor.CLI, account, now)
            people.set_role(connection, Actor.CLI, person, place, role, now)
        record = _read(connection, person.id)
    print_result(record, record["id"], as_json=as_json)


@app.command()
def role(
    person: PersonText,
    role: Annotated[PersonRole, typer.Argument(help="The new role.")],
    *,
    account: AccountText,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Give a person a role in an account, or change it. Running servers follow within a second."""
    from penstock.accounts import administration, people

    now = time.time()
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        found = people.get_person(connection, person)
        place = administration.get_account(connection, account, now)
        people.set_role(connection, Actor.CLI, found, place, role, now)
        record = _read(connection, found.id)
    print_result(record, f"{record['email']} is {role} of {place.name}.", as_json=as_json)


@app.command()
def remove(
    person: PersonText,
    *,
    account: AccountText,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """End a person's role in an account, and revoke the person's keys there. Servers follow within a second."""
    from penstock.accounts import administration, people

    now = time.time()
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        found = people.get_person(connection, person)
        place = administration.get_account(connection, account, now)
        people.remove_member(connection, Actor.CLI, found, place.id, now)
        record = _read(connection, found.id)
    print_result(record, f"{record['email']} has left {place.name}.", as_json=as_json)


@app.command()
def operator(
    person: PersonText,
    *,
    no: Annotated[bool, typer.Option("--no", help="No longer.")] = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Let a person administer the whole server, or no longer."""
    from penstock.accounts import people

    with expected_errors(), change_store(load_settings(data, config)) as connection:
        people.set_operator(connection, Actor.CLI, person, time.time(), is_operator=not no)
        record = _read(connection, person)
    print_result(record, f"{record['email']} is {'no ' if no else 'an '}operator.", as_json=as_json)


@app.command()
def deactivate(
    person: PersonText, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None
) -> None:
    """End all roles and keys of a person. Servers follow within a second."""
    from penstock.accounts import people

    with expected_errors(), change_store(load_settings(data, config)) as connection:
        people.deactivate(connection, Actor.CLI, person, time.time())
        record = _read(connection, person)
    print_result(record, f"{record['email']} is deactivated.", as_json=as_json)


@app.command()
def activate(
    person: PersonText, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None
) -> None:
    """Let a deactivated person have roles again. Give the roles again."""
    from penstock.accounts import people

    with expected_errors(), change_store(load_settings(data, config)) as connection:
        people.activate(connection, Actor.CLI, person, time.time())
        record = _read(connection, person)
    print_result(record, f"{record['email']} is active.", as_json=as_json)


@app.command()
def key(
    person: PersonText,
    *,
    account: AccountText,
    name: Annotated[str, typer.Option(metavar="TEXT", help="What it is for.")] = "",
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Create a key for a person, within the account's limits, and print it once."""
    from penstock.accounts import administration, people

    now, name = time.time(), check_label("--name", name)
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        place = administration.get_account(connection, account, now)
        found, _ = people.get_member(connection, place.id, person)
        text, made = people.issue_own_key(connection, Actor.CLI, found.id, place.id, KeyWish(name=name), now)
        [record] = describe_keys(connection, [made], now)
    print_result({"key": text, **record}, text, as_json=as_json)


@app.command()
def limits(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account, by name or id.")],
    *,
    max_keys: Annotated[
        int | None, typer.Option(min=0, max=MAX_PERSON_KEYS, help="Working keys that one person may have.")
    ] = None,
    max_budget: Annotated[
        str | None, typer.Option(metavar="USD", help="What a new key may spend in a month; `none`: any amount.")
    ] = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show or set the limits of an account for new keys of its people."""
    from penstock.accounts import administration, people
    from penstock.store.queries.accounts import people_rows

    now = time.time()
    cap = None if max_budget is None else _check_cap(max_budget)
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        place = administration.get_account(connection, account, now)
        before = people_rows.policy(connection, place.id)
        wanted = KeyPolicy(
            max_keys=before.max_keys if max_keys is None else max_keys,
            max_budget=before.max_budget if max_budget is None else cap,
        )
        record = people.describe_policy(people.set_policy(connection, Actor.CLI, place.id, wanted, now))
    budget = "any amount" if record["max_budget"] is None else f"{record['max_budget']} USD"
    text = f"A person may have {record['max_keys']} keys; each may spend {budget} a month."
    print_result(record, text, as_json=as_json)


@app.command()
def sessions(
    person: PersonText, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None
) -> None:
    """List the sessions of a person in the console, newest first."""
    from penstock.accounts import people
    from penstock.accounts.records import describe_session
    from penstock.store.queries.accounts import session_rows

    settings, now = load_settings(data, config), time.time()
    with expected_errors(), read_store(settings) as connection:
        found = people.get_person(connection, person)
        policy = settings.session_policy
        records = [describe_session(each, {}) for each in session_rows.of_person(connection, found.id, policy, now)]
    if as_json:
        print_json(records)
    elif not records:
        typer.echo(f"{found.email} is not signed in.")
    else:
        names = ("id", "provider", "created_at", "seen_at", "address", "browser")
        print_table(names, [tuple(record[name] for name in names) for record in records])


@app.command("sign-out")
def sign_out(
    person: PersonText, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None
) -> None:
    """End all sessions of a person in the console. Servers follow within a second; roles and keys stay."""
    from penstock.accounts import people

    with expected_errors(), change_store(load_settings(data, config)) as connection:
        found = people.get_person(connection, person)
        ended = people.end_sessions(connection, Actor.CLI, found.id, time.time())
    print_result({"ended": ended}, f"{found.email} is signed out ({ended} sessions).", as_json=as_json)


@app.command()
def unlink(person: PersonText, *, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Forget by which provider's account a person signs in. The next sign-in finds the person by address."""
    from penstock.accounts import people

    with expected_errors(), change_store(load_settings(data, config)) as connection:
        found = people.unlink(connection, Actor.CLI, person, time.time())
        record = _read(connection, found.id)
    print_result(record, f"{found.email} is linked to no provider, and signed out.", as_json=as_json)


def _read(connection: "Connection", text: str) -> dict[str, Any]:
    from penstock.accounts import people
    from penstock.accounts.records import describe_person
    from penstock.store.queries.accounts import people_rows

    person = people.get_person(connection, text)
    return describe_person(person, people_rows.memberships_of(connection, person.id))


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    status = "deactivated" if record["deactivated_at"] else "operator" if record["operator"] else "active"
    roles = ", ".join(f"{each['role']} of {each['account']}" for each in record["accounts"])
    return record["email"], record["id"], status, roles, record["name"]


def _check_email(text: str) -> str:
    try:
        return read_email(text)
    except ValueError as error:
        fail(f"EMAIL: {error}.")


def _check_cap(text: str) -> int | None:
    try:
        return None if text == "none" else read_cap(text)
    except ValueError as error:
        fail(f"--max-budget: {error}.")
