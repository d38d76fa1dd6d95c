"""Opens GLB models and checks that all of them is there."""

import base64
import io
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

import msgspec

from penstock.domain.files import Clip, MeshFacts
from penstock.inspection.meshes.buffers import FileRegion, NumberTable
from penstock.inspection.meshes.document import (
    COLUMNS,
    FORMATS,
    LARGEST,
    STRIP,
    TRIANGLES,
    GltfAccessor,
    GltfBuffer,
    GltfDocument,
    GltfMesh,
    GltfPrimitive,
    GltfView,
    measure_element,
    pick,
    split_glb,
)
from penstock.inspection.meshes.pose import (
    IDENTITY,
    Box,
    Matrix,
    join_boxes,
    list_shown,
    measure_box,
    move_box,
    multiply,
    read_columns,
)
from penstock.inspection.meshes.surface import MAX_JOINED_FACES, Seam, cut_strip

MAX_READ = 4
"""Times that the bytes of the file may be read for its accessors: they may overlap, but hardly ever do."""
MAX_CLIPS, MAX_CLIP_NAME = 100, 80
MAX_PLACED = 50_000
"""Meshes in a scene whose box is measured."""
INDEX_TYPES = (5121, 5123, 5125)
DRACO, MESHOPT, NGONS = "KHR_draco_mesh_compression", "EXT_meshopt_compression", "FB_ngon_encoding"


def open_glb(file: IO[bytes], size: int) -> tuple[int, int, MeshFacts]:
    """Return faces, vertices and the other facts of a file of that size; raise a ValueError with the first problem."""
    return _Model(file, size).measure()


class _Model:
    """A GLB. Its parts are looked at one after the other, never by recursion, and its bytes are read in windows.

    An accessor is read once, however many parts of meshes share it, and all of them for so many bytes in total.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._readable = MAX_READ * size
        self._ranges: dict[int, Box | None] = {}
        self._largest: dict[int, int] = {}
        self._last: dict[int, float] = {}
        text, self._binary = split_glb(file, size)
        self._document = document = msgspec.json.decode(text, type=GltfDocument)
        self._buffers = [self._open_buffer(number, buffer) for number, buffer in enumerate(document.buffers)]
        self._views = [self._open_view(f"buffer view {n}", view) for n, view in enumerate(document.buffer_views)]
        for number, accessor in enumerate(document.accessors):
            self._check_accessor(f"accessor {number}", accessor)

    def measure(self) -> tuple[int, int, MeshFacts]:
        """Return faces, vertices and the other facts, with each mesh counted as often as it is shown."""
        document = self._document
        sizes = [self._measure_mesh(f"mesh {number}", mesh) for number, mesh in enumerate(document.meshes)]
        shown = [(pick(sizes, number, "mesh"), move) for number, move in self._list_meshes()]
        box = _surround([(box, move) for (faces, _, box), move in shown if faces])
        watertight, quads = self._check_surfaces()
        mesh = MeshFacts(
            format="glb",
            size=None if box is None else measure_box(box),
            unit="meter",
            has_uv=all("TEXCOORD_0" in part.attributes for mesh in document.meshes for part in _list_solid(mesh)),
            is_watertight=watertight,
            quads=quads,
            materials=len(document.materials),
            textures=len(document.textures),
            skins=len(document.skins),
            joints=self._count_joints(),
            clips=tuple(self._list_clips()),
        )
        return sum(size[0] for size, _ in shown), sum(size[1] for size, _ in shown), mesh

    def _open_buffer(self, number: int, buffer: GltfBuffer) -> FileRegion | None:
        """Return its bytes; None if it is a placeholder for compressed data."""
        if buffer.uri is None and number > 0:
            return None
        data = self._binary
        if buffer.uri is not None:
            start, _, text = buffer.uri.partition(",")
            if not start.startswith("data:"):
                raise ValueError(f"buffer {number} is in another file")
            decoded = base64.b64decode(text, validate=True)
            data = FileRegion(io.BytesIO(decoded), 0, len(decoded))
        if data.size < buffer.byte_length:
            raise ValueError(f"buffer {number} has {data.size} of its {buffer.byte_length} bytes")
        return data

    def _open_view(self, name: str, view: GltfView) -> FileRegion | None:
        """Return its bytes; None if they are compressed."""
        compressed = view.extensions.get(MESHOPT)
        region = view if compressed is None else msgspec.json.decode(compressed, type=GltfView)
        buffer = pick(self._buffers, region.buffer, f"{name}: buffer")
        end = region.byte_offset + region.byte_length
        if buffer is None or end > buffer.size:
            raise ValueError(f"{name} ends outside buffer {region.buffer}")
        return buffer.cut(region.byte_offset, end) if compressed is None else None

    def _check_accessor(self, name: str, accessor: GltfAccessor) -> None:
        if accessor.buffer_view is None:
            return
        view = pick(self._document.buffer_views, accessor.buffer_view, f"{name}: buffer view")
        size, stride = measure_element(accessor, view)
        end = accessor.byte_offset + stride * (accessor.count - 1) + size * COLUMNS[accessor.type]
        if end > view.byte_length or stride % size:
            raise ValueError(f"{name} does not fit buffer view {accessor.buffer_view}")

    def _find_table(self, number: int, *, again: bool = False) -> NumberTable | None:
        """Return an accessor's numbers, which are about to be read; None if they are compressed or sparse."""
        accessor = self._document.accessors[number]
        if accessor.buffer_view is None or accessor.sparse is not None:
            return None
        view = self._views[accessor.buffer_view]
        if view is None:
            return None
        size, stride = measure_element(accessor, self._document.buffer_views[accessor.buffer_view])
        columns = COLUMNS[accessor.type]
        self._readable -= 0 if again else accessor.count * columns * size
        if self._readable < 0:
            raise ValueError(f"its accessors refer to more than {MAX_READ} times the bytes of the file")
        region = view.cut(accessor.byte_offset, view.size)
        return NumberTable(region, FORMATS[accessor.component_type], size, stride, columns, accessor.count)

    # -- faces, vertices and size

    def _measure_mesh(self, name: str, mesh: GltfMesh) -> tuple[int, int, Box | None]:
        solid = _list_solid(mesh)
        faces = sum(self._count_faces(name, part) for part in solid)
        places = {part.attributes["POSITION"] for part in solid}
        boxes: list[Box | None] = []
        for number in places:
            if number not in self._ranges:
                self._ranges[number] = self._find_range(name, number)
            boxes.append(self._ranges[number])
        known = [box for box in boxes if box is not None]
        box = join_boxes(known) if len(known) == len(boxes) else None
        return faces, sum(self._document.accessors[number].count for number in places), box

    def _find_range(self, name: str, number: int) -> Box | None:
        """Return the box around positions, as far as it is known; raise if they are not numbers."""
        table, accessor = self._find_table(number), self._document.accessors[number]
        found = (accessor.min, accessor.max) if table is None else table.find_range()
        if found is None:
            raise ValueError(f"{name} has positions that are not finite numbers")
        low, high = found
        if len(low) != 3 or len(high) != 3:
            return None
        unit = LARGEST.get(accessor.component_type, 1) if accessor.normalized else 1
        return (low[0] / unit, low[1] / unit, low[2] / unit), (high[0] / unit, high[1] / unit, high[2] / unit)

    def _count_faces(self, name: str, part: GltfPrimitive) -> int:
        accessors, plain = self._document.accessors, DRACO not in part.extensions
        lengths = {pick(accessors, number, f"{name}: accessor").count for number in part.attributes.values()}
        places = accessors[part.attributes["POSITION"]]
        count = places.count
        if lengths != {count}:
            raise ValueError(f"{name} has attributes of different lengths: {min(lengths)} to {max(lengths)}")
        if places.type != "VEC3" or (plain and places.buffer_view is None and places.sparse is None):
            raise ValueError(f"{name} has positions of type {places.type} or without data")
        if part.indices is not None:
            count = pick(accessors, part.indices, f"{name}: accessor").count
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
        table = self._find_table(number)
        self._largest[number] = 0 if table is None else max(max(column) for (column,) in table.windows())
        return self._largest[number]

    def _list_meshes(self) -> Iterator[tuple[int, Matrix]]:
        """Yield the mesh of each node that is shown; without nodes each mesh."""
        document = self._document
        if not document.nodes:
            yield from ((number, IDENTITY) for number in range(len(document.meshes)))
        moves = dict(list_shown(document))
        for number, move in moves.items():
            if (mesh := document.nodes[number].mesh) is not None:
                yield mesh, self._find_pose(document.nodes[number].skin, move, moves)

    # -- surfaces

    def _check_surfaces(self) -> tuple[bool | None, int | None]:
        """Return whether all meshes are watertight, and the number of quads; None if they cannot be read."""
        parts = [part for mesh in self._document.meshes for part in _list_solid(mesh)]
        if not parts or sum(map(self._weigh, parts)) > MAX_JOINED_FACES:
            return None, None
        watertight, quads = True, 0
        for mesh in self._document.meshes:
            seam = Seam()
            for part in _list_solid(mesh):
                points, corners = self._read_part(part)
                if points is None or points.columns != 3 or not corners:
                    return None, None
                welded = seam.weld(point for window in points.windows() for point in zip(*window, strict=True))
                quads += _count_quads(corners) if NGONS in part.extensions else 0
                for face in _cut(corners, part.mode):
                    seam.add([welded[corner] for corner in face])
            watertight = watertight and (seam.is_watertight or not _list_solid(mesh))
        return watertight, quads

    def _weigh(self, part: GltfPrimitive) -> int:
        """Return the work of joining a part, in faces; shared data counts each time."""
        accessors = self._document.accessors
        count = accessors[part.attributes["POSITION"]].count
        return (count if part.indices is None else max(accessors[part.indices].count // 3, count // 3)) + 1

    def _read_part(self, part: GltfPrimitive) -> tuple[NumberTable | None, Sequence[int]]:
        """Return a part's positions and the corners of its faces; none of them if they are compressed."""
        if DRACO in part.extensions:
            return None, []
        points = self._find_table(part.attributes["POSITION"], again=True)
        if part.indices is None:
            return points, range(self._document.accessors[part.attributes["POSITION"]].count)
        indices = self._find_table(part.indices, again=True)
        return points, [] if indices is None else [index for (column,) in indices.windows() for index in column]

    # -- skeletons and clips

    def _find_pose(self, number: int | None, move: Matrix, moves: Mapping[int, Matrix]) -> Matrix:
        """Return where a mesh with this skin is shown. A skin moves it by its joints, not by its node."""
        if number is None:
            return move
        skin = pick(self._document.skins, number, "skin")
        above = moves.get(skin.joints[0]) if skin.joints else None
        if above is None or skin.inverse_bind_matrices is None:
            return above or move
        accessor = pick(self._document.accessors, skin.inverse_bind_matrices, "skin: accessor")
        table = self._find_table(skin.inverse_bind_matrices, again=True) if accessor.type == "MAT4" else None
        return above if table is None else multiply(above, read_columns([column[0] for column in table.read(0, 1)]))

    def _count_joints(self) -> int:
        joints = {joint for skin in self._document.skins for joint in skin.joints}
        if joints:
            pick(self._document.nodes, max(joints), "joint: node")
        return len(joints)

    def _list_clips(self) -> Iterator[Clip]:
        for number, clip in enumerate(self._document.animations[:MAX_CLIPS]):
            name = clip.name if isinstance(clip.name, str) and clip.name else f"clip {number}"
            times = [self._find_end(sampler.input) for sampler in clip.samplers]
            yield Clip(name[:MAX_CLIP_NAME], round(max(times, default=0.0), 3))

    def _find_end(self, number: int) -> float:
        """Return the last time of an animation's keys, in seconds."""
        if number not in self._last:
            accessor = pick(self._document.accessors, number, "animation: accessor")
            table = self._find_table(number) if accessor.type == "SCALAR" else None
            ends = accessor.max if table is None else table.read(table.rows - 1, table.rows)[0]
            end = float(max(ends, default=0.0))
            self._last[number] = end if math.isfinite(end) and end > 0 else 0.0
        return self._last[number]


def _list_solid(mesh: GltfMesh) -> list[GltfPrimitive]:
    """Return the parts of a mesh that have faces."""
    return [part for part in mesh.primitives if "POSITION" in part.attributes and part.mode >= TRIANGLES]


def _cut(corners: Sequence[int], mode: int) -> Iterator[Sequence[int]]:
    if mode == TRIANGLES:
        return zip(*[iter(corners)] * 3, strict=True)
    return cut_strip(corners, fan=mode > STRIP)


def _count_quads(corners: Sequence[int]) -> int:
    """Return the number of quads: two triangles in a row that begin at one corner."""
    runs = (len(list(run)) for _, run in itertools.groupby(corners[::3]))
    return sum(run == 2 for run in runs)


def _surround(shown: Sequence[tuple[Box | None, Matrix]]) -> Box | None:
    """Return the box around what is shown; None if a part of it is unknown, or if it is in too many parts."""
    boxes = [move_box(box, move) for box, move in shown[:MAX_PLACED] if box is not None]
    return join_boxes(boxes) if len(boxes) == len(shown) else None
