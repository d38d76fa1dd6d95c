"""The contract of a chat vendor: build the call, translate the reply. Types only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import msgspec
from pydantic import Field

from penstock.domain.chat import Ask, Dialect, Fault, Part
from penstock.domain.prices import TokenPrice
from penstock.vendor_api.generation import Call, Reply, VendorFolders, VendorOptions


class ChatOptions(VendorOptions):
    """Settings that every chat vendor's table takes besides those of `VendorOptions`."""

    max_concurrent: int = Field(default=5_000, ge=1, description="maximum number of requests at once")
    connect_seconds: float = Field(default=5.0, gt=0, description="timeout of connecting")
    first_byte_seconds: float = Field(default=300.0, gt=0, description="timeout of a stream's first byte")
    idle_seconds: float = Field(default=120.0, gt=0, description="idle timeout of a stream after that")
    total_seconds: float = Field(default=900.0, gt=0, description="timeout of a whole reply")


class ChatServer(Protocol):
    """A chat server that runs as a child process, from its first request until it is retired."""

    def address(self) -> str | None:
        """Return the base address if it serves right now; never block."""
        ...

    def start(self) -> str:
        """Start it, and return the base address once it serves; it blocks, so it is called in a thread.

        Raise `ConnectionRefusedError` with a message that says why it failed and what to do.
        """
        ...

    def enter(self) -> None:
        """Count one more request in flight."""
        ...

    def leave(self) -> None:
        """Count one request less."""
        ...

    def retire(self) -> None:
        """End when the last request in flight is over; it may block."""
        ...

    def close(self) -> None:
        """End now; it may block."""
        ...


class Translator(Protocol):
    """Translates one reply from a vendor's own dialect; a new one is made for every request."""

    def event(self, name: str, data: bytes) -> Iterable[Part]:
        """Return the parts of one server-sent event; raise `ValueError` if it is malformed."""
        ...

    def whole(self, body: bytes) -> Iterable[Part]:
        """Return the parts of a reply that was not streamed."""
        ...


@dataclass(frozen=True, slots=True)
class AboutModel:
    """Texts for people about a model."""

    title: str
    description: str


class ChatVendor(Protocol):
    """A service that runs chat models. One instance per `[vendors.NAME]` table; no I/O, no state of a request."""

    options: ChatOptions
    options_type: ClassVar[type[ChatOptions]]
    server: ChatServer | None  # None: it runs elsewhere, at `base_url`
    models: Sequence[str]  # offered where the configuration lists no models
    price: TokenPrice | None  # used where the configuration names none
    about: Mapping[str, AboutModel]  # by model; models may be left out
    dialect: Dialect  # of requests that `complete` takes besides those of the chat dialect

    def __init__(self, options: Any, folders: VendorFolders) -> None: ...

    def complete(self, ask: Ask, model: str) -> Call:
        """Return the call that requests an answer; raise `InvalidRequest` for what the vendor cannot do.

        A request of the vendor's own dialect passes unchanged, but for the model's name and the credential.
        """
        ...

    def count(self, ask: Ask, model: str) -> Call | None:
        """Return the call that counts the tokens of a request of the vendor's own dialect; None if it has none."""
        ...

    def translator(self, ask: Ask) -> Translator | None:
        """Return a translator for the reply; None if replies are in the request's dialect and pass unchanged."""
        ...

    def fault(self, reply: Reply) -> Fault:
        """Return the reason that a failed reply gives."""
        ...


class _Listed(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_Listed]


class RemoteChat:
    """Defaults of chat vendors that run elsewhere."""

    server: ChatServer | None = None
    models: Sequence[str] = ()
    price: TokenPrice | None = None
    about: Mapping[str, AboutModel] = MappingProxyType({})
    dialect: Dialect = Dialect.CHAT

    def probe(self) -> Call | None:
        """Return a free call that needs the key, to test the connection; None if there is none."""
        return None

    def list_models(self, body: bytes) -> Sequence[str]:
        """Return the models that the reply to `probe` names, in the form that OpenAI, Anthropic and most have."""
        found = msgspec.json.decode(body, type=_ModelList)
        return [model.id for model in found.data]

    def count(self, ask: Ask, model: str) -> Call | None:
        """Return None: tokens are estimated."""
        del ask, model
        return None
