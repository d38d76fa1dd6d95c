"""The contract of embeddings: methods that a chat vendor may have besides those of chat. Types only."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from penstock.domain.chat import Ask
from penstock.vendor_api.generation import Call


class Embeddings(msgspec.Struct, frozen=True):
    """The vectors of a reply, in the order of the texts, and the tokens of all texts if the vendor counts them."""

    vectors: Sequence[Sequence[float]]
    tokens: int | None = None
    model: str | None = None


@runtime_checkable
class Embedder(Protocol):
    """A chat vendor that runs embedding models too, or only these."""

    embedding_models: Sequence[str]
    """Its embedding models. They are offered where the configuration lists no models, and need no `kind` there."""

    def embed(self, ask: Ask, model: str) -> Call:
        """Return the call for a request in OpenAI's shape; raise `InvalidRequest` for what the vendor cannot do."""
        ...

    def read_embeddings(self, body: bytes) -> Embeddings | None:
        """Return the vectors of a reply; None if replies are in OpenAI's dialect. Raise `ValueError` if malformed."""
        ...
