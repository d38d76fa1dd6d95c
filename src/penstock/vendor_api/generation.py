"""What a vendor must answer: types only, so that a vendor is one file without I/O.

A vendor's verbs are generators: they yield a `Call`, are sent the `Reply`, and return what it means.
`upstream/exchange.py` is the one driver. A vendor never resends, sleeps, logs or keeps state of a job.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from penstock.catalog.model import Expectation, GenerationModel, Recipe
from penstock.domain.files import StoredFile
from penstock.domain.job_errors import JobError
from penstock.domain.prices import Price
from penstock.vendor_api.order_lookup import Listing

T = TypeVar("T")
MAX_RETRY_AFTER_SECONDS: Final = 3600.0
"""No vendor is waited for longer, and no caller is told to wait longer, whatever it asks for."""


class Unclear(Exception):
    """The reply says nothing certain: a poll is tried again, a submit is looked up."""

    retry_after: float | None = None  # what the vendor asked for, if it did; the exchange fills it in


class InDoubt(Exception):
    """Another worker may have taken the job over: nothing was sent."""


class NotSent(Exception):
    """The call provably never reached the vendor: it may be made again, there or elsewhere."""


class NotStarted(NotSent):
    """A server of our own cannot be started; the sentence says why, and what to do about it."""


class ReplyLost(Exception):
    """The call may have reached the vendor and its answer did not reach us: never make a paid one again blindly."""


class Unread(ReplyLost):
    """The other side hung up before it had read the whole call, so it cannot have acted on it."""


# -- what goes over the wire


@dataclass(frozen=True, slots=True)
class DataUri:
    """Anywhere in a call's `json`: stands for the caller's file as a `data:` URI."""

    file: StoredFile


@dataclass(frozen=True, slots=True)
class Form:
    """A multipart body: the caller's file under a name, and plain fields beside it."""

    name: str
    file: StoredFile
    fields: Mapping[str, str] = field(default_factory=dict[str, str])


class Call(msgspec.Struct, frozen=True):  # made for every chat request: quicker than a dataclass
    """One HTTP request, as data. A `url` without a scheme is joined to the vendor's `base_url`."""

    method: str
    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    json: Any = None
    body: bytes | None = None  # instead of `json`: sent as it is
    file: StoredFile | None = None  # instead of both: the bytes of the caller's file
    form: Form | None = None  # instead of all three
    seconds: float = 60.0
    prepares: bool = False  # such as an upload: if it fails, nothing is on order


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body parsed as JSON; raise `Unclear` for anything else, such as a proxy's HTML page."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError as error:
            raise Unclear(f"HTTP {self.status} with a body that is not JSON") from error

    def decode(self, shape: type[T]) -> T:
        """Return the body in this shape, ignoring unknown fields; raise `Unclear` if it has another shape."""
        try:
            return msgspec.convert(self.json(), shape)
        except msgspec.ValidationError as error:
            raise Unclear(f"HTTP {self.status}: {error}") from error

    def try_decode(self, shape: type[T]) -> T | None:
        """Return the body in this shape, such as an error; None if it has another shape."""
        try:
            return self.decode(shape)
        except Unclear:
            return None

    @property
    def retry_after(self) -> float | None:
        """Seconds of a numeric `Retry-After`, at most an hour."""
        try:
            return min(MAX_RETRY_AFTER_SECONDS, max(0.0, float(self.headers["retry-after"])))
        except (KeyError, ValueError):
            return None


Flow: TypeAlias = Generator[Call, Reply, T]


def without_call(answer: T) -> Flow[T]:
    """A flow that needs no call."""
    yield from ()
    return answer


# -- what the runner asks for


@dataclass(frozen=True, slots=True)
class Order:
    """One generation to submit. `reference` is ours, unique to the attempt: an idempotency key for vendors with one."""

    reference: str
    model: str  # the vendor's own name of it
    params: Mapping[str, Any]
    file: StoredFile | None = None
    recipe: Recipe | None = None  # of a model that the configuration declares
    webhook: str | None = None  # where the vendor may tell that something has happened
    placed_at: float = 0.0  # when we set about it: an order that is older by the vendor's clock is not this one
    asked_at: float = 0.0  # what our clock says now, to compare it with the vendor's


@dataclass(frozen=True, slots=True)
class Notice:
    """What came to a vendor's webhook: anyone can send one. Header names are lower case."""

    headers: Mapping[str, str]
    body: bytes
    received_at: float


# -- what a vendor says


@dataclass(frozen=True, slots=True)
class Accepted:
    """The vendor took the order. `operation` is all that `poll` and `cancel` will get."""

    upstream_id: str
    operation: Mapping[str, Any]
    warnings: tuple[str, ...] = ()  # what of the order the vendor has no word for


@dataclass(frozen=True, slots=True)
class Refused:
    """The vendor provably did not take the order, but may later: it is full, or its rate limit is reached."""

    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Similar:
    """Orders in a vendor's list that may be the lost one, oldest first: it is one that no other job holds.

    Those that are `doubtful` may be it, or another caller's with another file: none is taken up. If all of both are
    others', the `listing` may prove that the order never arrived; without one nothing is proven.
    """

    orders: tuple[Accepted, ...] = ()
    listing: Listing | None = None
    doubtful: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Absent:
    """The vendor was asked and has never seen the order: that is proof."""


@dataclass(frozen=True, slots=True)
class LookupUnsupported:
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
    """One result: the call that downloads it, or its bytes in Base64 where they came with the reply."""

    kind: Kind
    role: Role
    download: Call | str


@dataclass(frozen=True, slots=True)
class Done:
    """Finished, with something to download."""

    outputs: tuple[Output, ...]
    warnings: tuple[str, ...] = ()
    seed: int | None = None
    expected: Expectation | None = None  # what the vendor was asked for, where that is not what the caller asked for
    finished_at: float | None = None  # when, by the vendor's clock, in seconds since the epoch


@dataclass(frozen=True, slots=True)
class Failed:
    """Finished without a result."""

    error: JobError
    gone: bool = False  # the vendor does not know the order, or not by this credential


# -- who is asked


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a vendor runs: the catalogue's or its own, what it costs there, and its name there."""

    model: GenerationModel
    price: Price | None = None
    name: str = ""  # default: the model's id


@dataclass(frozen=True, slots=True)
class VendorFolders:
    """What a vendor may use on this machine: a folder of its own, and the weights that all share."""

    own: Path
    weights: Path


class VendorOptions(BaseModel):
    """What every `[vendors.NAME]` table may hold; a vendor adds its own settings by subclassing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    api_key: str | None = None
    base_url: str = ""
    poll_seconds: float = Field(default=2.0, gt=0)
    max_concurrent: int = Field(default=100, ge=1)

    @property
    def credential(self) -> str:
        """What proves to the vendor who we are; orders are followed up with the one that placed them."""
        return self.api_key or ""


class WebhookOptions(VendorOptions):
    """What the table of a vendor that can call back may hold besides."""

    webhooks: bool = Field(default=True, description="whether it is to call back, where `server.public_url` is set")


class InProcessUpstream(Protocol):
    """An upstream inside this process, spoken to as if over HTTP; it blocks, so it is called in a thread.

    It raises `ConnectionRefusedError` where a connection would fail, and `ConnectionResetError` where a reply is lost.
    """

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Mapping[str, str], bytes | Path]:
        """One request, one reply; a large body as a file, which is read later."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class GenerationVendor(Protocol):
    """Who runs generation models. One instance per `[vendors.NAME]` table."""

    options: VendorOptions
    options_type: ClassVar[type[VendorOptions]]
    models: Sequence[ServedModel]
    upstream: InProcessUpstream | None  # None: over HTTP
    lookup_seconds: float  # how long after a submit a look-up that finds nothing may still be wrong
    reads_objects: bool  # whether `file.object` means something to it
    declares: bool  # whether the configuration may declare models of it
    batch: int  # how many orders `poll_many` takes; below 2 it is not asked
    repeats: bool  # whether an order that is gone, as with its machine, costs nothing and may be placed anew
    addresses: Sequence[str]  # URLs besides `base_url` that the operator configured: they may be inside its network

    def __init__(self, options: Any, folders: VendorFolders) -> None: ...

    def submit(self, order: Order) -> Flow[Accepted | Refused | Failed]:
        """Place a paid order. Called at most once per reference."""
        ...

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look up an order whose answer was lost."""
        ...

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """How an accepted order stands."""
        ...

    def poll_many(self, operations: Sequence[Mapping[str, Any]]) -> Flow[Sequence[Running | Done | Failed | None]]:
        """How several stand, in the same order; None for one to be asked for alone."""
        ...

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Ask the vendor to stop; False where it cannot."""
        ...

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """Whether a notice to its webhook is genuine; all that it does is to have the job polled at once."""
        ...

    def describe(self, model: str) -> Flow[Mapping[str, Any] | None]:
        """The vendor's own JSON Schema of a model's params; None where it has none."""
        ...


class GenerationDefaults:
    """What is so for most generation vendors; a vendor says what is different."""

    upstream: InProcessUpstream | None = None
    lookup_seconds: float = 0.0
    reads_objects: bool = False
    declares: bool = False
    batch: int = 0
    repeats: bool = False
    addresses: Sequence[str] = ()

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """There is no way to look an order up."""
        del order
        return without_call(LookupUnsupported())

    def poll_many(self, operations: Sequence[Mapping[str, Any]]) -> Flow[Sequence[Running | Done | Failed | None]]:
        """Each is asked for alone."""
        return without_call([None] * len(operations))

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """It cannot be stopped."""
        del operation
        return without_call(answer=False)

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """It sends none, so none is genuine."""
        del notice
        return without_call(answer=False)

    def describe(self, model: str) -> Flow[Mapping[str, Any] | None]:
        """It has no schema of its own."""
        del model
        return without_call(None)
