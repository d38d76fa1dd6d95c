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
from doubles.kling import KlingDouble
from doubles.media import MediaDouble, listening
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
OPERATIONS: Mapping[type[MediaDouble], tuple[str, Mapping[str, Made]]] = {
    KlingDouble: ("kling_video", KLING),
}
EVERY = [
    pytest.param(kind, model, made, id=f"{model}-{name}")
    for kind, (model, operations) in OPERATIONS.items()
    for name, made in operations.items()
]


@pytest.fixture
async def double(kind: type[MediaDouble]) -> AsyncGenerator[MediaDouble]:
    async with listening(kind()) as double:
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
