"""What only Veo has: tokens that run out, orders that are found in a bucket, and Google's many ways to filter."""

import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from doubles.media import Plan, Verdict, listening
from doubles.veo import (
    API_KEY,
    BUCKET,
    MODELS,
    PROJECT,
    STANDARD,
    SUPPORT,
    VIDEO,
    VeoBucketDouble,
    VeoInlineDouble,
    write_account,
)
from hypothesis import given, settings
from hypothesis import strategies as some
from pydantic import ValidationError
from vendors.double import HttpDouble, drop, drop_after, raw, reply, reset
from vendors.test_contract import Canned, anything, no_file
from vendors.test_media_contract import check, generate, submit

from penstock.offers.build import build_offers
from penstock.settings.problems import SettingsError
from penstock.settings.tables import load
from penstock.upstream.exchange import Exchange
from penstock.vendor_api.generation import Failed, NotSent, Order, Reply, VendorFolders
from penstock.vendors.veo import Veo, VeoOptions

TOKEN = ("POST", "/token")
PEM = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
UNAUTHENTICATED = json.dumps({"error": {"code": 401, "message": "no", "status": "UNAUTHENTICATED"}}).encode()


@pytest.fixture
async def inline() -> AsyncGenerator[VeoInlineDouble]:
    async with listening(VeoInlineDouble()) as double:
        yield double


@pytest.fixture
async def bucket() -> AsyncGenerator[VeoBucketDouble]:
    async with listening(VeoBucketDouble()) as double:
        yield double


# -- settings


def account(**more: Any) -> str:
    """A key file whose key opens nothing."""
    return json.dumps({"client_email": "a", "private_key": PEM, "project_id": PROJECT, **more})


def options(**more: Any) -> VeoOptions:
    return VeoOptions.model_validate({"type": "veo", "service_account": account(), **more})


WITH_KEY = {"service_account": None, "api_key": "AIza-c2VjcmV0"}
WRONG = {
    "no text": {"service_account": 7},
    "no JSON": {"service_account": f"{PEM} and more"},
    "no object": {"service_account": json.dumps([PEM])},
    "no private key": {"service_account": json.dumps({"client_email": "a", "secret": PEM})},
    "a private key of another kind": {"service_account": account(private_key=[PEM])},
    "no PEM": {"service_account": account(private_key="c2VjcmV0")},
    "a public key": {"service_account": account(private_key=PEM.replace("PRIVATE", "PUBLIC"))},
    "a token_uri that is none": {"service_account": account(token_uri="file:///c2VjcmV0")},
    "no credential": {"service_account": None},
    "two credentials": {"api_key": "AIza-c2VjcmV0"},
    "no project": {"service_account": account(project_id=None)},
    "an API key without a project": WITH_KEY,
    "a bucket for an API key": {**WITH_KEY, "project": PROJECT, "storage_uri": "gs://b/"},
    "a location that is none": {"location": "us/central1"},
    "a bucket that is none": {"storage_uri": "s3://bucket/"},
    "a bucket without a name": {"storage_uri": "gs:///folder/"},
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_told_without_secrets(name):
    with pytest.raises(ValidationError) as caught:
        options(**WRONG[name])
    assert "c2VjcmV0" not in str(caught.value)


def test_the_settings_problem_names_its_place_and_no_key(tmp_path):
    (tmp_path / "key.json").write_text(json.dumps({"private_key": PEM}))
    config = tmp_path / "penstock.toml"
    config.write_text('[vendors.veo]\ntype = "veo"\nservice_account = "file:key.json"\n')
    with pytest.raises(SettingsError) as caught:
        build_offers(load(config, {}, {"data": tmp_path}), None)
    assert "[vendors.veo]" in str(caught.value)
    assert "a JSON object with `client_email` and `private_key`" in str(caught.value)
    assert "c2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize("path", ["key.json", "/etc/penstock/key.json", "~/key.json"])
def test_a_path_without_its_word_is_told_the_word(tmp_path, path):
    config = tmp_path / "penstock.toml"
    config.write_text(f'[vendors.veo]\ntype = "veo"\nservice_account = "{path}"\n')
    with pytest.raises(SettingsError, match=r'`service_account`.*use "file:PATH"'):
        build_offers(load(config, {}, {"data": tmp_path}), None)


@pytest.mark.parametrize(
    ("given_settings", "base", "storage"),
    [
        ({}, "https://us-central1-aiplatform.googleapis.com", "https://storage.googleapis.com"),
        ({"location": "europe-west4"}, "https://europe-west4-aiplatform.googleapis.com", None),
        ({"location": "global", "base_url": ""}, "https://aiplatform.googleapis.com", "https://storage.googleapis.com"),
        ({"base_url": "http://proxy/x"}, "http://proxy/x", "http://proxy/x"),
        ({"base_url": "http://proxy", "storage_url": "http://store"}, "http://proxy", "http://store"),
    ],
)
def test_hosts_follow_from_the_location(given_settings, base, storage):
    read = options(**given_settings)
    assert read.base_url == base
    assert read.storage_url == (storage or "https://storage.googleapis.com")
    assert read == options(**given_settings), "a reload keeps the vendor"
    assert "PRIVATE KEY" not in repr(read)


@pytest.mark.parametrize("place", ["gs://b", "gs://b/", "gs://b/folder", "gs://b/folder/"])
def test_a_folder_with_or_without_a_slash_is_the_same(place):
    given_options = options(service_account=write_account(), storage_uri=place)
    flow = Veo(given_options, VendorFolders(Path("nowhere"), Path("nowhere"))).submit(Order("job_1-1", STANDARD, VIDEO))
    assert next(flow).url == "https://oauth2.googleapis.com/token"
    call = flow.send(Reply(200, {}, b'{"access_token": "t"}'))
    assert call.json["parameters"]["storageUri"] == place.rstrip("/") + "/job_1-1/"


# -- models


async def test_the_order_says_what_the_caller_said(inline, start):
    server = await start(inline.settings())
    await generate(server, inline, 1)
    (order,) = inline.orders.values()
    assert order.body == {
        "instances": [{"prompt": "Zürich im Regen ☂"}],
        "parameters": {
            "durationSeconds": 6,
            "aspectRatio": "9:16",
            "resolution": "720p",
            "compressionQuality": "lossless",
            "personGeneration": "dont_allow",
            "generateAudio": True,
            "sampleCount": 1,
        },
    }


@pytest.mark.parametrize(
    ("model", "name", "cost"),
    [
        ("veo_text_to_video", STANDARD, "1.60"),
        ("veo_fast_text_to_video", "veo-3.1-fast-generate-001", "0.40"),
        ("veo_lite_text_to_video", "veo-3.1-lite-generate-001", None),
    ],
)
async def test_variants_are_models_of_their_own(inline, start, model, name, cost):
    server = await start(inline.settings())
    params = {"prompt": "a mill", "durationSeconds": 4, "negativePrompt": "rain", "generateAudio": False}
    job = await server.generate(model, **params)
    check(job, Verdict(None))
    assert inline.count("POST", f"/v1/{MODELS}/{name}:predictLongRunning") == 1
    (order,) = inline.orders.values()
    parameters = order.body["parameters"]
    assert (parameters["negativePrompt"], parameters["generateAudio"]) == ("rain", False)
    assert parameters["seed"] == job["seed"]
    assert (job["cost"] or {}).get("final") == cost


@pytest.mark.parametrize(
    "wrong",
    [{"durationSeconds": 5}, {"resolution": "4k"}, {"seed": 1 << 32}, {"sampleCount": 4}, {"storageUri": "gs://b/"}],
)
async def test_what_veo_would_refuse_is_refused_at_once(inline, start, wrong):
    server = await start(inline.settings())
    body = {"model": "veo_text_to_video", "input": [{"params": {"prompt": "a mill", **wrong}}]}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 400, response.text
    assert inline.seen == []


async def test_a_retired_model_is_rejected(inline, start):
    entry = '[[models]]\nid = "vendorb_video_31"\nvendor = "veo"\nmodel = "veo-3.1-generate-preview"\n'
    server = await start(inline.settings() + entry)
    job = await generate(server, inline)
    check(job, Verdict("upstream_rejected"))
    assert job["error"]["upstream"]["code"] == "NOT_FOUND"


async def test_an_api_key_does_without_tokens(inline, start):
    toml = f'[vendors.veo]\ntype = "veo"\nbase_url = "{inline.url}"\nproject = "{PROJECT}"\napi_key = "{API_KEY}"\n'
    server = await start(f"{toml}poll_seconds = 0.02\n")
    check(await generate(server, inline), Verdict(None))
    assert inline.count(*TOKEN) == 0


# -- tokens


async def test_one_token_serves_many_jobs(inline, start):
    server = await start(inline.settings())
    for _ in range(3):
        check(await generate(server, inline), Verdict(None))
    assert inline.count(*TOKEN) == 1
    (claims,) = inline.claims
    assert claims["exp"] - claims["iat"] == 3600


async def test_a_token_is_replaced_before_it_ends(inline, start):
    inline.expires_in = 0.5
    inline.plans.append(Plan(seconds=1.5))
    server = await start(inline.settings())
    check(await generate(server, inline), Verdict(None))
    assert inline.count(*TOKEN) > 1
    assert len(inline.orders) == 1


async def revoke(double: HttpDouble, request: Any) -> Any:
    """Nothing is opened by the token that comes with the request, nor by any other."""
    assert isinstance(double, VeoInlineDouble | VeoBucketDouble)
    double.revoke()
    return await double.play(request)


async def test_a_revoked_token_is_replaced_and_the_order_placed_once(inline, start):
    server = await start(inline.settings())
    await generate(server, inline)
    inline.fault(revoke, *inline.order_call)
    check(await generate(server, inline), Verdict(None))
    assert len(inline.orders) == 2
    assert inline.count(*inline.order_call) == 3
    assert inline.count(*TOKEN) == 2


async def test_a_revoked_token_ends_no_poll(inline, start):
    server = await start(inline.settings())
    inline.fault(revoke, *inline.poll_call)
    check(await generate(server, inline), Verdict(None))
    assert inline.count(*TOKEN) == 2
    assert len(inline.orders) == 1


async def test_a_revoked_token_ends_no_download(bucket, start):
    server = await start(bucket.settings())
    bucket.fault(revoke, "GET", f"/storage/v1/b/{BUCKET}/o/")
    check(await generate(server, bucket), Verdict(None))
    assert bucket.count("GET", f"/storage/v1/b/{BUCKET}/o/") == 2
    assert len(bucket.orders) == 1


async def test_a_new_token_that_is_refused_ends_the_job(inline, start):
    server = await start(inline.settings())
    inline.fault(reply(401, UNAUTHENTICATED), *inline.order_call, times=9)
    for orders in (1, 2):
        check(await generate(server, inline), Verdict("upstream_auth"))
        assert inline.count(*inline.order_call) == orders
    assert inline.orders == {}


@pytest.mark.parametrize(
    "act",
    [
        reply(503, b"{}"),
        reply(429, b"{}"),
        reply(200, b"<html>"),
        reply(200, b"[]"),
        reply(200, b'{"access_token": ""}'),
        reply(200, b'{"access_token": "a\\nb", "expires_in": 3600}'),
        reply(200, b'{"access_token": "a", "expires_in": "soon"}'),
        raw(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"),
        drop,
        drop_after,
        reset,
    ],
)
async def test_trouble_with_tokens_loses_no_order(inline, start, act):
    server = await start(inline.settings())
    inline.fault(act, *TOKEN, times=2)
    check(await generate(server, inline), Verdict(None))
    assert inline.count(*inline.order_call) == 1


async def test_without_tokens_nothing_is_ordered(inline, start):
    server = await start(inline.settings())
    inline.fault(reply(500, b"{}"), *TOKEN, times=100)
    check(await generate(server, inline), Verdict("upstream_unavailable", retryable=True))
    assert inline.count(*inline.order_call) == 0


async def test_trouble_with_tokens_ends_no_poll(inline, start):
    async def deny(double: HttpDouble, request: Any) -> Any:
        double.fault(reply(400, b'{"error": "invalid_grant"}'), *TOKEN, times=2)
        return await revoke(double, request)

    server = await start(inline.settings())
    inline.fault(deny, *inline.poll_call)
    check(await generate(server, inline), Verdict(None))
    assert inline.count(*TOKEN) == 4


def write_key(kind: str) -> str:
    """A private key that cannot sign for a service account."""
    made = ec.generate_private_key(ec.SECP256R1())
    lock = NoEncryption() if kind == "elliptic" else BestAvailableEncryption(b"password")
    return PEM if kind == "junk" else made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode()


@pytest.mark.parametrize("kind", ["junk", "elliptic", "locked"])
async def test_a_key_of_no_use_is_told_and_nothing_is_sent(inline, start, kind):
    useless = account(private_key=write_key(kind), token_uri=f"{inline.url}/token")
    server = await start(inline.settings(service_account=useless))
    job = await generate(server, inline)
    check(job, Verdict("upstream_auth"))
    assert job["error"]["upstream"]["code"] == "private_key"
    assert inline.seen == []


async def test_nothing_told_holds_the_claim_a_token_or_the_key(inline, start, caplog):
    caplog.set_level(logging.DEBUG)
    server = await start(inline.settings(**inline.wrong_credential))
    denied = await generate(server, inline)
    check(denied, Verdict("upstream_auth"))
    assert denied["error"]["upstream"]["code"] == "invalid_grant"
    assert denied["error"]["upstream"]["message"].startswith("Invalid JWT Signature.")
    told = json.dumps(denied) + caplog.text
    (seen,) = inline.seen
    claim = seen.body.decode().partition("assertion=")[2]
    for secret in (claim, claim.rpartition(".")[2], "gserviceaccount", "PRIVATE KEY", inline.url):
        assert secret not in told


# -- how jobs end


async def test_a_filtered_job_tells_the_support_codes(inline, start):
    server = await start(inline.settings())
    for ending in ("rai-all", "support code"):
        inline.plans.append(Plan(ending))
        job = await generate(server, inline)
        check(job, Verdict("content_filtered"))
        told = job["error"]["upstream"]
        assert told["code"] == "58061214, 17301594"
        assert "usage guidelines" in told["message"]
        assert told["id"] in inline.orders


async def test_a_filtered_prompt_is_told_at_once(inline, start):
    server = await start(inline.settings())
    body = json.dumps({"error": {"code": 400, "message": SUPPORT, "status": "INVALID_ARGUMENT"}}).encode()
    inline.fault(reply(400, body), *inline.order_call)
    job = await generate(server, inline)
    check(job, Verdict("content_filtered"))
    assert job["error"]["stage"] == "dispatching"
    assert job["error"]["upstream"]["code"] == "58061214, 17301594"


async def test_a_partly_filtered_job_warns(inline, start):
    server = await start(inline.settings())
    inline.plans.append(Plan("rai-partial"))
    job = await generate(server, inline)
    assert job["warnings"] == ["The vendor's content filter held a part of the result back."]


async def test_an_operation_that_never_ends_expires(inline, start):
    server = await start(inline.settings())
    inline.plans.append(Plan(polls=10**6))
    job = await generate(server, inline, run_timeout=1)
    assert (job["status"], job["error"]["code"]) == ("expired", "run_timeout")
    assert len(inline.orders) == 1


# -- the bucket


async def test_a_lost_order_is_waited_for(bucket, start):
    server = await start(bucket.settings())
    bucket.plans.append(Plan(polls=4))
    bucket.fault(drop_after, *bucket.order_call)
    check(await generate(server, bucket), Verdict(None))
    assert bucket.count("GET", f"/storage/v1/b/{BUCKET}/o?") > 2
    assert bucket.count(*bucket.order_call) == 1


async def test_a_lost_order_that_never_shows_is_given_up(bucket, start):
    server = await start(bucket.settings(lookup_seconds=0.2))
    bucket.fault(drop, *bucket.order_call)
    check(await generate(server, bucket), Verdict("upstream_outcome_unknown"))
    assert bucket.count("GET", f"/storage/v1/b/{BUCKET}/o?") > 0
    assert bucket.count(*bucket.order_call) == 1


@pytest.mark.parametrize("status", [403, 404])
async def test_a_bucket_that_cannot_be_listed_tells_nothing(bucket, start, status):
    server = await start(bucket.settings())
    bucket.fault(drop_after, *bucket.order_call)
    bucket.fault(reply(status, b"{}"), "GET", "/storage/", times=9)
    check(await generate(server, bucket), Verdict("upstream_outcome_unknown"))


async def test_listings_are_troubled_too(bucket, start):
    server = await start(bucket.settings())
    bucket.fault(drop_after, *bucket.order_call)
    for act in (reply(503, b"{}"), reply(200, b'{"items": 7}'), revoke, reset):
        bucket.fault(act, "GET", f"/storage/v1/b/{BUCKET}/o?")
    check(await generate(server, bucket), Verdict(None))
    assert bucket.count(*bucket.order_call) == 1


async def test_jobs_of_one_bucket_find_their_own(bucket, start):
    server = await start(bucket.settings())
    bucket.fault(drop_after, *bucket.order_call, times=2)
    jobs = [await submit(server, bucket, case) for case in (0, 1)]
    ended = [await server.finish(job["id"]) for job in jobs]
    sizes = [[(output["width"], output["height"]) for output in job["outputs"]] for job in ended]
    assert sizes == [[(1280, 720)], [(720, 1280)]]


async def test_a_token_goes_to_google_alone(bucket, start):
    """What a reply calls a bucket stays a name: no address in it is followed."""
    server = await start(bucket.settings())
    body = json.dumps({"done": True, "response": {"videos": [{"gcsUri": f"{bucket.host.url}/x/y.mp4"}]}}).encode()
    bucket.fault(reply(200, body), *bucket.poll_call)
    check(await generate(server, bucket), Verdict(None))
    assert bucket.host.seen == []
    assert len(bucket.orders) == 1


# -- plain data


@given(status=some.sampled_from([200, 204, 301, 400, 401, 403, 404, 408, 429, 500, 503]), body=anything)
@settings(max_examples=50, deadline=None)
async def test_whatever_comes_instead_of_a_token_nothing_was_ordered(status, body):
    veo = Veo(options(service_account=write_account()), VendorFolders(Path("nowhere"), Path("nowhere")))
    veo.upstream = Canned(status, json.dumps(body).encode())
    try:
        result = await Exchange(no_file).drive("veo", veo, "submit", veo.submit(Order("job_1-1", STANDARD, VIDEO)))
    except NotSent:
        return
    assert isinstance(result, Failed)
    assert result.error.code == "upstream_auth"
