"""Getting an output: resumed where it was cut, checked against its sha256, and put in place in one step."""

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
from penstock.client.transport.retries import Policy, attempt, guess_pause
from penstock.client.transport.steps import Close, Flow, Open, Pause, Read, Reply, Request, Work

FRUITLESS: Final = 5
"""How often in a row an answer may bring nothing before one gives up."""


class Catch:
    """What has come so far of an output, and its digest."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.count = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._stream.write(chunk)
        self._digest.update(chunk)
        self.count += len(chunk)

    def start_over(self) -> None:
        """Forget what has come."""
        self._stream.seek(0)
        self._stream.truncate()
        self._digest = hashlib.sha256()
        self.count = 0

    def check(self, output: OutputRecord) -> None:
        """Compare it with what was stored."""
        if output.sha256 and self._digest.hexdigest() != output.sha256:
            raise DownloadFailed(
                f"{output.id}: what came ({self.count} bytes) does not have the sha256 that was stored."
            )


def load(output: OutputRecord, stream: IO[bytes], policy: Policy) -> Flow[None]:
    """All bytes of an output into a stream, by the key: a signed link may be over."""
    catch, fruitless = Catch(stream), 0
    while True:
        reply: Reply = yield from attempt(Open(_request(output, catch.count)), policy)
        if reply.status != 206 and catch.count:
            catch.start_over()
        before, cut = catch.count, None
        try:
            while chunk := (yield Read()):
                yield Work(partial(catch.add, chunk))
        except ConnectionFailed as failure:
            cut = failure
        if catch.count >= output.size:
            yield Close()
            return catch.check(output)
        fruitless = fruitless + 1 if catch.count == before else 0
        if fruitless > FRUITLESS:
            raise cut or DownloadFailed(f"{output.id}: only {catch.count} of {output.size} bytes come.")
        yield Pause(guess_pause(fruitless))


def _request(output: OutputRecord, start: int) -> Request:
    headers = {"accept-encoding": "identity"}
    if start:
        headers |= {"range": f"bytes={start}-", "if-range": f'"{output.sha256}"'}
    path = path_to("/api/v1/assets", output.id, output.filename)
    return Request(method="GET", path=path, headers=headers, follows=True)


def save(output: OutputRecord, path: Any, policy: Policy) -> Flow[Path]:
    """Write an output to a path, or under its own name into a folder: all of it, or nothing."""
    target = _target(output, path)
    if target.exists() and not target.is_file():  # a device or a pipe is written to, never replaced
        held = io.BytesIO()
        yield from load(output, held, policy)
        yield Work(partial(target.write_bytes, held.getvalue()))
        return target
    place = target.resolve()  # a link stays one
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{secrets.token_hex(8)}.part")  # shorter than most names: a long one must fit as well
    stream = part.open("x+b")  # at once: a step that is canceled would leave it behind
    try:
        with stream:
            yield from load(output, stream, policy)
            yield Work(partial(_settle, stream))
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
        raise BadInput(f"{path} is nowhere: there is no such home.") from None
    is_folder = named.is_dir() or str(path).endswith(("/", os.sep))
    return named / output.filename if is_folder else named


def _settle(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())
