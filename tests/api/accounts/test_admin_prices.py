"""Prices over the admin API: compared, written, followed by every process, and ended; accepted jobs keep theirs."""

import asyncio
import json
from typing import Any

from admin_steps import WITH_ADMIN, administer, call, changes
from conftest import MODEL, VIDEO, Server
from steps import order

from penstock.accounts.price_changes import add_prices
from penstock.domain.accounts import Actor
from penstock.store.database import Connection
from penstock.store.queries.billing import price_rows

FILED = f'{WITH_ADMIN}[[models]]\nid = "{VIDEO}"\nvendor = "sim"\n[[models]]\nid = "{MODEL}"\nvendor = "sim"\n'
FILED += f'[[prices]]\nmodel = "{VIDEO}"\nprice = {{per_second = "0.40"}}\n'


def wish(price: str, model: str = MODEL, **fields: Any) -> dict[str, Any]:
    return {"model": model, "vendor": "sim", "price": {"per_job": price}, **fields}


async def price_at(server: Server, model: str = MODEL) -> str:
    record = (await server.client.get(f"/api/v1/models/{model}")).json()
    return record["price"]["per_job"]


async def until_price(server: Server, price: str) -> None:
    """Another process follows a change by itself."""
    async with asyncio.timeout(60):
        while await price_at(server) != price:  # noqa: ASYNC110  a server tells nobody that it has followed
            await asyncio.sleep(0.02)


async def test_a_price_is_compared_written_followed_and_ended(start):
    server = await start(FILED)
    other = await start(FILED)  # another process on this store
    admin = await administer(server)
    listed = json.dumps({"prices": [{"model": MODEL, "price": {"per_job": "0.30"}}]})
    seen = await call(admin, "POST", "/prices/preview", {"text": listed})
    [found] = [each for each in seen["findings"] if each["model"] == MODEL]
    assert (found["verdict"], found["new"], found["parts"][0]["old"]) == ("changed", {"per_job": "0.30"}, "0.00")
    assert await price_at(server) == "0.00"  # nothing is written yet
    job = await order(server.client, {"latency": 600})
    book = await call(admin, "POST", "/prices", {"version": seen["version"], "prices": [wish("0.30")]})
    assert await price_at(server) == "0.30"
    await until_price(other, "0.30")
    [row] = book["rows"]
    assert (row["status"], row["actor"], row["price"]) == ("in_force", "admin", {"per_job": "0.30"})
    [place] = [each for each in book["prices"] if each["model"] == MODEL]
    assert (place["origin"], place["row"]) == ("row", row["id"])
    record = (await server.client.get(f"/api/v1/jobs/{job['id']}")).json()
    assert record["cost"]["estimated"] == "0.00"  # accepted before
    await server.client.post(f"/api/v1/jobs/{job['id']}/cancel")
    late = await call(admin, "POST", "/prices", {"version": seen["version"], "prices": [wish("0.50")]}, 409)
    assert late["error"]["code"] == "prices_changed"
    ended = await call(admin, "DELETE", f"/prices/{row['id']}")
    assert ended["status"] == "ended"
    await until_price(other, "0.00")
    assert [each["action"] for each in await changes(admin) if each["subject"] == MODEL] == [
        "price.removed",
        "price.set",
    ]


async def test_prices_that_cannot_be_in_force_are_refused(start):
    server = await start(FILED)
    admin = await administer(server)
    wrong = [
        wish("1", "surprise"),
        wish("1", VIDEO),  # the settings declare it
        wish("1", until="2020-01-01"),
        {"model": MODEL, "vendor": "sim", "price": {"input_per_million": "1"}},
    ]
    refused = await call(admin, "POST", "/prices", {"version": 0, "prices": wrong}, 400)
    fields = [detail["loc"] for detail in refused["error"]["details"]]
    assert fields == ["prices.0.model", "prices.1.model", "prices.2.until", "prices.3.price"]
    for price in ({"per_job": "-1"}, {"per_job": "x"}, {"surprise": "1"}, 5):
        body = {"version": 0, "prices": [{"model": MODEL, "vendor": "sim", "price": price}]}
        assert (await call(admin, "POST", "/prices", body, 400))["error"]["param"] == "prices.0.price"
    for body in (
        {},
        {"from": "shipped", "text": ""},
        {"text": "{"},
        {"from": "http://127.0.0.1/x"},
        {"from": "ftp://x"},
    ):
        error = (await call(admin, "POST", "/prices/preview", body, 400))["error"]
        assert error["param"] in ("from", "text")
    assert (await call(admin, "DELETE", "/prices/99", status=404))["error"]["code"] == "price_not_found"
    assert (await call(admin, "GET", "/prices"))["rows"] == []
    assert (await call(server.client, "GET", "/prices", status=403))["error"]["code"] == "scope_not_allowed"


async def test_a_row_that_this_version_cannot_read_does_not_count(start):
    server = await start(FILED)
    admin = await administer(server)
    book = await call(admin, "POST", "/prices", {"version": 0, "prices": [wish("0.30")]})

    def spoil(connection: Connection) -> None:
        [row] = price_rows.read(connection)
        add_prices(connection, Actor.CLI, [row], book["version"], 0.0)
        connection.exec_driver_sql('UPDATE prices SET price = CAST(\'{"per_moon": "1"}\' AS BLOB) WHERE position = 1')

    await server.gateway.database.write(spoil)
    shown = await call(admin, "GET", "/prices")
    assert [row["id"] for row in shown["rows"]] == [2]
    assert await price_at(server) == "0.30"
