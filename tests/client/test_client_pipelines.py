"""Pipelines of the Python client: steps by name, references, results, retry, templates and lineage."""

import copy
import pickle
from typing import Any

import pytest
import small_media
from flaky_front import Lose

from penstock.client import (
    AsyncClient,
    BadInput,
    ConflictError,
    GoneError,
    InvalidRequestError,
    JobFailed,
    NotFoundError,
    PipelineFailed,
    WaitTimeout,
    item,
    param,
    step,
)

QUICK = {"latency": 0.05}
PICTURE = {"model": "sim_text_to_image", "params": {"prompt": param("prompt"), "size": "128x96", "script": QUICK}}
MODEL = {"model": "sim_image_to_model", "params": {"file": step("picture"), "script": QUICK}}
FILM = {"model": "sim_model_to_video", "params": {"mesh": step("model", 0), "script": QUICK}}
FOX = {"picture": PICTURE, "model": MODEL, "film": FILM}
PROMPT = {"prompt": "a red fox"}


def scripted(given, **script: Any):
    return {**given, "params": {**given["params"], "script": {**QUICK, **script}}}


def test_a_chain_and_its_results(client, tmp_path):
    seen = []
    pipeline = client.pipeline(FOX, params=PROMPT, client_ref="fox-1", metadata={"for": "tests"})
    assert not pipeline.done
    with pytest.raises(BadInput, match="wait for it first"):
        pipeline.save(tmp_path)
    done = pipeline.wait(progress=seen.append)
    assert (done.status, done.succeeded, done.progress, done.client_ref) == ("succeeded", True, 1.0, "fox-1")
    assert (done.metadata, done.params, seen[-1].done) == ({"for": "tests"}, PROMPT, True)
    assert list(done.steps) == ["picture", "model", "film"]
    assert [job.step for job in done.jobs] == ["picture", "model", "film"]
    assert done.steps["film"].needs == ("model",)
    assert done.jobs[1].input["file"]["sha256"] == done.steps["picture"].output.sha256
    assert done.output == done.steps["film"].output
    assert "preview" in {output.role for output in done.steps["model"].outputs}
    assert [path.name for path in done.save(tmp_path / "last")] == ["film.mp4"]
    assert [path.suffix for path in done.save(tmp_path / "all", every_step=True)] == [".png", ".glb", ".mp4"]
    assert (tmp_path / "all" / "model.glb").read_bytes().startswith(b"glTF")
    shown = done._repr_html_()
    assert "<code>picture</code>" in shown
    assert "<video" in shown


def test_a_list_gives_one_job_for_each_element(client, tmp_path):
    many = {**PICTURE, "for_each": param("animals"), "params": {"prompt": item("name"), "script": QUICK}}
    steps = [{"name": "pictures", **many}, {"name": "models", **MODEL, "for_each": {"step": "pictures"}}]
    steps[1]["params"] = {"file": step("pictures"), "script": QUICK}
    pipeline = client.pipeline(steps, params={"animals": [{"name": "fox"}, {"name": "owl"}]}).wait()
    pictures = pipeline.steps["pictures"]
    assert [job.input["prompt"] for job in pictures.jobs] == ["fox", "owl"]
    assert [job.parents for job in pipeline.steps["models"].jobs] == [(job.id,) for job in pictures.jobs]
    assert len(pictures.outputs) >= 2
    with pytest.raises(BadInput, match="2 jobs: use `outputs`"):
        _ = pictures.output
    assert [path.name for path in pipeline.save(tmp_path)] == ["models-0.glb", "models-1.glb"]


def test_files_of_the_disk_and_outputs_of_jobs_are_taken(client, tmp_path):
    (tmp_path / "red.png").write_bytes(small_media.picture())
    references = [param("image"), step("gem")]
    steps = {
        "direct": scripted({**MODEL, "params": {"file": tmp_path / "red.png"}}),
        "own": scripted({**MODEL, "params": {"file": param("image")}}),
        "again": {"model": "sim_text_to_video", "params": {"input_references": references, "script": QUICK}},
        "gem": scripted({**PICTURE, "params": {"prompt": "a gem"}}),
    }
    pipeline = client.pipeline(steps, params={"image": tmp_path / "red.png"}).wait()
    digests = {name: pipeline.steps[name].jobs[0].input["file"]["sha256"] for name in ("direct", "own")}
    assert len(set(digests.values())) == 1
    references = pipeline.steps["again"].jobs[0].input["input_references"]
    assert [file["sha256"] for file in references] == [digests["own"], pipeline.steps["gem"].output.sha256]
    after = client.pipeline({"again": scripted({**MODEL, "params": {"file": pipeline.steps["gem"].output}})}).wait()
    assert after.jobs[0].parents == (pipeline.steps["gem"].jobs[0].id,)


def test_a_failed_pipeline_is_retried_from_a_step(client):
    failing = {**FOX, "model": scripted(MODEL, ending="failed")}
    with pytest.raises(PipelineFailed, match="`model` failed") as caught:
        client.pipeline(failing, params=PROMPT).wait()
    failed = caught.value.pipeline
    assert (failed.status, caught.value.steps, failed.error.steps) == ("failed", ("model",), ("model",))
    with pytest.raises(JobFailed):
        _ = failed.steps["model"].output
    assert not failed.wait(check=False).succeeded
    again = failed.retry("model").wait(check=False)
    assert (again.retry_of, again.steps["picture"].job_ids) == (failed.id, failed.steps["picture"].job_ids)
    assert again.steps["model"].job_ids != failed.steps["model"].job_ids
    whole = failed.retry("picture", params={"prompt": "an owl"})
    assert whole.params == {"prompt": "an owl"}
    assert whole.wait(check=False).steps["picture"].jobs[0].input["prompt"] == "an owl"


def test_it_is_canceled_listed_and_deleted(client):
    pipeline = client.pipeline({**FOX, "picture": scripted(PICTURE, ending="never")}, params=PROMPT)
    with pytest.raises(ConflictError):
        pipeline.delete()
    with pytest.raises(WaitTimeout, match="is not done") as timeout:
        pipeline.wait(timeout=0.2)
    assert timeout.value.record.id == pipeline.id
    with pytest.raises(PipelineFailed, match="canceled"):
        pipeline.cancel().wait()
    listed = next(client.pipelines.list(limit=1))
    assert (listed.id, listed.jobs) == (pipeline.id, ())
    assert listed.refresh().jobs[0].status == "canceled"
    assert {job.id for job in client.jobs(pipeline=pipeline.id)} == {job.id for job in listed.refresh().jobs}
    with pytest.raises(BadInput, match="`refresh` the pipeline"):
        _ = listed.steps["picture"].output
    listed.delete()
    with pytest.raises((NotFoundError, GoneError)):
        client.pipelines.get(pipeline.id)


def test_events_reach_its_end(client):
    events = list(client.pipeline(FOX, params=PROMPT).events())
    assert events[-1].type == "pipeline.succeeded"
    assert events[-1].pipeline.status == "succeeded"
    assert list(events[-1].pipeline.steps) == list(FOX)
    assert {event.job.step for event in events if event.job} == set(FOX)


def test_a_price_creates_nothing(client):
    before = next(client.pipelines.list(limit=1)).id
    quote = client.pipelines.price(FOX, params=PROMPT)
    assert (quote.valid, quote.jobs, [each.name for each in quote.steps]) == (True, 3, list(FOX))
    assert next(client.pipelines.list(limit=1)).id == before


def test_an_idempotency_key_makes_one_pipeline(client):
    first, second = (client.pipeline(FOX, params=PROMPT, idempotency_key="one-fox") for _ in range(2))
    assert first.id == second.id


def test_a_lost_answer_makes_one_pipeline(fronted, front, client):
    front.upset("POST /api/v1/pipelines", Lose())
    pipeline = fronted.pipeline(FOX, params=PROMPT, client_ref="lost-fox").wait()
    assert [each.id for each in client.pipelines.list(limit=20) if each.client_ref == "lost-fox"] == [pipeline.id]


def test_templates_have_versions(client):
    stored = client.pipelines.templates.put("fox", FOX, params=PROMPT, description="all three")
    assert (stored.name, stored.version, stored.params) == ("fox", 1, PROMPT)
    assert client.pipelines.templates.put("fox", {"picture": PICTURE}, params=PROMPT).version == 2
    assert client.pipelines.templates.get("fox", 1).description == "all three"
    assert [each.version for each in client.pipelines.templates.list() if each.name == "fox"] == [2]
    pipeline = client.pipeline(template="fox", version=1, params={"prompt": "an owl"})
    assert (pipeline.template, pipeline.version, list(pipeline.steps)) == ("fox", 1, list(FOX))
    client.pipelines.templates.delete("fox")
    with pytest.raises(NotFoundError):
        client.pipelines.templates.get("fox")
    with pytest.raises(BadInput, match="cannot keep the local file"):
        client.pipelines.templates.put("fox", {"model": {**MODEL, "params": {"file": small_media.picture()}}})


def test_a_lineage_goes_up_and_down(client):
    done = client.pipeline(FOX, params=PROMPT).wait()
    picture, model, film = done.jobs
    lineage = model.lineage()
    assert [(link.parent, link.child, link.param) for link in lineage.parents] == [(picture.id, model.id, "file")]
    assert [(link.child, link.distance) for link in lineage.children] == [(film.id, 1)]
    assert {job.step for job in client.lineage(film.id).jobs} == set(FOX)


def test_mistakes_are_named(client):
    with pytest.raises(InvalidRequestError, match="Unknown step"):
        client.pipeline({"model": {**MODEL, "params": {"file": step("pictures")}}})
    with pytest.raises(BadInput, match="picture should be a mapping"):
        client.pipeline({"picture": "sim_text_to_image"})
    with pytest.raises(InvalidRequestError, match="exactly one"):
        client.pipeline()


def test_records_are_pickled_without_the_key(client, key):
    pipeline = client.pipeline(FOX, params=PROMPT).wait()
    data = pickle.dumps(pipeline)
    assert key.encode() not in data
    copied = pickle.loads(data)  # noqa: S301  our own
    assert (copied, copied.steps["film"].job_ids) == (pipeline, pipeline.steps["film"].job_ids)
    assert copy.deepcopy(pipeline) is pipeline
    assert repr(pipeline) == f"<Pipeline {pipeline.id} succeeded 100%>"


async def test_the_asynchronous_client(async_client: AsyncClient, tmp_path):
    seen = []
    pipeline = await (await async_client.pipeline(FOX, params=PROMPT)).wait(progress=seen.append)
    assert (await pipeline.save(tmp_path))[0].name == "film.mp4"
    assert (seen[-1], list(pipeline.steps)) == (pipeline, list(FOX))
    assert "<code>film</code>" in pipeline._repr_html_()
    assert [event.type async for event in pipeline.events()][-1] == "pipeline.succeeded"
    again = await pipeline.retry("film")
    assert again.retry_of == pipeline.id
    assert (await again.refresh()).id == again.id
    assert (await (await again.cancel()).wait(check=False)).done
    assert (await pipeline.jobs[1].lineage()).parents[0].parent == pipeline.jobs[0].id
    assert (await async_client.pipelines.price(FOX, params=PROMPT)).jobs == 3
    assert (await async_client.pipelines.templates.put("async-fox", FOX)).version == 1
    assert (await async_client.pipelines.templates.get("async-fox")).on_error == "stop"
    assert "async-fox" in [each.name for each in await async_client.pipelines.templates.list()]
    await async_client.pipelines.templates.delete("async-fox")
    assert pipeline.id in [each.id async for each in async_client.pipelines.list(limit=10)]
    assert {job.id async for job in async_client.jobs(pipeline=pipeline.id)} == {job.id for job in pipeline.jobs}
    await pipeline.delete()
