"""Round things, furniture, signs and landscapes get the depth that such things have."""

import io

import numpy as np
import pytest
import trimesh
from inflate_drawings import draw_chair, draw_hills, draw_label, draw_mug, draw_sign, draw_table, draw_vase
from inflate_steps import assert_sound, draw_bear, draw_disc_on_white, make, read_gltf, read_solid
from PIL import Image, ImageDraw


def read_atlas(path) -> tuple[np.ndarray, np.ndarray]:
    """The colours of front and back, both as seen from the front."""
    gltf, data = read_gltf(path), path.read_bytes()
    view = gltf["bufferViews"][gltf["images"][0]["bufferView"]]
    start = data.index(b"BIN\0") + 4 + view["byteOffset"]
    atlas = Image.open(io.BytesIO(data[start : start + view["byteLength"]])).convert("L")
    front, back = np.split(np.asarray(atlas, np.float64), 2, axis=1)
    return front, back


def slice_level(solid, low: float, high: float) -> np.ndarray:
    """The vertices between two heights, given as shares of the whole."""
    tall = solid.extents[1]
    points = solid.vertices
    return points[(points[:, 1] >= low * tall) & (points[:, 1] <= high * tall)]


@pytest.fixture(scope="module")
def mug(tmp_path_factory) -> trimesh.Trimesh:
    return read_solid(make(tmp_path_factory.mktemp("mug"), draw_mug(), limit=8000).primary)


@pytest.fixture(scope="module")
def chair(tmp_path_factory) -> trimesh.Trimesh:
    return read_solid(make(tmp_path_factory.mktemp("chair"), draw_chair(), limit=8000).primary)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> trimesh.Trimesh:
    return read_solid(make(tmp_path_factory.mktemp("table"), draw_table(), limit=8000).primary)


def test_a_mug_is_as_deep_as_its_body_is_wide(mug):
    assert_sound(mug)
    body_width = mug.extents[1] * 0.5 / 0.7
    assert 0.85 < mug.extents[2] / body_width < 1.15


def test_the_handle_of_a_mug_is_a_side_part_and_keeps_its_hole(mug):
    beside = mug.vertices[mug.vertices[:, 0] > mug.bounds[1, 0] - 0.2 * mug.extents[0]]
    assert mug.euler_number == 0
    assert 0.05 * mug.extents[2] < np.ptp(beside[:, 2]) < 0.45 * mug.extents[2]


def test_a_vase_is_round_at_every_height(tmp_path):
    solid = read_solid(make(tmp_path, draw_vase(), limit=12_000).primary)
    assert_sound(solid)
    for level in (0.1, 0.3, 0.45, 0.7, 0.9):
        wide, _, deep = np.ptp(slice_level(solid, level - 0.03, level + 0.03), axis=0)
        assert 0.85 < deep / wide < 1.15


def test_without_light_and_shade_nothing_is_turned(tmp_path):
    """The same outline in one colour may be a flat thing."""
    flat = Image.new("RGBA", (240, 240), (0, 0, 0, 0))
    flat.paste((190, 120, 70, 255), mask=draw_vase().getchannel("A"))
    solid = read_solid(make(tmp_path, flat).primary)
    assert solid.extents[2] / solid.extents[0] < 0.8


def test_ears_do_not_become_a_ring(tmp_path):
    rows = np.linspace(1, 0.6, 192)[None, :, None]
    pixels = np.asarray(draw_bear()).astype(np.float64)
    pixels[..., :3] *= rows
    solid = read_solid(make(tmp_path, Image.fromarray(pixels.astype(np.uint8)), limit=6000).primary)
    assert np.ptp(slice_level(solid, 0.95, 1)[:, 2]) < 0.5 * solid.extents[2]


@pytest.mark.parametrize("name", ["chair", "table"])
def test_furniture_is_deep_and_stands_on_four_legs(request, name):
    solid = request.getfixturevalue(name)
    assert_sound(solid)
    assert solid.extents[2] / min(solid.extents[:2]) > 0.6
    feet = slice_level(solid, 0, 0.05)
    assert {(right, front) for right, front in feet[:, [0, 2]] > 0} == {(a, b) for a in (0, 1) for b in (0, 1)}
    assert np.abs(feet[:, 2]).min() > 0.15 * solid.extents[2]


def test_the_backrest_of_a_chair_stands_at_the_back(chair):
    backrest = slice_level(chair, 0.8, 1)
    assert backrest[:, 2].max() < chair.bounds[0, 2] + 0.35 * chair.extents[2]
    seat = slice_level(chair, 0.36, 0.5)
    assert np.ptp(seat[:, 2]) > 0.9 * chair.extents[2]


@pytest.mark.parametrize(
    ("draw", "limit"),
    [
        (draw_mug, 48),
        (draw_chair, None),
        pytest.param(draw_mug, 500, marks=pytest.mark.long),
        pytest.param(draw_mug, None, marks=pytest.mark.long),
        pytest.param(draw_chair, 48, marks=pytest.mark.long),
        pytest.param(draw_chair, 500, marks=pytest.mark.long),
    ],
)
def test_solids_come_out_alike_again(tmp_path, draw, limit):
    first, again = (make(tmp_path / name, draw(), limit=limit, pbr=True).primary for name in "ab")
    assert first.read_bytes() == again.read_bytes()
    assert_sound_and_small(read_solid(first), limit)


@pytest.mark.parametrize(("draw", "limit"), [(draw_mug, 500), (draw_mug, None), (draw_chair, 48)])
def test_solids_are_sound_with_few_faces(tmp_path, draw, limit):
    assert_sound_and_small(read_solid(make(tmp_path, draw(), limit=limit, pbr=True).primary), limit)


def assert_sound_and_small(solid: trimesh.Trimesh, limit: int | None) -> None:
    assert_sound(solid)
    assert limit is None or len(solid.faces) <= limit


@pytest.mark.parametrize(
    "image", [draw_sign(), draw_label(draw_mug(), 0.4), draw_label(draw_chair(), 0.5)], ids=["sign", "mug", "chair"]
)
def test_the_back_shows_no_writing(tmp_path, image):
    """Neither as written nor mirrored: the back has none of the front's sharp edges."""
    front, back = read_atlas(make(tmp_path, image).primary)
    edges = [np.abs(np.diff(side, axis=1)) for side in (front, back)]
    assert edges[0].max() > 60
    assert edges[1].max() < 0.3 * edges[0].max()


def test_a_page_of_writing_becomes_one_plaque(tmp_path):
    product = make(tmp_path, draw_sign())
    assert read_gltf(product.primary)["asset"]["extras"]["style"] == "relief"
    solid = read_solid(product.primary)
    assert solid.euler_number == 2
    assert solid.extents[0] / solid.extents[1] == pytest.approx(1.6, abs=0.03)


@pytest.mark.parametrize("seed", [0, 8, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 6))])
def test_a_landscape_becomes_a_plaque_of_the_whole_picture(tmp_path, weights, seed):
    product = make(tmp_path, draw_hills(seed), weights=weights)
    extras = read_gltf(product.primary)["asset"]["extras"]
    assert (extras["style"], extras["mask_source"]) == ("relief", "frame")
    solid = read_solid(product.primary)
    assert solid.extents[0] / solid.extents[1] == pytest.approx(1.5, abs=0.03)
    assert solid.extents[2] < 0.2


def paint_sky() -> Image.Image:
    rows = np.linspace(90, 220, 300, dtype=np.float32)[:, None, None]
    return Image.fromarray(np.broadcast_to(rows * (0.6, 0.8, 1.0), (300, 400, 3)).astype(np.uint8))


def paint_haze() -> Image.Image:
    return Image.blend(draw_hills(3, 400, 300), Image.new("RGB", (400, 300), "white"), 0.4)


@pytest.mark.parametrize(
    ("paint", "place"),
    [
        pytest.param(paint_sky, (-70, 40), id="cut on the left"),
        pytest.param(paint_sky, (90, 130), id="cut below", marks=pytest.mark.long),
        pytest.param(paint_haze, (90, 60), id="before hills", marks=pytest.mark.long),
        pytest.param(paint_haze, (90, 130), id="before hills, cut below"),
    ],
)
def test_a_single_subject_is_still_cut_out(tmp_path, weights, paint, place):
    image, bear = paint(), draw_bear(220)
    image.paste(bear, place, bear)
    extras = read_gltf(make(tmp_path, image, weights=weights).primary)["asset"]["extras"]
    assert (extras["style"], extras["mask_source"]) == ("inflate", "segmenter")


def test_a_dial_is_flat_and_a_plain_ball_is_not(tmp_path):
    ball, dial = draw_disc_on_white(), draw_disc_on_white(384)
    draw = ImageDraw.Draw(dial)
    for number in range(1500):
        x, y = 97 + 7 * (number % 29), 97 + 7 * (number // 29)
        if np.hypot(x - 192, y - 192) < 105:
            draw.rectangle([x, y, x + 3, y + 3], fill="white")
    depths = [
        read_solid(make(tmp_path / str(name), image).primary).extents[2] for name, image in enumerate((ball, dial))
    ]
    assert depths[0] > 0.5
    assert depths[1] < 0.2
