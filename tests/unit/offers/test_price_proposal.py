"""Differences between a list and the prices here: matched by vendor and model, explained where there is none."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.prices import Price, PriceRow, TokenPrice, write_price
from penstock.offers.build import build_offers
from penstock.offers.offer import Offers
from penstock.offers.price_places import count_unpriced
from penstock.offers.price_proposal import Mapped, PriceFinding, count_drift, describe_book, propose
from penstock.price_lists.reading import read_list
from penstock.settings.tables import load

NOW = time.time()
DAY = 86_400.0
SERVED = """
[vendors.open]
type = "openai_compatible"
[vendors.proxy]
type = "openai_compatible"
base_url = "http://127.0.0.1:9/v1"
[vendors.own]
type = "sim"
[vendors.runway]
type = "runway"
api_key = "key_x"
[[models]]
id = "smart"
vendor = "open"
model = "gpt"
[[models]]
id = "filed"
vendor = "open"
price = {input_per_million = "1", output_per_million = "2"}
[[models]]
id = "behind"
vendor = "proxy"
[[models]]
id = "vendorb_video_31"
vendor = "own"
[[models]]
id = "runway_gen45_text_to_video"
vendor = "runway"
"""
COSTS = {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2e-6, "output_cost_per_token": 4e-6}


def row(model: str = "smart", **fields: Any) -> PriceRow:
    price = TokenPrice.model_validate({"input_per_million": "1", "output_per_million": "4"})
    given = {"since": NOW - DAY, "until": None, "source": "", "actor": "cli", "created_at": 0.0, "ended_at": None}
    return PriceRow(**{"id": 1, "model": model, "vendor": "open", "price": price, **given, **fields})


def offers_of(folder: Path, *rows: PriceRow) -> Offers:
    config = folder / "penstock.toml"
    config.write_text(SERVED)
    return build_offers(load(config, {}, {"data": folder}), None, rows=rows)


def found(offers: Offers, document: Any, *mapped: Any) -> dict[str, PriceFinding]:
    return {each.model: each for each in propose(offers, read_list(json.dumps(document).encode()), NOW, *mapped)}


def test_each_place_gets_one_verdict(tmp_path):
    offers = offers_of(tmp_path, row())
    each = found(offers, {"gpt": COSTS, "filed": COSTS})
    assert {model: finding.verdict.value for model, finding in each.items()} == {
        "smart": "changed",
        "filed": "declared",
        "behind": "unmapped",
        "runway_gen45_text_to_video": "unlisted",
    }  # the simulator is free, and not mentioned
    [part] = each["smart"].describe()["parts"]
    assert part == {"name": "input_per_million", "old": "1.00", "new": "2.00", "percent": 100.0}
    assert each["filed"].dated("list") is None
    assert each["smart"].dated("list").since == NOW


def test_a_price_that_is_here_already_is_not_written_again(tmp_path):
    costs = {**COSTS, "input_cost_per_token": 1e-6}
    each = found(offers_of(tmp_path, row()), {"gpt": costs})
    assert each["smart"].verdict == "same"
    assert each["smart"].dated("list") is None


def test_mapping_by_hand(tmp_path):
    mapped = Mapped({"proxy": "openai"}, {("open", "smart"): "other", ("runway", "runway_gen45_text_to_video"): "none"})
    each = found(offers_of(tmp_path), {"behind": COSTS, "other": COSTS, "gpt": COSTS}, mapped)
    assert (each["behind"].verdict, each["behind"].entry) == ("new", "behind")
    assert (each["smart"].verdict, each["smart"].entry) == ("new", "other")
    assert "no entry `none`" in each["runway_gen45_text_to_video"].why


def test_credits_need_the_price_of_one(tmp_path):
    entry = {"provider": "runwayml", "model": "gen4.5", "unit": "credit", "source": "its page"}
    prices = [{**entry, "price": {"per_job": "3", "per_second": "12", "per_job_if": {"audio": "0.000000001"}}}]
    name = "runway_gen45_text_to_video"
    without = found(offers_of(tmp_path), {"prices": prices})[name]
    assert (without.verdict, without.dated("list")) == ("credits", None)
    assert "12 per_second" in without.why
    for named in ("runway", "runwayml"):
        made = found(offers_of(tmp_path), {"prices": prices}, Mapped({}, {}, {named: 15_000_000}))[name]
        dated = made.dated("list")
        assert made.verdict == "new"
        assert dated.source == "its page; a credit at USD 0.015"
        assert write_price(dated.price) == {
            "per_job": "0.045",
            "per_second": "0.18",
            "per_job_if": {"audio": "0.000000001"},  # rounded up
        }


def test_several_prices_are_ambiguous_and_a_wrong_kind_is_unusable(tmp_path):
    prices = [{"provider": "openai", "model": "gpt", "price": {"input_per_million": amount}} for amount in ("1", "2")]
    prices += [{"model": "runway_gen45_text_to_video", "price": {"input_per_million": "1"}}]
    each = found(offers_of(tmp_path), {"prices": prices})
    assert each["smart"].verdict == "ambiguous"
    assert each["runway_gen45_text_to_video"].verdict == "unusable"
    assert each["smart"].dated("list") is None


def test_dated_entries_begin_on_their_day_and_past_ones_now(tmp_path):
    def entry(since: float, amount: str, **more: Any) -> dict[str, Any]:
        day = time.strftime("%Y-%m-%d", time.gmtime(since))
        return {"model": "smart", "from": day, "price": {"input_per_million": amount}, **more}

    prices = [entry(NOW - 9 * DAY, "1"), entry(NOW - 3 * DAY, "2"), entry(NOW + 9 * DAY, "3")]
    prices += [entry(NOW - 2 * DAY, "9", until=time.strftime("%Y-%m-%d", time.gmtime(NOW - DAY)))]
    text = json.dumps({"prices": prices}).encode()
    every = [each for each in propose(offers_of(tmp_path), read_list(text), NOW) if each.model == "smart"]
    assert [each.describe()["new"] for each in every] == [{"input_per_million": "2.00"}, {"input_per_million": "3.00"}]
    assert every[0].since == NOW
    assert every[1].since > NOW


@pytest.mark.parametrize(
    ("rows", "price"),
    [
        ([row()], "1.00"),
        ([row(), row(id=2)], "1.00"),
        ([row(until=NOW - 1)], None),
        ([row(since=NOW + 1)], None),
        ([row(vendor="proxy")], None),
        ([row(model="filed")], None),
    ],
)
def test_rows_count_where_the_settings_are_silent(tmp_path, rows, price):
    offers = offers_of(tmp_path, *rows)
    book = {each["model"]: each for each in describe_book(offers, NOW)}
    shown = book["smart"]["price"]
    assert (shown and shown["input_per_million"]) == price
    known = offers.chat["smart"].ceiling_price(NOW)
    assert (known is not None) == (price is not None)
    assert book["filed"]["origin"] == "file"
    assert count_unpriced(offers, NOW) == 2 + (price is None)


def test_a_row_of_the_wrong_kind_does_not_count(tmp_path):
    offers = offers_of(tmp_path, row(model="runway_gen45_text_to_video", vendor="runway"))
    assert offers.by_model["runway_gen45_text_to_video"].price_at(NOW) is None


def test_drift_is_counted_by_origin(tmp_path):
    price = Price.model_validate({"per_second": "0.10"})
    offers = offers_of(tmp_path, row(model="runway_gen45_text_to_video", vendor="runway", price=price))
    assert [count_drift(offers, NOW, origin) for origin in ("file", "row", "vendor")] == [0, 1, 0]
    same = Price.model_validate({"per_second": "0.12"})
    offers = offers_of(tmp_path, row(model="runway_gen45_text_to_video", vendor="runway", price=same))
    assert count_drift(offers, NOW, "row") == 0
