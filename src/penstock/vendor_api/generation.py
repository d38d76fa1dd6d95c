"""The contract of a generation vendor. Types only, so that a vendor is one file without I/O.

A vendor's verbs are generators. They yield a `Call`, receive the `Reply`, and return its meaning.
`upstream/exchange.py` is the one driver. A vendor never retries, sleeps, logs or keeps state of a job.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar, cast

import msgspec
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from penstock.catalog.model import Expectation, GenerationModel, Recipe
from penstock.catalog.params import as_object
from penstock.clocks import CLOCKS, Clocks
from penstock.domain.files import StoredFile
from penstock.domain.job_errors import JobError
from penstock.domain.prices import Price
from penstock.vendor_api.order_lookup import Listing

T = TypeVar("T")
MAX_RETRY_AFTER_SECONDS: Final = 3600.0
"""Upper bound of `Retry-After`, both as read from vendors and as sent to callers."""


class Unclear(Exception):
    """The reply proves nothing. A poll is retried, a submit is looked up."""

    retry_after: float | None = None  # from the reply's header; the exchange fills it in


class InDoubt(Exception):
    """Another worker may have taken over the job, so nothing was sent."""


class NotSent(Exception):
    """The call provably never reached the vendor, so it may be retried, there or elsewhere."""


class AddressRefused(NotSent):
    """The vendor's own address leads to where vendors added at run time may not be."""


class NoPublicUrl(NotSent):
    """The vendor has to fetch a file from us, and cannot; the message says why, and what to do."""


class NotStarted(NotSent):
    """A server of our own cannot be started; the message says why, and what to do."""


class ReplyLost(Exception):
    """The call may have reached the vendor, but the reply is lost. A paid call is never retried blindly."""


class Unread(ReplyLost):
    """The vendor closed the connection before it had read the whole call, so it cannot have acted on it."""


# -- HTTP as data


@dataclass(frozen=True, slots=True)
class DataUri:
    """A placeholder anywhere in a call's `json` for the caller's file as a `data:` URI."""

    file: StoredFile


@dataclass(frozen=True, slots=True)
class Base64:
    """A placeholder anywhere in a call's `json` for the file's bytes as bare Base64."""

    file: StoredFile


@dataclass(frozen=True, slots=True)
class SignedUrl:
    """A placeholder anywhere in a call's `json` for a link of ours from which the vendor fetches the file."""

    file: StoredFile


FileValue: TypeAlias = DataUri | Base64 | SignedUrl


@dataclass(frozen=True, slots=True)
class Form:
    """A multipart body with callers' files and plain fields: `name` is the first file's field, `more` has the rest."""

    name: str
    file: StoredFile
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    more: tuple[tuple[str, StoredFile], ...] = ()
    loaded: tuple[bytes, ...] = ()
    """The bytes of all files, in order. The exchange fills them in."""

    @property
    def parts(self) -> tuple[tuple[str, StoredFile], ...]:
        """The fields that are files, in order."""
        return (self.name, self.file), *self.more


class Call(msgspec.Struct, frozen=True):  # one per chat request: faster than a dataclass
    """One HTTP request. A `url` without a scheme is joined to the vendor's `base_url`."""

    method: str
    url: str
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    json: Any = None
    body: bytes | None = None  # instead of `json`: sent unchanged
    file: StoredFile | None = None  # instead of both: the bytes of the caller's file
    form: Form | None = None  # instead of all three
    seconds: float = 60.0
    prepares: bool = False  # a preparation such as an upload: if it fails, nothing was ordered
    left_out: tuple[str, ...] = ()  # fields of the request that the vendor cannot get


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
        """Return the seconds of a numeric `Retry-After`, at most an hour."""
        try:
            return min(MAX_RETRY_AFTER_SECONDS, max(0.0, float(self.headers["retry-after"])))
        except (KeyError, ValueError):
            return None


Flow: TypeAlias = Generator[Call, Reply, T]


def without_call(answer: T) -> Flow[T]:
    """Return a flow that makes no call and ends with this answer."""
    yield from ()
    return answer


# -- orders and notices


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that the caller gave, and its role where the param has roles."""

    file: StoredFile
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """One generation to submit. `reference` is unique to the attempt, for vendors that take an idempotency key."""

    reference: str
    model: str  # the vendor's own name for it
    params: Mapping[str, Any]
    file: StoredFile | None = None
    recipe: Recipe | None = None  # set for a model that the configuration declares
    webhook: str | None = None  # URL that the vendor may call back
    placed_at: float = 0.0  # our time of submitting: an order that is older by the vendor's clock is another one
    asked_at: float = 0.0  # our time of the lookup, to compare with the vendor's clock
    files: Mapping[str, StoredFile] = field(default_factory=dict[str, StoredFile])  # by path, such as `images.0`
    vendor: str = ""  # the name of the vendor's table, and a hash of the credential that places the order
    credential: str = ""
    model_id: str = ""  # the model that the caller named

    def owns(self, file: StoredFile) -> bool:
        """Return whether an order of the same vendor and credential made this file, so that its id can be used."""
        origin = file.origin
        return origin is not None and (origin.vendor, origin.credential) == (self.vendor, self.credential)

    def given(self, name: str) -> tuple[GivenFile, ...]:
        """Return the files of one param, in the caller's order."""
        value = self.params.get(name)
        several = isinstance(value, list)
        entries = cast("list[Any]", value) if several else [value]
        paths = [f"{name}.{number}" if several else name for number in range(len(entries))]
        files = {"file": self.file, **self.files}
        found = ((files.get(path), entry) for path, entry in zip(paths, entries, strict=True))
        return tuple(GivenFile(file, as_object(entry).get("role")) for file, entry in found if file is not None)


@dataclass(frozen=True, slots=True)
class Notice:
    """A request to a vendor's webhook URL, not yet verified. Header names are lower case."""

    headers: Mapping[str, str]
    body: bytes
    received_at: float


# -- results of the verbs


@dataclass(frozen=True, slots=True)
class Accepted:
    """The vendor took the order. `operation` is all that `poll` and `cancel` will get."""

    upstream_id: str
    operation: Mapping[str, Any]
    warnings: tuple[str, ...] = ()  # one for each param that the vendor cannot honour


@dataclass(frozen=True, slots=True)
class Finished:
    """The vendor returned the result at once and keeps none. The gateway stores it before anything else happens."""

    upstream_id: str
    result: "Done"
    warnings: tuple[str, ...] = ()  # one for each param that the vendor cannot honour


@dataclass(frozen=True, slots=True)
class Refused:
    """The vendor provably did not take the order, but may later: it is busy, or its rate limit is reached."""

    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Similar:
    """Orders in a vendor's list that may be the lost one, oldest first. A job adopts one that no other job holds.

    Orders that are `doubtful` may also be another caller's with another file, so none of them is adopted. If other jobs
    hold all of both, the `listing` may prove that the order never arrived. Without a listing nothing is proven.
    """

    orders: tuple[Accepted, ...] = ()
    listing: Listing | None = None
    doubtful: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Absent:
    """Proof that the vendor never received the order."""


@dataclass(frozen=True, slots=True)
class LookupUnsupported:
    """The vendor has no way to look an order up."""


@dataclass(frozen=True, slots=True)
class Running:
    """Not finished. Fields that the vendor does not report are None."""

    progress: float | None = None
    queue_position: int | None = None
    eta_seconds: float | None = None
    poll_after: float | None = None  # seconds until the next poll, if the vendor sets them


@dataclass(frozen=True, slots=True)
class ProgressChannel:
    """A WebSocket on which a vendor reports the progress of one order. Only polls end an order.

    `call` opens it, as a GET. `read` returns a message's news, or None. News with a `poll_after` of 0 ask for a poll.
    """

    call: Call
    read: Callable[[str], Running | None]


class Kind(StrEnum):
    """The kind of an output."""

    MODEL = "model"
    VIDEO = "video"
    IMAGE = "image"
    AUDIO = "audio"
    TEXT = "text"


class Role(StrEnum):
    """The role of an output."""

    PRIMARY = "primary"
    PREVIEW = "preview"


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A result that came with the reply to the order and lies in our storage; vendors do not make it."""

    key: str


@dataclass(frozen=True, slots=True)
class Output:
    """One result: the call that downloads it, or its bytes in Base64 if they came with the reply."""

    kind: Kind
    role: Role
    download: Call | str | KeptReply


@dataclass(frozen=True, slots=True)
class Done:
    """Finished, with something to download."""

    outputs: tuple[Output, ...]
    warnings: tuple[str, ...] = ()
    seed: int | None = None
    expected: Expectation | None = None  # set if the vendor was asked for something else than the caller asked for
    finished_at: float | None = None  # by the vendor's clock, in seconds since the epoch
    result_id: str | None = None  # the vendor's id of the result, if it is continued by another id than the order's


@dataclass(frozen=True, slots=True)
class Failed:
    """Finished without a result."""

    error: JobError
    gone: bool = False  # the vendor does not know the order, at least not with this credential


# -- vendors


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a vendor runs, with the vendor's price and name for it."""

    model: GenerationModel
    price: Price | None = None
    name: str = ""  # default: the model's id


@dataclass(frozen=True, slots=True)
class VendorFolders:
    """Folders that a vendor may use on this machine: its own, and the one with the weights that all share.

    `clocks` are the gateway's clocks, for tokens that end.
    """

    own: Path
    weights: Path
    clocks: Clocks = CLOCKS


class VendorOptions(BaseModel):
    """Settings that every `[vendors.NAME]` table takes; a vendor adds its own by subclassing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    api_key: str | None = None
    base_url: str = ""
    poll_seconds: float = Field(default=2.0, gt=0)
    max_concurrent: int = Field(default=100, ge=1)
    _networks: tuple[IPv4Network | IPv6Network, ...] | None = PrivateAttr(default=None)

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...] | None:
        """The networks that the vendor's own address may be in besides public ones. None: any, as the file says."""
        return self._networks

    def confine(self, networks: tuple[IPv4Network | IPv6Network, ...]) -> None:
        """Hold the vendor's own address to public ones and these networks. Options of other networks are not equal."""
        self._networks = networks

    @property
    def credential(self) -> str:
        """The credential for this vendor. An order is polled with the credential that placed it."""
        return self.api_key or ""


class WebhookOptions(VendorOptions):
    """Settings of a vendor that can call back."""

    webhooks: bool = Field(default=True, description="have it call back, where `server.public_url` is set")


class InProcessUpstream(Protocol):
    """An upstream inside this process that takes HTTP requests; it blocks, so it is called in a thread.

    Raises `ConnectionRefusedError` where a connection would fail, and `ConnectionResetError` where a reply is lost.
    """

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Mapping[str, str], bytes | Path]:
        """Answer one request with status, headers and body; a large body is a file, which is read later."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class GenerationVendor(Protocol):
    """A service that runs generation models. One instance per `[vendors.NAME]` table."""

    options: VendorOptions
    options_type: ClassVar[type[VendorOptions]]
    models: Sequence[ServedModel]
    upstream: InProcessUpstream | None  # None: the vendor is reached over HTTP
    lookup_seconds: float  # seconds after a submit in which a lookup may still miss the order
    reads_objects: bool  # it can read `file.object` itself
    declares: bool  # the configuration may declare its models
    batch: int  # maximum number of orders in one `poll_many`; below 2 it is not called
    repeats: bool  # an order that is gone, as with its machine, cost nothing and may be placed again
    addresses: Sequence[str]  # other URLs that the operator configured: they may be in a private network

    def __init__(self, options: Any, folders: VendorFolders) -> None: ...

    def submit(self, order: Order) -> Flow[Accepted | Finished | Refused | Failed]:
        """Place a paid order. Called at most once per reference."""
        ...

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Look up an order whose answer was lost."""
        ...

    def poll(self, operation: Mapping[str, Any]) -> Flow[Running | Done | Failed]:
        """Return the state of an accepted order."""
        ...

    def poll_many(self, operations: Sequence[Mapping[str, Any]]) -> Flow[Sequence[Running | Done | Failed | None]]:
        """Return the states of several orders, in their sequence; None for one that needs a `poll` of its own."""
        ...

    def progress_channel(self, operation: Mapping[str, Any]) -> ProgressChannel | None:
        """Return where the vendor reports the progress of an accepted order; None if it is only polled."""
        ...

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Ask the vendor to stop; return False if it cannot."""
        ...

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """Return whether a notice is genuine. A genuine notice has the job polled at once, nothing more."""
        ...

    def describe(self, model: str) -> Flow[Mapping[str, Any] | None]:
        """Return the vendor's own JSON Schema of a model's params; None if it has none."""
        ...

    def most_results(self, model: str) -> int | None:
        """Return how many results one order for this upstream model makes at most; None: as many as its `n` allows."""
        ...


class GenerationDefaults:
    """Defaults of generation vendors; a vendor overrides what it can do."""

    upstream: InProcessUpstream | None = None
    lookup_seconds: float = 0.0
    reads_objects: bool = False
    declares: bool = False
    batch: int = 0
    repeats: bool = False
    addresses: Sequence[str] = ()

    def probe(self) -> Call | None:
        """Return a free call that needs the key, to test the connection; None if there is none."""
        return None

    def find(self, order: Order) -> Flow[Accepted | Similar | Absent | LookupUnsupported]:
        """Return that orders cannot be looked up."""
        del order
        return without_call(LookupUnsupported())

    def poll_many(self, operations: Sequence[Mapping[str, Any]]) -> Flow[Sequence[Running | Done | Failed | None]]:
        """Have each order polled by itself."""
        return without_call([None] * len(operations))

    def progress_channel(self, operation: Mapping[str, Any]) -> ProgressChannel | None:
        """Return that orders are only polled."""
        del operation
        return None

    def cancel(self, operation: Mapping[str, Any]) -> Flow[bool]:
        """Return that an order cannot be stopped."""
        del operation
        return without_call(answer=False)

    def verify_notice(self, notice: Notice) -> Flow[bool]:
        """Reject every notice: the vendor sends none."""
        del notice
        return without_call(answer=False)

    def describe(self, model: str) -> Flow[Mapping[str, Any] | None]:
        """Return that there is no schema."""
        del model
        return without_call(None)

    def most_results(self, model: str) -> int | None:
        """Return that an order makes as many results as its params say."""
        del model
        return None
