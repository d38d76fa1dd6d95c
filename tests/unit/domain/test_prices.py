"""A price is what its formula says: a ceiling before, never more after, exact, and of the moment it was asked at."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from msgspec.structs import replace as replace_counts
from store.sample_jobs import NOW, make_asset, make_job

from penstock.catalog import image_to_model, simulated, text_to_video
from penstock.catalog.schema_params import largest_of
from penstock.domain import jobs
from penstock.domain.chat import MOST_TOKENS, Usage
from penstock.domain.jobs import State
from penstock.domain.money import NANOS, format_usd
from penstock.domain.prices import (
    CONDITIONAL,
    FREE,
    MAX_FACES,
    MAX_PICTURES,
    MAX_SECONDS,
    MOST,
    Price,
    PriceSchedule,
    Term,
    TokenPrice,
    combine,
    dearest,
    dearest_tokens,
    describe_schedules,
    make_schedule,
    token_ceiling,
)
from penstock.offers.build import build_offers
from penstock.offers.offer import Offer
from penstock.settings.tables import load
from penstock.vendor_api.generation import ServedModel
from penstock.vendors.sim import Sim

amounts = some.integers(0, 10**7)


@dataclass(frozen=True)
class Result:
    """What a price asks of an output."""

    kind: str = "video"
    role: str = "primary"
    duration_seconds: float | None = None
    faces: int | None = None


def price_of(**parts: Any) -> Price:
    return Price.model_validate(parts)


def usd(nanos: int | None) -> str | None:
    return None if nanos is None else format_usd(nanos)


# -- what a job costs at most


def test_a_price_adds_the_job_its_seconds_and_what_its_params_ask_for():
    price = price_of(per_job="0.20", per_second="0.40", per_job_if={"texture": "0.10"})
    assert usd(price.of({"durationSeconds": 8})) == "3.40"
    assert usd(price.of({"durationSeconds": 8, "texture": True})) == "3.50"
    assert usd(price.of({"durationSeconds": 8, "texture": False})) == "3.40"
    assert FREE.of({"durationSeconds": 8, "texture": True}) == 0


def test_seconds_and_pictures_cost_more_under_their_conditions():
    film = price_of(per_second="0.40", per_second_if={"resolution=4k": "0.20", "audio": "0.01"}, seconds=8)
    assert usd(film.of({"duration": 5, "resolution": "720p"})) == "2.00"
    assert usd(film.of({"duration": 5, "resolution": "4k", "audio": True})) == "3.05"
    assert usd(film.final({"duration": 5, "resolution": "4k"}, [Result(duration_seconds=3.0)])) == "1.80"
    picture = price_of(per_image_if={"resolution=2K": "0.10"})
    assert [picture.of({"n": 3, "resolution": size}) for size in ("1K", "2K")] == [0, 3 * NANOS // 10]


def test_seconds_that_cost_only_under_a_condition_must_be_known_only_then():
    price = price_of(per_second_if={"audio": "0.10"})
    assert price.of({"audio": False}) == 0
    assert price.of({"audio": True}) is None
    assert usd(price.bounded(seconds=10).of({"audio": True})) == "1.00"


@given(some.integers(0, 10**12), some.integers(0, 10**12), some.integers(1, 8))
def test_seconds_are_never_rounded_away(per_job, per_second, seconds):
    price = price_of(per_job=format_usd(per_job), per_second=format_usd(per_second))
    assert price.of({"durationSeconds": seconds}) == per_job + seconds * per_second


PER_SECOND = price_of(per_job="0.10", per_second="1")
NUMBERS = [(8, 8), ("8", 8), ("8s", 8), (7.2, 8), ("7.2s", 8), (1e300, None), (10**400, None), ("inf", None)]
NO_NUMBERS = [0, -5, "-5s", True, "long", [8], {}, "", "s", math.nan, "nan", "-inf", "auto", None, 10**5000]


@pytest.mark.parametrize("name", ["durationSeconds", "duration", "seconds", "duration_seconds"])
@pytest.mark.parametrize(("told", "seconds"), NUMBERS, ids=lambda value: str(value)[:12])
def test_seconds_are_found_by_any_name_and_never_out_of_bounds(name, told, seconds):
    assert PER_SECOND.of({name: told}) == NANOS // 10 + (seconds or MAX_SECONDS) * NANOS


@pytest.mark.parametrize("told", NO_NUMBERS, ids=lambda value: repr(value)[:12] if value != 10**5000 else "vast")
def test_seconds_that_the_params_do_not_tell_are_the_longest_there_are_and_else_not_known(told):
    assert PER_SECOND.of({"duration": told}) is None
    assert PER_SECOND.of({}) is None
    bounded = PER_SECOND.model_copy(update={"seconds": 10})
    assert usd(bounded.of({"duration": told})) == "10.10"


def test_of_several_names_the_largest_counts():
    assert usd(PER_SECOND.of({"durationSeconds": 1, "duration": "8s", "seconds": 4})) == "8.10"
    assert usd(price_of(per_image="1").of({"n": 1, "num_images": 4})) == "4.00"


@pytest.mark.parametrize("name", ["n", "num_images", "numberOfImages", "num_outputs", "sampleCount"])
@pytest.mark.parametrize(
    ("told", "pictures"), [(4, 4), ("4", 4), (0, 1), (None, 1), ("many", 1), (True, 1), (1e9, MAX_PICTURES)], ids=str
)
def test_pictures_are_one_if_nothing_else_is_asked(name, told, pictures):
    assert price_of(per_job="0.10", per_image="0.03").of({name: told}) == NANOS // 10 + pictures * 3 * NANOS // 100


@pytest.mark.parametrize(("faces", "cost"), [(1000, "0.005"), (1, "0.000005"), (1500, "0.0075"), (48, "0.00024")])
def test_faces_are_those_of_the_limit_by_the_thousand(faces, cost):
    assert usd(price_of(per_thousand_faces="0.005").of({"face_limit": faces})) == cost


def test_part_of_a_thousand_faces_is_rounded_up_to_the_next_nano():
    price = price_of(per_thousand_faces="0.000000001")
    assert [price.of({"face_limit": faces}) for faces in (1, 999, 1000, 1001)] == [1, 1, 1, 2]


def test_faces_without_a_limit_are_the_most_there_may_be_and_else_not_known():
    price = price_of(per_thousand_faces="0.01")
    assert price.of({}) is None
    assert usd(price_of(per_thousand_faces="0.01", faces=20_000).of({})) == "0.20"
    assert usd(price.bounded(faces=50_000).of({})) == "0.50"
    assert usd(price_of(per_thousand_faces="0.01", faces=20_000).bounded(faces=50_000).of({})) == "0.50"
    assert price.bounded(faces=10 * MAX_FACES).of({}) == MAX_FACES // 1000 * NANOS // 100


@pytest.mark.parametrize(
    ("condition", "params", "applies"),
    [
        ("texture", {"texture": True}, True),
        ("texture", {"texture": "detailed"}, True),
        ("texture", {"texture": False}, False),
        ("texture", {"texture": 0}, True),
        ("texture", {}, False),
        ("quality=high", {"quality": "high"}, True),
        ("quality=high", {"quality": "highest"}, False),
        ("quality=high", {}, False),
        ("audio=true", {"audio": True}, True),
        ("audio=true", {"audio": False}, False),
        ("audio=false", {"audio": False}, True),
        ("audio=false", {}, False),
        ("seconds=10", {"seconds": 10}, True),
        ("seconds=10", {"seconds": 10.0}, True),
        ("seconds=10", {"seconds": "10"}, True),
        ("seconds=10", {"seconds": 10.5}, False),
        ("ratio=16:9", {"ratio": "16:9"}, True),
        ("formula=a=b", {"formula": "a=b"}, True),
        ("quality=", {"quality": ""}, True),
    ],
)
def test_a_condition_is_a_params_presence_or_its_value_as_json_has_it(condition, params, applies):
    assert usd(price_of(per_job="1", per_job_if={condition: "0.5"}).of(params)) == ("1.50" if applies else "1.00")


@pytest.mark.parametrize(
    "wrong",
    [
        {"per_job": "-1"},
        {"per_jbo": "1"},
        {"faces": 0},
        {"faces": True},
        {"faces": "9"},
        {"seconds": -1},
        {"per_job_if": {"a": "x"}},
    ],
    ids=str,
)
def test_what_is_no_price_is_refused(wrong):
    with pytest.raises(ValueError, match="validation error"):
        price_of(**wrong)


# -- what it did cost

ALL = price_of(
    per_job="0.10",
    per_second="1",
    per_image="0.01",
    per_thousand_faces="0.1",
    per_job_if={"texture": "0.5"},
    per_second_if={"audio": "0.2"},
)


def test_faces_are_those_delivered():
    price = price_of(per_thousand_faces="0.01")
    result = Result(kind="model", faces=12_345)
    assert usd(price.final({"face_limit": 20_000}, [result])) == "0.12345"
    assert usd(price.final({"face_limit": 10_000}, [result])) == "0.10"
    assert usd(price.final({"face_limit": 20_000}, [Result(kind="model")])) == "0.20"
    assert usd(price.final({}, [result])) == "0.12345"
    assert price.final({}, [Result(kind="model")]) is None


@pytest.mark.parametrize(
    ("asked", "length", "billed"),
    [(8, 7.96, 8), (8, 8.042, 8), (8, 4.04, 4), (8, 5.1, 5), (8, 5.2, 6), (8, 9.9, 8), (7.2, 7.2, 8), (8, 0.05, 1)],
)
def test_seconds_are_whole_ones_and_never_more_than_asked(asked, length, billed):
    assert price_of(per_second="1").final({"duration": asked}, [Result(duration_seconds=length)]) == billed * NANOS
    assert price_of(per_second="1").final({"duration": asked}, [Result()]) == math.ceil(asked) * NANOS


def test_pictures_are_those_delivered_and_previews_cost_nothing():
    price, picture = price_of(per_image="1"), Result(kind="image")
    assert price.final({"n": 4}, [picture] * 3) == 3 * NANOS
    assert price.final({"n": 2}, [picture] * 3) == 2 * NANOS
    assert price.final({"n": 2}, [picture, Result(kind="image", role="preview")]) == NANOS
    assert price.final({"n": 2}, [Result()]) == 2 * NANOS


conditional = some.dictionaries(some.sampled_from(["texture", "quality=high", "duration"]), amounts)
prices = some.builds(
    Price.model_construct,
    per_job=amounts,
    per_second=amounts,
    per_image=amounts,
    per_thousand_faces=amounts,
    per_job_if=conditional,
    per_second_if=conditional,
    per_image_if=conditional,
    seconds=some.none() | some.integers(1, 100),
    faces=some.none() | some.integers(1, 10**7),
)
words = some.sampled_from(["", "8", "8s", "auto", "nan", "inf", "high", "1e999s"])
values = some.none() | some.booleans() | some.integers() | some.floats() | words
all_params = some.dictionaries(
    some.sampled_from(["duration", "seconds", "n", "num_images", "face_limit", "quality", "texture"]),
    values | some.integers(1, 20) | some.lists(some.integers()),
)
results = some.lists(
    some.builds(
        Result,
        kind=some.sampled_from(["video", "image", "model"]),
        role=some.sampled_from(["primary", "preview"]),
        duration_seconds=some.none() | some.floats(0, 1e6),
        faces=some.none() | some.integers(0, 10**10),
    ),
    max_size=4,
)


@given(prices, all_params, results)
def test_the_final_cost_is_never_above_the_ceiling(price, params, outputs):
    ceiling, final = price.of(params), price.final(params, outputs)
    if ceiling is not None:
        assert final is not None
        assert 0 <= final <= ceiling <= MOST


@given(prices, prices, all_params)
def test_a_price_that_asks_more_of_every_part_never_costs_less(price, more, params):
    dearer = dearest([price, more])
    assert dearer is not None
    for each in (price, more):
        cost, most = each.of(params), dearer.of(params)
        if cost is not None and most is not None:
            assert most >= cost


@given(prices, some.integers(1, 20), some.integers(0, 20), some.integers(1, 10**6), some.integers(0, 10**6))
def test_more_seconds_pictures_or_faces_never_cost_less(price, seconds, more, faces, more_faces):
    less = price.of({"duration": seconds, "n": seconds, "face_limit": faces})
    most = price.of({"duration": seconds + more, "n": seconds + more, "face_limit": faces + more_faces})
    assert less is not None
    assert most is not None
    assert less <= most


@given(prices, some.integers(1, 20), some.integers(1, 20), some.integers(1, 10**6))
def test_a_cost_is_exact_and_rounded_up_only_below_a_nano(price, seconds, pictures, faces):
    exact = price.per_job + (price.per_second + price.per_second_if.get("duration", 0)) * seconds
    exact += (price.per_image + price.per_image_if.get("duration", 0)) * pictures
    exact += Fraction(price.per_thousand_faces * faces, 1000) + price.per_job_if.get("duration", 0)
    told = price.of({"duration": seconds, "n": pictures, "face_limit": faces})
    assert 0 <= told - exact < 1


@given(prices, all_params, results)
def test_a_formula_survives_being_written_with_a_job(price, params, outputs):
    kept = Price.model_validate(json.loads(json.dumps(price.formula())))
    assert kept.of(params) == price.of(params)
    assert kept.final(params, outputs) == price.final(params, outputs)
    apart = dict.fromkeys(CONDITIONAL, None)
    assert kept.describe() | apart == price.describe() | apart


@pytest.mark.parametrize(
    ("kept", "estimated", "final"),
    [
        ({"sim": {"per_job": "0.20"}, "other": {"per_job": "0.90"}}, 900_000_000, 200_000_000),
        ({"sim": {"per_job": "0.20"}, "other": None}, None, 200_000_000),
        ({"sim": {"per_job": "0.20"}}, 150_000_000, 150_000_000),
        ({"sim": {}}, 0, 0),
        ({"sim": None, "other": {"per_job": "0.20"}}, None, None),
        ({"other": {"per_job": "0.20"}}, 200_000_000, 200_000_000),
        (None, 400_000_000, 400_000_000),
        (None, None, None),
    ],
    ids=str,
)
def test_a_job_costs_what_its_vendors_formula_says_and_never_more_than_was_estimated(kept, estimated, final):
    job = replace(make_job(started_at=NOW, prices=kept, estimated=estimated), vendor="sim", state=State.RUNNING)
    done = jobs.succeed(job, NOW, (make_asset(),), ())
    assert (done.final, done.charged) == (final, None if final is None else final > 0)


def test_no_cost_is_beyond_what_the_store_can_sum():
    vast = price_of(per_second="9999999999", per_image="9999999999")
    assert vast.of({"duration": 1e9, "n": 1e9}) == MOST
    tokens = TokenPrice.model_validate({"input_per_million": "9999999999", "per_request": "9999999999"})
    assert tokens.of(Usage(MOST_TOKENS)) == MOST


def test_a_price_in_words():
    assert FREE.word() == "free"
    parts = ["0.10", "1.00 per second", "0.01 per picture", "0.10 per thousand faces", "0.50 if texture"]
    assert ALL.word() == f"USD {' + '.join([*parts, '0.20 per second if audio'])}"
    assert ALL.describe() == {
        "per_job": "0.10",
        "per_second": "1.00",
        "per_image": "0.01",
        "per_thousand_faces": "0.10",
        "per_job_if": {"texture": "0.50"},
        "per_second_if": {"audio": "0.20"},
        "per_image_if": {},
        "seconds": None,
        "faces": None,
        "currency": "USD",
    }


# -- what a model's params say of the most there may be


@pytest.mark.parametrize(
    ("field", "bound"),
    [
        ({"type": "integer", "maximum": 30}, 30),
        ({"type": "number", "exclusiveMaximum": 7.5}, 8),
        ({"enum": ["4s", "6s", "auto", None]}, 6),
        ({"enum": ["short", "long"]}, None),
        ({"const": 5}, 5),
        ({"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]}, 9),
        ({"anyOf": [{"type": "integer", "maximum": 9}, {"type": "string"}]}, None),
        ({"oneOf": [{"maximum": 9}, {"enum": [12]}]}, 12),
        ({"$ref": "#/$defs/length"}, 15),
        ({"allOf": [{"$ref": "#/$defs/length"}], "default": 5}, 15),
        ({"$ref": "#/$defs/circle"}, None),
        ({"$ref": "#/$defs/nothing"}, None),
        ({"type": "integer"}, None),
        (True, None),
    ],
    ids=str,
)
def test_the_largest_that_a_schema_allows(field, bound):
    definitions = {"length": {"maximum": 15}, "circle": {"anyOf": [{"$ref": "#/$defs/circle"}]}}
    schema = {"properties": {"duration": field, "other": {"maximum": 99}}, "$defs": definitions}
    assert largest_of(schema, ("durationSeconds", "duration")) == bound
    assert largest_of(schema, ("durationSeconds",)) is None


def test_what_the_catalogue_says_of_the_most_there_may_be():
    assert text_to_video.MODELS[0].largest(("durationSeconds",)) == 8
    assert simulated.MODELS[1].largest(("face_limit",)) == image_to_model.MAX_FACES
    for version, most in image_to_model.MAX_FACES_BY_VERSION.items():
        assert image_to_model.MODELS[0].most_faces({"model_version": version}) == most


# -- chat

tokens = some.integers(0, 10**6)
usages = some.builds(Usage, tokens, tokens, tokens, tokens, cache_writes=tokens, cache_writes_1h=tokens)
token_prices = some.builds(
    TokenPrice.model_construct,
    input_per_million=amounts,
    cached_input_per_million=some.none() | amounts,
    cache_write_per_million=some.none() | amounts,
    cache_write_1h_per_million=some.none() | amounts,
    output_per_million=amounts,
    reasoning_per_million=some.none() | amounts,
    per_request=amounts,
)


@given(token_prices, usages)
def test_an_answer_costs_its_tokens_exactly_rounded_up_below_a_nano(price, usage):
    cached, reasoning = min(usage.cached, usage.prompt), min(usage.reasoning, usage.completion)
    writes = min(usage.cache_writes, usage.prompt - cached)
    hourly = min(usage.cache_writes_1h, writes)
    exact = (usage.prompt - cached - writes) * price.input_per_million + cached * price.cached
    exact += (writes - hourly) * price.cache_write + hourly * price.cache_write_1h
    exact += (usage.completion - reasoning) * price.output_per_million + reasoning * price.reasoning
    assert 0 <= price.of(usage) - (price.per_request + Fraction(exact, 10**6)) < 1


@given(token_prices, usages, tokens, tokens)
def test_a_cut_has_no_part_above_its_total_and_costs_the_same(price, usage, prompt, completion):
    cut = usage.cut(prompt, completion)
    assert (cut.prompt, cut.completion) == (prompt, completion)
    assert cut.cached + cut.cache_writes <= cut.prompt
    assert cut.cache_writes_1h <= cut.cache_writes
    assert cut.reasoning <= cut.completion
    assert cut.cut(prompt, completion) == cut
    assert price.of(cut) == price.of(replace_counts(usage, prompt=prompt, completion=completion)) >= 0


@given(token_prices, usages)
def test_the_parts_of_an_answer_cost_together_what_it_costs(price, usage):
    usage = usage.cut(usage.prompt, usage.completion)
    short = usage.cache_writes - usage.cache_writes_1h
    plain, said = usage.prompt - usage.cached - usage.cache_writes, usage.completion - usage.reasoning
    parts = [
        Usage(plain),
        Usage(usage.cached, cached=usage.cached),
        Usage(short, cache_writes=short),
        Usage(usage.cache_writes_1h, cache_writes=usage.cache_writes_1h, cache_writes_1h=usage.cache_writes_1h),
        Usage(completion=said),
        Usage(completion=usage.reasoning, reasoning=usage.reasoning),
    ]
    alone = price.model_copy(update={"per_request": 0})
    costs = [alone.of(part) for part in parts]
    assert min(costs) >= 0
    assert 0 <= sum(costs) + price.per_request - price.of(usage) < len(parts)  # each is rounded up


@given(some.lists(token_prices, min_size=1, max_size=3), usages)
@example([TokenPrice.model_construct(cached_input_per_million=NANOS)], Usage(10))
@example([TokenPrice.model_construct(cache_write_per_million=NANOS, cache_write_1h_per_million=0)], Usage(10))
@example([TokenPrice.model_construct(cache_write_1h_per_million=NANOS)], Usage(10))
def test_a_ceiling_holds_whoever_answers_and_whatever_was_cached_or_thought(asked, usage):
    ceiling, told = token_ceiling(asked), dearest_tokens(asked)
    assert ceiling is not None
    assert told is not None
    prompt, completion = usage.prompt, usage.completion
    bare = Usage(prompt, completion)  # before an answer, nobody knows more
    extremes = [  # all of the prompt, and of the answer, is of one kind
        Usage(prompt, completion, cached=prompt, reasoning=completion),
        Usage(prompt, completion, cache_writes=prompt),
        Usage(prompt, completion, cache_writes=prompt, cache_writes_1h=prompt),
    ]
    for actual in (usage, bare, *extremes):
        most = max(price.of(actual) for price in asked)
        assert ceiling.of(bare) >= most
        assert told.of(actual) >= most
    if len(asked) == 1:
        assert told.describe() == asked[0].describe()


def test_a_part_that_is_not_said_costs_as_the_part_it_belongs_to():
    price = TokenPrice.model_validate({"input_per_million": "1", "output_per_million": "2", "per_request": "0.01"})
    assert price.of(Usage(10, 20, 5, 5, cache_writes=4, cache_writes_1h=2)) == 10_000_000 + 10_000 + 40_000
    assert price.describe() == {
        "input_per_million": "1.00",
        "cached_input_per_million": "1.00",
        "cache_write_per_million": "1.00",
        "cache_write_1h_per_million": "1.00",
        "output_per_million": "2.00",
        "reasoning_per_million": "2.00",
        "per_request": "0.01",
        "per_million_characters": "0.00",
        "per_minute": "0.00",
        "currency": "USD",
    }
    assert price.word() == "USD 1.00 in, 2.00 out, per million tokens + 0.01 per request"
    assert TokenPrice.model_validate({"per_request": "0.01"}).word() == "USD 0.01 per request"
    assert TokenPrice().word() == "free"
    told = {"input_per_million": "1", "cached_input_per_million": "0.5", "reasoning_per_million": "3"}
    assert TokenPrice.model_validate(told).word() == (
        "USD 1.00 in, 0.50 cached, 0.00 out, 3.00 reasoning, per million tokens"
    )
    told = {"input_per_million": "3", "cache_write_per_million": "3.75"}
    price = TokenPrice.model_validate(told)
    assert price.word() == "USD 3.00 in, 3.75 cache write, 0.00 out, per million tokens"
    assert price.of(Usage(10, cache_writes=10, cache_writes_1h=10)) == 37_500
    price = TokenPrice.model_validate(told | {"cache_write_1h_per_million": "6"})
    assert price.word() == "USD 3.00 in, 3.75 cache write, 6.00 1h cache write, 0.00 out, per million tokens"
    assert price.of(Usage(20, cached=5, cache_writes=10, cache_writes_1h=4)) == 10 * 3_000 + 6 * 3_750 + 4 * 6_000


# -- over time

moments = some.integers(0, 12).map(float)
terms = some.builds(
    lambda amount, since, length, of_vendor: Term(
        Price.model_construct(per_job=amount),
        -math.inf if since is None else since,
        math.inf if length is None else (0.0 if since is None else since) + length,
        of_vendor,
    ),
    some.integers(0, 3),
    some.none() | moments,
    some.none() | some.integers(1, 6),
    some.booleans(),
)
term_lists = some.lists(terms, max_size=6, unique_by=lambda term: (term.of_vendor, term.since))


def search(listed: Sequence[Term[Price]], otherwise: Price | None, now: float) -> Price | None:
    """The rule as it is told: a vendor's own before everyone's, the later begun before the earlier."""
    for of_vendor in (True, False):
        in_force = [term for term in listed if term.of_vendor is of_vendor and term.since <= now < term.until]
        if in_force:
            return max(in_force, key=lambda term: term.since).price
    return otherwise


@given(term_lists, some.none() | some.just(FREE), some.lists(some.floats(-1, 20) | moments, min_size=1))
def test_the_price_in_force_is_the_one_that_a_search_finds(listed, otherwise, asked):
    schedule = make_schedule(listed, otherwise)
    for now in asked:
        assert schedule.at(now) == search(listed, otherwise, now)
    assert len(schedule.starts) == len(schedule.prices)
    assert all(one != other for one, other in zip(schedule.prices, schedule.prices[1:], strict=False))


@given(some.lists(term_lists, min_size=1, max_size=3), moments)
def test_of_several_schedules_each_moment_has_its_own_choice(lists, now):
    schedules = [make_schedule(listed, FREE) for listed in lists]
    assert combine(schedules, dearest).at(now) == dearest([schedule.at(now) for schedule in schedules])


def test_what_is_over_is_not_told():
    schedule = make_schedule([Term(ALL, 100.0, 200.0), Term(FREE, 300.0)], None)
    told = describe_schedules({"mine": schedule}, 150.0)
    assert [(each["from"], each["until"]) for each in told] == [
        ("1970-01-01T00:01:40.000Z", "1970-01-01T00:03:20.000Z"),
        ("1970-01-01T00:03:20.000Z", "1970-01-01T00:05:00.000Z"),
        ("1970-01-01T00:05:00.000Z", None),
    ]
    assert [each["price"] for each in told] == [ALL.describe(), None, FREE.describe()]
    assert len(describe_schedules({"mine": schedule}, 50.0)) == 4
    assert len(describe_schedules({"mine": schedule}, 300.0)) == 1
    assert PriceSchedule((-math.inf,), (FREE,)).at(0.0) == FREE


# -- of several routes


@given(
    some.lists(prices, min_size=1, max_size=3),
    some.fixed_dictionaries({"duration": some.integers(1, 9), "texture": some.booleans(), "face_limit": some.just(50)}),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
def test_of_several_routes_the_ceiling_is_the_dearest(tmp_path, asked, params):
    offer = offer_of(tmp_path, asked)
    assert offer.ceiling(params, 0.0) == max(price.of(params) for price in asked)
    told = offer.price_at(0.0)
    assert told is not None
    assert all(told.of(params) >= price.of(params) for price in asked)
    quote = offer.quote(params, 0.0)
    assert {vendor: Price.model_validate(formula).of(params) for vendor, formula in quote.formulas.items()} == {
        f"route{number}": price.of(params) for number, price in enumerate(asked)
    }


def test_if_one_of_them_is_not_known_none_is(tmp_path):
    half_known = offer_of(tmp_path, [FREE, None])
    assert half_known.price_at(0.0) is None
    assert half_known.ceiling({}, 0.0) is None
    assert half_known.price_of("route0", 0.0) == FREE
    assert half_known.price_of("route1", 0.0) is None
    assert half_known.price_of("another", 0.0) is None
    assert offer_of(tmp_path, [FREE, FREE]).price_at(0.0) == FREE


def offer_of(folder: Path, asked: Sequence[Price | None]) -> Offer:
    """What is offered of a model that vendors run for these prices."""
    model = simulated.MODELS[1]
    with pytest.MonkeyPatch.context() as patch:
        names = [f"route{number}" for number in range(len(asked))]
        served = {name: [ServedModel(model, price)] for name, price in zip(names, asked, strict=True)}
        patch.setattr(Sim, "models", property(lambda vendor: served.get(vendor.options.api_key, [])))
        tables = "".join(f'[vendors.{name}]\ntype = "sim"\napi_key = "{name}"\n' for name in names)
        routes = ", ".join(f'{{vendor = "{name}"}}' for name in names)
        config = folder / "penstock.toml"
        config.write_text(f'{tables}[[models]]\nid = "{model.id}"\nroutes = [{routes}]\n')
        return build_offers(load(config, {}, {"data": folder}), None).by_model[model.id]
