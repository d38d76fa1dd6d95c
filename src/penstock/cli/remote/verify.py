"""`penstock verify`: report who signed a file, and whether it was changed since."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import fail, print_json
from penstock.cli.remote.connection import BaseUrl, run_with_client
from penstock.cli.remote.errors import plain

if TYPE_CHECKING:
    from penstock.client import Client

WORDS: Final = {
    "signed_here": "signed by this server, and not changed since",
    "signed_elsewhere": "signed by another, and not changed since",
    "unsigned": "not signed",
    "tampered": "changed after it was signed",
}


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The picture, film or 3D model.", exists=True)],
    *,
    sidecar: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The signed sidecar of a 3D model; default: FILE.jws.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Check without a server, and trust the roots in this PEM file.", exists=True),
    ] = None,
    base_url: BaseUrl = None,
    data: DataFolder = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Report who signed a file, and whether it was changed since. Exit code 1: it proves nothing."""
    text = _read_sidecar(file, sidecar)
    if root is not None:
        report = _verify_alone(file, text, root)
    else:

        def ask(client: "Client") -> Mapping[str, Any]:
            return client.verify(file, text).raw

        report = run_with_client(ask, base_url, data, config, as_json=as_json)
    if as_json:
        print_json(report)
    else:
        typer.echo("\n".join(_lines(report)))
    if report["verdict"] in ("unsigned", "tampered") or not report["is_trusted"]:
        raise typer.Exit(1)


def _read_sidecar(file: Path, given: Path | None) -> str | None:
    path = given or file.with_name(f"{file.name}.jws")
    if given is None and not path.exists():
        return None
    try:
        return path.read_text("ascii")
    except (OSError, ValueError):
        fail(f"{path} cannot be read as a sidecar.", "It is the text at the `sidecar_url` of a job's output.")


def _verify_alone(file: Path, sidecar: str | None, root: Path) -> Mapping[str, Any]:
    """Check the file in a confined child process of this command."""
    import asyncio

    from penstock.jobs.files.verification import verify_alone
    from penstock.provenance.credential import CredentialProblem, read_anchors

    try:
        anchors = read_anchors(root.read_bytes())
    except (OSError, CredentialProblem):
        fail(f"{root} has no certificates in PEM.", "A server has its own at /api/v1/verify/certificate.")
    return asyncio.run(verify_alone(file, None if sidecar is None else sidecar.encode(), anchors))


def _lines(report: Mapping[str, Any]) -> Sequence[str]:
    signer: Mapping[str, Any] | None = report["signer"]
    generation: Mapping[str, Any] = report["generation"] or {}
    inputs: Sequence[Mapping[str, Any]] = generation.get("inputs", ())
    lines = [WORDS[report["verdict"]]]
    if signer is not None:
        trust = "trusted" if report["is_trusted"] else "not trusted"
        lines.append(f"signer      {plain(signer['name'])}, {plain(signer['organization'])} ({trust})")
    if report["made_by_ai"]:
        lines.append("made by     AI")
    known = [name for name in ("job_id", "model", "vendor", "created_at", "seed") if name in generation]
    lines += [f"{name:<12}{plain(str(generation[name]))}" for name in known]
    lines += [f"input       {plain(str(each.get('sha256')))}" for each in inputs]
    lines += [f"carries     a manifest of {plain(_signer_of(each))}" for each in report["parents"]]
    return [*lines, *(f"problem     {plain(each['code'])}: {plain(each['message'])}" for each in report["problems"])]


def _signer_of(parent: Mapping[str, Any]) -> str:
    signature: Mapping[str, str] = parent["signature"] or {}
    return signature.get("name") or parent["generator"] or "an unknown signer"
