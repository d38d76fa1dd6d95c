"""Every model that makes pictures or films, of every vendor that has a double, ordered by OpenAI's client."""

import base64
import importlib
import io
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from conftest import Server, Start, running
from doubles.gemini_images import GeminiImagesDouble
from doubles.media import listening
from doubles.openai_images import LinkingDouble, OpenAIImagesDouble, OtherServerDouble
from openai_media import connect, draw
from PIL import Image
from ports import free_port
from vendors.test_contract import FILES

from penstock.catalog.model import GenerationModel
from penstock.settings.tables import load
from penstock.web.facades.measures import choices_of, fields_of, sizes_of, spread_size
from penstock.web.facades.openai.choosing import makes_from_text, takes_pictures

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
SYNCHRONOUS = [OpenAIImagesDouble, OtherServerDouble, LinkingDouble, GeminiImagesDouble]
DOUBLES = [double for name in FILES for double in importlib.import_module(f"doubles.{name}").DOUBLES] + SYNCHRONOUS
WIDE = (1280, 720)
SIZELESS = {"sketch", "restyle"}
"""Models without a size."""


def frame() -> bytes:
    """Return a picture of a film's size."""
    buffer = io.BytesIO()
    Image.new("RGB", WIDE, (20, 80, 120)).save(buffer, "png")
    return buffer.getvalue()


@asynccontextmanager
async def heard(double: Any) -> AsyncGenerator[Any]:
    """Let a double listen until the block ends."""
    if hasattr(double, "host"):
        async with listening(double):
            yield double
        return
    await double.listen()
    try:
        yield double
    finally:
        await double.hide()


@pytest.fixture
async def server(kind: Any, tmp_path: Path, empty_store: Path, weights: Path) -> AsyncGenerator[Server]:
    """A gateway for a double, which may fetch files from it."""
    port = free_port()
    public = f'[server]\npublic_url = "http://127.0.0.1:{port}"\n[fetch]\nallow_networks = ["127.0.0.0/8"]\n'
    shutil.copy(empty_store, tmp_path)
    config = tmp_path / "penstock.toml"
    async with heard(kind()) as double:
        config.write_text(public + double.settings())
        settings = load(config, {}, {"data": tmp_path, "weights": weights})
        async with running(settings, port) as server:
            yield server


def models_of(server: Server, kind: str) -> list[GenerationModel]:
    """Return the models of the gateway's first vendor."""
    (name, *_) = server.gateway.settings.vendors
    offers = server.gateway.offers.by_model.values()
    return [offer.model for offer in offers if offer.kind == kind and any(r.vendor == name for r in offer.routes)]


def sizes(answer: Any) -> list[tuple[int, int]]:
    """Return the sizes of the pictures of an answer."""
    return [Image.open(io.BytesIO(base64.b64decode(each.b64_json))).size for each in answer.data]


def title(kind: Any) -> str:
    return getattr(kind, "title", None) if isinstance(getattr(kind, "title", None), str) else kind.__name__


@pytest.mark.parametrize("kind", DOUBLES, ids=title)
async def test_every_model_is_reached(server: Server, subtests: pytest.Subtests) -> None:
    client = await connect(server)
    for model in models_of(server, "image"):
        if makes_from_text(model):
            with subtests.test(f"{model.id}: pictures"):
                await draw_pictures(server, client, model)
        if takes_pictures(model):
            with subtests.test(f"{model.id}: edits"):
                await change_pictures(server, client, model)
    for model in models_of(server, "video"):
        with subtests.test(f"{model.id}: films"):
            await make_films(server, client, model)
        with subtests.test(f"{model.id}: sizes"):
            check_sizes(model)


async def draw_pictures(server: Server, client: openai.AsyncOpenAI, model: GenerationModel) -> None:
    """Order pictures by a prompt: the least, several of a size, and links."""
    least = await client.images.generate(model=model.id, prompt="a mill")
    assert len(sizes(least)) == 1
    size: Any = {} if model.id in SIZELESS else {"size": "1024x1024"}
    several = await client.images.generate(model=model.id, prompt="a mill", n=5, **size)
    assert len(sizes(several)) == 5
    links = await client.images.generate(model=model.id, prompt="a mill", response_format="url", user="u1")
    for each in links.data or ():
        response = await server.client.get(each.url or "", headers={"authorization": ""})
        assert Image.open(io.BytesIO(response.content)).size


REFUSING = {("fal", "text_to_image"), ("fal", "fal_flux_image")}
REFUSING |= {("replicate", "text_to_image"), ("replicate", "replicate_flux_image")}
"""Models that take pictures at other vendors only: the job says so, and costs nothing."""


async def change_pictures(server: Server, client: openai.AsyncOpenAI, model: GenerationModel) -> None:
    """Order an edit of one picture, and of two where the model takes several."""
    one, two = ("one.png", draw(512)), ("two.png", draw(512))
    several = next(slot.most > 1 for slot in model.files if "image" in slot.kinds)
    is_refused = (next(iter(server.gateway.settings.vendors)), model.id) in REFUSING
    for image in (one, [one, two]) if several else (one,):
        promise = client.images.edit(model=model.id, prompt="a hat", image=image)  # type: ignore[arg-type]
        if is_refused:
            with pytest.raises(openai.BadRequestError, match="references"):
                await promise
        else:
            assert len(sizes(await promise)) == 1


async def make_films(server: Server, client: openai.AsyncOpenAI, model: GenerationModel) -> None:
    """Order films by form and as JSON, with and without length, size and picture."""
    seconds = length_of(model)
    least = await client.videos.create(model=model.id, prompt="a mill")
    sized = await client.videos.create(model=model.id, prompt="a mill", size="1280x720", seconds=seconds)  # type: ignore[arg-type]
    body = {"model": model.id, "prompt": "a mill", "size": "720x1280", "seconds": int(seconds)}
    tall = (await server.client.post("/v1/videos", json=body)).json()
    ids = [least.id, sized.id, tall["id"]]
    if takes_pictures(model):
        of_frame = await client.videos.create(
            model=model.id,
            prompt="a mill",
            seconds=seconds,  # type: ignore[arg-type]
            size="1280x720",
            input_reference=("frame.png", frame()),
        )
        ids.append(of_frame.id)
    else:
        with pytest.raises(openai.BadRequestError, match="cannot make a film from a picture"):
            await client.videos.create(model=model.id, prompt="a mill", input_reference=("frame.png", frame()))
    films = [await client.videos.poll(each, poll_interval_ms=20) for each in ids]
    assert [(film.status, film.error) for film in films] == [("completed", None)] * len(ids)
    assert films[1].seconds == seconds
    for film in films:
        assert (await client.videos.download_content(film.id)).content[4:8] == b"ftyp"


def length_of(model: GenerationModel) -> str:
    """Return a length that a model has: most have 8 seconds, some have 5."""
    fields = fields_of(model.params)
    field = next((fields[name] for name in ("duration", "durationSeconds") if name in fields), {})
    choices = [str(choice).removesuffix("s") for choice in choices_of(field)]
    return "8" if not choices or "8" in choices else choices[0]


def check_sizes(model: GenerationModel) -> None:
    """Check that sizes mean params which the model takes, and that these mean the sizes again."""
    for size in ("1280x720", "720x1280"):
        params = spread_size(model, size)
        assert next(sizes_of(params), size) == size
        _, problems = model.read({**model.example, **params}, "")
        assert not [problem for problem in problems if problem.loc.split(".")[0] in params], problems


async def test_built_in_models_are_reached(start: Start, cast_weights: Path) -> None:
    server = await start("", {"weights": str(cast_weights)})
    client = await connect(server)

    drawn = await client.images.generate(model="sketch_1", prompt="a red house", n=2, size="256x256")
    edited = await client.images.edit(model="sketch_1", prompt="a blue house", image=("one.png", draw(256)))
    film = await client.videos.create(
        model="still_film", prompt="the sea", seconds="2", size="640x360", input_reference=("frame.png", frame())
    )
    body = {"model": "vendorb_video_31", "prompt": "a boat", "seconds": 4, "size": "720x1280"}
    tall = (await server.client.post("/v1/videos", json=body)).json()
    films = [await client.videos.poll(each, poll_interval_ms=50) for each in (film.id, tall["id"])]

    assert sizes(drawn) == [(256, 256)] * 2
    assert len(sizes(edited)) == 1
    found = [(each.status, each.seconds, each.size) for each in films]
    assert found == [("completed", "2", "640x360"), ("completed", "4", "720x1280")]
    for each in films:
        assert (await client.videos.download_content(each.id)).content[4:8] == b"ftyp"
