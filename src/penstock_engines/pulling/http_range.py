"""Downloads of files over HTTP that continue where an earlier one stopped."""

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

from penstock_engines.pulling.weight import CHUNK, PullError, Unreachable

TIMEOUT_SECONDS = 30
HEADERS = {"User-Agent": "penstock", "Accept": "*/*"}
RANGE_NOT_SATISFIABLE = 416


def fetch_text(address: str, accept: str) -> tuple[str, str]:
    """Return a page and the address that it came from after redirects. Raise PullError."""
    try:
        with _open(address, {"Accept": accept}) as reply:
            return reply.read().decode("utf-8", "replace"), reply.url
    except (OSError, HTTPException) as error:
        raise _explain(error, address) from error


def read_from(address: str, start: int, total: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` on, or nothing if that is its end. Raise PullError.

    A server without ranges sends the beginning again, which is skipped. If `total` is given, a file of another size
    is refused before its first byte.
    """
    wanted = {"Range": f"bytes={start}-"} if start else {}
    try:
        with _open(address, wanted) as reply:
            position, size = _read_extent(reply)
            _check_extent(position, size, start, total)
            while position < size and (chunk := reply.read(min(CHUNK, size - position))):
                fresh = chunk[max(0, start - position) :]
                position += len(chunk)
                if fresh:
                    yield fresh
    except urllib.error.HTTPError as error:
        if error.code == RANGE_NOT_SATISFIABLE and start and total is None:
            return  # it was complete
        raise _explain(error, address) from error
    except (OSError, HTTPException) as error:
        raise _explain(error, address) from error
    if position < size:
        raise PullError(f"{_host(address)} broke off after {position} of {size} bytes.")


def _open(address: str, headers: dict[str, str]) -> HTTPResponse:
    if urlsplit(address).scheme not in ("http", "https"):
        raise PullError(f"{address} is not an address of the web.")
    request = urllib.request.Request(address, headers=HEADERS | headers)  # noqa: S310  the scheme was checked
    return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310


def _read_extent(reply: HTTPResponse) -> tuple[int, int]:
    """Return the first position of a reply, and the size of the whole file; -1 if the reply does not say it."""
    if reply.status == 206:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", reply.headers.get("Content-Range", ""))
        return (int(found[1]), int(found[2])) if found else (0, -1)
    size = reply.headers.get("Content-Length", "")
    return 0, int(size) if size.isdecimal() else -1


def _check_extent(position: int, size: int, start: int, total: int | None) -> None:
    if size < 0 or position > start:
        raise PullError("The server sent neither the file nor the range that was asked for.")
    if total is not None and size != total:
        raise PullError(f"The file there has {size} bytes instead of {total}.")


def _explain(error: OSError | HTTPException, address: str) -> PullError:
    host = _host(address)
    match error:
        case urllib.error.HTTPError():
            return PullError(f"{host} answered {error.code} {error.reason}.")
        case urllib.error.URLError():
            return Unreachable(f"{host} does not answer: {error.reason}.")
        case _:
            return PullError(f"{host} broke off: {error or type(error).__name__}.")


def _host(address: str) -> str:
    return urlsplit(address).hostname or address
