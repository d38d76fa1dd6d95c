"""The built-in engines for 3D models: what they write is read again by another library."""

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import trimesh
from inflate_steps import draw_bear, make
from PIL import Image

from penstock_engines.mesh.convert_engine import ConvertWish, convert
from penstock_engines.mesh.remesh_engine import RemeshWish, remesh
from penstock_engines.product import Product, Unable
from penstock_engines.turntable.turntable_engine import TurntableWish, make_turntable

CUBE = """mtllib cube.mtl
v -1 0 -1\nv 1 0 -1\nv 1 2 -1\nv -1 2 -1\nv -1 0 1\nv 1 0 1\nv 1 2 1\nv -1 2 1
vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1
usemtl red
f 5/1 6/2 7/3 8/4\nf 2/1 1/2 4/3 3/4\nf 6/1 2/2 3/3 7/4
usemtl blue paint
f 1/1 5/2 8/3 4/4\nf 8/1 7/2 3/3 4/4\nf 1/1 2/2 6/3 5/4
"""


def ignore(share: float) -> None:
    """Take a report of progress."""


@pytest.fixture(scope="module")
def bear(tmp_path_factory) -> Path:
    """A textured model of one piece, which no test changes."""
    return make(tmp_path_factory.mktemp("bear"), draw_bear(), limit=4000, style="inflate").primary


@pytest.fixture
def cube(tmp_path) -> Path:
    """A cube of two materials, one with a texture, as a zip of an OBJ."""
    encoded = io.BytesIO()
    Image.new("RGB", (8, 8), (250, 10, 20)).save(encoded, "PNG")
    path = tmp_path / "cube.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/cube.obj", CUBE)
        archive.writestr("folder/cube.mtl", "newmtl red\nKd 1 1 1\nmap_Kd red.png\nnewmtl blue paint\nKd 0 0 1\n")
        archive.writestr("folder/red.png", encoded.getvalue())
    return path


def write_as(kind: str, mesh: Path, folder: Path, limit: int | None = None) -> Product:
    folder.mkdir(parents=True, exist_ok=True)
    return convert(ConvertWish(mesh=mesh, format=kind, face_limit=limit), folder, ignore)


def give(mesh: Path, folder: Path, limit: int | None, *, quads: bool = False) -> Product:
    folder.mkdir(parents=True, exist_ok=True)
    return remesh(RemeshWish(mesh=mesh, face_limit=limit, quads=quads), folder, ignore)


def read(path: Path) -> trimesh.Trimesh:
    """Return the model as another library reads it, with seams joined."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(path.parent / "unpacked")
        path = path.parent / "unpacked" / "model.obj"
    mesh = trimesh.load(path, force="mesh")
    assert isinstance(mesh, trimesh.Trimesh)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    return mesh


def read_colours(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return points on the surface, and the texture's colours there."""
    mesh = trimesh.load(path, force="mesh")
    generator = np.random.default_rng(1)
    points, faces = trimesh.sample.sample_surface(mesh, 3000, seed=generator)
    shares = trimesh.triangles.points_to_barycentric(mesh.triangles[faces], points)
    places = (mesh.visual.uv[mesh.faces[faces]] * shares[..., None]).sum(axis=1)
    picture = np.asarray(mesh.visual.material.baseColorTexture.convert("RGB"), int)
    height, width = picture.shape[:2]
    across, down = (np.clip(places * (width, -height) + (0, height), 0, (width - 1, height - 1))).astype(int).T
    return points, picture[down, across]


# -- conversion


@pytest.mark.parametrize("kind", ["glb", "obj", "stl"])
def test_another_format_is_the_same_model(tmp_path, bear, kind):
    product = write_as(kind, bear, tmp_path / kind)
    before, after = read(bear), read(product.primary)
    assert after.is_watertight
    assert len(after.faces) == len(before.faces)
    assert after.volume == pytest.approx(before.volume, rel=1e-4)
    assert after.bounds == pytest.approx(before.bounds, abs=1e-5)
    assert product.preview.stat().st_size > 1000
    assert any("no colours" in warning for warning in product.warnings) == (kind == "stl")


def test_a_model_comes_back_through_all_formats(tmp_path, bear):
    path = bear
    for number, kind in enumerate(["obj", "usdz", "obj", "usdz", "glb"]):
        path = write_as(kind, path, tmp_path / str(number)).primary
    points, colours = read_colours(bear)
    again, others = read_colours(path)
    assert np.abs(points - again).max() < 1e-4
    assert np.abs(colours - others).mean() < 1


def test_materials_and_textures_are_kept(tmp_path, cube):
    path = write_as("glb", cube, tmp_path).primary
    scene = trimesh.load(path)
    materials = sorted((part.visual.material for part in scene.geometry.values()), key=lambda material: material.name)
    assert [material.name for material in materials] == ["blue paint", "red"]
    assert materials[1].baseColorTexture.getpixel((3, 3))[:3] == (250, 10, 20)
    assert materials[0].baseColorFactor[:3].tolist() == [0, 0, 255]
    assert read(path).volume == pytest.approx(8)


def test_usdz_is_stored_and_aligned(tmp_path, cube):
    path = write_as("usdz", cube, tmp_path).primary
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        assert archive.testzip() is None
        scene = archive.read(entries[0]).decode()
    assert [entry.filename for entry in entries] == ["model.usda", "texture0.png"]
    for entry in entries:
        name, extra = struct.unpack_from("<HH", data, entry.header_offset + 26)
        assert (entry.header_offset + 30 + name + extra) % 64 == 0
        assert entry.compress_type == zipfile.ZIP_STORED
    assert scene.startswith("#usda 1.0\n")
    assert scene.count("def Mesh") == scene.count("def Material") == 2
    assert scene.count("{") == scene.count("}")
    assert "@texture0.png@" in scene
    assert 'upAxis = "Y"' in scene


def test_text_stl_is_read(tmp_path):
    path = tmp_path / "one.stl"
    path.write_bytes(trimesh.creation.icosphere(subdivisions=2).export(file_type="stl_ascii").encode())
    ball = read(write_as("glb", path, tmp_path).primary)
    assert ball.is_watertight
    assert ball.volume == pytest.approx(4.07, abs=0.05)


def test_the_same_bytes_again(tmp_path, bear):
    for kind in ("glb", "obj", "stl", "usdz"):
        first, second = (write_as(kind, bear, tmp_path / f"{kind}{n}").primary.read_bytes() for n in range(2))
        assert first == second


# -- scenes


def write_glb(path: Path, document: dict, body: bytes) -> Path:
    """Write a GLB by hand."""
    text = json.dumps({"asset": {"version": "2.0"}, "buffers": [{"byteLength": len(body)}], **document}).encode()
    text += b" " * (-len(text) % 4)
    head = struct.pack("<4sII", b"glTF", 2, 28 + len(text) + len(body))
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(body), b"BIN\0") + body
    path.write_bytes(head + chunks)
    return path


def describe_strip(**node: Any) -> tuple[dict, bytes]:
    """A square as a strip of normalized shorts, shown by one node."""
    corners = np.array([[-32767, 0, 0, 0], [32767, 0, 0, 0], [-32767, 32767, 0, 0], [32767, 32767, 0, 0]], "<i2")
    accessor = {"bufferView": 0, "componentType": 5122, "normalized": True, "count": 4, "type": "VEC3"}
    document = {
        "extensionsRequired": ["KHR_mesh_quantization"],
        "bufferViews": [{"buffer": 0, "byteLength": 32, "byteStride": 8}],
        "accessors": [accessor],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "mode": 5}]}],
        "nodes": [{"children": [1], "translation": [0, 0, 5]}, {"mesh": 0, **node}],
        "scenes": [{"nodes": [0]}],
    }
    return document, corners.tobytes()


def test_nodes_move_and_mirror_the_meshes(tmp_path):
    document, body = describe_strip(scale=[-2, 1, 1])
    path = write_as("stl", write_glb(tmp_path / "a.glb", document, body), tmp_path).primary
    square = read(path)
    assert square.bounds.tolist() == [[-2, 0, 5], [2, 1, 5]]
    assert square.face_normals.round(6).tolist() == [[0, 0, 1]] * 2  # the mirror did not turn it inside out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extensionsRequired": ["KHR_draco_mesh_compression"]}, "KHR_draco_mesh_compression"),
        ({"buffers": [{"byteLength": 32, "uri": "https://example.com/a.bin"}]}, "another file"),
        ({"scenes": [{"nodes": [0, 1]}]}, "twice"),
        ({"scenes": [{"nodes": [7]}]}, "damaged"),
        ({"bufferViews": [{"buffer": 0, "byteLength": 99}]}, "damaged"),
        ({"meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "mode": 1}]}]}, "no faces"),
        ({"meshes": [{"primitives": "none"}]}, "damaged"),
    ],
)
def test_broken_scenes_are_refused_in_words(tmp_path, change, message):
    document, body = describe_strip()
    path = write_glb(tmp_path / "a.glb", {**document, **change}, body)
    with pytest.raises(Unable, match=message):
        write_as("glb", path, tmp_path / "out")


def pack(name: str, data: bytes, count: int = 1) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(count):
            archive.writestr(f"{number}/{name}", data)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no vertices"),
        (b"\x00\xff" * 500, "no vertices"),
        (b"glTF\x02\x00\x00\x00\xff\xff\xff\xff", "cut off"),
        (b"Kaydara FBX Binary  \x00" + bytes(99), "FBX"),
        (pack("a.usdc", b"PXR-USDC"), "is binary"),
        (pack("a.usda", b'#usda 1.0\ndef Mesh "a" {\n  double3 xformOp:translate = (0, 0, 1)\n}'), "moves its meshes"),
        (pack("a.usda", b'#usda 1.0\ndef Mesh "a" {\n  point3f[] points = [(1, 2)]\n}'), "damaged"),
        (pack("a.usda", b"#usda 1.0\n"), "no faces"),
        (pack("a.txt", b"hello"), "0 OBJ files"),
        (pack("a.obj", bytes(50_000_000), 9), "too large"),
        (pack("a.obj", CUBE.encode())[:-40], "damaged"),
        (b"v 0 0 0\nv 1 0 0\nv nan 1 0\nf 1 2 3", "not finite"),
        (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4", "does not exist"),
        (b"v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3", "with an area"),
        (b"v 0 0 0\nv 1 0\nv 0 1 0\nf 1 2 3", "damaged"),
        (b"solid x\nfacet\nvertex 0 0 0\nvertex 1 0 0\n", "three corners"),
    ],
)
def test_other_files_are_refused_in_words(tmp_path, data, message):
    path = tmp_path / "mesh"
    path.write_bytes(data)
    with pytest.raises(Unable, match=message):
        write_as("glb", path, tmp_path / "out")


# -- new faces


@pytest.mark.parametrize("limit", [2000, 400, 48])
def test_fewer_faces_keep_shape_and_texture(tmp_path, bear, limit):
    path = give(bear, tmp_path, limit).primary
    before, after = read(bear), read(path)
    assert 0.9 * limit <= len(after.faces) <= limit
    assert after.is_watertight
    assert after.volume == pytest.approx(before.volume, rel=0.02 if limit > 300 else 0.2)
    points, colours = read_colours(bear)
    others, seen = read_colours(path)
    away = np.linalg.norm(others[:, None] - points[None], axis=2)
    nearest = colours[away.argmin(axis=1)]
    assert np.abs(seen - nearest).mean() < (12 if limit > 300 else 30)


def test_faces_of_four_corners(tmp_path, bear):
    product = give(bear, tmp_path, 2000, quads=True)
    with zipfile.ZipFile(product.primary) as archive:
        text = archive.read("model.obj").decode()
        assert {"model.mtl", "texture0.jpg"} <= set(archive.namelist())
    sizes = [len(line.split()) - 1 for line in text.splitlines() if line.startswith("f ")]
    assert sizes.count(4) > 0.85 * len(sizes)
    assert sizes.count(3) + sizes.count(4) == len(sizes)
    assert sizes.count(3) + 2 * sizes.count(4) <= 2000
    assert read(product.primary).is_watertight
    assert f"{sizes.count(3)} stay triangles" in product.warnings[-1]


def test_the_faces_of_a_cube_become_its_sides(tmp_path, cube):
    product = give(cube, tmp_path, 100, quads=True)
    with zipfile.ZipFile(product.primary) as archive:
        lines = archive.read("model.obj").decode().splitlines()
    assert [len(line.split()) for line in lines if line.startswith("f ")] == [5] * 6
    assert read(product.primary).volume == pytest.approx(8)


def test_loose_triangles_keep_to_the_limit(tmp_path):
    generator = np.random.default_rng(3)
    path = tmp_path / "soup.stl"
    path.write_bytes(trimesh.Trimesh(*loose(generator.normal(size=(900, 3)))).export(file_type="stl"))
    assert len(read(give(path, tmp_path, 60).primary).faces) <= 60


def loose(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return points, np.arange(len(points)).reshape(-1, 3)


# -- the film


def film(mesh: Path, folder: Path, **wish: Any) -> Product:
    folder.mkdir(parents=True, exist_ok=True)
    usual = {"width": 160, "height": 120, "seconds": 1, "background": "#204060", "sound": True}
    return make_turntable(TurntableWish(mesh=mesh, **{**usual, **wish}), folder, ignore)


def read_frames(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in container.decode(video=0)]


def test_a_model_turns_once_around(tmp_path, cube):
    product = film(cube, tmp_path)
    frames = read_frames(product.primary)
    assert (len(frames), frames[0].shape) == (24, (120, 160, 3))
    red, blue = zip(*(count_colours(frame) for frame in frames), strict=True)
    assert max(red) > 2000  # the front and the back are red, the left is blue
    assert max(blue) > 500
    assert min(red) < 0.5 * max(red)
    steps = [np.abs(one - two).mean() for one, two in zip(frames, frames[1:] + frames[:1], strict=True)]
    assert steps[-1] < 2 * max(steps[:-1])  # the film can be repeated without a jump
    corner = frames[0][3, 3]
    assert corner[2] > corner[1] > corner[0]
    with av.open(str(product.primary)) as container:
        heard = np.concatenate([frame.to_ndarray() for frame in container.decode(audio=0)], axis=1)
    assert 0.001 < np.sqrt((heard**2).mean()) < 0.5


def count_colours(frame: np.ndarray) -> tuple[int, int]:
    red, green, blue = (frame[..., channel] for channel in range(3))
    return int(((red > 90) & (green < 70) & (blue < 80)).sum()), int(((blue > 120) & (red < 50) & (green < 50)).sum())


def test_a_film_without_sound_is_silent_and_the_same_again(tmp_path, bear):
    first, second = (film(bear, tmp_path / str(n), sound=False) for n in range(2))
    assert first.preview.read_bytes() == second.preview.read_bytes()
    for one, two in zip(read_frames(first.primary), read_frames(second.primary), strict=True):
        assert np.abs(one - two).mean() < 0.5  # the encoder's threads may differ by a bit
    with av.open(str(first.primary)) as container:
        assert all(np.abs(frame.to_ndarray()).max() < 1e-4 for frame in container.decode(audio=0))


def test_the_whole_model_is_in_every_frame(tmp_path):
    path = tmp_path / "pole.stl"
    path.write_bytes(trimesh.creation.box((0.1, 3.0, 1.2)).export(file_type="stl"))
    for shape in ({"width": 160, "height": 90}, {"width": 90, "height": 160}):
        frames = read_frames(film(path, tmp_path / str(shape["width"]), background="white", **shape).primary)
        for frame in frames:
            edge = np.concatenate([frame[0], frame[-1], frame[:, 0], frame[:, -1]])
            assert edge.min() > 140
        assert min(frame.min() for frame in frames) < 120
