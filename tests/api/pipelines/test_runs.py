"""Pipelines over HTTP: acceptance, order, failure, cancel, retry and what a caller sees of them."""

from typing import Any

import pytest
from conftest import Server, Start
from flows import FAST, FILM, FOX, MODEL, PICTURE, PRICED, finish, run, scripted, step, steps_of
from steps import refused


class TestChain:
    async def test_each_step_takes_the_output_of_the_one_before(self, server: Server) -> None:
        accepted = await run(server.client, FOX)
        assert [step["status"] for step in accepted["steps"]][1:] == ["waiting", "waiting"]
        waiting = accepted["steps"][1]["jobs"][0]
        assert (waiting["status"], waiting["phase"], waiting["queue_position"]) == ("queued", "waiting", None)
        record = await finish(server.client, accepted["id"])
        assert (record["status"], record["progress"], record["error"]) == ("succeeded", 1.0, None)
        picture, model, film = (step["jobs"][0] for step in record["steps"])
        assert (picture["input"]["prompt"], picture["step"], picture["pipeline_id"]) == (
            "a red fox",
            "picture",
            record["id"],
        )
        assert model["parents"] == [picture["id"]]
        assert model["input"]["file"]["sha256"] == picture["outputs"][0]["sha256"]
        assert film["input"]["mesh"]["sha256"] == model["outputs"][0]["sha256"]

    async def test_steps_may_be_an_object_in_any_order(self, server: Server) -> None:
        steps = {step["name"]: {k: v for k, v in step.items() if k != "name"} for step in (FILM, MODEL, PICTURE)}
        record = await run(server.client, {**FOX, "steps": steps})
        assert [step["name"] for step in record["steps"]] == ["picture", "model", "film"]
        assert [step["needs"] for step in record["steps"]] == [[], ["picture"], ["model"]]

    async def test_waiting_jobs_are_in_the_list_of_queued_ones(self, server: Server) -> None:
        record = await run(server.client, {**FOX, "steps": [scripted(PICTURE, ending="never"), MODEL, FILM]})
        found = (await server.client.get("/api/v1/jobs", params={"status": "queued"})).json()["data"]
        waiting = {job["id"] for step in record["steps"][1:] for job in step["jobs"]}
        assert waiting <= {job["id"] for job in found}
        await server.client.post(f"/api/v1/pipelines/{record['id']}/cancel")

    async def test_a_preview_is_an_output_too(self, server: Server) -> None:
        again = {"name": "again", "model": "sim_image_to_model"}
        steps = [PICTURE, MODEL, {**again, "params": {"file": {"step": "model", "output": "preview"}, **FAST}}]
        record = await finish(server.client, (await run(server.client, {**FOX, "steps": steps}))["id"])
        jobs = steps_of(record)
        preview = next(each for each in jobs["model"]["jobs"][0]["outputs"] if each["role"] == "preview")
        assert jobs["again"]["jobs"][0]["input"]["file"]["sha256"] == preview["sha256"]


class TestFanOut:
    async def test_a_list_makes_a_job_for_each_element_and_a_join_takes_all(self, server: Server) -> None:
        pictures = {**PICTURE, "for_each": {"param": "animals"}, "params": {"prompt": {"item": "name"}, **FAST}}
        models = {**MODEL, "for_each": {"step": "picture"}}
        join = {
            "name": "join",
            "model": "sim_text_to_image",
            "params": {"references": {"step": "picture"}, "prompt": "all", **FAST},
        }
        animals = [{"name": name} for name in ("fox", "owl", "hare")]
        body = {"params": {"animals": animals}, "steps": [pictures, models, join]}
        record = await finish(server.client, (await run(server.client, body))["id"])
        assert record["status"] == "succeeded", record["error"]
        steps = steps_of(record)
        assert [job["input"]["prompt"] for job in steps["picture"]["jobs"]] == ["fox", "owl", "hare"]
        picture_ids = steps["picture"]["job_ids"]
        assert [job["parents"] for job in steps["model"]["jobs"]] == [[job_id] for job_id in picture_ids]
        assert steps["join"]["jobs"][0]["parents"] == picture_ids

    async def test_a_thousand_jobs_are_refused_with_the_limit(self, server: Server) -> None:
        step = {**PICTURE, "for_each": list(range(1000)), "params": {"prompt": "x"}}
        response = await server.client.post("/api/v1/pipelines", json={"steps": [step]})
        error = refused(response, 400, "invalid_params")
        assert "1000 jobs; at most 100" in error["message"]

    async def test_a_hundred_steps_are_accepted(self, server: Server) -> None:
        steps = [{**PICTURE, "name": f"s{number}", "params": {"prompt": "x", **FAST}} for number in range(100)]
        record = await run(server.client, {"steps": steps})
        assert len(record["steps"]) == 100
        assert (await finish(server.client, record["id"]))["status"] == "succeeded"


CYCLE = [
    step("a", "sim_image_to_model", file={"step": "b", "output": "preview"}),
    step("b", "sim_image_to_model", file={"step": "a", "output": "preview"}),
]


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"steps": CYCLE}, "a → b → a"),
            ({"steps": [step("a", "sim_image_to_model", file={"step": "pictures"})]}, "Unknown step"),
            ({"steps": [step("a", "sim_text_to_image", prompt={"param": "nothing"})]}, "Unknown param"),
            ({"steps": [step("a", "sim_text_to_image", prompt={"item": True})]}, "needs `for_each`"),
            ({"steps": [PICTURE, step("b", "sim_model_to_video", mesh={"step": "picture"})]}, "of kind image"),
            ({"steps": [PICTURE, step("b", "sim_text_to_image", prompt={"step": "picture"})]}, "Step `b`"),
            ({"steps": [PICTURE, PICTURE]}, "name of an earlier step"),
            ({"steps": []}, "steps"),
            ({}, "exactly one"),
            ({"steps": [step("a", "sim_text_to_image", promt="x")]}, "promt"),
            ({"steps": [{"name": "A b", "model": "sim_text_to_image"}]}, "name"),
            ({"steps": [{**PICTURE, "for_each": {"param": "prompt"}}]}, "for_each"),
        ],
    )
    async def test_it_names_the_step(self, server: Server, body: dict[str, Any], words: str) -> None:
        response = await server.client.post("/api/v1/pipelines", json={"params": {"prompt": "x"}, **body})
        assert response.status_code == 400, response.text
        assert words in response.text
        assert (await server.client.get("/api/v1/jobs")).json()["data"] == []

    async def test_another_accounts_pipeline_is_not_found(self, server: Server) -> None:
        record = await run(server.client, FOX)
        other = await server.sign_in("other")
        for method, path in (("GET", ""), ("POST", "/cancel"), ("DELETE", ""), ("GET", "/events"), ("POST", "/retry")):
            kept = {"json": {}} if path == "/retry" else {}
            response = await other.request(method, f"/api/v1/pipelines/{record['id']}{path}", **kept)
            refused(response, 404, "pipeline_not_found")
        assert (await other.get("/api/v1/pipelines")).json()["data"] == []
        foreign = {"steps": [step("a", "sim_image_to_model", file={"job": record["steps"][0]["job_ids"][0]})]}
        refused(await other.post("/api/v1/pipelines", json=foreign), 404, "job_not_found")


class TestFailure:
    async def test_what_needs_a_failed_step_fails_and_the_rest_stops(self, server: Server) -> None:
        slow = step("slow", "sim_text_to_image", prompt="x", script={"latency": 0.05})
        late = step("late", "sim_text_to_image", prompt="x", references={"step": "slow"}, script={"latency": 0.05})
        steps = [scripted(PICTURE, ending="failed"), MODEL, FILM, slow, late]
        record = await finish(server.client, (await run(server.client, {**FOX, "steps": steps}))["id"])
        assert record["status"] == "failed"
        assert record["error"]["steps"] == ["picture"]
        assert record["error"]["code"] == "upstream_error"
        jobs = {name: each["jobs"][0] for name, each in steps_of(record).items()}
        assert jobs["model"]["error"]["code"] == "parent_failed"
        assert jobs["film"]["error"]["code"] == "parent_failed"
        cause = f"the step `picture` ({jobs['picture']['id']}) failed."
        assert jobs["model"]["error"]["message"] == f"The input `file` is missing: {cause}"
        assert jobs["model"]["charged"] is False
        assert jobs["late"]["status"] in {"canceled", "succeeded"}

    async def test_with_continue_the_others_go_on(self, server: Server) -> None:
        other = step("other", "sim_text_to_image", prompt="x", script={"latency": 0.3})
        last = step("last", "sim_text_to_image", prompt="x", references={"step": "other"}, script={"latency": 0.05})
        steps = [scripted(PICTURE, ending="failed"), MODEL, other, last]
        body = {**FOX, "steps": steps, "on_error": "continue"}
        record = await finish(server.client, (await run(server.client, body))["id"])
        statuses = {each["name"]: each["status"] for each in record["steps"]}
        assert statuses == {"picture": "failed", "model": "failed", "other": "succeeded", "last": "succeeded"}
        assert record["status"] == "failed"

    async def test_an_output_that_does_not_exist_fails_its_step(self, server: Server) -> None:
        steps = [PICTURE, step("model", "sim_image_to_model", file={"step": "picture", "output": 7})]
        record = await finish(server.client, (await run(server.client, {**FOX, "steps": steps}))["id"])
        model = steps_of(record)["model"]["jobs"][0]
        assert model["error"]["code"] == "parent_failed"
        assert "numbered from 0" in model["error"]["message"]

    async def test_an_output_of_another_type_than_declared_fails_its_step(self, server: Server) -> None:
        steps = [PICTURE, step("model", "sim_image_to_model", file={"step": "picture", "type": "webp"})]
        record = await finish(server.client, (await run(server.client, {**FOX, "steps": steps}))["id"])
        model = steps_of(record)["model"]["jobs"][0]
        assert (model["error"]["code"], model["charged"], model["attempts"]) == ("parent_failed", False, [])
        assert '`type` says "webp"' in model["error"]["message"]
        steps = [PICTURE, step("model", "sim_image_to_model", file={"step": "picture", "type": "png"})]
        record = await finish(server.client, (await run(server.client, {**FOX, "steps": steps}))["id"])
        assert record["status"] == "succeeded"

    async def test_a_model_that_does_not_exist_is_named_with_its_step(self, server: Server) -> None:
        steps = [PICTURE, step("model", "sim_image_to_modal", file={"step": "picture"})]
        answer = await server.client.post("/api/v1/pipelines", json={**FOX, "steps": steps})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (404, "model_not_found", "steps.1.model")
        assert error["details"] == [{"loc": "steps.1.model", "message": error["message"], "code": "model_not_found"}]


class TestCancel:
    async def test_all_open_jobs_are_canceled(self, server: Server) -> None:
        record = await run(server.client, {**FOX, "steps": [scripted(PICTURE, ending="never"), MODEL, FILM]})
        response = await server.client.post(f"/api/v1/pipelines/{record['id']}/cancel")
        assert response.json()["status"] in {"canceling", "canceled"}
        ended = await finish(server.client, record["id"])
        assert ended["status"] == "canceled"
        assert {step["status"] for step in ended["steps"]} == {"canceled"}
        again = await server.client.post(f"/api/v1/pipelines/{record['id']}/cancel")
        assert again.json()["status"] == "canceled"

    async def test_a_waiting_job_can_be_canceled_alone(self, server: Server) -> None:
        record = await run(server.client, {**FOX, "steps": [scripted(PICTURE, latency=0.5), MODEL]})
        response = await server.client.post(f"/api/v1/jobs/{record['steps'][1]['job_ids'][0]}/cancel")
        assert response.status_code == 200
        ended = await finish(server.client, record["id"])
        assert steps_of(ended)["model"]["status"] == "canceled"
        assert ended["status"] == "canceled"


class TestMoney:
    async def test_all_is_held_at_once_and_what_never_ran_is_released(self, start: Start) -> None:
        server = await start(PRICED)
        client = await server.sign_in("payer", budgets={"total": "0.65"})
        steps = [PICTURE, scripted(MODEL, ending="failed"), FILM]
        dry = (await client.post("/api/v1/pipelines", json={**FOX, "steps": steps, "dry_run": True})).json()
        assert (dry["cost"]["estimated"], dry["jobs"], dry["budget_left"]) == ("0.60", 3, "0.65")
        record = await run(client, {**FOX, "steps": steps})
        refused(await client.post("/api/v1/pipelines", json=FOX), 402, "insufficient_budget")
        assert record["cost"]["estimated"] == "0.60"
        ended = await finish(client, record["id"])
        assert ended["cost"]["final"] == "0.10"
        dry = (await client.post("/api/v1/pipelines", json={**FOX, "dry_run": True})).json()
        assert dry["budget_left"] == "0.55"


class TestAgain:
    async def test_one_key_makes_one_pipeline(self, server: Server) -> None:
        first = await run(server.client, FOX, Idempotency_Key="k1")
        headers = {"Idempotency-Key": "k1"}
        again = await server.client.post("/api/v1/pipelines", json=FOX, headers=headers)
        assert again.json()["id"] == first["id"]
        assert again.headers["idempotency-replayed"] == "true"
        other = await server.client.post("/api/v1/pipelines", json={**FOX, "client_ref": "x"}, headers=headers)
        refused(other, 422, "idempotency_key_mismatch")

    async def test_a_retry_uses_what_succeeded_again(self, server: Server) -> None:
        steps = [PICTURE, {**MODEL, "params": {"file": {"step": "picture"}, "script": {"param": "script"}}}, FILM]
        body = {"params": {"prompt": "fox", "script": {"latency": 0.05, "ending": "failed"}}, "steps": steps}
        failed = await finish(server.client, (await run(server.client, body))["id"])
        path = f"/api/v1/pipelines/{failed['id']}/retry"
        refused(await server.client.post(path, json={"from": "nothing"}), 400, "invalid_params")
        response = await server.client.post(path, json={"params": {"script": {"latency": 0.05}}})
        assert response.status_code == 202, response.text
        assert response.json()["retry_of"] == failed["id"]
        ended = await finish(server.client, response.json()["id"])
        assert ended["status"] == "succeeded", ended["error"]
        assert steps_of(ended)["picture"]["job_ids"] == steps_of(failed)["picture"]["job_ids"]
        assert steps_of(ended)["model"]["job_ids"] != steps_of(failed)["model"]["job_ids"]
        path = f"/api/v1/pipelines/{ended['id']}/retry"
        refused(await server.client.post(path, json={}), 400, "invalid_params")
        whole = await server.client.post(path, json={"from": "picture"})
        assert not set(steps_of(whole.json())["picture"]["job_ids"]) & set(steps_of(ended)["picture"]["job_ids"])

    async def test_an_open_pipeline_is_neither_repeated_nor_deleted(self, server: Server) -> None:
        record = await run(server.client, {**FOX, "steps": [scripted(PICTURE, ending="never"), MODEL]})
        path = f"/api/v1/pipelines/{record['id']}"
        refused(await server.client.post(f"{path}/retry", json={}), 409, "pipeline_not_finished")
        refused(await server.client.delete(path), 409, "pipeline_not_finished")
        await server.client.post(f"{path}/cancel")
        await finish(server.client, record["id"])
        assert (await server.client.delete(path)).status_code == 204
        refused(await server.client.get(path), 410, "job_expired")
        assert (await server.client.get(f"/api/v1/jobs/{record['steps'][0]['job_ids'][0]}")).status_code == 410


class TestTemplates:
    async def test_each_put_makes_a_version_that_can_be_run(self, server: Server) -> None:
        path = "/api/v1/pipelines/templates/fox-film"
        first = await server.client.put(path, json={"steps": [PICTURE], "params": {"prompt": "a fox"}})
        assert (first.status_code, first.json()["version"]) == (200, 1)
        second = await server.client.put(path, json={"steps": [PICTURE, MODEL], "description": "two"})
        assert second.json()["version"] == 2
        assert [
            each["version"] for each in (await server.client.get("/api/v1/pipelines/templates")).json()["data"]
        ] == [2]
        assert (await server.client.get(path, params={"version": 1})).json()["params"] == {"prompt": "a fox"}
        record = await run(server.client, {"template": "fox-film", "version": 1})
        assert (record["template"], record["version"], record["params"]) == ("fox-film", 1, {"prompt": "a fox"})
        refused(
            await server.client.post("/api/v1/pipelines", json={"template": "fox-film"}), 400, "invalid_params"
        )  # the second has no default
        other = await server.sign_in("other")
        refused(await other.get(path), 404, "template_not_found")
        assert (await server.client.delete(path)).status_code == 204
        refused(await server.client.get(path), 404, "template_not_found")


class TestViews:
    async def test_the_stream_has_all_events_and_ends(self, server: Server) -> None:
        record = await run(server.client, FOX)
        async with server.client.stream("GET", f"/api/v1/pipelines/{record['id']}/events") as stream:
            names = [line[7:] async for line in stream.aiter_lines() if line.startswith("event: ")]
        assert names[0] == "pipeline.queued"
        assert names[-1] == "pipeline.succeeded"
        assert names.count("job.succeeded") == 3
        feed = (await server.client.get("/api/v1/events", params={"limit": 100})).json()["data"]
        ending = next(event for event in feed if event["type"] == "pipeline.succeeded")
        assert ending["data"]["id"] == record["id"]
        assert ending["data"]["steps"][0]["jobs"] is None

    async def test_the_list_has_pages(self, server: Server) -> None:
        made = [(await run(server.client, FOX))["id"] for _ in range(3)]
        first = (await server.client.get("/api/v1/pipelines", params={"limit": 2})).json()
        rest = await server.client.get("/api/v1/pipelines", params={"limit": 2, "cursor": first["next_cursor"]})
        assert [each["id"] for each in first["data"] + rest.json()["data"]] == made[::-1]

    async def test_lineage_goes_up_and_down(self, server: Server) -> None:
        record = await finish(server.client, (await run(server.client, FOX))["id"])
        picture, model, film = (each["job_ids"][0] for each in record["steps"])
        later = await server.generate("sim_model_to_video", mesh={"job": model})
        lineage = (await server.client.get(f"/api/v1/jobs/{model}/lineage")).json()
        assert [(each["parent"], each["child"], each["distance"]) for each in lineage["parents"]] == [
            (picture, model, 1)
        ]
        assert {each["child"] for each in lineage["children"]} == {film, later["id"]}
        assert lineage["children"][0]["output"].startswith("asset_")
        whole = (await server.client.get(f"/api/v1/jobs/{picture}/lineage")).json()
        assert sorted(each["distance"] for each in whole["children"]) == [1, 2, 2]
        other = await server.sign_in("other")
        refused(await other.get(f"/api/v1/jobs/{model}/lineage"), 404, "job_not_found")
