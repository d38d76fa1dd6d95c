"""Pictures of every kind, and files that are none."""

import numpy as np
import pytest
from inflate_steps import NO_WEIGHTS, assert_sound, draw_bear, draw_disc_on_white, draw_ring, make, read_solid
from PIL import Image

from penstock_engines.inflate.subject.picture import open_picture
from penstock_engines.product import Unable


def save(folder, name, image, **options: object):
    path = folder / name
    image.save(path, **options)
    return path


@pytest.mark.parametrize("mode", ["P", "L", "1", "LA", "I;16", "CMYK"])
def test_any_mode_is_opened(tmp_path, mode):
    image = draw_disc_on_white(64)
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    else:
        image = image.convert(mode)
    opened = open_picture(save(tmp_path, "picture.jpg" if mode == "CMYK" else "picture.png", image))
    assert opened.shape == (256, 256, 4)
    corner, middle = opened[2, 2, :3].astype(int), opened[128, 128, :3].astype(int)
    assert corner.min() > 240
    assert middle.mean() < 130


def test_a_photograph_is_turned_upright(tmp_path):
    image = Image.new("RGB", (400, 300), "white")
    image.paste("red", (0, 0, 400, 40))
    exif = image.getexif()
    exif[0x0112] = 6  # a quarter turn clockwise
    opened = open_picture(save(tmp_path, "picture.jpg", image, exif=exif))
    assert opened.shape == (400, 300, 4)
    assert opened[200, 290, 1] < 60
    assert opened[200, 10, 1] > 200


def test_of_a_moving_picture_the_first_is_taken(tmp_path):
    frames = [Image.new("RGB", (256, 256), colour) for colour in ("red", "blue")]
    opened = open_picture(save(tmp_path, "picture.webp", frames[0], save_all=True, append_images=frames[1:]))
    assert opened[128, 128, 0] > 200


def test_a_large_picture_is_shrunk(tmp_path):
    opened = open_picture(save(tmp_path, "picture.png", Image.new("L", (4000, 3000), 90)))
    assert opened.shape[0] * opened.shape[1] < 1_700_000
    assert opened[0, 0].tolist() == [90, 90, 90, 255]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "not a JPEG"),
        (b"no picture at all", "not a JPEG"),
        (b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "not a JPEG"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "damaged|not a JPEG"),
    ],
)
def test_what_is_no_picture_is_refused(tmp_path, data, sentence):
    path = tmp_path / "picture.png"
    path.write_bytes(data)
    with pytest.raises(Unable, match=sentence):
        make(tmp_path, path)


def test_a_picture_that_ends_too_soon_is_refused(tmp_path):
    path = save(tmp_path, "picture.png", draw_bear())
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(Unable, match="damaged"):
        make(tmp_path, path)


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        (Image.new("1", (6001, 6001)), "at most 36000000"),
        (Image.new("L", (5, 80)), "at least 8"),
        (Image.new("L", (6000, 10)), "too narrow"),
        (Image.new("RGBA", (64, 64), (255, 0, 0, 0)), "fully transparent"),
    ],
)
def test_what_cannot_become_a_model_is_refused(tmp_path, image, sentence):
    with pytest.raises(Unable, match=sentence):
        make(tmp_path, image)


@pytest.mark.parametrize(
    "image",
    [
        draw_ring(20),
        draw_disc_on_white(20),
        Image.new("RGB", (20, 20), "teal"),
        Image.new("RGB", (20, 3000), "teal"),
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)),
    ],
    ids=["tiny ring", "tiny disc", "one colour", "very tall", "noise"],
)
def test_odd_pictures_give_sound_models(tmp_path, image):
    solid = read_solid(make(tmp_path, image, limit=500, weights=NO_WEIGHTS).primary)
    assert_sound(solid)
    assert len(solid.faces) <= 500
