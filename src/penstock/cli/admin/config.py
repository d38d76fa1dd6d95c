"""`penstock config`: the run-time settings, changed in the store while servers run."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, fail, print_json, print_table
from penstock.cli.store_access import change_store, load_settings, read_master_keys, read_store

if TYPE_CHECKING:
    from penstock.configuration.document import Document
    from penstock.settings.tables import Settings

app = typer.Typer(name="config", no_args_is_help=True, help="Change vendors, models and limits while servers run.")

Note = Annotated[str, typer.Option(metavar="TEXT", help="The reason, for the history.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the change and show it, but store nothing.")]
Base = Annotated[int | None, typer.Option(metavar="N", min=0, help="Fail unless this is the newest version.")]
Name = Annotated[
    str,
    typer.Argument(metavar="PATH", help="`vendors.NAME.OPTION`, `vendors.NAME`, `models.ID` or `limits.TABLE.NAME`."),
]
FROM_STDIN: Final = "-"


@app.command()
def export(
    *,
    version: Annotated[int | None, typer.Option(metavar="N", min=0, help="That version.")] = None,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Print the run-time settings as JSON. Secrets are replaced by placeholders."""
    from penstock.configuration import records, versions

    with expected_errors(), read_store(load_settings(data, config)) as connection:
        print_json(records.export(versions.read(connection, version).version))


@app.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="A file from `penstock config export`; - reads stdin.")],
    *,
    base_version: Base = None,
    note: Note = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Replace the run-time settings by those of a file. A placeholder keeps the stored secret."""
    with expected_errors():
        wanted = _read(file)
        _change(
            load_settings(data, config),
            lambda _: wanted,
            base=base_version,
            note=note,
            dry_run=dry_run,
            as_json=as_json,
        )


@app.command()
def diff(
    file: Annotated[Path, typer.Argument(help="A file from `penstock config export`; - reads stdin.")],
    *,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show what an import of a file would change."""
    with expected_errors():
        wanted = _read(file)
        _change(load_settings(data, config), lambda _: wanted, dry_run=True, as_json=as_json)


@app.command(name="set")
def set_(
    path: Name,
    value: Annotated[str, typer.Argument(help="JSON or a text; - reads it from stdin, as secrets should be.")],
    *,
    base_version: Base = None,
    note: Note = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Set one option, or a whole vendor or model."""
    with expected_errors():
        text = sys.stdin.read().strip() if value == FROM_STDIN else value
        part, name, option = _split(path)
        given = _parse(text, option)

        def amend(current: "Document") -> dict[str, Any]:
            entries = dict(current.get(part, {}))
            entries[name] = given if option is None else {**entries.get(name, {}), option: given}
            return {**current, part: entries}

        _change(load_settings(data, config), amend, base=base_version, note=note, dry_run=dry_run, as_json=as_json)


@app.command()
def unset(
    path: Name,
    *,
    base_version: Base = None,
    note: Note = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Remove one option, or a whole vendor or model."""
    from penstock.errors import SettingNotFound

    with expected_errors():
        part, name, option = _split(path)

        def amend(current: "Document") -> dict[str, Any]:
            entries = dict(current.get(part, {}))
            entry = entries.pop(name, None)
            if entry is None or (option is not None and option not in entry):
                raise SettingNotFound(f"There is no `{path}` among the run-time settings.", param="path")
            if option is not None:
                entries[name] = {key: each for key, each in entry.items() if key != option}
            return {**current, part: entries}

        _change(load_settings(data, config), amend, base=base_version, note=note, dry_run=dry_run, as_json=as_json)


@app.command()
def history(
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of versions.")] = 20,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """List the versions, newest first, with what each changed."""
    from penstock.configuration import records, versions
    from penstock.store.queries.settings import version_rows

    with expected_errors(), read_store(load_settings(data, config)) as connection:
        found: list[dict[str, Any]] = [
            {**records.describe_version(each), "changes": versions.differences_of(connection, each.version)}
            for each in version_rows.page(connection, None, limit)
        ]
    if as_json:
        print_json(found)
        return
    rows: list[tuple[str, ...]] = [
        (str(each["version"]), each["created_at"][:19], each["actor"], _summarise(each["changes"]), each["note"])
        for each in found
    ]
    print_table(("version", "when", "actor", "changes", "note"), rows)


@app.command()
def rollback(
    version: Annotated[int, typer.Argument(min=0, help="The version to bring back; 0: none at all.")],
    *,
    base_version: Base = None,
    note: Note = "",
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Make an earlier version the newest again, with its secrets."""
    from penstock.configuration.offline import restore

    with expected_errors():
        settings = load_settings(data, config)
        with change_store(settings) as connection:
            masters = read_master_keys(settings)
            before, made = restore(connection, settings, masters, version, base_version, time.time(), note=note)
    _print_change(before, made, dry_run=False, as_json=as_json)


def _change(
    settings: "Settings",
    amend: "Callable[[Document], Mapping[str, Any]]",
    *,
    base: int | None = None,
    note: str = "",
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    from penstock.configuration.offline import change

    masters = read_master_keys(settings)
    with change_store(settings) as connection:
        before, made = change(connection, settings, masters, amend, base, time.time(), note=note, dry_run=dry_run)
    _print_change(before, made, dry_run=dry_run, as_json=as_json)


def _print_change(before: Any, made: Any, *, dry_run: bool, as_json: bool) -> None:
    from penstock.configuration.records import describe_change

    found = describe_change(before, made, dry_run=dry_run)
    if as_json:
        print_json(found)
        return
    for each in found["changes"]:
        sign = {"added": "+", "removed": "-", "changed": "~"}[each["change"]]
        shown = " → ".join(json.dumps(each[name], ensure_ascii=False) for name in ("before", "after") if name in each)
        typer.echo(f"{sign} {each['path']}  {shown}")
    typer.echo("Nothing was stored." if dry_run else f"Version {made.version} is stored. Servers follow within 2 s.")


def _read(file: Path) -> Mapping[str, Any]:
    text = sys.stdin.read() if str(file) == FROM_STDIN else file.read_text("utf-8")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        fail(f"{file} is not a JSON object.", "Name a file from `penstock config export`.")
    return {key: value for key, value in found.items() if key != "version"}  # pyright: ignore[reportUnknownVariableType]


def _split(path: str) -> tuple[str, str, str | None]:
    """Return part, name and option. A model's id may have dots, so its options are set with the whole model."""
    part, _, rest = path.partition(".")
    if part not in ("vendors", "models", "limits") or not rest:
        fail(
            f"`{path}` is not a path.", "Use `vendors.NAME.OPTION`, `vendors.NAME`, `models.ID` or `limits.TABLE.NAME`."
        )
    name, _, option = rest.partition(".") if part == "vendors" else (rest, "", "")
    return part, name, option or None


def _parse(text: str, option: str | None) -> Any:
    """Return a value: JSON, or else the text itself. A secret is always a text."""
    from penstock.configuration.document import is_secret

    if option is not None and is_secret(option):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _summarise(changes: list[dict[str, Any]]) -> str:
    first = ", ".join(f"{each['path']} {each['change']}" for each in changes[:3])
    return first + (f", {len(changes) - 3} more" if len(changes) > 3 else "")
