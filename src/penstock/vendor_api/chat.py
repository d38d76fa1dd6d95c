"""What a chat vendor must answer: the call that has a model speak, and what its reply means; types only."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

from pydantic import Field

from penstock.domain.chat import Ask, Fault, Part
from penstock.domain.prices import TokenPrice
from penstock.vendor_api.generation import Call, Reply, VendorFolders, VendorOptions


class ChatOptions(VendorOptions):
    """What every chat vendor's table may hold besides."""

    max_concurrent: int = Field(default=5_000, ge=1, description="how many requests it may have at once")
    connect_seconds: float = Field(default=5.0, gt=0, description="how long connecting may take")
    first_byte_seconds: float = Field(default=300.0, gt=0, description="how long a stream may take to begin")
    idle_seconds: float = Field(default=120.0, gt=0, description="how long a stream may be silent after that")
    total_seconds: float = Field(default=900.0, gt=0, description="how long a whole reply may take")


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

    def __init__(self, options: Any, folders: VendorFolders) -> None: ...

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
