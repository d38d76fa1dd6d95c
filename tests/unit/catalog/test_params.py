"""Params are read whatever they hold, and every problem is told at once with its place."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import known_models
from penstock.catalog.image_to_model import ImageToModelParams
from penstock.catalog.params import MAX_DETAILS, read, shorten, unknown_name
from penstock.catalog.simulated import SimVideoParams
from penstock.catalog.text_to_video import TextToVideoParams, frame_size
from penstock.errors import InvalidRequest
from penstock.jobs.request import MAX_VALUES, GenerationBody, decode

KINDS = [GenerationBody, *(model.params for model in known_models().values())]
NAMES = sorted(
    {name for kind in KINDS for name in kind.model_fields} | {"url", "file_token", "type", "latency", "ending", "nope"}
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["8", "16:9", "720p", "v3.1-20260211", "https://example.com/a.png", "forever", 10**400, 8.0, 48])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=10), VALUES, max_size=8)


def problems(kind: Any, given: dict[str, Any], place: str = "") -> dict[str, str]:
    return {detail.loc: detail.message for detail in read(kind, given, place)[1]}


# -- any input at all


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=15)
@given(body=BODIES)
def test_anything_is_read_or_refused_with_its_place(kind, body):
    params, details = read(kind, body, "here")
    assert (params is None) == bool(details)
    assert len({detail.loc for detail in details}) == len(details)
    assert all(detail.loc.startswith("here.") and detail.message for detail in details)
    if params is not None:
        msgspec.json.encode(params.resolved())


@settings(deadline=None, max_examples=50)
@given(st.binary() | st.text().map(str.encode) | BODIES.map(lambda body: repr(body).encode()))
def test_any_bytes_are_an_object_or_an_error_of_the_request(raw):
    with suppress(InvalidRequest):
        assert isinstance(decode(raw).body, dict)


@given(VALUES)
def test_any_value_is_shown_in_a_line(value):
    assert len(shorten(value)) <= 80


# -- numbers


@pytest.mark.parametrize("value", [8, 8.0])
def test_integral_numbers_are_integers(value):
    params, _ = read(TextToVideoParams, {"prompt": "x", "durationSeconds": value}, "")
    assert params is not None
    assert params.resolved()["durationSeconds"] == 8
    assert isinstance(params.resolved()["durationSeconds"], int)


@pytest.mark.parametrize("value", ["8", True, 8.5, float("nan"), float("inf"), [8], {}, 1e300, 10**400])
def test_nothing_else_is_an_integer(value):
    assert list(problems(TextToVideoParams, {"prompt": "x", "durationSeconds": value})) == ["durationSeconds"]


@pytest.mark.parametrize("value", ["1", True, float("nan"), float("inf"), [], 10**400, -0.001, 86401])
def test_seconds_are_one_finite_number(value):
    assert list(problems(SimVideoParams, {"script": {"latency": value}}, "p")) == ["p.script.latency"]


# -- names


def test_null_is_the_same_as_absent_at_every_depth():
    nulls = {"file": {"url": None, "file_token": "t", "object": None}, "texture": None, "nonsense": None}
    with_nulls, _ = read(ImageToModelParams, nulls, "")
    without, _ = read(ImageToModelParams, {"file": {"file_token": "t"}}, "")
    assert with_nulls == without is not None


@pytest.mark.parametrize(
    ("kind", "given", "loc", "nearest"),
    [
        (TextToVideoParams, {"prompt": "x", "duration_seconds": 8}, "duration_seconds", "durationSeconds"),
        (TextToVideoParams, {"prompt": "x", "PROMPT": "y"}, "PROMPT", "prompt"),
        (ImageToModelParams, {"file": {"url": "u", "file_tokn": "t"}}, "file.file_tokn", "file_token"),
        (ImageToModelParams, {"file": {"object": {"bucket": "b", "key": "k", "kee": 1}}}, "file.object.kee", "key"),
        (GenerationBody, {"model": "m", "input": [{"params": {}, "param": 1}]}, "input.0.param", "params"),
        (GenerationBody, {"model": "m", "input": [{"params": {}}], "dryrun": True}, "dryrun", "dry_run"),
        (SimVideoParams, {"script": {"latencies": 1}}, "script.latencies", "latency"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_of_its_own_place(kind, given, loc, nearest):
    told = problems(kind, given)
    assert list(told) == [loc]
    assert f"Did you mean `{nearest}`?" in told[loc]


def test_a_name_like_no_other_gets_no_hint():
    assert "Did you mean" not in unknown_name("param", "zzzz", ["prompt"])
    assert "Known: prompt." in unknown_name("param", "zzzz", ["prompt"])


# -- what is told


def test_every_problem_is_told_at_once():
    given = {
        "file": {"url": "u", "file_token": "t", "type": "gif", "tpye": "png"},
        "model_seed": -1,
        "face_limit": 47,
        "texture": False,
        "pbr": True,
        "colour": "red",
    }
    assert set(problems(ImageToModelParams, given, "input.3.params")) == {
        f"input.3.params.{name}"
        for name in ("file", "file.type", "file.tpye", "model_seed", "face_limit", "pbr", "colour")
    }


def test_codes_tell_missing_unknown_and_invalid_apart():
    details = read(TextToVideoParams, {"resolution": "4k", "x": 1}, "")[1]
    assert {detail.loc: detail.code for detail in details} == {
        "prompt": "missing_required_parameter",
        "resolution": "invalid_params",
        "x": "unknown_param",
    }


def test_a_flood_of_problems_is_told_in_part():
    details = read(TextToVideoParams, {f"x{number}": 1 for number in range(10_000)}, "")[1]
    assert len(details) == MAX_DETAILS


@pytest.mark.parametrize("depth", [20, 400])
def test_deep_values_are_refused_like_any_other(depth):
    value: Any = 1
    for _ in range(depth):
        value = [value] if depth % 3 else {"a": value}
    assert list(problems(TextToVideoParams, {"prompt": value})) == ["prompt"]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":[%s]}' % b",".join([b"1"] * (MAX_VALUES + 1)),
        b'{"a":[%s]}' % b",".join([b"1"] * 1_000_000),
        b'{"a":[%s]}' % b",".join([b"[[[]]]"] * 40_000),
        b"{%s}" % b",".join(b'"%d":1' % number for number in range(MAX_VALUES + 1)),
    ],
    ids=["just too many", "a million", "brackets", "names"],
)
def test_a_body_with_too_many_values_is_not_read(raw):
    with pytest.raises(InvalidRequest, match="values"):
        decode(raw)


def test_commas_inside_of_texts_are_no_values():
    body = {"model": "m", "input": [{"params": {"prompt": "," * 4000}}] * 16}
    assert decode(msgspec.json.encode(body)).body == body


# -- sizes that params ask for


@pytest.mark.parametrize(
    ("resolution", "ratio", "size"),
    [
        ("720p", "16:9", (1280, 720)),
        ("720p", "9:16", (720, 1280)),
        ("1080p", "16:9", (1920, 1080)),
        ("1080p", "9:16", (1080, 1920)),
    ],
)
def test_the_frame_that_ratio_and_resolution_ask_for(resolution, ratio, size):
    assert frame_size({"resolution": resolution, "aspectRatio": ratio}) == size


@pytest.mark.parametrize("name", ["as object", "as text"])
def test_an_unknown_param_is_refused_by_its_name_whatever_it_is(name):
    found = problems(KINDS[0], {name: []}, "here")
    assert any(name in loc and name in message and "Unknown param" in message for loc, message in found.items())
