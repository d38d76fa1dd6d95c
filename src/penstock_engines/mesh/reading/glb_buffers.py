"""Reads the frame of a GLB and the tables of numbers in it."""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock_engines.product import Unable

TYPES: Final = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
LARGEST: Final = {5120: 127, 5121: 255, 5122: 32767, 5123: 65535}
"""The integer that stands for 1 in a normalized accessor."""
COLUMNS: Final = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
READABLE: Final = {
    "EXT_mesh_features",
    "EXT_texture_webp",
    "KHR_materials_pbrSpecularGlossiness",
    "KHR_mesh_quantization",
    "KHR_texture_basisu",
    "KHR_texture_transform",
}
"""Extensions that a reader may require. Those of materials are only left out."""
MAX_CHUNKS: Final = 100


class Buffers:
    """The document of a GLB with its bytes."""

    def __init__(self, data: bytes) -> None:
        text, self._binary = _split(data)
        self.document: Mapping[str, Any] = json.loads(text)
        required = set(self.document.get("extensionsRequired", ()))
        unknown = sorted(
            name for name in required - READABLE if not name.startswith(("KHR_materials_", "KHR_lights_", "FB_"))
        )
        if unknown:
            raise Unable(
                f"The GLB needs {', '.join(map(str, unknown))}, which the built-in engine cannot read: "
                "give an uncompressed GLB."
            )

    def list(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return all parts of one kind, such as `meshes`."""
        return self.document.get(name, ())

    def pick(self, name: str, number: int) -> Mapping[str, Any]:
        """Return one of the parts of a kind."""
        return self.list(name)[number]

    def view(self, number: int) -> memoryview:
        """Return the bytes of a buffer view."""
        view = self.pick("bufferViews", number)
        if "EXT_meshopt_compression" in view.get("extensions", {}):
            raise Unable("The GLB is compressed by meshopt, which the built-in engine cannot read.")
        source = self.pick("buffers", view["buffer"])
        data = self._binary if "uri" not in source else decode_uri(source["uri"])
        start = int(view.get("byteOffset", 0))
        part = memoryview(data)[start : start + int(view["byteLength"])]
        if start < 0 or len(part) != view["byteLength"]:
            raise ValueError("a buffer view ends outside the file")
        return part

    def table(self, number: int) -> NDArray[np.float64]:
        """Return an accessor's numbers: one row for each element."""
        accessor = self.pick("accessors", number)
        count, columns = int(accessor["count"]), COLUMNS[accessor["type"]]
        kind = np.dtype(TYPES[accessor["componentType"]])
        if count < 0 or count * columns > 100_000_000:
            raise ValueError("an accessor is too long")
        values = np.zeros((count, columns), kind)
        if "bufferView" in accessor:
            view = self.pick("bufferViews", accessor["bufferView"])
            stride = int(view.get("byteStride", 0)) or kind.itemsize * columns
            data, offset = self.view(accessor["bufferView"]), int(accessor.get("byteOffset", 0))
            if offset < 0 or offset + stride * (count - 1) + kind.itemsize * columns > len(data):
                raise ValueError("an accessor does not fit its buffer view")
            values = np.ndarray((count, columns), kind, data, offset, (stride, kind.itemsize))
        if "sparse" in accessor:
            values = self._fill_in(values, accessor["sparse"])
        unit = LARGEST.get(accessor["componentType"], 1) if accessor.get("normalized") else 1
        return values.astype(np.float64) / unit if unit > 1 else values.astype(np.float64)

    def _fill_in(self, values: NDArray[Any], sparse: Mapping[str, Any]) -> NDArray[Any]:
        """Return the values with those of a sparse accessor in their places."""
        count, places, given = int(sparse["count"]), sparse["indices"], sparse["values"]
        numbers = np.frombuffer(
            self.view(places["bufferView"]), TYPES[places["componentType"]], count, int(places.get("byteOffset", 0))
        )
        fresh = np.frombuffer(
            self.view(given["bufferView"]), values.dtype, count * values.shape[1], int(given.get("byteOffset", 0))
        )
        filled = values.copy()
        filled[numbers] = fresh.reshape(count, -1)
        return filled


def decode_uri(uri: str) -> bytes:
    """Return the bytes of a `data:` URI."""
    head, _, text = uri.partition(",")
    if not head.startswith("data:"):
        raise Unable("The GLB refers to another file: give one that holds everything.")
    return base64.b64decode(text, validate=True)


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Return the JSON and the binary chunk."""
    version, length = struct.unpack_from("<II", data, 4)
    if data[:4] != b"glTF" or version != 2 or length > len(data):
        raise Unable("The GLB is not of version 2, or is cut off.")
    found: dict[bytes, bytes] = {}
    place = 12
    for _ in range(MAX_CHUNKS):
        if place + 8 > length:
            break
        size = int.from_bytes(data[place : place + 4], "little")
        found.setdefault(data[place + 4 : place + 8], data[place + 8 : place + 8 + size])
        place += 8 + size
    return found[b"JSON"], found.get(b"BIN\0", b"")
