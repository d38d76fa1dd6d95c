"""`penstock prices`: dated prices in the store, filled from lists after a look at the differences."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, fail, print_json, print_table
from penstock.cli.store_access import change_store, load_all_settings, load_settings, open_store, read_store
from penstock.domain.accounts import Actor

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need them
    from penstock.offers.price_proposal import Mapped, PriceFinding
    from penstock.price_lists.listed import ListedPrices
    from penstock.settings.tables import Settings

app = typer.Typer(help="Show and update the prices in the store.", no_args_is_help=True)

ListPlace = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="FILE|URL",
        help="A list in LiteLLM's, OpenRouter's or our own form; `shipped` is the one that comes with Penstock.",
    ),
]
Maps = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="VENDOR=PROVIDER",
        help="Use a provider's entries for a vendor; or VENDOR/MODEL=ENTRY, one entry for one model. Repeatable.",
    ),
]

Credits = Annotated[
    list[str] | None,
    typer.Option(
        "--credit",
        metavar="VENDOR=USD",
        help="The price of one of a vendor's credits in your plan, for prices in credits. Repeatable.",
    ),
]


@app.command("list")
def list_prices(
    *,
    past: Annotated[bool, typer.Option("--past", help="Also prices of the store that have ended.")] = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """List each model's price at each vendor with its origin, or with --past all rows of the store."""
    from penstock.accounts.price_changes import describe_row
    from penstock.offers.price_proposal import describe_book
    from penstock.store.queries.billing import price_rows

    now = time.time()
    with expected_errors():
        settings = load_all_settings(data, config)
        with read_store(settings) as connection:
            rows = price_rows.read(connection)
        book = [describe_row(row, now) for row in rows] if past else describe_book(_build(settings, rows), now)
    if as_json:
        print_json(book)
    elif past:
        columns = ("id", "model", "vendor", "status", "from", "until", "price", "source")
        print_table(columns, [_word_row(row) for row in book])
    else:
        columns = ("model", "vendor", "price", "origin", "id", "since", "until")
        print_table(columns, [line for place in book for line in _word_place(place)])


@app.command()
def update(
    *,
    place: ListPlace,
    mapping: Maps = None,
    credit: Credits = None,
    effective: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="When the prices begin, unless the list says later; default: now."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the differences.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Write without asking; needed where there is no terminal.")
    ] = False,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show how a list differs from the prices here, and write it as dated prices after a yes."""
    from penstock.accounts.price_changes import add_prices

    with expected_errors():
        settings = load_all_settings(data, config)
        version, found, source = _compare(settings, place, _read_mapping(mapping or (), credit or ()), effective)
        entries = [entry for entry in (finding.dated(source) for finding in found) if entry is not None]
        if not as_json:
            _print_findings(found)
        write = bool(entries) and not dry_run and (yes or _ask(len(entries), as_json=as_json))
        if write:
            with change_store(settings) as connection:
                version = add_prices(connection, Actor.CLI, entries, version, time.time())
    written = len(entries) if write else 0
    if as_json:
        print_json({"version": version, "written": written, "findings": [each.describe() for each in found]})
    else:
        typer.echo(f"Prices written: {written}." if write else "Nothing was written.")


@app.command()
def report(
    *,
    place: ListPlace = "shipped",
    mapping: Maps = None,
    credit: Credits = None,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show prices that differ from a list, and models without a known price."""
    from penstock.offers.price_proposal import DRIFTED

    with expected_errors():
        settings = load_all_settings(data, config)
        _, found, _ = _compare(settings, place, _read_mapping(mapping or (), credit or ()), None)
        now = time.time()
        drifted = [each for each in found if each.verdict in DRIFTED and each.since <= now]
        unpriced = _list_unpriced(settings, now)
    if as_json:
        print_json({"drift": [each.describe() for each in drifted], "unpriced": unpriced})
        return
    _print_findings(drifted)
    typer.echo(f"Prices in force that differ from the list: {len(drifted)}.")
    if unpriced:
        typer.echo()
        print_table(("unpriced model", "vendor"), [(each["model"], each["vendor"]) for each in unpriced])
    typer.echo(f"Models without a known price: {len(unpriced)}.")


@app.command()
def remove(
    price_id: Annotated[int, typer.Argument(metavar="ID", help="The id of a price of the store.")],
    *,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """End a price of the store now. The cost of earlier requests and of accepted jobs stays."""
    from penstock.accounts.price_changes import describe_row, remove_price

    now = time.time()
    with expected_errors(), change_store(load_settings(data, config)) as connection:
        record = describe_row(remove_price(connection, Actor.CLI, price_id, now), now)
    print_json(record) if as_json else typer.echo(f"Price {price_id} of {record['model']} ends at {record['until']}.")


# -- comparing


def _build(settings: "Settings", rows: Sequence[Any]) -> Any:
    from penstock.offers.build import build_offers

    return build_offers(settings, None, rows=rows)


def _compare(
    settings: "Settings", place: str, mapped: "Mapped", effective: str | None
) -> "tuple[int, list[PriceFinding], str]":
    """Return the version of the prices in the store, the findings of a list and its name as a source."""
    from penstock.offers.price_proposal import propose
    from penstock.store.queries.billing import price_rows

    moment = _read_moment(effective)
    listed, source = _read_list(settings, place)
    with read_store(settings) as connection:
        version, rows = price_rows.read_version(connection), price_rows.read(connection)
    return version, propose(_build(settings, rows), listed, moment, mapped), source


def _list_unpriced(settings: "Settings", now: float) -> list[dict[str, Any]]:
    from penstock.offers.price_proposal import describe_book
    from penstock.store.queries.billing import price_rows

    with open_store(settings) as engine, engine.connect() as connection:
        rows = price_rows.read(connection)
    book = describe_book(_build(settings, rows), now)
    return [{"model": each["model"], "vendor": each["vendor"]} for each in book if each["price"] is None]


def _read_moment(text: str | None) -> float:
    from penstock.settings.prices import parse_moment

    now = time.time()
    try:
        moment = now if text is None else parse_moment(text)
    except ValueError as error:
        fail(f"--effective: {error}.")
    if moment < now:
        fail("--effective is in the past: no price begins before now.", "Leave it out for now.")
    return moment


def _read_mapping(texts: Sequence[str], credit_texts: Sequence[str]) -> "Mapped":
    from penstock.offers.price_proposal import Mapped

    providers, entries = dict[str, str](), dict[tuple[str, str], str]()
    for text in texts:
        left, sign, right = text.partition("=")
        vendor, slash, model = left.partition("/")
        if not (sign and right and vendor) or (slash and not model):
            fail(f"--map `{text[:100]}` is not VENDOR=PROVIDER or VENDOR/MODEL=ENTRY.")
        if slash:
            entries[vendor, model] = right
        else:
            providers[vendor] = right
    return Mapped(providers, entries, dict(map(_read_credit, credit_texts)))


def _read_credit(text: str) -> tuple[str, int]:
    from penstock.domain.money import parse_usd

    name, _, amount = text.partition("=")
    try:
        return name, parse_usd(amount)
    except ValueError as error:
        fail(f"--credit `{text[:100]}` is not VENDOR=USD: {error}.", "Write it like meshy=0.02.")


def _read_list(settings: "Settings", place: str) -> "tuple[ListedPrices, str]":
    from penstock.price_lists.download import name_source
    from penstock.price_lists.listed import PriceListUnreadable
    from penstock.price_lists.reading import MAX_LIST_BYTES, SHIPPED, read_list, shipped_list

    if place == SHIPPED:
        return shipped_list(), SHIPPED
    try:
        if place.startswith(("http://", "https://")):
            return read_list(asyncio.run(_download(settings, place))), name_source(place)
        with Path(place).open("rb") as file:
            return read_list(file.read(MAX_LIST_BYTES + 1)), Path(place).name[:500]
    except PriceListUnreadable as error:
        fail(str(error), "Nothing was written.")


async def _download(settings: "Settings", url: str) -> bytes:
    from penstock.price_lists.download import download_list
    from penstock.safe_fetch.fetcher import SafeFetcher

    async with SafeFetcher(settings.fetch.allow_networks, seconds=settings.fetch.seconds) as fetcher:
        return await download_list(fetcher, url)


def _ask(number: int, *, as_json: bool) -> bool:
    if as_json or sys.stdin is None or not sys.stdin.isatty():
        fail(f"Prices to write: {number}, but there is no terminal to ask.", "Repeat it with --yes.", code=1)
    return typer.confirm(f"Write {number} price{'' if number == 1 else 's'}?", err=True)


# -- printing


def _print_findings(found: "Sequence[PriceFinding]") -> None:
    if found:
        columns = ("model", "vendor", "verdict", "old to new, in USD", "from", "notes")
        print_table(columns, [_word_finding(each.describe()) for each in found])


def _word_finding(each: Mapping[str, Any]) -> tuple[str, ...]:
    shown = each["parts"] if each["verdict"] in ("new", "changed", "declared") else ()
    notes = [each["why"]] if each["why"] else []
    notes += [f"not taken over: {', '.join(each['left_out'])}"] if each["left_out"] and shown else []
    begin = (each["from"] or "")[:16] if shown else ""
    return (each["model"], each["vendor"], each["verdict"], "; ".join(map(_word_part, shown)), begin, "; ".join(notes))


def _word_part(part: Mapping[str, Any]) -> str:
    percent = "" if part["percent"] is None else f" ({part['percent']:+g} %)"
    return f"{part['name']} {part['old'] or 'unknown'} → {part['new'] or 'none'}{percent}"


def _word_place(place: Mapping[str, Any]) -> list[tuple[str, ...]]:
    coming = [{**each, "since": each["from"]} for each in place["coming"]]
    return [
        (
            place["model"],
            place["vendor"],
            _word_price(term["price"]),
            {"file": "from file", "row": "row", "vendor": "vendor"}.get(term["origin"] or "", ""),
            str(term["row"] or ""),
            (term["since"] or "")[:16],
            (term["until"] or "")[:16],
        )
        for term in [place, *coming]
    ]


def _word_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    until = (row["until"] or "")[:16]
    price = _word_price(row["price"])
    return (
        str(row["id"]), row["model"], row["vendor"], row["status"], row["from"][:16], until, price, row["source"]
    )  # fmt: skip


def _word_price(price: Mapping[str, Any] | None) -> str:
    from penstock.domain.prices import CONDITIONAL

    if price is None:
        return "unknown"
    parts = [f"{name} {amount}" for name, amount in price.items() if name not in CONDITIONAL]
    for part, unit in CONDITIONAL.items():
        parts += [f"{amount}{unit} if {name}" for name, amount in price.get(part, {}).items()]
    return ", ".join(parts) or "free"
