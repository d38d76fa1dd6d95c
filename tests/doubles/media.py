"""What every double of a media vendor has: books of orders, plans for them, and a file host whose links expire."""

import asyncio
import base64
import binascii
import hashlib
import io
import json
import time
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import httpx
from aiohttp import web
from PIL import Image
from plain import NO_TLS
from python_multipart import parse_form
from small_media import solid
from vendors.double import HttpDouble

from penstock.simulator import samples


@dataclass(frozen=True)
class Sample:
    """What the suite of plain data must be told of a vendor: settings, an operation, and replies it understands.

    `orders` are upstream names of models with params that it takes.
    """

    options: Mapping[str, Any]
    operation: Mapping[str, Any]
    replies: Mapping[str, list[tuple[int, Any, type]]]
    orders: Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Case:
    """A request that callers may make: a model and its params; `file` is put in where it is wanted."""

    model: str
    params: Mapping[str, Any]
    takes_file: bool = False
    warnings: int = 0  # how many losses the record tells


@dataclass(frozen=True)
class Verdict:
    """What a job says in the end; no code: it succeeded."""

    code: str | None
    retryable: bool = False


@dataclass(frozen=True)
class Refusal:
    """An answer to an order that was not taken, and what the job says then."""

    status: int
    body: Any
    verdict: Verdict
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Plan:
    """How an order goes: so many polls, or seconds, until its ending; a double has endings of its own besides `ok`."""

    ending: str = "ok"
    polls: int = 2
    seconds: float | None = None


@dataclass(frozen=True)
class Wish:
    """What the result is to look like."""

    kind: str  # model, video or image
    width: int = 1280
    height: int = 720
    seconds: int = 4
    face_limit: int | None = None
    picture_type: str = ""  # of a picture in its full size; without it, a small one
    form: str = ""  # of a model that is no plain GLB: a format, or `rigged`


@dataclass
class Placed:
    """One order in the vendor's books."""

    id: str
    body: Any
    wish: Wish
    plan: Plan
    created_at: float = field(default_factory=time.time)
    polls: int = 0
    canceled: bool = False
    webhook: str | None = None
    noticed_at: float | None = None  # when a poll first saw it done

    @property
    def done(self) -> bool:
        """Asked by polls: the first to see it done is written down."""
        if self.is_over() and self.noticed_at is None:
            self.noticed_at = time.time()
        return self.is_over()

    def is_over(self) -> bool:
        if self.plan.seconds is None:
            return self.polls > self.plan.polls
        return time.time() >= self.created_at + self.plan.seconds


GEM_FACES = 500
"""More than the sample model ever has: a larger limit changes nothing."""


def make_result(wish: Wish) -> bytes:
    limit = wish.face_limit if wish.face_limit is not None and wish.face_limit < GEM_FACES else None
    return _make(replace(wish, face_limit=limit))


@lru_cache(maxsize=32)
def _make(wish: Wish) -> bytes:
    match wish.kind:
        case "video":
            return samples.make_video(wish.width, wish.height, wish.seconds, 7)
        case "model" if wish.form:
            return solid(wish.form)
        case "model":
            return samples.make_model(7, wish.face_limit, True)
        case _ if wish.picture_type:
            return draw_picture(wish.width, wish.height, wish.picture_type)
        case _:
            return samples.make_preview(7)


def draw_picture(width: int, height: int, picture_type: str, *, is_clear: bool = False, shade: int = 0) -> bytes:
    """A plain picture of this size and type; a clear one is transparent everywhere."""
    mode, colour = ("RGBA", (200, 60, shade, 0)) if is_clear else ("RGB", (200, 60, shade))
    buffer = io.BytesIO()
    Image.new(mode, (width, height), colour).save(buffer, picture_type.upper())
    return buffer.getvalue()


class FileHost(HttpDouble):
    """Where results lie, on another port than the vendor: links are signed, and no credential belongs here."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, tuple[Placed, str, float]] = {}
        self.stale = 0  # how many of the next links are too old from the start
        self.spoiled = 0  # how many of the next downloads hold other bytes
        self.seconds = 60.0

    def link(self, order: Placed, name: str) -> str:
        """A new address for a file of an order."""
        token = uuid.uuid4().hex
        age = self.seconds + 1 if self.stale else 0.0
        self.stale = max(0, self.stale - 1)
        self.files[token] = (order, name, time.monotonic() - age)
        return f"{self.url}/{order.id}/{name}?signature={token}%2F+x&expires=soon"

    async def play(self, request: web.BaseRequest) -> web.StreamResponse:
        token = request.path_qs.partition("signature=")[2].partition("%2F+x&")[0]  # as it was signed, byte for byte
        found = self.files.get(token)
        if found is None or time.monotonic() - found[2] > self.seconds:
            return web.Response(status=403, text="<Error>Request has expired</Error>")
        order, name, _ = found
        if self.spoiled or order.plan.ending == "corrupt":
            self.spoiled = max(0, self.spoiled - 1)
            return web.Response(body=b"not what it should be" * 50)
        wish = Wish("image") if name.startswith("preview") else order.wish
        return web.Response(body=await asyncio.to_thread(make_result, wish))


class MediaDouble(HttpDouble):
    """A media vendor. A subclass speaks as the vendor's documents say, and tells the suite what to expect."""

    vendor: ClassVar[str]
    mode: ClassVar[str] = ""  # of a vendor with several doubles
    credential: ClassVar[str] = "vendor-credential-0123456789"
    wrong_credential: ClassVar[Mapping[str, Any]] = {"api_key": "another-credential"}
    cases: ClassVar[Sequence[Case]]
    order_call: ClassVar[tuple[str, str]]  # method and path of the call that costs money
    poll_call: ClassVar[tuple[str, str]]
    finds: ClassVar[bool] = False  # whether a lost order can be found again
    cancels: ClassVar[bool] = False
    links: ClassVar[bool] = True  # whether results lie behind links that expire
    endings: ClassVar[Mapping[str, Verdict]]
    refusals: ClassVar[Mapping[str, Refusal]]
    busy: ClassVar[Refusal]
    longest: ClassVar[float] = 3.0  # how many seconds an order takes at most in a storm

    def __init__(self) -> None:
        super().__init__()
        self.host = FileHost()
        self.orders: dict[str, Placed] = {}
        self.plans: deque[Plan] = deque()
        self.inputs: list[tuple[str, str]] = []  # the slot and the digest of each input file, as they came

    def receive(self, slot: str, data: bytes) -> None:
        """Write down that an input file came, and where."""
        self.inputs.append((slot, hashlib.sha256(data).hexdigest()))

    async def fetch(self, slot: str, address: str) -> bytes | None:
        """Fetch an input file from its address, as the vendor would; None if that fails."""
        try:
            async with httpx.AsyncClient(trust_env=False, verify=NO_TLS) as client:
                response = await client.get(address)
        except httpx.HTTPError:
            return None
        if response.status_code != 200:
            return None
        self.receive(slot, response.content)
        return response.content

    async def forget(self) -> None:
        """Begin anew, as if nothing had happened; and be there."""
        for each in (self, self.host):
            if each.leaving.is_set():
                await each.listen()
            each.faults.clear()
            each.seen.clear()
        self.host.stale = self.host.spoiled = 0
        self.orders.clear()
        self.plans.clear()
        self.inputs.clear()

    @property
    def title(self) -> str:
        return f"{self.vendor}-{self.mode}" if self.mode else self.vendor

    def settings(self, **more: Any) -> str:
        """The vendor's table."""
        given = {"type": self.vendor, "base_url": self.url, "api_key": self.credential, "poll_seconds": 0.02, **more}
        return f"[vendors.{self.vendor}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())

    def place(self, body: Any, wish: Wish, **more: Any) -> Placed:
        """Write an order into the books."""
        order_id = more.pop("id", None) or str(uuid.uuid4())
        order = Placed(order_id, body, wish, self.plans.popleft() if self.plans else Plan(), **more)
        self.orders[order.id] = order
        return order

    @property
    def open_orders(self) -> int:
        return sum(not order.is_over() and not order.canceled for order in self.orders.values())


@asynccontextmanager
async def listening(double: MediaDouble) -> AsyncGenerator[MediaDouble]:
    """The double and its file host, until the block ends."""
    await double.host.listen()
    await double.listen()
    try:
        yield double
    finally:
        await double.hide()
        await double.host.hide()


def open_picture(data: bytes) -> tuple[str, int, int] | None:
    """The content type and the size of a picture; None for anything else."""
    try:
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()
            return Image.MIME[picture.format or ""], picture.width, picture.height
    except (OSError, KeyError):
        return None


def open_base64(text: Any) -> bytes | None:
    """The bytes of bare Base64; None for anything else."""
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        return None


def open_data_uri(text: Any) -> tuple[str, bytes] | None:
    """The content type and the bytes of a `data:` URI; None for anything else."""
    head, _, body = str(text).partition(";base64,")
    data = open_base64(body) if head.startswith("data:") else None
    return None if data is None else (head.removeprefix("data:"), data)


async def read_form(request: web.BaseRequest) -> dict[str, tuple[str | None, bytes]]:
    """The parts of a multipart body: each part's file name, if it has one, and its bytes."""
    found: dict[str, tuple[str | None, bytes]] = {}

    def on_field(field: Any) -> None:
        found[field.field_name.decode()] = (None, field.value or b"")

    def on_file(file: Any) -> None:
        file.file_object.seek(0)
        found[file.field_name.decode()] = (file.file_name.decode(), file.file_object.read())

    headers = {"Content-Type": request.headers["Content-Type"].encode()}
    parse_form(headers, io.BytesIO(await request.read()), on_field, on_file)
    return found


def answer(status: int, body: Any, headers: Mapping[str, str] | None = None) -> web.Response:
    """A reply in JSON."""
    return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers=headers)
