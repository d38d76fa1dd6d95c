"""Replicate's dialect through its client for Python, unchanged: `Client(base_url="…/replicate")`."""

import asyncio
import io
import sys
from typing import Any

import httpx
import pytest
from conftest import Server, Start
from hook_receiver import LOOPBACK, receiving
from plain import NO_TLS
from small_media import picture

if sys.version_info >= (3, 14):
    pytest.skip("the client needs pydantic 1, which Python 3.14 lacks", allow_module_level=True)

from replicate.client import Client
from replicate.exceptions import ModelError, ReplicateError
from replicate.prediction import Prediction
from replicate.webhook import InvalidSignatureError, Webhooks, WebhookSigningSecret

FILM, PICTURE, SOLID = "penstock/sim_text_to_video", "penstock/sim_text_to_image", "penstock/sim_image_to_model"
QUICK = {"latency": 0.05}
NEVER = {"ending": "never"}
PRICED = """
[vendors.sim]
type = "sim"
[[models]]
id = "sim_text_to_video"
vendor = "sim"
price = {per_job = "0.05"}
"""


def connect(server: Server, key: str) -> Client:
    transport = httpx.AsyncHTTPTransport(verify=NO_TLS)
    client = Client(api_token=key, base_url=f"{server.url}/replicate", transport=transport, trust_env=False)
    client.poll_interval = 0.05
    server.clients.push_async_callback(client._async_client.aclose)
    return client


@pytest.fixture
async def client(server: Server) -> Client:
    return connect(server, await server.new_key())


async def create(client: Client, model: str = FILM, **params: Any) -> Prediction:
    wanted = {"prompt": "a boat", "script": QUICK, **params.pop("input", {})}
    return await client.models.predictions.async_create(model=tuple(model.split("/")), input=wanted, **params)


async def refusal(work: Any) -> ReplicateError:
    with pytest.raises(ReplicateError) as caught:
        await work
    return caught.value


async def read(server: Server, url: str) -> bytes:
    response = await server.client.get(url, headers={"authorization": ""})
    assert response.status_code == 200, response.text
    return response.content


async def test_a_run_returns_the_link_of_a_film(client: Client, server: Server) -> None:
    output = await client.async_run(FILM, input={"prompt": "a boat", "duration": 1, "script": QUICK})

    assert output.startswith(f"{server.url}/api/v1/assets/")
    assert (await read(server, output))[4:8] == b"ftyp"


async def test_a_run_of_a_picture_returns_a_list(client: Client, server: Server) -> None:
    output = await client.async_run(PICTURE, input={"prompt": "a boat", "num_outputs": 1, "script": QUICK})

    assert len(output) == 1
    assert await read(server, output[0])


async def test_a_run_by_version_waits_by_polling(client: Client) -> None:
    version = (await client.models.async_get(FILM)).latest_version
    assert version is not None

    output = await client.async_run(f"{FILM}:{version.id}", input={"script": QUICK}, wait=False)

    assert output.startswith("http")
    assert version.openapi_schema["components"]["schemas"]["Output"]["type"] == "string"


async def test_a_prediction_is_followed_to_its_end(client: Client, server: Server) -> None:
    prediction = await create(client, input={"seed": None})
    assert (prediction.status, prediction.model, prediction.output) == ("starting", FILM, None)

    await prediction.async_wait()

    assert prediction.status == "succeeded"
    assert prediction.progress is not None
    assert prediction.progress.percentage == 1.0
    assert prediction.metrics is not None
    assert prediction.metrics["predict_time"] >= 0
    assert prediction.urls is not None
    assert prediction.urls["get"] == f"{server.url}/replicate/v1/predictions/{prediction.id}"
    assert (await client.predictions.async_get(prediction.id)).output


async def test_waiting_in_vain_answers_starting(client: Client, server: Server) -> None:
    prediction = await create(client, input={"script": NEVER}, wait=1)

    assert prediction.status == "starting"
    assert (await server.client.get(f"/api/v1/jobs/{prediction.id}")).json()["status"] == "running"


@pytest.mark.parametrize(("ending", "says"), [("failed", "vendor"), ("filtered", "(content_filtered)")])
async def test_a_failure_raises_with_its_error(client: Client, ending: str, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        await client.async_run(FILM, input={"script": {**QUICK, "ending": ending}})

    assert caught.value.prediction.status == "failed"
    assert says in (caught.value.prediction.error or "")


async def test_a_job_that_expires_is_failed(client: Client, server: Server) -> None:
    body = {"model": "sim_text_to_video", "input": [{"params": {"script": NEVER}}], "run_timeout": 0.1}
    job = (await server.client.post("/model/v1/generation", json=body)).json()
    await server.finish(job["id"])

    assert (await client.predictions.async_get(job["id"])).status == "failed"


async def test_a_cancel(client: Client) -> None:
    prediction = await create(client, input={"script": NEVER})

    canceled = await client.predictions.async_cancel(prediction.id)
    assert canceled.status == "processing"
    await canceled.async_wait()

    assert canceled.status == "canceled"


async def test_the_list_has_pages(client: Client, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.web.facades.replicate.predictions.PAGE_SIZE", 2)
    ids = [(await create(client, input={"script": NEVER})).id for _ in range(3)]

    first = await client.predictions.async_list()
    assert [prediction.id for prediction in first.results] == ids[:0:-1]
    assert first.next is not None
    second = await client.predictions.async_list(first.next)
    assert ([prediction.id for prediction in second.results], second.next) == (ids[:1], None)


async def test_files_come_and_go(client: Client, server: Server) -> None:
    data = picture()
    file = await client.files.async_create(io.BytesIO(data), filename="cat.png", metadata={"a": 1})

    assert (file.name, file.content_type, file.size) == ("cat.png", "image/png", len(data))
    assert (await client.files.async_get(file.id)).etag == file.etag
    assert [each.id for each in await client.files.async_list()] == [file.id]
    response = await server.client.get(f"{file.urls['get']}/download")
    assert response.content == data
    assert await client.files.async_delete(file.id)
    assert await client.files.async_list() == []


async def test_a_file_object_is_uploaded_and_used(client: Client, server: Server) -> None:
    prediction = await create(client, SOLID, input={"prompt": None, "image": io.BytesIO(picture())})
    await prediction.async_wait()

    assert prediction.status == "succeeded"
    record = (await server.client.get(f"/api/v1/jobs/{prediction.id}")).json()
    assert record["input"]["file"]["file_token"].startswith("file_")
    assert prediction.input is not None
    assert prediction.input["file"].startswith("http")


async def test_the_output_of_one_prediction_is_the_input_of_the_next(client: Client, server: Server) -> None:
    drawn = await client.async_run(PICTURE, input={"prompt": "a boat", "script": QUICK})

    prediction = await create(client, SOLID, input={"prompt": None, "image": drawn[0]})

    record = (await server.client.get(f"/api/v1/jobs/{prediction.id}")).json()
    assert len(record["parents"]) == 1  # it was not fetched


async def test_webhooks_have_the_prediction_and_are_signed(start: Start) -> None:
    server = await start(LOOPBACK)
    client = connect(server, await server.new_key())
    async with receiving() as receiver:
        wanted = {"webhook": receiver.url(), "webhook_events_filter": ["start", "completed"]}
        prediction = await create(client, **wanted)
        told = await receiver.wait(2)
        secret = await client.webhooks.default.async_secret()

        assert [message.body["status"] for message in told] == ["processing", "succeeded"]
        assert {message.body["id"] for message in told} == {prediction.id}
        assert told[1].body["output"].startswith(f"{server.url}/api/v1/assets/")
        for message in told:
            Webhooks.validate(headers=message.headers, body=message.raw.decode(), secret=secret, tolerance=60)
        other = WebhookSigningSecret(key="whsec_" + "A" * 32)
        with pytest.raises(InvalidSignatureError):
            Webhooks.validate(headers=told[0].headers, body=told[0].raw.decode(), secret=other)


async def test_a_stream_has_the_output_at_the_end(client: Client, server: Server) -> None:
    seen = [event async for event in await client.async_stream(FILM, input={"prompt": "a boat", "script": QUICK})]

    assert [event.event.value for event in seen][-2:] == ["output", "done"]
    assert (await read(server, str(seen[-2])))[4:8] == b"ftyp"


async def test_a_stream_of_a_failure_raises_with_its_error(client: Client) -> None:
    with pytest.raises(RuntimeError, match="content_filtered"):
        async for _ in await client.async_stream(FILM, input={"script": {**QUICK, "ending": "filtered"}}):
            pass


async def test_a_stream_is_of_the_account(client: Client, server: Server) -> None:
    prediction = await create(client, input={"script": NEVER}, stream=True)
    assert prediction.urls is not None
    url = prediction.urls["stream"]
    stranger = await server.sign_in("other")

    assert (await stranger.get(url)).status_code == 404
    assert (await server.client.get(url, headers={"authorization": ""})).status_code == 401
    await client.predictions.async_cancel(prediction.id)
    lines = (await server.client.get(url)).text
    assert 'event: done\ndata: {"reason":"canceled"}' in lines


WRONG: Any = (
    ({"duration": 99}, "input.duration: Input should be less than or equal to 8"),
    ({"colour": "red"}, "input.colour"),
    ({"image": "ftp://example.com/a.png"}, "input.image.url"),
    ({"prompt": 7}, "input.prompt"),
    ({"num_outputs": 4}, "input.num_outputs"),
    ({"size": "640x480"}, "input.size: `sim_text_to_video` has no `size` 640x480. It has 1280x720"),
    ({"duration": 99, "colour": "red"}, "\ninput.colour: Unknown param"),
)


async def test_wrong_input_is_named(client: Client, subtests: pytest.Subtests) -> None:
    for given, detail in WRONG:
        with subtests.test(detail):
            error = await refusal(create(client, input=given))
            assert error.status == 422
            assert detail in (error.detail or "")


async def test_an_unknown_model_is_404(client: Client) -> None:
    error = await refusal(create(client, "penstock/sim_text_to_vide"))

    assert error.status == 404
    assert "sim_text_to_video" in (error.detail or "")


async def test_an_unknown_version_names_the_field(client: Client) -> None:
    error = await refusal(client.predictions.async_create("0" * 64, input={}))

    assert error.status == 422
    assert (error.detail or "").startswith("version: There is no version")


async def test_keys_hold(start: Start) -> None:
    server = await start(PRICED)
    reader = connect(server, await server.new_key(scopes=frozenset({"read"})))
    poor = connect(server, await server.new_key(budgets={"total": "0.01"}))
    bound = connect(server, await server.new_key(models=frozenset({"sim_text_to_image"})))
    unknown = connect(server, "psk_unknown")

    errors = [await refusal(create(client, input={"duration": 8})) for client in (reader, poor, bound, unknown)]

    assert [error.status for error in errors] == [403, 402, 403, 401]
    assert all(error.detail for error in errors)


async def test_accounts_do_not_see_each_other(client: Client, server: Server) -> None:
    prediction = await create(client, input={"script": NEVER})
    file = await client.files.async_create(io.BytesIO(picture()), filename="cat.png")
    stranger = connect(server, await server.new_key("other"))

    errors = [
        await refusal(stranger.predictions.async_get(prediction.id)),
        await refusal(stranger.predictions.async_cancel(prediction.id)),
        await refusal(stranger.files.async_get(file.id)),
        await refusal(create(stranger, SOLID, input={"prompt": None, "image": file.urls["get"]})),
    ]

    assert [error.status for error in errors] == [404, 404, 404, 404]
    assert (await stranger.predictions.async_list()).results == []


async def test_the_rest_that_clients_ask_for(client: Client) -> None:
    assert (await client.accounts.async_current()).username == "default"
    assert [each.sku for each in await client.hardware.async_list()] == ["any"]
    model = await client.models.async_get(FILM)
    assert (model.owner, model.name) == ("penstock", "sim_text_to_video")
    assert FILM in {f"{each.owner}/{each.name}" for each in (await client.models.async_list()).results}
    assert len((await model.versions.async_list()).results) == 1
    deployed = await client.deployments.predictions.async_create(FILM, input={"script": QUICK})
    assert deployed.model == FILM


async def test_the_synchronous_client(server: Server) -> None:
    def run(key: str) -> Any:
        transport = httpx.HTTPTransport(verify=NO_TLS)
        client = Client(api_token=key, base_url=f"{server.url}/replicate", transport=transport, trust_env=False)
        with client._client:
            return client.run(FILM, input={"script": QUICK})

    assert (await asyncio.to_thread(run, await server.new_key())).startswith("http")
