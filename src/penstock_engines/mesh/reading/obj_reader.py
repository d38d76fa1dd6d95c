"""Opens OBJ models, alone or in a zip with their materials and textures."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock_engines.mesh.reading.usd_reader import read_usd
from penstock_engines.mesh.solid import MAX_FACES, Floats, Material, Piece, Solid, Texture, check_size, join
from penstock_engines.product import Unable

MAX_ENTRIES: Final = 1000
MAX_ENTRY_BYTES: Final = 160 * 1024 * 1024
MAX_UNPACKED_BYTES: Final = 400 * 1024 * 1024
MAX_CORNERS: Final = 1000
"""Of one face."""
ROUGHNESS: Final = 0.6


def read_zip(data: bytes) -> Solid:
    """Return the only OBJ in a zip, with the materials and textures beside it, or the scene of a USDZ."""
    files = unpack(data)
    if any(name.endswith((".usda", ".usdc", ".usd")) for name in files):
        return read_usd(files)
    models = [name for name in files if name.endswith(".obj")]
    if len(models) != 1:
        raise Unable(f"The zip holds {len(models)} OBJ files: exactly one is allowed.")
    return read_obj(files[models[0]], files)


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files of a zip by name in small letters, without their folders."""
    files: dict[str, bytes] = {}
    left = MAX_UNPACKED_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > left:
                raise Unable(
                    f"The zip is too large: at most {MAX_ENTRIES} files of {left >> 20} MB in all are allowed."
                )
            for entry in entries:
                with archive.open(entry) as file:
                    content = file.read(min(left, MAX_ENTRY_BYTES) + 1)
                if len(content) > min(left, MAX_ENTRY_BYTES):
                    raise Unable(f"A file in the zip has more than {MAX_ENTRY_BYTES >> 20} MB.")
                left -= len(content)
                files[PurePosixPath(entry.filename.replace("\\", "/")).name.lower()] = content
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise Unable("The zip of the 3D model is damaged.") from error
    return files


def read_obj(data: bytes, files: Mapping[str, bytes] | None = None) -> Solid:
    """Return an OBJ. `files` are those beside it, by name in small letters."""
    reader = _Reader(files or {})
    for line in data.splitlines():
        reader.read_line(line)
    return reader.finish()


class _Reader:
    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._points: list[list[float]] = []
        self._places: list[list[float]] = []
        self._normals: list[list[float]] = []
        self._faces: dict[str, list[int]] = {}
        """For each material, the numbers of position, texture place and normal of all corners; -1 for none."""
        self._corners = self._faces.setdefault("", [])
        self._count = 0
        self._materials: dict[str, Material] = {}
        self._warnings: dict[str, None] = {}

    def read_line(self, line: bytes) -> None:
        words = line.split()
        match words[:1]:
            case [b"v"]:
                self._points.append([float(word) for word in words[1:7]])
            case [b"vt"]:
                self._places.append([float(words[1]), 1 - float(words[2]) if len(words) > 2 else 0.0])
            case [b"vn"]:
                self._normals.append([float(word) for word in words[1:4]])
            case [b"f"]:
                self._add_face(words[1:])
            case [b"usemtl"]:
                self._corners = self._faces.setdefault(_join(words[1:]), [])
            case [b"mtllib"]:
                self._materials |= self._read_materials(_join(words[1:]))
            case _:
                pass

    def finish(self) -> Solid:
        check_size(self._count, len(self._points))
        if not self._points:
            raise Unable("The OBJ has no vertices.")
        points = np.array([point[:3] for point in self._points], np.float64).reshape(-1, 3)
        tints = None
        if all(len(point) == 6 for point in self._points):
            tints = np.clip(np.array([point[3:] for point in self._points]), 0, 1) ** 2.2
        places = np.array(self._places, np.float64).reshape(-1, 2)
        normals = np.array(self._normals, np.float64).reshape(-1, 3)
        pieces: list[Piece] = []
        materials: list[Material] = []
        for name, numbers in self._faces.items():
            if numbers:
                corners = np.array(numbers, np.int64).reshape(-1, 3)
                pieces.append(_take(corners, points, places, normals, tints, len(materials)))
                materials.append(self._materials.get(name, Material(name=name or "surface")))
        return join(pieces, materials, list(self._warnings))

    def _add_face(self, words: list[bytes]) -> None:
        if not 3 <= len(words) <= MAX_CORNERS:
            raise Unable(f"The OBJ has a face of {len(words)} corners: 3 to {MAX_CORNERS} are allowed.")
        counts = (len(self._points), len(self._places), len(self._normals))
        ring: list[list[int]] = []
        for word in words:
            parts = word.split(b"/")
            ring.append([_number(parts[n], counts[n]) if len(parts) > n else -1 for n in range(3)])
        for second, third in pairwise(ring[1:]):
            self._corners += ring[0]
            self._corners += second
            self._corners += third
        self._count += len(ring) - 2
        if self._count > MAX_FACES:
            check_size(self._count, 0)

    def _read_materials(self, name: str) -> dict[str, Material]:
        data = self._files.get(PurePosixPath(name.replace("\\", "/")).name.lower())
        if data is None:
            self._warnings["The OBJ comes without its materials: give a zip of the OBJ, its MTL and its textures."] = (
                None
            )
            return {}
        return {material.name: material for material in self._list_materials(data)}

    def _list_materials(self, data: bytes) -> Iterator[Material]:
        entries: list[dict[str, list[bytes]]] = []
        for line in data.splitlines():
            words = line.split()
            if words[:1] == [b"newmtl"]:
                entries.append({"newmtl": words[1:]})
            elif words and entries:
                entries[-1][words[0].decode(errors="replace").lower()] = words[1:]
        for entry in entries:
            texture = self._find_texture(entry.get("map_kd"))
            red, green, blue = (float(np.clip(float(word), 0, 1)) for word in entry.get("kd", [b"1"] * 3)[:3])
            yield Material(
                name=_join(entry["newmtl"])[:80],
                colour=(1.0, 1.0, 1.0) if texture and red + green + blue == 0 else (red, green, blue),
                roughness=float(np.clip(float(entry.get("pr", [str(ROUGHNESS).encode()])[0]), 0, 1)),
                metallic=float(np.clip(float(entry.get("pm", [b"0"])[0]), 0, 1)),
                texture=texture,
                normal=self._find_texture(entry.get("norm")),
            )

    def _find_texture(self, words: list[bytes] | None) -> Texture | None:
        if not words:
            return None
        name = PurePosixPath(words[-1].decode(errors="replace").replace("\\", "/")).name.lower()
        data = self._files.get(name)
        if data is None:
            self._warnings[f"The texture {name[:80]} was left out, as it is not in the zip."] = None
            return None
        if not data.startswith((b"\x89PNG", b"\xff\xd8", b"RIFF")):
            self._warnings[f"The texture {name[:80]} was left out: PNG, JPEG and WebP are read."] = None
            return None
        return Texture(data)


def _join(words: list[bytes]) -> str:
    return b" ".join(words).decode(errors="replace")


def _number(word: bytes, count: int) -> int:
    """Return the position that a corner names: from 1 on, or from the end if it is negative."""
    if not word:
        return -1
    number = int(word)
    number = number - 1 if number > 0 else count + number
    if not 0 <= number < count:
        raise Unable("The 3D model is damaged: a face names a vertex that does not exist.")
    return number


def _take(
    corners: NDArray[np.int64], points: Floats, places: Floats, normals: Floats, tints: Floats | None, material: int
) -> Piece:
    """Return the faces of these corners: one vertex for each combination of position, texture place and normal."""
    wide = (max(len(places), 1) + 1, max(len(normals), 1) + 1)
    keys = (corners[:, 0] * wide[0] + corners[:, 1] + 1) * wide[1] + corners[:, 2] + 1
    _, first, compact = np.unique(keys, return_index=True, return_inverse=True)
    used = corners[first]
    return Piece(
        points=points[used[:, 0]],
        faces=compact.reshape(-1, 3),
        normals=normals[used[:, 2]] if len(normals) and used[:, 2].min() >= 0 else None,
        places=places[used[:, 1]] if len(places) and used[:, 1].min() >= 0 else None,
        tints=None if tints is None else tints[used[:, 0]],
        material=material,
    )
