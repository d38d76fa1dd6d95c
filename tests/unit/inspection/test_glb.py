"""Models: sound ones are measured, broken and hostile ones are refused."""

import json
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import mutations

from penstock.domain.job_errors import BadOutput
from penstock.inspection.models import MAX_MODEL_BYTES, ModelFacts, inspect_model
from penstock.simulator.samples import make_model, pack_glb

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


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("models") / "file"


@pytest.fixture
def measure(place) -> Callable[..., ModelFacts]:
    def measure_bytes(data: bytes, face_limit: int | None = None) -> ModelFacts:
        place.write_bytes(data)
        return inspect_model(str(place), face_limit)

    return measure_bytes


def count(facts: ModelFacts) -> tuple[int | None, int | None]:
    return facts.faces, facts.vertices


@pytest.mark.parametrize("texture", [True, False])
@pytest.mark.parametrize("face_limit", [48, 100, None])
def test_a_sample_model_is_measured(measure, face_limit, texture):
    facts = measure(make_model(4, face_limit, texture), face_limit)
    assert facts.faces <= (face_limit or 192)
    assert facts.vertices == facts.faces * 3
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
    assert count(measure(data)) == (faces, 4)


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
    assert count(measure(data)) == (2, 4)


def test_interleaved_vertices(measure):
    def interleave(document: dict[str, Any]) -> None:
        document["bufferViews"][0]["byteStride"] = 24
        document["accessors"][0].update(count=2)
        document["accessors"].append(document["accessors"][0] | {"byteOffset": 12})
        document["accessors"][1].update(count=3)
        document["meshes"][0]["primitives"][0]["attributes"]["NORMAL"] = 2

    assert count(measure(change(model(indices=("H", [0, 1, 0, 0, 0, 0])), interleave))) == (1, 2)


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

    assert count(measure(change(model(indices=("H", SQUARE)), draco))) == (2, 4)
    assert count(measure(change(model(indices=("H", SQUARE)), meshopt))) == (2, 4)


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
        (set_in("accessors", 0, "count", value=2**32), "accessor 0 does not fit"),
        (set_in("accessors", 0, "count", value=10**18), r"accessors\[0\].count"),
        (set_in("accessors", 0, "count", value=10**30), r"accessors\[0\].count"),
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


# -- little said, much to do

MANY = 20_000
LARGE = [0, 1, 2] * 400_000


def test_an_accessor_that_many_parts_share_is_read_once(measure):
    def share(document: dict[str, Any]) -> None:
        document["meshes"] = [{"primitives": document["meshes"][0]["primitives"] * MANY}] * 3

    assert count(measure(change(model(indices=("B", LARGE)), share))) == (3 * MANY * 400_000, 3 * 4)


@pytest.mark.parametrize("kind", ["indices", "positions"])
def test_accessors_that_name_the_same_bytes_again_and_again_are_refused(measure, kind):
    def repeat(document: dict[str, Any]) -> None:
        points, corners = document["accessors"]
        if kind == "indices":
            parts = [{"attributes": {"POSITION": 0}, "indices": number} for number in range(1, MANY)]
            document.update(accessors=[points] + [corners] * MANY, meshes=[{"primitives": parts}])
        else:
            points = points | {"bufferView": 1, "count": 100_000 // 12 * 12}
            parts = [{"attributes": {"POSITION": number}, "mode": 5} for number in range(MANY)]
            document.update(accessors=[points] * MANY, meshes=[{"primitives": parts}])

    with pytest.raises(BadOutput, match="more than 4 times the bytes of the file"):
        measure(change(model(indices=("B", LARGE)), repeat))


def test_a_file_of_too_many_chunks_is_refused(measure):
    data = WHOLE + struct.pack("<I4s", 0, b"FILL") * 1_000_000
    with pytest.raises(BadOutput, match="more than 100 chunks"):
        measure(data[:8] + struct.pack("<I", len(data)) + data[12:])


def test_many_matrices_take_little_memory(measure):
    def fill(document: dict[str, Any]) -> None:
        document["accessors"] += [{"componentType": 5126, "count": 1, "type": "MAT4"}] * 200_000

    assert count(measure(change(model(indices=("H", SQUARE)), fill))) == (2, 4)


def test_a_message_stays_short_whatever_the_document_says(measure):
    def scatter(document: dict[str, Any]) -> None:
        document["accessors"] += [{"componentType": 5126, "count": count, "type": "VEC3"} for count in range(1, 50_000)]
        names = {f"_{number}": number for number in range(2, 50_000)}
        document["meshes"][0]["primitives"][0]["attributes"] |= names

    with pytest.raises(BadOutput, match="different lengths: 1 to 49998") as caught:
        measure(change(model(indices=("H", SQUARE)), scatter))
    assert len(caught.value.message) < 200


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


def test_too_many_bytes_are_refused(place):
    with place.open("wb") as file:
        file.truncate(MAX_MODEL_BYTES + 1)
    with pytest.raises(BadOutput, match=f"{MAX_MODEL_BYTES + 1} bytes; at most {MAX_MODEL_BYTES} are allowed"):
        inspect_model(str(place), None)
    place.unlink()


def test_importing_it_loads_neither_pillow_nor_pyav():
    code = "import sys, penstock.inspection.models; print({'PIL', 'av', 'numpy'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert answer.stdout == "set()\n"
