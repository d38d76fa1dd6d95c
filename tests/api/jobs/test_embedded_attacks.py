"""Pictures, params and prompts meant to break the built-in engines: every job ends well, or says plainly why."""

import asyncio
import io
import os
import signal
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest
from conftest import Server, Start
from PIL import Image
from steps import cancel, look, post
from test_embedded import MODEL, VIDEO, children_of, draw_figure, engines_of, finish, upload

from penstock.catalog.image_to_model import Version

LEAKS = ("/", "\\", "Traceback", "Error", "cv2", "OpenCV", "numpy", "PIL", "Plugin", "onnx", "av.", "penstock.")
"""What no caller should read: paths of this machine, names of libraries and of what they raise."""
MEGABYTE = 1 << 20
ROOMY = "[vendors.embedded]\nmax_concurrent = 6\npoll_seconds = 0.05\n"


# -- pictures


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, depth: int, colour: int, *chunks: bytes, pixels: int | None = None) -> bytes:
    """A PNG of nothing but zeros: a few kilobytes, whatever it unpacks to."""
    channels = {0: 1, 2: 3, 6: 4}[colour]
    row = 1 + (width * depth * channels + 7) // 8
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    rows = chunk(b"IDAT", squeeze(row * height if pixels is None else pixels))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + rows + chunk(b"IEND", b"")


def squeeze(zeros: int) -> bytes:
    packer = zlib.compressobj(9)
    packed = [packer.compress(bytes(MEGABYTE)) for _ in range(zeros // MEGABYTE)]
    return b"".join([*packed, packer.compress(bytes(zeros % MEGABYTE)), packer.flush()])


def encode(picture: Image.Image, kind: str, **options: Any) -> bytes:
    output = io.BytesIO()
    picture.save(output, kind, **options)
    return output.getvalue()


def open_figure(side: int = 256) -> Image.Image:
    return Image.open(io.BytesIO(draw_figure(side)))


def break_checksum() -> bytes:
    data = draw_figure()
    place = data.index(b"IDAT") + 30
    return data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]


def animate(frames: int) -> bytes:
    pictures = [Image.new("RGB", (20, 20), (number % 256, number // 256 * 9, 7)) for number in range(frames)]
    return encode(pictures[0], "WEBP", save_all=True, append_images=pictures[1:])


def photograph(side: int = 6000) -> bytes:
    """A figure before a wall in slanting light, as large as may be."""
    wall = Image.linear_gradient("L").resize((side // 10, side // 10)).convert("RGB")
    figure = open_figure(side // 16)
    wall.paste(figure, (side // 50, side // 50), figure)
    return encode(wall.resize((side, side)), "JPEG", quality=70)


def deepen(side: int = 1500) -> bytes:
    """16 bits of grey, larger than what the engine keeps."""
    grey = Image.linear_gradient("L").resize((side, side)).convert("I;16")
    return encode(grey.point(lambda value: value * 257), "PNG")


def spoil_exif() -> bytes:
    garbage = b"Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\x12\0\x03\xff\xff\xff\xff" + bytes(range(200))
    return encode(open_figure().convert("RGB"), "JPEG", exif=garbage)


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "claims 50,000 x 50,000": (lambda: png(50_000, 50_000, 8, 2, pixels=MEGABYTE), "50000 x 50000"),
    "less than it claims": (lambda: png(6000, 6000, 8, 2, pixels=MEGABYTE), "damaged or cut off"),
    "cut JPEG": (lambda: photograph(1000)[:4000], "damaged or cut off"),
    "broken checksum": (break_checksum, "damaged or cut off"),
    "19 x 6000": (lambda: png(19, 6000, 8, 0), "19 x 6000"),
}
TRANSPARENT: dict[str, Callable[[], bytes]] = {
    "36 million clear pixels": lambda: png(6000, 6000, 8, 6),
    "the same with 16 bits": lambda: png(6000, 6000, 16, 6),
}
TAKEN: dict[str, Callable[[], bytes]] = {
    "36 million black pixels": lambda: png(6000, 6000, 1, 0),
    "6000 x 6000 photograph": photograph,
    "16 bits of grey": deepen,
    "20 x 6000": lambda: encode(Image.effect_noise((20, 6000), 90), "PNG"),
    "also a web page": lambda: draw_figure() + b"<script>alert(1)</script>PK\x03\x04%PDF-1.4" + bytes(200),
    "1000 frames": lambda: animate(1000),
    "garbage for EXIF": spoil_exif,
    "garbage for a colour profile": lambda: encode(open_figure(), "PNG", icc_profile=b"garbage" * 200),
}


def assert_clear(error: dict[str, Any]) -> None:
    assert error["message"].endswith(".")
    assert [leak for leak in LEAKS if leak in error["message"]] == []
    for said in (error.get("upstream") or {}).values():
        assert [leak for leak in LEAKS if leak in said] == []


async def assert_healthy(server: Server) -> None:
    assert (await server.client.get("/healthz")).status_code == 200
    assert (await server.client.get("/readyz")).status_code == 200
    async with asyncio.timeout(60):  # one that was told to end may need a moment
        while engines_of(os.getpid()):  # noqa: ASYNC110  nobody tells when it is gone
            await asyncio.sleep(0.02)


async def test_broken_pictures_are_refused_before_any_work(start: Start):
    server = await start("")
    for name, (draw, words) in REFUSED.items():
        response = await server.client.post("/api/v1/files", files={"file": ("a.png", draw())})
        assert response.status_code == 400, name
        assert response.json()["error"]["code"] == "file_unreadable", name
        assert words in response.json()["error"]["message"]
        assert_clear(response.json()["error"])
    await assert_healthy(server)


async def test_a_bomb_in_a_text_is_refused_in_words_of_our_own(start: Start):
    server = await start("")
    bomb = chunk(b"zTXt", b"name\0\0" + squeeze(200 * MEGABYTE))
    response = await server.client.post("/api/v1/files", files={"file": ("a.png", png(64, 64, 8, 2, bomb))})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "file_unreadable")
    assert_clear(response.json()["error"])


@pytest.mark.long
async def test_odd_pictures_become_models_within_reasonable_memory(start: Start):
    server = await start("[vendors.embedded]\nmemory_mb = 1536\nseconds = 60\n")
    drawn = {name: draw() for name, draw in (TAKEN | TRANSPARENT).items()}
    files = {name: await upload(server, data) for name, data in drawn.items()}
    ids = {name: (await server.submit(MODEL, file=file, face_limit=500))["id"] for name, file in files.items()}
    for name in TAKEN:
        record = await finish(server, ids[name])
        assert (record["status"], record["error"]) == ("succeeded", None), name
        assert 0 < record["outputs"][0]["faces"] <= 500, name
    for name in TRANSPARENT:
        error = (await finish(server, ids[name]))["error"]
        assert (error["code"], error["retryable"]) == ("file_unreadable", False), name
        assert error["message"] == "The picture is fully transparent."
    await assert_healthy(server)


# -- params


@pytest.mark.long
async def test_every_version_and_every_extreme_of_the_params_works(start: Start):
    server = await start("")
    file = await upload(server, draw_figure(96))
    asked: list[dict[str, Any]] = [
        *({"model_version": version, "texture": False} for version in get_args(Version)),
        {"face_limit": 48, "pbr": True, "model_seed": 0},
        {"face_limit": 1_500_000, "pbr": False, "model_seed": 2_147_483_647},
    ]
    body = {"model": MODEL, "input": [{"params": {"file": file, **params}} for params in asked]}
    response = await post(server, body)
    assert response.status_code == 202, response.text
    for job, params in zip(response.json()["jobs"], asked, strict=True):
        record = await finish(server, job["id"])
        assert (record["status"], record["error"]) == ("succeeded", None), params
        assert record["outputs"][0]["faces"] <= params.get("face_limit", 30_000), params
    await assert_healthy(server)


# -- prompts

PROMPTS = {
    "as long as may be": ("A fox in the snow and a boat on the lake. " * 100)[:3999] + "!",
    "emoji": "🚀🌕🦊",
    "right to left": "قارب أحمر في البحر \u202e abc",
    "control characters": "a boat\x00 on\x1b[31m the\x07 sea\x7f",
    "one letter": "x",
    "HTML and SQL": "<script>alert('x')</script>'; DROP TABLE jobs; --",
    "JSON": '{"place": "forest", "seed": {"$gt": ""}, "path": "../../etc/passwd", "%s": "${HOME}"}',
    "little between newlines": "\n\t.\r\n",
    "nothing to be seen": "\u200b\u200c\u200d",
}


@pytest.mark.long
async def test_any_text_at_all_is_drawn(start: Start):
    server = await start("[vendors.embedded]\nmax_concurrent = 3\npoll_seconds = 0.05\n")
    ids = {name: (await server.submit(VIDEO, prompt=text, durationSeconds=4))["id"] for name, text in PROMPTS.items()}
    for name, job_id in ids.items():
        record = await await_frames(server, job_id)
        assert record["error"] is None, name
        assert record["input"]["prompt"] == PROMPTS[name].strip()
        await cancel(server.client, job_id)
        assert (await finish(server, job_id))["status"] == "canceled", name
    await assert_healthy(server)


@pytest.mark.parametrize("text", ["", "\n\n", " \t\r\n ", "x" * 4001])
async def test_what_is_no_prompt_is_refused(start: Start, text: str):
    server = await start("")
    body = {"model": VIDEO, "input": [{"params": {"prompt": text}}]}
    response = await post(server, body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "input.0.params.prompt"


async def await_frames(server: Server, job_id: str) -> dict[str, Any]:
    """The record once frames were drawn, or the job is over."""
    async with asyncio.timeout(60):
        while True:
            record = await look(server.client, job_id)
            if record["progress"] > 0 or record["done"]:
                return record
            await asyncio.sleep(0.02)


# -- all at once


async def test_jobs_side_by_side_each_come_to_their_own_end(start: Start):
    server = await start(ROOMY)
    figure, nothing = await upload(server, draw_figure()), await upload(server, png(40, 40, 8, 6))
    films = [(await server.submit(VIDEO, prompt=text))["id"] for text in ("waves", "rain", "snow")]
    models = [(await server.submit(MODEL, file=file, face_limit=500))["id"] for file in (figure, nothing, figure)]
    engines: list[int] = []
    for job_id in films:
        assert (await await_frames(server, job_id))["error"] is None
        engines.append(await find_engine(job_id))
        os.kill(engines[-1], signal.SIGSTOP)  # it has begun; the rest of the film would only cost time
    canceled, starved, crashed = films
    await cancel(server.client, canceled)
    os.kill(engines[1], signal.SIGKILL)
    os.kill(engines[2], signal.SIGSEGV)
    os.kill(engines[2], signal.SIGCONT)
    ends = {job_id: await finish(server, job_id) for job_id in films + models}
    assert [ends[job_id]["status"] for job_id in films] == ["canceled", "failed", "failed"]
    assert [ends[job_id]["status"] for job_id in models] == ["succeeded", "failed", "succeeded"]
    for job_id, message in (
        (starved, "The built-in engine ran out of memory."),
        (crashed, "The built-in engine crashed."),
    ):
        error = ends[job_id]["error"]
        assert (error["code"], error["message"], error["retryable"]) == ("upstream_error", message, True)
        assert_clear(error)
    first, _, second = (ends[job_id] for job_id in models)
    assert first["seed"] != second["seed"]
    await assert_healthy(server)


async def find_engine(job_id: str) -> int:
    """The process that films this job: the one which writes into the job's folder."""
    async with asyncio.timeout(60):
        while True:
            for process, path in list_open_files(os.getpid()):
                if any(job_id in part for part in path.parts):
                    return process
            await asyncio.sleep(0.02)


def list_open_files(parent: int) -> Iterator[tuple[int, Path]]:
    for process in children_of(parent):
        with suppress(OSError):  # it has ended, or closed one
            for link in Path(f"/proc/{process}/fd").iterdir():
                yield process, link.readlink()
