"""Films from pictures and films in the neutral params: each operation at each vendor, each file in its place."""

import hashlib
import io
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, running
from doubles.fal import FalDouble
from doubles.kling import KlingDouble
from doubles.luma import LumaDouble
from doubles.luma_agents import LumaAgentsDouble
from doubles.media import MediaDouble, listening
from doubles.replicate import ReplicateDouble
from doubles.runway import RunwayDouble
from doubles.veo import VeoInlineDouble
from PIL import Image
from ports import free_port

from penstock.settings.tables import load
from penstock.simulator.samples import make_video

COLOURS = {"red": (200, 30, 30), "green": (30, 160, 60), "blue": (40, 60, 190), "grey": (90, 90, 90)}


def picture(colour: str, width: int = 640, height: int = 360, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), COLOURS[colour]).save(file, kind)
    return file.getvalue()


def film(seconds: int = 4) -> bytes:
    return make_video(1280, 720, seconds, 7)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def give(server: Server, data: bytes, **more: str) -> dict[str, str]:
    """Upload a file; the object that names it in params."""
    response = await server.client.post("/api/v1/files", files={"file": ("a file", data)})
    assert response.status_code == 201, response.text
    return {"file_token": response.json()["file_token"], **more}


async def fill(server: Server, params: Any) -> Any:
    """The params with an upload for each picture or film in them."""
    match params:
        case bytes():
            return await give(server, params)
        case (bytes() as data, str() as role):
            return await give(server, data, role=role)
        case list():
            return [await fill(server, each) for each in params]
        case dict():
            return {name: await fill(server, each) for name, each in params.items()}
    return params


@asynccontextmanager
async def gateway(double: MediaDouble, folder: Path, empty_store: Path, *, public: bool = True, more: str = "") -> Any:
    """A gateway that the vendor can reach, or that it cannot."""
    port = free_port()
    shutil.copy(empty_store, folder)
    config = folder / "penstock.toml"
    address = f'[server]\npublic_url = "http://127.0.0.1:{port}"\n' if public else ""
    near = '[fetch]\nallow_networks = ["127.0.0.0/8"]\n'
    config.write_text(f"{address}{double.settings(**WEBHOOKS.get(double.vendor, {}))}{near}{more}")
    async with running(load(config, {}, {"data": folder}), port) as server:
        yield server


WEBHOOKS: Mapping[str, Any] = {name: {"webhooks": False} for name in ("kling", "luma", "fal", "replicate")}
"""Settings by which lost orders are found by their input, not by the address to call back."""


@dataclass(frozen=True)
class Made:
    """An operation: the params, and the order and the inputs that the vendor sees then."""

    params: Mapping[str, Any]
    path: str
    body: Mapping[str, Any]
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    warned: tuple[str, ...] = ()
    models: str = ""  # further settings


RED, GREEN, BLUE = picture("red"), picture("green"), picture("blue")
FILM = film()
FIRST, LAST = (RED, "first_frame"), (GREEN, "last_frame")
WORDS = {"prompt": "the boat drifts"}

KLING = {
    "text": Made(
        WORDS | {"duration": 10, "aspect_ratio": "1:1"}, "text2video", {"duration": "10", "aspect_ratio": "1:1"}
    ),
    "first frame": Made(
        WORDS | {"frame_images": [FIRST], "resolution": "720p", "aspect_ratio": "9:16", "duration": 7},
        "image2video",
        {"model_name": "kling-v2-6", "mode": "std", "duration": "5"},
        {"image": RED},
        ("`aspect_ratio` 9:16 has no effect", "`duration` 7 is not supported by Kling: 5 seconds"),
    ),
    "both frames": Made(
        {"frame_images": [LAST, FIRST], "generate_audio": True, "negative_prompt": "people"},
        "image2video",
        {"mode": "pro", "sound": "on", "negative_prompt": "people"},
        {"image": RED, "image_tail": GREEN},
    ),
    "references": Made(
        WORDS | {"input_references": [RED, GREEN, BLUE], "seed": 7},
        "multi-image2video",
        {"model_name": "kling-v1-6", "aspect_ratio": "16:9"},
        {"image_list.0": RED, "image_list.1": GREEN, "image_list.2": BLUE},
        ("`seed` 7 is not supported by Kling",),
    ),
    "edit": Made(
        WORDS | {"video": FILM, "mode": "edit"}, "omni-video", {"model_name": "kling-video-o1"}, {"video_url": FILM}
    ),
}
VEO = {
    "text": Made(
        WORDS | {"aspect_ratio": "9:16", "resolution": "1080p", "duration": 6},
        ":predictLongRunning",
        {"aspectRatio": "9:16", "resolution": "1080p", "durationSeconds": 6},
    ),
    "first frame": Made(
        WORDS | {"frame_images": [FIRST], "seed": 7, "generate_audio": False},
        ":predictLongRunning",
        {"resizeMode": "pad", "seed": 7, "generateAudio": False, "durationSeconds": 8},
        {"image": RED},
    ),
    "both frames": Made(
        {"frame_images": [LAST, FIRST]},
        ":predictLongRunning",
        {"aspectRatio": "16:9"},
        {"image": RED, "lastFrame": GREEN},
    ),
    "references": Made(
        WORDS | {"input_references": [RED, GREEN, BLUE]},
        ":predictLongRunning",
        {"durationSeconds": 8},
        {"referenceImages.0": RED, "referenceImages.1": GREEN, "referenceImages.2": BLUE},
    ),
    "extend": Made(
        WORDS | {"video": FILM, "mode": "extend"},
        ":predictLongRunning",
        {"durationSeconds": None},
        {"video": FILM},
        ("Veo returns the 7 seconds that it adds",),
    ),
}
RUNWAY = {
    "text": Made(
        WORDS | {"duration": 5}, "/v1/text_to_video", {"model": "veo3.1", "duration": 6}, warned=("`duration` 5",)
    ),
    "first frame": Made(
        WORDS | {"frame_images": [FIRST]}, "/v1/image_to_video", {"model": "veo3.1"}, {"promptImage.first": RED}
    ),
    "both frames": Made(
        {"frame_images": [LAST, FIRST], "resolution": "1080p"},
        "/v1/image_to_video",
        {"ratio": "1920:1080"},
        {"promptImage.first": RED, "promptImage.last": GREEN},
    ),
    "references": Made(
        WORDS | {"input_references": [RED, BLUE]},
        "/v1/text_to_video",
        {"model": "klingO3_pro", "duration": 5},
        {"references.0": RED, "references.1": BLUE},
    ),
    "extend": Made(
        WORDS | {"video": FILM, "mode": "extend"},
        "/v1/video_to_video",
        {"model": "gemini_omni_flash_1.1", "mode": "extend"},
        {"videoUri": FILM},
    ),
    "edit": Made(
        WORDS | {"video": FILM, "mode": "edit"}, "/v1/video_to_video", {"model": "aleph2"}, {"videoUri": FILM}
    ),
}
LUMA = {
    "text": Made(WORDS | {"aspect_ratio": "1:1", "duration": 9}, "/generations/video", {"duration": "9s"}),
    "first frame": Made(WORDS | {"frame_images": [FIRST]}, "/generations/video", {"duration": "5s"}, {"frame0": RED}),
    "both frames": Made(
        WORDS | {"frame_images": [LAST, FIRST], "resolution": "540p", "seed": 3},
        "/generations/video",
        {"resolution": "540p"},
        {"frame0": RED, "frame1": GREEN},
        ("`seed` 3 is not supported by Luma",),
    ),
    "edit": Made(
        WORDS | {"video": FILM, "mode": "edit"},
        "/generations/video/modify",
        {"generation_type": "modify_video", "mode": "flex_1"},
        {"media": FILM},
    ),
}
AGENTS = {
    "first frame": Made(
        WORDS | {"frame_images": [FIRST], "duration": 10},
        "/v1/generations",
        {"type": "video", "duration": "5s"},
        {"start_frame": RED},
        ("`duration` 10 is not supported by Luma Ray 3.2: 5 seconds",),
    ),
    "last frame": Made(WORDS | {"frame_images": [LAST]}, "/v1/generations", {"type": "video"}, {"end_frame": GREEN}),
    "both frames": Made(
        WORDS | {"frame_images": [LAST, FIRST]}, "/v1/generations", {}, {"start_frame": RED, "end_frame": GREEN}
    ),
    "edit": Made(WORDS | {"video": FILM, "mode": "edit"}, "/v1/generations", {"type": "video_edit"}, {"source": FILM}),
}
FAL = {
    "text": Made(WORDS | {"duration": 4}, "/fal-ai/veo3.1", {"duration": "4s"}),
    "first frame": Made(
        WORDS | {"frame_images": [FIRST]}, "/fal-ai/veo3.1/image-to-video", {"duration": "8s"}, {"image_url": RED}
    ),
    "both frames": Made(
        WORDS | {"frame_images": [LAST, FIRST], "seed": 7},
        "/fal-ai/veo3.1/first-last-frame-to-video",
        {"seed": 7},
        {"first_frame_url": RED, "last_frame_url": GREEN},
    ),
    "references": Made(
        WORDS | {"input_references": [RED, GREEN]},
        "/fal-ai/veo3.1/reference-to-video",
        {"duration": "8s"},
        {"image_urls.0": RED, "image_urls.1": GREEN},
    ),
    "extend": Made(WORDS | {"video": FILM, "mode": "extend"}, "/fal-ai/veo3.1/extend-video", {}, {"video_url": FILM}),
    "another app": Made(
        WORDS | {"frame_images": [LAST, FIRST], "resolution": "720p"},
        "/fal-ai/kling-video/v2.6/pro/image-to-video",
        {"duration": "5"},
        {"start_image_url": RED, "end_image_url": GREEN},
        ("`resolution` 720p is not supported by Kling 2.6 at fal",),
        '[[models]]\nid = "fal_video"\nvendor = "fal"\nmodel = "fal-ai/kling-video/v2.6/pro"\n',
    ),
}
REPLICATE = {
    "first frame": Made(
        WORDS | {"frame_images": [FIRST], "seed": 7}, "/veo-3.1-fast/predictions", {"seed": 7}, {"image": RED}
    ),
    "both frames": Made(
        WORDS | {"frame_images": [LAST, FIRST], "duration": 6},
        "/veo-3.1-fast/predictions",
        {"duration": 6},
        {"image": RED, "last_frame": GREEN},
    ),
    "references": Made(
        WORDS | {"input_references": [RED, GREEN], "duration": 4},
        "/veo-3.1-fast/predictions",
        {"duration": 8},
        {"reference_images.0": RED, "reference_images.1": GREEN},
        ("`duration` 4 is not supported by Veo 3.1 at Replicate: 8 seconds",),
    ),
    "another model": Made(
        WORDS | {"frame_images": [FIRST]},
        "/kling-v2.1/predictions",
        {"duration": 5},
        {"start_image": RED},
        models='[[models]]\nid = "replicate_video"\nvendor = "replicate"\nmodel = "kwaivgi/kling-v2.1"\n',
    ),
}
OPERATIONS: Mapping[type[MediaDouble], tuple[str, Mapping[str, Made]]] = {
    KlingDouble: ("kling_video", KLING),
    VeoInlineDouble: ("veo_video", VEO),
    RunwayDouble: ("runway_video", RUNWAY),
    LumaDouble: ("luma_video", LUMA),
    LumaAgentsDouble: ("luma_ray32_video", AGENTS),
    FalDouble: ("fal_video", FAL),
    ReplicateDouble: ("replicate_video", REPLICATE),
}
EVERY = [
    pytest.param(kind, model, made, id=f"{model}-{name}")
    for kind, (model, operations) in OPERATIONS.items()
    for name, made in operations.items()
]


@pytest.fixture
async def double(kind: type[MediaDouble]) -> AsyncGenerator[MediaDouble]:
    async with listening(kind()) as double:
        if isinstance(double, LumaDouble):
            double.fetches = True
        yield double


def ordered(double: MediaDouble) -> list[Any]:
    """The bodies of all orders, as the vendor keeps them."""
    return [order.body.get("input", order.body) for order in double.orders.values()]


def warnings_of(job: Mapping[str, Any]) -> list[str]:
    return [warning for warning in job["warnings"] if not warning.startswith("The price of")]


@pytest.mark.parametrize(("kind", "model", "made"), EVERY)
async def test_an_operation(double: MediaDouble, model: str, made: Made, tmp_path: Path, empty_store: Path):
    async with gateway(double, tmp_path, empty_store, more=made.models) as server:
        job = await server.generate(model, **await fill(server, dict(made.params)))
    assert job["status"] == "succeeded", job["error"]
    (body,) = ordered(double)
    flat = dict(body.get("parameters", {})) | dict(body.get("video", {})) | body
    assert {name: flat.get(name) for name in made.body} == made.body
    assert any(seen.method == "POST" and seen.path.partition("?")[0].endswith(made.path) for seen in double.seen)
    assert dict(double.inputs) == {slot: digest(data) for slot, data in made.inputs.items()}
    assert len(double.inputs) == len(made.inputs)
    found = warnings_of(job)
    assert len(found) == len(made.warned), found
    for warning, begin in zip(sorted(found), sorted(made.warned), strict=True):
        assert warning.startswith(begin)


OWN = [
    pytest.param(KlingDouble, "kling_video", "video_id", id="kling"),
    pytest.param(LumaDouble, "luma_video", "keyframes", id="luma"),
    pytest.param(LumaAgentsDouble, "luma_ray32_video", "video", id="luma_agents"),
]


@pytest.mark.parametrize(("kind", "model", "field"), OWN)
async def test_an_own_film_is_extended_by_its_id(
    double: MediaDouble, model: str, field: str, tmp_path: Path, empty_store: Path
):
    async with gateway(double, tmp_path, empty_store) as server:
        first = await server.generate(model, prompt="the boat drifts")
        job = await server.generate(model, prompt="it sinks", video={"job": first["id"]}, mode="extend")
        stranger = await server.generate(model, **await fill(server, WORDS | {"video": FILM, "mode": "extend"}))
    assert job["status"] == "succeeded", job["error"]
    _, extension = ordered(double)
    assert first["attempts"][-1]["upstream_id"] in str(extension[field]) or field == "video_id"
    assert double.inputs == [], "nothing was sent again"
    assert (stranger["status"], stranger["error"]["code"]) == ("failed", "upstream_rejected")
    assert "takes only films that it made itself" in stranger["error"]["message"]


MODELS = [pytest.param(kind, model, id=model) for kind, (model, _) in OPERATIONS.items()]


@pytest.mark.parametrize(("kind", "model"), MODELS)
@pytest.mark.parametrize(
    ("params", "param"),
    [
        (WORDS | {"frame_images": [(RED, "front")]}, "frame_images.0.role"),
        (WORDS | {"frame_images": [FIRST, FIRST]}, "frame_images"),
        (WORDS | {"frame_images": [(FILM, "first_frame")]}, "frame_images.0.file_token"),
        (WORDS | {"input_references": [FILM]}, "input_references.0.file_token"),
        (WORDS | {"video": RED, "mode": "edit"}, "video.file_token"),
        (WORDS | {"video": FILM, "mode": "reverse"}, "mode"),
    ],
    ids=["role", "twice", "film as a frame", "film as a reference", "picture as a film", "mode"],
)
async def test_what_no_vendor_takes_is_refused_at_once(
    double: MediaDouble, model: str, params: Any, param: str, tmp_path: Path, empty_store: Path
):
    async with gateway(double, tmp_path, empty_store) as server:
        body = {"model": model, "input": [{"params": await fill(server, params)}]}
        response = await server.client.post("/model/v1/generation", json=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert [detail["loc"] for detail in error["details"]][:1] == [f"input.0.params.{param}"], error
    assert double.seen == []


@pytest.mark.parametrize(("kind", "model"), [(LumaDouble, "luma_video"), (KlingDouble, "kling_video")])
async def test_a_vendor_that_fetches_files_needs_an_address(
    double: MediaDouble, model: str, tmp_path: Path, empty_store: Path
):
    async with gateway(double, tmp_path, empty_store, public=False) as server:
        job = await server.generate(model, **await fill(server, WORDS | {"video": FILM, "mode": "edit"}))
    assert job["status"] == "failed"
    assert "public_url" in job["error"]["message"]
    assert double.orders == {}
