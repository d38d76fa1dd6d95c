"""File arguments: paths, bytes, open files, PIL images, URLs, tokens, and outputs of jobs."""

import base64
import io
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from penstock.client.errors import BadInput
from penstock.client.pipelines.references import Reference
from penstock.client.records import FileRecord, JobOutput, JobRecord
from penstock.client.transport.steps import Flow, Upload, Work

FILE_PARAM: Final = "file"
"""The param that takes a picture in many models. A string there is always a path, a URL or a token."""
NAMES: Final = frozenset(
    {FILE_PARAM, "image", "images", "mask", "references", "frame_images", "input_references", "video", "audio", "mesh"}
)
"""Params that take files in most models that have them: the model's schema decides before a string is a path there."""
LARGEST: Final = 256 << 20
"""Maximum bytes of a file. Servers accept less. This limit keeps a wrong path from filling the memory."""
PICTURES: Final = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"RIFF": "webp"}
ENDINGS: Final = {b"glTF": "glb", b"ID3": "mp3", b"fLaC": "flac", b"OggS": "ogg", b"\x1a\x45\xdf\xa3": "webm"}
"""Endings of other files by their first bytes."""

Place = Callable[[Upload], Flow[Mapping[str, Any]]]
"""Sends a local file to the server and returns the param's value."""


def has_text(name: str, value: Any) -> bool:
    """Return whether a param may give files as strings, so that the model's schema has to be read."""
    texts = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
    return name in NAMES - {FILE_PARAM} and any(
        isinstance(each, str | Mapping) and not is_reference(each) for each in texts
    )


def is_reference(value: Any) -> bool:
    """Return whether this is a reference within a pipeline, written as the API's own object."""
    return isinstance(value, Mapping) and bool({"step", "param", "item"} & {*cast("Mapping[str, Any]", value)})


def file_params(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the params that take files, by a model's schema."""
    kinds = {name for name, each in schema.get("$defs", {}).items() if "file_token" in each.get("properties", {})}
    pointers = {f"#/$defs/{name}" for name in kinds}
    properties: Mapping[str, Any] = schema.get("properties", {})
    return frozenset(name for name, each in properties.items() if _mentions(each, pointers))


def _mentions(schema: Any, pointers: set[str]) -> bool:
    if isinstance(schema, Mapping):
        given = cast("Mapping[str, Any]", schema)
        return given.get("$ref") in pointers or any(_mentions(each, pointers) for each in given.values())
    return isinstance(schema, list) and any(_mentions(each, pointers) for each in cast("list[Any]", schema))


def fill_in(value: Any, name: str, place: Place, *, is_file: bool = False) -> Flow[Any]:
    """Return a param's value for the request, with local files replaced by `place`.

    With `is_file`, a string is a path, a URL or a token, and a mapping may have any file as `file` beside its role.
    """
    if isinstance(value, FileRecord):
        return {"file_token": value.file_token}
    if isinstance(value, JobOutput | Reference):
        return value.as_input()
    if isinstance(value, JobRecord):
        return {"job": value.id}
    if isinstance(value, str):
        return (yield from _text(value, name, place)) if is_file else value
    if isinstance(value, Mapping):
        return (yield from _fill_mapping(cast("Mapping[str, Any]", value), name, place, is_file=is_file))
    if isinstance(value, list | tuple):
        filled: list[Any] = []
        for number, inner in enumerate(cast("list[Any]", value)):
            filled.append((yield from fill_in(inner, f"{name}.{number}", place, is_file=is_file)))
        return filled
    read = _reader(value, name)
    return value if read is None else (yield from place((yield Work(read))))


def _fill_mapping(given: Mapping[str, Any], name: str, place: Place, *, is_file: bool) -> Flow[dict[str, Any]]:
    filled: dict[str, Any] = {}
    for key, inner in given.items():
        names_file = is_file and key == FILE_PARAM
        value = yield from fill_in(inner, f"{name}.{key}", place, is_file=names_file)
        filled |= value if names_file and isinstance(value, dict) else {key: value}
    return filled


def _text(text: str, name: str, place: Place) -> Flow[Any]:
    if "://" in text or text.lower().startswith("data:"):
        return {"url": text}
    if text.startswith("file_") and not _is_path(text):
        return {"file_token": text}
    return (yield from place((yield Work(partial(_read_path, Path(text), name)))))


def _is_path(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long, or contains a NUL
        return False


def _reader(value: Any, name: str) -> Callable[[], Upload] | None:
    """Return a reader of a local file or image, or None for any other value."""
    if isinstance(value, bytes | bytearray | memoryview):
        return partial(_name_bytes, bytes(cast("bytes", value)))
    if isinstance(value, os.PathLike):
        return partial(_read_path, Path(cast("os.PathLike[str]", value)), name)
    if _is_pil_image(value):
        return partial(_encode_image, value, name)
    if callable(getattr(value, "read", None)):
        return partial(_read_stream, value, name)
    return None


def _read_path(path: Path, name: str) -> Upload:
    try:
        path = path.expanduser()
        with path.open("rb") as file:
            content = _read(file)
    except (OSError, ValueError, RuntimeError) as error:  # contains a NUL, or an unknown home folder
        raise BadInput(f"`{name}`: {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    return Upload(path.name, _check(content, name))


def _read_stream(stream: Any, name: str) -> Upload:
    try:
        content = _read(stream)
    except (OSError, ValueError) as error:  # already closed
        raise BadInput(f"`{name}`: the file cannot be read: {error}.") from None
    return _name_bytes(_check(content, name))


def _read(file: Any) -> Any:
    """Read all bytes, or one more than the maximum. A pipe returns them in parts."""
    content = file.read(LARGEST + 1)
    while isinstance(content, bytes) and len(content) <= LARGEST and (more := file.read(LARGEST + 1 - len(content))):
        content += more
    return content


def _check(content: Any, name: str) -> bytes:
    if not isinstance(content, bytes):
        raise BadInput(f"`{name}`: open the file in binary mode, `open(path, 'rb')`.")
    if len(content) > LARGEST:
        raise BadInput(f"`{name}` is larger than any file that a server accepts.")
    return content


def _name_bytes(content: bytes) -> Upload:
    kind = sniff(content)
    ending = next((each for mark, each in ENDINGS.items() if content.startswith(mark)), "bin")
    return Upload(f"file.{ending}" if kind is None else f"picture.{kind}", content)


def sniff(content: bytes) -> str | None:
    """Return `png`, `jpeg` or `webp` from the first bytes, else None."""
    if content.startswith(b"RIFF") and content[8:12] != b"WEBP":
        return None
    return next((kind for mark, kind in PICTURES.items() if content.startswith(mark)), None)


def _is_pil_image(value: Any) -> bool:
    """Return whether this is a PIL image, without importing Pillow."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def _encode_image(image: Any, name: str) -> Upload:
    """Encode an image as PNG, which is lossless."""
    buffer = io.BytesIO()
    try:
        if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
            image = image.convert("RGBA" if image.mode in ("PA", "La", "RGBa") else "RGB")
            image.info.pop("transparency", None)  # belongs to the former mode
        image.save(buffer, "PNG", compress_level=1)
    except (ValueError, OSError) as error:
        raise BadInput(f"`{name}`: the image cannot be encoded: {error}.") from None
    return Upload("picture.png", buffer.getvalue())


def as_data_uri(upload: Upload) -> str:
    """Return the file as a data URI, which needs no upload."""
    kind = sniff(upload.content)
    media = "application/octet-stream" if kind is None else f"image/{kind}"
    return f"data:{media};base64,{base64.b64encode(upload.content).decode()}"
