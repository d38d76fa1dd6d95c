"""Generation requests over HTTP: both paths, what stands in a body, batches, dry runs, waiting and refusals."""

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from datetime import datetime
from typing import Any

import pytest
from conftest import MODEL, VIDEO
from pydantic import TypeAdapter
from steps import FIELDS, GENERATION, IDLE, TEXT_TO_VIDEO, body_of, count_jobs, post, refused

from penstock.jobs.records import JobRecord, OutputShape

RECORD = TypeAdapter(JobRecord)


# -- paths and records


async def test_both_paths_answer_with_the_same_record(start):
    server = await start(IDLE)
    body = body_of({"prompt": "x"}, model=TEXT_TO_VIDEO)
    one, other = [await post(server, body, path) for path in (f"/api/v1/{TEXT_TO_VIDEO}/generate", GENERATION)]
    records = [one.json(), other.json()]
    assert one.status_code == other.status_code == 202
    assert [set(record) for record in records] == [FIELDS, FIELDS]
    for record, response in zip(records, (one, other), strict=True):
        assert record["request_id"] == response.headers["x-request-id"]
        assert record["urls"]["self"] == f"{server.url}/api/v1/jobs/{record['id']}"
    assert [(record["model"], record["input"]) for record in records] == [(TEXT_TO_VIDEO, records[0]["input"])] * 2


def check_record(record: dict[str, Any]) -> None:
    """Every field is there at every stage, with the right type."""
    assert set(record) == FIELDS
    RECORD.validate_json(json.dumps(record), strict=True)
    moments = [record[name] for name in ("created_at", "started_at", "finished_at", "expires_at")]
    for moment in filter(None, moments):
        assert moment.endswith("Z")
        assert datetime.fromisoformat(moment).tzinfo is not None
    assert record["done"] == (record["finished_at"] is not None) == (record["poll_after_ms"] is None)
    assert record["done"] == (record["charged"] is not None)
    assert all(set(output) == OutputShape.__required_keys__ for output in record["outputs"])
    assert record["cost"]["currency"] == "USD"


@pytest.mark.parametrize("ending", ["succeeded", "failed", "filtered"])
async def test_every_field_is_there_at_every_stage(server, ending):
    record = await server.submit(MODEL, face_limit=100, script={"latency": 3600, "progress": False, "ending": ending})
    seen = {record["status"]}
    async with asyncio.timeout(60):
        while not record["done"]:
            check_record(record)
            record = (await server.client.get(f"/api/v1/jobs/{record['id']}")).json()
            seen.add(record["status"])
            if record["status"] == "running":
                server.age_orders()
    check_record(record)
    assert {"queued", "running"} <= seen
    assert record["status"] == ("succeeded" if ending == "succeeded" else "failed")
    assert bool(record["outputs"]) == (ending == "succeeded")
    assert (record["error"] is None) == (ending == "succeeded")


async def test_the_path_and_the_body_name_the_same_model(server):
    response = await post(server, body_of(), f"/api/v1/{MODEL}/generate")
    error = refused(response, 400, "model_mismatch")
    assert error["param"] == "model"
    assert MODEL in error["message"]
    assert VIDEO in error["message"]
    missing = refused(
        await post(server, {"input": [{"params": {}}]}, f"/api/v1/{VIDEO}/generate"), 400, "missing_required_parameter"
    )
    assert missing["param"] == "model"


async def test_an_unknown_model_is_refused_with_the_nearest(server):
    nearest_of = {"vendorb_vido_31": TEXT_TO_VIDEO, "SIM_TEXT_TO_VIDEO": VIDEO, "zzz": None, "a/b": None}
    for name, nearest in nearest_of.items():
        for path in (GENERATION, f"/api/v1/{name}/generate"):
            error = refused(await post(server, body_of(model=name), path), 404, "model_not_found")
            assert error["param"] == "model"
            assert (f"`{nearest}`" in error["message"]) if nearest else ("Did you mean" not in error["message"])


# -- beside `input`


BESIDE: list[tuple[str, list[Any], list[Any]]] = [
    ("start_timeout", [1, 0.5, 86400, 60.0], [0, -1, 86401, "60", "forever", True, [], {}]),
    ("run_timeout", [1, 0.5, 86400, 60.0], [0, -1, 86401, "60", "forever", True, [], {}]),
    ("retention", [1, 0.5, 60, "forever", 315360000], [0, -1, 315360001, "60", "Forever", "", True, [], {}]),
    ("client_ref", ["x", "", "é" * 128, "😀" * 128], ["x" * 129, 5, True, ["x"], {}]),
    ("metadata", [{}, {"a": "b"}, {"k" * 64: "v" * 512}, {str(n): "" for n in range(16)}], ["x", [], 5, True]),
    ("metadata", [], [{str(n): "" for n in range(17)}]),
    ("dry_run", [True], ["true", 1, 0, "yes", []]),
]


async def test_what_stands_beside_the_input(server):
    for field, good, bad in BESIDE:
        for value in [*good, None]:
            response = await post(server, body_of() | {field: value, "dry_run": True})
            assert response.status_code == 200, (field, value, response.text)
        for value in bad:
            error = refused(await post(server, body_of() | {field: value}), 400, "invalid_params")
            assert (error["param"], [detail["loc"] for detail in error["details"]]) == (field, [field]), value
    assert await count_jobs(server) == 0


async def test_metadata_holds_short_strings(server):
    for value in ({"a": 1}, {"a": "x" * 513}, {"a": ["x"]}):
        error = refused(await post(server, body_of(metadata=value)), 400, "invalid_params")
        assert error["param"] == "metadata.a"
    refused(await post(server, body_of(metadata={"k" * 65: "x"})), 400, "invalid_params")


async def test_what_a_caller_says_of_a_job_is_echoed_and_kept(server):
    said = {"client_ref": "order 7 😀", "metadata": {"a": "b", "": "\x00"}}
    response = await post(server, body_of({"script": {"latency": 0, "ending": "failed"}}, retention=60, **said))
    job = await server.finish(response.json()["id"])
    assert {name: job[name] for name in said} == said == {name: response.json()[name] for name in said}
    kept = datetime.fromisoformat(job["expires_at"]) - datetime.fromisoformat(job["finished_at"])
    assert kept.total_seconds() == 60


async def test_a_job_kept_forever_never_expires(server):
    response = await post(server, body_of({"script": {"latency": 0, "ending": "failed"}}, retention="forever"))
    assert (await server.finish(response.json()["id"]))["expires_at"] is None


async def test_every_problem_of_the_whole_request_is_told_at_once(server):
    body = body_of({"durationSeconds": "8"}, {"prmpt": "x"}, {}, client_ref=5, colour="red", start_timeout=0)
    details = refused(await post(server, body), 400, "invalid_params")["details"]
    assert {detail["loc"]: detail["code"] for detail in details} == {
        "client_ref": "invalid_params",
        "colour": "unknown_param",
        "start_timeout": "invalid_params",
        "input.0.params.durationSeconds": "invalid_params",
        "input.1.params.prmpt": "unknown_param",
    }


SHAPES: list[tuple[Any, str, str]] = [
    ([], "invalid_params", "input"),
    ({}, "invalid_params", "input"),
    (None, "missing_required_parameter", "input"),
    ([None], "invalid_params", "input.0"),
    ([[]], "invalid_params", "input.0"),
    ([{}], "missing_required_parameter", "input.0.params"),
    ([{"params": None}], "missing_required_parameter", "input.0.params"),
    ([{"params": []}], "invalid_params", "input.0.params"),
    ([{"params": "x"}], "invalid_params", "input.0.params"),
    ([{"params": {}, "parms": {}}], "unknown_param", "input.0.parms"),
    ([{"params": {}}] * 17, "invalid_params", "input"),
]


async def test_the_shape_of_the_input(server):
    for given, code, loc in SHAPES:
        assert refused(await post(server, {"model": VIDEO, "input": given}), 400, code)["param"] == loc


# -- batches


async def test_several_inputs_are_a_batch(start):
    server = await start(IDLE)
    response = await post(server, body_of(*({"prompt": str(number)} for number in range(16)), client_ref="b"))
    batch = response.json()
    assert response.status_code == 202
    assert set(batch) == {"object", "id", "jobs"}
    assert batch["object"] == "generation.batch"
    assert batch["id"].startswith("batch_")
    assert [job["input"]["prompt"] for job in batch["jobs"]] == [str(number) for number in range(16)]
    assert {(job["batch_id"], job["client_ref"]) for job in batch["jobs"]} == {(batch["id"], "b")}
    for job in batch["jobs"]:
        check_record(job)
    listed = (await server.client.get("/api/v1/jobs", params={"batch": batch["id"]})).json()["data"]
    assert [job["id"] for job in reversed(listed)] == [job["id"] for job in batch["jobs"]]


async def test_one_bad_input_refuses_the_whole_batch(server):
    response = await post(server, body_of({"prompt": "good"}, {"prompt": 5}, {"prompt": "good"}))
    assert refused(response, 400, "invalid_params")["param"] == "input.1.params.prompt"
    assert await count_jobs(server) == 0


# -- dry runs

PRICED = """
[vendors.sim]
type = "sim"
[[models]]
id = "vendorb_video_31"
vendor = "sim"
price = {per_job = "0.05", per_second = "0.40"}
"""


async def test_a_dry_run_tells_price_and_params_and_creates_nothing(start):
    server = await start(PRICED)
    body = body_of({"prompt": " a "}, {"prompt": "b", "durationSeconds": 4}, model=TEXT_TO_VIDEO, dry_run=True)
    response = await post(server, body, idempotency_key="dry")
    assert response.status_code == 200
    told = response.json()
    assert told["cost"] == {"estimated": "4.90", "final": None, "currency": "USD"}
    assert [(each["prompt"], each["durationSeconds"], each["resolution"]) for each in told["input"]] == [
        ("a", 8, "720p"),
        ("b", 4, "720p"),
    ]
    assert (told["object"], told["valid"], told["expected_seconds"]) == ("generation.dry_run", True, None)
    assert await count_jobs(server) == 0
    body = body_of({"prompt": "a"}, model=TEXT_TO_VIDEO)
    accepted = await post(server, body, idempotency_key="dry")
    assert (accepted.status_code, "idempotency-replayed" in accepted.headers) == (202, False)
    assert accepted.json()["cost"] == {"estimated": "3.25", "final": None, "currency": "USD"}


async def test_a_dry_run_validates_as_the_real_one_does(server):
    for body in (body_of({"prompt": 5}), body_of(model="nope"), body_of(start_timeout=1e9)):
        real, dry = await post(server, body), await post(server, body | {"dry_run": True})
        assert real.status_code == dry.status_code >= 400
        assert real.json()["error"] | {"request_id": None} == dry.json()["error"] | {"request_id": None}


# -- waiting


async def test_prefer_wait_answers_with_the_finished_job(server):
    quick = body_of({"script": {"latency": 0.1, "ending": "failed"}})
    for prefer in ("wait=20", "respond-async, wait=20", "wait=20; foo=bar"):
        response = await post(server, quick, prefer=prefer)
        assert (response.status_code, response.json()["done"]) == (200, True)
        assert response.headers["preference-applied"] == "wait=20"
    response = await post(server, quick | {"input": quick["input"] * 2}, prefer="wait=20")
    assert (response.status_code, [job["done"] for job in response.json()["jobs"]]) == (200, [True, True])


async def test_prefer_wait_gives_up_and_the_job_goes_on(server):
    begun = time.perf_counter()
    response = await post(server, body_of({"script": {"ending": "never"}}), prefer="wait=1")
    assert time.perf_counter() - begun >= 1
    assert (response.status_code, response.json()["done"]) == (202, False)
    assert int(response.headers["retry-after"]) >= 1
    assert (await server.client.get(response.json()["urls"]["self"])).json()["status"] == "running"


async def test_a_wish_that_cannot_be_read_is_passed_over(server):
    for prefer in ("wait", "wait=", "wait=0", "wait=-5", "wait=1.5", "wait=x", "await=9", "wait=99999999999", "=;,"):
        response = await post(server, body_of({"script": {"ending": "never"}}), prefer=prefer)
        assert response.status_code == 202, prefer
        assert "preference-applied" not in response.headers


# -- when it is not the caller's fault


async def test_a_full_queue_is_told_with_when_to_try_again(start):
    server = await start(overrides={"jobs.max_waiting": 2})
    never = {"script": {"ending": "never"}}
    error = refused(response := await post(server, body_of(never, never, never)), 429, "queue_full")
    assert error["retryable"] is True
    assert int(response.headers["retry-after"]) >= 1
    assert await count_jobs(server) == 0
    first = await server.submit(script={"ending": "never"})
    async with asyncio.timeout(60):
        while True:
            response = await post(server, body_of(never))
            if response.status_code != 202:
                break
            await asyncio.sleep(0.05)
    refused(response, 429, "queue_full")
    assert await count_jobs(server) >= 2
    assert (await server.client.post(f"/api/v1/jobs/{first['id']}/cancel")).status_code == 200


async def test_a_mistake_of_ours_is_told_without_its_inside(server, caplog):
    job = await server.generate(script={"ending": "failed"})
    with closing(sqlite3.connect(server.gateway.settings.data / "penstock.db")) as store, store:
        store.execute("UPDATE jobs SET document = ?", (b"secret nonsense",))
    store.close()
    response = await server.client.get(f"/api/v1/jobs/{job['id']}")
    refused(response, 500, "internal_error")
    assert "nonsense" not in response.text
    assert any(record.exc_info for record in caplog.records)
    assert (await server.client.get("/healthz")).status_code == 200
