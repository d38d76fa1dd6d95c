"""The response object: the fields of the request that it repeats, its state, output and usage."""

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from penstock.domain.chat import Ask, Usage
from penstock.vendor_api.lenient_json import write_json

Json: TypeAlias = dict[str, Any]

DEFAULTS: Final[dict[str, Any]] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""Fields of a request that its response repeats, with the values of those that are absent."""
FIXED: Final[dict[str, Any]] = {"background": False, "previous_response_id": None, "store": False}
_FALSE: Final = Raw(b"false")
_NULL: Final = Raw(b"null")
_tools = msgspec.json.Decoder(list[dict[str, Raw]])
_object = msgspec.json.Decoder(dict[str, Raw])


class ResponseHead:
    """The fields of a response that are known from the beginning."""

    __slots__ = ("_ask", "_created", "_id", "model", "suffix")

    def __init__(self, ask: Ask, reply_id: str, created: int) -> None:
        self._ask = ask
        self._created = created
        self.suffix = reply_id.partition("-")[2] or reply_id
        """The end of the ids of the response and of its items."""
        self._id = f"resp_{self.suffix}"
        self.model = ask.model

    def write(
        self,
        status: str,
        output: list[Json],
        *,
        error: Json | None = None,
        incomplete_details: Json | None = None,
        usage: Json | None = None,
    ) -> Json:
        """Return the response in this state."""
        fields = self._ask.fields
        repeated: Json = {name: fields.get(name, default) for name, default in DEFAULTS.items()}
        if "tools" in fields:
            repeated["tools"] = _complete_tools(fields["tools"])
        if "text" in fields:
            repeated["text"] = DEFAULTS["text"] | _object.decode(fields["text"])
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": error,
            "incomplete_details": incomplete_details,
            "model": self.model,
            "output": Raw(write_json(output)),  # half surrogate pairs cannot stand beside raw fields
            **repeated,
            **FIXED,
            "usage": usage,
        }


def write_usage(usage: Usage) -> Json:
    """Return the `usage` of a response."""
    found: Json = {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }
    return found | {"estimated": True} if usage.estimated else found


def _complete_tools(tools: Raw) -> list[dict[str, Raw]]:
    """Return the tools, each function with the fields that OpenAI's clients expect of it."""
    missing = {"parameters": _NULL, "strict": _FALSE}
    found = _tools.decode(tools)
    return [missing | tool if bytes(tool.get("type", b"")) == b'"function"' else tool for tool in found]
