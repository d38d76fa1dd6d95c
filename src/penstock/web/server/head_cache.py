"""A cache of parsed request heads, since clients send equal heads with every request of a connection."""

import re
import urllib.parse
from typing import Any, Final

import httptools

from penstock.web.server.asgi import Headers

MAX_HEAD_BYTES: Final = 4_096
"""Longer heads are not cached."""
MAX_HEADS: Final = 1_000
GIVEN_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{8,100}")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?(\d{1,9})\r\n", re.IGNORECASE)
SINGLE: Final = frozenset(
    {
        *(b"authorization", b"host", b"x-api-key", b"x-goog-api-key", b"idempotency-key", b"x-request-id"),
        *(b"content-length", b"transfer-encoding", b"content-type", b"content-encoding"),
    }
)
"""Headers that may be sent once. Given two of them, one reader would use the first and another the last."""
_UNCACHED: Final = frozenset({b"transfer-encoding", b"upgrade", b"expect", b"x-request-id"})
"""Heads with these headers are not cached: their meaning is not limited to, or not shared between, requests."""


class Head:
    """The parsed head of a request. `proof` is where the key check keeps its result for the next request.

    `attribution` is where the tags, end user and session of the headers are kept.
    """

    __slots__ = (
        *("attribution", "fields", "has_origin", "headers", "keep_alive", "length", "length_at", "proof", "scope"),
    )

    def __init__(self, method: str, url: bytes, version: str, headers: Headers, *, keep_alive: bool) -> None:
        parsed = httptools.parse_url(url)
        path = parsed.path.decode("ascii")
        if path.endswith("/"):  # trailing slashes are ignored
            path = path.rstrip("/") or "/"
        self.scope: dict[str, Any] = {
            "type": "http",
            "http_version": version,
            "method": method,
            "path": urllib.parse.unquote(path) if "%" in path else path,
            "raw_path": parsed.path,
            "query_string": parsed.query or b"",
            "root_path": "",
        }
        self.headers = headers
        self.fields = dict(headers)
        self.keep_alive = keep_alive
        self.has_origin = b"origin" in self.fields
        self.length_at: int | None = None
        self.length: int | None = 0
        """Bytes of the body, or None if the head does not declare them."""
        self.proof: Any = None
        self.attribution: Any = None
        for place, (name, value) in enumerate(headers):
            if name == b"content-length":
                self.length_at, self.length = place, int(value)
                break
            if name == b"transfer-encoding":
                self.length = None
                break

    def find_repeated(self) -> str | None:
        """Return the name of a header that was sent more than once although it may not be, or None."""
        if len(self.fields) == len(self.headers):
            return None  # the usual case
        seen: set[bytes] = set()
        for name, _ in self.headers:
            if name in SINGLE and name in seen:
                return name.decode("ascii")
            seen.add(name)
        return None

    @property
    def given_id(self) -> str | None:
        """The valid `x-request-id` that the client or a proxy sent, or None."""
        given = self.fields.get(b"x-request-id")
        return given.decode() if given is not None and GIVEN_ID.fullmatch(given) else None


class Heads:
    """Heads that arrived at least twice, by their bytes without the value of `content-length`."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}
        self._once: set[int] = set()

    def __len__(self) -> int:
        """Return the number of cached heads."""
        return len(self._known)

    def find(self, data: bytes) -> tuple[Head, Headers, bytes] | None:
        """Return head, headers and body of data that is a cached head with its whole body, else None."""
        end = data.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
        if end < 0:
            return None
        end += 2
        length = _LENGTH.search(data, 0, end)
        if length is None:
            head = self._known.get(data[:end])
            if head is None or head.length_at is not None or len(data) != end + 2:
                return None  # the parser refuses a length that is no number
            return head, head.headers, b""
        declared = length[1]
        first, last = length.span(1)
        head = self._known.get(data[:first] + data[last:end])
        if head is None or len(data) - end - 2 != int(declared):
            return None
        headers = head.headers
        place = head.length_at
        if place is not None and headers[place][1] != declared:
            headers = headers.copy()
            headers[place] = (b"content-length", declared)
        return head, headers, data[end + 2 :]

    def keep(self, data: bytes, head: Head) -> None:
        """Cache the head of a request that arrived complete and alone in one read, from its second time on."""
        end = data.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES) + 2
        length = _LENGTH.search(data, 0, end)
        if not head.keep_alive or head.fields.keys() & _UNCACHED or not _is_plain(data[:end], head):
            return
        if len(data) != end + 2 + (head.length or 0) or (0 if length is None else int(length[1])) != head.length:
            return
        name = data[:end] if length is None else data[: length.start(1)] + data[length.end(1) : end]
        if len(self._once) >= MAX_HEADS:
            self._once.clear()
            self._known.clear()
        if hash(name) in self._once:
            self._known[name] = head
        else:
            self._once.add(hash(name))


def _is_plain(lines: bytes, head: Head) -> bool:
    """Return whether the head has one CRLF line per header, so that its bytes identify it."""
    wanted = len(head.headers) + 1
    first = f"{head.scope['method']} ".encode()
    is_regular = lines.count(b"\n") == lines.count(b"\r\n") == lines.count(b"\r") == wanted
    return is_regular and lines.startswith(first) and lines.split(b"\r\n", 1)[0].endswith(b" HTTP/1.1")
