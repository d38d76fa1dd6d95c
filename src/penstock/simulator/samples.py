"""Makes small but real results by code: a GLB of a gem, an MP4 of a test card, a PNG picture of the gem."""

# pyright: reportUnknownMemberType=false
# PyAV's stubs leave the packets' type open.

import colorsys
import io
import json
import math
import random
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import av
from av.video.plane import VideoPlane
from PIL import Image, ImageDraw, ImageOps

Vector: TypeAlias = tuple[float, float, float]
Colour: TypeAlias = tuple[int, int, int]
Corner: TypeAlias = tuple[Vector, tuple[float, float]]
"""A place in space and its place on the texture."""
Triangle: TypeAlias = tuple[Corner, Corner, Corner]

FLOAT, UNSIGNED_SHORT = 5126, 5123  # glTF's numbers for them
FRAMES_PER_SECOND = 8
BAR_COLOURS: list[Colour] = [
    (191, 191, 191),
    (191, 191, 0),
    (0, 191, 191),
    (0, 191, 0),
    (191, 0, 191),
    (191, 0, 0),
    (0, 0, 191),
]
LIGHT: Vector = (0.48, 0.6, 0.64)  # from the right, above, in front
BRIGHTER = bytes(min(235, value + 60) for value in range(256))


def make_model(seed: int, face_limit: int | None, texture: bool) -> bytes:  # noqa: FBT001 - named as the param is
    """Return a GLB of a faceted gem with at most `face_limit` faces (48 or more)."""
    triangles = cut_gem(seed, face_limit)
    corners = [corner for triangle in triangles for corner in triangle]
    places = [place for place, _ in corners]
    normals = [normal for triangle in triangles for normal in [find_normal(*(place for place, _ in triangle))] * 3]
    count = len(corners)
    lowest, highest = ([pick(axis) for axis in zip(*places, strict=True)] for pick in (min, max))
    vectors = {"componentType": FLOAT, "count": count, "type": "VEC3"}
    attributes = {"POSITION": 0, "NORMAL": 1}
    blocks = [pack("f", *places), pack("f", *normals), pack("H", range(count))]
    accessors = [
        vectors | {"bufferView": 0, "min": lowest, "max": highest},
        vectors | {"bufferView": 1},
        {"bufferView": 2, "componentType": UNSIGNED_SHORT, "count": count, "type": "SCALAR"},
    ]
    paint: dict[str, Any] = {"metallicFactor": 0.1, "roughnessFactor": 0.25}
    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "Penstock simulator"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "name": "gem"}],
        "meshes": [{"primitives": [{"attributes": attributes, "indices": 2, "material": 0}]}],
        "materials": [{"pbrMetallicRoughness": paint}],
        "accessors": accessors,
    }
    if texture:
        attributes["TEXCOORD_0"] = 3
        accessors.append(vectors | {"bufferView": 3, "type": "VEC2"})
        blocks += [pack("f", *(place for _, place in corners)), encode_png(draw_gradient(seed, 64, 64))]
        document |= {"textures": [{"source": 0}], "images": [{"bufferView": 4, "mimeType": "image/png"}]}
        paint["baseColorTexture"] = {"index": 0}
    else:
        paint["baseColorFactor"] = [*(part / 255 for part in pick_colour(seed, lightness=0.6)), 1.0]
    return pack_glb(document, blocks)


@lru_cache(maxsize=16)  # drawn in plain Python: too slow to do for every job
def make_preview(seed: int, width: int = 512, height: int = 512) -> bytes:
    """Return a PNG picture of the gem with this seed."""
    scale = 2  # drawn larger and shrunk, for smooth edges
    picture = draw_gradient(seed + 1, width * scale, height * scale)
    draw = ImageDraw.Draw(picture)
    size = min(width, height) * scale * 0.4
    colour = pick_colour(seed, lightness=0.6)

    def look(place: Vector) -> Vector:
        across, up, near = place
        tilt = 0.5
        return across, up * math.cos(tilt) - near * math.sin(tilt), up * math.sin(tilt) + near * math.cos(tilt)

    seen = [(look(first), look(second), look(third)) for (first, _), (second, _), (third, _) in cut_gem(seed, None)]
    for triangle in sorted(seen, key=lambda places: sum(near for _, _, near in places)):
        light = 0.6 + 0.4 * sum(a * b for a, b in zip(find_normal(*triangle), LIGHT, strict=True))
        points = [(width * scale / 2 + across * size, height * scale / 2 - up * size) for across, up, _ in triangle]
        draw.polygon(points, fill=tuple(int(part * light) for part in colour))
    return encode_png(picture.resize((width, height), Image.Resampling.LANCZOS))


def make_picture(seed: int, width: int, height: int, file_type: str) -> bytes:
    """Return the gem's picture as a `png`, `jpeg` or `webp` of this size."""
    with Image.open(io.BytesIO(make_preview(seed % 8))) as gem:
        fitted = ImageOps.fit(gem, (width, height))
    buffer = io.BytesIO()
    fitted.save(buffer, file_type.upper())
    return buffer.getvalue()


def make_video(width: int, height: int, seconds: int, seed: int) -> bytes:
    """Return an MP4 of a test card: colour bars, a scrolling ramp, and a bright band that sweeps over both once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "video.mp4")  # moving the index to the front needs a real file
        with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
            stream = container.add_stream(
                "libx264", rate=FRAMES_PER_SECOND, options={"preset": "ultrafast", "crf": "28"}
            )
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            context = stream.codec_context
            context.thread_count = 2  # fixed, so that the bytes do not depend on the machine's cores
            context.time_base = Fraction(1, FRAMES_PER_SECOND)
            context.gop_size = 2 * FRAMES_PER_SECOND
            context.colorspace = context.color_primaries = context.color_trc = context.color_range = 1  # BT.709, video
            for frame in draw_test_card(width, height, seconds * FRAMES_PER_SECOND, seed):
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        return path.read_bytes()


# -- the gem


def cut_gem(seed: int, face_limit: int | None) -> list[Triangle]:
    """Triangles of a closed solid: rings of corners, each turned by half a step, between two tips."""
    dice = random.Random(seed)  # noqa: S311 - a shape, not a secret
    profile = [(0.50, 0.50), (0.22, 0.92), (0.05, 1.0), (-0.40, 0.62)]
    rings = [(height * dice.uniform(0.9, 1.1), radius * dice.uniform(0.85, 1.0)) for height, radius in profile]
    faces_per_segment = 2 * len(rings)
    segments = min(dice.randint(12, 24), (face_limit or 192) // faces_per_segment)

    def corner(ring: int, segment: int) -> Corner:
        height, radius = rings[ring]
        turn = 2 * math.pi * (segment % segments + ring / 2) / segments
        place = (radius * math.cos(turn), height, -radius * math.sin(turn))
        return place, ((segment + ring / 2) / segments, (ring + 1) / (len(rings) + 1))

    triangles: list[Triangle] = []
    last = len(rings) - 1
    for segment in range(segments):
        middle = (segment + 0.5) / segments
        triangles.append((((0.0, 0.55, 0.0), (middle, 0.0)), corner(0, segment), corner(0, segment + 1)))
        for ring in range(last):
            upper, lower = corner(ring, segment), corner(ring + 1, segment)
            triangles.append((upper, lower, corner(ring, segment + 1)))
            triangles.append((corner(ring, segment + 1), lower, corner(ring + 1, segment + 1)))
        triangles.append((((0.0, -0.95, 0.0), (middle, 1.0)), corner(last, segment + 1), corner(last, segment)))
    return triangles


def find_normal(first: Vector, second: Vector, third: Vector) -> Vector:
    """The direction that a triangle faces, of length one."""
    a, b, c = (there - here for here, there in zip(first, second, strict=True))
    d, e, f = (there - here for here, there in zip(first, third, strict=True))
    x, y, z = b * f - c * e, c * d - a * f, a * e - b * d
    length = math.hypot(x, y, z)
    return x / length, y / length, z / length


def pick_colour(seed: int, lightness: float) -> Colour:
    """A lively colour; neighbouring seeds are far apart."""
    red, green, blue = colorsys.hls_to_rgb(seed * 0.618034 % 1, lightness, 0.65)
    return int(red * 255), int(green * 255), int(blue * 255)


def draw_gradient(seed: int, width: int, height: int) -> Image.Image:
    """A dark shade of the seed's colour above, a light one below."""
    ramp = Image.linear_gradient("L").resize((width, height))
    dark, light = pick_colour(seed, lightness=0.25), pick_colour(seed, lightness=0.85)
    return ImageOps.colorize(ramp, dark, light)


def encode_png(picture: Image.Image) -> bytes:
    """The picture's bytes."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


# -- the file


def pack(kind: str, *rows: Iterable[float]) -> bytes:
    """Rows of numbers of one kind, one after the other."""
    numbers = list(chain.from_iterable(rows))
    return struct.pack(f"<{len(numbers)}{kind}", *numbers)


def pack_glb(document: dict[str, Any], blocks: list[bytes]) -> bytes:
    """The GLB of a document and its data, one buffer view for each block."""
    views: list[dict[str, int]] = []
    binary = b""
    for block in blocks:
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(block)})
        binary += block + b"\0" * (-len(block) % 4)
    document |= {"buffers": [{"byteLength": len(binary)}], "bufferViews": views}
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


# -- the test card


def draw_test_card(width: int, height: int, frames: int, seed: int) -> Iterator[av.VideoFrame]:
    """Yield the frames. All lines of a zone are equal, so a frame is two lines, each repeated."""
    turn = seed % len(BAR_COLOURS)
    bars = [to_video_colour(colour) for colour in BAR_COLOURS[turn:] + BAR_COLOURS[:turn]]
    tint = to_video_colour(pick_colour(seed, lightness=0.5))
    upper = height * 7 // 10 & ~1  # even, since colour has half the lines
    lower = height - upper
    stripes = draw_stripes([luma for luma, _, _ in bars], width)
    ramp = bytes(16 + 219 * column // width for column in range(width))
    band = width // 8
    for number in range(frames):
        start, shift = (width + band) * number // frames - band, width * number // frames
        frame = av.VideoFrame(width, height, "yuv420p")
        brightness, *chroma = frame.planes
        scrolled = ramp[shift:] + ramp[:shift]
        fill(brightness, (brighten(stripes, start, band), upper), (brighten(scrolled, start, band), lower))
        for part, plane in enumerate(chroma, start=1):
            colours = draw_stripes([bar[part] for bar in bars], plane.width)
            fill(plane, (colours, upper // 2), (bytes([tint[part]]) * plane.width, lower // 2))
        frame.pts, frame.time_base = number, Fraction(1, FRAMES_PER_SECOND)
        yield frame


def to_video_colour(colour: Colour) -> Colour:
    """Red, green, blue as brightness, blueness, redness by BT.709."""
    red, green, blue = (part / 255 for part in colour)
    luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return (
        round(16 + 219 * luma),
        round(128 + 224 * (blue - luma) / 1.8556),
        round(128 + 224 * (red - luma) / 1.5748),
    )


def draw_stripes(values: Sequence[int], width: int) -> bytes:
    """One line of equally wide stripes."""
    return bytes(values[column * len(values) // width] for column in range(width))


def brighten(line: bytes, start: int, band: int) -> bytes:
    """The line, brighter from `start` on for a band's width."""
    first, last = max(0, start), max(0, start + band)
    return line[:first] + line[first:last].translate(BRIGHTER) + line[last:]


def fill(plane: VideoPlane, *zones: tuple[bytes, int]) -> None:
    """Fill a plane with lines, each repeated so many times."""
    lines = b"".join(line.ljust(plane.line_size, b"\0") * count for line, count in zones)
    plane.update(lines.ljust(plane.buffer_size, b"\0"))
