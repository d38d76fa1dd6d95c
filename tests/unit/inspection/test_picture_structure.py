"""Pictures of many small pieces: real ones pass, those that would hold up a reader are refused before it starts."""

import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from penstock.domain.files import MAX_FILE_BYTES
from penstock.domain.job_errors import FileUnreadable
from penstock.inspection.images_and_video import inspect_image
from penstock.inspection.picture_structure import MAX_CHUNKS, MAX_FILLING, MAX_OTHER_CHUNKS, MAX_SCANS, MAX_SEGMENTS
from penstock.inspection.picture_structure import check_structure as check

SIDE = 600


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*, pieces: int = 1, before: bytes = b"", after: bytes = b"") -> bytes:
    """A sound PNG whose pixels are in so many chunks."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0))
    pixels = zlib.compress(bytes(SIDE * (SIDE + 1)), 0)
    length = -(-len(pixels) // pieces)
    parts = [chunk(b"IDAT", pixels[start : start + length]) for start in range(0, len(pixels), length)]
    parts += [chunk(b"IDAT", b"")] * (pieces - len(parts))
    return b"\x89PNG\r\n\x1a\n" + head + before + b"".join(parts) + after + chunk(b"IEND", b"")


def jpeg(**options: object) -> bytes:
    buffer = io.BytesIO()
    Image.linear_gradient("L").convert("RGB").save(buffer, "JPEG", **options)
    return buffer.getvalue()


def insert(data: bytes, more: bytes) -> bytes:
    """Put segments after the first two bytes of a JPEG."""
    return data[:2] + more + data[2:]


def test_the_largest_file_in_pieces_of_8_kib_is_allowed():
    assert MAX_FILE_BYTES // 8192 * 4 < MAX_CHUNKS
    assert inspect_image(png(pieces=MAX_FILE_BYTES // 8192)).width == SIDE


@pytest.mark.parametrize(
    "data",
    [
        png(pieces=MAX_CHUNKS + 1),
        png(before=chunk(b"tEXt", b"a\0b") * MAX_OTHER_CHUNKS),
        png(before=chunk(b"prVt", b"") * MAX_OTHER_CHUNKS),
        png(after=chunk(b"zTXt", b"a\0\0" + zlib.compress(b"b")) * MAX_OTHER_CHUNKS),
        png(before=chunk(b"prVt", b"") * 1_000_000),
    ],
)
def test_a_png_of_too_many_chunks_is_refused_with_the_limits(data):
    with pytest.raises(FileUnreadable, match=f"too many chunks; at most {MAX_CHUNKS} .* {MAX_OTHER_CHUNKS} without"):
        inspect_image(data)


def test_an_animation_of_many_frames_is_allowed():
    buffer = io.BytesIO()
    frames = [Image.new("L", (20, 20), shade) for shade in range(250)]
    frames[0].save(buffer, "PNG", save_all=True, append_images=frames[1:])
    assert inspect_image(buffer.getvalue()).width == 20


def test_a_jpeg_full_of_metadata_is_allowed():
    metadata = b"\xff\xed" + struct.pack(">H", 65535) + bytes(65533)
    assert inspect_image(insert(jpeg(), metadata * 300)).width == 256


def test_a_progressive_jpeg_with_a_video_behind_it_is_allowed():
    assert inspect_image(jpeg(progressive=True) + b"\xff\xda\0\2" * 10_000).width == 256


@pytest.mark.parametrize(
    "data",
    [
        insert(jpeg(), b"\xff\xfe\0\2" * (MAX_SEGMENTS + 1)),
        insert(jpeg(), b"\xff\xd0" * (MAX_SEGMENTS + 1)),
        insert(jpeg(), b"\xff" * (MAX_FILLING + 10)),
        insert(jpeg(), b"\xff\0" * MAX_FILLING),
    ],
)
def test_a_jpeg_of_too_many_segments_is_refused_with_the_limit(data):
    with pytest.raises(FileUnreadable, match=f"too many pieces; at most {MAX_SEGMENTS} segments"):
        inspect_image(data)


def test_a_jpeg_of_too_many_scans_is_refused_with_the_limit():
    data = jpeg(progressive=True)
    start = data.rindex(b"\xff\xda")
    with pytest.raises(FileUnreadable, match=f"{MAX_SCANS} scans"):
        inspect_image(data[:start] + data[start:-2] * MAX_SCANS + data[-2:])


def test_a_webp_of_too_many_chunks_is_refused_with_the_limit():
    buffer = io.BytesIO()
    Image.new("RGB", (30, 30)).save(buffer, "WEBP")
    body = buffer.getvalue()[8:] + b"junk\0\0\0\0" * MAX_CHUNKS
    with pytest.raises(FileUnreadable, match=f"too many chunks; at most {MAX_CHUNKS}"):
        inspect_image(b"RIFF" + struct.pack("<I", len(body)) + body)


@given(st.binary(max_size=300), st.sampled_from(["png", "webp", "jpeg"]))
def test_it_ends_on_any_bytes(data, kind):
    try:
        check(io.BytesIO(data), kind)
    except ValueError as error:
        assert "allowed" in str(error)  # noqa: PT017  most bytes raise nothing
