"""`penstock models`: what the settings offer, without a running server."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import (
    AsJson,
    ConfigFile,
    DataFolder,
    expected_errors,
    fail,
    load_settings,
    print_json,
    print_table,
)

if TYPE_CHECKING:  # take long to load, and `penstock --help` does not need them
    from penstock.money import Price
    from penstock.offers import Offer

app = typer.Typer(help="Show the models on offer and their params.", no_args_is_help=True)


@app.command("list")
def list_models(*, as_json: AsJson = False, data: DataFolder = None, config: ConfigFile = None) -> None:
    """List the models on offer."""
    from penstock.gateway import build_offers

    with expected_errors():
        offers = build_offers(load_settings(data, config), None).by_model.values()
    if as_json:
        print_json([_describe(offer) for offer in offers])
        return
    print_table(
        ("id", "kind", "vendors", "price", "title"),
        [
            (offer.model.id, offer.model.kind, ", ".join(_vendors(offer)), _word_price(offer.price), offer.model.title)
            for offer in offers
        ],
    )


@app.command()
def show(
    model_id: Annotated[str, typer.Argument(metavar="ID", help="The model's id.")],
    *,
    as_json: AsJson = False,
    data: DataFolder = None,
    config: ConfigFile = None,
) -> None:
    """Show one model and its params."""
    from penstock.gateway import build_offers
    from penstock.settings import nearest

    with expected_errors():
        offers = build_offers(load_settings(data, config), None).by_model
    offer = offers.get(model_id)
    if offer is None:
        fail(f"There is no model `{model_id}`.", nearest(model_id, offers), code=1)
    schema = offer.model.schema
    if as_json:
        print_json(_describe(offer) | {"params": schema, "example": dict(offer.model.example)})
        return
    typer.echo(f"{offer.model.id}: {offer.model.title} ({offer.model.kind})")
    typer.echo(f"vendors: {', '.join(_vendors(offer))}; price: {_word_price(offer.price)}\n")
    print_table(("param", "type", "default", "allowed", "meaning"), _params(schema, schema))


# -- describing an offer


def _vendors(offer: "Offer") -> list[str]:
    """Every vendor that may run it, first choice first."""
    return list(dict.fromkeys(route.vendor for route in sorted(offer.routes, key=lambda route: route.order)))


def _describe(offer: "Offer") -> dict[str, Any]:
    model = offer.model
    return {
        "id": model.id,
        "kind": model.kind,
        "title": model.title,
        "vendors": _vendors(offer),
        "price": _price_parts(offer.price),
    }


def _price_parts(price: "Price | None") -> dict[str, Any] | None:
    from penstock.money import format_usd

    if price is None:
        return None
    return {
        "per_job": format_usd(price.per_job),
        "per_second": format_usd(price.per_second),
        "per_job_if": {name: format_usd(amount) for name, amount in price.per_job_if.items()},
        "currency": "USD",
    }


def _word_price(price: "Price | None") -> str:
    """`0.20 USD + 0.40 per second + 0.10 if texture`."""
    from penstock.money import format_usd

    if price is None:
        return "unknown"
    parts = [format_usd(price.per_job)] if price.per_job else []
    parts += [f"{format_usd(price.per_second)} per second"] if price.per_second else []
    parts += [f"{format_usd(amount)} if {name}" for name, amount in price.per_job_if.items() if amount]
    return f"USD {' + '.join(parts)}" if parts else "free"


# -- reading JSON Schema

_Schema = Mapping[str, Any]


def _params(whole: _Schema, table: _Schema, prefix: str = "") -> Iterator[tuple[str, ...]]:
    """A row for each param; those of an object follow it as `file.url`."""
    required = table.get("required", ())
    for name, field in table["properties"].items():
        branches = _branches(whole, field)
        default = "required" if name in required else _word(field.get("default"))
        kinds = " or ".join(branch["type"] for branch in branches)
        allowed = _allowed(field) or "; ".join(filter(None, map(_allowed, branches)))
        yield f"{prefix}{name}", kinds, default, allowed, field.get("description", "")
        for branch in branches:
            if "properties" in branch:
                yield from _params(whole, branch, f"{prefix}{name}.")


def _branches(whole: _Schema, field: _Schema) -> list[_Schema]:
    """Every form that the field may take, but null, which means absent."""
    if "$ref" in field:
        return [whole["$defs"][field["$ref"].rpartition("/")[2]]]
    forms = field.get("anyOf") or field.get("oneOf")
    if forms is None:
        return [field]
    found = [branch for form in forms for branch in _branches(whole, form)]
    return [branch for branch in found if branch["type"] != "null"]


def _allowed(form: _Schema) -> str:
    """`4, 6, 8`, `48 to 2000000` or `at most 4000 characters`."""
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
