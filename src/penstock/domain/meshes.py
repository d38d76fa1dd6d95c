"""Formats of 3D models, and the facts found by opening one."""

from dataclasses import dataclass
from typing import Final, Literal

from penstock.domain.files import Count

MeshFormat = Literal["glb", "obj", "stl", "fbx", "usdz"]
MESH_TYPES: Final[dict[str, str]] = {
    "glb": "model/gltf-binary",
    "obj": "model/obj",
    "stl": "model/stl",
    "fbx": "application/vnd.autodesk.fbx",
    "usdz": "model/vnd.usdz+zip",
    "zip": "application/zip",
}
"""Content types by file extension. A `zip` holds an OBJ with its materials and textures."""


@dataclass(frozen=True, slots=True)
class Clip:
    """One animation of a model."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshFacts:
    """Facts of a 3D model beside its faces and vertices. None is unknown: the format hides it, or it is too large."""

    format: MeshFormat
    size: tuple[float, float, float] | None = None
    """Width, height and depth of the box around it, along x, y and z, in the pose in which it is stored."""
    unit: Literal["meter"] | None = None
    """The unit of `size`; None for formats without one."""
    has_uv: bool | None = None
    """Whether all of its surface has texture coordinates."""
    is_watertight: bool | None = None
    """Whether each edge is shared by exactly two faces."""
    quads: Count | None = None
    materials: Count | None = None
    textures: Count | None = None
    skins: Count | None = None
    joints: Count | None = None
    clips: tuple[Clip, ...] = ()
