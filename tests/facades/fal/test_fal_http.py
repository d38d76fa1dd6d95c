"""fal's dialect over plain HTTP: the queue, runs, the proxy protocol, uploads, repeats, and what is refused."""

import asyncio
import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from conftest import SIMULATOR, Server, Start
from hook_receiver import LOOPBACK, receiving
from small_media import picture
from standardwebhooks import Webhook

from penstock.store.queries.jobs import job_rows

APP = "penstock/sim_text_to_video"
FILM = f"/fal/queue/{APP}"
QUICK: Any = {"prompt": "a boat", "script": {"latency": 0.05}}
NEVER: Any = {"script": {"ending": "never"}}


async def submit(server: Server, path: str = FILM, headers: Any = None, **given: Any) -> httpx.Response:
    return await server.client.post(path, json=given or QUICK, headers=headers)


async def proxied(server: Server, method: str, target: str, **options: Any) -> httpx.Response:
    headers = {"x-fal-target-url": target, **options.pop("headers", {})}
    return await server.client.request(method, "/fal/proxy", headers=headers, **options)


async def finish(server: Server, request: dict[str, Any]) -> dict[str, Any]:
    await server.finish(request["request_id"])
    return (await server.client.get(request["status_url"])).json()


async def test_a_request_from_its_queue_to_its_result(server: Server) -> None:
    response = await submit(server)
    request = response.json()
    assert (response.status_code, request["status"]) == (200, "IN_QUEUE")
    assert isinstance(request["queue_position"], int)
    assert response.headers["x-fal-request-id"] == request["request_id"]
    assert request["status_url"] == f"{server.url}{FILM}/requests/{request['request_id']}/status"

    status = await finish(server, request)
    assert (status["status"], status["logs"]) == ("COMPLETED", [])
    assert status["metrics"]["inference_time"] >= 0
    shown = (await server.client.get(request["status_url"], params={"logs": "1"})).json()
    assert shown["logs"][-1]["message"] == "100% done"

    result = await server.client.get(request["response_url"])
    assert result.headers["x-fal-request-id"] == request["request_id"]
    film = result.json()["video"]
    assert (film["content_type"], film["file_name"].rpartition(".")[2]) == ("video/mp4", "mp4")
    data = (await server.client.get(film["url"], headers={"authorization": ""})).content
    assert (len(data), data[4:8]) == (film["file_size"], b"ftyp")


async def test_while_it_is_open(server: Server) -> None:
    request = (await submit(server, **NEVER)).json()

    status = await server.client.get(request["status_url"])
    result = await server.client.get(request["response_url"])
    canceled = await server.client.put(request["cancel_url"])

    assert status.status_code == 202
    assert status.json().keys() & {"queue_position", "logs"}
    assert (result.status_code, result.json()["detail"]) == (400, "Request is still in progress")
    assert (canceled.status_code, canceled.json()["status"]) == (202, "CANCELLATION_REQUESTED")
    status = await finish(server, request)
    assert (status["status"], status["error_type"]) == ("COMPLETED", "canceled")
    assert (await server.client.get(request["response_url"])).status_code == 400


async def test_too_late_to_cancel(server: Server) -> None:
    request = (await submit(server)).json()
    await finish(server, request)

    response = await server.client.put(request["cancel_url"])

    assert (response.status_code, response.json()["status"]) == (400, "ALREADY_COMPLETED")


@pytest.mark.parametrize(("ending", "kind"), [("failed", "upstream_error"), ("filtered", "content_policy_violation")])
async def test_a_failure_is_422(server: Server, ending: str, kind: str) -> None:
    request = (await submit(server, script={"latency": 0.05, "ending": ending})).json()
    status = await finish(server, request)
    response = await server.client.get(request["response_url"])

    assert status["status"] == "COMPLETED"
    assert status["error"]
    (detail,) = response.json()["detail"]
    assert (response.status_code, detail["msg"]) == (422, status["error"])
    assert response.json()["error_type"] == detail["type"]
    assert detail["type"] == kind


@pytest.mark.parametrize(
    ("model", "field"),
    [("sim_text_to_video", "video"), ("sim_text_to_image", "images"), ("sim_image_to_model", "model_mesh")],
)
async def test_a_run_answers_by_kind(server: Server, model: str, field: str) -> None:
    given = {"script": {"latency": 0.05}} | ({} if field == "model_mesh" else {"prompt": "a boat"})

    response = await server.client.post(f"/fal/run/penstock/{model}", json=given)

    assert response.status_code == 200, response.text
    found = response.json()[field]
    first = found[0] if field == "images" else found
    assert (await server.client.get(first["url"])).content
    assert response.headers["x-fal-request-id"].startswith("job_")


async def test_a_stream_of_statuses(server: Server) -> None:
    request = (await submit(server, script={"latency": 0.4})).json()

    text = (await server.client.get(f"{request['status_url']}/stream?logs=1")).text

    told = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    assert told[0]["status"] == "IN_QUEUE"
    assert [each["status"] for each in told[-1:]] == ["COMPLETED"]
    assert all("logs" in each for each in told if each["status"] != "IN_QUEUE")


async def test_an_equal_order_within_seconds_is_the_same(server: Server) -> None:
    first, second = [(await submit(server, **NEVER)).json() for _ in range(2)]
    other = (await submit(server, **NEVER, prompt="a fox")).json()
    stranger = await server.sign_in()
    theirs = (await stranger.post(FILM, json=NEVER)).json()

    assert first["request_id"] == second["request_id"]
    assert len({each["request_id"] for each in (first, other, theirs)}) == 3


async def test_an_equal_order_later_is_a_new_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.web.facades.fal.ordering.EQUAL_SECONDS", 0.0)
    monkeypatch.setattr("penstock.web.facades.fal.ordering.FRESH_SECONDS", 0.0)

    ids = {(await submit(server, **NEVER)).json()["request_id"] for _ in range(2)}

    assert len(ids) == 2


async def test_keys_make_equal_orders_different(server: Server) -> None:
    keys = ("one", "two", "one")
    ids = [(await submit(server, headers={"idempotency-key": key}, **NEVER)).json()["request_id"] for key in keys]

    assert ids[0] == ids[2] != ids[1]


async def test_the_app_id_is_the_longest_model(server: Server) -> None:
    for path in (f"{FILM}/image-to-video", f"{FILM}/", "/fal/queue/sim_text_to_video"):
        response = await submit(server, path, **NEVER)
        assert response.status_code == 200, response.text
        job = (await server.client.get(f"/api/v1/jobs/{response.json()['request_id']}")).json()
        assert job["model"] == "sim_text_to_video"


async def test_headers_become_fields_of_the_job(server: Server) -> None:
    headers = {
        "x-fal-request-timeout": "7.5",
        "x-fal-object-lifecycle-preference": '{"expiration_duration_seconds": 3600}',
        "x-fal-queue-priority": "normal",
    }
    request = (await submit(server, headers=headers)).json()

    job = await server.finish(request["request_id"])

    (kept,) = await server.gateway.database.read(job_rows.get_several, [job["id"]])
    assert kept.start_by == pytest.approx(kept.created_at + 7.5)
    assert kept.retention == 3600


async def test_a_webhook_has_the_result_and_is_signed(start: Start) -> None:
    server = await start(LOOPBACK)
    secret = (await server.client.get("/api/v1/webhooks/secret")).json()["secret"]
    async with receiving() as receiver:
        query = f"?fal_webhook={quote(receiver.url())}"
        good = (await submit(server, FILM + query)).json()
        await receiver.wait(1)
        bad = (await submit(server, FILM + query, script={"latency": 0, "ending": "failed"})).json()
        told = await receiver.wait(2)

    for message in told:
        Webhook(secret).verify(message.raw, message.headers)
    bodies = [message.body for message in told]
    assert [(body["request_id"], body["status"]) for body in bodies] == [
        (good["request_id"], "OK"),
        (bad["request_id"], "ERROR"),
    ]
    assert bodies[0]["payload"]["video"]["url"].startswith(server.url)
    assert bodies[1]["payload"]["detail"][0]["msg"] == bodies[1]["error"]


# -- the proxy


async def test_the_proxy_leads_to_the_queue(server: Server) -> None:
    queue = f"https://queue.fal.run/{APP}"
    request = (await proxied(server, "POST", queue, json=QUICK)).json()
    path = f"{queue}/requests/{request['request_id']}"
    await server.finish(request["request_id"])

    status = await proxied(server, "GET", f"{path}/status?logs=1")
    stream = await proxied(server, "GET", f"{path}/status/stream?logs=0")
    result = await proxied(server, "GET", path)
    cancel = await proxied(server, "PUT", f"{path}/cancel")

    assert status.json()["status"] == "COMPLETED"
    assert "COMPLETED" in stream.text
    assert "video" in result.json()
    assert cancel.status_code == 400
    assert "video" in (await proxied(server, "POST", f"https://fal.run/{APP}", json=QUICK)).json()


async def test_the_proxy_leads_nowhere_else(server: Server) -> None:
    for target, status in (
        (None, 400),
        ("", 400),
        (f"http://queue.fal.run/{APP}", 400),
        ("https://example.com/", 400),
        ("https://queue.fal.run@example.com/", 400),
        ("https://queue.fal.run.example.com/", 400),
        ("https://queue.fal.run:80/", 400),
        ("https://[queue.fal.run/", 400),
        (f"https://queue.fal.run/{'a' * 5000}", 400),
        ("https://rest.fal.ai/tokens/", 404),
        ("https://fal.run/../../admin/v1/keys", 404),
        ("https://queue.fal.run/", 404),
    ):
        headers = {} if target is None else {"x-fal-target-url": target}
        response = await server.client.post("/fal/proxy", json=QUICK, headers=headers)
        assert (response.status_code, "detail" in response.json()) == (status, True), target


async def begin(server: Server, name: str = "cat.png") -> dict[str, str]:
    target = "https://rest.fal.ai/storage/upload/initiate?storage_type=fal-cdn-v3"
    response = await proxied(server, "POST", target, json={"content_type": "image/png", "file_name": name})
    assert response.status_code == 200, response.text
    return response.json()


async def test_an_upload_is_put_without_a_key_and_used(server: Server) -> None:
    upload, data = await begin(server, "../my cat.png"), picture()
    async with httpx.AsyncClient(trust_env=False) as browser:
        for _ in range(2):  # the client may repeat itself
            assert (await browser.put(upload["upload_url"], content=data)).status_code == 200
        assert (await browser.get(upload["file_url"])).content == data

    response = await submit(server, "/fal/queue/penstock/sim_image_to_model", image_url=upload["file_url"], **NEVER)

    assert response.status_code == 200, response.text
    job = (await server.client.get(f"/api/v1/jobs/{response.json()['request_id']}")).json()
    assert job["input"]["file"]["file_token"] in upload["file_url"]


async def test_an_upload_needs_its_signature(server: Server) -> None:
    upload = (await begin(server))["upload_url"]
    async with httpx.AsyncClient(trust_env=False) as browser:
        for wrong in (
            upload.partition("?")[0],
            upload.replace("account=", "account=acct_other"),
            upload.replace("/file_", "/file_0"),
        ):
            response = await browser.put(wrong, content=picture())
            assert response.status_code in (400, 401, 422), wrong
            assert "detail" in response.json()
        response = await browser.put(upload, content=b"what is this?" * 100)
        assert response.status_code == 400
        assert (await server.client.get("/replicate/v1/files")).json()["results"] == []


async def test_the_quota_of_the_account_holds(server: Server) -> None:
    server.gateway._rules = replace(server.gateway._rules, storage_quota=10)
    upload = await begin(server)
    async with httpx.AsyncClient(trust_env=False) as browser:
        response = await browser.put(upload["upload_url"], content=picture())

    assert response.status_code == 403


# -- what is refused


async def test_wrong_input_is_named(server: Server) -> None:
    for given, place in (
        ({"duration": 99}, ["body", "duration"]),
        ({"colour": "red"}, ["body", "colour"]),
        ({"image_url": "ftp://example.com/a.png"}, ["body", "image_url", "url"]),
        ({"num_images": 3}, ["body", "num_images"]),
        ({"image_size": "huge"}, ["body", "image_size"]),
        ({"image_size": {"width": 5, "height": 5}}, ["body", "image_size"]),
        ({"duration": 4, "durationSeconds": 4}, ["body", "durationSeconds"]),
    ):
        response = await submit(server, **given)
        detail = response.json()["detail"]
        assert (response.status_code, detail[0]["loc"]) == (422, place), response.text


async def test_wrong_headers_and_bodies_are_refused(server: Server) -> None:
    for headers, content, status, says in (
        ({"x-fal-request-timeout": "soon"}, b"{}", 422, "X-Fal-Request-Timeout"),
        ({"x-fal-request-timeout": "1e99"}, b"{}", 422, "X-Fal-Request-Timeout"),
        ({"x-fal-object-lifecycle-preference": "7"}, b"{}", 422, "X-Fal-Object-Lifecycle-Preference"),
        (
            {"x-fal-object-lifecycle-preference": '{"expiration_duration_seconds": -1}'},
            b"{}",
            422,
            "X-Fal-Object-Lifecycle-Preference",
        ),
        ({}, b"[1]", 400, "JSON object"),
        ({}, b"{", 400, "JSON"),
        ({}, b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "JSON"),
        ({}, b'{"prompt": "a", "colour\\u0000": 1}', 422, "colour"),
        ({"content-type": "text/plain"}, b"{}", 415, "application/json"),
    ):
        sent = {"content-type": "application/json", **headers}
        response = await server.client.post(FILM, content=content, headers=sent)
        assert response.status_code == status, response.text
        assert says in json.dumps(response.json()["detail"])
    response = await submit(server, f"{FILM}?fal_webhook=http://127.0.0.1/")
    assert (response.status_code, response.json()["detail"][0]["loc"]) == (422, ["body", "fal_webhook"])


async def test_keys_and_accounts_hold(start: Start) -> None:
    priced = '[[models]]\nid = "sim_text_to_video"\nvendor = "sim"\nprice = {per_job = "0.05"}\n'
    server = await start(SIMULATOR + priced)
    request = (await submit(server, **NEVER)).json()
    for options, status in (
        ({"scopes": frozenset({"read"})}, 403),
        ({"budgets": {"total": "0.01"}}, 402),
        ({"models": frozenset({"other"})}, 403),
        ({"account": "other"}, 200),
    ):
        client = await server.sign_in(**options)
        response = await client.post(FILM, json=QUICK)
        assert response.status_code == status, response.text
        assert status == 200 or response.json()["detail"]
    stranger = await server.sign_in("third")
    for method, url in (("GET", "response_url"), ("GET", "status_url"), ("PUT", "cancel_url")):
        assert (await stranger.request(method, request[url])).status_code == 404
    assert (await stranger.get(f"{request['status_url']}/stream")).status_code == 404
    assert (await submit(server, headers={"authorization": "Key psk_unknown"})).status_code == 401
    assert (await submit(server, "/fal/queue/penstock/nothing")).status_code == 404


async def test_many_at_once_are_one(server: Server) -> None:
    responses = await asyncio.gather(*(submit(server, **NEVER) for _ in range(8)))

    assert {response.status_code for response in responses} == {200}
    assert len({response.json()["request_id"] for response in responses}) == 1


async def test_it_can_be_switched_off(start: Start) -> None:
    server = await start(SIMULATOR + '[facades]\noff = ["fal"]\n')

    assert (await submit(server)).status_code == 404
