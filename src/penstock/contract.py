"""What a vendor must answer: types only, so that a vendor is one file without I/O.

A vendor's verbs are generators: they yield a `Call`, are sent the `Reply`, and return what it means.
`exchange.py` is the one driver. A vendor never resends, sleeps, logs or keeps state of a job.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from penstock.chat import Ask, Fault, Part
from penstock.files import StoredFile
from penstock.job_errors import JobError
from penstock.money import Price, TokenPrice

T = TypeVar("T")


class Unclear(Exception):
    """The reply says nothing certain: a poll is tried again, a submit is looked up."""


class NotSent(Exception):
    """The call provably never reached the vendor: it may be made again, there or elsewhere."""


class NotStarted(NotSent):
    """A server of our own cannot be started; the sentence says why, and what to do about it."""


class ReplyLost(Exception):
    """The call may have reached the vendor and its answer did not reach us: never make a paid one again blindly."""


# -- what goes over the wire


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request, as data. A `url` without a scheme is joined to the vendor's `base_url`."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    json: Any = None
    body: bytes | None = None  # instead of `json`: sent as it is
    file: StoredFile | None = None  # instead of both: the bytes of the caller's file
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; anything else (a proxy's HTML, a cut reply) is unclear."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError as error:
            raise Unclear(f"HTTP {self.status} with a body that is not JSON") from error

    @property
    def retry_after(self) -> float | None:
        """Seconds of a numeric `Retry-After`."""
        try:
            return max(0.0, float(self.headers["retry-after"]))
        except (KeyError, ValueError):
            return None


Flow: TypeAlias = Generator[Call, Reply, T]


# -- what the runner asks for


@dataclass(frozen=True, slots=True)
class Order:
    """One generation to submit. `reference` is ours, unique to the attempt: an idempotency key for vendors with one."""

    reference: str
    model: str
    params: Mapping[str, Any]
    file: StoredFile | None = None


# -- what a vendor says


@dataclass(frozen=True, slots=True)
class Accepted:
    """The vendor took the order. `operation` is all that `poll` and `cancel` will get."""

    upstream_id: str
    operation: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The vendor provably did not take the order, but may later: it is full, or its rate limit is reached."""

    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """The vendor was asked and has never seen the order."""


@dataclass(frozen=True, slots=True)
class Untold:
    """The vendor has no way to look an order up."""


@dataclass(frozen=True, slots=True)
class Running:
    """Not finished. Whatever the vendor does not tell is None."""

    progress: float | None = None
    queue_position: int | None = None
    eta_seconds: float | None = None
    poll_after: float | None = None  # when to ask again, if the vendor says so


class Kind(StrEnum):
    """What an output is."""

    MODEL = "model"
    VIDEO = "video"
    IMAGE = "image"


class Role(StrEnum):
    """What an output is for."""

    PRIMARY = "primary"
    PREVIEW = "preview"


@dataclass(frozen=True, slots=True)
class Output:
    """One result, and the call that downloads it."""

    kind: Kind
    role: Role
    download: Call


@dataclass(frozen=True, slots=True)
class Done:
    """Finished, with something to download."""

    outputs: tuple[Output, ...]
    warnings: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Finished without a result."""

    error: JobError


@dataclass(frozen=True, slots=True)
class Home:
    """What a vendor may use on this machine: a folder of its own, and the weights that all share."""

    folder: Path
    weights: Path


class Options(BaseModel):
    """What every `[vendors.NAME]` table may hold; a vendor adds its own settings by subclassing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    api_key: str | None = None
    base_url: str = ""
    poll_seconds: float = Field(default=2.0, gt=0)
    max_concurrent: int = Field(default=100, ge=1)


class ChatOptions(Options):
    """What every chat vendor's table may hold besides."""

    max_concurrent: int = Field(default=5_000, ge=1, description="how many requests it may have at once")
    connect_seconds: float = Field(default=5.0, gt=0, description="how long connecting may take")
    first_byte_seconds: float = Field(default=300.0, gt=0, description="how long a stream may take to begin")
    idle_seconds: float = Field(default=120.0, gt=0, description="how long a stream may be silent after that")
    total_seconds: float = Field(default=900.0, gt=0, description="how long a whole reply may take")


class Upstream(Protocol):
    """An upstream inside this process, spoken to as if over HTTP; it blocks, so it is called in a thread.

    It raises `ConnectionRefusedError` where a connection would fail, and `ConnectionResetError` where a reply is lost.
    """

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Mapping[str, str], bytes | Path]:
        """One request, one reply; a large body as a file, which is read later."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class ChatServer(Protocol):
    """A chat server that runs on this machine, as our child, from when it is first needed until nobody needs it."""

    def address(self) -> str | None:
        """The base address if it serves right now; never blocks."""
        ...

    def start(self) -> str:
        """The base address once it serves; it blocks, so it is called in a thread.

        It raises `ConnectionRefusedError`, whose sentence says why and what to do about it.
        """
        ...

    def enter(self) -> None:
        """A request is on its way to it."""
        ...

    def leave(self) -> None:
        """That request is over."""
        ...

    def retire(self) -> None:
        """Nothing new will come: end when the last request is over; it may block."""
        ...

    def close(self) -> None:
        """End it now; it may block."""
        ...


class GenerationVendor(Protocol):
    """Who runs a generation model. One instance per `[vendors.NAME]` table."""

    options: Options
    options_type: ClassVar[type[Options]]
    upstream: Upstream | None  # None: over HTTP
    price: Price | None  # what a job costs where the configuration does not say
    lookup_seconds: float  # how long after a submit a look-up that finds nothing may still be wrong
    reads_objects: bool  # whether `file.object` means something to it

    def __init__(self, options: Any, home: Home) -> None: ...

    def serves(self, model: str) -> bool:
        """Whether this vendor can run the catalogue's model of this id."""
        ...

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place a paid order. Called at most once per reference."""
        ...

    def find(self, order: Order) -> Flow[Accepted | Absent | Untold]:
        """Look up an order whose answer was lost."""
        ...

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """How an accepted order stands."""
        ...

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Ask the vendor to stop; False where it cannot."""
        ...


class Translator(Protocol):
    """What one reply in a vendor's own dialect means; made anew for every request."""

    def event(self, name: str, data: bytes) -> Iterable[Part]:
        """The parts in one server-sent event; a `ValueError` tells that it is malformed."""
        ...

    def whole(self, body: bytes) -> Iterable[Part]:
        """The parts of a reply that was not streamed."""
        ...


class ChatVendor(Protocol):
    """Who runs chat models. One instance per `[vendors.NAME]` table; no I/O, no state of a request."""

    options: ChatOptions
    options_type: ClassVar[type[ChatOptions]]
    server: ChatServer | None  # None: it runs elsewhere, at `base_url`
    models: Sequence[str]  # what it offers where the configuration lists no models
    price: TokenPrice | None  # what tokens cost where the configuration does not say

    def __init__(self, options: Any, home: Home) -> None: ...

    def complete(self, ask: Ask, model: str) -> Call:
        """The call that has this vendor's model answer; an `InvalidRequest` for what the vendor cannot do."""
        ...

    def translator(self, ask: Ask) -> Translator | None:
        """None: the replies are in OpenAI's dialect, and pass as they are."""
        ...

    def fault(self, reply: Reply) -> Fault:
        """What a reply without success says."""
        ...


class RemoteChat:
    """What is so for every chat vendor that runs elsewhere."""

    server: ChatServer | None = None
    models: Sequence[str] = ()
    price: TokenPrice | None = None


Vendor: TypeAlias = GenerationVendor | ChatVendor
