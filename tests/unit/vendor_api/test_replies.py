"""What most vendors' replies have in common: what is certain and what is not, and where results hold their assets."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.catalog.model import Recipe
from penstock.domain.job_errors import (
    ContentFiltered,
    UpstreamAuth,
    UpstreamError,
    UpstreamRejected,
    UpstreamUnavailable,
)
from penstock.vendor_api.generation import Call, Done, Failed, Kind, Order, Output, Refused, Reply, Role, Unclear
from penstock.vendor_api.replies import (
    CLOCK_SECONDS,
    NO_CREDIT,
    Row,
    classify_refusal,
    fail_empty,
    finish,
    keep_recipe,
    may_match,
    parse_time,
    pick_outputs,
    read_list,
    seed_of,
    upstream_reason,
    video_warnings,
)

SAID = upstream_reason("no", "not today", "order-1")


def reply(status: int, **headers: str) -> Reply:
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, b"{}")


# -- an order in another vendor's words


def test_only_what_is_lost_is_told():
    assert video_warnings({"compressionQuality": "optimized", "personGeneration": "allow_adult"}, "Acme") == ()
    assert video_warnings({}, "Acme") == ()
    (told,) = video_warnings({"personGeneration": "dont_allow"}, "Acme")
    assert all(word in told for word in ("personGeneration", "dont_allow", "Acme"))


def test_a_mark_is_the_orders_own_and_small_enough_for_any_seed():
    marks = {seed_of(Order(f"job_{number}-1", "m", {})) for number in range(500)}
    assert len(marks) == 500
    assert all(0 <= each < 2**31 for each in marks)
    assert seed_of(Order("job_1-1", "m", {"a": 1})) == seed_of(Order("job_1-1", "n", {}))


# -- an order that was not taken


def test_a_full_vendor_may_take_it_later():
    assert classify_refusal(reply(429, retry_after="7"), SAID) == Refused(7.0)
    assert classify_refusal(reply(429), SAID) == Refused(None)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, UpstreamAuth),
        (403, UpstreamAuth),
        (402, UpstreamUnavailable),
        (400, UpstreamRejected),
        (404, UpstreamRejected),
        (405, UpstreamRejected),
        (413, UpstreamRejected),
        (415, UpstreamRejected),
        (422, UpstreamRejected),
        (451, UpstreamRejected),
    ],
)
def test_a_vendor_that_says_no_is_believed(status, error):
    answer = classify_refusal(reply(status), SAID)
    assert isinstance(answer, Failed)
    assert type(answer.error) is error
    assert answer.error.upstream == SAID
    assert (answer.error.message == NO_CREDIT) == (status == 402)


@given(some.integers(100, 599).filter(lambda status: not 400 <= status < 500) | some.sampled_from([408, 409]))
def test_whatever_else_is_no_answer(status):
    with pytest.raises(Unclear, match=str(status)):
        classify_refusal(reply(status), SAID)


@given(some.integers(400, 499))
def test_no_refusal_is_ever_taken_for_an_order(status):
    try:
        assert isinstance(classify_refusal(reply(status), SAID), Refused | Failed)
    except Unclear:
        assert status in (408, 409, 425)


# -- what was said

anything = some.none() | some.booleans() | some.integers() | some.floats() | some.text() | some.lists(some.integers())


@given(anything, anything, anything)
def test_what_was_said_is_texts_or_nothing(code, message, upstream_id):
    told = upstream_reason(code, message, upstream_id)
    assert list(told) == ["code", "message", "id"]
    assert all(text is None or isinstance(text, str) for text in told.values())
    json.dumps(told)


def test_numbers_are_told_and_objects_are_not():
    assert upstream_reason(2008, {"detail": "no"}, ["x"]) == {"code": "2008", "message": None, "id": None}


def test_nothing_made_is_no_success():
    assert isinstance(fail_empty("order-1").error, ContentFiltered)
    failed = fail_empty("order-1", UpstreamError)
    assert isinstance(failed.error, UpstreamError)
    assert failed.error.upstream == upstream_reason(None, "finished without an output", "order-1")


# -- times


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00.000000Z",
        "2024-01-01T00:00:00+00:00",
        "2024-01-01T01:00:00+01:00",
        "2024-01-01T00:00:00",
        "2024-01-01",
    ],
)
def test_a_time_is_of_utc_unless_it_says_otherwise(text, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    told = parse_time(text)
    monkeypatch.undo()
    time.tzset()
    assert told == 1_704_067_200


@given(
    anything | some.sampled_from(["", "soon", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "1704067200"])
)
def test_no_time_breaks_it(told):
    moment = parse_time(told)
    assert moment is None or isinstance(moment, float)


def test_an_older_order_is_another_one():
    order = Order("job_1-1", "m", {}, placed_at=1_704_067_200.0)
    assert may_match(order, None)
    assert may_match(order, order.placed_at)
    assert may_match(order, order.placed_at + 9999)
    assert may_match(order, order.placed_at - CLOCK_SECONDS)
    assert not may_match(order, order.placed_at - CLOCK_SECONDS - 1)


# -- where a result holds its assets

A, B, C = "https://files.example/a.mp4?x=%2F1", "https://files.example/b.png", "https://files.example/c"


def urls(result: Any, kind: str = "video", **recipe: str) -> list[str]:
    outputs = pick_outputs(result, keep_recipe(Recipe(kind, **recipe)))
    return [output.download.url for output in outputs if isinstance(output.download, Call)]


@pytest.mark.parametrize(
    ("result", "path"),
    [
        ({"video": {"url": A}}, "video.url"),
        ({"video": {"url": A}}, "video"),
        ({"images": [{"url": A}]}, "images[0].url"),
        ({"images": [{"url": B}, {"url": A}]}, "images[1]"),
        ({"outputs": [B, A]}, "outputs.1"),
        ([A], "0"),
        ([[A]], "[0][0]"),
        ({"0": A}, "0"),
        ({"data": {"file-name": A}}, "data.file-name"),
        ({"url": A}, "url"),
    ],
)
def test_a_recipe_says_where(result, path):
    assert urls(result, output=path) == [A]


@pytest.mark.parametrize(
    "path", ["video", "video.url.more", "images[7].url", "images.x", "images[-1]", "[]x", "9" * 30]
)
@pytest.mark.parametrize("result", [{"images": [A]}, [], None, "text", 7, {"video": 7}, {"video": {"url": 7}}])
def test_what_is_not_there_is_nothing(result, path):
    assert urls(result, output=path) == []


def test_a_recipe_may_lead_to_several():
    assert urls({"videos": [{"url": A}, {"url": C}]}, output="videos") == [A, C]


@pytest.mark.parametrize(
    ("result", "kind", "found"),
    [
        (A, "video", A),
        ([A], "video", A),
        ({"video": {"url": A, "content_type": "video/mp4"}, "thumbnail": {"url": B}}, "video", A),
        ({"thumbnail": {"url": B}, "video": {"url": A}}, "video", A),
        ({"thumbnail": {"url": B}, "result": C}, "video", C),
        ({"a": {"b": {"c": [{"d": C}]}}}, "3d", C),
        ({"image": B, "video": A}, "image", B),
        ({"model": "https://x.example/M.GLB", "picture": B}, "3d", "https://x.example/M.GLB"),
        ({"prompt": "a cat", "seed": 7, "file": C}, "image", C),
        ({"preview": B}, "video", None),
        ({"text": "see https://x.example/a.mp4"}, "video", None),
        ({"url": "ftp://x.example/a.mp4"}, "video", None),
        ({"url": "/a.mp4"}, "video", None),
        ({}, "video", None),
    ],
)
def test_else_it_is_found_by_its_looks(result, kind, found):
    assert urls(result, kind) == ([found] if found else [])


def test_a_preview_stands_beside_the_result_and_never_alone():
    result = {"model": {"url": C}, "rendered": [{"url": B}, {"url": A}]}
    kept = keep_recipe(Recipe("3d", output="model", preview="rendered"))
    assert pick_outputs(result, kept) == (
        Output(Kind.MODEL, Role.PRIMARY, Call("GET", C, seconds=300)),
        Output(Kind.IMAGE, Role.PREVIEW, Call("GET", B)),
    )
    assert pick_outputs({"rendered": B}, kept) == ()


def test_a_recipe_is_kept_as_plain_data_without_what_is_not_said():
    recipe = Recipe("3d", "image_url", "model", None, {"6": {}}, {"a": "6.b"})
    assert keep_recipe(recipe) == {"kind": "3d", "output": "model"}


def test_the_end_of_a_job():
    kept = keep_recipe(Recipe("video"))
    done = finish({"video": {"url": A}}, kept, "order-1", 7.0)
    assert isinstance(done, Done)
    assert done.finished_at == 7.0
    assert isinstance(finish({}, kept, "order-1"), Failed)


nested = some.recursive(
    some.none() | some.integers() | some.sampled_from([A, B, C, "text"]),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from("abu"), inner, max_size=3),
    max_leaves=12,
)


@given(nested, some.sampled_from(["3d", "video", "image"]), some.none() | some.text("ab0.[]", max_size=8))
def test_no_result_breaks_it(result, kind, path):
    outputs = pick_outputs(result, {"kind": kind} | ({"output": path} if path else {}))
    assert all(output.role is Role.PRIMARY and output.download.url in (A, B, C) for output in outputs)
    assert path or len(outputs) <= 1


def test_depth_without_end_is_not_followed():
    deep: Any = A
    for _ in range(5000):
        deep = [deep]
    assert urls(deep) == []


# -- lists of orders

NOW = 1_800_000_000.0
LOST = Order("ours", "m", {}, placed_at=NOW, asked_at=NOW)


def read(pages: Any) -> Any:
    """Read a list whose pages are made by a function of their offset."""
    calls: list[int] = []

    def ask(number: int, offset: int) -> Any:
        calls.append(offset)
        yield Call("GET", "/orders")
        return pages(number, offset), NOW

    reading = read_list(LOST, ask)
    try:
        next(reading)
        while True:
            reading.send(Reply(200, {}, b""))
    except StopIteration as end:
        return end.value, calls


def name_rows(names: Any) -> list[Row]:
    return [Row(str(name), NOW, None) for name in names]


def test_orders_placed_while_a_list_is_read_do_not_make_it_end_early():
    """One more at the top with each of the first pages: those after it begin with what ended the last."""
    found, calls = read(lambda number, offset: name_rows(range(-min(number, 2), 6))[offset : offset + 3])
    assert {row.upstream_id for row in found.rows} >= {str(name) for name in range(6)}
    assert found.listing.is_whole
    assert len(calls) < 10


def test_a_vendor_that_knows_no_pages_is_not_asked_for_ever_and_proves_nothing():
    found, calls = read(lambda _number, _offset: name_rows(range(3)))
    assert len(found.rows) == 3
    assert not found.listing.is_whole
    assert len(calls) == 3
