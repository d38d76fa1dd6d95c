"""`/admin/v1/prices`: the price book, the differences from a list, and dated prices of the store."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from penstock.accounts import price_changes
from penstock.domain.prices import DatedPrice, PriceRow
from penstock.errors import Detail, InvalidRequest, PriceNotFound, PricesChanged, TooManyPrices
from penstock.jobs.request import refuse
from penstock.offers.price_places import PricePlace, list_places
from penstock.offers.price_proposal import Mapped, describe_book, propose
from penstock.price_lists.download import download_list, name_source
from penstock.price_lists.listed import ListedPrices, PriceListUnreadable
from penstock.price_lists.reading import SHIPPED, read_list, shipped_list
from penstock.settings.prices import misfit
from penstock.store.database import Connection
from penstock.store.queries.billing import price_rows
from penstock.web.admin.accounts import BODY
from penstock.web.admin.auth import Administrator, administered, admit_administrator
from penstock.web.admin.price_bodies import PricePreviewBody, PricesBody, PriceWish
from penstock.web.json_bodies import describe_body, read_params
from penstock.web.responses import Json, success

router = APIRouter(tags=["Administration: prices"])

MAX_SHOWN_ROWS = 500
ROW_ID = re.compile("[0-9]{1,9}")
PRICE_BOOK = success("The prices.", "PriceBook")


@router.get("/admin/v1/prices", responses={200: PRICE_BOOK, **administered()})
async def list_prices(request: Request) -> Response:
    """List each model's price at each vendor with its origin, and the newest prices of the store."""
    return await _answer_book(await admit_administrator(request))


@router.post(
    "/admin/v1/prices/preview",
    responses={200: success("The differences.", "PricePreview"), **administered(*BODY)},
    openapi_extra=describe_body("PricePreviewBody"),
)
async def preview_prices(request: Request) -> Response:
    """Compare a list with the prices in force. Nothing is written."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, PricePreviewBody)
    listed, source = await _read_list(admin, body)
    await admin.gateway.prices.learn()
    effective = max(admin.now, body.effective or admin.now)
    found = propose(admin.gateway.offers, listed, effective, _read_mapping(body))
    answer = {
        "object": "price_preview",
        "version": admin.gateway.prices.version,
        "form": listed.form,
        "source": source,
        "findings": [each.describe() for each in found],
    }
    return Json(answer)


@router.post(
    "/admin/v1/prices",
    responses={200: PRICE_BOOK, **administered(*BODY, PricesChanged, TooManyPrices)},
    openapi_extra=describe_body("PricesBody"),
)
async def add_prices(request: Request) -> Response:
    """Write dated prices. Running servers and workers use them within two seconds."""
    admin = await admit_administrator(request)
    body, _ = await read_params(request, PricesBody)
    await admin.gateway.prices.learn()
    if details := list(_find_problems(list_places(admin.gateway.offers), body.prices, admin.now)):
        raise refuse(details)
    entries = [_make_dated(wish, admin.now) for wish in body.prices]

    def add(connection: Connection, actor: str) -> None:
        price_changes.add_prices(connection, actor, entries, body.version, admin.now)

    await admin.do(add)
    return await _answer_book(admin)


@router.delete(
    "/admin/v1/prices/{price_id}",
    responses={200: success("The price, which has ended.", "PriceRowShape"), **administered(PriceNotFound)},
)
async def remove_price(price_id: Annotated[str, Path(description="the id of a row")], request: Request) -> Response:
    """End a price of the store now. The cost of earlier requests and of accepted jobs stays."""
    admin = await admit_administrator(request)

    row_id = int(price_id) if ROW_ID.fullmatch(price_id) else 0  # no row has this id

    def remove(connection: Connection, actor: str) -> PriceRow:
        return price_changes.remove_price(connection, actor, row_id, admin.now)

    row = await admin.do(remove)
    await admin.gateway.prices.learn()
    return Json(price_changes.describe_row(row, admin.now))


# -- lists


async def _read_list(admin: Administrator, body: PricePreviewBody) -> tuple[ListedPrices, str]:
    """Return the list of a preview and its name as a source. Reading is done in a thread."""
    if (body.place is None) == (body.text is None):
        raise InvalidRequest("Send either `from` or `text`.", param="from")
    if body.place == SHIPPED:
        return await asyncio.to_thread(shipped_list), SHIPPED
    try:
        if body.place is None:
            return await asyncio.to_thread(read_list, (body.text or "").encode("utf-8", "replace")), "text"
        raw = await download_list(await admin.gateway.open_fetcher(), body.place)
        return await asyncio.to_thread(read_list, raw), name_source(body.place)
    except PriceListUnreadable as error:
        raise InvalidRequest(str(error), param="text" if body.place is None else "from") from None


def _read_mapping(body: PricePreviewBody) -> Mapped:
    entries = dict[tuple[str, str], str]()
    for place, entry in (body.entries or {}).items():
        vendor, slash, model = place.partition("/")
        if not slash:
            raise InvalidRequest(f"`{place[:100]}` is not `vendor/model`.", param="entries")
        entries[vendor, model] = entry
    return Mapped(body.providers or {}, entries, body.credits or {})


# -- prices


def _find_problems(places: Sequence[PricePlace], wishes: Sequence[PriceWish], now: float) -> Iterator[Detail]:
    """Yield the reason for each price that cannot be in force here."""
    known = {(place.model, place.vendor): place for place in places}
    for number, wish in enumerate(wishes):
        place, since = known.get((wish.model, wish.vendor)), max(now, wish.since or now)
        if place is None:
            message = f"Vendor `{wish.vendor[:100]}` runs no model `{wish.model[:100]}` here."
            yield Detail(f"prices.{number}.model", message)
            continue
        if wrong := misfit(wish.price, place.kind):
            yield Detail(f"prices.{number}.price", f"The price {wrong[0]}. {wrong[1]}")
        if wish.until is not None and wish.until <= since:
            yield Detail(f"prices.{number}.until", "Input should be after `from` and after now.")
        term = place.term_at(since)
        if term is not None and term.origin.is_file:
            message = "The settings file declares this price, which applies. Change it there."
            yield Detail(f"prices.{number}.model", message)


def _make_dated(wish: PriceWish, now: float) -> DatedPrice:
    return DatedPrice(
        model=wish.model,
        vendor=wish.vendor,
        since=wish.since or now,
        until=wish.until,
        price=wish.price,
        source=wish.source,
    )


async def _answer_book(admin: Administrator) -> Response:
    await admin.gateway.prices.learn()
    rows = await admin.look(price_rows.read)
    return Json(
        {
            "object": "price_book",
            "version": admin.gateway.prices.version,
            "prices": describe_book(admin.gateway.offers, admin.now),
            "rows": [price_changes.describe_row(row, admin.now) for row in rows[: -MAX_SHOWN_ROWS - 1 : -1]],
        }
    )
