"""What fal has beyond other vendors: signed webhooks, declared models, uploads, and addresses that it chooses."""

import base64
import io
import json
import os
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, running
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from doubles.fal import SAMPLE, UNFINISHED, FalDouble, open_api, point, public
from doubles.media import Placed, Plan, Wish, listening
from hypothesis import given, settings
from hypothesis import strategies as some
from PIL import Image
from ports import free_port
from vendors.double import HttpDouble, reply
from vendors.test_contract import anything, check_storable, statuses

from penstock.catalog.declared import read_schema
from penstock.catalog.model import Recipe
from penstock.settings.tables import load
from penstock.vendor_api.generation import Call, Done, Failed, Flow, Notice, Order, Reply, Unclear, VendorFolders
from penstock.vendors.fal import MAX_INLINE, Fal, FalOptions

LONG = 300  # seconds between polls: whatever ends sooner was not found by one
VIDEO = {"prompt": "a mill", "durationSeconds": 4}
Begin = Callable[..., Awaitable[Server]]


@pytest.fixture
async def double() -> AsyncGenerator[FalDouble]:
    async with listening(FalDouble()) as found:
        yield found


@pytest.fixture
async def begin(tmp_path: Path, empty_store: Path, weights: Path, double: FalDouble) -> AsyncGenerator[Begin]:
    """Start a gateway whose vendor is the double; `public`: fal may call it back."""
    shutil.copy(empty_store, tmp_path)
    async with AsyncExitStack() as stack:

        async def start(toml: str = "", *, public: bool = False, **options: Any) -> Server:
            port = free_port() if public else 0
            server = f'[server]\npublic_url = "http://127.0.0.1:{port}"\n' if public else ""
            config = tmp_path / "penstock.toml"
            config.write_text(server + double.settings(**options) + toml)
            found = load(config, {}, {"data": tmp_path, "weights": weights})
            return await stack.enter_async_context(running(found, port))

        yield start


async def order_of(server: Server, double: FalDouble, model: str = "vendorb_video_31", **params: Any) -> tuple:
    """A new job and its order, which the gateway knows of."""
    job = await server.submit(model, **(params or VIDEO))
    async with server.client.stream("GET", f"/api/v1/jobs/{job['id']}/events") as stream:
        async for line in stream.aiter_lines():
            if '"generating"' in line:
                break
    (order,) = double.orders.values()
    return job, order


async def upload(server: Server, data: bytes) -> dict[str, str]:
    answer = await server.client.post("/api/v1/files", files={"file": ("cat.png", data, "image/png")})
    return {"file_token": answer.json()["file_token"]}


def picture(side: int) -> bytes:
    """A picture of noise, which no format makes smaller."""
    found = io.BytesIO()
    Image.frombytes("RGB", (side, side), os.urandom(side * side * 3)).save(found, "PNG", compress_level=0)
    return found.getvalue()


def make_vendor(**more: Any) -> Fal:
    return Fal(FalOptions.model_validate({**SAMPLE.options, **more}), VendorFolders(Path("nowhere"), Path("nowhere")))


def say(status: int, body: Any, **headers: str) -> Reply:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, told, body if isinstance(body, bytes) else json.dumps(body).encode())


def drive(flow: Flow[Any], *replies: Reply) -> tuple[Any, list[Call]]:
    """What a flow makes of these replies, all of which it asks for, and the calls that it made."""
    calls: list[Call] = []
    told: list[Reply | None] = [None, *replies]
    try:
        while told:
            calls += [flow.send(told.pop(0))]  # the first send starts it
    except StopIteration as end:
        assert told == [], "it did not ask for all"
        return end.value, calls
    raise AssertionError(f"it asks for more: {calls[-1]}")


# -- webhooks


async def test_a_notice_ends_the_wait(begin, double):
    server = await begin(public=True, poll_seconds=LONG)
    double.plans.append(Plan(polls=0))
    job, order = await order_of(server, double)
    assert double.count("GET", "/fal-ai/") == 0
    assert await double.notify(order) == 200
    assert (await server.finish(job["id"]))["status"] == "succeeded"
    assert double.count("GET", "/.well-known/jwks.json") == 1


async def test_an_early_notice_is_followed_by_polls(begin, double):
    server = await begin(public=True)
    double.plans.append(Plan(polls=3))
    job, order = await order_of(server, double)
    assert [await double.notify(order) for _ in range(3)] == [200, 200, 200]
    assert (await server.finish(job["id"]))["status"] == "succeeded"
    assert double.count("GET", "/.well-known/jwks.json") == 1


def wrong_notices(order: Placed) -> dict[str, dict[str, Any]]:
    """Ways to call that are not fal's."""
    url = order.webhook or ""
    return {
        "another key": {"key": Ed25519PrivateKey.generate()},
        "too old": {"age": 310},
        "too new": {"age": -310},
        "another tag": {"url": url[:-1] + ("0" if url.endswith("1") else "1")},
        "another job": {"url": url.replace("/job_", "/job_1")},
        "another vendor": {"url": url.replace("/fal/", "/sim/")},
    }


async def test_a_notice_of_anyone_else_changes_nothing(begin, double):
    server = await begin(public=True, poll_seconds=LONG)
    double.plans.append(Plan(polls=0))
    job, order = await order_of(server, double)
    for name, how in wrong_notices(order).items():
        assert await double.notify(order, **how) == 404, name
    assert double.count("GET", "/fal-ai/") == 0
    assert (await server.client.get(f"/api/v1/jobs/{job['id']}")).json()["done"] is False
    assert await double.notify(order) == 200
    assert (await server.finish(job["id"]))["status"] == "succeeded"


async def test_a_job_needs_no_notice(begin, double):
    server = await begin(public=True)
    job, order = await order_of(server, double)
    assert await double.notify(order, key=Ed25519PrivateKey.generate()) == 404
    assert (await server.finish(job["id"]))["status"] == "succeeded"


async def test_without_keys_the_vendor_is_to_call_again(begin, double):
    server = await begin(public=True, poll_seconds=LONG)
    _, order = await order_of(server, double)
    double.fault(reply(500, b"<html>"), "GET", "/.well-known/")
    assert await double.notify(order) == 503


async def test_only_who_may_call_back_is_told_where(begin, double):
    server = await begin(public=True, webhooks=False)
    job, order = await order_of(server, double)
    assert order.webhook is None
    assert (await server.finish(job["id"]))["status"] == "succeeded"


NOW = 1_800_000_000.0


class Sender:
    """fal, as far as signatures go."""

    def __init__(self) -> None:
        self.double = FalDouble()
        self.order = Placed("r1", {}, Wish("video"), Plan())

    @property
    def keys(self) -> Reply:
        return say(200, {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": public(key)} for key in self.double.keys]})

    def notice(self, at: float, **changed: str | None) -> Notice:
        headers, body = self.double.sign(self.order, age=time.time() - at)
        lower = {name.lower(): value for name, value in headers.items()}
        told = lower | {f"x-fal-webhook-{name.replace('_', '-')}": value for name, value in changed.items()}
        return Notice({name: value for name, value in told.items() if value is not None}, body, at)


async def test_keys_are_kept_for_a_day():
    vendor, sender = make_vendor(), Sender()
    heard, calls = drive(vendor.verify_notice(sender.notice(NOW)), sender.keys)
    assert heard is True
    assert (calls[0].url, calls[0].headers) == ("https://rest.fal.ai/.well-known/jwks.json", {})
    assert drive(vendor.verify_notice(sender.notice(NOW + 86_000)))[0] is True
    assert drive(vendor.verify_notice(sender.notice(NOW + 86_500)), sender.keys)[0] is True


async def test_forged_notices_do_not_make_us_ask_again_and_again():
    vendor, sender = make_vendor(), Sender()
    drive(vendor.verify_notice(sender.notice(NOW)), sender.keys)
    sender.double.keys = [Ed25519PrivateKey.generate()]  # fal has new keys, or someone else has written this
    for second in range(0, 300, 60):
        assert drive(vendor.verify_notice(sender.notice(NOW + second)))[0] is False
    assert drive(vendor.verify_notice(sender.notice(NOW + 300)), sender.keys)[0] is True
    assert drive(vendor.verify_notice(sender.notice(NOW + 301)))[0] is True


async def test_keys_that_cannot_be_had_are_asked_for_once_in_a_while():
    vendor, sender = make_vendor(), Sender()
    for told in (say(503, {}), say(200, {"keys": []}), say(200, {"keys": [{"crv": "Ed25519", "x": "é"}]})):
        with pytest.raises(Unclear):
            drive(vendor.verify_notice(sender.notice(NOW)), told)
        with pytest.raises(Unclear):
            drive(vendor.verify_notice(sender.notice(NOW + 1)))
        vendor = make_vendor()


@pytest.mark.parametrize(
    "changed",
    [
        {"timestamp": None},
        {"timestamp": "soon"},
        {"timestamp": "9" * 400},
        {"timestamp": "nan"},
        {"signature": None},
        {"signature": "not hex"},
    ],
)
async def test_a_notice_without_a_signature_costs_no_call(changed):
    assert drive(make_vendor().verify_notice(Sender().notice(NOW, **changed)))[0] is False


@pytest.mark.parametrize(
    "changed",
    [{"request_id": "r2"}, {"user_id": None}, {"signature": "ab" * 64}, {"signature": "ab"}, {"signature": ""}],
)
async def test_a_signature_is_of_everything(changed):
    sender = Sender()
    assert drive(make_vendor().verify_notice(sender.notice(NOW, **changed)), sender.keys)[0] is False


async def test_a_signature_is_of_the_body():
    sender = Sender()
    notice = sender.notice(NOW)
    changed = Notice(notice.headers, notice.body + b" ", NOW)
    assert drive(make_vendor().verify_notice(changed), sender.keys)[0] is False


# -- where requests are


async def test_the_key_goes_to_no_other_host(begin, double):
    double.base = double.host.url  # it names another host in its answer
    server = await begin()
    job, order = await order_of(server, double)
    assert (await server.finish(job["id"]))["status"] == "succeeded"
    assert double.count("GET", f"/fal-ai/veo3.1/requests/{order.id}/status") == 3
    assert [seen.path for seen in double.host.seen if "/requests/" in seen.path] == []
    assert all("Authorization" not in seen.headers for seen in double.host.seen)


@pytest.mark.parametrize(
    "told",
    [
        "http://queue.fal.run/x/status",
        "https://queue.fal.run.evil.example/x/status",
        "https://queue.fal.run@evil.example/x/status",
        "https://evil.example\\@queue.fal.run/x/status",
        "https://queue.fal.run:444/x/status",
        "//evil.example/x",
        "file:///etc/passwd",
        "",
    ],
)
async def test_what_is_not_fals_own_address_is_not_asked(told):
    operation = {**SAMPLE.operation, "status_url": told, "id": "r/../1", "app": "tripo3d/h3.1"}
    flow = make_vendor().poll(operation)
    assert next(flow).url == "/tripo3d/h3.1/requests/r%2F..%2F1/status"
    flow.close()


async def test_a_returned_address_is_used_as_it_is():
    vendor = make_vendor()
    told = {**SAMPLE.operation, "status_url": "https://queue.fal.run/any/where?token=1"}
    assert next(vendor.poll(told)).url == "https://queue.fal.run/any/where?token=1"
    assert next(vendor.cancel({**told, "app": "workflows/me/mine", "cancel_url": ""})).url == (
        "/workflows/me/mine/requests/r1/cancel"
    )


# -- results


async def test_a_result_that_cannot_be_had_is_asked_for_again(begin, double):
    left = [reply(502, b"<html>Bad Gateway</html>"), reply(404, b'{"detail": "Request not found"}')]

    async def spoil(found: HttpDouble, request: Any) -> Any:
        if request.path.endswith("/status") or not left:
            return await found.play(request)
        return await left.pop()(found, request)

    double.fault(spoil, "GET", "/fal-ai/", times=99)
    server = await begin()
    assert (await server.generate("vendorb_video_31", **VIDEO))["status"] == "succeeded"
    assert left == []
    assert len(double.orders) == 1


@pytest.mark.parametrize(
    "told",
    [
        say(502, b"<html>Bad Gateway</html>"),
        say(500, {}),
        say(504, {"detail": "upstream"}),
        say(400, {"detail": UNFINISHED}),
        say(400, b"<html>"),
        say(401, {"detail": "who?", "error_type": "auth"}),
        say(403, {"detail": "not you"}),
        say(429, {}),
        say(301, {}),
        say(202, {"status": "IN_PROGRESS"}),
        say(200, b"<html>"),
        say(200, b'{"video": '),
    ],
)
async def test_what_says_nothing_of_the_request_ends_nothing(told):
    with pytest.raises(Unclear):
        drive(make_vendor().poll(SAMPLE.operation), say(200, {"status": "COMPLETED"}), told)
    failed, _ = drive(make_vendor().poll(SAMPLE.operation), say(200, {"status": "COMPLETED", "error": "late"}), told)
    assert (failed.error.code, failed.error.upstream["message"]) == ("upstream_error", "late")


async def test_the_models_own_words_are_told():
    told = say(422, point("image_too_small", "is too small", "image_url"))
    failed, _ = drive(make_vendor().poll(SAMPLE.operation), say(200, {"status": "COMPLETED"}), told)
    assert failed.error.code == "upstream_rejected"
    assert failed.error.stage == "generating"
    assert failed.error.upstream == {"code": "image_too_small", "message": "body.image_url: is too small", "id": "r1"}


@pytest.mark.parametrize(
    ("told", "code", "retryable"),
    [
        (say(422, {"detail": "nothing to see"}), "upstream_rejected", False),
        (say(400, {}), "upstream_rejected", False),
        (say(403, point("content_policy_violation")), "content_filtered", False),
        (say(422, {"detail": [{"type": "x"}, {"type": "content_policy_violation"}]}), "content_filtered", False),
        (say(500, {}, x_fal_error_type="runner_server_error"), "upstream_error", True),
        (say(502, b"<html>", x_fal_error_type="runner_incomplete_response"), "upstream_error", True),
        (say(422, {"detail": [{"type": "x", "loc": 7, "msg": None}]}), "upstream_rejected", False),
        (say(422, {"detail": [None, 7, "x"]}), "upstream_rejected", False),
    ],
)
async def test_how_a_failure_is_judged(told, code, retryable):
    failed, _ = drive(make_vendor().poll(SAMPLE.operation), say(200, {"status": "COMPLETED"}), told)
    assert (failed.error.code, failed.error.retryable) == (code, retryable)
    check_storable(failed)


RESULTS = [
    (200, {"model_mesh": {"url": "https://files.example/m.glb"}, "rendered_image": {"url": "https://files.example/p"}}),
    (422, point("image_too_small")),
    (504, {"detail": "late", "error_type": "request_timeout"}),
]


@given(data=some.data(), error=some.none() | some.text(max_size=8) | some.integers())
@settings(max_examples=80, deadline=None)
async def test_no_result_breaks_it(data, error):
    """Any answer to the call for a result, after a status that may tell of an error too."""
    status, body = data.draw(some.sampled_from(RESULTS) | some.tuples(statuses, anything))
    if isinstance(body, dict) and body:
        body = body | {data.draw(some.sampled_from(sorted(body))): data.draw(anything)}
    completed = say(200, {"status": "COMPLETED", "error": error})
    try:
        ended, _ = drive(make_vendor().poll(SAMPLE.operation), completed, say(status, body))
    except Unclear:
        assert not error, "a request that has failed is not asked for again"
        return
    assert isinstance(ended, Done | Failed)
    check_storable(ended)


# -- pictures


async def test_a_picture_that_is_not_so_large_is_part_of_the_order(begin, double):
    server = await begin()
    data = picture(1000)
    job = await server.generate("fal_tripo_image_to_3d", file=await upload(server, data))
    assert job["status"] == "succeeded", job["error"]
    (order,) = double.orders.values()
    assert order.body["image_url"] == f"data:image/png;base64,{base64.b64encode(data).decode()}"
    assert double.host.uploads == {}


async def test_a_large_picture_is_uploaded(begin, double):
    server = await begin()
    data = picture(1300)
    assert len(data) > MAX_INLINE
    double.host.fault(reply(503, b""), "PUT", "/files/")
    job = await server.generate("fal_tripo_image_to_3d", file=await upload(server, data))
    assert job["status"] == "succeeded", job["error"]
    (order,) = double.orders.values()
    assert double.host.uploads[order.body["image_url"]] == data
    assert double.count("POST", "/storage/upload/initiate") == 2  # once more, as the first place took nothing
    assert all("Authorization" not in seen.headers for seen in double.host.seen)


@pytest.mark.parametrize(
    ("status", "code"), [(401, "upstream_auth"), (402, "upstream_unavailable"), (400, "upstream_rejected")]
)
async def test_an_upload_that_is_refused_orders_nothing(begin, double, status, code):
    double.fault(reply(status, b'{"detail": "no"}'), "POST", "/storage/")
    server = await begin()
    job = await server.generate("fal_tripo_image_to_3d", file=await upload(server, picture(1300)))
    assert job["error"]["code"] == code
    assert double.orders == {}


# -- models that settings declare


DECLARED = """
[[models]]
id = "my-video"
kind = "video"
vendor = "fal"
model = "fal-ai/ltx"
output = "video.url"
price = {per_job = "0.05"}
file = "image"

[models.params]
required = ["prompt"]
[models.params.properties]
prompt = {type = "string"}
steps = {type = "integer", minimum = 1, default = 30}
image = {type = "string"}

[[models]]
id = "any-picture"
kind = "image"
vendor = "fal"
model = "fal-ai/flux/dev"
"""


async def test_a_declared_model(begin, double):
    server = await begin(DECLARED)
    job = await server.generate("my-video", prompt="a mill")
    assert job["status"] == "succeeded", job["error"]
    assert [output["kind"] for output in job["outputs"]] == ["video"]
    assert job["cost"]["final"] == "0.05"
    (order,) = double.orders.values()
    assert order.body == {"prompt": "a mill", "steps": 30}


async def test_a_declared_model_takes_a_picture(begin, double):
    server = await begin(DECLARED)
    job = await server.generate("my-video", prompt="a mill", file=await upload(server, picture(64)))
    assert job["status"] == "succeeded", job["error"]
    (order,) = double.orders.values()
    assert order.body.keys() == {"prompt", "steps", "image"}


async def test_a_model_of_which_nothing_is_known(begin, double):
    server = await begin(DECLARED)
    for file in ("theirs", await upload(server, picture(64))):
        job = await server.generate("any-picture", prompt="a mill", file=file)
        assert job["status"] == "succeeded", job["error"]
        assert [output["kind"] for output in job["outputs"]] == ["image"]
    theirs, ours = (order.body["file"] for order in double.orders.values())
    assert theirs == "theirs"
    assert ours.startswith("data:image/png;base64,")


async def test_what_fal_refuses_of_it_is_told(begin, double):
    server = await begin(DECLARED)
    job = await server.generate("any-picture", prompt="a mill", size="huge")
    assert job["error"]["code"] == "upstream_rejected"
    assert job["error"]["upstream"]["message"] == "body.size: wrong: ['size']"


async def test_wrong_params_of_a_declared_model(begin, double):
    server = await begin(DECLARED)
    wrong = {"prompt": {"prompt": 7}, "steps": {"prompt": "a", "steps": 0}, "stops": {"prompt": "a", "stops": 1}}
    for field, params in wrong.items():
        body = {"model": "my-video", "input": [{"params": params}]}
        answer = await server.client.post("/model/v1/generation", json=body)
        assert answer.status_code == 400
        assert [detail["loc"] for detail in answer.json()["error"]["details"]] == [f"input.0.params.{field}"]
    assert double.orders == {}


async def test_another_route_runs_what_it_runs(begin, double):
    route = '[[models]]\nid = "vendora_image_to_model"\nvendor = "fal"\nmodel = "tripo3d/p2/image-to-3d"\n'
    server = await begin(route)
    job = await server.generate("vendora_image_to_model", file=await upload(server, picture(64)))
    assert job["status"] == "succeeded", job["error"]
    assert job["warnings"][1:] == ["`model_version` v3.1-20260211 is not supported by fal, which runs P2-20260801."]
    assert double.count("POST", "/tripo3d/p2/image-to-3d") == 1


# -- what models take


async def test_a_description_is_the_models_own():
    told, calls = drive(make_vendor().describe("fal-ai/ltx"), say(200, open_api("fal-ai/ltx")))
    assert calls[0].url == "https://fal.ai/api/openapi/queue/openapi.json?endpoint_id=fal-ai%2Fltx"
    assert calls[0].headers == {}
    assert read_schema(told)["required"] == ["prompt"]
    assert list(read_schema(told)["properties"]) == ["prompt", "steps"]


async def test_a_model_without_a_description():
    assert drive(make_vendor().describe("fal-ai/none"), say(404, {"detail": "not found"}))[0] is None
    for odd in (say(500, {}), say(200, b"<html>"), say(200, [])):
        with pytest.raises(Unclear):
            drive(make_vendor().describe("fal-ai/ltx"), odd)


@pytest.mark.parametrize(
    ("options", "host"),
    [
        ({}, "https://fal.ai"),
        ({"base_url": "https://proxy.example/fal"}, "https://proxy.example/fal"),
        ({"base_url": "https://proxy.example", "schema_url": "https://fal.ai"}, "https://fal.ai"),
        ({"schema_url": "https://docs.example"}, "https://docs.example"),
    ],
)
async def test_where_descriptions_are(options, host):
    flow = make_vendor(**options).describe("x")
    assert next(flow).url == f"{host}/api/openapi/queue/openapi.json?endpoint_id=x"


# -- orders as they are sent


async def test_an_order_names_the_address_to_call_back():
    order = Order("job_1-1", "fal-ai/ltx", {"prompt": "a"}, None, Recipe("video"), "https://me.example/a?b=1&c=ü")
    call = next(make_vendor().submit(order))
    assert call.url == "/fal-ai/ltx?fal_webhook=https%3A%2F%2Fme.example%2Fa%3Fb%3D1%26c%3D%C3%BC"
    assert (call.method, call.json, call.prepares) == ("POST", {"prompt": "a"}, False)
    assert call.headers == {"authorization": "Key id:secret"}
