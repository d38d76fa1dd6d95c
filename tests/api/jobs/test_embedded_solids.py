"""The built-in 3D family and the film of a model, through the whole gateway."""

import io
from collections.abc import AsyncIterator

import av
import numpy as np
import pytest
from conftest import Server, Start
from embedded_jobs import download, finish

TURNTABLE = "turntable_1"


@pytest.fixture
async def built_in(start: Start) -> AsyncIterator[Server]:
    """A gateway with nothing configured."""
    return await start("")


async def test_a_prompt_becomes_a_model_then_a_smaller_one_then_a_film(built_in):
    model = await finish(built_in, "inflate_text_1", prompt="A red fox", face_limit=3000, seed=5)
    assert (model["status"], model["vendor"], model["seed"]) == ("succeeded", "embedded", 5), model
    smaller = await finish(built_in, "remesh_1", mesh={"job": model["id"], "output": "primary"}, face_limit=500)
    mesh = smaller["outputs"][0]["mesh"]
    assert (mesh["format"], mesh["has_uv"], mesh["is_watertight"], mesh["textures"] > 0) == ("glb", True, True, True)
    assert 300 < smaller["outputs"][0]["faces"] <= 500
    record = await finish(
        built_in, TURNTABLE, mesh={"job": smaller["id"]}, duration=1, resolution="360p", background="#203040"
    )
    assert (record["status"], record["vendor"]) == ("succeeded", "embedded"), record
    film = record["outputs"][0]
    assert (film["kind"], film["width"], film["height"], film["fps"]) == ("video", 360, 360, 24.0)
    with av.open(io.BytesIO(await download(built_in, film))) as container:
        frames = [frame.to_ndarray(format="rgb24").astype(int) for frame in container.decode(video=0)]
    assert len(frames) == 24
    assert frames[0][5, 5, 2] > frames[0][5, 5, 0] + 8  # the blue ground
    assert np.abs(frames[0] - frames[12]).max() > 60  # it has turned


async def test_a_picture_becomes_quads_and_other_formats(built_in):
    picture = await finish(built_in, "sketch_1", prompt="A blue car", size="256x256", background="transparent")
    model = await finish(built_in, "inflate_1", image={"job": picture["id"]}, face_limit=1000, quads=True)
    assert model["status"] == "succeeded", model
    mesh = model["outputs"][0]["mesh"]
    assert (mesh["format"], mesh["has_uv"], mesh["quads"] > 350) == ("obj", True, True)
    assert model["outputs"][0]["faces"] <= 1000
    for name in ("glb", "stl", "usdz", "obj"):
        record = await finish(built_in, "convert_1", mesh={"job": model["id"]}, format=name)
        assert (record["status"], record["outputs"][0]["mesh"]["format"]) == ("succeeded", name), record


async def test_a_format_that_is_not_written_is_refused_at_once(built_in):
    body = {"model": "convert_1", "input": [{"params": {"mesh": {"data": "AAAA"}, "format": "fbx"}}]}
    response = await built_in.client.post("/model/v1/generation", json=body)
    assert response.status_code == 400
    assert "'usdz'" in response.text


async def test_pictures_of_sides_become_a_model(built_in):
    drawn = [
        await finish(built_in, "sketch_1", prompt=prompt, size="256x256", background="transparent")
        for prompt in ("A robot", "A robot")
    ]
    images = [{"job": job["id"], "role": role} for job, role in zip(drawn, ("front", "left"), strict=True)]
    record = await finish(built_in, "inflate_views_1", images=images, face_limit=1500)
    assert (record["status"], record["vendor"]) == ("succeeded", "embedded"), record
    assert 1000 < record["outputs"][0]["faces"] <= 1500
    assert record["outputs"][0]["mesh"]["is_watertight"]
