"""Parts of multipart forms. A small form is split at once, a large one is parsed as it arrives."""

import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, cast

from fastapi import Request
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect

from penstock.errors import InvalidRequest
from penstock.fairness.body_memory import SMALL_BODY_BYTES
from penstock.web.json_bodies import receive_body
from penstock.web.server.asgi import CYCLE

MAX_HEAD_BYTES: Final = 1 << 13
"""Bytes of the headers of one part."""
_PLAIN_TYPE: Final = re.compile(r"multipart/form-data; ?boundary=([0-9A-Za-z'+_-]{1,70})", re.ASCII | re.IGNORECASE)
_PLAIN_HEAD: Final = re.compile(rb'\r\ncontent-disposition: form-data; ?name="([^"\\%\r\n]{1,256})"', re.IGNORECASE)
_DISPOSITION: Final = b"content-disposition"
_LINES: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\r\n]*(?:\r\n|\Z))+")
MAX_PLAIN_HEAD_BYTES: Final = 1 << 10
MAX_BOUNDARY_BYTES: Final = 70
"""Bytes of a boundary, by its standard."""


class Part(NamedTuple):
    """The head of a part: a field, or with a file name a file."""

    name: str
    filename: str | None


class PartSource(Protocol):
    """The parts of a form, one after the other."""

    async def next_part(self) -> Part | None:
        """Return the head of the next part, or None after the last."""
        ...

    def data(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of this part. They have to be read to its end."""
        ...


async def open_parts(request: Request) -> PartSource:
    """Return the parts of a form."""
    boundary = _read_boundary(request.headers.get("content-type", ""))
    length = request.scope["extensions"][CYCLE].length
    if length is None or length > SMALL_BODY_BYTES:
        return _PartParser(request.stream(), boundary)
    body = await receive_body(request)
    parts = split_parts(body, boundary)
    return _PartParser(_once(body), boundary) if parts is None else _SplitParts(parts)


def _read_boundary(content_type: str) -> bytes:
    if plain := _PLAIN_TYPE.fullmatch(content_type):
        return plain[1].encode()
    _, options = parse_options_header(content_type)
    if b"boundary" not in options:
        raise InvalidRequest("The `content-type` of the form has no `boundary`.")
    return options[b"boundary"]


def split_parts(body: bytes, boundary: bytes) -> list[tuple[Part, bytes]] | None:
    """Return the parts of a whole form; None for one that is not plain, which the parser has to judge."""
    start = b"--" + boundary
    first, *pieces = (b"\r\n" + body).split(b"\r\n" + start)
    if first or not pieces or pieces.pop() not in (b"--", b"--\r\n") or not 0 < len(boundary) <= MAX_BOUNDARY_BYTES:
        return None
    found: list[tuple[Part, bytes]] = []
    for piece in pieces:
        head, end, data = piece.partition(b"\r\n\r\n")
        if end and (plain := _PLAIN_HEAD.fullmatch(head)):
            found.append((Part(plain[1].decode("utf-8", "replace"), None), data))
            continue
        if not end or not head.startswith(b"\r\n") or len(head) > MAX_PLAIN_HEAD_BYTES:
            return None
        name, _, value = head[2:].partition(b": ")
        disposition, _, others = value.partition(b"\r\n")
        is_plain = name.lower() == _DISPOSITION and _DISPOSITION not in others.lower()
        if not is_plain or not _LINES.fullmatch(head, 2):
            return None
        found.append((_read_head(disposition), data))
    return found


def _read_head(disposition: bytes) -> Part:
    """Return the head that a `content-disposition` means."""
    _, options = parse_options_header(disposition)
    name = options.get(b"name")
    if not name:
        raise InvalidRequest("A part of the form has no name.")
    filename = options.get(b"filename")
    text = None if filename is None else filename.decode("utf-8", "replace")
    return Part(name.decode("utf-8", "replace"), text)


async def _once(body: bytes) -> AsyncGenerator[bytes]:
    yield body


class _SplitParts:
    """Parts that have all arrived."""

    def __init__(self, parts: Sequence[tuple[Part, bytes]]) -> None:
        self._parts = iter(parts)
        self._data = b""

    async def next_part(self) -> Part | None:
        """Return the head of the next part, or None after the last."""
        part, self._data = next(self._parts, (None, b""))
        return part

    async def data(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of this part."""
        if self._data:
            yield self._data


class _End(NamedTuple):
    """The end of a part."""


class _PartParser:
    """Parses the body of a request piece by piece, as its parts are asked for."""

    def __init__(self, stream: AsyncIterator[bytes], boundary: bytes) -> None:
        self._stream = stream
        self._events: deque[Part | bytes | _End] = deque()
        self._header = self._value = self._disposition = b""
        self._is_whole = False
        callbacks: Any = {
            "on_header_begin": self._begin_header,
            "on_header_field": self._add_name,
            "on_header_value": self._add_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin_part,
            "on_part_data": self._add_data,
            "on_part_end": lambda: self._events.append(_End()),
            "on_end": self._end,
        }
        try:
            self._parser = MultipartParser(boundary, callbacks)
        except FormParserError:
            raise InvalidRequest("The `boundary` of the form is not valid.") from None

    async def next_part(self) -> Part | None:
        """Return the head of the next part, or None after the last."""
        event = await self._next()
        return cast("Part | None", event)

    async def data(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of this part. They have to be read to its end."""
        while isinstance(event := await self._next(), bytes):
            yield event

    async def _next(self) -> Part | bytes | _End | None:
        while not self._events:
            try:
                chunk = await anext(self._stream)
            except (StopAsyncIteration, ClientDisconnect):
                if self._is_whole:
                    return None
                raise InvalidRequest("The form ends before its last boundary.") from None
            try:
                self._parser.write(chunk)
            except FormParserError:
                raise InvalidRequest("The body is not valid `multipart/form-data`.") from None
        return self._events.popleft()

    def _begin_header(self) -> None:
        self._header = self._value = b""

    def _add_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        if len(self._value) > MAX_HEAD_BYTES:
            raise InvalidRequest("The headers of a part of the form are too long.")

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value

    def _begin_part(self) -> None:
        self._events.append(_read_head(self._disposition))
        self._disposition = b""

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(data[start:end])

    def _end(self) -> None:
        self._is_whole = True
