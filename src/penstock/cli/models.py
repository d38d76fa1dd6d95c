"""`penstock models`: the models in the settings, without a running server, and the weights of built-in models."""

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from penstock.cli.models_pull import pull_weights
from penstock.cli.options import AsJson, ConfigFile, DataFolder
from penstock.cli.printing import expected_errors, print_json, print_table
from penstock.cli.store_access import load_settings

if TYPE_CHECKING:  # slow to load, and `penstock --help` does not need them
    from penstock.domain.prices import Price, TokenPrice
    from penstock.offers.offer import ChatOffer, Offer

REQUESTS = {
    "chat": "POST /llm/chat/completions takes OpenAI's own request: see docs/chat.md.",
    "embedding": "POST /llm/embeddings takes OpenAI's own request: see docs/embeddings.md.",
    "speech": "POST /llm/audio/speech takes OpenAI's own request: see docs/speech.md.",
    "transcription": "POST /llm/audio/transcriptions takes OpenAI's own request: see docs/speech.md.",
}
"""The endpoint of models whose params are a whole request, by kind."""

app = typer.Typer(help="Show models and download the weights of built-in ones.", no_args_is_help=True)
app.command("pull")(pull_weights)


@app.command("list")
def list_models(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """List the models in the settings."""
    with expected_errors():
        offers = _load(data, config).values()
    if as_json:
        print_json([_describe(offer) for offer in offers])
        return
    rows = [(offer.id, offer.kind, ", ".join(_vendors(offer)), _word_price(offer), offer.title) for offer in offers]
    print_table(("id", "kind", "vendors", "price", "title"), rows)


@app.command()
def show(
    model_id: Annotated[str, typer.Argument(metavar="ID", help="The model's id.")],
    *,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show one model and its params."""
    from penstock.errors import ModelNotFound
    from penstock.settings.tables import nearest

    with expected_errors():
        offers = _load(data, config)
        offer = offers.get(model_id)
        if offer is None:
            raise ModelNotFound(f"There is no model `{model_id}`.", suggestion=nearest(model_id, offers))
    generation = None if offer.kind in REQUESTS else cast("Offer", offer).model
    if as_json:
        more = {"params": generation.schema, "example": dict(generation.example)} if generation else {}
        print_json(_describe(offer) | more)
        return
    typer.echo(f"{offer.id}: {offer.title} ({offer.kind})")
    typer.echo(f"vendors: {', '.join(_vendors(offer))}; price: {_word_price(offer)}\n")
    if prices := _price_rows(offer):
        print_table(("vendor", "from", "until", "price"), prices)
        typer.echo()
    if generation is None:
        typer.echo(REQUESTS[offer.kind])
    elif rows := list(list_params(generation.schema, generation.schema)):
        print_table(("param", "type", "default", "allowed", "meaning"), rows)
    else:
        typer.echo("Its params are not known here: the vendor validates them.")


# -- describing an offer


def _load(data: Path | None, config: Path | None) -> dict[str, "Offer | ChatOffer"]:
    from penstock.offers.build import build_offers

    offers = build_offers(load_settings(data, config), None)
    return {**offers.by_model, **offers.chat}


def _vendors(offer: "Offer | ChatOffer") -> list[str]:
    """Return the vendors of a model, first choice first."""
    return list(dict.fromkeys(route.vendor for route in sorted(offer.routes, key=lambda route: route.order)))


def _describe(offer: "Offer | ChatOffer") -> dict[str, Any]:
    from penstock.domain.prices import describe_schedules

    now = time.time()
    price = offer.price_at(now)
    return {
        "id": offer.id,
        "kind": offer.kind,
        "title": offer.title,
        "vendors": _vendors(offer),
        "price": None if price is None else price.describe(),
        "prices": describe_schedules(offer.prices, now),
    }


def _word_price(offer: "Offer | ChatOffer") -> str:
    return _word_one(offer.price_at(time.time()))


def _word_one(price: "Price | TokenPrice | None") -> str:
    return "unknown" if price is None else price.word()


def _price_rows(offer: "Offer | ChatOffer") -> list[tuple[str, ...]]:
    """Return each vendor's prices with their dates, or nothing if all prices are equal and constant."""
    from penstock.domain.ids import timestamp

    now = time.time()
    rows = [
        (
            vendor,
            "" if stretch.since == -math.inf else timestamp(stretch.since) or "",
            "" if stretch.until == math.inf else timestamp(stretch.until) or "",
            _word_one(stretch.price),
        )
        for vendor, schedule in offer.prices.items()
        for stretch in schedule.stretches(now)
    ]
    return rows if len({row[1:] for row in rows}) > 1 or any(row[1] or row[2] for row in rows) else []


# -- reading JSON Schema

_Schema = Mapping[str, Any]
MAX_DEPTH = 4
"""Depth to which nested objects are shown. A schema may be recursive."""


def list_params(whole: _Schema, table: _Schema, prefix: str = "") -> Iterator[tuple[str, ...]]:
    """Yield a table row for each param. Fields of an object follow it as `file.url`."""
    required = table.get("required", ())
    for name, schema in table.get("properties", {}).items():
        field = _object(schema)
        branches = _branches(whole, field)
        default = "required" if name in required else _word(field.get("default"))
        kinds = " or ".join(dict.fromkeys(kind for branch in branches for kind in _kinds(branch)))
        allowed = _allowed(field) or "; ".join(filter(None, map(_allowed, branches)))
        yield f"{prefix}{name}", kinds or "any", default, allowed, field.get("description", "")
        for branch in branches:
            if "properties" in branch and prefix.count(".") < MAX_DEPTH:
                yield from list_params(whole, branch, f"{prefix}{name}.")


def _branches(whole: _Schema, field: _Schema, depth: int = MAX_DEPTH) -> list[_Schema]:
    """Return all alternatives of a field except null, which means absent."""
    forms = [_follow(whole, field["$ref"])] if "$ref" in field else field.get("anyOf") or field.get("oneOf")
    if forms is None or not depth:
        return [field]
    found = [branch for form in forms for branch in _branches(whole, _object(form), depth - 1)]
    return [branch for branch in found if branch.get("type") != "null"]


def _follow(whole: _Schema, reference: str) -> _Schema:
    """Resolve a reference inside the schema. An external one resolves to an empty schema."""
    found = whole
    for part in reference.removeprefix("#").split("/")[1:]:
        found = _object(found.get(part))
    return found


def _object(schema: Any) -> _Schema:
    """Return a schema as a mapping. `true`, which allows anything, becomes an empty one."""
    return cast("_Schema", schema) if isinstance(schema, Mapping) else {}


def _kinds(form: _Schema) -> list[str]:
    """Return the types of a schema, from `type` or from the listed values."""
    schema = form.get("type")
    if isinstance(schema, list):
        return [kind for kind in cast("list[str]", schema) if kind != "null"]
    if isinstance(schema, str):
        return [schema]
    return ["string" if isinstance(value, str) else "any" for value in form.get("enum", ())]


def _allowed(form: _Schema) -> str:
    """Return the allowed values, such as `4, 6, 8`, `48 to 2000000` or `at most 4000 characters`."""
    if "enum" in form:
        return ", ".join(_word(value) for value in form["enum"] if value is not None)
    for low, high, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        match form.get(low), form.get(high):
            case None, None:
                continue
            case None, most:
                return f"at most {most}{unit}"
            case least, None:
                return f"{least} or more{unit}"
            case least, most:
                return f"{least} to {most}{unit}"
    return ""


def _word(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case _:
            return str(value)
