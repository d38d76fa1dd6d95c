"""Reads a Messages request, parsing as little as necessary, and reports exactly what is wrong with it."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Raw

from penstock.chat.request import MAX_MODEL_CHARACTERS, split_fields
from penstock.domain.chat import Ask, Dialect, guess_tokens
from penstock.errors import InvalidRequest

ROLES: Final = ("user", "assistant", "system")
MAX_TOKENS: Final = 2**63 - 1
HEADERS: Final = b"anthropic-"
"""The beginning of the names of headers that a vendor of this dialect gets as they came."""
COUNTED: Final = ("messages", "system", "tools")
"""Fields whose length is the length of the prompt."""


class _UsualTurn(msgspec.Struct):
    """The only field of a message that is read."""

    role: Literal["user", "assistant", "system"]


class _Usual(msgspec.Struct):
    """The fields that are read, decoded and checked in one step."""

    model: Annotated[str, Meta(min_length=1, max_length=MAX_MODEL_CHARACTERS)]
    messages: Annotated[list[_UsualTurn], Meta(min_length=1)]
    max_tokens: Annotated[int, Meta(ge=1, le=MAX_TOKENS)] | None = None
    stream: bool | None = None


_usual = msgspec.json.Decoder(_Usual)


def read(body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
    """Return the request in this body."""
    ask = read_uncounted(body, headers)
    if ask.max_tokens is None:
        raise _missing("max_tokens")
    return ask


def read_uncounted(body: bytes, headers: Mapping[bytes, bytes]) -> Ask:
    """Return the request whose tokens are to be counted: it need not limit an answer."""
    fields = split_fields(body)
    usual = _read_usual(body, fields)
    return Ask(
        model=usual.model,
        fields=fields,
        dialect=Dialect.MESSAGES,
        stream=usual.stream is True,
        max_tokens=usual.max_tokens,
        size=len(body),
        prompt=sum(guess_tokens(fields[name]) for name in COUNTED if name in fields),
        headers={
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in headers.items()
            if name.startswith(HEADERS)
        },
    )


def _read_usual(body: bytes, fields: Mapping[str, Raw]) -> _Usual:
    try:
        return _usual.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explain(fields, str(error)) from None


def _explain(fields: Mapping[str, Raw], reason: str) -> InvalidRequest:
    """Return the error that names the first field which is wrong."""
    for name in ("model", "messages"):
        if name not in fields:
            return _missing(name)
    for name, check in (("model", _check_model), ("max_tokens", _check_limit), ("stream", _check_stream)):
        if name in fields and (problem := check(_parse(name, fields[name]))):
            return _invalid(name, problem)
    return _check_messages(_parse("messages", fields["messages"])) or _invalid("messages", reason)


def _check_model(model: Any) -> str | None:
    is_fine = isinstance(model, str) and 0 < len(model) <= MAX_MODEL_CHARACTERS
    return None if is_fine else f"expected a text of 1 to {MAX_MODEL_CHARACTERS} characters"


def _check_limit(limit: Any) -> str | None:
    return None if type(limit) is int and 1 <= limit <= MAX_TOKENS else "expected an integer of at least 1"


def _check_stream(stream: Any) -> str | None:
    return None if isinstance(stream, bool) else "expected true or false"


def _check_messages(turns: Any) -> InvalidRequest | None:
    if not isinstance(turns, list) or not turns:
        return _invalid("messages", "expected an array of at least one message")
    for index, turn in enumerate(cast("list[Any]", turns)):
        if not isinstance(turn, dict) or cast("dict[str, Any]", turn).get("role") not in ROLES:
            return _invalid(f"messages.{index}.role", f"expected an object whose role is one of {', '.join(ROLES)}")
    return None


def _parse(name: str, raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(name, str(error)) from None


def _missing(name: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: Field required", param=name, code="missing_required_parameter")


def _invalid(name: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{name}: {problem}.", param=name, code="invalid_value")
