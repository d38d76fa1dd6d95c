"""The built-in 3D family and the film of a model, through the whole gateway."""

import io
from collections.abc import AsyncIterator

import av
import pytest
from conftest import Server, Start
from embedded_jobs import download, finish

TURNTABLE = "turntable_1"
MODEL = "vendora_image_to_model"


@pytest.fixture
async def built_in(start: Start) -> AsyncIterator[Server]:
    """A gateway with nothing configured."""
    return await start("")


async def test_a_model_becomes_a_film_without_leaving_the_store(built_in):
    picture = await finish(built_in, "sketch_1", prompt="A red fox", size="256x256", background="transparent")
    model = await finish(built_in, MODEL, file={"job": picture["id"]}, face_limit=2000)
    mesh = {"job": model["id"], "output": "primary"}
    record = await finish(built_in, TURNTABLE, mesh=mesh, duration=1, resolution="360p", background="#203040")
    assert (record["status"], record["vendor"]) == ("succeeded", "embedded"), record
    film = record["outputs"][0]
    assert (film["kind"], film["width"], film["height"], film["fps"]) == ("video", 360, 360, 24.0)
    with av.open(io.BytesIO(await download(built_in, film))) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(frames) == 24
    assert frames[0][5, 5, 2] > frames[0][5, 5, 0]  # the blue ground
    assert (frames[0].astype(int) - frames[12]).__abs__().max() > 60  # it has turned
