"""The file in a form comes out as it went in, wherever the body is cut."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from penstock.errors import InvalidRequest
from penstock.web.multipart import FileUpload

TRICKY = st.lists(st.sampled_from([b"\r", b"\n", b"-", b"--", b"\r\n--edg", b"\r\n--edge", b"e", b"\0"])).map(b"".join)


def part(head: bytes, data: bytes) -> bytes:
    return b"--edge\r\nContent-Disposition: form-data; " + head + b"\r\n\r\n" + data + b"\r\n"


def read(body: bytes, cuts: list[int]) -> bytes:
    """What comes of a body in pieces."""
    places = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    pieces = [body[start:end] for start, end in pairwise(places)]
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive():
        return messages.pop(0)

    async def gather() -> bytes:
        kind = b'multipart/form-data; boundary="edge"'
        request = Request({"type": "http", "headers": [(b"content-type", kind)]}, receive)
        return b"".join([piece async for piece in FileUpload(request).chunks()])

    return asyncio.run(gather())


@given(TRICKY.filter(lambda data: b"\r\n--edge" not in b"\r\n" + data), st.lists(st.integers(0, 300)))
def test_a_file_is_the_same_wherever_it_is_cut(data, cuts):
    before, after = part(b'name="note"', b"text"), part(b'name="more"', data)
    file = part(b'name="file"; filename="cat.png"\r\nContent-Type: image/png', data)
    assert read(before + file + after + b"--edge--\r\n", cuts) == data
    with pytest.raises(InvalidRequest):
        read(before + file[:-2] + b"\r\n--edge", cuts)


@pytest.mark.parametrize(
    "body",
    [
        part(b'name="file"; filename="a"', b"1") + part(b'name="other"; filename="b"', b"2"),
        part(b'filename="a"', b"1"),
        part(b'name="file"; filename="a"', b"1") + part(b'name="x"', b"2") * 9,
        part(b'name="file"', b"1"),
        b"--edge\r\nX: " + b"y" * 9000 + b"\r\n\r\n1\r\n",
        b"--edge\r\n" + b"X: y\r\n" * 100 + b"\r\n1\r\n",
    ],
    ids=["two files", "nameless", "many fields", "no file", "a long head", "many lines"],
)
def test_forms_that_are_refused(body):
    with pytest.raises(InvalidRequest):
        read(body + b"--edge--\r\n", [])
