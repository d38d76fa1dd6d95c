"""Finds the format of a model's file, and opens it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from penstock_engines.mesh.reading.glb_reader import read_glb
from penstock_engines.mesh.reading.obj_reader import read_obj, read_zip
from penstock_engines.mesh.reading.stl_reader import is_binary, read_stl
from penstock_engines.mesh.solid import Solid
from penstock_engines.product import Unable

MAX_BYTES: Final = 200 * 1024 * 1024
BROKEN: Final = (
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    UnicodeError,
    ValueError,
    ZeroDivisionError,
)
"""What readers raise on a file that is not what it should be."""
READERS: Mapping[str, Callable[[bytes], Solid]] = MappingProxyType(
    {"glb": read_glb, "obj": read_obj, "zip": read_zip, "stl": read_stl}
)


def open_solid(path: Path) -> Solid:
    """Return the model in a file of any format."""
    if path.stat().st_size > MAX_BYTES:
        raise Unable(f"The 3D model has more than {MAX_BYTES >> 20} MB.")
    data = path.read_bytes()
    kind = find_format(data)
    try:
        return READERS[kind](data)
    except BROKEN as error:
        raise Unable(f"The 3D model is damaged: its {kind.upper()} file cannot be read.") from error


def find_format(data: bytes) -> str:
    """Return the format of a model by its bytes."""
    if data.startswith(b"glTF"):
        return "glb"
    if data.startswith((b"Kaydara FBX Binary", b"; FBX ")):
        raise Unable("The built-in engine cannot read FBX: give a GLB, OBJ or STL.")
    if data.startswith(b"PK\x03\x04"):
        return "zip"
    is_text = data[:2048].lstrip().startswith(b"solid") and b"facet" in data[:4096]
    return "stl" if is_binary(data) or is_text else "obj"
