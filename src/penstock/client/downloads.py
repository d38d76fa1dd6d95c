"""Download of outputs: resumed after a cut, checked against the sha256, and renamed into place."""

import contextlib
import hashlib
import io
import os
import secrets
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from penstock.client.config import path_to
from penstock.client.errors import BadInput, ConnectionFailed, DownloadFailed
from penstock.client.records import OutputRecord
from penstock.client.transport.retries import Policy, attempt, backoff_seconds
from penstock.client.transport.steps import Close, Flow, Open, Pause, Read, Reply, Request, Work

MAX_EMPTY_ANSWERS: Final = 5
"""Answers in a row without a single byte before the download fails."""


class PartialDownload:
    """Bytes received so far, and their digest."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.count = 0

    def add(self, chunk: bytes) -> None:
        """Append the next bytes."""
        self._stream.write(chunk)
        self._digest.update(chunk)
        self.count += len(chunk)

    def start_over(self) -> None:
        """Discard the bytes received so far."""
        self._stream.seek(0)
        self._stream.truncate()
        self._digest = hashlib.sha256()
        self.count = 0

    def check(self, output: OutputRecord) -> None:
        """Raise DownloadFailed if the digest is not that of the stored output."""
        if output.sha256 and self._digest.hexdigest() != output.sha256:
            raise DownloadFailed(
                f"{output.id}: the {self.count} bytes received do not match the sha256 of the stored output."
            )


def load(output: OutputRecord, stream: IO[bytes], policy: Policy) -> Flow[None]:
    """Write all bytes of an output to a stream. The key is used, because a signed link may have expired."""
    received, empty_answers = PartialDownload(stream), 0
    while True:
        reply: Reply = yield from attempt(Open(_request(output, received.count)), policy)
        if reply.status != 206 and received.count:
            received.start_over()
        before, cut = received.count, None
        try:
            while chunk := (yield Read()):
                yield Work(partial(received.add, chunk))
        except ConnectionFailed as failure:
            cut = failure
        if received.count >= output.size:
            yield Close()
            return received.check(output)
        empty_answers = empty_answers + 1 if received.count == before else 0
        if empty_answers > MAX_EMPTY_ANSWERS:
            raise cut or DownloadFailed(f"{output.id}: the server sends only {received.count} of {output.size} bytes.")
        yield Pause(backoff_seconds(empty_answers))


def _request(output: OutputRecord, start: int) -> Request:
    headers = {"accept-encoding": "identity"}
    if start:
        headers |= {"range": f"bytes={start}-", "if-range": f'"{output.sha256}"'}
    path = path_to("/api/v1/assets", output.id, output.filename)
    return Request(method="GET", path=path, headers=headers, follows=True)


def save(output: OutputRecord, path: Any, policy: Policy) -> Flow[Path]:
    """Save an output to a path, or under its own name in a folder. A partial file is never left behind."""
    target = _target(output, path)
    if target.exists() and not target.is_file():  # devices and pipes are written to, never replaced
        held = io.BytesIO()
        yield from load(output, held, policy)
        yield Work(partial(target.write_bytes, held.getvalue()))
        return target
    place = target.resolve()  # keeps a symbolic link
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{secrets.token_hex(8)}.part")  # short, so that it fits where a long name fits
    stream = part.open("x+b")  # not as a step: one that is canceled would leave the file behind
    try:
        with stream:
            yield from load(output, stream, policy)
            yield Work(partial(_flush, stream))
        yield Work(partial(part.replace, place))
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    return target


def _target(output: OutputRecord, path: Any) -> Path:
    try:
        named = Path(path).expanduser()
    except RuntimeError:
        raise BadInput(f"{path}: this home folder does not exist.") from None
    is_folder = named.is_dir() or str(path).endswith(("/", os.sep))
    return named / output.filename if is_folder else named


def _flush(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())
