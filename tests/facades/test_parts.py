"""Parts of forms: splitting a small form at once finds what the parser finds as it arrives."""

from collections.abc import AsyncIterator

from hypothesis import example, given
from hypothesis import strategies as some

from penstock.errors import InvalidRequest
from penstock.web.facades.parts import Part, _PartParser, split_parts

BOUNDARY = b"x"
HEAD = b'--x\r\ncontent-disposition: form-data; name="a"'
PIECES = [
    *(b"--x", b"--x--", b"\r\n", b"\r", b"\n", b"--", b"-", b"x", b"", b"a", b"\0", b"\xff", b"\r\n\r\n", b": "),
    *(b'content-disposition: form-data; name="a"', b'Content-Disposition: form-data; name="b"; filename="c"'),
    *(b"content-disposition: form-data", b"content-type: text/plain", b'name="%22"', b"content-disposition: "),
]


async def parse(body: bytes) -> list[tuple[Part, bytes]] | None:
    """Return what the parser finds; None for what it refuses."""

    async def arrive() -> AsyncIterator[bytes]:
        yield body

    found: list[tuple[Part, bytes]] = []
    try:
        parser = _PartParser(arrive(), BOUNDARY)
        while (part := await parser.next_part()) is not None:
            found.append((part, b"".join([piece async for piece in parser.data()])))
    except InvalidRequest:
        return None
    return found


def split(body: bytes) -> list[tuple[Part, bytes]] | None:
    """Return what splitting finds; None for what it leaves to the parser, or refuses."""
    try:
        return split_parts(body, BOUNDARY)
    except InvalidRequest:
        return None


def test_a_plain_form_is_split() -> None:
    body = HEAD + b'\r\n\r\n1\r\n--x\r\nContent-Disposition: form-data; name="f"; filename="f.png"\r\n'
    body += b"Content-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\n\r\n--x--\r\n"

    assert split(body) == [(Part("a", None), b"1"), (Part("f", "f.png"), b"\x89PNG\r\n\x1a\n")]


@given(some.lists(some.sampled_from(PIECES), max_size=12).map(b"".join))
@example(b"")
@example(b"\r\n--xy\r\n")
@example(b"\r\n--x")
@example(b"\r\n--x\r\n\r\n")
async def test_what_is_split_is_what_the_parser_finds(middle: bytes) -> None:
    for body in (
        HEAD + b"\r\n\r\n" + middle + b"\r\n--x--\r\n",
        HEAD + b"\r\n" + middle + b"\r\n\r\n1\r\n--x--",
        b"--x\r\n" + middle + b"\r\n\r\n1\r\n--x--",
        middle + HEAD + b"\r\n\r\n1\r\n--x--\r\n",
        HEAD + b"\r\n\r\n1" + middle,
    ):
        found = split(body)
        if found is not None:
            assert found == await parse(body), body
