"""The parts of a glTF document that are looked at, and the frame of a GLB around it."""

import struct
from collections.abc import Sequence
from typing import IO, Annotated, Any, Literal, TypeVar

import msgspec

from penstock.inspection.meshes.buffers import FileRegion

T = TypeVar("T")

HEAD_BYTES = 12
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
MAX_CHUNKS = 100
"""Of the file; readers know two."""

Whole = Annotated[int, msgspec.Meta(ge=0, le=2**32)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**32)]
Vector = tuple[float, float, float]
FORMATS = {5120: "b", 5121: "B", 5122: "h", 5123: "H", 5125: "I", 5126: "f"}
LARGEST = {5120: 127, 5121: 255, 5122: 32767, 5123: 65535}
"""The integer that stands for 1 in a normalized accessor."""
COLUMNS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
TRIANGLES = 4
STRIP = 5


class GltfPart(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a glTF document; unneeded fields are ignored."""

    extensions: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict[str, msgspec.Raw])


class GltfBuffer(GltfPart, frozen=True, kw_only=True):
    """A block of bytes."""

    byte_length: Positive
    uri: str | None = None


class GltfView(GltfPart, frozen=True, kw_only=True):
    """A part of a buffer."""

    buffer: Whole
    byte_length: Positive
    byte_offset: Whole = 0
    byte_stride: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None


class GltfAccessor(GltfPart, frozen=True, kw_only=True):
    """A table of numbers in a view."""

    component_type: Literal[5120, 5121, 5122, 5123, 5125, 5126]
    count: Positive
    type: Literal["SCALAR", "VEC2", "VEC3", "VEC4", "MAT2", "MAT3", "MAT4"]
    buffer_view: Whole | None = None
    byte_offset: Whole = 0
    normalized: bool = False
    sparse: msgspec.Raw | None = None
    min: tuple[float, ...] = ()
    max: tuple[float, ...] = ()


class GltfPrimitive(GltfPart, frozen=True, kw_only=True):
    """A part of a mesh with one material."""

    attributes: dict[str, Whole]
    indices: Whole | None = None
    mode: Annotated[int, msgspec.Meta(ge=0, le=6)] = TRIANGLES


class GltfMesh(GltfPart, frozen=True, kw_only=True):
    """A mesh."""

    primitives: tuple[GltfPrimitive, ...]


class GltfNode(GltfPart, frozen=True):
    """A place in the scene."""

    mesh: Whole | None = None
    skin: Whole | None = None
    children: tuple[Whole, ...] = ()
    matrix: tuple[float, ...] | None = None
    translation: Vector = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    scale: Vector = (1.0, 1.0, 1.0)


class GltfScene(GltfPart, frozen=True):
    """The nodes that are shown."""

    nodes: tuple[Whole, ...] = ()


class GltfSkin(GltfPart, frozen=True, kw_only=True):
    """A skeleton bound to a mesh."""

    joints: tuple[Whole, ...]
    inverse_bind_matrices: Whole | None = None


class GltfSampler(GltfPart, frozen=True, kw_only=True):
    """The keys of an animated value; `input` is the accessor of their times."""

    input: Whole


class GltfAnimation(GltfPart, frozen=True, kw_only=True):
    """A clip."""

    samplers: tuple[GltfSampler, ...] = ()
    name: Any = None


class GltfDocument(GltfPart, frozen=True, kw_only=True):
    """A whole document."""

    asset: dict[str, msgspec.Raw]
    buffers: tuple[GltfBuffer, ...] = ()
    buffer_views: tuple[GltfView, ...] = ()
    accessors: tuple[GltfAccessor, ...] = ()
    meshes: tuple[GltfMesh, ...] = ()
    nodes: tuple[GltfNode, ...] = ()
    scenes: tuple[GltfScene, ...] = ()
    scene: Whole = 0
    skins: tuple[GltfSkin, ...] = ()
    animations: tuple[GltfAnimation, ...] = ()
    materials: tuple[msgspec.Raw, ...] = ()
    textures: tuple[msgspec.Raw, ...] = ()


def measure_element(accessor: GltfAccessor, view: GltfView) -> tuple[int, int]:
    """Return the bytes of one number, and those from one element to the next."""
    size = struct.calcsize(FORMATS[accessor.component_type])
    return size, view.byte_stride or size * COLUMNS[accessor.type]


def pick(parts: Sequence[T], number: int, name: str) -> T:
    """Return the part with this number, or say that there is none."""
    if number >= len(parts):
        raise ValueError(f"{name} {number} does not exist; there are {len(parts)}")
    return parts[number]


def split_glb(file: IO[bytes], size: int) -> tuple[bytes, FileRegion]:
    """Return the JSON of a file of that size, and its binary chunk."""
    whole = FileRegion(file, 0, size)
    if size < HEAD_BYTES or (head := whole.read(0, HEAD_BYTES))[:4] != b"glTF":
        raise ValueError("it does not start with a GLB header")
    version, length = struct.unpack_from("<II", head, 4)
    if (version, length) != (2, size):
        raise ValueError(f"its header says version {version} and {length} bytes; it has {size} bytes")
    nothing = whole.cut(size, size)
    (kind, text), (second_kind, binary), *_ = [*_list_chunks(whole), (b"", nothing), (b"", nothing)]
    if kind != b"JSON" or text.size > MAX_DOCUMENT_BYTES:
        raise ValueError(f"it does not begin with a JSON chunk of at most {MAX_DOCUMENT_BYTES} bytes")
    return text.read(0, text.size), binary if second_kind == b"BIN\0" else nothing


def _list_chunks(whole: FileRegion) -> list[tuple[bytes, FileRegion]]:
    """Return the chunks of a GLB by their kinds."""
    chunks: list[tuple[bytes, FileRegion]] = []
    place = HEAD_BYTES
    while place < whole.size:
        if len(chunks) == MAX_CHUNKS:
            raise ValueError(f"it has more than {MAX_CHUNKS} chunks")
        head = whole.read(place, min(place + 8, whole.size))
        end = place + 8 + int.from_bytes(head[:4], "little")
        if end > whole.size:
            raise ValueError("a chunk ends outside the file")
        chunks.append((head[4:], whole.cut(place + 8, end)))
        place = end
    return chunks
