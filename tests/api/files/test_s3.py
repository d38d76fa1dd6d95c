"""Files and assets in a bucket of a real S3 server: as on disk, by redirect, and while it is away."""

import asyncio
import base64
import hashlib
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import obstore
import pytest
from conftest import MODEL, SIMULATOR, VIDEO, Server, client_of
from doubles.media import MediaDouble, Plan, listening
from doubles.meshy import MeshyDouble
from flows import FAST, FOX, PICTURE, finish, run, step
from openai_media import IMAGE, QUICK, connect, draw
from s3_server import BUCKET, S3Server, listening_in
from steps import until
from test_resumable import begin as begin_upload
from test_resumable import send as send_piece
from test_retention import on_disk, picture, upload
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.domain.files import StoredAsset
from penstock.domain.jobs import Asset
from penstock.storage import backend
from penstock.storage.backend import open_storage
from penstock.storage.stale_uploads import ask, find_account

URL = f"s3://{BUCKET}/some/prefix"
IN_BUCKET = {"assets_url": URL}
PRESIGNED = {**IN_BUCKET, "assets.downloads": "presigned"}

Start = Callable[..., Awaitable[Server]]


@pytest.fixture(scope="module")
def running_s3(tmp_path_factory: pytest.TempPathFactory) -> Generator[S3Server]:
    s3 = S3Server(tmp_path_factory.mktemp("s3"))
    try:
        s3.start()
        yield s3
    finally:
        s3.stop()


@pytest.fixture
def impatient() -> None:
    """Give the bucket as little time as ever, in tests that freeze it. In all others a busy machine is no outage."""


@pytest.fixture
def s3(running_s3: S3Server, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> S3Server:
    """The bucket, empty, and how to reach it in the environment."""
    if "impatient" not in request.fixturenames:
        monkeypatch.setitem(backend._QUICK, "timeout", timedelta(seconds=60))
    for name, value in running_s3.environment.items():
        monkeypatch.setenv(name, value)
    obstore.delete(running_s3.bucket, running_s3.list_keys())
    return running_s3


@pytest.fixture
async def double() -> AsyncGenerator[MediaDouble]:
    async with listening(MeshyDouble()) as double:
        yield double


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def down(s3: S3Server) -> None:
    await asyncio.to_thread(s3.stop)


async def up(s3: S3Server) -> None:
    await asyncio.to_thread(s3.start)


# -- while it is there


async def test_a_resumable_upload_waits_on_the_disk_and_ends_in_the_bucket(start: Start, s3: S3Server) -> None:
    server, data = await start(SIMULATOR, IN_BUCKET), picture()
    path = await begin_upload(server.client, len(data), filename="cat.png")
    await send_piece(server.client, path, 0, data[:20])
    assert [part.stat().st_size for part in (server.gateway.settings.data / "uploads").rglob("*.part")] == [20]
    token = (await send_piece(server.client, path, 20, data[20:])).headers["x-penstock-file-token"]
    assert (await server.client.get(f"/api/v1/files/{token}/content")).content == data


async def test_a_signed_model_is_verified_in_the_bucket_and_leaves_with_its_sidecar(start, s3):
    server = await start(f'{SIMULATOR}[provenance]\nresults = "signed"\n', IN_BUCKET)
    job = await server.generate(MODEL, script={})
    report = (await server.client.post("/api/v1/verify", json={"job": job["id"]})).json()
    assert (report["verdict"], report["generation"]["job_id"]) == ("signed_here", job["id"])
    assert (await server.client.get(job["outputs"][0]["sidecar_url"])).status_code == 200
    assert [key for key in s3.list_keys() if key.endswith("-model.glb.jws")]
    assert on_disk(server) == []
    assert (await server.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    while any("/assets/" in key for key in s3.list_keys()):
        await server.gateway.upkeep.sweep()


async def test_outputs_and_files_lie_in_the_bucket_and_nowhere_else(start, s3):
    server = await start(SIMULATOR, IN_BUCKET)
    token = await upload(server)
    job = await server.generate(MODEL, script={}, file={"file_token": token}, model_seed=3)
    assert job["status"] == "succeeded", job["error"]
    assert on_disk(server) == []
    kept = [key for key in s3.list_keys() if "/assets/" in key]
    assert kept == sorted(
        f"some/prefix/assets/{job['id']}/{output['sha256'][:16]}-{output['url'].partition('?')[0].rpartition('/')[2]}"
        for output in job["outputs"]
    )
    assert len([key for key in s3.list_keys() if key.startswith("some/prefix/files/")]) == 1
    assert (await server.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    assert (await server.client.delete(f"/api/v1/files/{token}")).status_code == 204
    assert s3.list_keys() == []


async def test_each_step_of_a_pipeline_reads_what_the_one_before_stored(start, s3, double, monkeypatch):
    """Nothing is copied: the bucket sees one upload for each output, and one read to send it to the next vendor."""
    async with listening_in(s3) as (url, seen):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        server = await start(double.settings(poll_seconds=0.05) + SIMULATOR, IN_BUCKET)
        seen.clear()
        model = step("model", "vendora_image_to_model", file={"step": "picture"})
        film = step("film", "sim_model_to_video", mesh={"step": "model"}, **FAST)
        record = await run(server.client, {**FOX, "steps": [PICTURE, model, film]})
        record = await finish(server.client, record["id"])
        assert record["status"] == "succeeded", record["error"]
        outputs = [output for each in record["steps"] for output in each["jobs"][0]["outputs"]]
        uploads = [path.partition("?")[0] for method, path in seen if method in ("PUT", "POST")]
        assert len(uploads) == len(set(uploads)) == len(outputs) == len(s3.list_keys("some/prefix/assets/"))
        assert s3.list_keys() == s3.list_keys("some/prefix/assets/")
        picture_id = record["steps"][0]["job_ids"][0]
        assert [method for method, path in seen if f"/assets/{picture_id}/" in path] == ["PUT", "GET"]


async def test_a_proxied_download_has_ranges_and_an_etag(start, s3):
    server = await start(SIMULATOR, IN_BUCKET)
    output = (await server.generate(MODEL, script={}))["outputs"][0]
    path = urlsplit(output["url"]).path
    whole = await server.client.get(path)
    assert hashlib.sha256(whole.content).hexdigest() == output["sha256"]
    assert (whole.status_code, whole.headers["content-type"]) == (200, output["content_type"])
    part = await server.client.get(path, headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole.content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{output['bytes']}"
    same = await server.client.get(path, headers={"if-none-match": whole.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    head = await server.client.head(path)
    assert (head.status_code, int(head.headers["content-length"])) == (200, output["bytes"])
    async with client_of(server.url, None) as nobody:
        assert (await nobody.get(output["url"])).content == whole.content
        assert code(await nobody.get(path)) == (401, "missing_api_key")


async def test_a_presigned_download_is_sent_on_to_the_bucket(start, s3):
    server = await start(SIMULATOR, PRESIGNED)
    output = (await server.generate(VIDEO, script={}))["outputs"][0]
    async with client_of(server.url, None) as nobody:
        sent_on = await nobody.get(output["url"])
        assert (sent_on.status_code, sent_on.headers["cache-control"]) == (307, "no-store")
        assert sent_on.headers["location"].startswith(f"{s3.url}/{BUCKET}/some/prefix/assets/")
        assert "X-Amz-Expires=300" in sent_on.headers["location"]
        through_us = await nobody.get(f"{output['url']}&proxied=true")
        assert hashlib.sha256(through_us.content).hexdigest() == output["sha256"]
        nobody.follow_redirects = True
        got = await nobody.get(output["url"], headers={"range": "bytes=5-"})
        assert code(await nobody.get(urlsplit(output["url"]).path)) == (401, "missing_api_key")
    assert got.status_code == 206
    assert got.url.port == urlsplit(s3.url).port
    assert (got.headers["content-type"], "filename=" in got.headers["content-disposition"]) == ("video/mp4", True)
    server.client.follow_redirects = True
    whole = await server.client.get(urlsplit(output["url"]).path)
    assert hashlib.sha256(whole.content).hexdigest() == output["sha256"]
    assert whole.content[5:] == got.content
    assert (await server.client.head(urlsplit(output["url"]).path)).status_code == 200
    assert (await server.client.get(f"{urlsplit(output['url']).path}?expires=soon")).content == whole.content
    await asyncio.to_thread(obstore.delete, s3.bucket, s3.list_keys())
    assert code(await server.client.get(urlsplit(output["url"]).path)) == (404, "asset_not_found")


@pytest.mark.parametrize("overrides", [IN_BUCKET, PRESIGNED])
async def test_a_shared_film_comes_through_the_server_also_where_downloads_are_redirected(start, s3, overrides):
    server = await start(SIMULATOR, overrides)
    job = await server.generate(VIDEO, script={})
    link = (await server.client.post(f"/api/v1/jobs/{job['id']}/shares", json={})).json()
    async with client_of(server.url, None) as nobody:
        whole = await nobody.get(f"{link['url']}/video.mp4")
        part = await nobody.get(f"{link['url']}/video.mp4", headers={"range": "bytes=5-9"})
        page = await nobody.get(link["url"], headers={"accept": "text/html"})
    assert hashlib.sha256(whole.content).hexdigest() == job["outputs"][0]["sha256"]
    assert (part.status_code, part.content) == (206, whole.content[5:10])
    assert BUCKET not in page.text


@pytest.mark.parametrize("query", ["", "?proxied=true"])
async def test_a_bucket_that_is_gone_is_no_missing_asset(start, s3, monkeypatch, query):
    """Clients take a 404 as final, and what an operator has mistyped for a while is not."""
    server = await start(SIMULATOR, PRESIGNED)
    path = urlsplit((await server.generate(VIDEO, script={}))["outputs"][0]["url"]).path
    monkeypatch.setattr(server.gateway.assets, "_storage", open_storage("s3://another-bucket"))
    assert code(await server.client.get(path + query)) == (503, "store_unavailable")


@pytest.mark.parametrize("overrides", [{}, IN_BUCKET, PRESIGNED])
async def test_what_was_stored_by_name_alone_is_still_found(start, s3, overrides):
    server = await start(SIMULATOR, overrides)
    job = await server.generate(MODEL, script={})
    output = job["outputs"][0]
    store = server.gateway.assets._storage.bulk
    new = f"assets/{job['id']}/{output['sha256'][:16]}-model.glb"
    await obstore.rename_async(store, new, f"assets/{job['id']}/model.glb")
    server.client.follow_redirects = True
    got = await server.client.get(urlsplit(output["url"]).path)
    assert hashlib.sha256(got.content).hexdigest() == output["sha256"]
    await server.client.delete(f"/api/v1/jobs/{job['id']}")
    assert (on_disk(server), s3.list_keys()) == ([], [])


async def test_other_bytes_that_are_stored_late_change_nothing(start, s3):
    """As by a worker that slept while another one delivered."""
    server = await start(SIMULATOR, IN_BUCKET)
    job = await server.generate(VIDEO, script={})
    late = f"some/prefix/assets/{job['id']}/0123456789abcdef-video.mp4"
    await obstore.put_async(s3.bucket, late, b"other bytes")
    got = await server.client.get(urlsplit(job["outputs"][0]["url"]).path)
    assert hashlib.sha256(got.content).hexdigest() == job["outputs"][0]["sha256"]
    await server.client.delete(f"/api/v1/jobs/{job['id']}")
    assert s3.list_keys() == []


async def test_a_large_output_is_stored_in_parts(start, s3):
    server = await start(SIMULATOR, IN_BUCKET)

    async def chunks() -> AsyncGenerator[bytes]:
        for number in range(17):
            yield bytes([number]) * 2**20

    asset = Asset(
        id="asset_a",
        kind="video",
        role="primary",
        filename="video.mp4",
        content_type="video/mp4",
        bytes=17 << 20,
        sha256="",
    )
    async with server.gateway.assets.land(chunks()) as landed:
        await server.gateway.assets.keep("job_a", asset, landed)
    [key] = s3.list_keys()
    found = await obstore.head_async(s3.bucket, key)
    assert (found["size"], str(found["e_tag"]).strip('"').rpartition("-")[2]) == (17 << 20, "4")
    stored = StoredAsset("asset_a", "account_a", "job_a", "video.mp4", "video/mp4", 17 << 20, landed.sha256)
    digest = hashlib.sha256()
    async for chunk in await server.gateway.assets.open(stored, 0, 17 << 20):
        digest.update(chunk)
    assert digest.hexdigest() == landed.sha256


async def test_uploads_that_were_never_finished_are_ended_and_no_others(start, s3):
    server = await start(SIMULATOR, IN_BUCKET)
    account = find_account(s3.url, os.environ)
    assert account
    for key in ("some/prefix/assets/job_a/x-video.mp4", "some/prefix/files/account_a/x", "others/assets/y"):
        await asyncio.to_thread(ask, account, "POST", f"/{BUCKET}/{key}", {"uploads": ""})
    assert await server.gateway.assets.end_stale_uploads(time.time() - 60) == 0
    assert await server.gateway.assets.end_stale_uploads(time.time() + 60) == 2
    assert await server.gateway.assets.end_stale_uploads(time.time() + 60) == 0
    left = await asyncio.to_thread(ask, account, "GET", f"/{BUCKET}", {"uploads": "", "prefix": "others/"})
    assert left.count("<UploadId>") == 1


# -- while it is away


async def test_a_result_waits_for_the_bucket_and_is_paid_once(start, s3, double):
    server = await start(double.settings(poll_seconds=0.05), IN_BUCKET)
    token = await upload(server)
    job = await server.submit("vendora_image_to_model", file={"file_token": token})
    await until(server.client, job["id"], phase="generating")
    await down(s3)
    await until(server.client, job["id"], phase="storing")
    await wait_for_failures(server, 2)
    assert (await server.client.get(f"/api/v1/jobs/{job['id']}")).json()["status"] == "running"
    await up(s3)
    done = await server.finish(job["id"])
    assert (done["status"], len(done["attempts"]), len(double.orders)) == ("succeeded", 1, 1), done["error"]
    assert len(s3.list_keys(f"some/prefix/assets/{job['id']}")) == len(done["outputs"])


async def test_an_order_whose_picture_is_out_of_reach_is_placed_when_it_is_back(start, s3, double):
    server = await start(double.settings(poll_seconds=0.05, max_concurrent=1), IN_BUCKET)
    token = await upload(server)
    double.plans.append(Plan(seconds=3600))
    first = await server.submit("vendora_image_to_model", file={"file_token": token})
    await until(server.client, first["id"], phase="generating")
    second = await server.submit("vendora_image_to_model", file={"file_token": token})
    await down(s3)
    await server.client.post(f"/api/v1/jobs/{first['id']}/cancel")
    await until(server.client, second["id"], phase="dispatching")
    await wait_for_failures(server, 2)
    assert len(double.orders) == 1
    await up(s3)
    done = await server.finish(second["id"])
    assert (done["status"], len(done["attempts"]), len(double.orders)) == ("succeeded", 1, 2), done["error"]


@pytest.mark.usefixtures("impatient")
async def test_requests_that_need_the_bucket_are_told_to_come_back(start, s3):
    server = await start(SIMULATOR, IN_BUCKET)
    server.gateway.upkeep.sweeps = False  # what is removed here, the test removes
    token = await upload(server)
    job = await server.generate(MODEL, script={})
    link = job["outputs"][0]["url"]
    s3.freeze()
    try:
        await refused(server.client.get(link))
        await refused(server.client.delete(f"/api/v1/files/{token}"))
    finally:
        s3.freeze(frozen=False)
    assert (await server.client.get(link)).status_code == 200
    await down(s3)
    await refused(server.client.post("/api/v1/files", files={"file": ("a.png", picture("blue"))}))
    await refused(server.client.get(link))
    assert (await server.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    assert code(await server.client.get(link)) == (410, "asset_expired")
    await up(s3)
    assert await server.gateway.upkeep.sweep() == 2, "the deleted job, and the upload that failed"
    assert [key.split("/")[2] for key in s3.list_keys()] == ["files"]
    assert (await server.client.get(f"/api/v1/files/{token}")).status_code == 200


async def refused(asking: Awaitable[httpx.Response]) -> None:
    """Within seconds, and with the one error."""
    now = asyncio.get_running_loop().time
    began = now()
    answer = await asking
    assert code(answer) == (503, "store_unavailable")
    assert (answer.json()["error"]["retryable"], answer.headers["retry-after"]) == (True, "5")
    assert now() - began < 20


@pytest.mark.usefixtures("impatient")
async def test_a_server_starts_while_the_bucket_does_not_answer(start, s3):
    s3.freeze()
    try:
        async with asyncio.timeout(60):
            server = await start(SIMULATOR, IN_BUCKET)
        assert (await server.client.get("/readyz")).status_code == 200
    finally:
        s3.freeze(frozen=False)
    assert (await server.generate(MODEL, script={}))["status"] == "succeeded"


async def test_what_is_wrong_with_the_bucket_is_told_at_the_start(start, s3, monkeypatch, caplog):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    await start(SIMULATOR, IN_BUCKET)
    told = [record.fields for record in caplog.records if record.name == "penstock.storage.backend"]
    assert told, "by the check at the start"
    assert all(fields == {"reason": "the credentials are refused"} for fields in told), "housekeeping may tell it again"


async def wait_for_failures(server: Server, count: int) -> None:
    """Until the bucket was asked in vain so often."""
    before = await _failures(server)
    async with asyncio.timeout(60):
        while await _failures(server) < before + count:  # noqa: ASYNC110  nothing rings
            await asyncio.sleep(0.05)


async def _failures(server: Server) -> float:
    lines = (await server.client.get("/metrics")).text.splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("penstock_storage_failures_total "))


# -- the doctor


@pytest.mark.parametrize(
    ("environ", "url", "status", "told"),
    [
        ({}, URL, "ok", "can be written"),
        ({}, "s3://another-bucket", "fail", "there is no such bucket"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, URL, "fail", "the credentials are refused"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, URL, "fail", "error sending request"),
    ],
)
def test_the_doctor_tries_the_bucket(s3, tmp_path, monkeypatch, environ, url, status, told):
    for name, value in {**environ, "PENSTOCK_ASSETS_URL": url}.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(app, ["doctor", "--json", "--data", str(tmp_path)])
    found: list[dict[str, Any]] = json.loads(result.stdout)["checks"]
    [finding] = [each for each in found if each["check"] == "assets bucket"]
    assert (finding["status"], told in finding["message"]) == (status, True), finding
    assert bool(finding["remedy"]) == (status == "fail")
    assert s3.list_keys() == []


def test_a_folder_cannot_presign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_ASSETS_DOWNLOADS", "presigned")
    result = CliRunner().invoke(app, ["doctor", "--json", "--data", str(tmp_path)])
    [finding] = json.loads(result.stdout)["checks"]
    assert (finding["status"], "needs a bucket" in finding["message"]) == ("fail", True)


# -- by OpenAI's client


@pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
@pytest.mark.parametrize("settings", [IN_BUCKET, PRESIGNED], ids=["streamed", "presigned"])
async def test_openais_client_gets_pictures_and_films(start: Start, s3: S3Server, settings: dict[str, Any]) -> None:
    server = await start(SIMULATOR, settings)
    client = await connect(server)
    drawn = await client.images.generate(model=IMAGE, prompt="a fox", n=2, size="600x400", extra_body=QUICK)
    linked = await client.images.generate(model=IMAGE, prompt="a fox", response_format="url", extra_body=QUICK)
    edited = await client.images.edit(model=IMAGE, prompt="a fox", image=("a.png", draw()), extra_body=QUICK)
    film = await client.videos.create_and_poll(model="sim_text_to_video", prompt="a boat", extra_body=QUICK)

    for each in (*(drawn.data or ()), *(edited.data or ())):
        assert base64.b64decode(each.b64_json or "").startswith(b"\x89PNG")
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as stranger:
        response = await stranger.get((linked.data or [])[0].url or "")
    content = await client.videos.download_content(film.id)

    assert response.content.startswith(b"\x89PNG")
    assert content.content[4:8] == b"ftyp"
    is_redirected = settings is PRESIGNED
    assert [bool(each.history) for each in (response, content.response)] == [is_redirected] * 2
    assert "authorization" not in content.response.request.headers or not is_redirected
