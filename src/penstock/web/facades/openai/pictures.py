"""The answers of OpenAI's image endpoints. Pictures are read and encoded piece by piece, so none is in memory whole."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from io import FileIO
from typing import Any, Final

import msgspec

from penstock.domain.files import StoredAsset
from penstock.domain.jobs import Asset, Job
from penstock.jobs.records import RecordBuilder
from penstock.storage.assets import Assets
from penstock.vendor_api.generation import Role

PIECE_BYTES: Final = 3 << 18
"""Bytes of a picture that are encoded at once: a multiple of three, so that pieces of base64 can be joined."""
NO_USAGE: Final[Mapping[str, Any]] = {
    "input_tokens": 0,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "output_tokens": 0,
    "total_tokens": 0,
}
"""Tokens, as clients expect them. Pictures are not paid by tokens here."""
encode = msgspec.json.encode


def pictures_of(job: Job) -> list[Asset]:
    """Return the pictures that a job has made, without previews."""
    return [asset for asset in job.outputs if asset.kind == "image" and asset.role != Role.PREVIEW]


def describe(job: Job, asset: Asset) -> dict[str, Any]:
    """Return what an answer says of a picture beside its bytes."""
    kind = asset.content_type.removeprefix("image/")
    return {
        "background": job.params.get("background") or "auto",
        "output_format": kind,
        "quality": job.params.get("quality") or "auto",
        "size": f"{asset.width}x{asset.height}" if asset.width else "auto",
    }


def describe_all(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the fields of a whole answer beside its pictures. What the vendor chose itself is left out."""
    job = jobs[0]
    found = {name: value for name, value in describe(job, pictures_of(job)[0]).items() if value != "auto"}
    return {"created": int(job.created_at), **found, "usage": NO_USAGE}


def links(jobs: Sequence[Job], scribe: RecordBuilder) -> list[dict[str, Any]]:
    """Return the pictures as signed links."""
    shown = {asset.id for job in jobs for asset in pictures_of(job)}
    return [{"url": output["url"]} for job in jobs for output in scribe.job(job)["outputs"] if output["id"] in shown]


class Encoded:
    """A JSON text with a picture in base64, and its length."""

    def __init__(self, before: bytes, asset: StoredAsset, after: bytes) -> None:
        self._before, self._asset, self._after = before, asset, after

    @property
    def length(self) -> int:
        """Return the number of bytes."""
        return len(self._before) + -(-self._asset.bytes // 3) * 4 + len(self._after)

    async def pieces(self, assets: Assets) -> AsyncGenerator[bytes]:
        """Yield the text piece by piece."""
        yield self._before
        async for piece in _read_base64(assets, self._asset):
            yield piece
        yield self._after


def whole_answer(jobs: Sequence[Job]) -> list[Encoded]:
    """Return the answer with all pictures in base64."""
    head = encode(describe_all(jobs))[:-1] + b',"data":['
    made = [(job, asset) for job in jobs for asset in pictures_of(job)]
    texts: list[Encoded] = []
    for number, (job, asset) in enumerate(made):
        before = (b"," if number else head) + b'{"b64_json":"'
        texts.append(Encoded(before, _stored(job, asset), b'"}' if number < len(made) - 1 else b'"}]}'))
    return texts


def events(jobs: Sequence[Job], name: str) -> Iterator[Encoded]:
    """Yield the last event of each picture. `name` is `image_generation` or `image_edit`."""
    for job in jobs:
        for asset in pictures_of(job):
            kind = f"{name}.completed"
            rest = {**describe(job, asset), "created_at": int(job.created_at), "usage": NO_USAGE}
            before = b'event: %b\ndata: {"type":"%b","b64_json":"' % (kind.encode(), kind.encode())
            yield Encoded(before, _stored(job, asset), b'",%b\n\n' % encode(rest)[1:])


def _stored(job: Job, asset: Asset) -> StoredAsset:
    return StoredAsset(asset.id, job.account_id, job.id, asset.filename, asset.content_type, asset.bytes, asset.sha256)


async def _read_base64(assets: Assets, asset: StoredAsset) -> AsyncGenerator[bytes]:
    """Yield a picture in base64. Files are read and encoded in a thread."""
    body = await assets.open(asset, 0, asset.bytes)
    if isinstance(body, FileIO):
        with body:
            for _ in range(-(-asset.bytes // PIECE_BYTES)):
                yield await asyncio.to_thread(_encode_next, body)
        return
    rest = b""
    async for piece in body:
        data = rest + piece
        whole = len(data) // 3 * 3
        yield await asyncio.to_thread(b64encode, data[:whole])
        rest = data[whole:]
    if rest:
        yield b64encode(rest)


def _encode_next(file: FileIO) -> bytes:
    """Return the next bytes of a file in base64: as many as are encoded at once, or all that are left."""
    data = file.read(PIECE_BYTES)
    while 0 < len(data) < PIECE_BYTES and (more := file.read(PIECE_BYTES - len(data))):
        data += more
    return b64encode(data)
