"""The built-in image-to-model engine: what comes out is sound, as wished, and the same again."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from inflate_steps import (
    assert_sound,
    draw_bear,
    draw_disc_on_white,
    draw_landscape,
    draw_ring,
    make,
    read_attribute,
    read_gltf,
    read_solid,
)
from PIL import Image, ImageDraw

JAVASCRIPT = Path(__file__).parents[1] / "javascript"


@pytest.mark.parametrize("style", ["inflate", "relief"])
@pytest.mark.parametrize("limit", [48, 500, 10_000])
def test_is_sound_and_keeps_to_the_face_limit(tmp_path, limit, style):
    solid = read_solid(make(tmp_path, draw_bear(), limit=limit, style=style).primary)
    assert_sound(solid)
    assert 0.9 * limit <= len(solid.faces) <= limit


def test_without_a_limit_the_number_of_faces_is_chosen(tmp_path):
    solid = read_solid(make(tmp_path, draw_bear(), limit=None).primary)
    assert_sound(solid)
    assert 5000 < len(solid.faces) <= 30_000


def test_stands_on_the_ground_in_one_metre_and_looks_forward(tmp_path):
    path = make(tmp_path, draw_bear()).primary
    low, high = read_solid(path).bounds
    assert (high - low).max() == pytest.approx(1, abs=1e-5)
    assert low[1] == pytest.approx(0, abs=1e-6)
    points, places = read_attribute(path, "POSITION"), read_attribute(path, "TEXCOORD_0")
    front = places[:, 0] < 0.5
    assert points[front, 2].mean() > points[~front, 2].mean()
    assert np.corrcoef(points[front, 0], places[front, 0])[0, 1] > 0.99  # not mirrored
    assert np.corrcoef(points[:, 1], places[:, 1])[0, 1] < -0.99  # the texture's rows run down


def test_a_disc_is_round_and_a_relief_is_flat(tmp_path):
    ball = read_solid(make(tmp_path / "ball", draw_disc_on_white(), style="inflate").primary)
    plaque = read_solid(make(tmp_path / "plaque", draw_disc_on_white(), style="relief").primary)
    assert ball.extents[2] > 0.4
    assert plaque.extents[2] < 0.2
    assert np.count_nonzero(np.isclose(plaque.vertices[:, 2], plaque.bounds[0, 2], atol=1e-3)) > 20


@pytest.mark.parametrize("limit", [48, 500, 4000])
def test_a_hole_is_kept(tmp_path, limit):
    solid = read_solid(make(tmp_path, draw_ring(), limit=limit).primary)
    assert_sound(solid)
    assert solid.euler_number == 0


def test_several_subjects_are_several_bodies(tmp_path):
    image = draw_disc_on_white()
    image = Image.fromarray(np.concatenate([np.asarray(image)] * 2, axis=1))
    solid = read_solid(make(tmp_path, image).primary)
    assert_sound(solid)
    assert solid.euler_number == 4


def test_too_few_faces_for_all_parts_drop_the_smallest(tmp_path):
    image = Image.new("RGBA", (256, 256), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    for number in range(16):
        left, top = 64 * (number % 4) + 8, 64 * (number // 4) + 8
        draw.rectangle([left, top, left + 30 + number, top + 30 + number], fill=(200, 10 * number, 40, 255))
    product = make(tmp_path, image, limit=48)
    solid = read_solid(product.primary)
    assert_sound(solid)
    assert len(solid.faces) <= 48
    assert any("left out" in warning for warning in product.warnings)


def test_the_same_seed_gives_the_same_bytes_and_another_one_another_body(tmp_path):
    first, again, other = (
        make(tmp_path / name, draw_bear(), pbr=True, seed=seed, preview=True)
        for name, seed in (("a", 7), ("b", 7), ("c", 8))
    )
    assert first.primary.read_bytes() == again.primary.read_bytes()
    assert first.preview.read_bytes() == again.preview.read_bytes()
    depths = [read_solid(product.primary).extents[2] for product in (first, other)]
    assert abs(depths[0] - depths[1]) > 0.01
    assert read_gltf(other.primary)["asset"]["extras"]["seed"] == 8


@pytest.mark.parametrize(
    ("texture", "pbr", "images", "attributes"),
    [
        (False, False, 0, {"POSITION", "NORMAL"}),
        (False, True, 0, {"POSITION", "NORMAL"}),
        (True, False, 1, {"POSITION", "NORMAL", "TEXCOORD_0"}),
        (True, True, 3, {"POSITION", "NORMAL", "TEXCOORD_0", "TANGENT"}),
    ],
)
def test_texture_and_pbr_are_as_wished(tmp_path, texture, pbr, images, attributes):
    gltf = read_gltf(make(tmp_path, draw_bear(), texture=texture, pbr=pbr).primary)
    material = gltf["materials"][0]
    assert len(gltf.get("images", [])) == images
    assert set(gltf["meshes"][0]["primitives"][0]["attributes"]) == attributes
    assert ("normalTexture" in material) == ("occlusionTexture" in material) == (texture and pbr)
    assert material["pbrMetallicRoughness"]["metallicFactor"] == 0


def test_tangents_are_units_across_the_normals(tmp_path):
    path = make(tmp_path, draw_bear(), pbr=True).primary
    tangents, normals = read_attribute(path, "TANGENT"), read_attribute(path, "NORMAL")
    assert np.allclose(np.linalg.norm(tangents[:, :3], axis=1), 1, atol=1e-5)
    assert np.allclose((tangents[:, :3] * normals).sum(axis=1), 0, atol=1e-5)
    assert set(tangents[:, 3]) == {-1.0, 1.0}


def test_the_back_shows_no_face_and_no_background(tmp_path):
    """The bear's black eyes are in front only; the white behind it is nowhere on it."""
    image = Image.new("RGB", (192, 192), "white")
    image.paste(draw_bear(), mask=draw_bear())
    path = make(tmp_path, image).primary
    gltf, data = read_gltf(path), path.read_bytes()
    view = gltf["bufferViews"][gltf["images"][0]["bufferView"]]
    start = data.index(b"BIN\0") + 4 + view["byteOffset"]
    (tmp_path / "atlas").write_bytes(data[start : start + view["byteLength"]])
    atlas = np.asarray(Image.open(tmp_path / "atlas").convert("L"), np.int32)
    front, back = np.split(atlas, 2, axis=1)
    assert front.min() < 40 < back.min()
    assert atlas.max() < 180


def test_a_picture_without_a_subject_becomes_a_relief_and_says_so(tmp_path):
    product = make(tmp_path, draw_landscape())
    extras = read_gltf(product.primary)["asset"]["extras"]
    assert (extras["engine"], extras["style"], extras["mask_source"]) == ("inflate-1", "relief", "frame")
    assert any("relief" in warning for warning in product.warnings)
    assert any("weights are missing" in warning for warning in product.warnings)


def test_a_subject_cut_by_the_frame_ends_in_a_plane(tmp_path):
    product = make(tmp_path, draw_bear().crop((0, 0, 192, 120)), style="inflate", limit=6000)
    solid = read_solid(product.primary)
    assert_sound(solid)
    assert any("edge cuts" in warning for warning in product.warnings)
    cap = solid.vertices[solid.vertices[:, 1] < 0.06]
    assert np.ptp(cap[:, 2]) > 0.6 * solid.extents[2]  # as thick at the cut as elsewhere, not an edge


def test_depth_is_never_claimed_to_be_known(tmp_path):
    assert "estimated" in make(tmp_path, draw_bear()).warnings[-1]


def test_the_segmenter_finds_the_subject_of_a_shaded_picture(tmp_path, weights):
    rows = np.linspace(90, 220, 192, dtype=np.float32)[:, None, None]
    image = Image.fromarray(np.broadcast_to(rows * (0.6, 0.8, 1.0), (192, 192, 3)).astype(np.uint8))
    image.paste(draw_bear(), mask=draw_bear())
    product = make(tmp_path, image, weights=weights)
    extras = read_gltf(product.primary)["asset"]["extras"]
    assert (extras["style"], extras["mask_source"]) == ("inflate", "segmenter")
    assert_sound(read_solid(product.primary))


def test_the_preview_shows_the_model_on_a_pale_ground(tmp_path):
    with Image.open(make(tmp_path, draw_bear(), preview=True).preview) as preview:
        pixels = np.asarray(preview.convert("RGB"), np.int32)
    assert pixels.shape == (768, 768, 3)
    assert pixels[0].min() > 200
    brown = (pixels[..., 0] - pixels[..., 2] > 40).mean()
    assert 0.15 < brown < 0.7


async def test_the_gltf_validator_finds_nothing(tmp_path):
    pictures = {"bear": draw_bear(), "ring": draw_ring(), "landscape": draw_landscape()}
    wishes = {"bear": {"pbr": True}, "ring": {"texture": False}, "landscape": {"pbr": True, "limit": 48}}
    paths = [str(make(tmp_path / name, image, **wishes[name]).primary) for name, image in pictures.items()]
    process = await asyncio.create_subprocess_exec(
        "node", "validate_glb.mjs", *paths, cwd=JAVASCRIPT, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    found = json.loads(output)
    assert list(found) == paths
    for counts in found.values():
        assert counts == {"errors": 0, "warnings": 0, "infos": 0, "hints": 0, "messages": []}
