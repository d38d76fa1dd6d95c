"""`[[prices]]` in the settings: what is taken, which counts when, and where each mistake is told."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from penstock.domain.money import format_usd
from penstock.domain.prices import Price
from penstock.offers.build import build_offers
from penstock.offers.offer import Offers
from penstock.settings.prices import parse_moment
from penstock.settings.problems import SettingsError
from penstock.settings.tables import load

MARCH = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
DAY = 86_400.0
FILM = "vendorb_video_31"
FIGURE = "vendora_image_to_model"
SERVED = f"""
[vendors.one]
type = "sim"
[vendors.two]
type = "sim"
[vendors.talk]
type = "openai_compatible"
[[models]]
id = "{FILM}"
routes = [{{vendor = "one"}}, {{vendor = "two"}}]
price = {{per_job = "7"}}
[[models]]
id = "{FIGURE}"
vendor = "one"
[[models]]
id = "fast-chat"
vendor = "talk"
"""


def offers_of(folder: Path, toml: str) -> Offers:
    config = folder / "penstock.toml"
    config.write_text(SERVED + toml)
    return build_offers(load(config, {}, {"data": folder}), None)


# -- moments


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ('"2026-03-01"', MARCH),
        ("2026-03-01", MARCH),
        ('"2026-03-01T09:30:00Z"', MARCH + 34_200),
        ("2026-03-01T09:30:00Z", MARCH + 34_200),
        ('"2026-03-01T09:30:00+02:00"', MARCH + 27_000),
        ("2026-03-01 09:30:00+02:00", MARCH + 27_000),
        ('"2026-03-01t09:30:00.25z"', MARCH + 34_200.25),
    ],
)
def test_a_moment_is_a_date_or_a_time_with_its_offset(tmp_path, text, moment):
    found = offers_of(tmp_path, f'[[prices]]\nmodel = "{FILM}"\nfrom = {text}\nprice = {{per_job = "1"}}\n')
    assert [start for start in found.by_model[FILM].prices["one"].starts if start > -math.inf] == [moment]


@pytest.mark.parametrize(
    "value",
    [
        *("", "soon", "2026", "2026-3-1", "20260301", "2026-W09-7", "2026-02-30", "2026-03-01T09:30:00"),
        *("2026-03-01T25:00:00Z", "2026-03-01T09:30Z", "0001-01-01T00:00:00+14:00", " 2026-03-01", "2026-03-0\u0661"),
        *(datetime(2026, 3, 1), 5, 5.0, True, None, [], {}),  # noqa: DTZ001  TOML has such, and they say too little
    ],
)
def test_what_is_no_moment_is_refused(value):
    with pytest.raises(ValueError, match="a moment is a date"):
        parse_moment(value)


# -- which counts


def test_the_most_specific_in_force_counts_then_the_models_then_the_vendors(tmp_path):
    offer = offers_of(
        tmp_path,
        f"""
        [[prices]]
        model = "{FILM}"
        from = "2026-03-02"
        until = "2026-03-09"
        price = {{per_job = "2"}}
        [[prices]]
        model = "{FILM}"
        from = "2026-03-04"
        until = "2026-03-06"
        price = {{per_job = "3"}}
        [[prices]]
        model = "{FILM}"
        vendor = "two"
        from = 2026-03-03
        until = 2026-03-05T12:00:00Z
        price = {{per_job = "1"}}
        [[prices]]
        model = "{FIGURE}"
        price = {{per_thousand_faces = "0.1"}}
        """,
    ).by_model
    days = {
        vendor: [usd(offer[FILM].price_of(vendor, MARCH + day * DAY)) for day in range(10)] for vendor in ("one", "two")
    }
    assert days["one"] == ["7.00", "2.00", "2.00", "3.00", "3.00", "2.00", "2.00", "2.00", "7.00", "7.00"]
    assert days["two"] == ["7.00", "2.00", "1.00", "1.00", "1.00", "2.00", "2.00", "2.00", "7.00", "7.00"]
    assert usd(offer[FILM].price_of("two", MARCH + 4.5 * DAY - 0.001)) == "1.00"
    assert usd(offer[FILM].price_of("two", MARCH + 4.5 * DAY)) == "3.00"
    assert [offer[FILM].ceiling({}, MARCH + day * DAY) for day in (0, 2, 4)] == [7 * 10**9, 2 * 10**9, 3 * 10**9]
    figure = offer[FIGURE]
    assert figure.ceiling({"face_limit": 1000}, 0.0) == 10**8
    assert figure.ceiling({"model_version": "P1-20260311"}, 0.0) == 20 * 10**8, "the most that the version makes"
    assert figure.ceiling({}, 0.0) == 1500 * 10**8
    assert figure.quote({}, 0.0).formulas == {"one": {"per_thousand_faces": "0.10", "faces": 1_500_000}}


def usd(price: Price | None) -> str:
    assert price is not None
    return format_usd(price.per_job)


def test_a_chat_price_may_differ_by_vendor_and_day(tmp_path):
    offer = offers_of(
        tmp_path,
        """
        [[prices]]
        model = "fast-chat"
        until = "2026-03-02"
        price = {per_request = "0.01"}
        [[prices]]
        model = "fast-chat"
        vendor = "talk"
        from = "2026-03-01"
        price = {input_per_million = "1", cached_input_per_million = "2", reasoning_per_million = "3"}
        """,
    ).chat["fast-chat"]
    before, after = offer.price_of("talk", MARCH - 1), offer.price_of("talk", MARCH)
    assert before is not None
    assert after is not None
    assert (before.per_request, before.input_per_million) == (10**7, 0)
    assert (after.per_request, after.input_per_million) == (0, 10**9)
    ceiling = offer.ceiling_price(MARCH)
    assert ceiling is not None
    assert (ceiling.input_per_million, ceiling.output_per_million) == (2 * 10**9, 3 * 10**9)


entries = some.lists(
    some.tuples(some.sampled_from([None, "one", "two"]), some.none() | some.integers(1, 8), some.integers(1, 9)),
    max_size=6,
    unique_by=lambda entry: (entry[0], entry[1]),
)


@given(entries, some.integers(0, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
def test_of_any_list_the_latest_begun_counts_and_a_vendors_own_first(tmp_path, listed, day):
    toml = "".join(
        f'[[prices]]\nmodel = "{FILM}"\nprice = {{per_job = "{amount}"}}\n'
        + ("" if vendor is None else f"vendor = {json.dumps(vendor)}\n")
        + ("" if since is None else f"from = 2026-03-0{since + 1}\n")
        for vendor, since, amount in listed
    )
    offer = offers_of(tmp_path, toml).by_model[FILM]
    for name in ("one", "two"):
        begun = [
            (vendor == name, since or 0, amount)
            for vendor, since, amount in listed
            if vendor in (None, name) and (since or 0) <= day
        ]
        expected = max(begun)[2] if begun else 7
        assert usd(offer.price_of(name, MARCH + day * DAY)) == f"{expected}.00"


# -- mistakes

ENTRY = f'[[prices]]\nmodel = "{FILM}"\nprice = {{per_job = "1"}}\n'
MISTAKES = {
    "an unknown model": (
        '[[prices]]\nmodel = "vendorb_vidoe_31"\nprice = {per_job = "1"}\n',
        ":19 [[prices]] 1 model",
        "no model `vendorb_vidoe_31`",
        f"`{FILM}`",
    ),
    "a model that is not served": (
        '[[prices]]\nmodel = "sim_text_to_video"\nprice = {per_job = "1"}\n',
        ":19 [[prices]] 1 model",
        "no model",
        FILM,
    ),
    "an unknown vendor": (ENTRY + 'vendor = "onee"\n', ":21 [[prices]] 1 vendor", "no vendor `onee`", "`one`"),
    "a vendor that does not run it": (
        ENTRY + 'vendor = "talk"\n',
        ":21 [[prices]] 1 vendor",
        f"`talk` does not run `{FILM}`",
        "one, two",
    ),
    "a chat price of a film": (
        f'[[prices]]\nmodel = "{FILM}"\nprice = {{per_request = "1"}}\n',
        ":20 [[prices]] 1 price",
        "price of a media model",
        "per_thousand_faces",
    ),
    "a film's price of a chat model": (
        '[[prices]]\nmodel = "fast-chat"\nprice = {per_job = "1"}\n',
        ":20 [[prices]] 1 price",
        "price of a chat model",
        "reasoning_per_million",
    ),
    "pictures of a film": (
        f'[[prices]]\nmodel = "{FILM}"\nprice = {{per_image = "1"}}\n',
        ":20 [[prices]] 1 price",
        "kind image, and this one is of kind video",
        "per_second",
    ),
    "faces of a film": (
        f'[[prices]]\nmodel = "{FILM}"\nprice = {{per_thousand_faces = "1"}}\n',
        ":20 [[prices]] 1 price",
        "kind 3d",
        "per_second",
    ),
    "an end before the beginning": (
        ENTRY + "from = 2026-03-02\nuntil = 2026-03-01\n",
        ":22 [[prices]] 1 until",
        "not after `from`",
        "Correct",
    ),
    "an end at the beginning": (
        ENTRY + 'until = 2026-03-01\nfrom = "2026-03-01T00:00:00Z"\n',
        ":21 [[prices]] 1 until",
        "not after `from`",
        "Correct",
    ),
    "the same twice": (ENTRY * 2, ":21 [[prices]] 2 from", "the same `model`, `vendor` and `from`", "Remove"),
    "the same moment twice": (
        (ENTRY + 'vendor = "one"\nfrom = 2026-03-01\n') * 2,
        ":27 [[prices]] 2 from",
        "the same",
        "another time",
    ),
    "no moment": (ENTRY + 'from = "soon"\n', ":21 [[prices]] 1 from", "a moment is a date", "when it begins"),
    "a local time": (ENTRY + "from = 2026-03-01T09:00:00\n", ":21 [[prices]] 1 from", "offset", "when it begins"),
    "no model": ('[[prices]]\nprice = {per_job = "1"}\n', ":18 [[prices]] 1 model", "is missing", "model"),
    "no price": (f'[[prices]]\nmodel = "{FILM}"\n', ":18 [[prices]] 1 price", "is missing", "price"),
    "another name": (ENTRY + "form = 2026-03-01\n", ":21 [[prices]] 1 form", "is not a setting", "`from`"),
    "our own name of it": (ENTRY + "since = 2026-03-01\n", ":21 [[prices]] 1 since", "is not a setting", "Did you"),
    "a wrong amount": (
        f'[[prices]]\nmodel = "{FILM}"\n[prices.price]\nper_job = "-1"\n',
        ":21 [[prices]] 1 price.per_job",
        "an amount is",
        "Correct",
    ),
    "no list": ("[prices]\n", ":18 prices", "should be a list", "[[prices]]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_tells_its_place_and_its_remedy(mistake, tmp_path):
    toml, where, what, remedy = MISTAKES[mistake]
    with pytest.raises(SettingsError) as caught:
        offers_of(tmp_path, toml)
    (problem,) = caught.value.problems
    assert problem.where.removeprefix(f"{tmp_path}/penstock.toml") == where
    assert what in problem.what
    assert remedy in problem.remedy


def test_all_mistakes_are_told_at_once(tmp_path):
    with pytest.raises(SettingsError) as caught:
        offers_of(tmp_path, MISTAKES["an unknown model"][0] + MISTAKES["an unknown vendor"][0] + ENTRY)
    assert [problem.where.partition(" ")[2] for problem in caught.value.problems] == [
        "[[prices]] 1 model",
        "[[prices]] 2 vendor",
    ]


def test_equal_settings_have_equal_fingerprints(tmp_path):
    def fingerprint(toml: str) -> str:
        config = tmp_path / "penstock.toml"
        config.write_text(SERVED + toml)
        return load(config, {}, {"data": tmp_path}).fingerprint

    assert fingerprint(ENTRY + "from = 2026-03-01\n") == fingerprint(ENTRY + 'from = "2026-03-01T01:00:00+01:00"\n')
    assert fingerprint(ENTRY + "from = 2026-03-01\n") != fingerprint(ENTRY + "from = 2026-03-02\n")
