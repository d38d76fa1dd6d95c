"""The simulator's samples, opened by other people's readers."""

import io

import av
import pytest
import trimesh
from PIL import Image

from penstock.simulator.samples import make_model, make_preview, make_video


def load(data: bytes) -> trimesh.Trimesh:
    mesh = trimesh.load(io.BytesIO(data), file_type="glb", force="mesh")
    assert isinstance(mesh, trimesh.Trimesh)
    return mesh


@pytest.mark.parametrize("seed", [0, 1, 2147483647])
@pytest.mark.parametrize("texture", [True, False])
@pytest.mark.parametrize("face_limit", [None, 48, 55, 100, 2_000_000])
def test_a_model_is_a_closed_solid_within_its_face_limit(seed, face_limit, texture):
    mesh = load(make_model(seed, face_limit, texture))
    assert 48 <= len(mesh.faces) <= (face_limit or 192)
    mesh.merge_vertices(merge_tex=True, merge_norm=True)
    assert mesh.is_watertight
    assert mesh.is_winding_consistent
    assert mesh.volume > 0.5


def test_a_model_has_a_texture_only_if_asked():
    textured = load(make_model(5, None, texture=True)).visual
    assert textured.material.baseColorTexture.size == (64, 64)
    assert len(textured.uv) == len(load(make_model(5, None, texture=True)).vertices)
    plain = load(make_model(5, None, texture=False)).visual
    assert plain.material.baseColorTexture is None
    assert plain.material.baseColorFactor is not None


@pytest.mark.parametrize(
    ("width", "height", "seconds"),
    [(1280, 720, 2), (320, 180, 8), (180, 320, 6), (1920, 1080, 1), (1080, 1920, 1)],
)
def test_a_video_is_a_playable_mp4_of_exactly_that_size_and_length(width, height, seconds):
    data = make_video(width, height, seconds, seed=3)
    assert data.index(b"moov") < data.index(b"mdat")
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        context = stream.codec_context
        assert (context.name, context.pix_fmt, context.width, context.height) == ("h264", "yuv420p", width, height)
        assert (context.colorspace, context.color_primaries, context.color_trc, context.color_range) == (1, 1, 1, 1)
        assert container.duration == seconds * 1_000_000
        assert stream.average_rate == 8
        frames = [frame.to_image().resize((16, 9)).tobytes() for frame in container.decode(stream)]
    assert len(frames) == seconds * 8
    assert len(set(frames)) > seconds * 4  # it moves


@pytest.mark.parametrize("size", [(512, 512), (64, 96), (300, 200)])
def test_a_preview_is_a_png_of_that_size(size):
    with Image.open(io.BytesIO(make_preview(9, *size))) as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", size)
        assert len(picture.getcolors(maxcolors=1_000_000)) > 50


def test_the_same_arguments_make_the_same_bytes_and_another_seed_makes_others():
    assert make_model(1, None, texture=True) == make_model(1, None, texture=True)
    assert make_model(1, None, texture=True) != make_model(2, None, texture=True)
    assert make_preview(1) == make_preview(1)
    assert make_preview(1) != make_preview(2)
    assert make_video(320, 180, 4, 1) == make_video(320, 180, 4, 1)
    assert make_video(320, 180, 4, 1) != make_video(320, 180, 4, 2)
