"""Replicate: webhooks with real signatures, declared models in every form, files, and lost orders found again."""

import base64
import json
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Generator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, running
from doubles.media import Plan, listening, make_result
from doubles.replicate import (
    DEPLOYMENT,
    OF_PICTURE,
    PICTURE,
    THROTTLED,
    UPSCALER,
    VEO,
    VERSION,
    VIDEO,
    ReplicateDouble,
    sign,
    told,
)
from PIL import Image
from ports import free_port
from vendors.double import drop, drop_after, reply

from penstock.catalog.declared import declare
from penstock.catalog.model import Recipe
from penstock.settings.tables import load
from penstock.simulator.samples import make_preview
from penstock.vendor_api.generation import (
    Accepted,
    Call,
    Done,
    Failed,
    Notice,
    Order,
    Refused,
    Reply,
    Running,
    Similar,
    Unclear,
    VendorFolders,
)
from penstock.vendor_api.order_lookup import Listing
from penstock.vendors.replicate import Replicate, ReplicateOptions

SECRET_PATH = "/v1/webhooks/default/secret"
SCHEMA = (
    '{type = "object", required = ["prompt"], '
    'properties = {prompt = {type = "string"}, steps = {type = "integer", default = 4}}}'
)
SEEDED = SCHEMA.replace("steps", "seed").replace(", default = 4", "")
SCALED = '{required = ["image"], properties = {image = {}, scale = {type = "integer", default = 2}}}'

Open = Callable[..., Any]


@pytest.fixture
async def double() -> AsyncGenerator[ReplicateDouble]:
    async with listening(ReplicateDouble()) as found:
        yield found


@pytest.fixture
def gateway(tmp_path: Path, empty_store: Path, weights: Path) -> Open:
    """A gateway with these settings, for as long as a block runs."""

    def begin(toml: str, port: int = 0) -> Any:
        shutil.copy(empty_store, tmp_path)
        config = tmp_path / "penstock.toml"
        config.write_text(toml)
        return running(load(config, {}, {"data": tmp_path, "weights": weights}), port)

    return begin


def entry(model: str = PICTURE, *, kind: str = "image", **more: str) -> str:
    """A declared model, `my-model`; what more is given stands there as TOML."""
    rest = "".join(f"{name} = {value}\n" for name, value in more.items())
    return f'[[models]]\nid = "my-model"\nkind = "{kind}"\nvendor = "replicate"\nmodel = "{model}"\n{rest}'


async def submit(server: Server, **params: Any) -> str:
    body = {"model": "my-model", "input": [{"params": params}]}
    response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 202, response.text
    return response.json()["id"]


async def upload(server: Server, data: bytes) -> dict[str, str]:
    response = await server.client.post("/api/v1/files", files={"file": ("cat.png", data, "image/png")})
    return {"file_token": response.json()["file_token"]}


def sent(double: ReplicateDouble, path: str) -> list[dict[str, Any]]:
    """The bodies of all orders to a path."""
    return [json.loads(seen.body) for seen in double.seen if (seen.method, seen.path) == ("POST", path)]


def make_noise(side: int) -> bytes:
    """A picture that cannot be made smaller."""
    file = BytesIO()
    Image.frombytes("RGB", (side, side), os.urandom(side * side * 3)).save(file, "PNG")
    return file.getvalue()


# -- webhooks


async def generating(server: Server, job_id: str) -> None:
    """Wait until the vendor's word for the order is written down."""
    async with server.client.stream("GET", f"/api/v1/jobs/{job_id}/events") as stream:
        async for line in stream.aiter_lines():
            if '"generating"' in line:
                return


async def test_only_a_genuine_notice_has_the_job_polled(double, gateway):
    port = free_port()
    toml = f'[server]\npublic_url = "http://127.0.0.1:{port}"\n{double.settings(poll_seconds=30)}{entry()}'
    double.plans.append(Plan(seconds=0))
    async with gateway(toml, port) as server:
        job_id = await submit(server, prompt="a mill")
        await generating(server, job_id)
        (order,) = double.orders.values()
        assert sent(double, f"/v1/models/{PICTURE}/predictions") == [
            {"input": {"prompt": "a mill"}, "webhook": order.webhook, "webhook_events_filter": ["completed"]}
        ]
        headers, body = double.notice(order)
        signature = headers["webhook-signature"]
        forged = {
            "another secret": double.notice(order, secret=b"guessed"),
            "old": double.notice(order, age=301),
            "of the future": double.notice(order, age=-330),
            "another body": (headers, body + b" "),
            "another id": (headers | {"webhook-id": "msg_other"}, body),
            "unsigned": ({}, body),
            "no signature": (headers | {"webhook-signature": ""}, body),
            "another scheme": (headers | {"webhook-signature": signature.replace("v1,", "v2,")}, body),
            "no time": (headers | {"webhook-timestamp": "now"}, body),
            "endless time": (headers | {"webhook-timestamp": "9" * 5000}, body),
        }
        for way, (these, content) in forged.items():
            response = await server.client.post(order.webhook, headers=these, content=content)
            assert response.status_code == 404, way
        assert double.count("GET", SECRET_PATH) == 1
        assert double.count("GET", f"/v1/predictions/{order.id}") == 0

        response = await server.client.post(order.webhook, headers=headers, content=body)
        assert (response.status_code, response.json()) == (200, {"received": True})
        job = await server.finish(job_id, seconds=25)
    assert job["status"] == "succeeded", job["error"]
    assert double.count("GET", SECRET_PATH) == 1
    assert double.count("GET", f"/v1/predictions/{order.id}") == 1


async def test_a_notice_that_cannot_be_proved_is_to_come_again(double, gateway):
    port = free_port()
    toml = f'[server]\npublic_url = "http://127.0.0.1:{port}"\n{double.settings(poll_seconds=30)}{entry()}'
    double.fault(reply(500, b"{}"), "GET", SECRET_PATH)
    async with gateway(toml, port) as server:
        job_id = await submit(server, prompt="a mill")
        await generating(server, job_id)
        (order,) = double.orders.values()
        headers, body = double.notice(order)
        for _ in range(2):
            response = await server.client.post(order.webhook, headers=headers, content=body)
            assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        assert double.count("GET", SECRET_PATH) == 1
        assert double.count("GET", f"/v1/predictions/{order.id}") == 0


@pytest.mark.parametrize("more", [{}, {"webhooks": False}])
async def test_without_an_address_none_is_given(double, gateway, more):
    public = '[server]\npublic_url = "http://127.0.0.1:1"\n' if more else ""
    async with gateway(f"{public}{double.settings(**more)}{entry()}") as server:
        await server.finish(await submit(server, prompt="a mill"))
    assert sent(double, f"/v1/models/{PICTURE}/predictions") == [{"input": {"prompt": "a mill"}}]


def make_vendor(**options: Any) -> Replicate:
    return Replicate(ReplicateOptions(type="replicate", api_key="r8_1", **options), VendorFolders(Path("x"), Path("y")))


def secret_reply(secret: bytes) -> Reply:
    return answered(200, {"key": f"whsec_{base64.b64encode(secret).decode()}"})


def answered(status: int, body: Any, **headers: str) -> Reply:
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(body).encode())


def drive(flow: Generator[Call, Reply, Any], *replies: Reply) -> tuple[Any, list[Call]]:
    """What a flow makes of these replies, and the calls it made; it must want all of them."""
    left, calls = list(replies), []
    try:
        calls.append(next(flow))
        while True:
            calls.append(flow.send(left.pop(0)))
    except StopIteration as end:
        assert not left
        return end.value, calls


def hear(vendor: Replicate, secret: bytes, now: float, *replies: Reply) -> tuple[bool, int]:
    heard, calls = drive(vendor.verify_notice(Notice(sign(secret, b"{}", now), b"{}", now)), *replies)
    assert all(call.url == SECRET_PATH for call in calls)
    return heard, len(calls)


def test_a_new_secret_is_learned_in_time():
    vendor, day = make_vendor(), 86_400.0
    assert hear(vendor, b"one", 1000.0, secret_reply(b"one")) == (True, 1)
    assert hear(vendor, b"one", 1001.0) == (True, 0)
    assert hear(vendor, b"two", 1299.0) == (False, 0)
    assert hear(vendor, b"two", 1300.0, secret_reply(b"two")) == (True, 1)
    assert hear(vendor, b"one", 1599.0) == (False, 0)
    assert hear(vendor, b"bad", 1600.0, secret_reply(b"two")) == (False, 1)
    assert hear(vendor, b"bad", 1601.0) == (False, 0)
    assert hear(vendor, b"two", 1600.0 + day, secret_reply(b"three")) == (False, 1)


@pytest.mark.parametrize("body", [{}, {"key": None}, {"key": "whsec_"}, {"key": "whsec_?"}, [], {"key": "whsec_é"}])
def test_a_secret_that_is_none_proves_nothing(body):
    vendor = make_vendor()
    notice = Notice(sign(b"", b"{}", 1000.0), b"{}", 1000.0)
    for now in (1000.0, 1006.0):
        with pytest.raises((Unclear, ValueError)):
            drive(vendor.verify_notice(Notice(notice.headers, b"{}", now)), answered(200, body))
    with pytest.raises(Unclear):
        drive(vendor.verify_notice(Notice(notice.headers, b"{}", 1007.0)))


# -- declared models


async def test_a_model_with_a_schema(double, gateway):
    async with gateway(double.settings() + entry(params=SCHEMA, output='"0"')) as server:
        job = await server.finish(await submit(server, prompt="a mill"))
        body = {"model": "my-model", "input": [{"params": {"prompt": 7, "stepz": 1}}]}
        refused = await server.client.post("/model/v1/generation", json=body)
    assert (job["status"], job["outputs"][0]["kind"]) == ("succeeded", "image")
    assert sent(double, f"/v1/models/{PICTURE}/predictions") == [{"input": {"prompt": "a mill", "steps": 4}}]
    assert refused.status_code == 400
    assert len(double.orders) == 1


async def test_a_model_without_a_schema(double, gateway):
    async with gateway(double.settings() + entry()) as server:
        job = await server.finish(await submit(server, prompt="a mill", steps=2))
        wrong = await server.finish(await submit(server, prompt="a mill", no_such_param=2))
    assert job["status"] == "succeeded", job["error"]
    assert wrong["error"]["code"] == "upstream_rejected"
    assert "no_such_param" in wrong["error"]["upstream"]["message"]


@pytest.mark.parametrize(
    ("model", "path", "more"),
    [
        (PICTURE, f"/v1/models/{PICTURE}/predictions", {}),
        (f"{PICTURE}:{VERSION}", "/v1/predictions", {"version": VERSION}),
        (VERSION, "/v1/predictions", {"version": VERSION}),
        (f"deployments/{DEPLOYMENT}", f"/v1/deployments/{DEPLOYMENT}/predictions", {}),
    ],
    ids=["name", "name and version", "version", "deployment"],
)
async def test_every_form_of_a_name(double, gateway, model, path, more):
    double.fault(drop_after, "POST", path)
    async with gateway(double.settings() + entry(model, params=SEEDED)) as server:
        job = await server.finish(await submit(server, prompt="a mill"))
    assert job["status"] == "succeeded", job["error"]
    assert sent(double, path) == [{**more, "input": {"prompt": "a mill", "seed": job["seed"]}}]


# -- files


async def test_a_small_file_stands_in_the_order(double, gateway):
    data = make_preview(7, 64, 64)
    async with gateway(double.settings() + entry(UPSCALER, file='"image"', params=SCALED)) as server:
        job = await server.finish(await submit(server, file=await upload(server, data)))
    assert job["status"] == "succeeded", job["error"]
    uri = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    assert sent(double, f"/v1/models/{UPSCALER}/predictions") == [{"input": {"scale": 2, "image": uri}}]
    assert double.uploads == {}


async def test_a_large_file_is_uploaded_first(double, gateway):
    data = make_noise(320)
    double.fault(reply(502, b"<html>"), "POST", "/v1/files")
    async with gateway(double.settings() + entry(UPSCALER, file='"image"', params=SCALED)) as server:
        job = await server.finish(await submit(server, file=await upload(server, data)))
    assert job["status"] == "succeeded", job["error"]
    ((url, stored),) = double.uploads.items()
    assert stored == data
    assert sent(double, f"/v1/models/{UPSCALER}/predictions") == [{"input": {"scale": 2, "image": url}}]


async def test_a_file_of_a_model_that_names_none(double, gateway):
    data = make_preview(7, 64, 64)
    async with gateway(double.settings() + entry(UPSCALER)) as server:
        token = await upload(server, data)
        job = await server.finish(await submit(server, file=token, image="https://example.com/x.png"))
    assert job["error"]["code"] == "upstream_rejected"
    assert "input.file" in job["error"]["upstream"]["message"]


async def test_a_result_behind_the_api_is_fetched_with_the_key(double, gateway):
    double.behind_api = True
    async with gateway(double.settings() + entry()) as server:
        job = await server.finish(await submit(server, prompt="a mill"))
        data = (await server.client.get(job["outputs"][0]["url"])).content
    (order,) = double.orders.values()
    assert data == make_result(order.wish)
    assert double.host.seen == []


# -- lost orders


@pytest.mark.parametrize("page", [1, 100])
async def test_equal_orders_are_each_found_once(double, gateway, page):
    """Of three equal orders none is answered, and one never arrives: it is placed again, and nothing is paid twice."""
    double.page = page
    path = f"/v1/models/{PICTURE}/predictions"
    double.fault(drop_after, "POST", path)
    double.fault(drop, "POST", path)
    double.fault(drop_after, "POST", path)
    async with gateway(double.settings(lookup_seconds=0.3) + entry()) as server:
        ids = [await submit(server, prompt="a mill") for _ in range(3)]
        jobs = [await server.finish(job_id) for job_id in ids]
    assert [job["error"] for job in jobs] == [None, None, None]
    found = [job["attempts"][-1]["upstream_id"] for job in jobs]
    assert sorted(found) == sorted(double.orders)
    assert double.count("POST", path) == 4


async def test_an_order_that_another_job_holds_is_left_to_it(double, gateway):
    double.plans.append(Plan(polls=5))
    async with gateway(double.settings() + entry()) as server:
        first = await submit(server, prompt="a mill")
        await generating(server, first)
        double.fault(drop_after, "POST", "/v1/models/")
        second = await submit(server, prompt="a mill")
        jobs = [await server.finish(job_id) for job_id in (first, second)]
    assert [job["attempts"][-1]["upstream_id"] for job in jobs] == [*double.orders]
    assert [job["status"] for job in jobs] == ["succeeded", "succeeded"]


async def test_another_pages_host_gets_no_key(double, gateway):
    double.page, double.abroad = 1, double.host.url
    async with gateway(double.settings(lookup_seconds=0.1) + entry(params=SEEDED)) as server:
        for seed in (1, 2):
            assert (await server.finish(await submit(server, prompt="a mill", seed=seed)))["error"] is None
        fetched = len(double.host.seen)
        double.fault(drop, "POST", "/v1/models/")
        job = await server.finish(await submit(server, prompt="a mill", seed=3))
    assert job["error"]["code"] == "upstream_outcome_unknown"
    assert len(double.host.seen) == fetched


@pytest.mark.parametrize("mine", [7, 8])
async def test_only_an_order_of_the_same_picture_is_mine(double, gateway, mine):
    """Someone else's order differs by its picture alone: its result is never handed over."""
    settings = double.settings(lookup_seconds=0.1) + entry(UPSCALER, file='"image"', params=SCALED)
    async with gateway(settings) as server:
        picture = await upload(server, make_preview(7, 64, 64))
        assert (await server.finish(await submit(server, file=picture)))["error"] is None
        double.fault(drop_after if mine == 7 else drop, "POST", "/v1/models/")
        job = await server.finish(await submit(server, file=await upload(server, make_preview(mine, 64, 64))))
    assert job["error"] is None
    assert job["attempts"][-1]["upstream_id"] == [*double.orders][1], "not the one that was finished before"


async def test_an_uploaded_picture_cannot_be_compared(double, gateway):
    settings = double.settings(lookup_seconds=0.1) + entry(UPSCALER, file='"image"', params=SCALED)
    double.fault(drop_after, "POST", "/v1/models/")
    async with gateway(settings) as server:
        job = await server.finish(await submit(server, file=await upload(server, make_noise(320))))
    assert job["error"]["code"] == "upstream_outcome_unknown"
    assert len(double.orders) == 1


# -- plain data


def listed(**more: Any) -> dict[str, Any]:
    return told("starting", input={"prompt": "a mill", "seed": 7}, **more)


OTHERS = {
    "another model": listed(model="google/veo-3.1"),
    "no model": listed(model=None),
    "another seed": listed() | {"input": {"prompt": "a mill", "seed": 8}},
    "more input": listed() | {"input": {"prompt": "a mill", "seed": 7, "duration": 4}},
    "less input": listed() | {"input": {"prompt": "a mill"}},
    "no input": listed() | {"input": None},
    "an odd id": listed(id="../../account"),
    "no id": listed(id=None),
    "older than the order": listed(created_at="2020-01-01T00:00:00Z"),
}


def test_what_is_like_the_order_and_what_is_not():
    order = Order("job_1-1", VEO, {"prompt": "a mill", "seed": 7}, placed_at=1.7e9)
    over = {"completed_at": "2026-11-15T10:00:00Z"}
    latest = [
        listed(id="new"),
        *OTHERS.values(),
        listed(id="over", **over),
        listed(id="old"),
        listed(id="past", **over),
    ]
    found, _ = drive(make_vendor().find(order), answered(200, {"next": None, "results": latest}))
    assert [each.upstream_id for each in found.orders] == ["past", "old", "over", "new"]


def test_a_deployments_order_is_known_by_its_seed_only():
    page = answered(200, {"results": [listed(id="seeded"), told("starting", id="plain", input={"prompt": "a mill"})]})
    recipe = Recipe("image")
    for params, names in (({"prompt": "a mill", "seed": 7}, ["seeded"]), ({"prompt": "a mill"}, [])):
        order = Order("job_1-1", f"deployments/{DEPLOYMENT}", params, recipe=recipe)
        found, _ = drive(make_vendor().find(order), page)
        assert [each.upstream_id for each in found.orders] == names


def test_pages_end():
    page = answered(200, {"next": "https://api.replicate.com/v1/predictions?cursor=x", "results": []})
    found, calls = drive(make_vendor().find(Order("job_1-1", VEO, VIDEO)), page, page, page)
    assert found == Similar(listing=Listing())
    assert len(calls) == 3


@pytest.mark.parametrize(
    "base", ["https://api.replicate.com", "https://api.replicate.com/", "http://127.0.0.1:9/replicate"]
)
@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("{base}/v1/files/x.mp4", True),
        ("https://replicate.delivery/x.mp4", False),
        ("{base}.evil.example/x.mp4", False),
        ("{base}@evil.example/x.mp4", False),
        ("https://evil.example/{base}/x.mp4", False),
    ],
)
def test_the_key_goes_to_replicate_only(base, url, own):
    vendor = make_vendor(base_url=base)
    url = url.format(base=base.rstrip("/"))
    operation = {"id": "p1", "recipe": {"kind": "video"}}
    done, calls = drive(vendor.poll(operation), answered(200, told("succeeded", output=url, urls={"get": url})))
    assert [call.url for call in calls] == ["/v1/predictions/p1"]
    assert isinstance(done, Done)
    assert done.outputs[0].download.url == url
    assert done.outputs[0].download.headers == ({"authorization": "Bearer r8_1"} if own else {})


@pytest.mark.parametrize(
    ("logs", "progress"),
    [
        ("", None),
        (None, None),
        (["40%|"], None),
        ("  7%|▋ | 1/14\r 40%|████ | 6/14", 0.4),
        ("100%|█| 5/5", 1.0),
        ("999%|", 1.0),
        ("about 40% done", None),
        ("٤٠%|", None),
        ("5%|" + "x" * 10_000_000, None),
    ],
)
def test_progress(logs, progress):
    running, _ = drive(make_vendor().poll({"id": "p1", "recipe": {}}), answered(200, told("processing", logs=logs)))
    assert running == Running(progress)


@pytest.mark.parametrize(
    ("body", "headers", "seconds"),
    [
        (THROTTLED, {}, 30.0),
        (THROTTLED, {"retry_after": "2"}, 2.0),
        ({"detail": "Request was throttled."}, {}, None),
        ({"detail": ["~5s"]}, {}, 5.0),
        ([], {}, None),
    ],
)
def test_how_long_to_wait(body, headers, seconds):
    flow = make_vendor().submit(Order("job_1-1", VEO, VIDEO))
    assert drive(flow, answered(429, body, **headers))[0] == Refused(seconds)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("NSFW content detected.", "content_filtered"),
        ("The input or output was flagged as sensitive. (E005)", "content_filtered"),
        ("Prompt blocked by Safety filters", "content_filtered"),
        ("cannot load model.safetensors", "upstream_error"),
        ({"nested": "nsfw"}, "content_filtered"),
        (None, "upstream_error"),
    ],
)
def test_why_it_failed(error, code):
    failed, _ = drive(make_vendor().poll({"id": "p1", "recipe": {}}), answered(200, told("failed", error=error)))
    assert isinstance(failed, Failed)
    assert failed.error.code == code


@pytest.mark.parametrize(
    ("status", "body", "stopped"),
    [
        (200, told("canceled"), True),
        (200, told("processing"), True),
        (200, told("succeeded"), False),
        (404, {}, False),
        (422, {}, False),
    ],
)
def test_cancel(status, body, stopped):
    (answer, calls) = drive(make_vendor().cancel({"id": "p1"}), answered(status, body))
    assert answer is stopped
    assert [(call.method, call.url) for call in calls] == [("POST", "/v1/predictions/p1/cancel")]


@pytest.mark.parametrize(
    ("model", "path", "body"),
    [
        (PICTURE, f"/v1/models/{PICTURE}", {"latest_version": OF_PICTURE}),
        (f"{PICTURE}:{VERSION}", f"/v1/models/{PICTURE}/versions/{VERSION}", OF_PICTURE),
    ],
)
def test_describe(model, path, body):
    document, calls = drive(make_vendor().describe(model), answered(200, body))
    assert [call.url for call in calls] == [path]
    assert declare("my-model", "", document, Recipe("image")).example == {"prompt": "a paper boat"}


@pytest.mark.parametrize("body", [{}, {"latest_version": None}, {"latest_version": {"openapi_schema": 7}}, [], None])
def test_nothing_is_described(body):
    assert drive(make_vendor().describe(PICTURE), answered(200, body))[0] is None
    assert drive(make_vendor().describe(PICTURE), answered(404, body))[0] is None
    for model in (f"deployments/{DEPLOYMENT}", VERSION):
        assert drive(make_vendor().describe(model)) == (None, [])
    with pytest.raises(Unclear):
        drive(make_vendor().describe(PICTURE), answered(500, body))


def test_an_odd_name_stays_inside_of_its_path():
    order = Order("job_1-1", "owner/a b?x#y", {"prompt": "a mill"}, recipe=Recipe("image"))
    accepted, calls = drive(make_vendor().submit(order), answered(201, told("starting")))
    assert isinstance(accepted, Accepted)
    assert [call.url for call in calls] == ["/v1/models/owner/a%20b%3Fx%23y/predictions"]
