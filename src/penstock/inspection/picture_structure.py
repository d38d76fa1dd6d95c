"""Count the pieces of a picture before it is decoded: a few bytes each, they can cost a reader minutes."""

import os
import re
import struct
from typing import IO, Final

MAX_CHUNKS: Final = 20_000
"""Of a PNG or WebP. The largest file in pieces of 1 KiB has as many; encoders write 8 KiB and more."""
MAX_OTHER_CHUNKS: Final = 1000
"""Of a PNG, beside those with pixels."""
MAX_SEGMENTS: Final = 2000
"""Of a JPEG. A file full of metadata has 320, of 64 KiB each."""
MAX_SCANS: Final = 100
"""Of a JPEG. Each is another pass over all pixels; a progressive one has about 10."""
MAX_FILLING: Final = 65_536
"""Bytes between the segments of a JPEG that mean nothing."""

WINDOW_BYTES: Final = 1 << 20
"""Bytes of a scan that are searched at a time."""

PIXELS: Final = (b"IDAT", b"fdAT")
WITHOUT_LENGTH: Final = frozenset({0x01, *range(0xD0, 0xD9)})
START_OF_SCAN, END_OF_IMAGE = 0xDA, 0xD9
MARKER: Final = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
"""The end of a scan's pixels, in which a byte 255 is followed by 0 or by a restart number."""


def check_structure(file: IO[bytes], kind: str) -> None:
    """Raise a ValueError for a picture of too many pieces. Damage is left to the reader, which stops at it."""
    file.seek(0)
    match kind:
        case "png":
            _check_png(file)
        case "webp":
            _check_webp(file)
        case _:
            _check_jpeg(file)
    file.seek(0)


def _check_png(file: IO[bytes]) -> None:
    file.seek(8)
    chunks = others = 0
    while len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        chunks += 1
        others += kind not in PIXELS
        if chunks > MAX_CHUNKS or others > MAX_OTHER_CHUNKS:
            allowed = f"at most {MAX_CHUNKS} are allowed, and {MAX_OTHER_CHUNKS} without pixels"
            raise ValueError(f"The PNG image has too many chunks; {allowed}. Save it anew.")
        if kind == b"IEND":
            return
        file.seek(length + 4, os.SEEK_CUR)


def _check_webp(file: IO[bytes]) -> None:
    file.seek(12)
    chunks = 0
    while len(head := file.read(8)) == 8:
        chunks += 1
        if chunks > MAX_CHUNKS:
            raise ValueError(f"The WEBP image has too many chunks; at most {MAX_CHUNKS} are allowed. Save it anew.")
        length = int.from_bytes(head[4:], "little")
        file.seek(length + length % 2, os.SEEK_CUR)


def _check_jpeg(file: IO[bytes]) -> None:
    """Follow the segments up to the end of the first picture: cameras append whole videos."""
    position, segments, scans, filling = 2, 0, 0, 0
    while len(head := _read_at(file, position, 4)) == 4 and head[1] != END_OF_IMAGE:
        marker = head[1]
        if head[0] != 0xFF or marker in (0x00, 0xFF):
            position, filling = position + 1, filling + 1
        else:
            length = 0 if marker in WITHOUT_LENGTH else int.from_bytes(head[2:], "big")
            position, segments = position + 2 + length, segments + 1
        if marker == START_OF_SCAN:
            scans += 1
            position = _find_marker(file, position)
        if segments > MAX_SEGMENTS or filling > MAX_FILLING or scans > MAX_SCANS:
            allowed = f"at most {MAX_SEGMENTS} segments, {MAX_SCANS} scans and {MAX_FILLING} bytes between them"
            raise ValueError(f"The JPEG image is in too many pieces; {allowed} are allowed. Save it anew.")


def _find_marker(file: IO[bytes], position: int) -> int:
    """Return the place of the next marker at or behind a position, or the end of the file."""
    while len(window := _read_at(file, position, WINDOW_BYTES)) >= 2:
        if found := MARKER.search(window):
            return position + found.start()
        position += len(window) - 1  # a marker may begin with the last byte
    return position + len(window)


def _read_at(file: IO[bytes], position: int, count: int) -> bytes:
    file.seek(position)
    return file.read(count)
