"""Images and videos: sound ones are measured, broken and hostile ones are refused."""

import io
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
from mutations import mutations
from PIL import Image

from penstock.domain.files import MAX_FILE_BYTES, ImageFacts
from penstock.domain.job_errors import BadOutput, FileUnreadable
from penstock.inspection.images_and_video import VideoFacts, inspect_image, inspect_picture, inspect_video
from penstock.inspection.worker_pool import ProcessPool
from penstock.simulator.samples import draw_test_card, make_preview, make_video


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("inspection") / "file"


def test_importing_it_loads_neither_pillow_nor_pyav():
    code = "import sys, penstock.inspection.images_and_video; print({'PIL', 'av', 'numpy'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert answer.stdout == "set()\n"


@pytest.mark.long
async def test_it_works_within_the_limits_of_the_workshop(place):
    process_pool = ProcessPool(1, threads=True)
    try:
        for kind in ("PNG", "JPEG", "WEBP"):
            assert (await process_pool.do("a", inspect_image, draw(kind, (6000, 6000)))).width == 6000
        place.write_bytes(make_video(1920, 1080, 4, 1))
        assert (await process_pool.do("a", inspect_video, place, 1920, 1080, 4.0)).frames == 32
        with pytest.raises(FileUnreadable, match="damaged or cut off"):
            await process_pool.do("a", inspect_image, draw("PNG")[:-40])
    finally:
        await process_pool.close()


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
    process_pool = ProcessPool(1)
    with pytest.raises(FileUnreadable, match="WEBP image has too many pixels; each side must be 20 to 6000 px"):
        await process_pool.do("a", inspect_image, claim_webp(16_777_215, 16_777_215))
    await process_pool.close()


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
    with pytest.raises(BadOutput, match=r"picture is unusable.*damaged"):
        inspect_picture(str(place))
    place.write_bytes(b"<html>gone</html>")
    with pytest.raises(BadOutput, match="not a JPEG, PNG or WebP"):
        inspect_picture(str(place))


SMALL_IMAGES = [draw("PNG", (24, 20)), draw("JPEG", (24, 20)), draw("WEBP", (24, 20)), draw("WEBP", (24, 20), "RGBA")]


@settings(deadline=None)
@given(st.binary(max_size=200) | st.sampled_from(SMALL_IMAGES).flatmap(mutations))
def test_no_bytes_make_an_image_fail_in_another_way(data):
    try:
        facts = inspect_image(data)
    except FileUnreadable:
        return
    assert min(facts.width, facts.height) >= 20


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
