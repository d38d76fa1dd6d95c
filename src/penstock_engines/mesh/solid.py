"""A 3D model in memory: triangles with normals, texture coordinates and materials."""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from penstock_engines.product import Unable

MAX_FACES = 2_000_000
MAX_POINTS = 3 * MAX_FACES
MAX_MATERIALS = 256
MAX_TEXTURE_PIXELS = 8192 * 8192
CREASE = np.cos(np.radians(40.0))
"""Faces that turn away further than this from the mean of their neighbours keep a sharp edge."""

Floats: TypeAlias = NDArray[np.float64]
Faces: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Texture:
    """An encoded picture: PNG, JPEG or WebP."""

    data: bytes

    @property
    def suffix(self) -> str:
        """Return the suffix of its format."""
        if self.data.startswith(b"\x89PNG"):
            return ".png"
        return ".webp" if self.data[8:12] == b"WEBP" else ".jpg"

    def decode(self, largest: int) -> NDArray[np.uint8]:
        """Return red, green, blue, with sides of at most `largest` pixels."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the size is checked below
            try:
                with Image.open(io.BytesIO(self.data), formats=("PNG", "JPEG", "WEBP")) as image:
                    if image.width * image.height > MAX_TEXTURE_PIXELS:
                        size = f"{image.width} x {image.height}"
                        raise Unable(f"A texture has {size} pixels: at most {MAX_TEXTURE_PIXELS} are allowed.")
                    image.draft("RGB", (largest, largest))
                    plain = image.convert("RGB")
            except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
                raise Unable("A texture of the 3D model is damaged: textures are PNG, JPEG or WebP.") from error
        plain.thumbnail((largest, largest), Image.Resampling.BOX)
        return np.asarray(plain, np.uint8)


@dataclass(frozen=True, slots=True)
class Material:
    """The look of a surface, with textures of glTF's conventions."""

    name: str = "surface"
    colour: tuple[float, float, float] = (0.72, 0.72, 0.74)
    """Linear. It multiplies the texture."""
    roughness: float = 0.6
    metallic: float = 0.0
    texture: Texture | None = None
    normal: Texture | None = None
    surface: Texture | None = None
    """Occlusion in red, roughness in green, metal in blue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solid:
    """A model: y up, front towards +z, counter-clockwise from outside. Vertices are split at seams of the texture."""

    points: Floats
    faces: Faces
    normals: Floats
    places: Floats | None
    """Texture coordinates from the upper left corner."""
    tints: Floats | None = None
    """Linear colours of the vertices, which multiply those of the material."""
    owners: NDArray[np.int64]
    """The number of each face's material."""
    materials: tuple[Material, ...]
    warnings: tuple[str, ...] = field(default=())

    @property
    def is_textured(self) -> bool:
        """Return whether a texture covers a part of it."""
        return self.places is not None and any(material.texture for material in self.materials)

    def bare(self) -> "Solid":
        """Return its surface alone, in one plain material."""
        return replace(self, places=None, tints=None, owners=np.zeros_like(self.owners), materials=(Material(),))

    def only(self, owner: int) -> "Solid":
        """Return the faces of one material."""
        used, compact = np.unique(self.faces[self.owners == owner], return_inverse=True)
        return replace(
            self,
            points=self.points[used],
            faces=compact.reshape(-1, 3),
            normals=self.normals[used],
            places=None if self.places is None else self.places[used],
            tints=None if self.tints is None else self.tints[used],
            owners=np.zeros(len(compact.reshape(-1, 3)), np.int64),
            materials=(self.materials[owner],),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a model with one material, as a file holds it."""

    points: Floats
    faces: Faces
    normals: Floats | None = None
    places: Floats | None = None
    tints: Floats | None = None
    material: int = 0


def join(pieces: Sequence[Piece], materials: Sequence[Material], warnings: Sequence[str] = ()) -> Solid:
    """Return the pieces as one model. Missing normals are computed, and faces without an area are removed."""
    check_size(sum(len(piece.faces) for piece in pieces), sum(len(piece.points) for piece in pieces))
    if len(materials) > MAX_MATERIALS:
        raise Unable(f"The 3D model has {len(materials)} materials: at most {MAX_MATERIALS} are allowed.")
    whole = [shaded for piece in pieces for shaded in _prepare(piece)]
    if not whole:
        raise Unable("The 3D model has no faces with an area.")
    firsts = np.cumsum([0, *(len(piece.points) for piece, _ in whole[:-1])])
    return Solid(
        points=np.concatenate([piece.points for piece, _ in whole]),
        faces=np.concatenate([piece.faces + first for (piece, _), first in zip(whole, firsts, strict=True)]),
        normals=np.concatenate([normals for _, normals in whole]),
        places=_concatenate([(piece.places, len(piece.points)) for piece, _ in whole], (0.0, 0.0)),
        tints=_concatenate([(piece.tints, len(piece.points)) for piece, _ in whole], (1.0, 1.0, 1.0)),
        owners=np.concatenate([np.full(len(piece.faces), piece.material, np.int64) for piece, _ in whole]),
        materials=tuple(materials) or (Material(),),
        warnings=tuple(warnings),
    )


def check_size(faces: int, points: int) -> None:
    """Refuse a model that is too large."""
    if faces > MAX_FACES:
        raise Unable(f"The 3D model has {faces} faces: at most {MAX_FACES} are allowed.")
    if points > MAX_POINTS:
        raise Unable(f"The 3D model has {points} vertices: at most {MAX_POINTS} are allowed.")


def weld(points: Floats) -> NDArray[np.int64]:
    """Return a number for each vertex, which vertices at one place share."""
    low = points.min(axis=0)
    grain = max(float(np.ptp(points, axis=0).max()), 1e-12) * 1e-6
    cells = ((points - low) / grain).round().astype(np.int64)
    keys = (cells[:, 0] * 1_000_003 + cells[:, 1]) * 1_000_003 + cells[:, 2]
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


def is_closed(solid: Solid) -> bool:
    """Return whether each edge lies between two faces of opposite direction, so that no back is seen."""
    corners = weld(solid.points)[solid.faces]
    starts, ends = corners.ravel(), np.roll(corners, -1, axis=1).ravel()
    base = int(corners.max()) + 1
    there, back = np.sort(starts * base + ends), np.sort(ends * base + starts)
    return bool(np.array_equal(there, back)) and measure_volume(solid) > 0


def measure_volume(solid: Solid) -> float:
    """Return the volume. It is negative if the model is inside out."""
    first, second, third = (solid.points[solid.faces[:, corner]] for corner in range(3))
    return float(np.einsum("ij,ij->", first, np.cross(second, third)) / 6)


def find_across(points: Floats, faces: Faces) -> Floats:
    """Return the normal of each face, as long as twice its area."""
    first = points[faces[:, 0]]
    return np.cross(points[faces[:, 1]] - first, points[faces[:, 2]] - first)


def shade(points: Floats, faces: Faces) -> tuple[Floats, Faces, NDArray[np.int64]]:
    """Return normals, the faces that use them, and each normal's vertex. Sharp edges get two normals."""
    across = find_across(points, faces)
    welded = weld(points)[faces]
    total = np.stack(
        [np.bincount(welded.ravel(), across[:, axis].repeat(3)).astype(np.float64) for axis in range(3)],
        axis=1,
    )
    mean = unit(total)[welded]
    own = unit(across)[:, None]
    sharp = (mean * own).sum(axis=2) < CREASE
    # A vertex may have one normal of its own for each direction, in steps of a thousandth.
    right, up, out = np.moveaxis(((own[:, 0] + 1) * 511.5).round().astype(np.int64), 1, 0)
    direction = (((1 << 10 | right) << 10 | up) << 10 | out)[:, None]
    keys = (faces << 31) + np.where(sharp, direction, 0)
    _, first, compact = np.unique(keys, return_index=True, return_inverse=True)
    normals = np.where(sharp[..., None], own, mean).reshape(-1, 3)[first]
    return normals, compact.reshape(-1, 3), faces.ravel()[first]


def unit(vectors: Floats) -> Floats:
    """Return the vectors with a length of 1."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.where(length > 1e-20, vectors / np.maximum(length, 1e-20), (0.0, 1.0, 0.0))


def _prepare(piece: Piece) -> list[tuple[Piece, Floats]]:
    """Return the piece without its broken faces, with its normals; nothing if no face is left."""
    count = len(piece.points)
    if piece.faces.size and (int(piece.faces.min()) < 0 or int(piece.faces.max()) >= count):
        raise Unable("The 3D model is damaged: a face names a vertex that does not exist.")
    if not np.isfinite(piece.points).all():
        raise Unable("The 3D model has positions that are not finite numbers.")
    if count and float(np.abs(piece.points).max()) > 1e9:
        raise Unable("The 3D model has positions beyond 1,000,000,000.")
    kept = piece.faces[np.any(find_across(piece.points, piece.faces) != 0, axis=1)]
    if not len(kept):
        return []
    if piece.normals is not None and np.isfinite(piece.normals).all():
        return [(replace(piece, faces=kept), unit(piece.normals))]
    normals, faces, used = shade(piece.points, kept)
    places, tints = (None if value is None else value[used] for value in (piece.places, piece.tints))
    return [(replace(piece, points=piece.points[used], faces=faces, places=places, tints=tints), normals)]


def _concatenate(values: Sequence[tuple[Floats | None, int]], default: tuple[float, ...]) -> Floats | None:
    """Return the values of all pieces, with a default for pieces without; None if no piece has them."""
    if all(value is None for value, _ in values):
        return None
    filled = [np.tile(default, (count, 1)) if value is None else value for value, count in values]
    return np.nan_to_num(np.concatenate(filled))
