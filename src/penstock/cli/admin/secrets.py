"""`penstock secrets`: the master key that seals the secrets in the store."""

import typer

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, print_json, print_result
from penstock.cli.store_access import change_store, load_settings, read_master_keys, read_store

app = typer.Typer(name="secrets", no_args_is_help=True, help="Show and rotate the key that seals stored secrets.")


@app.command()
def status(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Show which master key seals the store's secrets, and which ones this machine has."""
    from penstock.sealing import data_keys

    with expected_errors():
        settings = load_settings(data, config)
        masters = read_master_keys(settings)
        with read_store(settings) as connection:
            found = data_keys.describe(connection, masters)
    known = [{"id": name, "origin": origin} for name, origin in found.known]
    if as_json:
        print_json({"data_keys": found.data_keys, "sealed_by": list(found.masters), "known": known})
        return
    typer.echo(f"data keys  {found.data_keys}")
    typer.echo(f"sealed by  {', '.join(found.masters) or 'nothing is sealed yet'}")
    for key in known:
        typer.echo(f"known      {key['id']}  {key['origin']}")


@app.command()
def rotate(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """Seal the store's secrets by a new master key. Servers keep running. It may be interrupted and run again.

    With `sealing.master_key` in the settings, that is the new key, and `sealing.previous_key` the old one.
    """
    from penstock.sealing import data_keys

    with expected_errors():
        settings = load_settings(data, config)
        masters = read_master_keys(settings)
        with change_store(settings) as connection:
            done = data_keys.rotate(connection, masters)
        if done is None:
            print_result({"sealed_again": 0}, "Nothing is sealed yet, so there is no key to rotate.", as_json=as_json)
            return
        with change_store(settings) as connection:
            data_keys.finish_rotation(connection, masters)
    key, changed = done
    text = f"The store's secrets are sealed by the master key {key.id} ({key.origin})."
    if not changed:
        text += " They were before: to rotate again, run this again or set another key."
    print_result({"sealed_by": key.id, "sealed_again": changed}, text, as_json=as_json)
