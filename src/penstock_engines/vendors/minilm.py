"""`minilm`: embeddings on this machine, by all-MiniLM-L6-v2."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final, NoReturn

import msgspec

from penstock.domain.chat import Ask, Dialect, Fault
from penstock.domain.prices import FREE_TOKENS, TokenPrice
from penstock.errors import InvalidRequest
from penstock.vendor_api.chat import AboutModel, ChatOptions, ChatServer, Translator
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.generation import Call, Reply, VendorFolders
from penstock_engines.minilm.embedding_server import EmbeddingServer
from penstock_engines.minilm.model_facts import DIMENSIONS, MAX_TOKENS
from penstock_engines.vendors.model_options import ModelOptions

MODEL: Final = "minilm-l6"
DESCRIPTION: Final = f"English texts of up to {MAX_TOKENS} tokens, {DIMENSIONS} dimensions. Runs on this machine."
_encode = msgspec.json.Encoder().encode


class MiniLMOptions(ModelOptions):
    """`[vendors.minilm]`."""


class MiniLM:
    """A local server with OpenAI's embeddings endpoint, whose address is known once it runs."""

    options_type: ClassVar[type[ChatOptions]] = MiniLMOptions
    models: Sequence[str] = ()
    dialect: Dialect = Dialect.CHAT
    embedding_models: Sequence[str] = (MODEL,)
    price: TokenPrice | None = FREE_TOKENS
    about: Mapping[str, AboutModel] = MappingProxyType({MODEL: AboutModel("MiniLM L6, embeddings", DESCRIPTION)})

    def __init__(self, options: MiniLMOptions, folders: VendorFolders) -> None:
        self.options = options
        server = EmbeddingServer(options.for_server(folders.weights))
        self.server: ChatServer | None = server
        self._headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {server.key}",
            "connection": "close",
        }

    def embed(self, ask: Ask, model: str) -> Call:
        """Return the caller's texts; refuse tokens, which are of another vocabulary, and other dimensions."""
        texts: Any = ask.field("input")
        first: Any = texts if isinstance(texts, str) else texts[0]
        if not isinstance(first, str):
            message = "This model takes texts: its tokens are not those of other models."
            raise InvalidRequest(f"Invalid 'input': {message}", param="input", code="unsupported_value")
        if ask.has("dimensions", but=DIMENSIONS):
            message = f"Invalid 'dimensions': this model has {DIMENSIONS}, and its vectors cannot be shortened."
            raise InvalidRequest(message, param="dimensions", code="unsupported_value")
        fields = {"model": model, "input": ask.fields["input"]}
        if "encoding_format" in ask.fields:
            fields["encoding_format"] = ask.fields["encoding_format"]
        return Call("POST", "/embeddings", self._headers, body=_encode(fields))

    def read_embeddings(self, body: bytes) -> None:
        """Return None: replies are in OpenAI's dialect."""
        del body

    def complete(self, ask: Ask, model: str) -> NoReturn:
        """Refuse: it does not chat."""
        del ask
        raise InvalidRequest(f"`{model}` makes embeddings and does not chat.", param="model", code="unsupported_value")

    def translator(self, ask: Ask) -> Translator | None:
        """Return None: it does not chat."""
        del ask
        return None

    def fault(self, reply: Reply) -> Fault:
        """Return the reason in OpenAI's dialect."""
        return read_fault(reply)


VENDOR = MiniLM
