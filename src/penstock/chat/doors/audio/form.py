"""A form with texts and one file, read from memory."""

from dataclasses import dataclass, field
from typing import Final

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from penstock.domain.chat import AudioUpload
from penstock.domain.files import clean_name
from penstock.errors import InvalidRequest

MAX_PARTS: Final = 64
MAX_TEXT_BYTES: Final = 1 << 20
FILE: Final = "file"
ANY_TYPE: Final = b"application/octet-stream"

Value = str | list[str]


@dataclass(slots=True)
class _Part:
    """One part of the form while it is read."""

    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    name: bytes = b""
    value: bytes = b""
    pieces: list[memoryview] = field(default_factory=list[memoryview])

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


def read_form(body: bytes, content_type: bytes) -> tuple[dict[str, Value], AudioUpload | None]:
    """Return the texts by name, and the file. A name that ends with `[]` has a list."""
    _, options = parse_options_header(content_type)
    if b"boundary" not in options:
        raise InvalidRequest("The `content-type` of the body has no `boundary`.", code="")
    parts, is_whole = list[_Part](), list[bool]()
    reader = _Reader(parts)
    parser = MultipartParser(
        options[b"boundary"],
        {
            "on_part_begin": reader.begin,
            "on_header_field": reader.add_name,
            "on_header_value": reader.add_value,
            "on_header_end": reader.end_header,
            "on_part_data": reader.add,
            "on_end": lambda: is_whole.append(True),
        },
    )
    try:
        parser.write(body)
    except FormParserError as error:
        raise InvalidRequest("The body is not valid `multipart/form-data`.", code="") from error
    if not is_whole:
        raise InvalidRequest("The form is cut off.", code="")
    return _sort(parts)


class _Reader:
    """The callbacks of the multipart parser. It hands out views, so that a large file is copied once."""

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts

    def begin(self) -> None:
        if len(self._parts) >= MAX_PARTS:
            raise InvalidRequest(f"The form has more than {MAX_PARTS} parts.", code="")
        self._parts.append(_Part())

    def add_name(self, data: bytes, start: int, end: int) -> None:
        self._parts[-1].name += data[start:end]

    def add_value(self, data: bytes, start: int, end: int) -> None:
        self._parts[-1].value += data[start:end]

    def end_header(self) -> None:
        part = self._parts[-1]
        part.headers[part.name.lower()] = part.value
        part.name = part.value = b""

    def add(self, data: bytes, start: int, end: int) -> None:
        self._parts[-1].pieces.append(memoryview(data)[start:end])


def _sort(parts: list[_Part]) -> tuple[dict[str, Value], AudioUpload | None]:
    texts, upload = dict[str, Value](), None
    for part in parts:
        _, options = parse_options_header(part.headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if not name:
            raise InvalidRequest("A part of the form has no name.", code="")
        if name == FILE and upload is None:
            given = clean_name(options.get(b"filename", b"").decode("utf-8", "replace")) or "audio"
            content_type = part.headers.get(b"content-type", ANY_TYPE).decode("latin-1")
            upload = AudioUpload(given, content_type if content_type.isprintable() else ANY_TYPE.decode(), part.data)
        elif name == FILE or b"filename" in options:
            raise InvalidRequest("The form has more than one file.", param=name, code="invalid_value")
        else:
            _add_text(texts, name, _read_text(name, part))
    return texts, upload


def _read_text(name: str, part: _Part) -> str:
    data = part.data
    if len(data) > MAX_TEXT_BYTES:
        raise InvalidRequest(f"Invalid '{name}': at most {MAX_TEXT_BYTES} bytes.", param=name, code="invalid_value")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"Invalid '{name}': it is not UTF-8.", param=name, code="invalid_value") from None


def _add_text(texts: dict[str, Value], name: str, text: str) -> None:
    if name.endswith("[]"):
        found = texts.setdefault(name.removesuffix("[]"), [])
        if isinstance(found, list):
            found.append(text)
    else:
        texts[name] = text
