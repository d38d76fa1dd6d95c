"""`local`: a chat model on this machine, from any GGUF file by llama.cpp. The default is SmolLM2-135M."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, cast

import msgspec
from msgspec import structs
from pydantic import Field

from penstock.domain.chat import Ask, Blame, Dialect, Fault
from penstock.domain.prices import FREE_TOKENS, TokenPrice
from penstock.errors import InvalidRequest
from penstock.vendor_api.chat import AboutModel, ChatOptions, ChatServer, Translator
from penstock.vendor_api.chat_extensions import find_dropped, plain_messages
from penstock.vendor_api.dialects.openai_errors import read_fault
from penstock.vendor_api.generation import Call, Reply, VendorFolders
from penstock_engines.llama.llama_server import LlamaOptions, LlamaServer
from penstock_engines.llama.profiles import find_profile
from penstock_engines.vendors.tool_emulation import (
    Emulation,
    emulate_tools,
    plain_turns,
    read_stops,
    read_text,
    wants_tools,
)

DEFAULT_WEIGHTS: Final = "smollm2-135m.gguf"
UNKNOWN: Final = {
    "functions": " Use 'tools' instead.",
    "function_call": " Use 'tool_choice' instead.",
    "audio": "",
    "web_search_options": "",
    "prediction": "",
}
"""Fields that llama.cpp would silently ignore."""
MISUNDERSTOOD: Final = re.compile(r"Failed to parse|Unknown reasoning format|Jinja Exception|json\.exception")
_encode = msgspec.json.Encoder().encode


class LocalOptions(ChatOptions):
    """`[vendors.local]`."""

    gguf: Path | None = Field(
        default=None, description="the model's file, from the weights folder on; default: SmolLM2-135M-Instruct"
    )
    tools: Literal["emulated", "native", "refused"] = Field(
        default="emulated",
        description="native: the model's own template knows tools; emulated: it is held to JSON that calls them",
    )
    system: str | None = Field(
        default=None,
        max_length=8000,
        description="the system prompt of requests without one; default: the template's, or our own for a pulled model",
    )
    repeat_penalty: float | None = Field(
        default=None, gt=0, le=2, description="default: 1.1, or what suits the pulled model; 1 is none"
    )
    context: int = Field(default=8192, ge=256, description="the longest conversation, in tokens")
    slots: int = Field(default=2, ge=1, le=64, description="how many requests it answers at once")
    threads: int | None = Field(default=None, ge=1, description="default: one for each core")
    memory_mb: int | None = Field(default=None, ge=256, description="the most memory it may take, in MiB")
    unload_seconds: float = Field(default=600.0, gt=0, description="how long an unused model stays in memory")
    start_seconds: float = Field(default=120.0, gt=0, description="how long loading the model may take")
    max_concurrent: int = Field(
        default=20, ge=1, description="how many requests it answers or lets wait; beyond that callers get a 429"
    )


class Local:
    """A local server with OpenAI's API, whose address is known once it runs."""

    options_type: ClassVar[type[ChatOptions]] = LocalOptions
    price: TokenPrice | None = FREE_TOKENS
    dialect: Dialect = Dialect.CHAT

    def __init__(self, options: LocalOptions, folders: VendorFolders) -> None:
        self.options = options
        self._tools = options.tools
        gguf = folders.weights / (options.gguf or Path(DEFAULT_WEIGHTS)).expanduser()
        self.models = (_name(gguf),)
        profile = find_profile(gguf.name)
        known = self.models if profile.title else ()
        self.about: Mapping[str, AboutModel] = {name: AboutModel(profile.title, profile.description) for name in known}
        self._system = options.system or profile.system
        server = LlamaServer(
            LlamaOptions(
                gguf=gguf,
                threads=options.threads,
                context=options.context,
                slots=options.slots,
                memory_mb=options.memory_mb,
                repeat_penalty=options.repeat_penalty,
                unload_seconds=options.unload_seconds,
                start_seconds=options.start_seconds,
            )
        )
        self.server: ChatServer | None = server
        self._headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {server.key}",
            "connection": "close",  # it closes connections after 5 idle seconds, and a request may just be on its way
        }

    def complete(self, ask: Ask, model: str) -> Call:
        """Return the caller's own fields, with tools as the options say."""
        messages, left_out = plain_messages(ask, keep_reasoning=False), find_dropped(ask, keep_reasoning=False)
        if messages is not None:
            ask = structs.replace(ask, fields={**ask.fields, "messages": messages})
        try:
            fields = {**ask.fields, "model": model, **self._replace(ask)}
            body = _encode({name: value for name, value in fields.items() if value is not None})
        except RecursionError:
            where = "tools" if "tools" in ask.fields else "messages"
            raise InvalidRequest(f"Invalid '{where}': nested too deeply.", param=where, code="invalid_value") from None
        return Call("POST", "/chat/completions", self._headers, body=body, left_out=left_out)

    def _open_turns(self, turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the conversation, opened by our system prompt if it has none."""
        if self._system is None or any(turn.get("role") in ("system", "developer") for turn in turns):
            return turns
        return [{"role": "system", "content": self._system}, *turns]

    def _replace(self, ask: Ask) -> dict[str, Any]:
        """Return the fields that replace the caller's own. None removes a field."""
        _refuse_unknown(ask)
        _check_format(ask.field("response_format"))
        changed: dict[str, Any] = {}
        if ask.stream:
            wanted = cast("dict[str, Any]", ask.field("stream_options") or {})
            changed["stream_options"] = wanted | {"include_usage": True}
        if "stop" in ask.fields:
            changed["stop"] = read_stops(ask) or None  # an empty one would end the answer before it begins
        if self._tools == "native":
            turns = cast("list[dict[str, Any]]", ask.field("messages"))
            for index, turn in enumerate(turns):
                read_text(turn, f"messages[{index}]")
            return changed | ({"messages": self._open_turns(turns)} if self._system else {})
        if wants_tools(ask) and self._tools == "refused":
            raise InvalidRequest("This model cannot use tools.", param="tools", code="unsupported_parameter")
        changed |= dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls"))
        if self._emulates(ask):
            return changed | {"stop": None} | emulate_tools(ask)
        return changed | {"messages": self._open_turns(plain_turns(ask))}

    def count(self, ask: Ask, model: str) -> Call | None:
        """Return None: tokens are estimated."""
        del ask, model
        return None

    def translator(self, ask: Ask) -> Translator | None:
        """Return a translator for emulated tools, else None."""
        return Emulation(read_stops(ask)) if self._emulates(ask) else None

    def fault(self, reply: Reply) -> Fault:
        """Read an error like OpenAI's. llama.cpp blames itself for some requests that it does not understand."""
        fault = read_fault(reply)
        if fault.blame is Blame.VENDOR and MISUNDERSTOOD.search(fault.message):
            return structs.replace(fault, blame=Blame.CALLER, status=400)
        return fault

    def _emulates(self, ask: Ask) -> bool:
        return self._tools == "emulated" and wants_tools(ask)


def _name(gguf: Path) -> str:
    """Return the model's id: the file's name, in characters that an id may have."""
    return re.sub(r"[^a-z0-9._-]+", "-", gguf.stem.lower()).strip("-._") or "local"


def _refuse_unknown(ask: Ask) -> None:
    """Refuse fields that would be silently ignored, as the caller would wonder."""
    for name in ask.fields.keys() & UNKNOWN.keys():
        message = f"Unsupported parameter: '{name}' is not supported with this model.{UNKNOWN[name]}"
        raise InvalidRequest(message, param=name, code="unsupported_parameter")
    if ask.field("modalities") not in (None, ["text"]):
        raise InvalidRequest("This model answers in text only.", param="modalities", code="unsupported_value")
    if not ask.field("tools") and ask.field("tool_choice") not in (None, "none", "auto"):
        message = "'tool_choice' is only allowed when 'tools' are specified."
        raise InvalidRequest(message, param="tool_choice", code="invalid_value")


def _check_format(response_format: Any) -> None:
    """Refuse unknown response formats, which llama.cpp would ignore."""
    match response_format:
        case None | {"type": "text" | "json_object"} | {"type": "json_schema", "json_schema": {"schema": {}}}:
            return
        case {"type": "json_schema"}:
            where, wanted = "response_format.json_schema.schema", "expected an object."
        case _:
            where, wanted = "response_format.type", "supported are 'text', 'json_object' and 'json_schema'."
    raise InvalidRequest(f"Invalid '{where}': {wanted}", param=where, code="invalid_value")


VENDOR = Local
