"""Replies with embeddings: passed on unchanged, or written in the form that the caller asked for."""

import binascii
import math
import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from penstock.chat.replies.broken import Broken, Malformed
from penstock.chat.replies.flat_errors import read_error
from penstock.domain.chat import Ask, Usage, read_count
from penstock.vendor_api.embeddings import Embedder, Embeddings
from penstock.vendor_api.lenient_json import MARK, UNREADABLE

Vector: TypeAlias = str | list[float]
"""Base64 of little-endian float32, or numbers."""


class _Usage(msgspec.Struct):
    prompt_tokens: int
    total_tokens: int


class _Item(msgspec.Struct):
    object: str
    index: int
    embedding: Vector


class _Reply(msgspec.Struct):
    """A good reply, which passes unchanged."""

    object: str
    model: str
    data: list[_Item]
    usage: _Usage


class _OddItem(msgspec.Struct):
    embedding: Vector
    index: int | None = None


class _OddReply(msgspec.Struct):
    """The least that a reply must have to be written again."""

    data: list[_OddItem]
    model: Any = None
    usage: Any = None


_good = msgspec.json.Decoder(_Reply)
_odd = msgspec.json.Decoder(_OddReply)


def read_vectors(vendor: object, body: bytes, ask: Ask) -> tuple[bytes, Usage | None, int]:
    """Return a vendor's reply for the caller, its usage, and 0 characters."""
    try:
        found = vendor.read_embeddings(body) if isinstance(vendor, Embedder) else None
    except UNREADABLE as error:
        if failure := read_error(body):
            raise Broken(failure) from None
        raise Malformed(str(error)) from None
    return pass_vectors(body, ask) if found is None else _write_found(found, ask)


def pass_vectors(body: bytes, ask: Ask) -> tuple[bytes, Usage | None, int]:
    """Return a reply in OpenAI's dialect with its vectors in the form asked for, its usage, and 0 characters."""
    body = body.removeprefix(MARK)
    count, as_base64 = _count_texts(ask), _wants_base64(ask)
    try:
        reply = _good.decode(body)
    except UNREADABLE:
        return _mend(body, ask)
    is_ordered = [item.index for item in reply.data] == list(range(count))
    if not is_ordered or any(isinstance(item.embedding, str) is not as_base64 for item in reply.data):
        return _mend(body, ask)
    _check([item.embedding for item in reply.data])
    return body, Usage(read_count(reply.usage.prompt_tokens)), 0


def _count_texts(ask: Ask) -> int:
    """Return the number of texts of a request, which is the number of vectors to expect."""
    given = ask.field("input")
    is_one = isinstance(given, str) or isinstance(given[0], int)
    return 1 if is_one else len(given)


def _wants_base64(ask: Ask) -> bool:
    return ask.field("encoding_format") == "base64"


def _write_found(found: Embeddings, ask: Ask) -> tuple[bytes, Usage | None, int]:
    """Return the vectors of a vendor with another dialect as OpenAI would."""
    usage = None if found.tokens is None else Usage(read_count(found.tokens))
    vectors = [list(vector) for vector in found.vectors]
    return _write(vectors, found.model or ask.model, usage, ask), usage, 0


def _mend(body: bytes, ask: Ask) -> tuple[bytes, Usage | None, int]:
    """Write a reply again that lacks something, or has its vectors in another form or order."""
    if error := read_error(body):
        raise Broken(error)
    try:
        reply = _odd.decode(body)
    except UNREADABLE as error:
        raise Malformed(str(error)) from None
    items = reply.data
    if all(item.index is not None for item in items):
        items = sorted(items, key=lambda item: item.index or 0)
        if [item.index for item in items] != list(range(len(items))):
            raise Malformed("the vectors do not belong to the texts")
    usage = _read_usage(reply.usage)
    model = reply.model if isinstance(reply.model, str) else ask.model
    return _write([item.embedding for item in items], model, usage, ask), usage, 0


def _write(vectors: Sequence[Vector], model: str, usage: Usage | None, ask: Ask) -> bytes:
    if len(vectors) != (count := _count_texts(ask)):
        raise Malformed(f"the reply has {len(vectors)} vectors for {count} texts")
    _check(vectors)
    convert = to_base64 if _wants_base64(ask) else to_floats
    try:
        data = [
            {"object": "embedding", "index": index, "embedding": convert(vector)}
            for index, vector in enumerate(vectors)
        ]
    except (ValueError, OverflowError) as error:
        raise Malformed(str(error)) from None
    tokens = ask.prompt if usage is None else usage.prompt
    counts = {"prompt_tokens": tokens, "total_tokens": tokens}
    return msgspec.json.encode({"object": "list", "data": data, "model": model, "usage": counts})


def _read_usage(usage: Any) -> Usage | None:
    match usage:
        case {"prompt_tokens": int(tokens)} | {"total_tokens": int(tokens)}:
            return Usage(read_count(tokens))
        case _:
            return None


def _check(vectors: Iterable[Vector]) -> None:
    """Check that all vectors can be read and have one length."""
    try:
        lengths = {len(_unpack(vector) if isinstance(vector, str) else vector) for vector in vectors}
    except ValueError as error:
        raise Malformed(str(error)) from None
    if len(lengths) != 1 or 0 in lengths:
        raise Malformed("the vectors are empty or differ in length")


def to_base64(vector: Vector) -> str:
    """Return a vector as base64 of little-endian float32. Raise `ValueError` if it is not a vector."""
    if isinstance(vector, str):
        return vector
    packed = array("f", vector)
    if not all(map(math.isfinite, packed)):
        raise ValueError("a number does not fit into 32 bits")
    if sys.byteorder == "big":
        packed.byteswap()
    return b64encode(packed.tobytes()).decode()


def to_floats(vector: Vector) -> list[float]:
    """Return a vector as numbers, each of which is the very float32. Raise `ValueError` if it is not a vector."""
    if isinstance(vector, list):
        return vector
    numbers = _unpack(vector).tolist()
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a number is not finite")
    return numbers


def _unpack(text: str) -> "array[float]":
    packed = array("f")
    try:
        packed.frombytes(b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"a vector is not base64 of float32: {error}") from None
    if sys.byteorder == "big":
        packed.byteswap()
    return packed
