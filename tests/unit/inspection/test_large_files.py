"""Large files are opened in windows: no check reads more than a little of a file at a time."""

import io
import json
import struct
from collections.abc import Callable
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from penstock.inspection import picture_structure
from penstock.inspection.images_and_video import MAX_PICTURE_BYTES, inspect_picture, inspect_video
from penstock.inspection.meshes import buffers
from penstock.inspection.meshes.document import MAX_DOCUMENT_BYTES
from penstock.inspection.meshes.extras import mark_glb, read_glb_facts
from penstock.inspection.models import MAX_MODEL_BYTES, inspect_model
from penstock.simulator.samples import make_model, make_video

WINDOW_BYTES = 1 << 20
CORNERS = 300_000
GEOMETRY_BYTES = 12 * CORNERS


class MeteredFile(FileIO):
    """A file that knows the largest piece that was read of it, and all that was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.largest = self.total = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        self._note(len(data))
        return data

    def readall(self) -> bytes:
        data = super().readall()
        self._note(len(data))
        return data

    def readinto(self, buffer: Any, /) -> int:
        count = super().readinto(buffer)
        self._note(count)
        return count

    def _note(self, count: int) -> None:
        self.largest = max(self.largest, count)
        self.total += count


@pytest.fixture
def place(tmp_path) -> Path:
    return tmp_path / "file"


def write_model(place: Path, size: int) -> None:
    """Write a GLB whose geometry fills several windows. The rest is a texture without bytes on the disk."""
    texture = size - 4096 - GEOMETRY_BYTES
    document = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": GEOMETRY_BYTES + texture}],
        "bufferViews": [
            {"buffer": 0, "byteLength": GEOMETRY_BYTES},
            {"buffer": 0, "byteOffset": GEOMETRY_BYTES, "byteLength": texture},
        ],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": CORNERS, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
    }
    text = json.dumps(document).encode().ljust(4096 - 28)
    head = b"glTF" + struct.pack("<II", 2, size) + struct.pack("<I4s", len(text), b"JSON") + text
    with place.open("wb") as file:
        file.write(head + struct.pack("<I4s", GEOMETRY_BYTES + texture, b"BIN\0"))
        file.write(struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0) * (CORNERS // 3 - 1))
        file.write(struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 7))
        file.truncate(size)


def test_the_largest_model_is_read_in_windows_and_its_texture_is_not_read(place):
    write_model(place, MAX_MODEL_BYTES)
    with MeteredFile(place) as file:
        facts = inspect_model(file, None)
    assert (facts.faces, facts.vertices, facts.mesh.size) == (CORNERS // 3, CORNERS, (1, 1, 7))
    assert file.largest <= WINDOW_BYTES
    assert file.total < 3 * GEOMETRY_BYTES


def test_a_large_model_is_marked_piece_by_piece(place, tmp_path):
    write_model(place, 64 << 20)
    with MeteredFile(place) as file, (tmp_path / "marked").open("w+b") as target:
        mark_glb(file, target, {"job_id": "job_1"})
        assert file.largest <= WINDOW_BYTES
        assert read_glb_facts(target) == {"job_id": "job_1"}
        assert inspect_model(target, None).vertices == CORNERS


def test_a_document_that_is_too_large_to_be_read_has_no_facts(place):
    with place.open("wb") as file:
        size = MAX_DOCUMENT_BYTES + 1
        file.write(b"glTF" + struct.pack("<II", 2, 20 + size) + struct.pack("<I4s", size, b"JSON"))
        file.truncate(20 + size)
    with MeteredFile(place) as file:
        assert read_glb_facts(file) is None
        assert file.largest < WINDOW_BYTES


def animate(document: dict[str, Any]) -> None:
    """Give a model a clip and a skin whose numbers are those of its positions."""
    document["accessors"].append({"bufferView": 0, "componentType": 5126, "count": 9, "type": "SCALAR"})
    document["accessors"].append({"bufferView": 0, "componentType": 5126, "count": 1, "type": "MAT4"})
    times, matrices = len(document["accessors"]) - 2, len(document["accessors"]) - 1
    document["animations"] = [{"name": "turn", "samplers": [{"input": times, "output": times}]}]
    document["skins"] = [{"joints": [0], "inverseBindMatrices": matrices}]
    document["nodes"] = [{"mesh": 0, "skin": 0}]
    document["scenes"] = [{"nodes": [0]}]


def interleave(document: dict[str, Any]) -> None:
    """Let each vertex of a model have as many bytes again that are not positions."""
    document["bufferViews"][0]["byteStride"] = 24
    document["accessors"][0]["count"] //= 2
    for part in document["meshes"][0]["primitives"]:
        part["attributes"] = {"POSITION": 0}
        part.pop("indices", None)


def edit_model(edit: Callable[[dict[str, Any]], None]) -> bytes:
    data = make_model(3, 48, texture=False)
    length = int.from_bytes(data[12:16], "little")
    document = json.loads(data[20 : 20 + length])
    edit(document)
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + length :]
    head = b"glTF" + struct.pack("<II", 2, 20 + len(text) + len(rest))
    return head + struct.pack("<I4s", len(text), b"JSON") + text + rest


@pytest.mark.parametrize(
    "data",
    [make_model(3, 48, texture=True), make_model(9, 300, texture=False), edit_model(animate), edit_model(interleave)],
)
@pytest.mark.parametrize("window", [1, 64, 1000])
def test_no_fact_depends_on_the_size_of_a_window(monkeypatch, data, window):
    whole = asdict(inspect_model(data, None))
    monkeypatch.setattr(buffers, "WINDOW_BYTES", window)
    assert asdict(inspect_model(data, None)) == whole


def test_a_number_that_is_not_finite_is_found_in_the_last_window(place):
    write_model(place, 8 << 20)
    with place.open("r+b") as file:
        file.seek(4096 + GEOMETRY_BYTES - 4)
        file.write(struct.pack("<f", float("nan")))
    with pytest.raises(Exception, match="not finite numbers"):
        inspect_model(place, None)


def test_a_picture_with_a_large_file_behind_it_is_not_read_whole(place):
    buffer = io.BytesIO()
    Image.effect_noise((3000, 3000), 80).save(buffer, "JPEG", quality=95)
    place.write_bytes(buffer.getvalue())
    with place.open("r+b") as file:
        file.truncate(MAX_PICTURE_BYTES)
    with MeteredFile(place) as file:
        assert inspect_picture(file).width == 3000
    assert len(buffer.getvalue()) > 3 * WINDOW_BYTES
    assert file.largest <= WINDOW_BYTES


def test_a_marker_is_found_at_the_edge_of_each_window(monkeypatch):
    buffer = io.BytesIO()
    Image.effect_noise((64, 64), 80).save(buffer, "JPEG", progressive=True)
    scans = buffer.getvalue().count(b"\xff\xda")
    monkeypatch.setattr(picture_structure, "MAX_SCANS", scans - 1)
    for window in range(2, 40):
        monkeypatch.setattr(picture_structure, "WINDOW_BYTES", window)
        with pytest.raises(ValueError, match=f"{scans - 1} scans"):
            picture_structure.check_structure(buffer, "jpeg")


def test_a_large_film_is_read_in_pieces(place):
    place.write_bytes(make_video(320, 180, 1, 1))
    hole = 500 << 20
    with place.open("r+b") as file:
        file.seek(0, io.SEEK_END)
        file.write(struct.pack(">I4s", hole, b"free"))
        file.truncate(file.tell() - 8 + hole)
    with MeteredFile(place) as file:
        assert inspect_video(file, 320, 180, 1.0).width == 320
    assert file.largest <= WINDOW_BYTES
