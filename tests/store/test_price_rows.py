"""Dated prices in the store: only added, ended by a later row, and written only by those who saw the latest."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.accounts.price_changes import add_prices, remove_price
from penstock.domain.accounts import Actor
from penstock.domain.prices import DatedPrice, Price, TokenPrice
from penstock.errors import PriceNotFound, PricesChanged
from penstock.store.connect import make_engine, transact
from penstock.store.database import RUNG
from penstock.store.queries.accounts import audit_rows
from penstock.store.queries.billing import price_rows

NOW = 1_800_000_000.0
FILM = DatedPrice(
    model="film", vendor="v", since=NOW - 5, until=None, source="s", price=Price.model_validate({"per_second": "0.40"})
)
CHAT = DatedPrice(
    model="chat",
    vendor="v",
    since=NOW + 9,
    until=NOW + 99,
    source="",
    price=TokenPrice.model_validate({"input_per_million": "0", "cached_input_per_million": "0.000000001"}),
)


def test_prices_are_read_as_written_and_never_begin_in_the_past(connection):
    connection.info[RUNG] = set()
    version = add_prices(connection, Actor.CLI, [FILM, CHAT], price_rows.read_version(connection), NOW)
    film, chat = price_rows.read(connection)
    assert (film.since, film.until, film.price, film.source, film.actor) == (NOW, None, FILM.price, "s", "cli")
    assert (chat.since, chat.until, chat.price) == (CHAT.since, CHAT.until, CHAT.price)
    assert version == price_rows.read_version(connection) == chat.id
    [last, first] = audit_rows.page(connection, None, "price.set", None, 9)
    assert (first.subject, last.subject) == ("film", "chat")


def test_a_removed_price_ends_and_keeps_its_row(connection):
    connection.info[RUNG] = set()
    before = add_prices(connection, Actor.CLI, [FILM, CHAT], price_rows.read_version(connection), NOW)
    film, chat = price_rows.read(connection)
    for _ in range(2):  # the second time changes nothing
        assert remove_price(connection, Actor.ADMIN, film.id, NOW + 3).until == NOW + 3
    assert price_rows.read_version(connection) == before + 1
    assert remove_price(connection, Actor.ADMIN, chat.id, NOW + 4).is_void()
    assert [row.price for row in price_rows.read(connection)] == [FILM.price, CHAT.price]
    with pytest.raises(PriceNotFound):
        remove_price(connection, Actor.ADMIN, 10**9, NOW)
    assert len(audit_rows.page(connection, None, "price.removed", None, 9)) == 2


def test_of_updates_that_saw_one_version_only_one_is_written(store_url):
    engine = make_engine(store_url)

    def write(number: int) -> bool:
        try:
            with transact(engine) as connection:
                connection.info[RUNG] = set()
                add_prices(connection, Actor.CLI, [FILM, CHAT], 0, NOW + number)
        except PricesChanged:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        written = list(threads.map(write, range(8)))
    with transact(engine) as connection:
        rows = price_rows.read(connection)
    engine.dispose()
    assert (written.count(True), len(rows)) == (1, 2)


def test_an_update_that_dies_leaves_nothing(store_url):
    engine = make_engine(store_url)

    def die() -> None:
        with transact(engine) as connection:
            connection.info[RUNG] = set()
            add_prices(connection, Actor.CLI, [FILM, CHAT], 0, NOW)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        die()
    with transact(engine) as connection:
        assert price_rows.read(connection) == []
        assert price_rows.read_version(connection) == 0
    engine.dispose()
