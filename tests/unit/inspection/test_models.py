"""Facts of 3D models: each format is compared with an independent reader, broken and hostile files are refused."""

import io
import json
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import mutations
from small_media import fbx, rigged

from penstock.domain.files import Clip
from penstock.domain.job_errors import BadOutput, FileUnreadable
from penstock.inspection.meshes.obj import MAX_LINE_BYTES
from penstock.inspection.models import ModelFacts, inspect_mesh, inspect_model

BALL = trimesh.creation.icosphere(subdivisions=1)


def as_glb(scene: trimesh.Scene | trimesh.Trimesh) -> bytes:
    return bytes(scene.export(file_type="glb"))


def zip_of(files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)  # dated 1980, so that tests have one name
    return target.getvalue()


def edited(data: bytes, edit: Callable[[dict[str, Any]], Any]) -> bytes:
    size = int.from_bytes(data[12:16], "little")
    document, rest = json.loads(data[20 : 20 + size]), data[20 + size :]
    edit(document)
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<4sIII4s", b"glTF", 2, 20 + len(text) + len(rest), len(text), b"JSON") + text + rest


# -- GLB


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(*[st.floats(-9, 9)] * 3), min_size=1, max_size=3),
    st.sampled_from([0, np.pi / 2, np.pi, -np.pi / 2]),
    st.floats(0.1, 3),
)
def test_the_box_is_that_of_an_independent_reader(places, angle, scale):
    scene = trimesh.Scene()
    for place in places:
        move = trimesh.transformations.rotation_matrix(angle, (0, 0, 1)) * scale
        move[:3, 3], move[3, 3] = place, 1
        scene.add_geometry(trimesh.creation.box(extents=(1, 2, 3)), transform=move)
    facts = inspect_model(as_glb(scene), None)
    assert facts.mesh.unit == "meter"
    assert facts.mesh.size == pytest.approx(scene.extents, abs=1e-4)


def test_a_surface_is_watertight_also_across_its_seams():
    closed = BALL.copy()
    closed.unmerge_vertices()
    assert inspect_model(as_glb(closed), None).mesh.is_watertight is True
    torn = trimesh.Trimesh(BALL.vertices, BALL.faces[1:])
    assert inspect_model(as_glb(torn), None).mesh.is_watertight is False
    doubled = trimesh.Trimesh(BALL.vertices, np.vstack([BALL.faces, BALL.faces[:1]]), process=False)
    assert inspect_model(as_glb(doubled), None).mesh.is_watertight is False


def test_textures_and_their_places():
    uv = np.random.default_rng(1).random((len(BALL.vertices), 2))
    ball = trimesh.Trimesh(BALL.vertices, BALL.faces, visual=trimesh.visual.TextureVisuals(uv=uv))
    assert inspect_model(as_glb(ball), None).mesh.has_uv is True
    plain = inspect_model(as_glb(BALL), None).mesh
    assert (plain.has_uv, plain.textures, plain.joints, plain.clips) == (False, 0, 0, ())


def test_a_skeleton_moves_its_mesh_and_its_clips_have_lengths():
    mesh = inspect_model(rigged(), None).mesh
    assert (mesh.skins, mesh.joints) == (1, 2)
    assert mesh.clips == (Clip("walk", 2.0), Clip("clip 1", 0.0))
    assert mesh.size == pytest.approx((1, 1, 0))


def test_quads_are_pairs_of_triangles_that_begin_at_one_corner():
    def mark(document: dict[str, Any]) -> None:
        document["meshes"][0]["primitives"][0]["extensions"] = {"FB_ngon_encoding": {}}

    square = trimesh.Trimesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]], process=False)
    assert inspect_model(edited(as_glb(square), mark), None).mesh.quads == 1
    assert inspect_model(as_glb(square), None).mesh.quads == 0


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d["nodes"][0].update(skin=3), "skin 3 does not exist"),
        (lambda d: d["skins"][0].update(joints=[1, 99]), "joint: node 99 does not exist"),
        (lambda d: d["nodes"][0].update(matrix=[1, 2, 3]), "matrix of 3 numbers"),
        (lambda d: d["animations"][0]["samplers"][0].update(input=77), "accessor 77 does not exist"),
        (lambda d: d["nodes"][2].update(children=[1]), "node 1 is reached twice"),
    ],
)
def test_a_broken_skeleton_is_refused(edit, message):
    with pytest.raises(BadOutput, match=message):
        inspect_model(edited(rigged(), edit), None)


def test_long_names_and_endless_clips_are_cut():
    def fill(document: dict[str, Any]) -> None:
        document["animations"] = [{"name": "x" * 1000, "samplers": []}] * 5000

    clips = inspect_model(edited(rigged(), fill), None).mesh.clips
    assert len(clips) == 100
    assert {len(clip.name) for clip in clips} == {80}


def test_a_scene_of_countless_nodes_is_measured_without_its_box():
    def fill(document: dict[str, Any]) -> None:
        document.update(nodes=[{"mesh": 0}] * 60_000, scenes=[{"nodes": list(range(60_000))}])

    facts = inspect_model(edited(as_glb(BALL), fill), None)
    assert facts.faces == 60_000 * len(BALL.faces)
    assert facts.mesh.size is None


# -- the other formats


@pytest.mark.parametrize("written", ["stl", "stl_ascii", "obj"])
def test_stl_and_obj_are_counted_like_by_an_independent_reader(written):
    data = BALL.export(file_type=written)
    facts = inspect_mesh(data if isinstance(data, bytes) else data.encode())
    assert facts.faces == len(BALL.faces)
    assert facts.mesh.format == written.split("_")[0]
    assert facts.mesh.is_watertight is True
    assert facts.mesh.size == pytest.approx(BALL.extents, abs=1e-4)
    assert facts.mesh.unit is None


def test_an_obj_with_quads():
    data = b"# square\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nusemtl red\nf 1/1 2/1 -2/1 -1/1\n"
    facts = inspect_mesh(data)
    assert (facts.faces, facts.vertices, facts.mesh.quads, facts.mesh.materials) == (2, 4, 1, 1)
    assert facts.mesh.has_uv is True
    assert facts.content_type == "model/obj"


def test_a_zip_with_an_obj_is_read():
    data = zip_of({"model.obj": BALL.export(file_type="obj").encode(), "model.mtl": b""}, zipfile.ZIP_DEFLATED)
    facts = inspect_model(data, None, ("obj",))
    assert (facts.faces, facts.extension, facts.mesh.format) == (len(BALL.faces), "zip", "obj")


@pytest.mark.parametrize("version", [7400, 7500])
def test_an_fbx_stays_sealed(version):
    facts = inspect_mesh(fbx(b"FBXHeaderExtension", b"Objects", version=version))
    assert (facts.faces, facts.mesh.format, facts.extension) == (None, "fbx", "fbx")


def test_a_usdz_stays_sealed():
    facts = inspect_mesh(zip_of({"scene.usda": b"#usda 1.0\n", "skin.png": b"x"}))
    assert (facts.faces, facts.mesh.format, facts.mesh.textures) == (None, "usdz", 1)
    assert facts.content_type == "model/vnd.usdz+zip"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a 3D model of a known format; allowed are GLB, OBJ, STL, FBX, USDZ"),
        (b"<html></html>", "not a 3D model"),
        (b'{"asset": {}}', "not a 3D model"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not a 3D model"),
        (b"v 0 0 0\n", "not a valid OBJ: it has no faces"),
        (b"v 0 0 0\nf 1 2 3\n", "not a valid OBJ: line 2 is broken"),
        (b"v 0 0\n", "line 1 is broken"),
        (b"v 0 0 nan\n", "line 1 is broken"),
        (b"v 0 0 0\nf" + b" 1" * MAX_LINE_BYTES + b"\n", "line of more than"),
        (b"solid x\nfacet normal 0 0 1\nvertex 0 0 0\nendfacet\n", "line 4 has not three corners"),
        (b"solid x\nfacet normal 0 0 1\nvertex 0 0\nendfacet\n", "line 3 is broken"),
        (bytes(84), "not a valid STL: it has no faces"),
        (fbx(b"Objects")[:40], "a node ends outside the file"),
        (fbx(b"Takes"), "not a valid FBX: it has no objects"),
        (b"Kaydara FBX Binary  \x00\x1a\x00", "not a valid FBX: it is cut off"),
        (zip_of({"scene.usda": b"#usda 1.0"}, zipfile.ZIP_DEFLATED), "compressed files"),
        (zip_of({"scene.usdc": b"nothing"}), "not a USD scene"),
        (zip_of({"scene.usda": b"#usda 1.0"})[:-30], "cut off"),
        (zip_of({"readme.txt": b"hello"}), "it holds 0 OBJ files"),
        (zip_of({"a.obj": b"v", "b.obj": b"v"}), "it holds 2 OBJ files"),
        (zip_of({"../a.obj": b"v"}), "path outside"),
        (zip_of({f"{number}.png": b"" for number in range(1001)}), "more than 1000 files"),
        (zip_of({"a.obj": b"\n" * (129 << 20)}, zipfile.ZIP_DEFLATED), "bytes of text"),
    ],
)
def test_other_files_are_refused_with_a_reason(data, message):
    with pytest.raises(FileUnreadable, match=message):
        inspect_mesh(data)


def test_an_output_of_another_format_is_refused_unless_the_order_allowed_it():
    data = fbx(b"Objects")
    with pytest.raises(BadOutput, match="The model is an FBX; allowed are GLB"):
        inspect_model(data, 1000)
    assert inspect_model(data, 1000, ("glb", "fbx")).extension == "fbx"


SOUND = [
    rigged(),
    BALL.export(file_type="stl"),
    BALL.export(file_type="obj").encode(),
    fbx(b"Objects"),
    zip_of({"scene.usda": b"#usda 1.0"}),
    zip_of({"model.obj": b"v 0 0 0\nf 1 1 1\n"}),
]


@settings(deadline=None)
@given(st.binary(max_size=200) | st.sampled_from(SOUND).flatmap(mutations))
def test_no_bytes_make_it_fail_in_another_way(data):
    try:
        facts = inspect_mesh(data)
    except FileUnreadable:
        return
    assert isinstance(facts, ModelFacts)
    assert facts.faces is None or facts.faces > 0
