"""Multipart forms with fields and files. Each file goes to the store as it arrives; fields are texts."""

import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

import msgspec
from fastapi import Request
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect

from penstock.catalog.model import GenerationModel
from penstock.catalog.params import as_object, shorten
from penstock.domain.files import MAX_BYTES, FileKind, StoredFile, clean_name
from penstock.domain.job_errors import FileUnreadable
from penstock.errors import BodyTooLarge, InvalidRequest, PenstockError
from penstock.storage.backend import StorageUnavailable
from penstock.store.queries.files import storage_rows
from penstock.web.auth import Caller
from penstock.web.facades.measures import fields_of, takes_text
from penstock.web.facades.neutral import find_param
from penstock.web.json_bodies import refuse_encoding

MAX_FIELDS: Final = 64
MAX_FIELD_BYTES: Final = 1 << 18
"""Bytes of all fields of a form together."""
MAX_NESTING: Final = 8
MAX_HEAD_BYTES: Final = 1 << 13
"""Bytes of the headers of one part."""
_NAME: Final = re.compile(r"([^\[\]]{1,64})((?:\[[^\[\]]{0,64}\]){0,8})")
_KEY: Final = re.compile(r"\[([^\[\]]*)\]")
FORM: Final = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class ReceivedForm:
    """The fields of a form by name, nested as their brackets say, and its files by the name of their field."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    files: Sequence[tuple[str, StoredFile]] = ()

    @property
    def content(self) -> Any:
        """Return what was sent, to recognise a repetition: the files by their hashes."""
        return [self.fields, [[name, file.sha256] for name, file in self.files]]


class FileField(NamedTuple):
    """A field of a form for files: their kind, and how many it takes."""

    kind: FileKind
    most: int = 1


class _Part(NamedTuple):
    """The head of a part: a field, or with a file name a file."""

    name: str
    filename: str | None


class _End(NamedTuple):
    """The end of a part."""


def is_form(request: Request) -> bool:
    """Return whether the body of a request is a form."""
    return request.headers.get("content-type", "").lower().startswith(FORM)


@asynccontextmanager
async def received_form(caller: Caller, names: Mapping[str, FileField]) -> AsyncGenerator[ReceivedForm]:
    """Receive a form with files in these fields. The uploads are removed after the block."""
    uploads: list[tuple[str, StoredFile]] = []
    try:
        yield await _receive(caller, names, uploads)
    finally:
        for _, file in uploads:  # the jobs have copies of their own
            with suppress(PenstockError, StorageUnavailable):
                await caller.gateway.inputs.remove(file)


async def _receive(
    caller: Caller, names: Mapping[str, FileField], uploads: list[tuple[str, StoredFile]]
) -> ReceivedForm:
    texts: list[tuple[str, str]] = []
    size = 0
    refuse_encoding(caller.request)
    reader = _Reader(caller.request)
    while (part := await reader.next_part()) is not None:
        if part.filename is not None:
            field = _find_field(part.name, names, [name for name, _ in uploads])
            uploads.append((part.name.removesuffix("[]"), await _store(caller, part, field.kind, reader)))
            continue
        data = b""
        async for piece in reader.data():
            data += piece
            size += len(piece)
            if size > MAX_FIELD_BYTES:
                raise BodyTooLarge(f"The fields of the form have more than {MAX_FIELD_BYTES} bytes.", param=part.name)
        texts.append((part.name, _decode(part.name, data)))
        if len(texts) > MAX_FIELDS:
            raise InvalidRequest(f"The form has more than {MAX_FIELDS} fields.")
    return ReceivedForm(nest(texts), tuple(uploads))


def _find_field(name: str, names: Mapping[str, FileField], taken: Sequence[str]) -> FileField:
    plain = name.removesuffix("[]")
    field = names.get(plain)
    if field is None:
        allowed = ", ".join(f"`{each}`" for each in names)
        raise InvalidRequest(f"`{name[:64]}` is not a file of this form: allowed are {allowed}.", param=name[:64])
    if taken.count(plain) >= field.most:
        most = "one file" if field.most == 1 else f"at most {field.most} files"
        raise InvalidRequest(f"`{plain}` takes {most}.", param=plain)
    return field


async def _store(caller: Caller, part: _Part, kind: FileKind, reader: "_Reader") -> StoredFile:
    """Store a file as an upload."""
    gateway, account = caller.gateway, caller.account_id
    if caller.storage_quota is not None:
        await gateway.database.read(storage_rows.refuse_full, account, caller.storage_quota)
    retention = gateway.settings.jobs.file_retention
    try:
        async with aclosing(_limited(reader, part.name, MAX_BYTES[kind])) as chunks:
            name = clean_name(part.filename or "")
            return await gateway.inputs.upload(chunks, account, retention, lambda: name, kinds=(kind,))
    except FileUnreadable as error:
        raise InvalidRequest(error.message, code=error.code, param=part.name) from None


async def _limited(reader: "_Reader", name: str, most: int) -> AsyncGenerator[bytes]:
    """Yield the bytes of a file, at most so many."""
    size = 0
    async for piece in reader.data():
        size += len(piece)
        if size > most:
            raise BodyTooLarge(f"The file is too large: `{name}` takes at most {most >> 20} MB.", param=name)
        yield piece


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"`{name}` is not UTF-8.", param=name) from None


class _Reader:
    """Parses the body of a request piece by piece, as its parts are asked for."""

    def __init__(self, request: Request) -> None:
        _, options = parse_options_header(request.headers.get("content-type", ""))
        if b"boundary" not in options:
            raise InvalidRequest("The `content-type` of the form has no `boundary`.")
        self._stream: AsyncIterator[bytes] = request.stream()
        self._events: deque[_Part | bytes | _End] = deque()
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
            self._parser = MultipartParser(options[b"boundary"], callbacks)
        except FormParserError:
            raise InvalidRequest("The `boundary` of the form is not valid.") from None

    async def next_part(self) -> _Part | None:
        """Return the head of the next part, or None after the last."""
        event = await self._next()
        return cast("_Part | None", event)

    async def data(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of this part. They have to be read to its end."""
        while isinstance(event := await self._next(), bytes):
            yield event

    async def _next(self) -> _Part | bytes | _End | None:
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
        _, options = parse_options_header(self._disposition)
        self._disposition = b""
        name = options.get(b"name")
        if not name:
            raise InvalidRequest("A part of the form has no name.")
        filename = options.get(b"filename")
        text = None if filename is None else filename.decode("utf-8", "replace")
        self._events.append(_Part(name.decode("utf-8", "replace"), text))

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(data[start:end])

    def _end(self) -> None:
        self._is_whole = True


# -- fields


def nest(texts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the fields as objects and arrays: `script[latency]` is a member, `tags[]` an element."""
    found: dict[str, Any] = {}
    for name, text in texts:
        match = _NAME.fullmatch(name)
        if match is None:
            raise InvalidRequest(f"{shorten(name)} is not a name of a field: write `name` or `name[part]`.")
        keys = [match[1], *_KEY.findall(match[2])]
        _put(found, keys, text, name)
    return found


def _put(found: dict[str, Any], keys: Sequence[str], text: str, name: str) -> None:
    place = found
    is_list = keys[-1] == ""
    path = keys[:-1] if is_list else keys
    for key in path[:-1]:
        inner = place.setdefault(key, {})
        if not isinstance(inner, dict):
            raise InvalidRequest(f"The field `{name}` is given twice.", param=name)
        place = cast("dict[str, Any]", inner)
    last = path[-1]
    if is_list:
        values = place.setdefault(last, [])
        if not isinstance(values, list):
            raise InvalidRequest(f"The field `{name}` is given twice.", param=name)
        cast("list[Any]", values).append(text)
    elif last in place:
        raise InvalidRequest(f"The field `{name}` is given twice.", param=name)
    else:
        place[last] = text


def read_texts(model: GenerationModel, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a form with numbers and truth values where the model's params have them."""
    known = fields_of(model.params)
    return {
        name: value if takes_text(as_object(known.get(find_param(name, known)))) else _read_text(value)
        for name, value in fields.items()
    }


def _read_text(value: Any) -> Any:
    """Return the value that a text is in JSON, if it is one."""
    if isinstance(value, dict):
        return {name: _read_text(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_read_text(each) for each in cast("list[Any]", value)]
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return value
