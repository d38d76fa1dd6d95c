"""Reads a Responses request, parsing as little as necessary, and reports exactly what is wrong with it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from penstock.chat import request
from penstock.domain.chat import Ask, Dialect, guess_tokens
from penstock.errors import InvalidRequest

CHECKS: Final[Mapping[str, request.Check]] = {
    "max_output_tokens": request.CHECKS["max_tokens"],
    "metadata": request.CHECKS["metadata"],
    "parallel_tool_calls": request.CHECKS["parallel_tool_calls"],
    "reasoning": request.CHECKS["response_format"],
    "safety_identifier": request.CHECKS["safety_identifier"],
    "store": request.CHECKS["logprobs"],
    "background": request.CHECKS["logprobs"],
    "stream": request.USUAL["stream"],
    "temperature": request.USUAL["temperature"],
    "text": request.CHECKS["response_format"],
    "tools": request.CHECKS["tools"],
    "top_logprobs": request.CHECKS["top_logprobs"],
    "top_p": request.USUAL["top_p"],
}
"""Checks of the fields besides model and input; all other fields are checked where they are translated."""
KEPT: Final[Mapping[str, str]] = {
    "background": "Leave it out, or send false: the answer comes with the reply.",
    "conversation": "Send the whole conversation in 'input'.",
    "previous_response_id": "Send the whole conversation in 'input', with the items of earlier replies.",
    "prompt": "Send the text in 'instructions' and 'input'.",
    "store": "Leave it out, or send false.",
}
"""Fields that need responses or prompts to be stored here, each with advice."""


def read(body: bytes) -> Ask:
    """Return the request in this body; an error names the field, the problem and what is allowed."""
    fields = request.split_fields(body)
    model = request.read_model(fields)
    for name in fields.keys() & CHECKS.keys():
        fields[name] = CHECKS[name](name, fields[name])
    refuse_kept(fields)
    prompt = _check_input(fields) + _measure_instructions(fields)
    limit = fields.get("max_output_tokens")
    return Ask(
        model=model,
        fields=fields,
        dialect=Dialect.RESPONSES,
        stream="stream" in fields and bytes(fields["stream"]) == b"true",
        max_tokens=None if limit is None else int(bytes(limit)),
        size=len(body),
        prompt=prompt,
    )


def refuse_kept(fields: Mapping[str, msgspec.Raw]) -> None:
    """Raise for a request that needs responses to be stored: none are."""
    for name in KEPT.keys() & fields.keys():
        if bytes(memoryview(fields[name])[:6]) != b"false":
            raise InvalidRequest(
                f"Unsupported parameter: '{name}' is not supported, because responses are not stored here.",
                param=name,
                code="unsupported_parameter",
                suggestion=KEPT[name],
            )


def _check_input(fields: Mapping[str, msgspec.Raw]) -> int:
    """Check that there is an input, and return its estimated number of tokens."""
    raw = fields.get("input")
    if raw is None:
        raise InvalidRequest(
            "Missing required parameter: 'input'.",
            param="input",
            code="missing_required_parameter",
            suggestion="Send a text or an array of items. Instructions alone are not enough.",
        )
    start = memoryview(raw)[:64].tobytes()
    if not start.startswith((b'"', b"[")):
        raise InvalidRequest(
            "Invalid type for 'input': expected a string or an array of items.", param="input", code="invalid_type"
        )
    if start[:1] == b"[" and start[1:].lstrip()[:1] == b"]":
        raise InvalidRequest(
            "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param="input",
            code="empty_array",
        )
    return guess_tokens(raw)


def _measure_instructions(fields: Mapping[str, msgspec.Raw]) -> int:
    raw = fields.get("instructions")
    return 0 if raw is None else guess_tokens(raw)
