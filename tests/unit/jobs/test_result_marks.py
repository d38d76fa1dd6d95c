"""Marks of results: equal JSON has equal marks, however it is written; what differs in any value has another."""

import json
import unicodedata
from dataclasses import replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.catalog import known_models
from penstock.catalog.model import GenerationModel
from penstock.catalog.schema_params import SchemaParams
from penstock.domain.jobs import ResultMark
from penstock.jobs.files.reuse import mark_result

ROUTE = ("vendor", "model")
FILM = known_models()["vendorb_video_31"]
SCHEMA = {
    "properties": {
        "strength": {"type": "number", "default": 1},
        "steps": {"type": "integer", "default": 20},
        "words": {"type": "string"},
        "free": {},
        "seed": {"type": "number"},
    }
}
DECLARED = replace(FILM, id="declared", params=SchemaParams(SCHEMA), seed_param="seed")
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "strength": NUMBERS,
        "steps": st.integers(-(2**53), 2**53),
        "words": st.text(),
        "free": VALUES.filter(lambda value: value is not None),
    },
)


def mark(model: GenerationModel, params: dict[str, Any]) -> ResultMark:
    """The mark of a request with these params, by way of JSON."""
    read, problems = model.read(json.loads(json.dumps(params)), "params")
    assert read is not None, problems
    found = mark_result(model, ROUTE, read, {})
    assert found is not None
    return found


def rewrite(value: Any, *, as_floats: bool) -> Any:
    """The value with its fields in reverse order, and whole numbers written in the other way."""
    if isinstance(value, dict):
        return {name: rewrite(value[name], as_floats=as_floats) for name in reversed(value)}
    if isinstance(value, list):
        return [rewrite(each, as_floats=as_floats) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and as_floats:
        return float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53 and not as_floats:
        return int(value)
    return value


def canonical(value: Any) -> Any:
    """The value as two equal requests have it; `True` is not 1, and null is absent."""
    if isinstance(value, dict):
        return {name: canonical(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [canonical(each) for each in value]
    return (type(value) is bool, value)


@given(PARAMS, st.booleans())
def test_the_order_of_fields_and_the_form_of_numbers_do_not_matter(params: dict[str, Any], as_floats: bool) -> None:
    assert mark(DECLARED, params) == mark(DECLARED, rewrite(params, as_floats=as_floats))


@given(PARAMS)
def test_defaults_and_nulls_may_be_given_or_left_out(params: dict[str, Any]) -> None:
    whole = {"strength": 1.0, "steps": 20, **params}
    absent = {name: None for name in ("words", "free") if name not in params}
    assert mark(DECLARED, params) == mark(DECLARED, {**absent, **whole})


@given(PARAMS, PARAMS)
def test_different_params_have_different_marks(one: dict[str, Any], other: dict[str, Any]) -> None:
    defaults = {"strength": 1, "steps": 20}
    assume(canonical(defaults | one) != canonical(defaults | other))
    assert mark(DECLARED, one).digest != mark(DECLARED, other).digest


@given(st.text(), st.text())
def test_texts_are_compared_by_their_characters(one: str, other: str) -> None:
    assert (mark(DECLARED, {"words": one}) == mark(DECLARED, {"words": other})) == (one == other)


def test_composed_and_decomposed_letters_differ() -> None:
    words = [unicodedata.normalize(form, "café") for form in ("NFC", "NFD")]
    assert len({mark(DECLARED, {"words": each}).digest for each in words}) == 2


@given(st.integers(0, 2**31 - 1))
def test_the_seed_is_kept_apart(seed: int) -> None:
    whole, written = mark(DECLARED, {"seed": seed}), mark(DECLARED, {"seed": float(seed)})
    assert whole == written
    assert (whole.digest, whole.seed) == (mark(DECLARED, {}).digest, str(seed))


def test_another_model_and_another_route_have_other_marks() -> None:
    read, _ = FILM.read({"prompt": "a boat"}, "params")
    assert read is not None
    marks = [
        mark_result(model, route, read, {})
        for model in (FILM, replace(FILM, id="other"))
        for route in (ROUTE, ("vendor", "newer"), ("other", "model"))
    ]
    assert len({each.digest for each in marks if each}) == 6


def test_every_given_form_of_a_built_in_models_params_is_one() -> None:
    forms: list[dict[str, Any]] = [
        {"prompt": "a boat"},
        {"prompt": "a boat", "durationSeconds": 8.0},
        {"aspectRatio": "16:9", "prompt": "a boat", "resolution": None},
        {"prompt": "a boat", "compressionQuality": "OPTIMIZED", "personGeneration": "allow_adult"},
    ]
    assert len({mark(FILM, each).digest for each in forms}) == 1
    assert mark(FILM, {"prompt": "a boat", "durationSeconds": 6}).digest != mark(FILM, forms[0]).digest
