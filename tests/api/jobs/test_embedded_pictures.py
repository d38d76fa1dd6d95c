"""The built-in models for pictures and for films of pictures, through the whole gateway."""

import io
from collections.abc import AsyncIterator
from typing import Any

import av
import numpy as np
import pytest
from conftest import Server, Start
from embedded_jobs import download, finish
from PIL import Image

SKETCH, FILM = "sketch_1", "still_film"


@pytest.fixture
async def built_in(start: Start) -> AsyncIterator[Server]:
    """A gateway with nothing configured."""
    return await start("")


async def open_picture(server: Server, output: dict[str, Any]) -> Image.Image:
    return Image.open(io.BytesIO(await download(server, output)))


async def test_a_prompt_becomes_pictures_that_a_seed_repeats(built_in):
    params = {"prompt": "A cat on a chair, with a milkshake", "size": "320x192", "n": 2, "seed": 5}
    record = await finish(built_in, SKETCH, **params)
    assert (record["status"], record["vendor"], record["seed"]) == ("succeeded", "embedded", 5)
    assert [(output["kind"], output["role"]) for output in record["outputs"]] == [("image", "primary")] * 2
    pictures = [await open_picture(built_in, output) for output in record["outputs"]]
    assert {(picture.format, picture.size, picture.mode) for picture in pictures} == {("PNG", (320, 192), "RGB")}
    digests = [output["sha256"] for output in record["outputs"]]
    assert len(set(digests)) == 2
    assert any("milkshake" in warning for warning in record["warnings"])
    again = await finish(built_in, SKETCH, **params)
    assert [output["sha256"] for output in again["outputs"]] == digests


async def test_a_transparent_picture_shows_the_subject_alone(built_in):
    record = await finish(
        built_in, SKETCH, prompt="A red fox", size="256x256", background="transparent", output_format="webp"
    )
    picture = await open_picture(built_in, record["outputs"][0])
    alpha = np.asarray(picture.convert("RGBA"))[..., 3]
    assert picture.format == "WEBP"
    assert alpha[0].max() == alpha[-1].max() == 0
    assert 0.05 < float((alpha == 255).mean()) < 0.9


async def test_a_scene_without_a_subject_cannot_be_transparent(built_in):
    record = await finish(built_in, SKETCH, prompt="xyzzy", background="transparent")
    assert record["status"] == "failed"
    assert "names no subject" in record["error"]["message"]


async def test_a_drawn_picture_becomes_a_film_without_leaving_the_store(built_in):
    picture = await finish(built_in, SKETCH, prompt="A boat on the sea at sunset", size="320x192")
    record = await finish(
        built_in,
        FILM,
        prompt="push in, rain",
        frame_images=[{"job": picture["id"]}, {"job": picture["id"], "role": "last_frame"}],
        duration=1,
        aspect_ratio="16:9",
        resolution="360p",
    )
    assert (record["status"], record["vendor"]) == ("succeeded", "embedded"), record
    film = record["outputs"][0]
    assert (film["width"], film["height"], film["fps"]) == (640, 360, 24.0)
    with av.open(io.BytesIO(await download(built_in, film))) as container:
        assert [stream.type for stream in container.streams] == ["video", "audio"]
        assert sum(1 for _ in container.decode(video=0)) == 24
    assert any("dissolves" in warning for warning in record["warnings"])


async def test_a_prompt_alone_becomes_a_film_too(built_in):
    record = await finish(built_in, FILM, prompt="A fox in the snow", duration=1, resolution="360p", aspect_ratio="1:1")
    assert record["status"] == "succeeded"
    assert (record["outputs"][0]["width"], record["outputs"][0]["height"]) == (360, 360)
    assert any("illustrated" in warning for warning in record["warnings"])
