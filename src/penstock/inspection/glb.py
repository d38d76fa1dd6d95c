"""Opens GLB models to prove that they are what they should be; blocking, for the process pool."""

import base64
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar, cast

import msgspec

from penstock.domain.files import Count, Source, opened, size_of
from penstock.domain.job_errors import BadOutput

T = TypeVar("T")

MAX_MODEL_BYTES = 512 * 1024 * 1024
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
FACE_TOLERANCE = 0.05

MAX_CHUNKS = 100
"""Of the file; readers know two."""
MAX_READ = 4
"""Times that the bytes of the file may be read for its accessors: they may overlap, but hardly ever do."""

Whole = Annotated[int, msgspec.Meta(ge=0, le=2**32)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**32)]
FORMATS = {5120: "b", 5121: "B", 5122: "h", 5123: "H", 5125: "I", 5126: "f"}
COLUMNS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
TRIANGLES, INDEX_TYPES = 4, (5121, 5123, 5125)
DRACO, MESHOPT = "KHR_draco_mesh_compression", "EXT_meshopt_compression"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts found by opening a 3D model."""

    faces: Count
    vertices: Count
    warnings: tuple[str, ...] = ()


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a glTF document; unneeded fields are ignored."""

    extensions: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict[str, msgspec.Raw])


class _Buffer(_Part, frozen=True, kw_only=True):
    byte_length: Positive
    uri: str | None = None


class _View(_Part, frozen=True, kw_only=True):
    buffer: Whole
    byte_length: Positive
    byte_offset: Whole = 0
    byte_stride: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None


class _Accessor(_Part, frozen=True, kw_only=True):
    component_type: Literal[5120, 5121, 5122, 5123, 5125, 5126]
    count: Positive
    type: Literal["SCALAR", "VEC2", "VEC3", "VEC4", "MAT2", "MAT3", "MAT4"]
    buffer_view: Whole | None = None
    byte_offset: Whole = 0
    sparse: msgspec.Raw | None = None


class _Primitive(_Part, frozen=True, kw_only=True):
    attributes: dict[str, Whole]
    indices: Whole | None = None
    mode: Annotated[int, msgspec.Meta(ge=0, le=6)] = TRIANGLES


class _Mesh(_Part, frozen=True, kw_only=True):
    primitives: tuple[_Primitive, ...]


class _Node(_Part, frozen=True):
    mesh: Whole | None = None
    children: tuple[Whole, ...] = ()


class _Scene(_Part, frozen=True):
    nodes: tuple[Whole, ...] = ()


class _Document(_Part, frozen=True, kw_only=True):
    asset: dict[str, msgspec.Raw]
    buffers: tuple[_Buffer, ...] = ()
    buffer_views: tuple[_View, ...] = ()
    accessors: tuple[_Accessor, ...] = ()
    meshes: tuple[_Mesh, ...] = ()
    nodes: tuple[_Node, ...] = ()
    scenes: tuple[_Scene, ...] = ()
    scene: Whole = 0


def inspect_model(source: Source, face_limit: int | None) -> ModelFacts:
    """Count the faces and vertices that a GLB shows, after checking that all of it is there."""
    with opened(source) as file:
        if (size := size_of(file)) > MAX_MODEL_BYTES:
            raise BadOutput(f"The output has {size} bytes; at most {MAX_MODEL_BYTES} are allowed.")
        data = file.read()
    try:
        faces, vertices = _Model(data).measure()
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise BadOutput(f"The model is not a valid GLB: {error}.") from error
    if faces == 0:
        raise BadOutput("The model has no faces.")
    if face_limit is None or faces <= face_limit:
        return ModelFacts(faces, vertices)
    message = f"The model has {faces} faces; at most {face_limit} were asked for."
    if faces > face_limit * (1 + FACE_TOLERANCE):
        raise BadOutput(message)
    return ModelFacts(faces, vertices, (message,))


class _Model:
    """A GLB. Its parts are looked at one after the other, never by recursion, and its bytes are not copied.

    An accessor is read once, however many parts of meshes share it, and all of them for so many bytes in total.
    """

    def __init__(self, data: bytes) -> None:
        self._readable = MAX_READ * len(data)
        self._finite: dict[int, bool] = {}
        self._largest: dict[int, int] = {}
        text, self._binary = _split_glb(data)
        self._document = document = msgspec.json.decode(text, type=_Document)
        self._buffers = [self._open_buffer(number, buffer) for number, buffer in enumerate(document.buffers)]
        self._views = [self._open_view(f"buffer view {n}", view) for n, view in enumerate(document.buffer_views)]
        for number, accessor in enumerate(document.accessors):
            self._check_accessor(f"accessor {number}", accessor)

    def measure(self) -> tuple[int, int]:
        """Return faces and vertices, with each mesh counted as often as it is shown."""
        sizes = [self._measure_mesh(f"mesh {number}", mesh) for number, mesh in enumerate(self._document.meshes)]
        shown = [_pick(sizes, number, "mesh") for number in self._list_meshes()]
        return sum(faces for faces, _ in shown), sum(vertices for _, vertices in shown)

    def _open_buffer(self, number: int, buffer: _Buffer) -> memoryview | None:
        """Return its bytes; None if it is a placeholder for compressed data."""
        if buffer.uri is None and number > 0:
            return None
        data = self._binary
        if buffer.uri is not None:
            start, _, text = buffer.uri.partition(",")
            if not start.startswith("data:"):
                raise ValueError(f"buffer {number} is in another file")
            data = memoryview(base64.b64decode(text, validate=True))
        if len(data) < buffer.byte_length:
            raise ValueError(f"buffer {number} has {len(data)} of its {buffer.byte_length} bytes")
        return data

    def _open_view(self, name: str, view: _View) -> memoryview | None:
        """Return its bytes; None if they are compressed."""
        compressed = view.extensions.get(MESHOPT)
        region = view if compressed is None else msgspec.json.decode(compressed, type=_View)
        buffer = _pick(self._buffers, region.buffer, f"{name}: buffer")
        end = region.byte_offset + region.byte_length
        if buffer is None or end > len(buffer):
            raise ValueError(f"{name} ends outside buffer {region.buffer}")
        return buffer[region.byte_offset : end] if compressed is None else None

    def _check_accessor(self, name: str, accessor: _Accessor) -> None:
        if accessor.buffer_view is None:
            return
        view = _pick(self._document.buffer_views, accessor.buffer_view, f"{name}: buffer view")
        size, stride = _measure_element(accessor, view)
        end = accessor.byte_offset + stride * (accessor.count - 1) + size * COLUMNS[accessor.type]
        if end > view.byte_length or stride % size:
            raise ValueError(f"{name} does not fit buffer view {accessor.buffer_view}")

    def _read(self, number: int) -> list[memoryview]:
        """Return an accessor's numbers by column; none where they are compressed or sparse."""
        accessor = self._document.accessors[number]
        if accessor.buffer_view is None or accessor.sparse is not None:
            return []
        data = self._views[accessor.buffer_view]
        if data is None:
            return []
        size, stride = _measure_element(accessor, self._document.buffer_views[accessor.buffer_view])
        columns = COLUMNS[accessor.type]
        self._readable -= accessor.count * columns * size
        if self._readable < 0:
            raise ValueError(f"its accessors refer to more than {MAX_READ} times the bytes of the file")
        end = accessor.byte_offset + stride * (accessor.count - 1) + size * columns
        kind = cast('Literal["B"]', FORMATS[accessor.component_type])  # the stubs want one literal
        numbers = data[accessor.byte_offset : end].cast(kind)
        return [numbers[column :: stride // size] for column in range(columns)]

    def _measure_mesh(self, name: str, mesh: _Mesh) -> tuple[int, int]:
        solid = [part for part in mesh.primitives if "POSITION" in part.attributes and part.mode >= TRIANGLES]
        faces = sum(self._count_faces(name, part) for part in solid)
        places = {part.attributes["POSITION"] for part in solid}
        for number in places:
            if number not in self._finite:
                self._finite[number] = all(math.isfinite(sum(column)) for column in self._read(number))
            if not self._finite[number]:
                raise ValueError(f"{name} has positions that are not finite numbers")
        return faces, sum(self._document.accessors[number].count for number in places)

    def _count_faces(self, name: str, part: _Primitive) -> int:
        accessors, plain = self._document.accessors, DRACO not in part.extensions
        lengths = {_pick(accessors, number, f"{name}: accessor").count for number in part.attributes.values()}
        places = accessors[part.attributes["POSITION"]]
        count = places.count
        if lengths != {count}:
            raise ValueError(f"{name} has attributes of different lengths: {min(lengths)} to {max(lengths)}")
        if places.type != "VEC3" or (plain and places.buffer_view is None and places.sparse is None):
            raise ValueError(f"{name} has positions of type {places.type} or without data")
        if part.indices is not None:
            count = _pick(accessors, part.indices, f"{name}: accessor").count
            largest = self._find_largest(part.indices) if plain else 0
            if largest >= places.count:
                raise ValueError(f"{name} has the index {largest}, but only {places.count} vertices")
        if part.mode > TRIANGLES:  # strips and fans
            return max(0, count - 2)
        if count % 3:
            raise ValueError(f"{name} has {count} corners, which are not whole triangles")
        return count // 3

    def _find_largest(self, number: int) -> int:
        if number in self._largest:
            return self._largest[number]
        accessor = self._document.accessors[number]
        if accessor.type != "SCALAR" or accessor.component_type not in INDEX_TYPES:
            raise ValueError(f"accessor {number} cannot hold indices")
        self._largest[number] = max((max(column) for column in self._read(number)), default=0)
        return self._largest[number]

    def _list_meshes(self) -> Iterator[int]:
        """Yield the mesh of each node of the scene; without a scene of each node, without nodes each mesh."""
        nodes, scenes = self._document.nodes, self._document.scenes
        if not nodes:
            yield from range(len(self._document.meshes))
        waiting = list(_pick(scenes, self._document.scene, "scene").nodes) if scenes else list(range(len(nodes)))
        seen: set[int] = set()
        while waiting:
            number = waiting.pop()
            node = _pick(nodes, number, "node")
            if number in seen:
                raise ValueError(f"node {number} is reached twice")
            seen.add(number)
            waiting += node.children if scenes else ()
            if node.mesh is not None:
                yield node.mesh


def _measure_element(accessor: _Accessor, view: _View) -> tuple[int, int]:
    """Return the bytes of one number, and those from one element to the next."""
    size = struct.calcsize(FORMATS[accessor.component_type])
    return size, view.byte_stride or size * COLUMNS[accessor.type]


def _pick(parts: Sequence[T], number: int, name: str) -> T:
    if number >= len(parts):
        raise ValueError(f"{name} {number} does not exist; there are {len(parts)}")
    return parts[number]


def _split_glb(data: bytes) -> tuple[memoryview, memoryview]:
    """Return the JSON and the binary chunk."""
    if len(data) < 12 or data[:4] != b"glTF":
        raise ValueError("it does not start with a GLB header")
    version, length = struct.unpack_from("<II", data, 4)
    if (version, length) != (2, len(data)):
        raise ValueError(f"its header says version {version} and {length} bytes; it has {len(data)} bytes")
    chunks: list[tuple[bytes, memoryview]] = []
    rest = memoryview(data)[12:]
    for _ in range(MAX_CHUNKS):
        if not rest:
            break
        end = 8 + int.from_bytes(rest[:4], "little")
        if end > len(rest):
            raise ValueError("a chunk ends outside the file")
        chunks += [(bytes(rest[4:8]), rest[8:end])] if len(chunks) < 2 else []  # later ones mean nothing
        rest = rest[end:]
    if rest:
        raise ValueError(f"it has more than {MAX_CHUNKS} chunks")
    chunks += [(b"", rest)] * 2  # stand in for chunks that are not there
    (kind, text), (second_kind, binary) = chunks[:2]
    if kind != b"JSON" or len(text) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"it does not begin with a JSON chunk of at most {MAX_DOCUMENT_BYTES} bytes")
    return text, binary if second_kind == b"BIN\0" else rest
