"""File arguments: paths, bytes, open files, PIL images, URLs and tokens."""

import base64
import io
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from penstock.client.errors import BadInput
from penstock.client.records import FileRecord
from penstock.client.transport.steps import Flow, Upload, Work

FILE_PARAM: Final = "file"
"""The param that takes a picture in every model. Only there is a string a path or a URL."""
LARGEST: Final = 256 << 20
"""Maximum bytes of a file. Servers accept less. This limit keeps a wrong path from filling the memory."""
PICTURES: Final = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"RIFF": "webp"}

Place = Callable[[Upload], Flow[Mapping[str, Any]]]
"""Sends a local picture to the server and returns the param's value."""


def fill_in(value: Any, name: str, place: Place) -> Flow[Any]:
    """Return a param's value for the request, with local files replaced by `place`."""
    if isinstance(value, FileRecord):
        return {"file_token": value.file_token}
    if isinstance(value, str):
        return (yield from _text(value, name, place)) if name == FILE_PARAM else value
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        filled: dict[str, Any] = {}
        for key, inner in given.items():
            filled[key] = yield from fill_in(inner, f"{name}.{key}", place)
        return filled
    if isinstance(value, list | tuple):
        given_list = {str(number): inner for number, inner in enumerate(cast("list[Any]", value))}
        return list((yield from fill_in(given_list, name, place)).values())
    read = _reader(value, name)
    return value if read is None else (yield from place((yield Work(read))))


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
        raise BadInput(f"`{name}` is larger than any picture that a server accepts.")
    return content


def _name_bytes(content: bytes) -> Upload:
    return Upload(f"picture.{sniff(content) or 'bin'}", content)


def sniff(content: bytes) -> str | None:
    """Return `png`, `jpeg` or `webp` from the first bytes, else None."""
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
    """Return the picture as a data URI, which needs no upload."""
    return f"data:image/{sniff(upload.content) or 'png'};base64,{base64.b64encode(upload.content).decode()}"
