"""Opens images, 3D models and videos to prove that they are what they should be; blocking, meant for the workshop."""

import base64
import io
import math
import struct
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import msgspec

from penstock.errors import BadOutput, FileUnreadable
from penstock.files import CONTENT_TYPES, MAX_FILE_BYTES, MAX_SIDE, MIN_SIDE, ImageFacts, sniff

if TYPE_CHECKING:  # Pillow and PyAV are imported where they are used: a child that needs one does not load the other
    from av.container import InputContainer
    from av.video.frame import VideoFrame

T = TypeVar("T")

MAX_MODEL_BYTES = 512 * 1024 * 1024
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
MAX_VIDEO_SIDE = 8192
FACE_TOLERANCE = 0.05
RATIO_TOLERANCE = 0.01
SECONDS_NOTED, SECONDS_REFUSED = 0.25, 1.0


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What opening a 3D model told."""

    faces: int
    vertices: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """What decoding a video told; width and height as it is shown."""

    width: int
    height: int
    duration_seconds: float
    fps: float
    frames: int
    warnings: tuple[str, ...] = ()


# -- images


def inspect_image(data: bytes) -> ImageFacts:
    """What a caller's image is, after decoding all of it."""
    if len(data) > MAX_FILE_BYTES:
        raise FileUnreadable(f"The image has {len(data)} bytes; at most {MAX_FILE_BYTES} are allowed.")
    try:
        return _decode_image(data, MIN_SIDE)
    except ValueError as error:
        raise FileUnreadable(str(error)) from error


def inspect_picture(path: str) -> ImageFacts:
    """What a vendor's preview picture is, after decoding all of it."""
    try:
        return _decode_image(_read_bounded(path, MAX_FILE_BYTES), smallest=1)
    except ValueError as error:
        raise BadOutput(f"The preview is unusable. {error}") from error


def _decode_image(data: bytes, smallest: int) -> ImageFacts:
    from PIL import Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin  # noqa: PLC0415 - a quick start

    kind = sniff(data)
    if kind is None:
        raise ValueError("The file is not a JPEG, PNG or WebP image; only these are allowed.")
    # The readers themselves: `Image.open` counts pixels before it tells the sides.
    reader = {
        "jpeg": JpegImagePlugin.JpegImageFile,
        "png": PngImagePlugin.PngImageFile,
        "webp": WebPImagePlugin.WebPImageFile,
    }[kind]
    Image.MAX_IMAGE_PIXELS = MAX_SIDE * MAX_SIDE  # the WebP reader takes memory for twice as many before it is asked
    name = CONTENT_TYPES[kind].removeprefix("image/").upper()
    allowed = f"each side must be {smallest} to {MAX_SIDE} px"
    try:
        with warnings.catch_warnings(action="ignore"), reader(io.BytesIO(data)) as image:
            width, height = image.size
            fits = smallest <= min(width, height) and max(width, height) <= MAX_SIDE
            if fits:
                image.load()
            if fits and kind == "png":
                reader(io.BytesIO(data)).verify()  # its checksums, which decoding passes over
    except Image.DecompressionBombError as error:
        raise ValueError(f"The {name} image has too many pixels; {allowed}.") from error
    except Exception as error:  # damaged bytes make Pillow raise nearly anything
        raise ValueError(f"The {name} image is damaged or cut off: {error}.") from error
    if not fits:
        raise ValueError(f"The {name} image is {width} x {height} px; {allowed}.")
    return ImageFacts(CONTENT_TYPES[kind], width, height)


def _read_bounded(path: str, most: int) -> bytes:
    size = Path(path).stat().st_size
    if size > most:
        raise ValueError(f"The file has {size} bytes; at most {most} are read.")
    return Path(path).read_bytes()


# -- 3D models

Whole = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]

COMPONENTS = {5120: ("b", 1), 5121: ("B", 1), 5122: ("h", 2), 5123: ("H", 2), 5125: ("I", 4), 5126: ("f", 4)}
COLUMNS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
FLOAT, TRIANGLES = 5126, 4
INDEX_TYPES = (5121, 5123, 5125)
DRACO, MESHOPT = "KHR_draco_mesh_compression", "EXT_meshopt_compression"


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a glTF document; what is not needed here is passed over."""

    extensions: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict[str, msgspec.Raw])


class _Buffer(_Part, frozen=True, kw_only=True):
    byte_length: Positive
    uri: str | None = None


class _View(_Part, frozen=True, kw_only=True):
    buffer: Whole
    byte_length: Positive
    byte_offset: Whole = 0
    byte_stride: Annotated[int, msgspec.Meta(ge=4, le=252)] | None = None


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
    asset: dict[Literal["version"], str]
    buffers: tuple[_Buffer, ...] = ()
    buffer_views: tuple[_View, ...] = ()
    accessors: tuple[_Accessor, ...] = ()
    meshes: tuple[_Mesh, ...] = ()
    nodes: tuple[_Node, ...] = ()
    scenes: tuple[_Scene, ...] = ()
    scene: Whole = 0


def inspect_model(path: str, face_limit: int | None) -> ModelFacts:
    """How many faces and vertices a GLB shows, after checking that all of it is there."""
    try:
        faces, vertices = _Model(_read_bounded(path, MAX_MODEL_BYTES)).measure()
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
    """A GLB. Its parts are looked at one after the other, never by recursion, and its bytes are not copied."""

    def __init__(self, data: bytes) -> None:
        document, binary = _split_glb(data)
        self._document = msgspec.json.decode(document, type=_Document)
        self._buffers = [self._open_buffer(n, buffer, binary) for n, buffer in enumerate(self._document.buffers)]
        self._views = [self._open_view(n, view) for n, view in enumerate(self._document.buffer_views)]
        self._numbers = [self._open_accessor(n, accessor) for n, accessor in enumerate(self._document.accessors)]

    def measure(self) -> tuple[int, int]:
        """Faces and vertices, each mesh as often as it is shown."""
        sizes = [self._measure_mesh(f"mesh {number}", mesh) for number, mesh in enumerate(self._document.meshes)]
        shown = [_pick(sizes, number, "mesh") for number in self._list_meshes()]
        return sum(faces for faces, _ in shown), sum(vertices for _, vertices in shown)
