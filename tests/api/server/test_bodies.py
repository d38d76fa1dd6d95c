"""Bodies of every kind over HTTP: malformed, deep, huge, of another media type, and anything at all."""

import json
import random
from typing import Any

import pytest
from conftest import MODEL, VIDEO
from steps import IDLE, TEXT_TO_VIDEO, body_of, count_jobs, post, refused

# -- bodies that are not what they should be

NO_JSON = [
    *(b"", b" ", b"{", b"nonsense", b"{'model': 1}", b'{"model":}', b"{} {}", b'{"a":1,}', b"\xef\xbb\xbf{}"),
    *(b"[]", b"[{}]", b"null", b"1", b'"text"', b"true", b"NaN", b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}'),
    *(b'{"a":"\xff"}', b'{"\xc3":1}', b'{"a":"\xed\xa0\x80"}', rb'{"a":"\ud800"}', rb'{"a":"\udc00 text"}'),
    *(b'{"a":1e999}', b'{"a":' + b"1" * 5000 + b"}", b"\x00", b'{"a":"\n"}', b'{"a":01}', b"model=x"),
]


async def test_what_is_no_json_object_is_told_so(server):
    for raw in NO_JSON:
        refused(await post(server, raw), 400, "invalid_json")
    assert await count_jobs(server) == 0


@pytest.mark.parametrize("pair", [(b"[", b"]"), (b'{"a":', b"}")])
async def test_no_depth_of_nesting_is_too_much(server, pair):
    for depth in (20, 200, 600, 900, 1000, 5000, 100_000):
        deep = pair[0] * depth + b"1" + pair[1] * depth
        for raw in (
            deep,
            b'{"model":%s}' % deep,
            b'{"model":"sim_text_to_video","metadata":%s,"input":[]}' % deep,
            b'{"model":"sim_text_to_video","input":[{"params":{"prompt":%s}}]}' % deep,
            b'{"model":"sim_text_to_video","input":[{"params":{"prompt":%s}}],"x":"%s"}' % (deep, b"x" * 300_000),
        ):
            response = await post(server, raw, x_stainless_retry_count="1")
            assert refused(response, 400, response.json()["error"]["code"])


async def test_a_name_given_twice_counts_as_it_was_given_last(start):
    server = await start(IDLE)
    raw = b'{"model":"nope","model":"sim_text_to_video","input":[{"params":{"prompt":"a","prompt":"b"}}]}'
    assert (await post(server, raw)).json()["input"]["prompt"] == "b"


async def test_huge_numbers_are_refused_like_wrong_ones(server):
    for number in (b"1e308", b"-1e308", b"1" * 400, b"-" + b"9" * 4000, b"1e-400"):
        for field in (b"start_timeout", b"run_timeout", b"retention"):
            raw = b'{"model":"sim_text_to_video","input":[{"params":{}}],"%s":%s}' % (field, number)
            assert refused(await post(server, raw), 400, "invalid_params")["param"] == field.decode()


async def test_only_json_is_taken(server):
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
        "",
        "*/*",
    ):
        response = await post(server, body_of(), content_type=kind)
        error = refused(response, 415, "unsupported_media_type")
        assert "application/json" in error["message"]
    for encoding in ("gzip", "br", "deflate", "gzip, identity"):
        refused(await post(server, body_of(), content_encoding=encoding), 415, "unsupported_media_type")
    assert (await post(server, body_of(dry_run=True), content_encoding="identity")).status_code == 200
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        assert (await post(server, body_of(dry_run=True), content_type=kind)).status_code == 200


async def test_a_body_that_is_too_large_is_not_read(start):
    server = await start(overrides={"server.max_body_mb": 1})
    error = refused(await post(server, b" " * ((1 << 20) + 1)), 413, "body_too_large")
    assert "1048576" in error["message"]
    assert (await post(server, json.dumps(body_of(dry_run=True)).encode().ljust(1 << 20))).status_code == 200


async def test_a_flood_of_values_is_refused_before_it_costs_anything(server):
    body = body_of({f"prompt{number}": 1 for number in range(50_000)})
    error = refused(await post(server, body), 400, "invalid_params")
    assert (error["message"], error["details"]) == ("The body has more than 5000 values.", [])


# -- anything at all

WORDS = [
    *("model", "input", "params", "prompt", "script", "file", "url", "face_limit", "durationSeconds", "metadata"),
    *("webhook", "retention", "start_timeout", "dry_run", "client_ref", "object", "type", "texture", "latency"),
]
VALUES = [VIDEO, MODEL, TEXT_TO_VIDEO, "vendora_image_to_model", "16:9", "forever", "", "\x00", "data:,x", "😀"]


def invent(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(4 if depth > 4 else 8)
    match kind:
        case 0:
            return chance.choice(VALUES)
        case 1:
            return chance.choice([0, -1, 8, 8.0, 1e300, 10**30, 0.5, 2**53])
        case 2:
            return chance.choice([None, True, False])
        case 3 | 4:
            return [invent(chance, depth + 1) for _ in range(chance.randrange(3))]
        case _:
            return {chance.choice(WORDS): invent(chance, depth + 1) for _ in range(chance.randrange(6))}


async def test_no_json_makes_the_gateway_fail(start):
    server = await start(IDLE)
    chance = random.Random(7)  # noqa: S311  the same bodies every time
    for number in range(400):
        body: Any = {"model": chance.choice(VALUES[:4]), "input": [{"params": invent(chance, 2)}]}
        body |= {chance.choice(WORDS): invent(chance, 2) for _ in range(chance.randrange(2))}
        response = await post(server, body if number % 2 else invent(chance))
        if response.status_code not in (200, 202):
            assert response.status_code < 500, body
            refused(response, response.status_code, response.json()["error"]["code"])
