"""`penstock doctor`: checks everything that a server needs, and suggests fixes."""

import asyncio
import errno
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

import typer

from penstock.accounts.records import status_of
from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import print_json
from penstock.cli.process import has_engines
from penstock.cli.serve import FIRST_KEY, address_of
from penstock.cli.store_access import describe_store, load_settings, private_places

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need it
    from penstock.settings.tables import Settings

OK, WARN, FAIL = "ok", "warn", "fail"
COLORS = {OK: "green", WARN: "yellow", FAIL: "red"}
EXPIRY_DAYS = 30
"""Days before the end of a certificate from which on there is a warning."""
MIN_FREE_BYTES = 1_000_000_000
ENGINE_MODULES = ("cv2", "fast_simplification", "numpy", "onnxruntime", "xllamacpp")
"""Import names of the libraries of the extra `local`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check, with a remedy."""

    check: str
    status: str
    message: str
    remedy: str = ""


def doctor(
    *,
    port: Annotated[int | None, typer.Option(help="Port that the server will listen on.")] = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Check settings, folders, store, vendors, keys and port; exit code 1 if anything failed."""
    findings = list(_examine(data, config, port))
    well = all(finding.status != FAIL for finding in findings)
    if as_json:
        print_json({"ok": well, "checks": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            typer.secho(f"{finding.status:<5}", fg=COLORS[finding.status], nl=False)
            typer.echo(f"{finding.check}: {finding.message}")
            if finding.remedy:
                typer.echo(f"     → {finding.remedy}")
    raise typer.Exit(0 if well else 1)


def _examine(data: Path | None, config: Path | None, port: int | None) -> Iterator[Finding]:
    from penstock.settings.tables import SettingsError

    try:
        settings = load_settings(data, config, port=port)
    except SettingsError as error:
        yield from _problems("settings", error)
        return
    yield Finding("settings", OK, f"read from {settings.source.file or 'the environment and defaults'}")
    yield _check_folder("data folder", settings.data)
    yield _check_assets(settings.assets_url)
    yield from _check_permissions(settings)
    yield _check_space(settings.data)
    yield from _check_store(settings)
    yield _check_certificate(settings, time.time())
    yield from _check_vendors(settings)
    yield _check_sandbox()
    yield from _check_engines(settings.weights)
    yield _check_port(settings)


def _problems(check: str, error: Exception) -> Iterator[Finding]:
    for problem in getattr(error, "problems", ()):
        yield Finding(check, FAIL, f"{problem.where}: {problem.what}", problem.remedy)


# -- disk


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next(place for place in (folder, *folder.parents) if os.access(place, os.F_OK))


def _check_folder(check: str, folder: Path) -> Finding:
    place = _existing(folder)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        remedy = "Make it writable for this process, or choose another with --data."
        return Finding(check, FAIL, f"{place} cannot be written: {error.strerror}", remedy)
    return Finding(check, OK, f"{folder} is writable" if place == folder else f"{folder} will be created at startup")


def _check_permissions(settings: "Settings") -> Iterator[Finding]:
    """Find paths that other users may read or change, and secrets in a readable settings file."""
    from penstock.storage.permissions import find_open, look

    found = find_open(*private_places(settings))
    for place in found:
        who = f"; {place.obstacle}" if place.obstacle else ""
        message = f"{place.path} is open to other users of this machine (mode {place.octal}{who})"
        yield Finding("permissions", WARN, message, f"Run: chmod go-rwx '{place.path}'. A server does so at startup.")
    if not found:
        yield Finding("permissions", OK, "stored data is closed to other users of this machine")
    if (settings.data / FIRST_KEY).exists():
        message = f"the first API key is still in {settings.data / FIRST_KEY}"
        yield Finding("first key", WARN, message, "Read it, then remove the file.")
    file = settings.source.file
    config = Path(file).resolve() if file is not None else None  # a symbolic link does not protect the file
    if config is not None and look(config) is not None and _has_secrets(config, settings):
        message = f"{config} contains secrets, and other users of this machine may read it"
        remedy = f'Run: chmod go-rwx \'{config}\', or write "env:NAME" or "file:PATH" instead of the secrets.'
        yield Finding("settings file", WARN, message, remedy)
    for secret in (file.resolve() for file in settings.source.secret_files):
        if place := look(secret):
            message = f"{secret} holds a secret, and other users of this machine may read or change it"
            yield Finding("secret file", WARN, f"{message} (mode {place.octal})", f"Run: chmod go-rwx '{secret}'")


def _has_secrets(config: Path, settings: "Settings") -> bool:
    """Return whether the file itself contains a secret or the store's password."""
    from penstock.store.connect import password_of

    password = password_of(settings.database_url)
    text = config.read_text("utf-8", errors="replace")
    return any(secret in text for secret in (*settings.secrets, *([password] if password else [])))


def _check_assets(url: str) -> Finding:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _check_folder("assets folder", Path(unquote(parts.path)))
    from obstore.exceptions import BaseError

    from penstock.storage.backend import explain, open_storage, probe

    try:
        probe(open_storage(url))
    except (BaseError, OSError) as error:
        reason, remedy = explain(error)
        return Finding("assets bucket", FAIL, f"{url} cannot be used: {reason}", remedy)
    return Finding("assets bucket", OK, f"{url} can be written, read, listed and cleared")


def _check_space(folder: Path) -> Finding:
    free = shutil.disk_usage(_existing(folder)).free
    message = f"{free / 1e9:.1f} GB are free"
    if free < MIN_FREE_BYTES:
        return Finding("disk", WARN, message, "Make room, or shorten `jobs.retention`: results are kept on this disk.")
    return Finding("disk", OK, message)


# -- the store and its keys


def _check_certificate(settings: "Settings", now: float) -> Finding:
    """Report whose certificate signs results. The settings have refused one that cannot."""
    from penstock.provenance.credential import check_certificate, name_of

    check, table = "certificate", settings.provenance
    if table.results == "unsigned":
        return Finding(check, OK, "results are not signed (provenance.results)")
    if table.certificate is None:
        message = "results are signed with a certificate of this store's own, which nobody else trusts"
        return Finding(check, OK, message, "For one that others trust, see `[provenance]` in the settings.")
    leaf = check_certificate(table.certificate.encode(), now)[0]
    days = int((leaf.not_valid_after_utc.timestamp() - now) / 86400)
    message = f"results are signed as {name_of(leaf)}, until {leaf.not_valid_after_utc:%Y-%m-%d}"
    if days < EXPIRY_DAYS:
        message = f"the certificate of {name_of(leaf)} expires in {days} days, on {leaf.not_valid_after_utc:%Y-%m-%d}"
        return Finding(check, WARN, message, "Renew it: a server does not start with an expired one.")
    return Finding(check, OK, message)


def _check_store(settings: "Settings") -> Iterator[Finding]:
    from penstock.store.connect import StoreUnusable, database_errors, is_file, path_of

    url, name = settings.database_url, describe_store(settings)
    if is_file(url) and not os.access(path_of(url), os.F_OK):
        yield Finding("store", OK, f"{name} will be created at the first start, with a first key")
        return
    remedy = (
        "Restore a backup, or move the file away."
        if is_file(url)
        else "Check that the database server runs and that the URL is right."
    )
    try:
        with database_errors():
            yield from _open_store(url, name)
    except StoreUnusable as error:
        reason = str(error).splitlines()[0]
        yield Finding("store", FAIL, f"{name} cannot be used: {reason}", remedy)


def _open_store(url: str, name: str) -> Iterator[Finding]:
    from penstock.store import schema
    from penstock.store.connect import find_damage, make_engine
    from penstock.store.queries.accounts import key_rows
    from penstock.store.tables import SCHEMA_VERSION

    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            version = schema.version_of(connection)
            schema.check(connection)
            damage = find_damage(connection)
            keys = key_rows.list_all(connection) if version == SCHEMA_VERSION else None
    except schema.SchemaTooNew as error:
        yield Finding("store", FAIL, str(error), "Start the newer version, or point --data at another folder.")
        return
    finally:
        engine.dispose()
    if damage is not None:
        yield Finding("store", FAIL, f"{name} is damaged: {damage}", "Restore a backup.")
        return
    yield Finding("store", OK, f"{name} is sound, schema {version or 'not made yet'}")
    if keys is not None:
        active = [key for key in keys if status_of(key, time.time()) == "active"]
        if active:
            yield Finding("keys", OK, f"{len(active)} of {len(keys)} can be used")
        else:
            yield Finding("keys", WARN, "no key can be used", "Create one: penstock key create")


# -- vendors


def _check_vendors(settings: "Settings") -> Iterator[Finding]:
    from penstock.offers.build import build_offers
    from penstock.settings.tables import SettingsError

    if not settings.vendors:
        yield Finding(
            "vendors",
            OK,
            f"none is configured: the {'built-in engines serve' if has_engines() else 'simulator serves'}",
        )
    sound = True
    for name, table in settings.vendors.items():
        try:  # each alone, so that one invalid vendor does not hide the others
            alone = build_offers(settings.model_copy(update={"vendors": {name: table}, "models": ()}), None)
        except SettingsError as error:
            sound = False
            yield from _problems(f"vendor {name}", error)
            continue
        generation, chat = alone.vendors.get(name), alone.chat_vendors.get(name)
        is_here = (generation and generation.upstream is not None) or (chat and chat.server is not None)
        options = generation.options if generation else alone.chat_vendors[name].options
        if options.credential or is_here:
            yield Finding(f"vendor {name}", OK, f"type {options.type}, its options are valid")
        else:
            remedy = 'Add api_key = "env:NAME", unless its server asks for none.'
            yield Finding(f"vendor {name}", WARN, f"type {options.type}, without a credential", remedy)
    if sound:
        try:
            offers = build_offers(settings, None)
            yield Finding("models", OK, f"{len(offers.by_model) + len(offers.chat)} on offer")
        except SettingsError as error:
            yield from _problems("models", error)


# -- the processes that open hostile files


def _check_sandbox() -> Finding:
    from penstock.inspection.worker_pool import WorkFailed
    from penstock_sandbox import sandbox

    offered = sandbox.survey()
    try:
        closed = asyncio.run(_try_sandbox())
    except (WorkFailed, OSError) as error:
        remedy = "Check that this interpreter can start child processes: no file can be opened without them."
        return Finding("sandbox", FAIL, f"files cannot be opened: {error}", remedy)
    walls = [f"Landlock (version {offered.landlock})"] if offered.landlock else []
    walls += [name for name in ("seccomp", "no_new_privs") if name not in offered.missing]
    walls += ["limits of CPU time, memory, files and processes"]
    around = f"pictures and outputs are opened behind {', '.join(walls)}"
    still_open = [name for name, is_closed in closed.items() if not is_closed]
    if not offered.missing and not still_open:
        return Finding("sandbox", OK, around)
    lacking = ", ".join(offered.missing) or "nothing"
    message = f"{around}; missing: {lacking}; open to them: {', '.join(still_open) or 'nothing'}"
    remedy = "Run on Linux 5.13 or newer, and let a container's seccomp profile pass `seccomp` and `landlock_*`."
    return Finding("sandbox", WARN, message, remedy)


async def _try_sandbox() -> dict[str, bool]:
    from penstock.inspection.worker_pool import ProcessPool
    from penstock_sandbox import sandbox

    process_pool = ProcessPool(1, threads=True)
    try:
        return await process_pool.insist("doctor", sandbox.try_out)
    finally:
        await process_pool.close()


# -- the built-in engines


def _check_engines(folder: Path) -> Iterator[Finding]:
    from importlib.util import find_spec

    if not has_engines():
        message = "not installed: only the vendors of the settings and the simulator serve"
        yield Finding("engines", WARN, message, "Install a Penstock that has them, if you want the built-in models.")
        return
    absent = [name for name in ENGINE_MODULES if find_spec(name) is None]
    if absent:  # without them the weights are useless
        message = f"not installed: without {', '.join(absent)} the built-in models do not work"
        yield Finding("engines", WARN, message, "Install them: pip install 'penstock[local]'")
        return
    yield Finding("engines", OK, "all libraries of the built-in models are installed")
    from penstock_engines.weights import missing

    lacking = missing(folder)
    if lacking:
        megabytes = sum(weight.bytes for weight in lacking) / 1e6
        message = f"{folder} lacks {', '.join(weight.name for weight in lacking)} ({megabytes:.0f} MB)"
        yield Finding("weights", WARN, message, "Download them: penstock models pull")
    else:
        yield Finding("weights", OK, f"all are in {folder}")


# -- the port


def _check_port(settings: "Settings") -> Finding:
    host, port = settings.server.host, settings.server.port
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and _is_ours(f"{address_of(host, port)}/healthz"):
            return Finding("port", OK, f"a Penstock server answers on {host}:{port}")
        reason = error.strerror or str(error)
        remedy = "Stop what listens there, or choose another host or port in [server]."
        return Finding("port", FAIL, f"{host}:{port} cannot be used: {reason}", remedy)
    return Finding("port", OK, f"{host}:{port} is free")


def _is_ours(url: str) -> bool:
    from urllib.request import ProxyHandler, build_opener

    try:
        with build_opener(ProxyHandler({})).open(url, timeout=5) as reply:  # this machine is not behind a proxy
            return json.load(reply).keys() == {"status", "version"}
    except (OSError, ValueError, AttributeError):
        return False
