"""Images, models and videos: sound ones are measured, broken and hostile ones are refused."""

import io
import json
import pickle
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from penstock.engines.simulator.samples import draw_test_card, make_model, make_preview, make_video, pack_glb
from penstock.errors import BadOutput, FileUnreadable
from penstock.files import MAX_FILE_BYTES, ImageFacts
from penstock.inspection import ModelFacts, VideoFacts, inspect_image, inspect_model, inspect_picture, inspect_video
from penstock.workshop import Workshop


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("inspection") / "file"


def test_importing_it_loads_neither_pillow_nor_pyav():
    code = "import sys, penstock.inspection; print({'PIL', 'av', 'numpy'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert answer.stdout == "set()\n"


async def test_it_works_within_the_limits_of_the_workshop(place):
    workshop = Workshop(workers=1)
    for kind in ("PNG", "JPEG", "WEBP"):
        assert (await workshop.do(inspect_image, draw(kind, (6000, 6000)))).width == 6000
    place.write_bytes(make_video(1920, 1080, 4, 1))
    assert (await workshop.do(inspect_video, str(place), 1920, 1080, 4.0)).frames == 32
    with pytest.raises(FileUnreadable, match="damaged or cut off"):
        await workshop.do(inspect_image, draw("PNG")[:-40])


# -- images


def draw(kind: str, size: tuple[int, int] = (64, 48), mode: str = "RGB", **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def claim_png(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 10_000_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def claim_webp(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\2\0\0\0" + sides
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("kind", "mode", "content_type"),
    [
        ("PNG", "RGB", "image/png"),
        ("PNG", "RGBA", "image/png"),
        ("PNG", "P", "image/png"),
        ("PNG", "I;16", "image/png"),
        ("PNG", "1", "image/png"),
        ("JPEG", "RGB", "image/jpeg"),
        ("JPEG", "L", "image/jpeg"),
        ("JPEG", "CMYK", "image/jpeg"),
        ("WEBP", "RGB", "image/webp"),
        ("WEBP", "RGBA", "image/webp"),
    ],
)
def test_an_image_of_an_accepted_kind(kind, mode, content_type):
    assert inspect_image(draw(kind, mode=mode)) == ImageFacts(content_type, 64, 48)


@pytest.mark.parametrize(
    "options", [{"lossless": True}, {"exact": True, "quality": 30}, {"exif": b"Exif\0\0", "quality": 1}]
)
def test_every_shape_of_webp(options):
    assert inspect_image(draw("WEBP", (33, 77), "RGBA", **options)) == ImageFacts("image/webp", 33, 77)


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_an_animated_image_is_its_first_frame(kind):
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "green", "blue")]
    data = draw_frames(kind, frames)
    assert (inspect_image(data).width, inspect_image(data).height) == (40, 30)


def draw_frames(kind: str, frames: list[Image.Image]) -> bytes:
    buffer = io.BytesIO()
    frames[0].save(buffer, kind, save_all=True, append_images=frames[1:], duration=100)
    return buffer.getvalue()


@pytest.mark.parametrize("size", [(20, 20), (6000, 20), (20, 6000)])
def test_the_outermost_sizes_are_accepted(size):
    assert inspect_image(draw("JPEG", size)) == ImageFacts("image/jpeg", *size)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("size", [(19, 100), (100, 19), (6001, 100), (100, 6001)])
def test_other_sizes_are_refused_with_both_numbers(kind, size):
    with pytest.raises(FileUnreadable, match=rf"is {size[0]} x {size[1]} px; each side must be 20 to 6000 px"):
        inspect_image(draw(kind, size))


@pytest.mark.parametrize(
    "data",
    [claim_png(50_000, 50_000), claim_png(2**31 - 1, 2**31 - 1), claim_png(7000, 5000), claim_png(100_000, 1)],
)
def test_a_png_bomb_is_refused_by_its_header(data):
    with pytest.raises(FileUnreadable, match="each side must be 20 to 6000 px"):
        inspect_image(data)


async def test_a_webp_bomb_is_refused_before_memory_is_taken():
    with pytest.raises(FileUnreadable, match="WEBP image has too many pixels; each side must be 20 to 6000 px"):
        await Workshop(workers=1).do(inspect_image, claim_webp(16_777_215, 16_777_215))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_image_is_refused(kind, share):
    data = draw(kind, (300, 200), quality=95) if kind != "PNG" else draw(kind, (300, 200))
    with pytest.raises(FileUnreadable, match="damaged or cut off"):
        inspect_image(data[: int(len(data) * share)])


def test_a_png_with_a_wrong_checksum_is_refused():
    data = bytearray(draw("PNG", (300, 200)))
    data[data.index(b"IDAT") + 40] ^= 1
    with pytest.raises(FileUnreadable, match="PNG image is damaged"):
        inspect_image(bytes(data))


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", b"<svg/>", draw("GIF"), draw("BMP"), draw("TIFF"), b"RIFF\0\0\0\0WAVE"]
)
def test_other_kinds_are_refused(data):
    with pytest.raises(FileUnreadable, match="not a JPEG, PNG or WebP image; only these are allowed"):
        inspect_image(data)


def test_a_kind_in_another_s_clothes_is_refused():
    with pytest.raises(FileUnreadable, match="JPEG image is damaged"):
        inspect_image(b"\xff\xd8\xff" + draw("PNG"))


def test_too_many_bytes_are_refused():
    with pytest.raises(FileUnreadable, match=f"{MAX_FILE_BYTES + 1} bytes; at most {MAX_FILE_BYTES} are allowed"):
        inspect_image(draw("PNG").ljust(MAX_FILE_BYTES + 1, b"\0"))


def test_a_picture_may_be_small_and_a_broken_one_is_bad_output(place):
    place.write_bytes(draw("PNG", (8, 8)))
    assert inspect_picture(str(place)) == ImageFacts("image/png", 8, 8)
    place.write_bytes(make_preview(1)[:-100])
    with pytest.raises(BadOutput, match=r"preview is unusable.*damaged"):
        inspect_picture(str(place))
    place.write_bytes(b"<html>gone</html>")
    with pytest.raises(BadOutput, match="not a JPEG, PNG or WebP"):
        inspect_picture(str(place))


def mutations(data: bytes) -> st.SearchStrategy[bytes]:
    def mutate(changes: list[tuple[int, int]], cut: int) -> bytes:
        mutated = bytearray(data)
        for position, value in changes:
            mutated[position] = value
        return bytes(mutated[: len(data) - cut])

    change = st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255))
    return st.builds(mutate, st.lists(change, max_size=8), st.just(0) | st.integers(0, len(data)))


SMALL_IMAGES = [draw("PNG", (24, 20)), draw("JPEG", (24, 20)), draw("WEBP", (24, 20)), draw("WEBP", (24, 20), "RGBA")]


@settings(deadline=None)
@given(st.binary(max_size=200) | st.sampled_from(SMALL_IMAGES).flatmap(mutations))
def test_no_bytes_make_an_image_fail_in_another_way(data):
    try:
        facts = inspect_image(data)
    except FileUnreadable:
        return
    assert min(facts.width, facts.height) >= 20


# -- models

POINTS = struct.pack("<12f", 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1)


def model(*, indices: tuple[str, list[int]] | None = None, **changes: Any) -> bytes:
    """A model of four vertices; `changes` are put into its only mesh part."""
    accessors: list[dict[str, Any]] = [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"}]
    part: dict[str, Any] = {"attributes": {"POSITION": 0}}
    blocks = [POINTS]
    if indices:
        kind, numbers = indices
        number = {"B": 5121, "H": 5123, "I": 5125}[kind]
        accessors.append({"bufferView": 1, "componentType": number, "count": len(numbers), "type": "SCALAR"})
        blocks.append(struct.pack(f"<{len(numbers)}{kind}", *numbers))
        part["indices"] = 1
    document = {"asset": {"version": "2.0"}, "accessors": accessors, "meshes": [{"primitives": [part | changes]}]}
    return pack_glb(document, blocks)


def change(data: bytes, edit: Callable[[dict[str, Any]], Any]) -> bytes:
    """The model with an edited document and the same binary chunk."""
    size = int.from_bytes(data[12:16], "little")
    document, binary = json.loads(data[20 : 20 + size]), data[28 + size :]
    edit(document)
    return assemble(json.dumps(document).encode(), binary)


def assemble(text: bytes, binary: bytes) -> bytes:
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


@pytest.fixture
def measure(place) -> Callable[..., ModelFacts]:
    def measure_bytes(data: bytes, face_limit: int | None = None) -> ModelFacts:
        place.write_bytes(data)
        return inspect_model(str(place), face_limit)

    return measure_bytes


@pytest.mark.parametrize("texture", [True, False])
@pytest.mark.parametrize("face_limit", [48, 100, None])
def test_a_sample_model_is_measured(measure, face_limit, texture):
    facts = measure(make_model(4, face_limit, texture), face_limit)
    assert facts.faces <= (face_limit or 192)
    assert facts == ModelFacts(facts.faces, facts.faces * 3)
    assert pickle.loads(pickle.dumps(facts)) == facts  # noqa: S301 - our own bytes


SQUARE = [0, 1, 2, 0, 2, 3]


@pytest.mark.parametrize(
    ("data", "faces"),
    [
        (model(indices=("B", SQUARE)), 2),
        (model(indices=("H", SQUARE)), 2),
        (model(indices=("I", SQUARE)), 2),
        (model(indices=("H", SQUARE), mode=5), 4),
        (model(indices=("H", [0, 1, 2, 3]), mode=6), 2),
        (model(mode=5), 2),
        (model(mode=6), 2),
    ],
)
def test_faces_are_counted_by_index_and_mode(measure, data, faces):
    assert measure(data) == ModelFacts(faces, 4)


def test_faces_count_as_often_as_the_scene_shows_them(measure):
    data = model(indices=("H", SQUARE))
    nodes = [{"children": [1, 2]}, {"mesh": 0}, {"mesh": 0}, {"mesh": 0}]
    assert measure(change(data, lambda d: d.update(nodes=nodes))).faces == 6
    assert measure(change(data, lambda d: d.update(nodes=nodes, scenes=[{"nodes": [0]}]))).faces == 4
    assert measure(change(data, lambda d: d.update(nodes=nodes, scenes=[{}, {"nodes": [3]}], scene=1))).faces == 2


def test_points_and_lines_are_passed_over(measure):
    data = change(
        model(indices=("H", SQUARE)),
        lambda d: d["meshes"].append(
            {"primitives": [{"attributes": {"POSITION": 0}, "mode": mode} for mode in range(4)]}
        ),
    )
    assert measure(data) == ModelFacts(2, 4)


def test_interleaved_vertices(measure):
    def interleave(document: dict[str, Any]) -> None:
        document["bufferViews"][0]["byteStride"] = 24
        document["accessors"][0].update(count=2)
        document["accessors"].append(document["accessors"][0] | {"byteOffset": 12})
        document["accessors"][1].update(count=3)
        document["meshes"][0]["primitives"][0]["attributes"]["NORMAL"] = 2

    assert measure(change(model(indices=("H", [0, 1, 0, 0, 0, 0])), interleave)) == ModelFacts(1, 2)


def test_compressed_models_are_counted_without_reading_them(measure):
    def draco(document: dict[str, Any]) -> None:
        for accessor in document["accessors"]:
            del accessor["bufferView"]
        part = document["meshes"][0]["primitives"][0]
        part["extensions"] = {"KHR_draco_mesh_compression": {"bufferView": 0, "attributes": {"POSITION": 0}}}

    def meshopt(document: dict[str, Any]) -> None:
        document["buffers"].append({"byteLength": 100})
        for view in document["bufferViews"]:
            region = {"buffer": 0, "byteOffset": 0, "byteLength": 8, "byteStride": 2, "count": 4, "mode": "ATTRIBUTES"}
            view.update(buffer=1, extensions={"EXT_meshopt_compression": region})

    assert measure(change(model(indices=("H", SQUARE)), draco)) == ModelFacts(2, 4)
    assert measure(change(model(indices=("H", SQUARE)), meshopt)) == ModelFacts(2, 4)


def test_the_face_limit(measure):
    data = model(indices=("H", SQUARE * 21))  # 42 faces
    assert measure(data, 42).warnings == ()
    assert measure(data, 40).warnings == ("The model has 42 faces; at most 40 were asked for.",)
    with pytest.raises(BadOutput, match="42 faces; at most 39"):
        measure(data, 39)


def set_in(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return edit


PART = ("meshes", 0, "primitives", 0)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (set_in("accessors", 0, "count", value=5), "accessor 0 does not fit buffer view 0"),
        (set_in("accessors", 0, "count", value=10**18), "accessor 0 does not fit"),
        (set_in("accessors", 0, "count", value=10**30), "accessor 0 does not fit"),
        (set_in("accessors", 0, "count", value=-4), r"accessors\[0\].count"),
        (set_in("accessors", 0, "count", value="4"), r"accessors\[0\].count"),
        (set_in("accessors", 0, "count", value=True), r"accessors\[0\].count"),
        (set_in("accessors", 0, "byteOffset", value=4), "accessor 0 does not fit"),
        (set_in("accessors", 0, "bufferView", value=9), "accessor 0: buffer view 9 does not exist; there are 2"),
        (set_in("accessors", 0, "type", value="VEC4"), "accessor 0 does not fit"),
        (set_in("accessors", 0, "type", value="VEC2"), "positions of type VEC2"),
        (set_in("accessors", 0, "componentType", value=7), r"accessors\[0\].componentType"),
        (set_in("accessors", 1, "componentType", value=5122), "accessor 1 cannot hold indices"),
        (set_in("accessors", 1, "count", value=5), "5 corners, which are not whole triangles"),
        (set_in("bufferViews", 0, "byteLength", value=1000), "buffer view 0 ends outside buffer 0"),
        (set_in("bufferViews", 0, "buffer", value=1), "buffer view 0: buffer 1 does not exist"),
        (set_in("bufferViews", 0, "byteStride", value=13), "accessor 0 does not fit"),
        (set_in("buffers", 0, "byteLength", value=10**6), "buffer 0 has 60 of its 1000000 bytes"),
        (set_in("buffers", 0, "uri", value="model.bin"), "buffer 0 is in another file"),
        (set_in("buffers", 0, "uri", value="data:x;base64,AAAA"), "buffer 0 has 3 of its 60 bytes"),
        (set_in("buffers", 0, "uri", value="data:x;base64,?"), "not a valid GLB"),
        (set_in(*PART, "attributes", value={"POSITION": 7}), "mesh 0: accessor 7 does not exist"),
        (set_in(*PART, "attributes", value={"POSITION": 0, "NORMAL": 1}), "different lengths"),
        (set_in(*PART, "attributes", value={"NORMAL": 0}), "The model has no faces"),
        (set_in(*PART, "indices", value=7), "mesh 0: accessor 7 does not exist"),
        (set_in(*PART, "mode", value=1), "The model has no faces"),
        (set_in(*PART, "mode", value=7), "mode"),
        (set_in("meshes", value=[]), "The model has no faces"),
        (set_in("nodes", value=[{}]), "The model has no faces"),
        (set_in("nodes", value=[{"mesh": 3}]), "mesh 3 does not exist; there are 1"),
        (set_in("nodes", value=[{"children": [1]}, {"children": [0]}]), "no faces"),
        (set_in("asset", value=None), "asset"),
    ],
)
def test_a_model_with_a_broken_part_is_refused_by_its_name(measure, edit, message):
    with pytest.raises(BadOutput, match=message):
        measure(change(model(indices=("H", SQUARE)), edit))


def test_nodes_that_hold_each_other_are_refused(measure):
    nodes = [{"children": [1], "mesh": 0}, {"children": [0]}]
    with pytest.raises(BadOutput, match="node 0 is reached twice"):
        measure(change(model(indices=("H", SQUARE)), lambda d: d.update(nodes=nodes, scenes=[{"nodes": [0]}])))


def test_positions_without_data_are_refused(measure):
    with pytest.raises(BadOutput, match="without data"):
        measure(change(model(indices=("H", SQUARE)), lambda d: d["accessors"][0].pop("bufferView")))


def test_an_index_out_of_range_is_refused(measure):
    with pytest.raises(BadOutput, match="mesh 0 has the index 4, but only 4 vertices"):
        measure(model(indices=("H", [0, 1, 4])))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_positions_that_are_no_numbers_are_refused(measure, number):
    data = model(indices=("H", SQUARE))
    with pytest.raises(BadOutput, match="not finite"):
        measure(data.replace(POINTS, POINTS[:40] + struct.pack("<f", number) + POINTS[44:]))


WHOLE = make_model(4, 48, texture=True)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not start with a GLB header"),
        (b"glTF", "does not start with a GLB header"),
        (b"<html>" + WHOLE, "does not start with a GLB header"),
        (WHOLE[:-1], f"header says version 2 and {len(WHOLE)} bytes; it has {len(WHOLE) - 1}"),
        (WHOLE + b"\0", "header says version 2"),
        (WHOLE[:4] + b"\1" + WHOLE[5:], "header says version 1"),
        (struct.pack("<4sII", b"glTF", 2, 12), "does not begin with a JSON chunk"),
        (WHOLE[:12] + b"\xff\xff\xff\xff" + WHOLE[16:], "a chunk ends outside the file"),
        (WHOLE[:16] + b"TEXT" + WHOLE[20:], "does not begin with a JSON chunk"),
        (assemble(b"{'asset': 1}", b""), "JSON is malformed"),
        (assemble(b"\xff\xfe" * 20, b""), "not a valid GLB"),
        (assemble(b"[" * 200_000, b""), "not a valid GLB"),
        (assemble(b'{"asset":{},"x":' + b'{"a":' * 200_000, b""), "not a valid GLB"),
        (assemble(b'{"asset":{"version":"2.0"},"scene":NaN}', b""), "malformed"),
        (assemble(b'{"asset":{"version":"2.0"}}' + b" " * 17_000_000, b""), "JSON chunk of at most"),
        (assemble(b'{"asset":{"version":"2.0"}}', b""), "no faces"),
    ],
)
def test_a_model_with_a_broken_frame_is_refused(measure, data, message):
    with pytest.raises(BadOutput, match=message):
        measure(data)


SOUND_MODELS = [WHOLE, model(indices=("H", SQUARE)), model(mode=5)]


@settings(deadline=None)
@given(st.binary(max_size=200) | st.sampled_from(SOUND_MODELS).flatmap(mutations))
def test_no_bytes_make_a_model_fail_in_another_way(place, data):
    expect_facts_or_bad_output(place, data)


KEYS = [
    "accessors",
    "bufferViews",
    "buffers",
    "meshes",
    "nodes",
    "scenes",
    "scene",
    "primitives",
    "attributes",
    "indices",
]
KEYS += [
    "POSITION",
    "mode",
    "count",
    "type",
    "byteOffset",
    "byteLength",
    "byteStride",
    "bufferView",
    "extensions",
    "uri",
]
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 70) | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner))


@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=5), VALUES), min_size=1, max_size=3))
def test_no_document_makes_a_model_fail_in_another_way(place, edits):
    def edit(document: Any) -> None:
        for path, value in edits:
            spot, last = document, None
            for step in path:
                keys = (
                    list(spot) if isinstance(spot, dict) else list(range(len(spot))) if isinstance(spot, list) else []
                )
                if not keys:
                    break
                last = (spot, keys[step % len(keys)])
                spot = spot[last[1]]
            if last:
                last[0][last[1]] = value

    expect_facts_or_bad_output(place, change(WHOLE, edit))


def expect_facts_or_bad_output(place: Path, data: bytes) -> None:
    place.write_bytes(data)
    try:
        facts = inspect_model(str(place), 1000)
    except BadOutput:
        return
    assert facts.faces > 0


# -- videos

CLIP = make_video(320, 180, 4, 1)


@pytest.fixture
def watch(place) -> Callable[..., VideoFacts]:
    def watch_bytes(data: bytes, width: int | None = 320, height: int | None = 180, seconds: float | None = 4):
        place.write_bytes(data)
        return inspect_video(str(place), width, height, seconds)

    return watch_bytes


def encode(*, rotation: int = 0, sound_only: bool = False) -> bytes:
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        if sound_only:
            stream = container.add_stream("aac", rate=48000)
            for number in range(50):
                sound = av.AudioFrame(format="fltp", layout="stereo", samples=1024)
                sound.rate, sound.pts = 48000, number * 1024
                for plane in sound.planes:
                    plane.update(bytes(plane.buffer_size))
                container.mux(stream.encode(sound))
        else:
            stream = container.add_stream("libx264", rate=24, options={"preset": "medium", "bf": "3"})
            stream.width, stream.height, stream.codec_context.time_base = 320, 180, Fraction(1, 24)
            stream.set_display_rotation(rotation)
            for number, frame in enumerate(draw_test_card(320, 180, 96, 1)):
                frame.pts, frame.time_base = number, Fraction(1, 24)
                container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return buffer.getvalue()


def test_a_sample_video_is_measured(watch):
    assert watch(CLIP) == VideoFacts(320, 180, 4.0, 8.0, 32)
    assert watch(CLIP, None, None, None) == VideoFacts(320, 180, 4.0, 8.0, 32)


def test_a_video_with_reordered_frames_is_measured(watch):
    assert watch(encode()) == VideoFacts(320, 180, 4.0, 24.0, 96)


def test_a_rotated_video_is_measured_as_shown(watch):
    assert watch(encode(rotation=90), 180, 320) == VideoFacts(180, 320, 4.0, 24.0, 96)


def test_another_size_of_the_same_ratio_is_a_warning(watch):
    assert watch(CLIP, 1280, 720).warnings == ("The video is 320 x 180; 1280 x 720 was asked for.",)


def test_another_ratio_is_refused(watch):
    with pytest.raises(BadOutput, match="The video is 320 x 180; 180 x 320 was asked for"):
        watch(CLIP, 180, 320)


@pytest.mark.parametrize("seconds", [3.75, 4.25, 4.1])
def test_a_little_longer_or_shorter_is_fine(watch, seconds):
    assert watch(CLIP, seconds=seconds).warnings == ()


@pytest.mark.parametrize("seconds", [3.0, 3.7, 4.3, 5.0])
def test_another_length_is_a_warning(watch, seconds):
    assert watch(CLIP, seconds=seconds).warnings == (f"The video is 4 seconds long; {seconds:g} were asked for.",)


@pytest.mark.parametrize("seconds", [2.9, 5.1, 8])
def test_quite_another_length_is_refused(watch, seconds):
    with pytest.raises(BadOutput, match="4 seconds long"):
        watch(CLIP, seconds=seconds)


@pytest.mark.parametrize("cut", [1, 100, 1000, len(CLIP) // 2, len(CLIP) - 40])
def test_a_truncated_video_is_refused(watch, cut):
    with pytest.raises(BadOutput, match="damaged or cut off"):
        watch(CLIP[:-cut])


@pytest.mark.parametrize("box", [b"moov", b"trak", b"mdia", b"stsd", b"stsz", b"avcC"])
def test_a_video_with_a_damaged_index_is_refused(watch, box, place):
    data = bytearray(CLIP)
    start = data.index(box)
    data[start : start + 12] = b"\xff" * 12
    with pytest.raises(BadOutput, match="damaged or cut off") as caught:
        watch(bytes(data))
    assert str(place.parent) not in caught.value.message


def test_a_video_with_damaged_pictures_is_refused(watch):
    data = bytearray(CLIP)
    middle = data.index(b"mdat") + (len(data) - data.index(b"mdat")) // 2
    data[middle : middle + 300] = bytes(300)
    with pytest.raises(BadOutput, match="damaged or cut off"):
        watch(bytes(data))


@pytest.mark.parametrize("data", [b"", b"<html>", make_preview(1), b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hosts\n"])
def test_what_is_no_mp4_is_refused(watch, data):
    with pytest.raises(BadOutput, match="not an MP4"):
        watch(data)


def test_a_file_without_pictures_is_refused(watch):
    with pytest.raises(BadOutput, match="no video stream"):
        watch(encode(sound_only=True))


def test_nothing_is_printed_about_a_broken_video(watch, capfd):
    with pytest.raises(BadOutput):
        watch(CLIP[:-1000])
    assert capfd.readouterr() == ("", "")


@settings(deadline=None)
@given(mutations(CLIP[: CLIP.index(b"mdat") + 4]))
def test_no_index_makes_a_video_fail_in_another_way(place, head):
    place.write_bytes(head + CLIP[len(head) :])
    try:
        facts = inspect_video(str(place), None, None, None)
    except BadOutput:
        return
    assert facts.frames > 0
