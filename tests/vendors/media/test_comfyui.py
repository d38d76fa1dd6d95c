"""ComfyUI over HTTP: its queue, uploads, graphs that do not fit, restarts, and what callers must not learn."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, Start
from doubles.comfyui import PAINTING, STATUE, VIDEO, ComfyUIDouble, declare, node, table
from doubles.media import MediaDouble, Plan, listening
from vendors.double import HttpDouble, drop, reply

from penstock.settings.problems import SettingsError
from penstock.simulator.samples import make_preview

ENDLESS = Plan(polls=10**6)


@pytest.fixture
async def double() -> AsyncGenerator[ComfyUIDouble]:
    async with listening(ComfyUIDouble()) as double:
        assert isinstance(double, ComfyUIDouble)
        yield double


async def submit(server: Server, model: str = "sketch", **params: Any) -> str:
    return (await server.submit(model, **params))["id"]


async def await_text(server: Server, job_id: str, text: str) -> None:
    """Follow a job until one of its events holds the text."""
    async with server.client.stream("GET", f"/api/v1/jobs/{job_id}/events") as stream:
        async for line in stream.aiter_lines():
            if text in line.replace(" ", ""):
                return
    raise AssertionError(f"never {text}")


async def upload(server: Server) -> dict[str, str]:
    file = {"file": ("cat.png", make_preview(7), "image/png")}
    return {"file_token": (await server.client.post("/api/v1/files", files=file)).json()["file_token"]}


def graphs(double: MediaDouble) -> list[dict[str, Any]]:
    return [order.body["prompt"] for order in double.orders.values()]


# -- its queue


async def test_a_waiting_job_has_a_place_and_leaves_the_queue(start, double):
    server = await start(double.settings(max_concurrent=2))
    double.plans += [ENDLESS, ENDLESS]
    first = await submit(server)
    await await_text(server, first, '"generating"')
    second = await submit(server)
    await await_text(server, second, '"queue_position":1')
    await server.client.post(f"/api/v1/jobs/{second}/cancel")
    assert (await server.finish(second))["status"] == "canceled"
    assert double.count("POST", "/interrupt") == 0
    assert [order.canceled for order in double.orders.values()] == [False, True]
    await server.client.post(f"/api/v1/jobs/{first}/cancel")
    assert (await server.finish(first))["status"] == "canceled"
    assert double.count("POST", "/interrupt") == 1


async def test_a_job_that_begins_while_it_is_canceled_is_interrupted(start, double):
    async def begin_first(host: HttpDouble, request: Any) -> Any:
        double.queue[0].canceled = True
        return await host.play(request)

    server = await start(double.settings(max_concurrent=2))
    double.plans += [ENDLESS, ENDLESS]
    first = await submit(server)
    await await_text(server, first, '"generating"')
    second = await submit(server)
    await await_text(server, second, '"queue_position":1')
    double.fault(begin_first, "POST", "/queue")
    await server.client.post(f"/api/v1/jobs/{second}/cancel")
    assert (await server.finish(second))["status"] == "canceled"
    assert [order.canceled for order in double.orders.values()] == [True, True]
    assert double.count("POST", "/interrupt") == 1


async def test_a_job_that_ends_while_it_is_canceled_is_kept(start, double):
    async def finish_first(host: HttpDouble, request: Any) -> Any:
        double.queue[0].plan = Plan()
        double.queue[0].polls = 100
        return await host.play(request)

    server = await start(double.settings(poll_seconds=30))
    double.plans.append(ENDLESS)
    job_id = await submit(server)
    await await_text(server, job_id, '"generating"')
    double.fault(finish_first, "GET", "/queue")
    await server.client.post(f"/api/v1/jobs/{job_id}/cancel")
    assert (await server.finish(job_id))["status"] == "succeeded"


async def test_a_restart_ends_the_jobs_that_it_forgot(start, double):
    server = await start(double.settings())
    double.plans.append(ENDLESS)
    job_id = await submit(server)
    await await_text(server, job_id, '"generating"')
    double.restart()
    job = await server.finish(job_id)
    assert (job["status"], job["error"]["code"], job["error"]["retryable"]) == ("failed", "upstream_error", True)
    assert "restarted" in job["error"]["message"]
    assert double.count("POST", "/prompt") == 1


async def test_an_order_that_never_arrived_is_placed_again(start, double):
    server = await start(double.settings(lookup_seconds=0.05))
    double.fault(drop, "POST", "/prompt")
    job = await server.finish(await submit(server))
    assert job["status"] == "succeeded"
    assert double.count("POST", "/prompt") == 2
    assert len(double.orders) == 1
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["never_arrived", "succeeded"]


@pytest.mark.parametrize("path", ["/history/", "/view"])
async def test_trouble_after_the_work_is_waited_out(start, double, path):
    server = await start(double.settings())
    double.fault(reply(502, b"<html>"), "GET", path, times=2)
    assert (await server.finish(await submit(server)))["status"] == "succeeded"
    assert double.count("POST", "/prompt") == 1


# -- graphs


async def test_params_are_filled_into_a_copy_of_the_graph(start, double):
    server = await start(double.settings())
    for prompt in ("a mill", "„Mühle“\n\\n 🛶"):
        await server.finish(await submit(server, prompt=prompt, seed=2**53))
    await server.finish(await submit(server))
    assert [graph["6"]["inputs"]["text"] for graph in graphs(double)] == ["a mill", "„Mühle“\n\\n 🛶", "a boat"]
    assert graphs(double)[0]["3"]["inputs"] == PAINTING["3"]["inputs"] | {"seed": 2**53}


async def test_a_picture_is_uploaded_and_named(start, double):
    server = await start(double.settings())
    double.subfolder = "from penstock"
    job = await server.finish(await submit(server, "restyle", prompt="a mill", file=await upload(server)))
    assert job["status"] == "succeeded"
    ((name, data),) = double.uploads.items()
    assert data == make_preview(7)
    assert graphs(double)[0]["10"]["inputs"]["image"] == name
    assert name.startswith("from penstock/")


async def test_a_picture_that_is_not_taken(start, double):
    server = await start(double.settings())
    double.fault(reply(400), "POST", "/upload/image")
    job = await server.finish(await submit(server, "restyle", file=await upload(server)))
    assert job["error"]["code"] == "upstream_rejected"
    assert double.count("POST", "/prompt") == 0


async def test_a_picture_may_be_left_to_the_graph(start, double):
    server = await start(double.settings())
    assert (await server.finish(await submit(server, "restyle")))["status"] == "succeeded"
    assert graphs(double)[0]["10"]["inputs"]["image"] == "example.png"
    assert double.uploads == {}


async def test_a_preview_is_taken_from_its_node(start, double):
    server = await start(double.settings())
    job = await server.finish(await submit(server, "statue", file=await upload(server)))
    assert [(output["kind"], output["role"]) for output in job["outputs"]] == [
        ("model", "primary"),
        ("image", "preview"),
    ]


async def test_everything_of_its_kind_is_brought_home(start, double):
    graph = PAINTING | {"13": node("SaveImage", images=["8", 0], filename_prefix="again")}
    server = await start(double.settings() + declare("both", kind="image", workflow=graph, bind={"seed": "3.seed"}))
    job = await server.finish(await submit(server, "both"))
    assert [output["role"] for output in job["outputs"]] == ["primary", "primary"]
    job = await server.finish(await submit(server, "sketch"))
    assert len(job["outputs"]) == 1


WRONG = {
    "no such node": {"prompt": "66.text"},
    "no such input": {"prompt": "6.words"},
    "no input": {"prompt": "6"},
    "nothing": {"prompt": ""},
}


@pytest.mark.parametrize("bind", WRONG.values(), ids=WRONG)
async def test_a_binding_that_leads_nowhere_is_told_before_any_call(start, double, bind):
    models = declare("wrong", kind="image", workflow=PAINTING, bind=bind)
    server = await start(double.settings() + models)
    job = await server.finish(await submit(server, "wrong", prompt="a mill"))
    assert job["error"]["code"] == "upstream_rejected"
    assert f"`{bind['prompt']}`" in job["error"]["message"]
    assert double.seen == []


async def test_a_model_without_a_graph(start, double):
    server = await start(double.settings() + declare("bare", kind="image"))
    job = await server.finish(await submit(server, "bare"))
    assert (job["error"]["code"], double.seen) == ("upstream_rejected", [])
    assert "no workflow" in job["error"]["message"]


async def test_a_param_without_a_place_is_told(start, double):
    params = '{type = "object", properties = {prompt = {type = "string"}, style = {type = "string"}}}'
    model = declare("styled", kind="image", workflow=PAINTING, bind={"prompt": "6.text"}) + f"params = {params}\n"
    server = await start(double.settings() + model)
    job = await server.finish(await submit(server, "styled", prompt="a mill", style="oil"))
    assert job["warnings"][1:] == ["`style` is not bound in the workflow and was ignored."]


async def test_graphs_may_stand_in_files(start, double, tmp_path: Path):
    (tmp_path / "video.json").write_text(json.dumps(VIDEO))
    (tmp_path / "sketch.json").write_text(json.dumps(PAINTING))
    bind = {"prompt": "6.text", "width": "5.width", "height": "5.height", "frames": "5.length"}
    vendor = MediaDouble.settings(double) + table(
        "[vendors.comfyui.workflows.wan]", model="vendorb_video_31", workflow="file:video.json", bind=bind, output="9"
    )
    sketch = declare("sketch", kind="image", workflow="file:sketch.json", bind={"prompt": "6.text"})
    server = await start(vendor + sketch + declare("vendorb_video_31"))
    for model in ("sketch", "vendorb_video_31"):
        job = await server.finish(await submit(server, model, prompt="a mill"))
        assert (job["status"], job["vendor"]) == ("succeeded", "comfyui")


# -- models of the catalogue


async def test_size_and_length_are_told_in_the_graphs_words(start, double):
    server = await start(double.settings())
    params = {"prompt": "a mill", "durationSeconds": 6, "aspectRatio": "9:16", "resolution": "1080p"}
    jobs = [await server.finish(await submit(server, "vendorb_video_31", **params)) for _ in range(2)]
    assert [(job["status"], job["warnings"], job["cost"]["final"]) for job in jobs] == [("succeeded", [], "0.00")] * 2
    assert graphs(double)[0]["5"]["inputs"] == {"width": 1080, "height": 1920, "length": 6 * 24 + 1}
    seeds = {graph["3"]["inputs"]["seed"] for graph in graphs(double)}
    assert len(seeds) == 2, "each job is another video"


async def test_a_graph_that_knows_only_the_prompt_is_not_measured_by_more(start, double):
    graph = VIDEO | {"5": node("EmptyVideo", width=640, height=480, length=49)}
    workflow = table(
        "[vendors.comfyui.workflows.small]", model="vendorb_video_31", workflow=graph, bind={"prompt": "6.text"}
    )
    server = await start(MediaDouble.settings(double) + workflow)
    job = await server.finish(await submit(server, "vendorb_video_31", prompt="a mill"))
    assert job["status"] == "succeeded", job["error"]
    assert (job["outputs"][0]["width"], job["outputs"][0]["duration_seconds"]) == (640, 2)
    lost = [warning.split("`")[1] for warning in job["warnings"]]
    assert lost == ["durationSeconds", "aspectRatio", "resolution"]


@pytest.mark.parametrize(
    ("slip", "code", "warnings"),
    [({"face_limit": "11.seed"}, "bad_output", 0), ({}, None, 1)],
    ids=["bound", "unbound"],
)
async def test_only_what_a_graph_was_told_is_checked(start, double, slip, code, warnings):
    bind = {"file": "10.image", "model_seed": "11.seed", **slip}
    workflow = table("[vendors.comfyui.workflows.w]", model="vendora_image_to_model", workflow=STATUE, bind=bind)
    server = await start(MediaDouble.settings(double) + workflow)
    params = {"file": await upload(server), "face_limit": 48}
    job = await server.finish(await submit(server, "vendora_image_to_model", **params))
    assert (job["error"] and job["error"]["code"], len(job["warnings"])) == (code, warnings)


async def test_the_first_of_two_graphs_serves_and_a_route_names_the_other(start, double):
    def workflow(name: str, text: str) -> str:
        graph = VIDEO | {"6": node("CLIPTextEncode", text=text, clip=["4", 1])}
        bind = {"width": "5.width", "height": "5.height", "frames": "5.length"}
        return table(f"[vendors.comfyui.workflows.{name}]", model="vendorb_video_31", workflow=graph, bind=bind)

    vendor = MediaDouble.settings(double) + workflow("one", "first") + workflow("two", "second")
    server = await start(vendor + declare("vendorb_video_31", model="two"))
    await server.finish(await submit(server, "vendorb_video_31", prompt="a mill", durationSeconds=4))
    assert graphs(double)[0]["6"]["inputs"]["text"] == "second"
    (served,) = server.gateway.offers.vendors["comfyui"].models
    assert served.name == "one"


@pytest.mark.parametrize("wrong", ['workflow = "{"', 'workflow = "[1]"', 'model = "sketch"', "fps = 0"])
async def test_a_table_that_cannot_be_read(start, double, wrong):
    told = {"workflow": "workflow = {}", "model": 'model = "vendorb_video_31"', "fps": "fps = 24"}
    lines = (told | {wrong.split(" ")[0]: wrong}).values()
    toml = "\n".join([MediaDouble.settings(double), "[vendors.comfyui.workflows.w]", "bind = {}", *lines])
    with pytest.raises(SettingsError, match=wrong.split(" ")[0]):
        await start(toml)


# -- what callers must not learn


async def test_why_a_graph_was_refused_is_told_without_paths(start, double):
    server = await start(double.settings())
    job = await server.finish(await submit(server, checkpoint="missing.safetensors"))
    said = job["error"]["upstream"]
    assert (job["error"]["code"], said["code"]) == ("upstream_rejected", "prompt_outputs_failed_validation")
    assert said["message"].startswith("node 4 (CheckpointLoaderSimple): Value not in list: ckpt_name: 'missing.safe")
    assert "video/base" not in json.dumps(job)


async def test_why_a_job_broke_is_told_without_paths(start, double):
    server = await start(double.settings())
    double.plans.append(Plan("error"))
    error = (await server.finish(await submit(server)))["error"]
    assert error["upstream"]["code"] == "OSError"
    assert error["upstream"]["message"] == "node 3 (KSampler): … at … cannot open … of …"
    assert "comfy" not in json.dumps(error)


async def test_an_interruption_is_called_so(start, double):
    server = await start(double.settings())
    double.plans.append(Plan("interrupted"))
    assert "interrupted" in (await server.finish(await submit(server)))["error"]["message"]


async def test_without_a_key_none_is_sent(start: Start, double):
    double.open = True
    server = await start(double.settings(api_key=""))
    assert (await server.finish(await submit(server)))["status"] == "succeeded"
    assert all("Authorization" not in seen.headers for seen in double.seen)
