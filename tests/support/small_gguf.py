"""A chat model of few layers, for tests in which no answer need make sense: it costs a fraction of the whole one."""

import re
import struct
from pathlib import Path

WHOLE = "smollm2-135m.gguf"
LAYERS = 2
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value, by the format's number of its type."""
STRING, ARRAY = 8, 9
ALIGNMENT = 32


def link_small_weights(weights: Path, folder: Path) -> Path:
    """Fill a folder with links to all weights, but with the first layers of the chat model. Return the folder."""
    folder.mkdir(parents=True)
    for path in weights.iterdir():
        if path.name != WHOLE:
            (folder / path.name).symlink_to(path)
    write_small(weights / WHOLE, folder / WHOLE)
    return folder


def write_small(whole: Path, small: Path, layers: int = LAYERS) -> None:
    """Write a GGUF with the first layers alone: fewer tensors, and another count of layers among the settings."""
    data = whole.read_bytes()
    head, version, tensors, settings = struct.unpack_from("<4sIQQ", data)
    assert (head, version) == (b"GGUF", 3)
    texts = bytearray()
    at = begun = struct.calcsize("<4sIQQ")
    for _ in range(settings):
        name, value_at = _read_text(data, at)
        at = _skip(data, value_at)
        texts += data[begun:at]
        if name.endswith(".block_count"):
            struct.pack_into("<I", texts, len(texts) - 4, layers)
        begun = at
    places: list[tuple[str, bytes, int]] = []
    for _ in range(tensors):
        name, dimensions_at = _read_text(data, at)
        (dimensions,) = struct.unpack_from("<I", data, dimensions_at)
        offset_at = dimensions_at + 4 + 8 * dimensions + 4
        places.append((name, data[at:offset_at], struct.unpack_from("<Q", data, offset_at)[0]))
        at = offset_at + 8
    first = _align(at)
    ends = sorted([*(offset for *_, offset in places), len(data) - first])
    kept = [place for place in places if _layer(place[0]) < layers]
    index, body = bytearray(), bytearray()
    for _, entry, offset in kept:
        index += entry + struct.pack("<Q", len(body))
        body += data[first + offset : first + next(end for end in ends if end > offset)]
        body += bytes(_align(len(body)) - len(body))
    written = struct.pack("<4sIQQ", head, version, len(kept), settings) + texts + index
    small.write_bytes(written + bytes(_align(len(written)) - len(written)) + body)


def _layer(name: str) -> int:
    found = re.match(r"blk\.(\d+)\.", name)
    return int(found[1]) if found else -1


def _align(place: int) -> int:
    return -(-place // ALIGNMENT) * ALIGNMENT


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<Q", data, at)
    return data[at + 8 : at + 8 + length].decode(), at + 8 + length


def _skip(data: bytes, at: int) -> int:
    """Return where the value that begins with its type at this place ends."""
    (kind,) = struct.unpack_from("<I", data, at)
    if kind != ARRAY:
        return _skip_values(data, at + 4, kind, 1)
    item, count = struct.unpack_from("<IQ", data, at + 4)
    return _skip_values(data, at + 16, item, count)


def _skip_values(data: bytes, at: int, kind: int, count: int) -> int:
    if kind != STRING:
        return at + SIZES[kind] * count
    for _ in range(count):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
    return at
