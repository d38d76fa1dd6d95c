"""The client that waits, against a real server: generating, waiting, saving, and what a job tells."""

import copy
import io
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from flaky_front import Answer

from penstock.client import (
    BadInput,
    Client,
    GoneError,
    JobCanceled,
    JobExpired,
    JobFailed,
    NotFoundError,
    PenstockClientError,
    WaitTimeout,
)

MODEL = "sim_image_to_model"
VIDEO = "sim_text_to_video"
QUICK = {"latency": 0.05}
SLOW = {"latency": 60}


def test_a_picture_becomes_a_saved_model(client, png, tmp_path):
    (tmp_path / "cat.png").write_bytes(png)
    job = client.generate(MODEL, file=str(tmp_path / "cat.png"), script=QUICK).wait()
    saved = job.save(tmp_path / "cat.glb")
    assert saved.read_bytes()[:4] == b"glTF"
    assert job.bytes() == saved.read_bytes()
    assert (job.output.size, job.output.kind, job.output.role) == (saved.stat().st_size, "model", "primary")
    assert job.save(tmp_path).name == "model.glb"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cat.glb", "cat.png", "model.glb"]
    assert job.created_at.tzinfo is not None
    assert job.save(f"{tmp_path}/new/") == tmp_path / "new" / "model.glb"


def test_the_result_of_an_equal_call_can_be_reused(client, png):
    first = client.generate(MODEL, file=png, script=QUICK, reuse="exact").wait()
    assert client.generate(MODEL, file=png, script=QUICK, reuse="exact").id == first.id
    assert client.generate(MODEL, file=png, script=QUICK).id != first.id


def test_saving_leaves_what_is_not_a_file_as_it_is(client, tmp_path):
    job = client.generate(MODEL, script=QUICK).wait()
    (tmp_path / "link.glb").symlink_to(tmp_path / "real.glb")
    job.save(tmp_path / "link.glb")
    assert (tmp_path / "link.glb").is_symlink()
    assert (tmp_path / "real.glb").stat().st_size == job.output.size
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_bytes)
        job.save(tmp_path / "pipe")
    assert len(read.result()) == job.output.size
    assert (tmp_path / "pipe").is_fifo()


def test_pictures_are_taken_as_callers_have_them(client, picture, png, tmp_path):
    (tmp_path / "cat.png").write_bytes(png)
    uploaded = client.upload(png)
    assert (uploaded.content_type, uploaded.width, uploaded.size) == ("image/png", 256, len(png))
    transparent = picture.convert("P")
    transparent.info["transparency"] = b"\0"
    given = [
        tmp_path / "cat.png",
        png,
        io.BytesIO(png),
        picture,
        memoryview(png),
        transparent.convert("CMYK"),
        picture.convert("LA"),
        uploaded,
        uploaded.file_token,
        {"file_token": uploaded.file_token, "type": "png"},
    ]
    batch = client.batch(MODEL, [{"file": file, "script": QUICK} for file in given]).wait(90)
    assert [job.input["file"]["width"] for job in batch] == [256] * len(given)
    assert len({job.batch_id for job in batch}) == 1
    assert len(batch.save(tmp_path / "out")) == len(given)
    quote = client.price(MODEL, file="https://example.com/cat.png")
    assert quote.input[0]["file"] == {"url": "https://example.com/cat.png"}
    assert client.file(uploaded.file_token) == uploaded
    client.delete_file(uploaded.file_token)
    with pytest.raises(NotFoundError, match="file"):
        client.file(uploaded.file_token)


@pytest.mark.parametrize("file", ["no/such.png", Path("nor/this.png")])
def test_a_path_that_is_not_there_is_told_before_anything_is_sent(client, file):
    with pytest.raises(BadInput, match="cannot be read"):
        client.generate(MODEL, file=file)
    with pytest.raises(BadInput, match="binary"):
        client.generate(MODEL, file=io.StringIO("x"))


def test_a_dry_run_tells_the_price_and_creates_nothing(client, png):
    before = [job.id for job in client.jobs()]
    quote = client.price("vendorb_video_31", prompt="A boat", durationSeconds=4)
    assert (quote.valid, quote.cost.estimated, quote.budget_left) == (True, Decimal("0.30"), None)
    assert quote.input[0]["resolution"] == "720p"
    assert client.price(MODEL, file=png).valid
    assert [job.id for job in client.jobs()] == before


def test_a_failed_job_is_raised_with_its_record(client, tmp_path):
    job = client.generate(VIDEO, script=QUICK | {"ending": "filtered"})
    with pytest.raises(JobFailed) as caught:
        job.wait()
    failure = caught.value
    assert (failure.code, failure.retryable, failure.job.status) == ("content_filtered", False, "failed")
    assert failure.job.id in str(failure)
    assert failure.stage == failure.job.error.stage
    done = job.wait(check=False)
    assert (done.succeeded, done.error.code) == (False, "content_filtered")
    with pytest.raises(JobFailed):
        done.save("never.glb")
    batch = client.batch(VIDEO, [{"script": QUICK}, {"script": QUICK | {"ending": "failed"}}])
    with pytest.raises(JobFailed):
        batch.wait()
    ended = batch.wait(check=False)
    assert [job.status for job in ended] == ["succeeded", "failed"]
    assert [path.stem for path in ended.save(tmp_path)] == [ended[0].id]


def test_records_and_errors_travel_without_their_client(client, key):
    job = client.generate(VIDEO, script=QUICK).wait()
    packed = pickle.dumps(job)
    assert key.encode() not in packed
    assert pickle.loads(packed) == job  # noqa: S301  packed right here
    assert copy.deepcopy(job).client is client
    assert hash(job) == hash(client.job(job.id))  # they may differ: the links of each second are signed anew
    with pytest.raises(BadInput, match="pickle"):
        pickle.loads(packed).save("never.mp4")  # noqa: S301
    for spoil in (lambda: client.generate(VIDEO, promt="x"), lambda: client.generate(VIDEO, script=SLOW).wait(0)):
        with pytest.raises(PenstockClientError) as caught:
            spoil()
        again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
        assert (str(again), again.__dict__) == (str(caught.value), caught.value.__dict__)


def test_waiting_ends_in_time_and_a_job_can_be_stopped(client):
    job = client.generate(VIDEO, script=SLOW)
    with pytest.raises(WaitTimeout, match="continues") as caught:
        job.wait(timeout=0.2)
    assert caught.value.job.id == job.id
    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(BadInput, match="no output yet"):
        job.save("early.mp4")
    assert job.cancel().status in ("canceling", "canceled")
    with pytest.raises(JobCanceled):
        job.wait(90)
    with pytest.raises(JobExpired) as expired:
        client.generate(VIDEO, script={"ending": "never"}, run_timeout=1).wait(90)
    assert expired.value.code == "run_timeout"


def test_progress_is_told_on_the_way(client, stage, monkeypatch):
    monkeypatch.setattr("penstock.jobs.polling.MAX_INTERVAL_SECONDS", 0.2)  # however long it takes
    told = []

    def hear(job) -> None:
        told.append(job)
        if len(told) == 2:
            stage.server.age_orders()

    job = client.generate(VIDEO, script={"latency": 60}, client_ref="r1", metadata={"a": "b"}).wait(progress=hear)
    assert told[-1] == job
    assert not told[0].done
    assert len(told) > 2
    assert [each.progress for each in told] == sorted(each.progress for each in told)
    again = job.refresh()  # its links may be newer
    assert (again.id, again.status, again.finished_at) == (job.id, job.status, job.finished_at)
    assert (job.client_ref, job.metadata) == ("r1", {"a": "b"})
    heard = []
    client.batch(VIDEO, [{"script": QUICK}] * 3).wait(progress=heard.append)
    assert [each.done for each in heard[-1]] == [True] * 3


def test_jobs_are_run_again_listed_and_deleted(client, png):
    job = client.generate(MODEL, file=png, model_seed=7, script=QUICK).wait()
    again = job.rerun(model_seed=8).wait()
    assert (again.id != job.id, again.seed) == (True, 8)
    assert again.input["file"]["sha256"] == job.input["file"]["sha256"]
    assert [each.id for each in client.jobs(model=MODEL, limit=2)] == [again.id, job.id]
    assert list(client.jobs(client_ref="nobody")) == []
    assert [each.id for each in client.jobs(search=again.id)] == [again.id]
    assert list(client.jobs(search="unheard of")) == []
    written = client.generate(MODEL, file={"url": _data_uri(png)}, script=QUICK).wait()
    assert written.rerun().wait().input["file"]["sha256"] == job.input["file"]["sha256"]
    again.delete()
    with pytest.raises(GoneError):
        client.job(again.id)


def _data_uri(png: bytes) -> str:
    import base64  # noqa: PLC0415  once

    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def test_lists_are_followed_page_by_page(front, fronted):
    pages = [
        b'{"data": [{"id": "job_3"}, {"id": "job_2"}], "has_more": true, "next_cursor": "abc"}',
        b'{"data": [{"id": "job_1", "news": 1, "outputs": null}], "has_more": false, "next_cursor": null}',
    ]
    front.upset("GET /api/v1/jobs", *(Answer(200, {}, page) for page in pages))
    jobs = fronted.jobs(status="queued")
    assert [job.id for job in jobs] == ["job_3", "job_2", "job_1"]
    first, second = front.of("/api/v1/jobs?")
    assert "cursor" not in first.path
    assert "cursor=abc" in second.path


def test_a_job_tells_its_events_and_the_account_all_of_them(client):
    job = client.generate(VIDEO, script=QUICK)
    events = list(job.events())
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert (events[0].type, events[-1].type, events[-1].job.id) == ("job.queued", "job.succeeded", job.id)
    assert [event.id for event in job.events(after=events[1].id)] == [event.id for event in events[2:]]
    assert list(job.events(after=events[-1].id)) == []
    feed = list(client.events())
    assert [event.id for event in feed if event.data["id"] == job.id] == [event.id for event in events]
    followed = client.events(after=feed[-1].id, follow=True)
    another = client.generate(VIDEO, script=QUICK)
    assert next(followed).job.id == another.id
    followed.close()


def test_models_and_usage_are_told(client):
    models = {model.id: model for model in client.models()}
    assert models["vendorb_video_31"].price["per_job"] == "0.30"
    assert client.model(VIDEO).params["properties"]["prompt"]
    client.generate("vendorb_video_31", prompt="A boat", durationSeconds=4).wait()
    usage = client.usage(by="model")
    (line,) = [line for line in usage.data if line["model"] == "vendorb_video_31"]
    assert (line["jobs"], line["cost"], usage.currency) == (1, "0.30", "USD")


def test_threads_share_a_client(client):
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: client.generate(VIDEO, script=QUICK).wait(90), range(16)))
    assert len({job.id for job in jobs}) == 16


def test_the_environment_names_the_server(stage, key, monkeypatch):
    monkeypatch.setenv("PENSTOCK_BASE_URL", f"{stage.url}/")
    monkeypatch.setenv("PENSTOCK_API_KEY", f" {key}\n")
    with Client() as client:
        assert client.models()
        assert repr(client) == f"Client({stage.url!r})"
