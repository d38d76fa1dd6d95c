"""Every model of every vendor, ordered by neutral names through Replicate and fal: each result comes out."""

import asyncio
import base64
import importlib
import io
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, running
from doubles.gemini_images import GeminiImagesDouble
from doubles.media import MediaDouble, listening
from doubles.openai_images import OpenAIImagesDouble
from PIL import Image, ImageDraw
from ports import free_port
from small_media import film, model, sound
from spares import sharing, spares
from vendors.double import HttpDouble
from vendors.test_contract import FILES, GENERATION, make_vendor

from penstock.catalog.model import GenerationModel
from penstock.settings.tables import load
from penstock.web.facades.neutral import to_params

__all__ = ["sharing", "spares"]
LISTED = [double for name in FILES for double in importlib.import_module(f"doubles.{name}").DOUBLES]
DOUBLES = [*LISTED, OpenAIImagesDouble, GeminiImagesDouble]
"""The doubles of all vendors, also of those without orders to poll."""
OWN_DESCRIPTIONS = dict.fromkeys(("kling", "luma", "fal", "replicate"), "webhooks = false\n")
"""Settings by which lost orders are found by their input, not by the address to call back."""


def draw_subject() -> bytes:
    """A picture of something before a plain background."""
    image = Image.new("RGB", (640, 360), "white")
    ImageDraw.Draw(image).ellipse((220, 60, 420, 300), fill="firebrick")
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


FILES_BY_KIND: Mapping[str, tuple[str, bytes, tuple[str, str]]] = {
    "image": ("image/png", draw_subject(), ("image", "image_url")),
    "video": ("video/mp4", film(), ("video", "video_url")),
    "audio": ("audio/wav", sound(), ("audio", "audio_url")),
    "3d": ("model/gltf-binary", model(), ("mesh", "model_url")),
}
"""By kind of file: its type, one, and its neutral names at Replicate and at fal."""
DIALECTS = ("replicate", "fal")
WORDS = ("prompt", "promptText", "text")
LENGTHS = ("duration", "durationSeconds", "seconds")
RATIOS = ("aspect_ratio", "aspectRatio", "ratio")
ANIMATION = "animation"


def always(_model: GenerationModel, _dialect: str) -> bool:
    return True


def named(kind: type[HttpDouble]) -> str:
    return kind.__name__.removesuffix("Double")


@asynccontextmanager
async def heard(kind: type[HttpDouble]) -> AsyncGenerator[Any]:
    double = kind()
    if isinstance(double, MediaDouble):
        async with listening(double):
            yield double
        return
    await double.listen()
    try:
        yield double
    finally:
        await double.hide()


@asynccontextmanager
async def gateway(toml: str, folder: Path, empty_store: Path, weights: Path) -> AsyncGenerator[Server]:
    """A gateway that vendors can reach."""
    port = free_port()
    shutil.copy(empty_store, folder)
    config = folder / "penstock.toml"
    near = f'[server]\npublic_url = "http://127.0.0.1:{port}"\n[fetch]\nallow_networks = ["127.0.0.0/8"]\n'
    config.write_text(near + toml)
    async with running(load(config, {}, {"data": folder, "weights": weights}), port) as server:
        yield server


def neutral_input(model: GenerationModel, dialect: int) -> dict[str, Any]:
    """The neutral names that a model has a place for, with files as their kinds; further params as in its example."""
    fields = model.schema["properties"]
    needed = set(model.schema.get("required", ()))
    slots = {slot.name: slot for slot in model.files}
    given: dict[str, Any] = {}
    if any(name in fields for name in WORDS):
        given["prompt"] = "a red fox in the snow"
    if found := next((fields[name] for name in LENGTHS if name in fields), None):
        given["duration"] = pick_length(found) if dialect == 0 else str(pick_length(found))
    if any(name in fields for name in RATIOS):
        given["aspect_ratio"] = "16:9"
    if "resolution" in fields:
        given["resolution"] = next(each for each in ("360p", "720p", "512", "1K") if each in str(fields["resolution"]))
    if any("seed" in name for name in fields):
        given["seed"] = 7
    for slot in slots.values():
        if slot.name in needed:
            name = FILES_BY_KIND[slot.kinds[0]][2][dialect]
            many = "images" if dialect == 0 else "image_urls"
            given |= {many: [slot.kinds[0]] * 2} if slot.roles else {name: slot.kinds[0]}
    known = {*WORDS, *LENGTHS, *RATIOS, *slots}
    return given | {name: model.example[name] for name in sorted(needed - known)}


def pick_length(field: Mapping[str, Any]) -> int:
    """A number of seconds that a param has, whatever it writes them as."""
    choices = field.get("enum") or [field.get("minimum", 1)]
    return int(str(choices[0]).removesuffix("s"))


def read_data_uri(kind: str) -> str:
    content_type, data, _ = FILES_BY_KIND[kind]
    return f"data:{content_type};base64,{base64.b64encode(data).decode()}"


async def order_by_replicate(server: Server, model: GenerationModel, links: Mapping[str, str]) -> list[str]:
    """Return the links of the results of an order with these files."""
    given = fill(neutral_input(model, 0), links)
    name = model.id.replace("/", "--").replace(":", "--")
    path = f"/replicate/v1/models/penstock/{name}/predictions"
    response = await server.client.post(path, json={"input": given}, headers={"prefer": "wait"})
    assert response.status_code == 201, (given, response.text)
    await server.finish(response.json()["id"])  # an engine may need more than the minute of a held connection
    prediction = (await server.client.get(f"/replicate/v1/predictions/{response.json()['id']}")).json()
    assert prediction["status"] == "succeeded", (given, prediction["error"])
    output = prediction["output"]
    return output if isinstance(output, list) else [output]


async def order_by_fal(server: Server, model: GenerationModel, links: Mapping[str, str]) -> list[str]:
    """Return the links of the results of an order with these files."""
    given = fill(neutral_input(model, 1), links)
    response = await server.client.post(f"/fal/queue/penstock/{model.id}", json=given)
    assert response.status_code == 200, (given, response.text)
    request = response.json()
    await server.finish(request["request_id"])
    result = await server.client.get(request["response_url"])
    assert result.status_code == 200, (given, result.text)
    found = result.json()
    assert model.kind != "text" or isinstance(found["text"], str)
    one = ("video", "model_mesh", "audio", "transcript")
    files = found.get("images") or [found[name] for name in one if name in found]
    return [file["url"] for file in files]


def fill(given: Any, links: Mapping[str, str]) -> Any:
    """Put a file in each place that names a kind of file."""
    names = {name for _, _, both in FILES_BY_KIND.values() for name in both} | {"images", "image_urls"}
    return {
        name: value
        if name not in names
        else [links[each] for each in value]
        if isinstance(value, list)
        else links[value]
        for name, value in given.items()
    }


async def upload_all(server: Server) -> dict[str, str]:
    """Upload a file of each kind; their URLs."""
    found = {}
    for kind, (content_type, data, _) in FILES_BY_KIND.items():
        form = {"content": ("a file", data, content_type)}
        response = await server.client.post("/replicate/v1/files", files=form)
        assert response.status_code == 201, response.text
        found[kind] = response.json()["urls"]["get"]
    return found


def models_of(server: Server, vendor: str) -> list[GenerationModel]:
    offers = server.gateway.offers.by_model.values()
    return [offer.model for offer in offers if offer.routes[0].vendor == vendor]


async def check_all(
    server: Server, vendor: str, subtests: pytest.Subtests, fits: Callable[[GenerationModel, str], bool] = always
) -> None:
    links, inline = await upload_all(server), {kind: read_data_uri(kind) for kind in FILES_BY_KIND}
    found = models_of(server, vendor)
    assert found

    async def order(model: GenerationModel, dialect: str) -> list[str]:
        given = links if dialect == "replicate" else inline
        if ANIMATION in model.schema["properties"]:  # it moves what it rigged itself
            rigger = next(each for each in found if each.id == model.id.replace("animate", "rig"))
            given = {**given, "3d": (await order(rigger, dialect))[0]}
        return await (order_by_replicate if dialect == "replicate" else order_by_fal)(server, model, given)

    async def check(model: GenerationModel, dialect: str) -> None:
        results = await order(model, dialect)
        assert results
        for link in results:
            response = await server.client.get(link, headers={"authorization": ""})
            assert response.status_code == 200
            assert len(response.content) > 50

    pairs = [(model, dialect) for model in found for dialect in DIALECTS if fits(model, dialect)]
    told = await asyncio.gather(*(check(*pair) for pair in pairs), return_exceptions=True)
    for (wanted, dialect), problem in zip(pairs, told, strict=True):
        with subtests.test(model=wanted.id, dialect=dialect):
            if problem is not None:
                raise problem


@pytest.mark.parametrize("kind", DOUBLES, ids=named)
async def test_every_model_of_a_vendor(
    kind: type[HttpDouble], tmp_path: Path, empty_store: Path, weights: Path, subtests: pytest.Subtests
) -> None:
    async with heard(kind) as double:
        toml = double.settings()
        vendor = toml.partition("]")[0].removeprefix("[vendors.")
        head, _, rest = toml.partition("\n")
        settings = f"{head}\n{OWN_DESCRIPTIONS.get(vendor, '')}{rest}"
        async with gateway(settings, tmp_path, empty_store, weights) as server:
            await check_all(server, vendor, subtests)


def is_short(model: GenerationModel, dialect: str) -> bool:
    """Return whether an order is among those that are tried every time: each model through one of the dialects.

    One model makes long films only.
    """
    return model.id != "vendorb_video_31" and (dialect == "fal") == (model.kind in ("image", "audio", "text"))


@pytest.mark.parametrize("short", [True, pytest.param(False, marks=pytest.mark.long)])
async def test_every_built_in_model(
    short: bool, tmp_path: Path, empty_store: Path, weights: Path, subtests: pytest.Subtests
) -> None:
    async with gateway("", tmp_path, empty_store, weights) as server:
        await check_all(server, "embedded", subtests, lambda *pair: is_short(*pair) is short)


SERVED = {served.model.id: served.model for name in GENERATION for served in make_vendor(name).models}
LINK = "https://example.com/a.png"
SINGLE = ("frame_images", "image", "file")
ONE = ("image", "image_url", "input_image", "start_image", "first_frame_image", "first_frame_url")
FIRST_AND_LAST = ("tail_image_url", "end_image", "last_frame", "last_frame_image", "end_image_url")
SEVERAL = ("images", "image_urls", "input_images", "image_input", "reference_images")


@pytest.mark.parametrize("model", SERVED.values(), ids=SERVED)
def test_a_picture_by_any_name_finds_its_place(model: GenerationModel) -> None:
    slots = [slot for slot in model.files if "image" in slot.kinds and slot.name != "mask"]
    names = {slot.name for slot in slots}
    is_film, views = "frame_images" in names, {"front", "left"} & {role for slot in slots for role in slot.roles}
    wanted: list[dict[str, Any]] = []
    if slots and not views:
        wanted += [{name: LINK} for name in ONE if not name.startswith(("start", "first")) or names & {*SINGLE}]
    if slots and any(slot.most > 1 for slot in slots):
        wanted += [{name: [LINK, LINK]} for name in SEVERAL]
    if is_film:
        wanted += [{"image": LINK, name: LINK} for name in FIRST_AND_LAST]
    example = {name: value for name, value in model.example.items() if name not in names}
    for given in wanted:
        found = to_params(model, {**example, **given})
        _, details = model.read(found.params, "")
        assert [detail for detail in details if detail.loc.partition(".")[0] in {*given, *names}] == [], given
