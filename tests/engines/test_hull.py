"""The built-in engine for pictures of several sides."""

from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image, ImageDraw

from penstock_engines.hull.hull_engine import ViewsWish, make_model_of_views
from penstock_engines.product import Product, Unable

COLOURS = {"front": (220, 30, 30), "left": (30, 200, 30), "back": (30, 30, 220), "right": (220, 200, 30)}
LOOKS = {"front": (0, 0, 1), "left": (1, 0, 0), "back": (0, 0, -1), "right": (-1, 0, 0)}


def draw(folder: Path, side: str, size: tuple[int, int], *, nose: float | None = None) -> Path:
    """An ellipse of the side's colour, with a nose at its left or right edge."""
    image = Image.new("RGBA", (400, 400), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    pen.ellipse([200 - size[0], 200 - size[1], 200 + size[0], 200 + size[1]], fill=COLOURS[side])
    if nose is not None:
        pen.ellipse([170 + nose * size[0], 180, 230 + nose * size[0], 220], fill=COLOURS[side])
    path = folder / f"{side}.png"
    image.save(path)
    return path


def make(folder: Path, pictures: dict[str, Path], limit: int | None = 4000) -> tuple[Product, trimesh.Trimesh]:
    wish = ViewsWish(pictures=pictures, face_limit=limit, texture=True, pbr=False, seed=1)
    product = make_model_of_views(wish, folder, Path("no-such-folder"), lambda _: None)
    mesh = trimesh.load(product.primary, force="mesh")
    assert isinstance(mesh, trimesh.Trimesh)
    return product, mesh


def find_colour(mesh: trimesh.Trimesh, look: tuple[int, int, int]) -> np.ndarray:
    """Return the colour of the face that looks most to a side."""
    facing = mesh.face_normals @ look
    faces = np.argsort(facing)[-20:]
    places = mesh.visual.uv[mesh.faces[faces]].mean(axis=(1))
    picture = np.asarray(mesh.visual.material.baseColorTexture.convert("RGB"), int)
    height, width = picture.shape[:2]
    return np.median(picture[((1 - places[:, 1]) * height).astype(int), (places[:, 0] * width).astype(int)], axis=0)


def test_each_side_shows_its_picture(tmp_path):
    sizes = {"front": (100, 150), "back": (100, 150), "left": (60, 150), "right": (60, 150)}
    product, mesh = make(tmp_path, {side: draw(tmp_path, side, size) for side, size in sizes.items()})
    for side, look in LOOKS.items():
        assert np.abs(find_colour(mesh, look) - COLOURS[side]).max() < 25, side
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    assert mesh.is_watertight
    assert mesh.extents == pytest.approx([100 / 150, 1, 60 / 150], abs=0.04)
    assert mesh.bounds[0, 1] == pytest.approx(0, abs=1e-6)
    assert 3600 <= len(mesh.faces) <= 4000
    ellipsoid = 4 / 3 * np.pi * np.prod(mesh.extents / 2)
    assert mesh.volume == pytest.approx(ellipsoid, rel=0.12)
    assert len(product.warnings) == 1


def test_a_nose_is_at_the_front_in_the_picture_of_either_side(tmp_path):
    for side, nose in (("left", -1.0), ("right", 1.0)):
        pictures = {"front": draw(tmp_path, "front", (60, 120)), side: draw(tmp_path, side, (60, 120), nose=nose)}
        _, mesh = make(tmp_path, pictures)
        middle = mesh.vertices[np.abs(mesh.vertices[:, 1] - 0.5) < 0.05]
        upper = mesh.vertices[np.abs(mesh.vertices[:, 1] - 0.85) < 0.05]
        assert middle[:, 2].max() - upper[:, 2].max() > abs(middle[:, 2].min() - upper[:, 2].min()) + 0.05, side


def test_without_a_side_the_depth_is_estimated(tmp_path):
    pictures = {side: draw(tmp_path, side, (80, 120)) for side in ("front", "back")}
    product, mesh = make(tmp_path, pictures, limit=None)
    assert any("depth is estimated" in warning for warning in product.warnings)
    assert 0.4 < mesh.extents[2] / mesh.extents[0] < 1.1
    assert np.abs(find_colour(mesh, LOOKS["back"]) - COLOURS["back"]).max() < 25


def test_other_outlines_are_told_and_empty_pictures_refused(tmp_path):
    pictures = {"front": draw(tmp_path, "front", (100, 60)), "back": draw(tmp_path, "back", (100, 60), nose=1.5)}
    product, _ = make(tmp_path, pictures)
    assert any("`front` and `back` differ" in warning for warning in product.warnings)
    Image.new("RGB", (200, 200), "white").save(pictures["back"])
    with pytest.raises(Unable, match="`back`"):
        make(tmp_path, pictures)
