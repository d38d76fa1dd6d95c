"""The head of a request, read once: callers that keep a connection say the same again with every request."""

import re
import urllib.parse
from typing import Any, Final

import httptools

from penstock.web.server.asgi import Headers

MAX_BYTES: Final = 4_096
"""A longer head is not remembered."""
MOST: Final = 1_000
GIVEN_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{8,100}")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ?(\d{1,9})\r\n", re.IGNORECASE)
SINGLE: Final = frozenset(
    {
        *(b"authorization", b"host", b"x-api-key", b"idempotency-key", b"x-request-id"),
        *(b"content-length", b"transfer-encoding", b"content-type", b"content-encoding"),
    }
)
"""Of two of these one reader would believe the first and the next one the last."""
_READ_ANEW: Final = frozenset({b"transfer-encoding", b"upgrade", b"expect", b"x-request-id"})
"""What is said with these is of one request alone, or of more than it."""


class Head:
    """What a request says before its body. `proof` is for whoever checks the key: what it found out."""

    __slots__ = ("fields", "has_origin", "headers", "keep_alive", "length", "length_at", "proof", "scope")

    def __init__(self, method: str, url: bytes, version: str, headers: Headers, *, keep_alive: bool) -> None:
        parsed = httptools.parse_url(url)
        path = parsed.path.decode("ascii")
        if path.endswith("/"):  # answered as the path without it
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
        """Of the body; None where only reading tells."""
        self.proof: Any = None
        for place, (name, value) in enumerate(headers):
            if name == b"content-length":
                self.length_at, self.length = place, int(value)
                break
            if name == b"transfer-encoding":
                self.length = None
                break

    def find_repeated(self) -> str | None:
        """Return the name of a header that may be sent only once and was sent more often; None: there is none."""
        if len(self.fields) == len(self.headers):
            return None  # as nearly always
        seen: set[bytes] = set()
        for name, _ in self.headers:
            if name in SINGLE and name in seen:
                return name.decode("ascii")
            seen.add(name)
        return None

    @property
    def given_id(self) -> str | None:
        """A sane id that the caller, or a proxy before us, gave the request."""
        given = self.fields.get(b"x-request-id")
        return given.decode() if given is not None and GIVEN_ID.fullmatch(given) else None


class Heads:
    """Heads that came twice, by their bytes without the number of the body's; no more than a thousand."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}
        self._once: set[int] = set()

    def __len__(self) -> int:
        """How many are known."""
        return len(self._known)

    def find(self, data: bytes) -> tuple[Head, Headers, bytes] | None:
        """A request that is just a known head and its whole body: the head, its lines and the body."""
        end = data.find(b"\r\n\r\n", 0, MAX_BYTES)
        if end < 0:
            return None
        end += 2
        length = _LENGTH.search(data, 0, end)
        if length is None:
            head = self._known.get(data[:end])
            if head is None or head.length_at is not None or len(data) != end + 2:
                return None  # a length that is told without a number is for the parser to refuse
            return head, head.headers, b""
        told = length[1]
        first, last = length.span(1)
        head = self._known.get(data[:first] + data[last:end])
        if head is None or len(data) - end - 2 != int(told):
            return None
        headers = head.headers
        place = head.length_at
        if place is not None and headers[place][1] != told:
            headers = headers.copy()
            headers[place] = (b"content-length", told)
        return head, headers, data[end + 2 :]

    def keep(self, data: bytes, head: Head) -> None:
        """Remember the head of a request that came whole and alone in one read, once it comes for the second time."""
        end = data.find(b"\r\n\r\n", 0, MAX_BYTES) + 2
        length = _LENGTH.search(data, 0, end)
        if not head.keep_alive or head.fields.keys() & _READ_ANEW or not _is_plain(data[:end], head):
            return
        if len(data) != end + 2 + (head.length or 0) or (0 if length is None else int(length[1])) != head.length:
            return
        name = data[:end] if length is None else data[: length.start(1)] + data[length.end(1) : end]
        if len(self._once) >= MOST:
            self._once.clear()
            self._known.clear()
        if hash(name) in self._once:
            self._known[name] = head
        else:
            self._once.add(hash(name))


def _is_plain(lines: bytes, head: Head) -> bool:
    """Whether it is written as nearly all are, so that it can be told apart by its bytes: a line for each header."""
    wanted = len(head.headers) + 1
    first = f"{head.scope['method']} ".encode()
    is_regular = lines.count(b"\n") == lines.count(b"\r\n") == lines.count(b"\r") == wanted
    return is_regular and lines.startswith(first) and lines.split(b"\r\n", 1)[0].endswith(b" HTTP/1.1")
