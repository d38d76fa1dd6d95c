"""Opens 3D models to prove that they are what they should be; blocking, for the process pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Final

import msgspec

from penstock.domain.files import MESH_TYPES, Count, MeshFacts, Source, opened, size_of
from penstock.domain.job_errors import BadOutput, FileUnreadable
from penstock.inspection.meshes.glb import open_glb
from penstock.inspection.meshes.obj import ObjReader
from penstock.inspection.meshes.packages import (
    BINARY_FBX,
    WRITTEN_FBX,
    is_usdz,
    open_zip,
    read_fbx,
    read_usdz,
    read_zipped_obj,
)
from penstock.inspection.meshes.stl import is_binary_stl, read_stl

MAX_MODEL_BYTES: Final = 512 * 1024 * 1024
FACE_TOLERANCE: Final = 0.05
NAMES: Final = {"glb": "GLB", "obj": "OBJ", "stl": "STL", "fbx": "FBX", "usdz": "USDZ", "zip": "zip with an OBJ"}
ARTICLES: Final = {"obj": "an", "fbx": "an", "stl": "an"}
HEAD_BYTES: Final = 4096
UNKNOWN_GLB: Final = MeshFacts(format="glb")
OBJ_WORDS: Final = frozenset((b"#", b"v", b"vt", b"vn", b"f", b"o", b"g", b"s", b"mtllib", b"usemtl"))


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts found by opening a 3D model. Faces and vertices are None in a format that stays sealed."""

    faces: Count | None
    vertices: Count | None
    warnings: tuple[str, ...] = ()
    extension: str = "glb"
    mesh: MeshFacts = UNKNOWN_GLB

    @property
    def content_type(self) -> str:
        """Return the type by the content; a `zip` holds an OBJ."""
        return MESH_TYPES[self.extension]


def inspect_model(source: Source, face_limit: int | None, formats: Sequence[str] = ("glb",)) -> ModelFacts:
    """Describe a vendor's model in one of the formats, after checking that all of it is there."""
    try:
        with opened(source) as file:
            facts = _open(file, formats)
    except ValueError as error:
        raise BadOutput(str(error)) from error
    if face_limit is None or facts.faces is None or facts.faces <= face_limit:
        return facts
    message = f"The model has {facts.faces} faces; at most {face_limit} were asked for."
    if facts.faces > face_limit * (1 + FACE_TOLERANCE):
        raise BadOutput(message)
    return ModelFacts(facts.faces, facts.vertices, (message,), facts.extension, facts.mesh)


def inspect_mesh(source: Source) -> ModelFacts:
    """Describe a caller's model: a GLB is opened fully, OBJ and STL are read, FBX and USDZ stay sealed."""
    try:
        with opened(source) as file:
            return _open(file, tuple(NAMES))
    except ValueError as error:
        raise FileUnreadable(str(error)) from error


def sniff_mesh(file: IO[bytes], size: int) -> str | None:
    """Return the format by the first bytes: glb, obj, stl, fbx, zip (or USDZ), or None."""
    file.seek(0)
    head = file.read(HEAD_BYTES)
    if head.startswith(b"glTF"):
        return "glb"
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    if head.startswith((BINARY_FBX, WRITTEN_FBX)):
        return "fbx"
    if is_binary_stl(file, size) or (head.lstrip().startswith(b"solid") and b"facet" in head):
        return "stl"
    lines = [line.split() for line in head.splitlines()[:-1] or [head]]
    words = {line[0] if not line[0].startswith(b"#") else b"#" for line in lines if line}
    return "obj" if words and words <= OBJ_WORDS and b"\0" not in head else None


def _open(file: IO[bytes], formats: Sequence[str]) -> ModelFacts:
    if (size := size_of(file)) > MAX_MODEL_BYTES:
        raise ValueError(f"The model has {size} bytes; at most {MAX_MODEL_BYTES} are allowed.")
    found = sniff_mesh(file, size) or ("glb" if tuple(formats) == ("glb",) else None)
    if found is None:
        raise ValueError(f"The file is not a 3D model of a known format; allowed are {_list(formats)}.")
    try:
        facts = _read(file, size, found)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        name = NAMES[found]
        raise ValueError(f"The model is not a valid {name}: {error}.") from error
    if facts.mesh.format not in formats:
        name = NAMES[facts.mesh.format]
        raise ValueError(f"The model is {ARTICLES.get(facts.mesh.format, 'a')} {name}; allowed are {_list(formats)}.")
    if facts.faces == 0:
        raise ValueError("The model has no faces.")
    return facts


def _read(file: IO[bytes], size: int, found: str) -> ModelFacts:
    """Return the facts of a model whose first bytes are of this format."""
    file.seek(0)
    match found:
        case "glb":
            faces, vertices, mesh = open_glb(file, size)
        case "obj":
            faces, vertices, mesh = ObjReader().read(file)
        case "stl":
            faces, vertices, mesh = read_stl(file, binary=is_binary_stl(file, size))
        case "fbx":
            return ModelFacts(None, None, extension="fbx", mesh=read_fbx(file, size))
        case _:
            with open_zip(file, size) as archive:
                if is_usdz(archive):
                    return ModelFacts(None, None, extension="usdz", mesh=read_usdz(archive))
                faces, vertices, mesh = read_zipped_obj(archive)
    return ModelFacts(faces, vertices, extension=found, mesh=mesh)


def _list(formats: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(NAMES[name] for name in formats if name != "zip"))
