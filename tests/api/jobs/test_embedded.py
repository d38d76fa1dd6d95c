"""The built-in engines through the whole gateway: what a caller gets with nothing configured."""

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import av
import pytest
import trimesh
from conftest import Server, Start
from PIL import Image, ImageDraw

from penstock.vendors.sim import Sim

MODEL, VIDEO = "vendora_image_to_model", "vendorb_video_31"


@pytest.fixture
async def built_in(start: Start) -> AsyncIterator[Server]:
    """A gateway with nothing configured."""
    return await start("")


def draw_figure(side: int = 256) -> bytes:
    """A teddy's head, cut out."""
    picture = Image.new("RGBA", (side, side))
    pen = ImageDraw.Draw(picture)
    for box, colour in (
        ((0.1, 0.1, 0.4, 0.4), "#7a4a20"),
        ((0.6, 0.1, 0.9, 0.4), "#7a4a20"),
        ((0.15, 0.2, 0.85, 0.9), "#b0703a"),
        ((0.32, 0.42, 0.4, 0.5), "black"),
        ((0.6, 0.42, 0.68, 0.5), "black"),
    ):
        pen.ellipse([round(number * side) for number in box], fill=colour)
    output = io.BytesIO()
    picture.save(output, "PNG")
    return output.getvalue()


async def upload(server: Server, data: bytes) -> dict[str, str]:
    response = await server.client.post("/api/v1/files", files={"file": ("figure.png", data)})
    assert response.status_code == 201, response.text
    return {"file_token": response.json()["file_token"]}


async def finish(server: Server, job_id: str) -> dict[str, Any]:
    """The record of a job once it is done, however long that takes."""
    while True:
        record = (await server.client.get(f"/api/v1/jobs/{job_id}", params={"wait": 60})).json()
        if record["done"]:
            return record


async def await_progress(server: Server, job_id: str) -> None:
    """Until the engine has begun to work."""
    async with server.client.stream("GET", f"/api/v1/jobs/{job_id}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: ") and json.loads(line.removeprefix("data: "))["data"]["progress"] > 0:
                return


async def generate(server: Server, model: str, **params: Any) -> dict[str, Any]:
    return await finish(server, (await server.submit(model, **params))["id"])


async def download(server: Server, record: dict[str, Any], role: str) -> bytes:
    (output,) = [output for output in record["outputs"] if output["role"] == role]
    response = await server.client.get(output["url"])
    assert response.status_code == 200
    assert len(response.content) == output["bytes"]
    return response.content


async def test_a_picture_becomes_a_model(built_in):
    file = await upload(built_in, draw_figure())
    record = await generate(built_in, MODEL, file=file, face_limit=3000, model_seed=7)
    assert (record["status"], record["vendor"], record["seed"]) == ("succeeded", "embedded", 7)
    assert any("v3.1-20260211 is not run here" in warning for warning in record["warnings"])
    assert any("Depth is estimated" in warning for warning in record["warnings"])
    assert record["cost"]["estimated"] == "0.00"
    glb = await download(built_in, record, "primary")
    mesh = trimesh.load(io.BytesIO(glb), file_type="glb", force="mesh")
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    assert mesh.is_watertight
    assert len(mesh.faces) == record["outputs"][0]["faces"] <= 3000
    preview = Image.open(io.BytesIO(await download(built_in, record, "preview")))
    assert min(preview.size) >= 512

    again = await generate(built_in, MODEL, file=file, face_limit=3000, model_seed=7)
    other = await generate(built_in, MODEL, file=file, face_limit=3000, model_seed=8)
    assert again["outputs"][0]["sha256"] == record["outputs"][0]["sha256"]
    assert other["outputs"][0]["sha256"] != record["outputs"][0]["sha256"]


async def test_a_prompt_becomes_a_video_and_tells_its_progress(built_in):
    prompt = "A red sailing boat on the sea at sunset"
    record = await built_in.submit(VIDEO, prompt=prompt, durationSeconds=4, aspectRatio="9:16")
    seen: list[float] = []
    async with built_in.client.stream("GET", f"/api/v1/jobs/{record['id']}/events") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                told = json.loads(line.removeprefix("data: "))
                seen.append(told["data"]["progress"])
    assert seen == sorted(seen)
    assert len(set(seen)) >= 2, "how often it is looked at is up to the machine"
    record = await finish(built_in, record["id"])
    assert (record["status"], record["vendor"]) == ("succeeded", "embedded")
    assert isinstance(record["seed"], int)
    assert any("illustrated" in warning for warning in record["warnings"])
    video = record["outputs"][0]
    assert (video["width"], video["height"], video["duration_seconds"], video["fps"]) == (720, 1280, 4.0, 24.0)
    with av.open(io.BytesIO(await download(built_in, record, "primary"))) as container:
        assert [stream.type for stream in container.streams] == ["video", "audio"]
        assert sum(1 for _ in container.decode(video=0)) == 96
    assert Image.open(io.BytesIO(await download(built_in, record, "preview"))).size == (720, 1280)


async def test_cancel_stops_the_work_at_once(built_in):
    record = await built_in.submit(VIDEO, prompt="waves", durationSeconds=8)
    await await_progress(built_in, record["id"])
    await built_in.client.post(f"/api/v1/jobs/{record['id']}/cancel")
    record = await finish(built_in, record["id"])
    assert record["status"] == "canceled"
    assert not record["outputs"]
    async with asyncio.timeout(60):
        while engines_of(os.getpid()):  # noqa: ASYNC110  the system tells nobody when a process is gone
            await asyncio.sleep(0.01)


def engines_of(parent: int) -> int:
    """How many engines run as children of this process."""
    found = 0
    for child in children_of(parent):
        with suppress(OSError):  # it has ended meanwhile
            found += b"engines.studio" in Path(f"/proc/{child}/cmdline").read_bytes()
    return found


def children_of(parent: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):  # that thread has ended meanwhile
            found += map(int, path.read_text().split())
    return found


async def test_a_picture_that_shows_nothing_fails_with_its_reason(built_in):
    output = io.BytesIO()
    Image.new("RGBA", (64, 64), (0, 0, 0, 0)).save(output, "PNG")
    record = await generate(built_in, MODEL, file=await upload(built_in, output.getvalue()))
    assert (record["status"], record["error"]["code"], record["error"]["stage"]) == (
        "failed",
        "file_unreadable",
        "generating",
    )
    assert "transparent" in record["error"]["message"]


async def test_an_object_of_a_bucket_is_refused_as_nobody_here_can_read_it(built_in):
    body = {"model": MODEL, "input": [{"params": {"file": {"object": "bucket/key"}}}]}
    response = await built_in.client.post("/model/v1/generation", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "input.0.params.file.object"


async def test_the_built_in_vendors_serve_what_the_configured_do_not(start):
    server = await start('[vendors.mine]\ntype = "sim"\n')
    listed = (await server.client.get("/api/v1/models")).json()["data"]
    served = {model["id"]: model["vendors"] for model in listed}
    mine = {each.model.id for each in Sim.models}
    assert {MODEL, VIDEO} < mine
    assert {name for name, vendors in served.items() if vendors == ["mine"]} == mine
    built_in = {"sketch_1": "embedded", "smollm2-135m": "local", "qwen2.5-coder-1.5b": "local_large"}
    built_in |= {"minilm-l6": "minilm", "hibari": "hibari", "whisper-base": "whisper"}
    assert {name: served[name] for name in built_in} == {name: [vendor] for name, vendor in built_in.items()}


async def test_a_route_may_name_a_built_in_vendor(start):
    server = await start(f'[[models]]\nid = "{VIDEO}"\nvendor = "embedded"\n')
    assert [model["id"] for model in (await server.client.get("/api/v1/models")).json()["data"]] == [VIDEO]


async def test_a_job_that_a_restart_interrupts_is_finished_by_the_next_process(start, tmp_path):
    first = await start("", data=tmp_path / "data")
    prompt = "An old man walks in the desert"
    record = await first.submit(VIDEO, prompt=prompt, durationSeconds=4, personGeneration="dont_allow")
    await await_progress(first, record["id"])
    await first.gateway.close()
    second = await start("", data=tmp_path / "data")
    record = await finish(second, record["id"])
    assert record["status"] == "succeeded"
    assert len(record["attempts"]) == 1
    assert any("dont_allow" in warning for warning in record["warnings"]), "people are left out"
