"""`openai_compatible`: OpenAI, vLLM, Ollama, llama.cpp, OpenRouter and all others with this dialect."""

from collections.abc import Sequence
from typing import ClassVar, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw
from pydantic import Field

from penstock.domain.chat import Ask, Dialect, Fault
from penstock.vendor_api.audio import write_form
from penstock.vendor_api.chat import ChatOptions, RemoteChat, Translator
from penstock.vendor_api.chat_extensions import find_dropped, plain_messages
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.dialects.responses_reply import ResponsesTranslation
from penstock.vendor_api.dialects.responses_request import adapt_request, translate_request
from penstock.vendor_api.generation import Call, Reply, VendorFolders

OPENAI_HOST: Final = "api.openai.com"
"""It refuses unknown fields and the older name of the token limit, which most others know alone."""
PRESETS: Final = {
    "OpenAI": "https://api.openai.com/v1",
    "OpenRouter": "https://openrouter.ai/api/v1",
    "Ollama": "http://127.0.0.1:11434/v1",
    "vLLM": "http://127.0.0.1:8000/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}
"""Usual addresses of servers with this dialect."""
MAX_STOPS: Final = 4
LIMITS = ("max_tokens", "max_completion_tokens")
_WITH_USAGE = Raw(b'{"include_usage":true}')
_encode = msgspec.json.Encoder().encode


class OpenAICompatibleOptions(ChatOptions):
    """Settings of `[vendors.NAME]` with type `openai_compatible`."""

    base_url: str = Field(
        default="https://api.openai.com/v1",
        description="what the path of an endpoint is appended to",
        json_schema_extra={"x-presets": dict(PRESETS)},
    )
    organization: str | None = Field(default=None, description="sent as `OpenAI-Organization`")
    project: str | None = Field(default=None, description="sent as `OpenAI-Project`")
    limit_name: Literal["as_sent", "max_tokens", "max_completion_tokens"] = Field(
        default="as_sent", description="the vendor's name for the token limit of a reply"
    )
    default_max_tokens: int | None = Field(
        default=None, ge=1, description="token limit of requests that set none; some servers would never stop"
    )
    developer_role: bool = Field(default=True, description="false: `developer` messages are sent as `system`")
    reasoning_content: bool = Field(
        default=False, description="true: send earlier reasoning back, as DeepSeek and others want it in tool loops"
    )
    reasoning_effort: bool = Field(
        default=True, description="false: leave the effort that callers of other dialects ask for out"
    )
    stream_usage: bool = Field(default=True, description="false: the vendor does not support `stream_options`")
    responses: bool = Field(default=False, description="true: requests go to `/responses`, in the Responses dialect")
    encrypted_reasoning: bool = Field(
        default=True,
        description="with `responses`, false: some models cannot return encrypted reasoning",
    )


class OpenAICompatible(RemoteChat):
    """Passes bytes through; changes only the model's name, the credential and what the options ask for.

    With `responses`, requests of the chat dialect are translated.
    """

    options_type: ClassVar[type[ChatOptions]] = OpenAICompatibleOptions
    embedding_models: Sequence[str] = ()
    speech_models: Sequence[str] = ()
    transcription_models: Sequence[str] = ()

    def __init__(self, options: OpenAICompatibleOptions, folders: VendorFolders) -> None:
        del folders  # nothing is kept
        self.options = options
        given = {
            "content-type": "application/json",
            "authorization": options.api_key and f"Bearer {options.api_key}",
            "openai-organization": options.organization,
            "openai-project": options.project,
        }
        self._headers = {name: value for name, value in given.items() if value}
        self.dialect = Dialect.RESPONSES if options.responses else Dialect.CHAT
        self._names: dict[str, Raw] = {}
        """Names of the routes' models, encoded as JSON once."""
        self._is_openai = urlsplit(options.base_url).hostname == OPENAI_HOST
        self._adapts = (
            options.limit_name != "as_sent" or options.default_max_tokens is not None or not options.developer_role
        )

    def probe(self) -> Call:
        """Return the call that lists the models."""
        return Call("GET", "/models", self._headers)

    def complete(self, ask: Ask, model: str) -> Call:
        """Return the caller's own fields with the vendor's name for the model."""
        if self.options.responses:
            return self._respond(ask, model)
        fields = {**ask.fields, "model": self._names.get(model) or self._name(model)}
        messages = plain_messages(ask, keep_reasoning=self.options.reasoning_content)
        if messages is not None:
            fields["messages"] = messages
        if ask.stream:
            self._ask_usage(fields)
        left_out: tuple[str, ...] = ()
        if ask.is_translated:
            left_out = (*find_dropped(ask, keep_reasoning=self.options.reasoning_content), *self._fit(fields))
        if self._adapts:
            self._adapt(fields)
        return Call("POST", "/chat/completions", self._headers, body=_encode(fields), left_out=left_out)

    def embed(self, ask: Ask, model: str) -> Call:
        """Return the caller's own fields with the vendor's name for the model."""
        fields = {**ask.fields, "model": self._names.get(model) or self._name(model)}
        return Call("POST", "/embeddings", self._headers, body=_encode(fields))

    def read_embeddings(self, body: bytes) -> None:
        """Return None: replies are in OpenAI's dialect."""
        del body

    def speak(self, ask: Ask, model: str) -> Call:
        """Return the caller's own fields, with the format named and as bytes in any case."""
        fields = {**ask.fields, "model": self._names.get(model) or self._name(model)}
        fields.setdefault("response_format", Raw(b'"mp3"'))
        fields.pop("stream_format", None)
        return Call("POST", "/audio/speech", self._headers, body=_encode(fields))

    def transcribe(self, ask: Ask, model: str) -> Call:
        """Return the caller's own form with the vendor's name for the model, as one answer in any case."""
        fields = [("model", model), ("response_format", ask.field("response_format") or "json")]
        for name in ask.fields.keys() - {"model", "response_format", "stream"}:
            value: str | list[str] = ask.field(name)
            fields += [(name, value)] if isinstance(value, str) else [(f"{name}[]", item) for item in value]
        assert ask.upload is not None  # noqa: S101  the door refuses requests without one
        content_type, body = write_form(fields, ask.upload)
        headers = self._headers | {"content-type": content_type}
        return Call("POST", "/audio/transcriptions", headers, body=body)

    def _respond(self, ask: Ask, model: str) -> Call:
        """Return a call of `/responses`."""
        if ask.dialect is Dialect.RESPONSES:
            fields, left_out = adapt_request(ask)
        else:
            fields, left_out = translate_request(ask, wants_seals=self.options.encrypted_reasoning)
        fields["model"] = self._names.get(model) or self._name(model)
        if self.options.default_max_tokens is not None:
            fields.setdefault("max_output_tokens", self.options.default_max_tokens)
        return Call("POST", "/responses", self._headers, body=_encode(fields), left_out=left_out)

    def _name(self, model: str) -> Raw:
        return self._names.setdefault(model, Raw(_encode(model)))

    def translator(self, ask: Ask) -> Translator | None:
        """Return None: replies pass unchanged. Only responses are translated, for a request of the chat dialect."""
        is_foreign = ask.dialect is not self.dialect
        return ResponsesTranslation() if is_foreign else None

    def fault(self, reply: Reply) -> Fault:
        """Return the reason in OpenAI's dialect."""
        return read_fault(reply)

    def _ask_usage(self, fields: dict[str, Raw]) -> None:
        if not self.options.stream_usage:
            fields.pop("stream_options", None)
        elif "stream_options" in fields:
            fields["stream_options"] = Raw(
                _encode(msgspec.json.decode(fields["stream_options"], type=dict[str, Raw]) | {"include_usage": True})
            )
        else:
            fields["stream_options"] = _WITH_USAGE

    def _fit(self, fields: dict[str, Raw]) -> tuple[str, ...]:
        """Remove what this vendor refuses from a request that came in another dialect, and return the names."""
        left_out: list[str] = []
        if self._is_openai:
            left_out += ["top_k"] if fields.pop("top_k", None) is not None else []
            stops = msgspec.json.decode(fields["stop"], type=list[Raw]) if "stop" in fields else []
            if len(stops) > MAX_STOPS:
                fields["stop"] = Raw(_encode(stops[:MAX_STOPS]))
                left_out.append("stop_sequences")
            if "max_tokens" in fields and self.options.limit_name == "as_sent":
                fields["max_completion_tokens"] = fields.pop("max_tokens")
        if not self.options.reasoning_effort and fields.pop("reasoning_effort", None) is not None:
            left_out.append("reasoning_effort")
        return tuple(left_out)

    def _adapt(self, fields: dict[str, Raw]) -> None:
        options = self.options
        limits = [fields.pop(name) for name in reversed(LIMITS) if name in fields and options.limit_name != "as_sent"]
        if limits:
            fields[options.limit_name] = limits[0]
        elif options.default_max_tokens is not None and not any(name in fields for name in LIMITS):
            name = "max_tokens" if options.limit_name == "as_sent" else options.limit_name
            fields[name] = Raw(_encode(options.default_max_tokens))
        if not options.developer_role and b'"developer"' in memoryview(fields["messages"]).tobytes():
            fields["messages"] = Raw(_encode(_without_developers(fields["messages"])))


def _without_developers(messages: Raw) -> list[dict[str, Raw]]:
    turns = msgspec.json.decode(messages, type=list[dict[str, Raw]])
    system = Raw(b'"system"')
    return [turn | {"role": system} if bytes(turn["role"]) == b'"developer"' else turn for turn in turns]


VENDOR = OpenAICompatible
