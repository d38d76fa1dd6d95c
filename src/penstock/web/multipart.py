"""Multipart uploads: the bytes of the file are passed on as they arrive, and only its name is kept."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from penstock.domain.files import MAX_BYTES, clean_name, sniff_kind
from penstock.errors import BodyTooLarge, InvalidRequest, UnsupportedMediaType

MAX_FIELDS: Final = 8
MAX_TEXT_BYTES: Final = 64 * 1024


class FileUpload:
    """The file in a form: its bytes as they arrive, and the name that the caller gave it.

    Of the other fields, `texts` has those that are asked for, once all bytes are read.
    """

    def __init__(self, request: Request, field: str = "file", *, texts: Sequence[str] = ()) -> None:
        self._request = request
        self._field = field
        self._given_name = ""
        self._asked = {name.encode() for name in texts}
        self.texts: dict[str, bytes] = {}

    @property
    def name(self) -> str | None:
        """The file's name without folders, once all bytes are read."""
        return clean_name(self._given_name)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes. Raise as soon as anything is wrong with the form."""
        content_type = self._request.headers.get("content-type", "")
        if not content_type.lower().startswith("multipart/form-data"):
            raise UnsupportedMediaType(f"Send `multipart/form-data` with a field `{self._field}`.")
        size, most = 0, 0
        try:
            form = _Form(content_type, self._field.encode(), self._asked)
            async for chunk in self._request.stream():
                for piece in form.feed(chunk):
                    most = most or most_bytes_of(piece)
                    size += len(piece)
                    check_size(size, most, self._field)
                    yield piece
        except FormParserError as error:
            raise InvalidRequest("The body is not valid `multipart/form-data`.") from error
        if not form.is_whole:
            message = f"The multipart field `{self._field}` is required, with a file name."
            raise InvalidRequest(message, code="missing_required_parameter", param=self._field)
        self._given_name = form.filename.decode("utf-8", "replace")
        self.texts = {name.decode(): value for name, value in form.texts.items()}


async def read_bytes(request: Request, field: str = "file") -> AsyncIterator[bytes]:
    """Yield the bytes of a body that is a file. Raise as soon as they are too many for its kind."""
    size, most = 0, 0
    async for chunk in request.stream():
        most = most or most_bytes_of(chunk)
        size += len(chunk)
        check_size(size, most, field)
        yield chunk


def check_size(size: int, most: int, field: str = "file") -> None:
    """Raise if a file has more bytes than its kind may have."""
    if size > most:
        message = f"The file is too large: at most {most >> 20} MB are allowed for its kind."
        raise BodyTooLarge(message, param=field)


def most_bytes_of(head: bytes) -> int:
    """Return the most bytes of a file by its first bytes; where they do not say its kind, opening it does."""
    kind = sniff_kind(head)
    return max(MAX_BYTES.values()) if kind is None else MAX_BYTES[kind]


class _Form:
    """The callbacks of the multipart parser, and what they have found."""

    def __init__(self, content_type: str, wanted: bytes, asked: set[bytes]) -> None:
        self._wanted = wanted
        _, options = parse_options_header(content_type)
        if b"boundary" not in options:
            raise InvalidRequest("The `content-type` of the body has no `boundary`.")
        self._parser = MultipartParser(
            options[b"boundary"],
            {
                "on_header_begin": self._begin_header,
                "on_header_field": self._add_name,
                "on_header_value": self._add_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._begin_part,
                "on_part_data": self._add,
                "on_part_end": self._end_part,
            },
        )
        self.is_whole = False
        self.texts: dict[bytes, bytes] = {}
        self._asked = asked
        self._text: bytes | None = None
        self.filename = b""
        self._pieces: list[bytes] = []
        self._is_wanted = False
        self._files = self._fields = 0
        self._name = self._value = self._disposition = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Parse a piece of the body. Return the bytes of the file in it."""
        self._pieces = []
        self._parser.write(chunk)
        return self._pieces

    def _begin_header(self) -> None:
        self._name = self._value = b""

    def _add_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value

    def _begin_part(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._disposition = b""
        if b"name" not in options:
            raise InvalidRequest("A part of the form has no name.")
        is_file = b"filename" in options and options[b"name"] not in self._asked
        self._is_wanted = is_file and options[b"name"] == self._wanted
        self._files, self._fields = self._files + is_file, self._fields + (not is_file)
        if self._files > 1 or self._fields > MAX_FIELDS:
            raise InvalidRequest(f"The form has more than one file, or more than {MAX_FIELDS} other fields.")
        self._text = options[b"name"] if options[b"name"] in self._asked and not self._is_wanted else None
        if self._is_wanted:
            self.filename = options[b"filename"]

    def _add(self, data: bytes, start: int, end: int) -> None:
        if self._is_wanted:
            self._pieces.append(data[start:end])
        elif self._text is not None:
            self.texts[self._text] = self.texts.get(self._text, b"") + data[start:end]
            if len(self.texts[self._text]) > MAX_TEXT_BYTES:
                name = self._text.decode()
                raise BodyTooLarge(f"The field `{name}` is larger than {MAX_TEXT_BYTES >> 10} KiB.", param=name)

    def _end_part(self) -> None:
        self.is_whole = self.is_whole or self._is_wanted
